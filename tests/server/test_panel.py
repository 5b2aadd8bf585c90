"""Estimates of panels and of sliding windows, against the law of what tiny populations send."""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import loloha
from loloha.client import Client
from loloha.distribution import exact_distribution
from loloha.errors import MergeError, ParameterError
from loloha.server import panel
from loloha.server.estimate import temporal_covariance, variance
from loloha.server.mean import mean, mean_variance
from loloha.server.panel import evenness, rolling

BUDGETS = {"eps_inf": 2.0, "eps_1": 1.0}
PROTOCOLS = [
    loloha.LGRR(k=2, **BUDGETS),
    loloha.BiLOLOHA(k=2, **BUDGETS),
    loloha.RAPPOR(k=2, **BUDGETS),
    loloha.GRR(k=2, eps=1.0),
]
Values = tuple[int, ...]
Sent = tuple[tuple[int, tuple[int, ...]], ...]
EVERY = 2


def law_of_user(protocol: Any, values: Values) -> dict[Sent, Fraction]:
    """Law of what a user adds to n and counts of each round, with the residue it draws."""

    def run(rng: Any) -> Sent:
        client, sent = Client(protocol, rng=rng, every=EVERY), []
        for t, v in enumerate(values):
            tally = protocol.tally()
            if client.is_due(t):
                tally.add(client.report(v, round=t))
            sent.append((tally.n, tuple(int(count) for count in tally.counts)))
        return tuple(sent)

    return exact_distribution(run)


def law_of_all(protocol: Any, users: list[Values]) -> dict[Sent, Fraction]:
    """Law of n and counts of all rounds."""
    laws = {values: law_of_user(protocol, values) for values in set(users)}
    law = laws[users[0]]
    for values in users[1:]:
        grown: dict[Any, Fraction] = defaultdict(Fraction)
        for (before, p), (one, q) in product(law.items(), laws[values].items()):
            both = tuple(
                (n + m, tuple(map(sum, zip(counts, more, strict=True))))
                for (n, counts), (m, more) in zip(before, one, strict=True)
            )
            grown[both] += p * q
        law = grown
    return law


def tally_of(protocol: Any, one: tuple[int, tuple[int, ...]]) -> Any:
    tally = protocol.tally()
    tally.n, tally.counts = one[0], np.array(one[1], dtype=np.int64)
    return tally


def moments(law: dict[Sent, Fraction], estimated: Any) -> dict[Values, tuple[Any, Any]]:
    """Mean and variance of an estimate, given the reports of each round."""
    sums: dict[Values, Any] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for sent, chance in law.items():
        sizes = tuple(n for n, _ in sent)
        if sum(sizes):
            found, p = estimated(sent), float(chance)
            for place, term in enumerate((p, p * found, p * found**2)):
                sums[sizes][place] = sums[sizes][place] + term
    return {sizes: (one / p, two / p - (one / p) ** 2) for sizes, (p, one, two) in sums.items()}


def share(users: list[Values], t: int) -> Any:
    return np.array([sum(values[t] == v for values in users) for v in range(2)]) / len(users)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda one: one.name)
def test_a_panel_speaks_for_all_users(protocol: Any) -> None:
    users = [(0,), (0,), (1,)]
    f, n = share(users, 0), len(users)
    law = law_of_all(protocol, users)
    given = moments(law, lambda sent: tally_of(protocol, sent[0]).estimate().frequencies)
    assert sorted(given) == [(1,), (2,), (3,)]
    for (reports,), (found, spread) in given.items():
        assert found == pytest.approx(f, abs=1e-12)
        sampled = f * (1 - f) * (1 / reports - 1 / n) * n / (n - 1)
        assert spread == pytest.approx(variance(protocol, reports, f) + sampled, rel=1e-9)
        assert mean_variance(protocol, [reports], f, population=n) == pytest.approx(spread)
    tally = tally_of(protocol, (2, next(c for ((m, c),) in law if m == 2)))
    alone, of_all = tally.estimate(), tally.estimate(population=n)
    clipped = np.clip(alone.frequencies, 0, 1)
    assert of_all.frequencies == pytest.approx(alone.frequencies)
    assert of_all.standard_errors**2 - alone.standard_errors**2 == pytest.approx(
        clipped * (1 - clipped) * (1 / 2 - 1 / 3) * 3 / 2
    )


