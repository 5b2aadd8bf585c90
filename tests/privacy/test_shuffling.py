"""Shuffled reports, held against every multiset that the shipped devices can send."""

import itertools
import json
import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import loloha
from loloha import distribution, privacy
from loloha.cli import main
from loloha.errors import ParameterError
from loloha.privacy import blanket
from loloha.privacy.blanket import Classes, hidden
from loloha.privacy.lattice import balance, split
from loloha.privacy.shuffled_bits import Others, _exchanged, _Part, _rounded, composed
from loloha.privacy.shuffling import _divergences, _first_report, _of_bits
from loloha.protocols import Protocol

BUDGETS: Any = {"eps_inf": 2.0, "eps_1": 1.0}


def sent(protocol: Protocol, value: int) -> dict[Any, Fraction]:
    """Exact law of the key and the answer of a first report."""

    def one(rng: Any) -> Any:
        report = protocol.client(rng=rng).report(value, round=0)
        return str(report.key), report.y

    return distribution.exact_distribution(one)


def multisets(laws: list[dict[Any, Fraction]]) -> dict[Any, float]:
    """Exact law of what arrives shuffled."""
    total: dict[Any, float] = {(): 1.0}
    for one in laws:
        grown: dict[Any, float] = defaultdict(float)
        for (seen, p), (y, q) in itertools.product(total.items(), one.items()):
            grown[tuple(sorted((*seen, y)))] += p * float(q)
        total = grown
    return total


def told_apart(protocol: Protocol, values: tuple[int, int], others: Any, eps: float) -> float:
    """Hockey-stick divergence of the worse direction, for the worst key of the user."""
    both, factor, worst = [sent(protocol, v) for v in values], math.exp(eps), 0.0
    around = multisets([sent(protocol, v) for v in others])
    for key in {key for key, _ in both[0]}:
        laws = []
        for one in both:
            own = {y: p for y, p in one.items() if y[0] == key}
            laws.append(multisets([{y: p / sum(own.values()) for y, p in own.items()}]))
            known: dict[Any, float] = defaultdict(float)
            for ((y,), p), (seen, q) in itertools.product(laws[-1].items(), around.items()):
                known[tuple(sorted((*seen, y)))] += p * q
            laws[-1] = known
        outcomes = laws[0].keys() | laws[1].keys()
        for a, b in (laws, laws[::-1]):
            worst = max(
                worst, sum(max(0.0, a.get(y, 0.0) - factor * b.get(y, 0.0)) for y in outcomes)
            )
    return worst


CASES = [
    (loloha.GRR(k=3, eps=1.0), 6),
    (loloha.GRR(k=2, eps=1.0), 6),
    (loloha.GRR(k=2, eps=3.0), 5),
    (loloha.GRR(k=4, eps=0.5), 4),
    (loloha.LGRR(k=4, **BUDGETS), 4),
    (loloha.LGRR(k=3, **BUDGETS), 5),
    (loloha.SUE(k=3, eps=1.0), 3),
    (loloha.SUE(k=2, eps=1.0), 5),
    (loloha.RAPPOR(k=3, **BUDGETS), 3),
    (loloha.OUE(k=3, eps=1.0), 4),
    (loloha.OUE(k=4, eps=2.0), 2),
    (loloha.LOSUE(k=3, **BUDGETS), 3),
    (loloha.BLH(k=3, eps=1.0), 4),
    (loloha.BiLOLOHA(k=3, **BUDGETS), 4),
    (loloha.OLH(k=3, eps=1.0), 3),
    (loloha.DBitFlipPM(k=3, b=3, d=3, eps_inf=2.0), 3),
    (loloha.DBitFlipPM(k=3, b=3, d=2, eps_inf=2.0), 3),
    (loloha.DBitFlipPM(k=3, b=3, d=1, eps_inf=2.0), 4),
]


MORE = [
    (loloha.GRR(k=4, eps=0.5), 6),
    (loloha.GRR(k=3, eps=2.5), 6),
    (loloha.LGRR(k=4, **BUDGETS), 5),
    (loloha.OUE(k=4, eps=2.0), 3),
    (loloha.SUE(k=3, eps=3.0), 4),
    (loloha.BLH(k=4, eps=2.0), 4),
    (loloha.BiLOLOHA(k=3, **BUDGETS), 5),
    (loloha.OLOLOHA(k=4, eps_inf=3.0, eps_1=1.5), 3),
    (loloha.DBitFlipPM(k=4, b=4, d=3, eps_inf=1.0), 2),
    (loloha.DBitFlipPM(k=4, b=4, d=3, eps_inf=1.0), 3),
]


