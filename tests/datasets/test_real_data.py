"""On real data the measured error of each protocol is what the exact variance says."""

import numpy as np
import pytest

import loloha
from loloha.protocols import REGISTRY

STATES = {"MT": (10_336, 1412), "DE": (9_123, 1234)}
RUNS = 10
LARGEST_Z = 6.0
"""alpha = 2e-9 a test; sees an error of the variance of 6 sqrt(2 / (10 k)), some 7 %."""


def methods(k):
    """One of each registered protocol, by its fields; dBitFlipPM with a quarter of k buckets."""
    for name, cls in REGISTRY.items():
        known = {"eps": 2.0, "eps_inf": 4.0, "eps_1": 2.0, "b": k // 4}
        fields = cls.__dataclass_fields__
        params = {field: known[field] for field in known if field in fields}
        for d in (1, 16, k // 4) if "d" in fields else (None,):
            yield name, loloha.protocol(name, k=k, **params, **({} if d is None else {"d": d}))


@pytest.mark.parametrize("state", [pytest.param("MT", marks=pytest.mark.long), "DE"])
@pytest.mark.parametrize("name", [name for name, cls in REGISTRY.items() if cls.histogram])
def test_measured_error_is_the_exact_variance(state, name, real_data):
    n, k = STATES[state]
    weights = loloha.datasets.acs_weights(state, real_data)
    assert (weights.n, weights.k) == (n, k)
    for protocol in (protocol for known, protocol in methods(k) if known == name):
        f = protocol.encoding.frequencies(weights.frequencies()[0])
        squares, expected, spread = [], [], []
        for run in range(RUNS):
            tally = loloha.simulate(protocol, weights.values[:, :1], rng=run).tallies[0]
            estimate = tally.estimate()
            exact = loloha.variance(protocol, n, f, eligible=estimate.eligible)
            squares.append(np.mean((estimate.frequencies - f) ** 2))
            expected.append(exact.mean())
            # Errors of the values are near normal and near independent of each other.
            spread.append(2 * np.sum(exact**2) / len(exact) ** 2)
        z = (np.sum(squares) - np.sum(expected)) / np.sqrt(np.sum(spread))
        assert abs(z) < LARGEST_Z, (
            f"{protocol!r} on {state}: n = {n}, seeds 0..{RUNS - 1}, MSE {np.mean(squares):.6g}, "
            f"expected {np.mean(expected):.6g}, z = {z:.2f}"
        )
