"""Attacks on populations, held against exact laws, formulas and each other."""

import math
from typing import Any

import numpy as np
import pytest

from laws.variants import example
from loloha import distribution, privacy
from loloha.errors import ParameterError
from loloha.population.samplers import Draws, History, sample_reports
from loloha.protocols import REGISTRY, OneBit, Protocol
from loloha_lab import attacks
from loloha_lab.attacks.poisoning import fakes_of

# -- change and linking: simulated populations against the formula of the plan

PROTOCOLS = [example(name, k=12) for name in REGISTRY] + [
    example("dbitflippm", k=12, b=6, d=2),
    example("ololoha", k=12, hash="affine"),
]
# Every outcome holds the formulas in privacy/test_change.py: a few populations see the attacks.
ATTACKED = [
    pytest.param(protocol, marks=[pytest.mark.long] * (place % 3 > 0))
    for place, protocol in enumerate(PROTOCOLS)
]


@pytest.mark.parametrize("protocol", ATTACKED, ids=str)
def test_a_population_shows_changes_as_the_formula_says(protocol: Protocol) -> None:
    """Five standard errors, both seeded: sees the wrong channel, memos drawn anew, keys mixed."""
    seen, said = attacks.change(protocol, 3, n=1500, rng=1), privacy.change_auc(protocol, 3)
    assert said is not None
    assert abs(seen.auc - said.auc) < 5 * math.hypot(seen.error, said.error) + 2e-3


@pytest.mark.parametrize("protocol", ATTACKED, ids=str)
def test_a_population_is_linked_as_the_formula_says(protocol: Protocol) -> None:
    found, said = attacks.linking(protocol, 1, n=1000, rng=2), privacy.link_auc(protocol, 1)
    assert said is not None
    # Two users may hold one value: 1 in 12 pairs.
    shared = 1 / 12 if not protocol.longitudinal or protocol.g is None else 0.01
    room = 5 * math.hypot(found.roc.error, said.error) + shared * abs(said.auc - 0.5)
    assert abs(found.roc.auc - said.auc) < room
    assert (found.users, found.targets) == (1000, 200)


@pytest.mark.long
def test_one_user_is_found_among_many_by_fingerprint_or_key() -> None:
    bits = attacks.linking(example("rappor", k=300), 3, n=1000, rng=1)
    assert bits.top_one > 0.95
    names = attacks.linking(example("ololoha", k=96, hash="affine"), 1, n=300, rng=1)
    assert names.top_one == 1
    shared = attacks.linking(example("biloloha", k=96), 1, n=1000, rng=1)
    # 127 keys: some 8 users share one, and single reports hardly tell them apart.
    assert 1 / 12 < shared.top_one < 1 / 4
    unlinked = attacks.linking(example("grr", k=96), 1, n=1000, rng=1)
    assert unlinked.top_one < 0.05


# -- averaging


def test_the_first_guess_has_the_distribution_of_one_report() -> None:
    grr = example("grr", k=5)
    found = attacks.averaging(grr, (1,), n=20_000, rng=1)
    assert abs(found.success[0] - float(grr.realised.p1)) < 5 * found.error[0]
    sue = example("sue", k=3)
    p, q = (float(x) for x in (sue.realised.p1, sue.realised.q1))
    # Bit set: right by chance 1/(1 + others set); unset: only if none is, one in three.
    ones = [math.comb(2, m) * q**m * (1 - q) ** (2 - m) for m in range(3)]
    exact = p * sum(w / (1 + m) for m, w in enumerate(ones)) + (1 - p) * ones[0] / 3
    found = attacks.averaging(sue, (1,), n=20_000, rng=1)
    assert abs(found.success[0] - exact) < 5 * found.error[0]


def test_averaging_defeats_rules_without_a_memo_and_no_others() -> None:
    for name in ("grr", "blh", "olh", "sue", "oue"):
        found = attacks.averaging(example(name, k=8), (1, 10, 400), n=200, rng=1)
        assert found.success[-1] > 0.99, name
        assert found.chance == 1 / 8
    for name in ("rappor", "l-osue", "l-grr", "biloloha", "ololoha", "dbitflippm"):
        protocol = example(name, k=8)
        found = attacks.averaging(protocol, (1, 400), n=2000, rng=1)
        # No eps_inf-LDP answer raises 1/k by more than e^eps_inf, and never to certainty.
        most = math.exp(2.0) / (math.exp(2.0) + 7)
        assert found.success[-1] < most + 5 * found.error[-1], name