@pytest.mark.parametrize(
    ("protocol", "n"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.long) for case in MORE)],
    ids=str,
)
def test_no_data_set_tells_more_than_the_bound(protocol: Protocol, n: int) -> None:
    """Every pair of values of one user, every data set of the others, every multiset of reports."""
    answers, keys = _first_report(protocol), protocol.encoding.key_count
    for eps in (0.0, 0.2, 0.6):
        bounds, attained = (
            max(one(eps) for one in some) for some in _divergences(answers, n, keys)
        )
        worst = 0.0
        for others in itertools.combinations_with_replacement(range(protocol.k), n - 1):
            for values in itertools.combinations(range(protocol.k), 2):
                worst = max(worst, told_apart(protocol, values, others, eps))
        assert attained <= worst + 1e-12
        assert worst <= bounds + 1e-12
        # Of bits there are two bounds, of which the lower was taken: each holds by itself.
        for bound in (answers.hidden, answers.others):
            alone = [_one_bound(one, n, keys)(eps) for one in bound or ()]
            assert not alone or worst <= max(alone) + 1e-12


def _one_bound(one: Any, n: int, keys: int) -> Any:
    if isinstance(one, Others):
        return composed(one, n, keys, lambda eps: 1.0)
    return hidden(one, n, keys)


