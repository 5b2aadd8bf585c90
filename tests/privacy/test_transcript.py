"""Bounds on whole histories, held against every transcript of the shipped client."""

import csv
import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import loloha
from loloha import distribution, privacy
from loloha.errors import DomainError, ParameterError
from loloha.privacy.labelling import Pairs, _partitions, _renamed, assign, labellings
from loloha.protocols import Protocol

BI = loloha.BiLOLOHA(k=3, eps_inf=2.0, eps_1=1.0)


def transcripts(protocol: Protocol, history: tuple[int, ...], key: Any = None) -> Any:
    """Exact law of all that a client sends over a history of values."""

    def run(rng: Any) -> tuple[Any, ...]:
        client = protocol.client(key=key, rng=rng)
        reports = [client.report(v, round=t) for t, v in enumerate(history)]
        return tuple((report.key, report.y) for report in reports)

    return distribution.exact_distribution(run)


# -- one round


def test_one_round_of_the_table_of_the_specification() -> None:
    budgets: Any = {"eps_inf": 2.0, "eps_1": 1.0}
    shown = {
        loloha.BiLOLOHA(k=96, **budgets): 1.41,
        loloha.OLOLOHA(k=96, g=3, **budgets): 1.49,
        loloha.OLOLOHA(k=96, g=4, **budgets): 1.57,
        loloha.LGRR(k=96, **budgets): 3.66,
        loloha.RAPPOR(k=96, **budgets): 113,
        loloha.LOSUE(k=96, **budgets): 135,
    }
    for protocol, eps in shown.items():
        assert privacy.eps_2(protocol) == pytest.approx(eps, rel=5e-3), protocol
    assert math.isinf(privacy.eps_2(loloha.DBitFlipPM(k=96, eps_inf=2.0)))
    assert privacy.eps_2(loloha.OLH(k=96, eps=1.0)) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("protocol", [
    BI, loloha.LGRR(k=3, eps_inf=2.0, eps_1=1.0), loloha.RAPPOR(k=3, eps_inf=2.0, eps_1=1.0),
    loloha.LOUE(k=3, eps_inf=3.0, eps_1=1.0), loloha.LSOUE(k=3, eps_inf=3.0, eps_1=1.0),
], ids=str)  # fmt: skip
def test_eps_2_is_the_worst_of_the_second_round_of_the_device(protocol: Protocol) -> None:
    memos = {protocol.permanent(_Least(kept), x) for x in range(2) for kept in range(2)}
    if protocol.g is None:
        memos = {bytes([bits]) for bits in range(1 << protocol.k)}
    laws = [
        distribution.exact_distribution(lambda rng, memo=memo: protocol.instant(rng, memo))
        for memo in memos
    ]
    worst = max(distribution.loss_between(one, other) for one in laws for other in laws)
    assert privacy.eps_2(protocol) == pytest.approx(worst, rel=1e-12)


class _Least(loloha.rng.Rng):
    """Keeps or lies as told; the first of what is equally likely."""

    def __init__(self, kept: int) -> None:
        self.kept = kept

    def bernoulli(self, threshold: int) -> bool:
        return bool(self.kept)

    def below(self, n: int) -> int:
        return 0


def test_eps_2_does_not_grow_with_the_domain_where_values_are_hashed() -> None:
    for k in (4, 1000, 1 << 20):
        assert privacy.eps_2(loloha.BiLOLOHA(k=k, eps_inf=2.0, eps_1=1.0)) < 1.408
    wide = [privacy.eps_2(loloha.RAPPOR(k=k, eps_inf=2.0, eps_1=1.0)) for k in (10, 20)]
    assert wide[1] == pytest.approx(2 * wide[0])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.data())
def test_rounds_that_differ_cost_eps_2_each(tau: int, data: Any) -> None:
    histories = st.lists(st.integers(0, 2), min_size=tau, max_size=tau)
    one, other = data.draw(histories), data.draw(histories)
    differing = sum(a != b for a, b in zip(one, other, strict=True))
    for protocol in (BI, loloha.RAPPOR(k=3, eps_inf=1.0, eps_1=0.5)):
        found = privacy.loss_between(protocol, one, other)
        assert found.exact is not None
        assert found.exact <= found.bound * (1 + 1e-12)
        assert found.bound <= privacy.window_loss(protocol, differing) * (1 + 1e-12)