def test_an_average_of_memos_is_no_better_than_the_memo() -> None:
    """L-GRR in the limit: the memo is known, and right with probability p1."""
    protocol = example("l-grr", k=6)
    found = attacks.averaging(protocol, (1000,), n=5000, rng=2)
    assert abs(found.success[0] - protocol.p1) < 5 * found.error[0]


# -- poisoning


@pytest.mark.parametrize(("keys", "targets"), [
    ("drawn", [0, 5, 10]), ("chosen", [3]),
    *(pytest.param(*case, marks=pytest.mark.long) for case in (
        ("drawn", [3]), ("chosen", [0, 5, 10])
    )),
])  # fmt: skip
@pytest.mark.parametrize("protocol", [
    *(example(name, k=12) for name, cls in REGISTRY.items() if cls.histogram),
    example("dbitflippm", k=12, d=3), example("dbitflippm", k=12, b=6, d=2),
    example("ololoha", k=12, hash="affine"),
], ids=str)  # fmt: skip
def test_fakes_gain_what_the_formula_says(protocol: Protocol, keys: Any, targets: Any) -> None:
    """Five standard errors of 12 trials: sees fakes taken for honest ones, or n for n d / b."""
    values = np.random.default_rng(7).integers(0, 12, size=3000)
    found = attacks.poisoning(protocol, values, 150, targets, keys=keys, trials=12, rng=3)
    assert abs(found.gain - found.formula) < 5 * found.error + 2e-3


@pytest.mark.parametrize(("target", "keys", "targets"), [
    ("distribution", "drawn", [3, 5, 10]), ("distribution", "chosen", [3]), ("mean", "drawn", [3]),
])  # fmt: skip
def test_fakes_push_numbers_as_the_formula_says(target: str, keys: Any, targets: Any) -> None:
    values = np.random.default_rng(7).integers(0, 12, size=3000)
    protocol = OneBit(k=12, eps_inf=2.0, eps_1=1.0, target=target)
    found = attacks.poisoning(protocol, values, 150, targets, keys=keys, trials=12, rng=3)
    assert abs(found.gain - found.formula) < 5 * found.error + 2e-3
    assert found.gain > 5 * found.error
    if target == "distribution":
        with pytest.raises(ParameterError, match="targets must be values above 0"):
            attacks.poisoning_gain(protocol, 3000, 150, [0, 3])


def test_no_assignment_of_keys_keeps_a_fake_from_one_target() -> None:
    protocol = example("ololoha", k=96)
    one = {keys: attacks.poisoning_gain(protocol, 10_000, 100, [5], keys=keys)
           for keys in ("drawn", "chosen")}  # type: ignore[arg-type]  # fmt: skip
    assert one["drawn"] == one["chosen"]
    many = [attacks.poisoning_gain(protocol, 10_000, 100, range(0, 96, 7), keys=keys)
            for keys in ("drawn", "chosen")]  # type: ignore[arg-type]  # fmt: skip
    assert many[0] < many[1] / 2
    buckets = example("dbitflippm", k=96, d=2)
    assert attacks.poisoning_gain(buckets, 10_000, 100, [5], keys="chosen") == pytest.approx(
        48 * attacks.poisoning_gain(buckets, 10_000, 100, [5]), rel=0.35
    )


def test_alarms_are_false_as_often_as_they_say() -> None:
    """Of 400 honest rounds at 5 %: 20 expected; alpha 2e-9 is 6 standard deviations, 46."""
    for protocol, alarm in (
        (example("biloloha", k=12), attacks.key_alarm),
        (example("l-osue", k=12), attacks.sum_alarm),
    ):
        rng, false = np.random.default_rng(3), 0
        values = rng.integers(0, 12, size=(2000, 1))
        for seed in range(400):
            (sent,) = sample_reports(protocol, History(values, 12), Draws(seed))
            tally = protocol.tally()
            tally.update(sent.keys, sent.ys)
            found = alarm(tally)
            assert found is not None
            false += found.chance < 0.05
        assert 1 <= false <= 46, protocol


def test_careless_fakes_are_seen_and_careful_ones_are_not() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 12, size=(2000, 1))
    for protocol, keys, alarm, seen in (
        (example("biloloha", k=12), "chosen", attacks.key_alarm, True),
        (example("biloloha", k=12), "drawn", attacks.key_alarm, False),
        (example("l-osue", k=12), "drawn", attacks.sum_alarm, True),
    ):
        (sent,) = sample_reports(protocol, History(values, 12), Draws(5))
        tally = protocol.tally()
        tally.update(sent.keys, sent.ys)
        tally.update(*fakes_of(protocol, np.array([3]), keys).send(300, rng))
        found = alarm(tally)
        assert found is not None
        assert (found.chance < 1e-6) is seen, (protocol, keys)
    assert attacks.key_alarm(example("rappor", k=12).tally()) is None
    assert attacks.key_alarm(example("ololoha", k=12, hash="affine").tally()) is None
    assert attacks.key_alarm(example("biloloha", k=12).tally()) is None
    assert attacks.sum_alarm(example("grr", k=12).tally()) is None