@pytest.mark.parametrize(
    ("n", "share", "left"), [(60, 1.0, 30.0), (1000, 1.0, 0.1), (1000, 0.5, 0.2)]
)
@pytest.mark.parametrize("protocol", [loloha.SUE(k=4, eps=1.0), loloha.OUE(k=4, eps=2.0)], ids=str)
def test_who_holds_the_users_values_adds_no_more_than_is_allowed_for(
    protocol: Protocol, n: int, share: float, left: float
) -> None:
    """Sums of draws of all kinds, in every proportion; of 60 some do pass those of one kind."""
    p, q = float(protocol.first_channel.p), float(protocol.first_channel.q)
    rows = list(itertools.product((True, False), repeat=3))
    base = np.array([math.prod(q if bit else 1 - q for bit in row) for row in rows])
    one, two, third = (
        np.array([p / q if row[v] else (1 - p) / (1 - q) for row in rows]) for v in range(3)
    )
    grown, plain = math.exp(3 / math.sqrt(n)), 0.1
    apart, kept = one - grown * two, 1 - plain * float(base @ (1 / third))
    alike = _Part(10 * apart / third, share * plain * base)
    kinds = [_Part(10 * apart / third, share * (third - plain) * base)] + [
        _Part(10 * kept * apart / (own - plain), share * (own - plain) * base) for own in (one, two)
    ]
    size = 1 << 13
    laws = []
    for kind in kinds:
        law = np.zeros(size)
        for part in (kind, alike):
            np.add.at(law, *split(*part))
        law[0] += 1 - law.sum()
        laws.append(np.fft.fft(law))
    places = np.fft.fftfreq(size, 1 / size)

    def told(*counts: int) -> float:
        law = np.fft.ifft(math.prod(one**m for one, m in zip(laws, counts, strict=True))).real
        return float(law @ np.maximum(places, 0.0)) / n

    split_third = split(*(np.concatenate(pair) for pair in zip(kinds[0], alike, strict=True)))
    lost = _exchanged(alike, kinds, n, share, balance(*split_third))
    every = range(0, n + 1, n // 10)
    most = max(told(n - i - j, i, j) for i, j in itertools.product(every, every) if i + j <= n)
    assert most <= told(n, 0, 0) + lost + 1e-12
    assert lost <= left * told(n, 0, 0)


@pytest.mark.parametrize("n", [1, 2, 10, 1000, 50_000])
@pytest.mark.parametrize("share", [0.0, 2.0, 5.0])
def test_the_lattice_is_exact_to_a_few_percent_and_never_below(n: int, share: float) -> None:
    """Against the law of the number of hidden answers, and binomial tails, for two symbols."""
    p, q, eps = math.e / (1 + math.e), 1 / (1 + math.e), min(0.9, 3 * share / math.sqrt(n))
    u, v = (p - math.exp(eps) * q) / q, (q - math.exp(eps) * p) / q
    m = np.arange(n + 1)
    ways, least = binom.pmf(m, n, 2 * q), np.floor(-m * v / (u - v))
    above = binom.sf(least - 1, np.maximum(m - 1, 0), 0.5), binom.sf(least, m, 0.5)
    exact = ways @ ((u - v) * m / 2 * above[0] + m * v * above[1]) / n
    found = hidden(Classes((p, q), (q, p), (q, q)), n, 1)(eps)
    assert exact * (1 - 1e-9) <= found <= 1.1 * exact


NEAR = [
    (loloha.GRR(k=2, eps=1.0), 50_000, 1.01),
    (loloha.BiLOLOHA(k=96, **BUDGETS), 20_000, 1.02),
    (loloha.SUE(k=96, eps=0.2), 1000, 1.005),
]
NEAR_TOO = [
    (loloha.LGRR(k=96, **BUDGETS), 50_000, 1.001),
    (loloha.GRR(k=96, eps=1.0), 50_000, 1.001),
    (loloha.BiLOLOHA(k=96, **BUDGETS), 50_000, 1.02),
    (loloha.DBitFlipPM(k=96, b=8, d=8, eps_inf=1.0), 50_000, 1.002),
    (loloha.OLOLOHA(k=96, **BUDGETS), 50_000, 1.02),
    (loloha.OLH(k=96, eps=1.0), 50_000, 1.02),
    (loloha.RAPPOR(k=96, **BUDGETS), 50_000, 1.002),
    (loloha.RAPPOR(k=96, **BUDGETS), 1000, 1.003),
    (loloha.LOSUE(k=96, **BUDGETS), 50_000, 1.002),
    (loloha.OUE(k=96, eps=2.0), 300, 1.02),
    (loloha.DBitFlipPM(k=96, b=8, d=5, eps_inf=1.0), 50_000, 1.01),
]


@pytest.mark.parametrize(("protocol", "n", "quotient"), [
    *NEAR, *(pytest.param(*case, marks=pytest.mark.long) for case in NEAR_TOO)
], ids=str)  # fmt: skip
def test_what_is_attained_is_this_near(protocol: Protocol, n: int, quotient: float) -> None:
    """Within 2 %, of the first report and, for symbols, of a round."""
    found = privacy.shuffled(protocol, n)
    assert found.first.lower <= found.first.eps <= quotient * found.first.lower
    if protocol.g is not None:
        assert found.round.lower <= found.round.eps <= quotient * found.round.lower


def test_the_numerical_bound_is_below_the_closed_form_in_its_range() -> None:
    for n in (1000, 4000):
        found = privacy.shuffled(loloha.GRR(k=4, eps=1.0), n).first
        assert found.closed is not None
        assert found.lower <= found.eps < found.closed
    assert privacy.shuffled(loloha.GRR(k=4, eps=1.0), 50).first.closed is None


def test_more_users_hide_more_and_more_delta_allows_less() -> None:
    protocol, last = loloha.GRR(k=4, eps=1.0), 1.0
    for n in (1, 10, 100, 1000):
        eps = privacy.shuffled(protocol, n).first.eps
        assert eps <= last + 1e-9
        last = eps
    assert privacy.shuffled(protocol, 1).first.eps == pytest.approx(1.0, abs=1e-5)
    assert (
        privacy.shuffled(protocol, 100, 1e-3).first.eps < privacy.shuffled(protocol, 100).first.eps
    )


def test_keys_leave_only_those_who_share_them() -> None:
    shared = privacy.shuffled(loloha.BiLOLOHA(k=96, **BUDGETS), 20_000)
    assert shared.group == pytest.approx(1 + 19_999 / 127)
    assert shared.first.eps < shared.first.local / 2
    # As one group of that size, with room for the spread of sizes.
    alone = privacy.shuffled(loloha.GRR(k=2, eps=1.0), round(shared.group)).first
    assert alone.eps < shared.first.eps < 1.6 * alone.eps
    named = privacy.shuffled(loloha.OLOLOHA(k=96, hash="affine", **BUDGETS), 20_000)
    assert named.first.eps == pytest.approx(1.0, abs=1e-5)
    assert "Not covered: linking over rounds" in named.text
    assert "users, 1 to a key" in named.text
    assert "to a key" not in privacy.shuffled(loloha.GRR(k=4, eps=1.0), 100).text
    assert "shuffler itself must be trusted" in " ".join(named.text.split())


def test_the_statement_is_json_and_on_the_command_line(capsys: Any) -> None:
    line = ["explain", "l-grr", "--k", "8", "--eps-inf", "2", "--eps-1", "1", "--shuffled", "500"]
    assert main(line) == 0
    assert "Shuffled among 500 users" in capsys.readouterr().out
    assert main([*line, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["shuffled"]
    found = privacy.shuffled(loloha.LGRR(k=8, **BUDGETS), 500)
    assert shown["first"]["eps"] == found.first.eps
    assert shown["round"]["local"] == found.round.local


@pytest.mark.parametrize(("n", "delta"), [(0, 0.1), (1.5, 0.1), (5, 0.0), (5, 0.5), (5, math.nan)])
def test_numbers_out_of_range_are_refused(n: Any, delta: Any) -> None:
    with pytest.raises(ParameterError):
        privacy.shuffled(loloha.GRR(k=4, eps=1.0), n, delta)


@pytest.mark.parametrize("ask", [
    lambda protocol: privacy.shuffled(protocol, 5),
    lambda protocol: privacy.worst_loss(protocol, 5, 1),
    lambda protocol: privacy.loss_between(protocol, [0], [1]),
    privacy.eps_2,
    lambda protocol: loloha.variance(protocol, 5),
])  # fmt: skip
def test_what_is_no_protocol_is_refused(ask: Any) -> None:
    with pytest.raises(ParameterError, match=r"must be a loloha\.Protocol"):
        ask(None)


@pytest.mark.parametrize("sign", [-1, 1])
def test_bounds_include_rounding(sign: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of counts that are wrong by up to an error, the bound still covers what is true."""
    p, q, n = 0.7, 0.3, 6
    true = [blanket.of_two_symbols(p, q, n, 1)(eps) for eps in (0.0, 0.2, 0.6)]
    sums = blanket._sums_of_two
    error = 0.01

    def wrong(*arguments: Any) -> Any:
        law, known = sums(*arguments)
        return np.maximum(law + sign * error, 0.0), known + error

    monkeypatch.setattr(blanket, "_sums_of_two", wrong)
    moved = [blanket.of_two_symbols(p, q, n, 1)(eps) for eps in (0.0, 0.2, 0.6)]
    assert all(one <= other for one, other in zip(true, moved, strict=True))
    # Either way by the error at each of the n + 1 counts, and not more than both.
    assert all(
        0 < other - one <= (p + 2 * q) * 2 * error * (n + 1)
        for one, other in zip(true, moved, strict=True)
    )


def test_an_excess_is_off_by_no_more_than_is_allowed_for() -> None:
    rng = np.random.default_rng(3)
    part = _Part(rng.normal(scale=2, size=60), rng.dirichlet(np.ones(60)))
    places = np.arange(-6, 7)
    allowed = _rounded(part, places)
    for place, found, room in zip(places.tolist(), part.stop_loss(places), allowed, strict=True):
        terms = zip(map(Fraction, part.values), map(Fraction, part.chances), strict=True)
        exact = sum(max(value - place, 0) * chance for value, chance in terms)
        assert abs(Fraction(found) - exact) <= room, place
        # What is allowed for takes nothing from the bound.
        assert room <= 1e-12 * part.stop_loss(np.array([place - 1]))[0]


def test_a_nominal_loss_is_shown_as_given_and_no_infinite_one() -> None:
    for protocol in (
        loloha.BiLOLOHA(k=2, eps_inf=0.3, eps_1=0.1), loloha.OLOLOHA(k=5, eps_inf=5.0, eps_1=4.9),
        loloha.GRR(k=7, eps=0.7), loloha.RAPPOR(k=4, eps_inf=1.1, eps_1=0.3),
    ):  # fmt: skip
        assert privacy.shuffled(protocol, 50).first.local == protocol.asked_first
    boundless = privacy.shuffled(loloha.OLOLOHA(k=2, eps_inf=700.0, eps_1=350.0), 50)
    assert "Any one round: no gain is proved, nothing bounds it." in boundless.text
    assert "inf" not in boundless.text


@pytest.mark.parametrize("nowhere", [False, True])
@pytest.mark.parametrize("bits", [2, 3, 4, 6])
def test_classes_of_bits_hold_what_all_their_answers_are_sent_with(
    bits: int, nowhere: bool
) -> None:
    """By all 2^bits answers: of each value, and of the one that sends an answer least often."""
    p, q = 0.7, 0.4
    shown: dict[tuple[bool, ...], list[float]] = {}
    for y in itertools.product((True, False), repeat=bits):
        base = math.prod(q if bit else 1 - q for bit in y)
        sent = [base * (p / q if bit else (1 - p) / (1 - q)) for bit in y] + [base] * nowhere
        of_class = shown.setdefault((*y[:3], all(y)), [0.0] * 4)
        for place, chance in enumerate((sent[0], sent[1], base, min(sent))):
            of_class[place] += chance
    one, two, base, least = (list(part) for part in zip(*sorted(shown.values()), strict=True))
    found = _of_bits(p, q, bits, nowhere=nowhere)
    assert found.local == pytest.approx(math.log(p / q * (1 - q) / (1 - p)))
    pairs = [(one, two), (one, base), (base, one)] if nowhere else [(one, two)]
    assert len(found.hidden) == len(pairs)
    for classes, pair in zip(found.hidden, pairs, strict=True):
        listed = sorted(zip(*classes, strict=True))
        assert np.array(listed) == pytest.approx(np.array(sorted(zip(*pair, least, strict=True))))
    for classes in [*found.hidden, *found.attained]:
        assert sum(classes.one) == pytest.approx(sum(classes.two)) == pytest.approx(1.0)
    for classes in found.attained:
        assert sum(classes.others) == pytest.approx(1.0)
    assert sum(found.hidden[0].others) < 1
    assert (found.others is not None) == (bits > 2)