def test_the_loss_of_one_round_rises_to_eps_2() -> None:
    protocol = loloha.LGRR(k=2, eps_inf=1.0, eps_1=0.5)
    worst = []
    for tau in (4, 6, 8):
        pairs = itertools.product(itertools.product((0, 1), repeat=tau - 1), range(tau))
        worst.append(max(
            privacy.loss_between(protocol, [*h[:t], 0, *h[t:]], [*h[:t], 1, *h[t:]]).exact or 0
            for h, t in pairs
        ))  # fmt: skip
    assert worst[:2] == pytest.approx([1.0344, 1.1332], abs=5e-5)
    assert worst[1] < worst[2] < privacy.eps_2(protocol) == pytest.approx(1.18027, abs=5e-6)


# -- two histories


def test_histories_of_the_reference(reference: Path) -> None:
    with (reference / "transcript_loss.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 100
    for row in rows:
        g, eps_inf, eps_1 = int(row["g"]), float(row["eps_inf"]), float(row["eps_1"])
        protocol = loloha.LGRR(k=g, eps_inf=eps_inf, eps_1=eps_1)
        history, other = ([int(x) for x in row[name]] for name in ("history", "other"))
        found = privacy.loss_between(protocol, history, other)
        assert found.exact == pytest.approx(float(row["exact_loss"]), abs=1e-10), row
        assert privacy.eps_2(protocol) == pytest.approx(float(row["eps_2"]), abs=1e-10), row
        # The reference takes one of the two directions, we the better one.
        there, back = (assigned(protocol, *pair) for pair in ((history, other), (other, history)))
        assert there == pytest.approx(float(row["bound"]), abs=1e-10), row
        assert found.bound == pytest.approx(min(there, back), abs=1e-10), row


def assigned(protocol: Protocol, history: Any, other: Any) -> float:
    """The bound of MATH section 11 from its definition: the least over all permutations."""
    g, once, least = int(protocol.g or 0), privacy.eps_2(protocol), math.inf
    for pi in itertools.permutations(range(g)):
        back = [pi.index(c) for c in other]
        cost = once * sum(a != b for a, b in zip(history, back, strict=True))
        for x in range(g):
            if pi[x] != x and x in back:
                cost += privacy.growth(protocol, back.count(x))
        least = min(least, cost)
    return least


EXACT = [
    (BI, 3),
    (loloha.OLOLOHA(k=4, g=3, hash="affine", eps_inf=1.0, eps_1=0.5), 2),
    (loloha.BiLOLOHA(k=3, memo="joint", eps_inf=2.0, eps_1=1.0), 3),
    (loloha.OLOLOHA(k=3, g=3, hash="prime", memo="joint", m0=0.1, eps_inf=2.0, eps_1=1.0), 2),
    pytest.param(loloha.RAPPOR(k=3, eps_inf=2.0, eps_1=1.0), 2, marks=pytest.mark.long),
    (loloha.LOUE(k=2, eps_inf=3.0, eps_1=1.0), 3),
    (loloha.DBitFlipPM(k=3, eps_inf=1.0), 2),
    (loloha.DBitFlipPM(k=4, b=4, d=2, eps_inf=1.0), 2),
    pytest.param(loloha.DBitFlipPM(k=4, b=3, d=1, eps_inf=1.0), 3, marks=pytest.mark.long),
    (loloha.OLH(k=3, eps=0.5), 2),
    (loloha.SUE(k=3, eps=0.5), 2),
]


@pytest.mark.parametrize(("protocol", "tau"), EXACT, ids=str)
def test_every_pair_of_histories_of_the_shipped_client(protocol: Protocol, tau: int) -> None:
    key = (5 << 31) | 1 if getattr(protocol, "hash", "") == "affine" else None
    histories = list(itertools.product(range(protocol.k), repeat=tau))
    laws = {history: transcripts(protocol, history, key) for history in histories}
    for one, other in itertools.combinations(histories, 2):
        worst = distribution.loss_between(laws[one], laws[other])
        found = privacy.loss_between(protocol, one, other, key=key)
        assert found.exact == pytest.approx(worst, rel=1e-11, abs=1e-12), (one, other)
        assert found.bound >= worst - 1e-12 or math.isinf(worst), (one, other)


def test_values_of_one_cell_are_one_history() -> None:
    key = 3
    cells = [BI.memo_index(key, v) for v in range(3)]
    same = next((a, b) for a, b in itertools.combinations(range(3), 2) if cells[a] == cells[b])
    found = privacy.loss_between(BI, [same[0]] * 5, [same[1]] * 5, key=key)
    assert found == (0.0, 0.0)
    assert privacy.loss_between(BI, [same[0]] * 5, [same[1]] * 5).bound > 0


def test_without_a_key_the_worst_of_all_keys_counts() -> None:
    rng = np.random.default_rng(1)
    linear = loloha.OLOLOHA(k=9, g=3, eps_inf=2.0, eps_1=1.0)
    prime = loloha.OLOLOHA(k=5, g=3, hash="prime", eps_inf=2.0, eps_1=1.0)
    cases = itertools.product(((linear, range(1, 9)), (prime, range(20))), [4, 5, 6, 6, 6, 200])
    for (protocol, keys), rounds in cases:
        one, other = rng.integers(0, protocol.k, size=(2, rounds))
        under = [privacy.loss_between(protocol, one, other, key=key) for key in keys]
        found = privacy.loss_between(protocol, one, other)
        assert found.bound == pytest.approx(max(loss.bound for loss in under))
        if rounds < 200:
            assert found.exact == pytest.approx(max(loss.exact or 0 for loss in under))


def test_few_values_under_many_keys_are_looked_at_once_each() -> None:
    """4 values are parted in 15 ways, whatever the names of their cells, by 12 166 keys."""
    protocol = loloha.OLOLOHA(k=1000, eps_inf=5.0, eps_1=3.0)
    values = np.array([3, 50, 700, 999])
    history, other = np.repeat(values, 25_000), np.repeat(values[[1, 0, 2, 2]], 25_000)
    labels, real = labellings(protocol.encoding, Pairs.of(history, other), None) or (None, True)
    assert real
    assert labels.tolist() == [row for row in _partitions(4, 23) if row in labels.tolist()]
    # One key of each way.
    hashed = protocol.encoding.family.hash_many(np.arange(1, 23**3)[:, None], values[None])
    ways = np.unique(_renamed(hashed), axis=0, return_index=True)[1] + 1
    under = [privacy.loss_between(protocol, history, other, key=int(key)).bound for key in ways]
    assert privacy.loss_between(protocol, history, other).bound == max(under)


def test_keys_that_cannot_be_looked_through_still_have_a_bound() -> None:
    protocol = loloha.OLOLOHA(k=96, hash="affine", eps_inf=2.0, eps_1=1.0)
    few = privacy.loss_between(protocol, [1, 2, 1, 2], [2, 1, 2, 1])
    assert few.exact is None
    assert few.bound == pytest.approx(2 * privacy.growth(protocol, 2), rel=1e-6)
    many = privacy.loss_between(protocol, range(20), [*range(19), 50])
    assert many == (privacy.eps_2(protocol), None)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 5), st.integers(1, 30), st.integers(0, 2**32))