def test_intervals_of_all_users_are_those_of_a_sample() -> None:
    tally = loloha.GRR(k=2, eps=3.0).tally()
    tally.update(None, np.repeat([0, 1], 50_000))
    wide, narrow = (tally.estimate(population).interval() for population in (3_000_000, None))
    ratio = (wide[1] - wide[0]) / (narrow[1] - narrow[0])
    once, noise = variance(tally.protocol, 10**5, 0.5), 0.25 * (1 / 10**5 - 1 / 3_000_000)
    assert ratio == pytest.approx(math.sqrt(1 + noise / once), rel=1e-2)
    with pytest.raises(ParameterError, match="population must be"):
        tally.estimate(99_999)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda one: one.name)
def test_a_window_holds_each_user_once_and_is_as_good_as_one_round_of_all(protocol: Any) -> None:
    users = [(0, 0), (0, 0), (1, 1)]
    f = share(users, 0)

    def last(sent: Sent) -> Any:
        return rolling([tally_of(protocol, one) for one in sent], EVERY)[1]

    for sizes, (found, spread) in moments(
        law_of_all(protocol, users), lambda sent: last(sent).frequencies
    ).items():
        assert found == pytest.approx(f, abs=1e-12)
        # No more than one round of all of them, whatever the panels' sizes.
        assert spread == pytest.approx(variance(protocol, 3, f), rel=1e-9)
        reports = {t: n for t, n in enumerate(sizes) if n}
        assert mean_variance(protocol, reports, f, every=EVERY) == pytest.approx(spread)
        of_all = mean_variance(protocol, reports, f, every=EVERY, population=3)
        assert (of_all >= spread - 1e-12).all()
        if protocol.longitudinal and len(reports) > 1:
            assert (mean_variance(protocol, reports, f) > spread * 1.01).all()
    sent = next(iter(law_of_all(protocol, users)))
    assert last(sent).n == 3
    tallies = [tally_of(protocol, one) for one in sent]
    assert last(sent).frequencies == pytest.approx(mean(tallies, every=EVERY).frequencies)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda one: one.name)
def test_what_is_added_for_sampling_is_right_where_values_are_drawn_anew(protocol: Any) -> None:
    held = (0, 0, 1)
    law: dict[Sent, Fraction] = defaultdict(Fraction)
    for then in permutations(held):
        for sent, p in law_of_all(protocol, list(zip(held, then, strict=True))).items():
            law[sent] += p / math.factorial(len(held))
    f = np.array([2 / 3, 1 / 3])
    for sizes, (found, spread) in moments(
        law, lambda sent: mean([tally_of(protocol, one) for one in sent]).frequencies
    ).items():
        reports = {t: n for t, n in enumerate(sizes) if n}
        assert found == pytest.approx(f, abs=1e-12)
        assert mean_variance(protocol, reports, f, every=EVERY, population=3) == pytest.approx(
            spread, rel=1e-9
        )


@pytest.mark.parametrize("protocol", PROTOCOLS[:2], ids=lambda one: one.name)
def test_users_return_with_their_memo_after_a_window(protocol: Any) -> None:
    users = [(0,) * 4, (1,) * 4]
    f = share(users, 0)
    given = moments(
        law_of_all(protocol, users),
        lambda sent: mean([tally_of(protocol, one) for one in sent]).frequencies,
    )
    for sizes, (found, spread) in given.items():
        reports = {t: n for t, n in enumerate(sizes) if n}
        assert found == pytest.approx(f, abs=1e-12)
        assert mean_variance(protocol, reports, f, every=EVERY) == pytest.approx(spread, rel=1e-9)
    both = given[(1, 1, 1, 1)][1]
    once, kept = variance(protocol, 2, f), temporal_covariance(protocol, 2, f)
    assert both == pytest.approx((once + kept) / 2, rel=1e-9)


