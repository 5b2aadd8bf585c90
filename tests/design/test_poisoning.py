"""The documented push of m fakes, by simulation for every protocol."""

from typing import Any

import numpy as np
import pytest

import loloha
from loloha.design.poisoning import push
from loloha.errors import ParameterError
from loloha.rules.protocols import REGISTRY

N, M, K = 2_000, 200, 8


def make(name: str) -> Any:
    sizes: dict[str, Any]
    sizes = {"eps_inf": 2.0, "eps_1": 1.0} if REGISTRY[name].longitudinal else {"eps": 1.0}
    if "b" in REGISTRY[name].__dataclass_fields__:
        # Many more buckets than are sampled: the push was 8 times too small here.
        sizes = {"eps_inf": 2.0, "b": 8, "d": 1}
    return loloha.protocol(name, k=K, **sizes)


def lies(protocol: Any, value: int, m: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """m reports that are valid, and support the value."""
    encoding = protocol.encoding
    if encoding.kind == "symbol":
        return None, np.full(m, value)
    if encoding.kind == "keyed symbol":
        keys = encoding.family.draw_many(m, rng)
        return keys, np.array([encoding.family.hash(int(key), value) for key in keys])
    bits = np.zeros((m, (encoding.report_bits - encoding.key_bits + 7) // 8), dtype=np.uint8)
    if encoding.kind == "bits":
        bits[:, value // 8] = 1 << value % 8
        return None, bits
    bits[:, 0] = 1
    return np.full((m, 1), value), bits


@pytest.mark.parametrize("name", sorted(REGISTRY))
@pytest.mark.parametrize("held", [0.0, 0.5])
def test_m_fakes_push_an_estimate_by_the_formula(name: str, held: float) -> None:
    protocol = make(name)
    rng = np.random.default_rng(22)
    value, runs = 3, 20
    values = np.full((N, 1), 5)
    values[: int(held * N)] = value
    moved = []
    for seed in range(runs):
        tally = protocol.tally()
        for t, keys, ys in reports_of(protocol, values, seed):
            assert t == 0
            tally.update(keys, ys)
        before = tally.estimate().frequencies[value]
        tally.update(*lies(protocol, value, M, rng))
        moved.append(tally.estimate().frequencies[value] - before)
    mean, error = float(np.mean(moved)), float(np.std(moved)) / runs**0.5
    expected = push(protocol, N, M, held)
    # alpha < 2e-9 for the noise of the mean, and 1 % for the second order of a random reach.
    assert abs(mean - expected) < 6.1 * error + 0.01 * expected + 1e-12, (mean, expected, error)


def reports_of(protocol: Any, values: Any, seed: int) -> Any:
    from loloha.study.samplers import Draws, History, sample_reports

    draws = Draws(np.random.default_rng(seed))
    for t, sent in enumerate(sample_reports(protocol, History(values, K), draws)):
        yield t, sent.keys, sent.ys


def test_fakes_weigh_more_where_few_users_reach_a_bucket() -> None:
    wide = loloha.DBitFlipPM(k=64, eps_inf=2.0, b=64, d=1)
    of_all = 10 / 64_000 * (1 - wide.q_star) / (wide.p_star - wide.q_star)
    assert push(wide, 64_000, 10) == pytest.approx(64 * of_all, rel=0.02)
    assert push(wide, 1000, 0) == 0.0
    with pytest.raises(ParameterError, match="n must be"):
        push(wide, 0, 1)
