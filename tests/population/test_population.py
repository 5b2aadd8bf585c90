"""Whole populations: what is returned, what is refused, and that it does not depend on the way."""

import dataclasses
import tracemalloc
from typing import Any, ClassVar

import numpy as np
import pytest

import loloha
from laws.variants import FLAGSHIPS, Variant
from loloha.channels import SymbolChannel
from loloha.encodings import Symbols
from loloha.errors import DomainError, ParameterError
from loloha.population import Simulation, simulate, supports
from loloha.population.population import linked
from loloha.population.samplers import History
from loloha.population.samplers.draws import Draws
from loloha.population.samplers.replay import replay_reports
from loloha.rng import Rng, SimulationRng
from population import WAYS, always_compiled, numpy_only, wandering

LARGEST_Z = 6.0
"""alpha = 2e-9 a comparison."""

LARGER = [
    loloha.BiLOLOHA(k=200, eps_inf=2.0, eps_1=1.0),
    loloha.OLOLOHA(k=200, eps_inf=4.0, eps_1=2.0, g=5),
    loloha.OLOLOHA(k=200, eps_inf=4.0, eps_1=2.0, g=6),
    loloha.OLOLOHA(k=70, eps_inf=4.0, eps_1=2.0, g=6, hash="xxhash"),
    loloha.OLOLOHA(k=200, eps_inf=4.0, eps_1=2.0, g=6, hash="prime"),
    loloha.OLOLOHA(k=2000, eps_inf=4.0, eps_1=2.0, g=6, hash="prime"),
    loloha.LGRR(k=200, eps_inf=4.0, eps_1=2.0),
    loloha.RAPPOR(k=200, eps_inf=4.0, eps_1=2.0),
    loloha.LOUE(k=200, eps_inf=4.0, eps_1=2.0),
    loloha.DBitFlipPM(k=200, eps_inf=2.0),
    loloha.DBitFlipPM(k=200, eps_inf=2.0, b=100, d=70),
    loloha.DBitFlipPM(k=200, eps_inf=2.0, b=13, d=1),
    loloha.OLH(k=200, eps=2.0),
    loloha.OLH(k=200, eps=2.0, hash="affine"),
    loloha.GRR(k=200, eps=5.0),
    loloha.OUE(k=200, eps=2.0),
]


@pytest.fixture
def values() -> Any:
    return wandering(300, 4, 11)


@pytest.mark.parametrize("variant", FLAGSHIPS, ids=str)
def test_the_result_of_each_protocol(variant: Variant, values: Any) -> None:
    protocol = variant.build()
    result = simulate(protocol, values, rng=3)
    assert isinstance(result, Simulation)
    assert result.protocol == protocol
    assert result.estimates.shape == result.supports.shape == result.eligible.shape
    assert result.estimates.shape == (4, protocol.bins)
    assert result.n.tolist() == (values >= 0).sum(axis=0).tolist()
    assert result.loss.shape == (300,)
    assert len(result.tallies) == 4
    for t, tally in enumerate(result.tallies):
        assert (tally.protocol, tally.n) == (protocol, result.n[t])
        np.testing.assert_array_equal(tally.support(), result.supports[t])
        np.testing.assert_array_equal(tally.eligible(), result.eligible[t])
        np.testing.assert_array_equal(tally.estimate().frequencies, result.estimates[t])