def test_the_assignment_is_the_least_over_all_permutations(g: int, tau: int, seed: int) -> None:
    one, other = np.random.default_rng(seed).integers(0, g, size=(2, tau)).tolist()
    protocol = loloha.LGRR(k=g, eps_inf=1.0, eps_1=0.5)
    least = min(assigned(protocol, one, other), assigned(protocol, other, one))
    assert privacy.loss_between(protocol, one, other).bound == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("m", [1, 2, 7, 60])
def test_assign_is_as_good_as_scipy(m: int) -> None:
    rng = np.random.default_rng(m)
    for cost in (rng.random((m, m)), rng.integers(0, 3, (m, m)).astype(float), np.zeros((m, m))):
        columns = assign(cost)
        assert sorted(columns) == list(range(m))
        rows, best = linear_sum_assignment(cost)
        assert cost[np.arange(m), columns].sum() == pytest.approx(cost[rows, best].sum())


@pytest.mark.parametrize("protocol", [
    loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0), loloha.LGRR(k=1000, eps_inf=2.0, eps_1=1.0),
    loloha.BiLOLOHA(k=1 << 20, eps_inf=2.0, eps_1=1.0), loloha.RAPPOR(k=96, eps_inf=2.0, eps_1=1.0),
], ids=str)  # fmt: skip
def test_long_histories_have_a_bound(protocol: Protocol) -> None:
    rng = np.random.default_rng(3)
    one, other = rng.integers(0, protocol.k, size=(2, 100_000))
    found = privacy.loss_between(protocol, one, other)
    assert 0 < found.bound <= privacy.window_loss(protocol, 100_000)


# -- the worst of all histories


