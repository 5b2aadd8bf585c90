"""An encoding that nobody here knows, through every path: replayed or refused, never guessed."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import loloha
from loloha.campaign import Campaign, Labels, Schedule
from loloha.channels import BitChannel, SymbolChannel
from loloha.collector.store.counts import add_to_part, split, whole
from loloha.conform import case, missing
from loloha.distribution import exact_distribution, loss_between
from loloha.encodings import Encoding, OneHot, Symbols, for_encoding
from loloha.engines import tally
from loloha.engines.sql import DIALECTS, statement
from loloha.errors import LolohaError, ParameterError
from loloha.planning.accuracy_check import check_accuracy
from loloha.planning.prospect import prospect
from loloha.population import samplers
from loloha.postprocess import iterative_bayesian_update
from loloha.privacy.change import change_auc, link_auc
from loloha.privacy.shuffling import shuffled
from loloha.privacy.transcript import eps_2
from loloha.protocols import REGISTRY
from loloha.reportlog import ReportLog, generate
from loloha.rng import Rng, SimulationRng
from loloha.wire import encode
from loloha.wire.batch import Reader
from loloha.wire.columns import encode_many
from loloha_lab import attacks
from turned import TurnedLGRR

K, N = 11, 60


class Rotated(Symbols):
    """Takes its symbols from the next value, as a subclass may."""

    def memo_index(self, key: Any, v: int) -> int:
        return (v + 1) % self.k

    def support(self, counts: Any) -> Any:
        return np.roll(counts, -1)


class Inverted(OneHot):
    """Sets all bits but the user's own."""

    def randomise(self, rng: Rng, x: int, channel: BitChannel) -> bytes:
        bits = (1 << self.k) - 1 ^ 1 << x
        return channel.draw(rng, self.k, bits).to_bytes((self.k + 7) // 8, "little")

    def count(self, counts: Any, keys: Any, ys: Any) -> None:
        bits = np.unpackbits(ys, axis=1, count=self.k, bitorder="little")
        counts += (bits == 0).sum(axis=0)


@dataclass(frozen=True)
class Shifted(Encoding):
    """The symbol is the value plus the user's own key: nothing in common with those there are."""

    k: int
    kind = "keyed symbol"
    bins = memo_cells = memo_symbols = cells = property(lambda self: self.k)
    key_bits = property(lambda self: (self.k - 1).bit_length())
    report_bits = property(lambda self: 2 * self.key_bits)

    def draw_key(self, rng: Rng) -> int:
        return rng.below(self.k)

    def is_key(self, key: Any) -> bool:
        return type(key) is int and 0 <= key < self.k

    def is_answer(self, y: Any) -> bool:
        return self.is_key(y)

    def memo_index(self, key: Any, v: int) -> int:
        return (v + key) % self.k

    def randomise(self, rng: Rng, x: int, channel: SymbolChannel) -> int:
        return channel.draw(rng, x)

    rerandomise = randomise

    def chain(self, p1: Any, q1: Any, p2: Any, q2: Any) -> tuple[Any, Any]:
        return Symbols(self.k).chain(p1, q1, p2, q2)

    def likelihood_ratio(self, p: Any, q: Any) -> Any:
        return p / q

    def shapes(self, n: Any) -> Any:
        return (n,), (n,)

    def valid(self, keys: Any, ys: Any) -> Any:
        return (keys >= 0) & (keys < self.k) & (ys >= 0) & (ys < self.k)

    def count(self, counts: Any, keys: Any, ys: Any) -> None:
        np.add.at(counts, (ys - keys) % self.k, 1)

    def support(self, counts: Any) -> Any:
        return counts.copy()


class RotatedLGRR(loloha.LGRR):
    name: ClassVar[str] = "rotated"
    encoding = property(lambda self: Rotated(self.k))


class InvertedRAPPOR(loloha.RAPPOR):
    name: ClassVar[str] = "inverted"
    encoding = property(lambda self: Inverted(self.k))


class ShiftedLGRR(loloha.LGRR):
    name: ClassVar[str] = "shifted"
    encoding = property(lambda self: Shifted(self.k))


class RotatedGRR(loloha.GRR):
    name: ClassVar[str] = "rotated-once"
    encoding = property(lambda self: Rotated(self.k))


# Budgets at which nobody ever lies: estimates are the truth, whatever the seed.
CASES = [
    RotatedLGRR(k=K, eps_inf=60.0, eps_1=59.0),
    InvertedRAPPOR(k=K, eps_inf=160.0, eps_1=159.0),
    ShiftedLGRR(k=K, eps_inf=60.0, eps_1=59.0),
    RotatedGRR(k=K, eps=60.0),
]
VALUES = np.column_stack([np.zeros(N, dtype=int), np.arange(N) % K])
VALUES[5, 1] = -1
TRUTH = [np.bincount(held[held >= 0], minlength=K) / (held >= 0).sum() for held in VALUES.T]


@pytest.fixture(params=CASES, ids=lambda one: one.name)
def protocol(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def campaign(protocol: Any) -> Campaign:
    domain = Labels(tuple(range(K)))
    return Campaign(name="new", protocol=protocol, domain=domain, schedule=Schedule(0, 3600))


@pytest.fixture
def log(protocol: Any, tmp_path: Path) -> ReportLog:
    log = ReportLog(tmp_path, protocol)
    generate(log, VALUES, rng=1)
    return log


def test_clients_and_simulation_give_the_truth(protocol: Any) -> None:
    counted = protocol.tally()
    for user in range(N):
        counted.add(protocol.client(rng=SimulationRng(user)).report(0, round=0))
    assert counted.estimate().frequencies == pytest.approx(TRUTH[0], abs=1e-6)
    result = loloha.simulate(protocol, VALUES, rng=1)
    assert result.estimates == pytest.approx(np.array(TRUTH), abs=1e-6)


def test_a_generated_log_is_counted_as_clients_are(log: ReportLog) -> None:
    for one, truth in zip(tally(log, engine="local"), TRUTH, strict=True):
        assert one.tally.estimate().frequencies == pytest.approx(truth, abs=1e-6)


def test_an_engine_of_sql_says_which_engine_can(log: ReportLog) -> None:
    with pytest.raises(ParameterError, match="use engine 'local'"):
        list(tally(log, engine="duckdb"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_sql_is_guessed(protocol: Any, dialect: str) -> None:
    with pytest.raises(ParameterError, match="brings SQL that counts reports"):
        statement(protocol, dialect, "reports")


def test_messages_of_every_form_are_read(campaign: Campaign) -> None:
    protocol = campaign.protocol
    reader, encoded = Reader(campaign), []
    for user in range(N):
        client = protocol.client(rng=SimulationRng(user))
        report = client.report(user % K, round=0)
        encoded.append(encode(campaign, report, round=0, reporter=client.reporter(0)))
    lines = reader.read_lines(b"\n".join(encoded))
    names = lines.reporters.view(np.uint8).reshape(-1, 16)
    stream = encode_many(campaign, names, lines.keys, lines.ys, rounds=0)
    expected = np.bincount(np.arange(N) % K, minlength=K) / N
    for batch in (lines, reader.read_arrow(stream)):
        counted = protocol.tally()
        counted.update(batch.keys, batch.ys)
        assert counted.estimate().frequencies == pytest.approx(expected, abs=1e-6)
        # What the collector's store adds up, in parts.
        cells, added = protocol.encoding.increments(batch.keys, batch.ys)
        total = protocol.encoding.cells
        parts = [
            (number, add_to_part(None, number, few, more, total))
            for number, few, more in split(cells, added)
        ]
        assert (whole(parts, total) == counted.counts).all()


def test_plans_claim_nothing_unknown(campaign: Campaign) -> None:
    protocol = campaign.protocol
    (row,) = loloha.plan(K, N, 60.0, 59.0, protocols=[protocol]).rows
    assert row.server_operations == math.inf
    assert "not known" in row.server_cost
    json.dumps(row.to_dict(), allow_nan=False)
    assert prospect(protocol, N, 60.0, 59.0).variance == row.variance
    assert check_accuracy(campaign, N).cap == protocol.cap
    text = loloha.privacy.explain(protocol).text
    assert "hash" not in text
    assert "bucket" not in text
    if protocol.longitudinal:
        assert "it is not known" in text
        assert eps_2(protocol) == math.inf


def test_the_loss_of_repeated_reports_is_bounded_from_above() -> None:
    for protocol in (
        RotatedLGRR(k=3, eps_inf=2.0, eps_1=1.0),
        ShiftedLGRR(k=3, eps_inf=2.0, eps_1=1.0),
    ):

        def run(rng: Rng, v: int, protocol: Any = protocol) -> Any:
            client = protocol.client(rng=rng)
            return tuple((r.key, r.y) for r in (client.report(v, round=t) for t in range(2)))

        laws = [exact_distribution(lambda rng, v=v: run(rng, v)) for v in range(3)]
        exact = max(loss_between(one, other) for one in laws for other in laws)
        first, second, later = loloha.privacy.growth(protocol, [1, 2, 100], realised=True)
        assert first == pytest.approx(1.0, abs=1e-9)
        assert exact < second == later <= 2.0


def test_no_likelihood_is_guessed(protocol: Any) -> None:
    counted = loloha.simulate(protocol, VALUES, rng=1).tallies[0]
    with pytest.raises(LolohaError, match="must have an encoding that brings"):
        iterative_bayesian_update(counted)


def test_no_attack_is_guessed(protocol: Any) -> None:
    assert change_auc(protocol, 3) is None
    assert link_auc(protocol, 3) is None
    with pytest.raises(ParameterError, match="must have an encoding that brings"):
        attacks.averaging(protocol, [1], n=2, rng=1)
    with pytest.raises(ParameterError, match="must have an encoding that brings"):
        attacks.change(protocol, 2, n=2, rng=1)
    for keys in ("drawn", "chosen"):
        with pytest.raises(ParameterError, match="must have an encoding that brings"):
            attacks.poisoning(protocol, VALUES[:, 0], 3, [1], keys=keys, rng=1)


def test_no_gain_of_shuffling_is_guessed(protocol: Any) -> None:
    with pytest.raises(ParameterError, match="must have an encoding that brings"):
        shuffled(protocol, N)


def test_estimates_are_framed_as_they_are(protocol: Any) -> None:
    frame = loloha.simulate(protocol, VALUES, rng=1).tallies[0].estimate().to_frame()
    assert np.array(frame["estimate"]) == pytest.approx(TRUTH[0], abs=1e-6)


def test_a_port_would_be_asked_by_the_device_s_own_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new = (RotatedLGRR, ShiftedLGRR, InvertedRAPPOR)
    for cls in new:
        monkeypatch.setitem(REGISTRY.own, cls.name, cls)
    asked = [(one, life) for one, life in case.short_histories() if type(one) in new]
    assert {type(one) for one, _ in asked} == set(new)
    for one, life in asked:
        law = exact_distribution(lambda rng, one=one, life=life: lived(one, life, rng))
        assert sum(law.values()) == 1
        assert len(law) > 1


def lived(protocol: Any, life: Any, rng: Rng) -> Any:
    client = protocol.client(rng=rng)
    reports = [client.report(value, round=round) for round, value in life]
    return tuple((one.key, one.y) for one in reports)


def test_memo_symbols_of_many_are_those_of_each(protocol: Any) -> None:
    encoding = protocol.encoding
    drawn = [encoding.draw_key(SimulationRng(user)) for user in range(5)]
    keys = None if drawn[0] is None else np.array(drawn)
    many = encoding.memo_indices(keys, np.arange(K), 5)
    assert many.tolist() == [[encoding.memo_index(key, v) for v in range(K)] for key in drawn]
    assert encoding.key_count >= len(set(drawn))


TURNED = TurnedLGRR(k=K, eps_inf=60.0, eps_1=59.0)


def test_an_encoding_of_one_file_brings_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> Any:
        raise AssertionError("clients are run one by one")

    monkeypatch.setattr(samplers, "replay", refused)
    monkeypatch.setattr(samplers, "replay_reports", refused)
    result = loloha.simulate(TURNED, VALUES, rng=1)
    assert result.estimates == pytest.approx(np.array(TRUTH), abs=1e-6)
    log = ReportLog(tmp_path, TURNED)
    generate(log, VALUES, rng=1)
    for engine in ("local", "duckdb"):
        for one, truth in zip(tally(log, engine=engine), TRUTH, strict=True):
            assert one.tally.estimate().frequencies == pytest.approx(truth, abs=1e-6)
    (row,) = loloha.plan(K, N, 60.0, 59.0, protocols=[TURNED]).rows
    assert (row.server_cost, row.server_operations) == ("one addition", N)
    low = TurnedLGRR(k=3, eps_inf=2.0, eps_1=1.0)
    expected = loloha.privacy.growth(loloha.LGRR(k=3, eps_inf=2.0, eps_1=1.0), [1, 2, 100])
    assert loloha.privacy.growth(low, [1, 2, 100]) == pytest.approx(expected)


def test_missing_parts_are_listed_with_their_fallbacks(protocol: Any) -> None:
    assert not missing(loloha.LGRR(k=K, eps_inf=2.0, eps_1=1.0))
    assert not missing(loloha.OLH(k=K, eps=1.0))
    nothing = missing(protocol)
    assert nothing["population.samplers:counts"].endswith("clients are run one by one")
    assert len(nothing) >= 13
    brought = nothing.keys() - missing(TURNED).keys()
    assert {"population.samplers:counts", "engines.sql:view", "privacy.loss:repeated"} < brought
    assert "privacy.shuffling:answers" in missing(TURNED)


def test_a_part_that_nobody_asks_for_is_refused_by_name() -> None:
    with pytest.raises(ParameterError, match="part must be one of"):
        for_encoding("engines.sql", Rotated)