def test_windows_slide_and_leave_out_what_is_not_there() -> None:
    protocol, rng = loloha.LGRR(k=3, **BUDGETS), np.random.default_rng(5)
    tallies: dict[int, Any] = {}
    for t, n in ((4, 40), (5, 0), (6, 60), (9, 20), (15, 10)):
        tallies[t] = protocol.tally()
        tallies[t].update(None, rng.integers(3, size=n))
    found = rolling({**tallies, 10: None, 20: None}, 3)
    windows = {4: [4], 5: [4], 6: [4, 6], 9: [9], 10: [9], 15: [15]}
    assert sorted(found) == sorted(windows)
    for t, rounds in windows.items():
        same = mean({one: tallies[one] for one in rounds}, every=3)
        assert found[t].n == same.n == sum(tallies[one].n for one in rounds)
        assert found[t].frequencies == pytest.approx(same.frequencies)
        assert found[t].standard_errors == pytest.approx(same.standard_errors)
    assert rolling(tallies, 1)[6].standard_errors == pytest.approx(
        tallies[6].estimate().standard_errors
    )
    with pytest.raises(ParameterError, match="every"):
        rolling(tallies, 0)
    with pytest.raises(ParameterError, match="population must be"):
        rolling(tallies, 3, population=59)
    with pytest.raises(MergeError, match="one protocol"):
        rolling([tallies[4], of_other_rules()], 3)


def of_other_rules() -> Any:
    tally = loloha.LGRR(k=3, eps_inf=2.0, eps_1=0.5).tally()
    tally.update(None, np.array([1]))
    return tally


def test_uneven_panels_are_seen() -> None:
    assert evenness({0: 100}, 1) is None
    assert evenness({0: 100, 1: 90}, 3) is None
    assert evenness({0: 4, 1: 4, 2: 4}, 3) is None
    even = evenness({0: 1, 1: 100, 2: 90, 3: 110}, 3)
    assert even is not None
    assert (even.first, even.last, even.freedom, even.chi_square) == (1, 3, 2, 2.0)
    # Of two degrees of freedom the tail is exponential.
    assert even.p_value == pytest.approx(math.exp(-1))
    assert even.even
    assert "as even as" in str(even)
    skewed = evenness({0: 300, 1: 100, 2: 100, 3: 100}, 4)
    assert skewed is not None
    assert not skewed.even
    assert "uneven" in str(skewed)
    # A round that nobody reported in counts.
    assert not evenness({0: 300, 1: 300}, 4, last=3).even  # type: ignore[union-attr]


def test_the_tail_is_that_of_sums_of_squares() -> None:
    # Of one degree of freedom two tails of the normal law; of all, halves of the whole.
    one = evenness({0: 108, 1: 92}, 2)
    assert one is not None
    assert one.p_value == pytest.approx(math.erfc(math.sqrt(one.chi_square / 2)))
    rng = np.random.default_rng(3)
    sizes = rng.multinomial(30_000, np.full(30, 1 / 30), size=400)
    tails = [evenness(dict(enumerate(row.tolist())), 30).p_value for row in sizes]  # type: ignore[union-attr]
    assert abs(np.mean(tails) - 0.5) < 6 * math.sqrt(1 / 12 / 400)


def test_the_rounds_of_a_table_have_the_windows_that_end_with_them() -> None:
    assert [panel.panel_population(10, every) for every in (1, 2, 3)] == [None, 20, 30]
    protocol = loloha.GRR(k=2, eps=1.0)
    rounds = {}
    for t, counts in enumerate([(7, 3), (4, 4), (9, 6), (0, 0)]):
        rounds[t] = protocol.tally()
        rounds[t].counts[:], rounds[t].n = counts, sum(counts)
    assert panel.panel_windows(rounds, 1) == {}
    means = panel.panel_windows(rounds, 2)
    # Of the largest round there may be 15 users in each of two panels.
    assert {t: (one.n, one.population) for t, one in means.items()} == {
        0: (10, 30), 1: (18, 30), 2: (23, 30), 3: (15, 30)
    }  # fmt: skip
    assert panel.window_columns({}, 0.9, rounds=[1]) == {}
    columns = panel.window_columns(means, 0.9, rounds=[4, 2], bins=[1])
    assert list(columns) == list(panel.WINDOW)
    table = means[2].table(0.9, bins=[1])
    for name, number in zip(panel.WINDOW, panel.NUMBERS, strict=True):
        missing, there = columns[name]
        assert np.isnan(missing).tolist() == [True]
        assert there.tolist() == getattr(table, number)[0].tolist()


def test_nothing_uneven_has_a_tail_of_one() -> None:
    assert [panel._tail(0.0, freedom) for freedom in (1, 2, 3)] == [1.0] * 3
