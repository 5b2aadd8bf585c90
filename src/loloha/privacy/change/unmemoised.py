"""The AUC of a change without memoisation: at most that between two known values.

Reports of a fresh key each, or a server that knows two candidate values.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.hashing import XXHash
from loloha.privacy.likelihood import scores_of_counts
from loloha.privacy.roc import AUC, SEED, best_auc
from loloha.protocols import Protocol

if TYPE_CHECKING:
    from loloha.arrays import Floats, Ints

_FEWEST, _MOST = 1 << 9, 1 << 13
# Hashes of all cases of a kind, and values of a larger domain that are looked at.
_HASHES, _VALUES = 1 << 20, 1 << 7
# Differences of a stretch for which the distribution of both stretches is gone through.
_DIFFERENCES = 1 << 9
# Standard deviations beyond which a sum does not go: e^-72.
DEVIATIONS = 12


def bound(protocol: Protocol, reports: int) -> AUC:
    """As if the server knew the two values of a possible change."""
    # What matters is how many more reports support the one than the other.
    gain, loss = _steps(protocol)
    most = min(reports, math.ceil(reports * (gain - loss)) + _width(gain, loss, reports))
    if most > _DIFFERENCES:
        return _value_known(gain, loss, reports)
    pmf = _walk(gain, loss, reports, most)
    stayed = np.outer(pmf, pmf) + np.outer(pmf[::-1], pmf[::-1])
    return best_auc(stayed, np.outer(pmf, pmf[::-1]) + np.outer(pmf[::-1], pmf))._replace(
        bound=True
    )


def _steps(protocol: Protocol) -> tuple[float, float]:
    """Chances that a report supports the value and not a given other one, and the reverse."""
    p, q = float(protocol.first_channel.p), float(protocol.first_channel.q)
    if protocol.g is None:
        return p * (1 - q), q * (1 - p)
    apart = 1 - float(protocol.encoding.collision)
    return apart * p, apart * q


def _value_known(gain: float, loss: float, reports: int) -> AUC:
    """As if the server also knew the value before."""
    # Then reports after the change matter alone, of a user whose value stayed and of one who moved.
    steps = 2 * reports
    width = _width(gain, loss, steps)
    if steps * (gain - loss) > width:
        return AUC(1.0, 0.0, bound=True)
    pmf = _walk(gain, loss, steps, min(steps, 2 * width))
    middle = len(pmf) // 2
    return AUC(min(1.0, float(pmf[middle + 1 :].sum() + pmf[middle] / 2) + 1e-9), 0.0, bound=True)


def _width(gain: float, loss: float, steps: int) -> int:
    """How far a sum goes from its mean."""
    return math.ceil(DEVIATIONS * math.sqrt(steps * (gain + loss)) + DEVIATIONS)


def _walk(gain: float, loss: float, steps: int, most: int) -> Floats:
    """Distribution of a sum of steps of +1, -1 or 0: from -most to most."""
    size = 2 * most + 1
    angle = 2 * np.pi * np.arange(size // 2 + 1) / size
    transform = 1 - gain - loss + gain * np.exp(-1j * angle) + loss * np.exp(1j * angle)
    pmf: Floats = np.maximum(np.roll(np.fft.irfft(transform**steps, size), most), 0.0)
    return pmf


def hashes(protocol: Protocol, reports: int) -> AUC:
    """Of local hashing with a fresh key in every report: how often each value was supported."""
    encoding: Any = protocol.encoding
    channel: Any = protocol.first_channel
    family, rng = encoding.family, np.random.default_rng(SEED)
    shown = min(protocol.k, max(2, min(_VALUES, _HASHES // (2 * reports * _FEWEST))))
    cases = int(np.clip(_HASHES // (2 * reports * shown), _FEWEST, _MOST))
    # Which value is the user's matters where not all pairs of them are alike under the keys.
    values = np.tile(np.arange(shown), (cases, 1))
    if shown < protocol.k:
        values = np.stack(
            [rng.choice(protocol.k, shown, replace=False, shuffle=False) for _ in values]
        )
    values = rng.permuted(values, axis=1)

    def supports(own: int) -> Ints:
        total = np.zeros((cases, shown), dtype=np.int64)
        for _ in range(reports):
            if type(family) is XXHash:
                # Taken as a random function, as its collision probability is.
                cells = rng.integers(0, family.g, size=(cases, shown))
            else:
                cells = family.hash_many(family.draw_many(cases, rng)[:, None], values)
            lie = rng.integers(1, channel.g, cases)
            shift = np.where(rng.random(cases) < float(channel.p), 0, lie)
            total += cells == ((cells[:, own] + shift) % channel.g)[:, None]
        return total

    log_ratio = math.log(channel.p / channel.q)
    stayed = []
    for moved in (0, 1):
        scores = scores_of_counts(supports(0), supports(moved), log_ratio)
        # The score is ln of sums: of what moved, and of what stayed again.
        with np.errstate(over="ignore"):
            ratio = np.maximum(np.expm1(scores), 0.0) / (shown - 1)
        stayed.append(1 / (1 + ratio))
    shares = np.stack(stayed, axis=1)
    return best_auc(shares, 1 - shares, drawn=True)