def test_runs_of_one_symbol_are_no_honest_device() -> None:
    protocol = example("biloloha", k=96)
    assert protocol.p2 == pytest.approx(0.803, abs=1e-3)
    rounds = attacks.rounds_until_seen(protocol, 50_000, alarm=0.05)
    assert 60 <= rounds <= 70
    p2, q2 = protocol.p2 or 0, protocol.q2 or 0
    assert 50_000 * (p2**rounds + q2**rounds) <= 0.05 < 50_000 * (p2 ** (rounds - 1))

    # The exact law of a device that stays; k = 2 leaves one key that tells the values apart.
    small = example("biloloha", k=2)

    def run(rng: Any) -> bool:
        client = small.client(rng=rng)
        return len({client.report(1, round=t).y for t in range(5)}) == 1

    assert float(distribution.exact_distribution(run)[True]) == pytest.approx(
        p2**5 + q2**5, rel=1e-9
    )


def test_fakes_that_look_honest_gain_less() -> None:
    protocol = example("biloloha", k=96)
    r = protocol.realised
    careless = (1 - float(r.q_star)) / float(r.contrast)
    adaptive = attacks.adaptive_gain(protocol)
    assert 1 < adaptive < careless
    # Measured: 20 000 of them.
    rng = np.random.default_rng(2)
    family: Any = protocol.encoding.family  # type: ignore[attr-defined]
    keys = family.draw_many(20_000, rng)
    own = family.hash_many(keys, np.full(20_000, 5))
    ys = np.where(rng.random(20_000) < (protocol.p2 or 0), own, 1 - own)
    tally = protocol.tally()
    tally.update(keys, ys)
    estimate = tally.estimate()
    assert abs(estimate.frequencies[5] - adaptive) < 5 * estimate.standard_errors[5]


# -- what is refused

REFUSED = [
    ("prior must be", lambda p: attacks.guess_values(p, [0.5, 0.4, 0.0, 0.0], 0.1, 3, rng=1)),
    ("prior must be", lambda p: attacks.guess_values(p, [1.0], 0.1, 3, rng=1)),
    ("prior must be", lambda p: attacks.guess_values(p, [1.5, -0.5, 0, 0], 0.1, 3, rng=1)),
    ("change must be", lambda p: attacks.guess_values(p, [0.25] * 4, 1.5, 3, rng=1)),
    ("change must be", lambda p: attacks.guess_values(p, [0.25] * 4, math.nan, 3, rng=1)),
    ("rounds must be", lambda p: attacks.guess_values(p, [0.25] * 4, 0.5, 0, rng=1)),
    ("method must be", lambda p: attacks.guess_values(p, [0.25] * 4, 0.5, 2, method="b", rng=1)),
    ("reports must be", lambda p: attacks.change(p, 0, rng=1)),
    ("n must be", lambda p: attacks.change(p, 1, n=0, rng=1)),
    ("reports must be", lambda p: attacks.linking(p, 0, n=10, rng=1)),
    ("n must be", lambda p: attacks.linking(p, 1, n=1, rng=1)),
    ("reports must ascend", lambda p: attacks.averaging(p, (), rng=1)),
    ("reports must ascend", lambda p: attacks.averaging(p, (3, 3), rng=1)),
    ("targets must be different", lambda p: attacks.poisoning_gain(p, 9, 1, [])),
    ("targets must be different", lambda p: attacks.poisoning_gain(p, 9, 1, [1, 1])),
    ("targets must be", lambda p: attacks.poisoning_gain(p, 9, 1, [4])),
    ("keys must be", lambda p: attacks.poisoning_gain(p, 9, 1, [1], keys="own")),
    ("fakes must be", lambda p: attacks.poisoning(p, [1, 2], 0, [1], rng=1)),
    ("alarm must be", lambda p: attacks.rounds_until_seen(p, 5, alarm=0)),
    ("protocol must send", lambda p: attacks.rounds_until_seen(example("rappor", k=4), 5)),
    ("protocol must", lambda p: attacks.guess_values(example("oue", k=2), [0.5] * 2, 0, 2, rng=1)),
]  # fmt: skip


@pytest.mark.parametrize(("error", "call"), REFUSED)
def test_bad_input_is_refused(error: str, call: Any) -> None:
    with pytest.raises(ParameterError, match=error):
        call(example("biloloha", k=4))
