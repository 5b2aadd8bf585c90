"""Bounds on shuffled reports at every scale, held against events whose chances are known."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import loloha
from loloha import privacy
from loloha.privacy import blanket
from loloha.protocols import Protocol

ONE_ROUND = (loloha.GRR, loloha.BLH, loloha.OLH, loloha.SUE, loloha.OUE)
TWO_ROUNDS = (
    loloha.LGRR,
    loloha.BiLOLOHA,
    loloha.OLOLOHA,
    loloha.RAPPOR,
    loloha.LOSUE,
    loloha.LOUE,
    loloha.LSOUE,
)
ALL = [0.1, 0.5, 1.0, 3.0, 7.0, 10.0, 14.0, 18.0, 20.0, 23.0, 24.0, 28.0, 32.0, 37.0, 50.0, 700.0]


def protocols(scales: list[float], domains: tuple[int, ...] = (2, 3, 40)) -> list[Protocol]:
    found: list[Protocol] = []
    for eps, k in itertools.product(scales, domains):
        found += [kind(k=k, eps=eps) for kind in ONE_ROUND]
        found += [kind(k=k, eps_inf=eps, eps_1=eps / 2) for kind in TWO_ROUNDS]
        found.append(loloha.DBitFlipPM(k=k, eps_inf=eps, b=k, d=min(k, 2)))
    return found


def told(protocol: Protocol, n: int, delta: float) -> float:
    """The eps of one data set and its best event "so many reports bear the user's mark".

    All others hold the other one of the two values, and send the mark under the user's key.
    """
    first: Any = protocol.first_channel
    second: Any = protocol.second_channel
    encoding: Any = protocol.encoding
    p, q = first.p, first.q
    if second is not None:
        p, q = encoding.chain(first.p, first.q, second.p, second.q)
    p, q = float(p), float(q)
    others = binom(n - 1, q / encoding.key_count)
    t = np.unique(np.geomspace(1, n, 200).astype(int))
    more, as_many = others.sf(t - 2), others.sf(t - 1)
    held, other = (one * more + (1 - one) * as_many for one in (p, q))
    found = (held > delta) & (other > 0)
    least = np.log((held[found] - delta) / other[found])
    return float(least.max(initial=0.0))


def is_safe(protocol: Protocol, n: int, delta: float) -> None:
    found = privacy.shuffled(protocol, n, delta).first
    assert told(protocol, n, delta) <= found.eps * (1 + 1e-9) + 1e-12
    assert found.lower <= found.eps <= found.local


@pytest.mark.parametrize("protocol", [*protocols([3.0], (3,)), loloha.BLH(k=3, eps=28.0)], ids=repr)
def test_no_event_tells_more_than_the_bound(protocol: Protocol) -> None:
    is_safe(protocol, 10, 1e-6)


# Nine kinds of rounds and thirteen of protocols: each meets each at some scale. Seconds a bound.
ROUNDS = itertools.cycle(itertools.product([2, 10, 1000], [1e-12, 1e-6, 0.1]))


@pytest.mark.long
@pytest.mark.parametrize(
    ("protocol", "round"), [*zip(protocols(ALL, (2, 40)), ROUNDS, strict=False)], ids=repr
)
def test_no_event_tells_more_than_the_bound_at_any_scale(
    protocol: Protocol, round: tuple[int, float]
) -> None:
    is_safe(protocol, *round)


@pytest.mark.long
@pytest.mark.parametrize("protocol", protocols(ALL[::3], (3,)), ids=repr)
def test_no_event_of_a_million_users_tells_more(protocol: Protocol) -> None:
    is_safe(protocol, 1_000_000, 1e-6)


@pytest.mark.parametrize(("k", "eps", "n"), [
    (3, 28.0, 10), *(pytest.param(*case, marks=pytest.mark.long) for case in (
        (3, 23.0, 2), (3, 24.0, 10), (3, 32.0, 1000), (2, 50.0, 2)
    ))
])  # fmt: skip
def test_bits_that_hardly_anybody_sends_hide_nobody(k: int, eps: float, n: int) -> None:
    protocol = loloha.OUE(k=k, eps=eps)
    assert told(protocol, n, 1e-6) > 20
    is_safe(protocol, n, 1e-6)


@pytest.mark.parametrize("eps", [3.0, pytest.param(28.0, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", [loloha.GRR, loloha.OUE, loloha.BLH])
def test_more_users_and_more_delta_never_cost(kind: Any, eps: float) -> None:
    protocol = kind(k=3, eps=eps)

    def bound(n: int, delta: float) -> float:
        return privacy.shuffled(protocol, n, delta).first.eps

    # Within what an eps is searched to.
    users = [bound(n, 1e-6) for n in (2, 10, 1000)]
    deltas = [bound(10, delta) for delta in (1e-9, 1e-6, 1e-2)]
    for falling in (users, deltas):
        assert all(a >= b * (1 - 2e-4) for a, b in itertools.pairwise(falling))
        assert all(math.isfinite(one) for one in falling)


@pytest.mark.parametrize("local", [0.4, 2.0, 5.0])
@pytest.mark.parametrize("n", [2, 9, 40])
def test_two_symbols_are_compared_as_all_counts_say(n: int, local: float) -> None:
    p = 1 / (1 + math.exp(-local))
    divergence = blanket.of_two_symbols(p, 1 - p, n, 1.0)
    sent = {
        chance: binom.pmf(np.arange(n + 1)[:, None], np.arange(n), chance) for chance in (p, 1 - p)
    }
    for eps in (0.0, 0.3 * local, 0.8 * local):
        worst = 0.0
        for ones in range(n):
            others = np.convolve(sent[p][:, ones], sent[1 - p][:, n - 1 - ones])[:n]
            one, two = (np.convolve(others, [1 - chance, chance]) for chance in (p, 1 - p))
            worst = max(worst, float(np.maximum(one - math.exp(eps) * two, 0).sum()))
        assert worst <= divergence(eps) <= worst * (1 + 1e-8) + 1e-12