@pytest.mark.parametrize("protocol", LARGER, ids=repr)
def test_numba_changes_nothing(protocol: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every count and every loss is the same with it and without."""
    values = wandering(700, 9, protocol.k, seed=2)
    found = []
    for way in WAYS.values():
        with monkeypatch.context() as patch:
            way(patch)
            found.append(simulate(protocol, values, rng=11))
    one, other = found
    for t in range(9):
        np.testing.assert_array_equal(one.tallies[t].counts, other.tallies[t].counts)
    np.testing.assert_array_equal(one.supports, other.supports)
    np.testing.assert_array_equal(one.eligible, other.eligible)
    np.testing.assert_array_equal(one.loss, other.loss)


@pytest.mark.parametrize("variant", FLAGSHIPS, ids=str)
def test_the_loss_is_that_of_the_clients(variant: Variant, values: Any) -> None:
    """Where no key decides how many cells a value shares, user by user; else in the mean."""
    protocol = variant.build()
    result = simulate(protocol, values, rng=4)
    expected = []
    for u, held in enumerate(values.tolist()):
        client = protocol.client(rng=SimulationRng(u))
        for t, v in enumerate(held):
            if v >= 0:
                client.report(v, round=t)
        expected.append(client.loss)
    if protocol.longitudinal and protocol.encoding.keyed:
        units = np.array(expected) / protocol.asked_memo
        seen = result.loss / protocol.asked_memo
        # Each of some cells, or what so many of one table spend together.
        whole = range(protocol.encoding.memo_cells + 1)
        assert set(np.round(seen, 9)) <= set(np.round([*units, *whole], 9))
        assert result.loss.max() <= protocol.cap
        z = (seen.mean() - units.mean()) / np.sqrt((seen.var() + units.var()) / len(units))
        assert abs(z) < LARGEST_Z, f"seed 4, n = 300: {seen.mean()} and {units.mean()} cells, {z=}"
    else:
        assert result.loss.tolist() == expected


@pytest.mark.parametrize("variant", FLAGSHIPS, ids=str)
def test_rounds_and_users_without_a_report(variant: Variant) -> None:
    protocol = variant.build()
    values = wandering(50, 5, 11)
    values[:, 2] = -1
    values[7] = -1
    result = simulate(protocol, values, rng=1)
    assert result.n[2] == 0
    assert np.isnan(result.estimates[2]).all()
    assert not result.supports[2].any()
    assert not result.eligible[2].any()
    assert result.loss[7] == 0
    assert np.isfinite(result.estimates[[0, 1, 3, 4]]).all() or protocol.encoding.key_bits
    nobody = simulate(protocol, values[:0], rng=1)
    assert nobody.loss.shape == (0,)
    assert nobody.estimates.shape == (5, protocol.bins)
    no_round = simulate(protocol, values[:, :0], rng=1)
    assert no_round.loss.tolist() == [0.0] * 50
    assert no_round.tallies == []


@pytest.mark.parametrize("variant", FLAGSHIPS, ids=str)
def test_equal_seeds_equal_results(variant: Variant, values: Any) -> None:
    protocol = variant.build()
    seeds = [5, np.random.SeedSequence(5)]
    first, second = (simulate(protocol, values, rng=seed) for seed in seeds)
    np.testing.assert_array_equal(first.estimates, second.estimates)
    np.testing.assert_array_equal(first.loss, second.loss)
    other = simulate(protocol, values, rng=6)
    assert (first.estimates != other.estimates).any()
    shared = np.random.default_rng(5)
    one, two = (simulate(protocol, values, rng=shared) for _ in range(2))
    assert (one.estimates != two.estimates).any()


@pytest.mark.parametrize(
    "protocol",
    [
        loloha.OLOLOHA(k=40, eps_inf=5.0, eps_1=3.0, g=23),
        loloha.OLOLOHA(k=40, eps_inf=3.0, eps_1=1.5, g=3, memo="joint"),
        loloha.OLOLOHA(k=40, eps_inf=3.0, eps_1=1.5, g=4, hash="prime"),
        loloha.OLH(k=40, eps=2.0),
        loloha.OLH(k=2, eps=5.0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n", [0, 1, 300])
def test_it_does_not_matter_who_keeps_the_counts(protocol: Any, n: int) -> None:
    """Counted by lines of keys, or the hash of each user expanded: what the tallies say."""
    values = wandering(n, 4, protocol.k)
    kept, bare = (simulate(protocol, values, keep_tallies=keep, rng=5) for keep in (True, False))
    np.testing.assert_array_equal(bare.supports, kept.supports)
    for tally, support in zip(kept.tallies, bare.supports, strict=True):
        np.testing.assert_array_equal(tally.support(), support)


@pytest.mark.parametrize("protocol", [*LARGER[::3], LARGER[4]], ids=repr)
def test_a_history_is_the_same_and_may_be_used_again(protocol: Any) -> None:
    values = wandering(200, 3, protocol.k)
    history = History(values, protocol.k)
    plain = simulate(protocol, values, rng=5)
    for _ in range(2):
        np.testing.assert_array_equal(simulate(protocol, history, rng=5).supports, plain.supports)
    bare = supports(protocol, history, rng=5)
    np.testing.assert_array_equal(bare.supports, plain.supports)
    np.testing.assert_array_equal(bare.eligible, plain.eligible)
    np.testing.assert_array_equal(bare.loss, plain.loss)
    np.testing.assert_array_equal(bare.n, plain.n)


def test_a_history_of_another_domain_is_refused() -> None:
    history = History(np.zeros((3, 1), dtype=int), 5)
    with pytest.raises(ParameterError, match="k must be that of the protocol, 4, got 5"):
        simulate(loloha.GRR(k=4, eps=1.0), history, rng=1)


def test_bad_input_is_refused() -> None:
    protocol = loloha.GRR(k=4, eps=1.0)
    with pytest.raises(DomainError, match="not shown"):
        simulate(protocol, [[4]], rng=1)
    with pytest.raises(ParameterError, match="values must be integers"):
        simulate(protocol, [[0.5]], rng=1)
    for rng in ("1", 1.0, -1, True):
        with pytest.raises(ParameterError, match="rng must be an integer seed >= 0"):
            simulate(protocol, [[1]], rng=rng)  # type: ignore[arg-type]


def test_without_a_seed_every_simulation_is_another() -> None:
    values = np.zeros((2000, 1), dtype=int)
    once, again = (simulate(loloha.GRR(k=64, eps=0.1), values).estimates for _ in range(2))
    # Of 64 counts around 31, all agree with a probability below 1e-60.
    assert not np.array_equal(once, again)


def test_masked_entries_are_gaps() -> None:
    protocol = loloha.OUE(k=4, eps=1.0)
    values = np.ma.array([[1, 2], [3, 3]], mask=[[False, True], [False, False]])
    assert simulate(protocol, values, rng=1).n.tolist() == [2, 1]


def test_tallies_may_be_left_out(values: Any) -> None:
    protocol = loloha.BiLOLOHA(k=11, eps_inf=2.0, eps_1=1.0)
    result = simulate(protocol, values, keep_tallies=False, rng=3)
    assert result.tallies == []
    np.testing.assert_array_equal(result.estimates, simulate(protocol, values, rng=3).estimates)


def test_its_text_shows_no_user() -> None:
    result = simulate(loloha.GRR(k=4, eps=1.0), [[3], [3]], rng=1)
    assert repr(result) == "Simulation(GRR(k=4, eps=1.0), 2 users, 1 round)"


@pytest.mark.parametrize("protocol", LARGER, ids=repr)
def test_progress_rises_to_one(protocol: Any) -> None:
    seen: list[float] = []
    simulate(protocol, wandering(1200, 3, protocol.k), rng=1, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[0] > 0
    assert seen[-1] == 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shifted(loloha.LGRR):
    """A protocol with a step of its own: its memo symbol is the next value."""

    name: ClassVar[str] = "shifted"

    def memo_index(self, key: Any, v: int) -> int:
        return (v + 1) % self.k

    def permanent(self, rng: Rng, x: int) -> Any:
        return self.first_channel.draw(rng, (x - 1) % self.k)


class Reversed(Symbols):
    """An encoding of its own, as a file that somebody adds may define it."""

    def randomise(self, rng: Rng, x: int, channel: SymbolChannel) -> int:
        return self.k - 1 - channel.draw(rng, self.k - 1 - x)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnEncoding(loloha.GRR):
    @property
    def encoding(self) -> Any:
        return Reversed(self.k)


# With budgets of hundreds, what is sent is the memo symbol: other draws have a chance of 2^-53.
NOISELESS = [
    loloha.GRR(k=6, eps=300.0),
    loloha.LGRR(k=6, eps_inf=600.0, eps_1=300.0),
    loloha.OLOLOHA(k=6, eps_inf=600.0, eps_1=300.0, g=3),
]


@pytest.mark.parametrize("protocol", NOISELESS, ids=repr)
def test_reports_joined_by_user_are_those_of_their_values(protocol: Any) -> None:
    values = wandering(60, 4, 6)
    values[::3, 1] = values[5] = -1
    encoding = protocol.encoding
    keys, ys = linked(protocol, values, rng=3)
    assert ys.shape == values.shape
    assert (keys is None) == (encoding.shapes(1)[0] is None)
    rounds = [*replay_reports(protocol, values, Draws(3))]
    assert len(rounds) == 4
    for t, sent in enumerate(rounds):
        assert sent.senders.tolist() == (values[:, t] >= 0).tolist()
        own = [None] * 60 if sent.keys is None else iter(sent.keys.tolist())
        places = np.flatnonzero(sent.senders)
        cells = [
            encoding.memo_index(key, int(values[u, t])) for u, key in zip(places, own, strict=False)
        ]
        assert sent.ys.tolist() == cells
    for u, v in np.argwhere(values >= 0):
        key = None if keys is None else int(keys[u])
        assert ys[u, v] == encoding.memo_index(key, int(values[u, v]))
    assert set(ys[values < 0].tolist()) == {-1}


def test_bits_are_not_joined_by_user() -> None:
    with pytest.raises(ParameterError, match="must send symbols"):
        linked(loloha.OUE(k=3, eps=1.0), np.zeros((1, 1), dtype=int), rng=1)


@pytest.mark.parametrize(
    "protocol", [Shifted(k=5, eps_inf=3.0, eps_1=2.0), OwnEncoding(k=5, eps=1.0)], ids=repr
)
def test_what_the_samplers_do_not_know_is_run_client_by_client(protocol: Any) -> None:
    values = wandering(3000, 2, 5)
    seen: list[float] = []
    result = simulate(protocol, values, rng=1, progress=seen.append)
    assert seen == [users / 3000 for users in range(1, 3001)]
    for t in range(2):
        held = values[:, t][values[:, t] >= 0]
        truth = np.bincount(held, minlength=5) / len(held)
        exact = loloha.variance(protocol, len(held), truth)
        z = (result.estimates[t] - truth) / np.sqrt(exact)
        assert np.abs(z).max() < LARGEST_Z, f"seed 1, n = {len(held)}, round {t}: z = {z}"
    again = simulate(protocol, values, rng=1)
    np.testing.assert_array_equal(result.supports, again.supports)
    np.testing.assert_array_equal(result.loss, again.loss)


SCALE_N, SCALE_K, SCALE_RUNS = 20_000, 1000, 4
AT_SCALE = [
    loloha.BiLOLOHA(k=SCALE_K, eps_inf=2.0, eps_1=1.0),
    loloha.OLOLOHA(k=SCALE_K, eps_inf=5.0, eps_1=3.0),
    loloha.OLOLOHA(k=SCALE_K, eps_inf=5.0, eps_1=3.0, g=12, calibration="published"),
    loloha.LGRR(k=SCALE_K, eps_inf=8.0, eps_1=6.0),
    loloha.RAPPOR(k=SCALE_K, eps_inf=2.0, eps_1=1.0),
    loloha.LOSUE(k=SCALE_K, eps_inf=5.0, eps_1=2.0),
    loloha.LOUE(k=SCALE_K, eps_inf=3.0, eps_1=1.0),
    loloha.LSOUE(k=SCALE_K, eps_inf=3.0, eps_1=1.0),
    loloha.DBitFlipPM(k=SCALE_K, eps_inf=2.0),
    loloha.OUE(k=SCALE_K, eps=1.0),
    loloha.GRR(k=SCALE_K, eps=5.0),
    loloha.OLH(k=SCALE_K, eps=2.0),
]


@pytest.mark.parametrize("protocol", AT_SCALE, ids=repr)
def test_at_scale_moments_are_the_exact_ones(protocol: Any) -> None:
    """Mean, variance and covariance of two rounds over 1000 values, in 4 runs.

    Values are nearly independent of each other, so z sees an error of 6 sqrt(2 / 4000), 13 %, of
    the variance, and of 6 / sqrt(4000), 10 % of the variance, in the covariance: a memo that is
    drawn anew has none at all. Of three rounds users keep their value in the first two.
    """
    rng = np.random.default_rng(8)
    values = rng.integers(SCALE_K, size=(SCALE_N, 3))
    values[:, 1] = values[:, 0]
    truth = [np.bincount(held, minlength=SCALE_K) / SCALE_N for held in values.T]
    z = []
    for seed in range(SCALE_RUNS):
        found = simulate(protocol, values, rng=seed, keep_tallies=False)
        z += [
            [(found.estimates[t] - truth[t]) / np.sqrt(loloha.variance(protocol, SCALE_N, truth[t]))
             for t in range(3)]
        ]  # fmt: skip
    # Axes: round, run and value.
    scores = np.array(z).transpose(1, 0, 2).reshape(3, -1)
    count = scores.shape[1]
    exact = loloha.server.estimate.temporal_covariance(protocol, SCALE_N, truth[0])
    expected = np.mean(exact / loloha.variance(protocol, SCALE_N, truth[0]))
    seen = {
        "mean": scores.mean(axis=1) * np.sqrt(count),
        "variance": ((scores**2).mean(axis=1) - 1) * np.sqrt(count / 2),
        "covariance": ((scores[0] * scores[1]).mean() - expected)
        * np.sqrt(count / (1 + expected**2)),
    }
    if protocol.encoding.kind != "keyed symbol":
        # Two values with one hash share their answer; without a hash two values share nothing.
        seen["covariance with the third"] = (scores[0] * scores[2]).mean() * np.sqrt(count)
    for what, by in seen.items():
        assert np.abs(by).max() < LARGEST_Z, (
            f"{what}: n = {SCALE_N}, seeds 0..{SCALE_RUNS - 1}, z = {by}; "
            f"covariance {np.mean(scores[0] * scores[1]):.4f} of the variance, {expected:.4f} due"
        )


def test_memory_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """n x tau x k of 8e8 bits (100 MB packed) in less than 40 MB on top of the values."""
    always_compiled(monkeypatch)
    values = wandering(8000, 100, 1000, stay=0.3)
    protocol = loloha.RAPPOR(k=1000, eps_inf=2.0, eps_1=1.0)
    simulate(protocol, values[:50], rng=1)
    tracemalloc.start()
    try:
        simulate(protocol, values, rng=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40e6, f"{peak / 1e6:.0f} MB"


def test_wide_answers_are_drawn_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the memo is cut, the law is the same: here, the estimates at their usual distance."""
    numpy_only(monkeypatch)
    monkeypatch.setattr("loloha.population.samplers.bit.WORDS_AT_ONCE", 40)
    monkeypatch.setattr("loloha.population.samplers.symbol.WORDS_AT_ONCE", 40)
    monkeypatch.setattr("loloha.population.samplers.symbol.REPORTS_AT_ONCE", 40)
    monkeypatch.setattr("loloha.population.samplers.rows.AT_ONCE", 40)
    values = wandering(400, 3, 70)
    for protocol in (
        loloha.RAPPOR(k=70, eps_inf=8.0, eps_1=7.0),
        loloha.DBitFlipPM(k=70, eps_inf=8.0, b=20, d=7),
        loloha.OLOLOHA(k=70, eps_inf=8.0, eps_1=7.0, g=6),
        loloha.OLOLOHA(k=70, eps_inf=8.0, eps_1=7.0, g=7),
    ):
        result = simulate(protocol, values, rng=2)
        for t in range(3):
            held = values[:, t][values[:, t] >= 0]
            bins = [protocol.encoding.bin(int(v)) for v in held]
            truth = np.bincount(bins, minlength=protocol.bins) / len(held)
            z = (result.estimates[t] - truth) / np.sqrt(
                loloha.variance(protocol, len(held), truth, eligible=result.eligible[t])
            )
            assert np.abs(z).max() < LARGEST_Z, f"{protocol!r}, seed 2, round {t}: z = {z}"