@pytest.mark.parametrize("changes", [0, 1, 2, 3])
@pytest.mark.parametrize("tau", [3, pytest.param(4, marks=pytest.mark.long)])
@pytest.mark.parametrize("protocol", [
    loloha.LGRR(k=2, eps_inf=1.0, eps_1=0.5), loloha.LGRR(k=3, eps_inf=2.0, eps_1=1.0), BI,
    loloha.RAPPOR(k=2, eps_inf=1.0, eps_1=0.5),
], ids=str)  # fmt: skip
def test_the_worst_of_all_pairs_lies_between(protocol: Protocol, tau: int, changes: int) -> None:
    histories = [
        history
        for history in itertools.product(range(protocol.k), repeat=tau)
        if sum(a != b for a, b in itertools.pairwise(history)) <= changes
    ]
    pairs = itertools.combinations(histories, 2)
    worst = max(privacy.loss_between(protocol, *pair).exact or 0.0 for pair in pairs)
    lower, upper = privacy.worst_loss(protocol, tau, changes)
    assert lower - 1e-12 <= worst <= upper + 1e-12
    if not changes:
        assert lower == pytest.approx(worst, rel=1e-12)


def test_the_worst_loss_of_long_histories() -> None:
    lower, upper = privacy.worst_loss(loloha.BiLOLOHA(k=96, eps_inf=1.0, eps_1=0.5), 10, 9)
    # MATH section 8: 5.2768 between constant and alternating values.
    assert 5.2768 - 5e-5 <= lower <= upper
    assert privacy.worst_loss(BI, 1 << 40, 3).upper < math.inf
    assert privacy.worst_loss(loloha.DBitFlipPM(k=9, eps_inf=1.0), 2, 1) == (math.inf, math.inf)
    assert privacy.worst_loss(loloha.GRR(k=9, eps=0.5), 4, 1) == pytest.approx((2.0, 2.0))


@pytest.mark.parametrize("protocol", [
    loloha.BiLOLOHA(k=96, eps_inf=1.0, eps_1=0.5), loloha.OLOLOHA(k=9, g=3, eps_inf=1.0, eps_1=0.9),
    loloha.RAPPOR(k=4, eps_inf=1.0, eps_1=0.5),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("tau", [5, 10, 23])
def test_more_changes_never_lose_less(protocol: Protocol, tau: int) -> None:
    """As a pair with few changes is one of those with more."""
    lowers = [privacy.worst_loss(protocol, tau, changes).lower for changes in range(tau + 2)]
    assert lowers == sorted(lowers)


# -- what is refused


class _Other(loloha.GRR):
    name = "other"
    longitudinal = True

    @property
    def encoding(self) -> Any:
        return _Odd(self.k)


class _Odd(loloha.encodings.Symbols):
    pass


@pytest.mark.parametrize(
    ("history", "other", "error"),
    [
        ([0, 1], [0], "one length"),
        ([], [], "one length"),
        ([[0]], [[1]], "one length"),
        ([0.5], [0], "integers"),
        ([True], [0], "integers"),
        ([0], ["a"], "integers"),
    ],
)
def test_what_is_not_a_pair_of_histories_is_refused(history: Any, other: Any, error: str) -> None:
    with pytest.raises(ParameterError, match=error):
        privacy.loss_between(BI, history, other)


def test_foreign_values_and_keys_are_refused_and_not_shown() -> None:
    for history in ([0, 77], [-5, 0]):
        with pytest.raises(DomainError) as refused:
            privacy.loss_between(BI, history, [0, 0])
        assert "77" not in str(refused.value)
    with pytest.raises(ParameterError, match="family") as refused:
        privacy.loss_between(BI, [0], [1], key=77)
    assert "77" not in str(refused.value)
    with pytest.raises(ParameterError, match="left out"):
        privacy.loss_between(loloha.OLH(k=3, eps=1.0), [0], [1], key=1)
    with pytest.raises(ParameterError, match="_Odd"):
        privacy.loss_between(_Other(k=3, eps=1.0), [0], [1])
    for rounds in (-1, 1.5, None, True):
        with pytest.raises(ParameterError, match="rounds"):
            privacy.window_loss(BI, rounds)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="changes"):
        privacy.worst_loss(BI, 3, -1)
    with pytest.raises(ParameterError, match="rounds"):
        privacy.worst_loss(BI, 0, 0)


def test_a_second_round_without_a_lie_bounds_nothing() -> None:
    protocol = loloha.BiLOLOHA(k=2, eps_inf=60.0, eps_1=59.0)
    assert protocol.realised.q2 == Fraction(0)
    assert math.isinf(privacy.eps_2(protocol))
    assert privacy.window_loss(protocol, 0) == 0


def test_a_history_of_no_integers_is_refused_without_being_shown() -> None:
    protocol = loloha.BiLOLOHA(k=8, eps_inf=2.0, eps_1=1.0)
    for wrong in ([1.5, 2.25], ["a", "b"], [None, 1]):
        with pytest.raises(ParameterError, match=r"rows of integers in 0\.\.7") as refused:
            privacy.loss_between(protocol, wrong, [1, 2])
        assert "2.25" not in str(refused.value)
