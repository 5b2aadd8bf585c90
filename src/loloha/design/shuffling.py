"""Anonymous channels: what one round reveals if reports arrive shuffled, without their senders.

Other users' reports hide a user's own as far as they could have come from either value. Let each of
the n - 1 others, whatever the value, send each of two answers with a chance of at least r, and one
user send them with chances p and q, or q and p, or neither as often under both. Then what arrives
tells at most as much as, with a chance of p + q and else nothing,

    (A + D, C - A + 1 - D),  C ~ Bin(n - 1, 2r),  A ~ Bin(C, 1/2),  D ~ Bernoulli(p / (p + q)),

of which the hockey-stick divergence is summed up exactly: the clones of V. Feldman, A. McMillan and
K. Talwar (2021), for any n and eps. Reports that carry a key are shuffled among the users who share
it only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from loloha.design.transcript import eps_2
from loloha.errors import ParameterError
from loloha.rules import checks
from loloha.rules.encodings import Hashed, OneHot, SampledBuckets, Symbols
from loloha.rules.protocols import Protocol

MOST_USERS = 10_000_000
# Parts into which the law of a group's size is cut, each counted as its smallest; what lies beyond
# so many deviations has a chance far below any delta in use, and is added to delta.
_PARTS, _DEVIATIONS = 16, 8
# Answers of one kind, on average, of the users that are summed up over.
_CELLS = 1 << 11


class Amplified(NamedTuple):
    """Loss of a shuffled report at a delta.

    Attributes
    ----------
    eps : float
        At most; never above the loss without a shuffler.
    lower : float
        At least: attained where all others hold one value.
    local : float
        Without a shuffler, at delta = 0.
    closed : float or None
        The closed form of Feldman, McMillan and Talwar (2021), None outside its range,
        local <= ln(n / (16 ln(2/delta))), and where reports carry keys.
    """

    eps: float
    lower: float
    local: float
    closed: float | None


@dataclass(frozen=True)
class Shuffled:
    """What one round reveals through an anonymous channel.

    Attributes
    ----------
    n : int
        Users in the round.
    delta : float
    group : float
        Users, on average, among whom a report is shuffled: those who share its key.
    first : Amplified
        The first report of every user.
    round : Amplified
        One round among others that are all known, memos included.
    """

    n: int
    delta: float
    group: float
    first: Amplified
    round: Amplified

    @property
    def text(self) -> str:
        """In plain words."""
        found = [
            f"Shuffled among {self.n} users, {self.group:.4g} to a key, delta = {self.delta:g}:"
        ]
        for what, one in (("First report", self.first), ("Any one round", self.round)):
            attained = f", and no less than {one.lower:.4g} at worst" if one.lower else ""
            found.append(
                f"- {what}: eps = {one.eps:.4g} instead of {one.local:.4g}{attained}."
                if one.eps < one.local
                else f"- {what}: no amplification, eps = {one.local:.4g}."
            )
        found.append(
            "- Not covered: linking over rounds. A key or a fingerprint joins reports of one user "
            "behind the shuffler, and then the losses of rounds add up; the shuffler itself must "
            "be trusted not to tell who sent what, and the other users to be honest."
        )
        return "\n".join(found)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data; None where nothing is bounded."""
        plain = {
            name: {key: checks.finite(number) for key, number in one._asdict().items()}
            for name, one in (("first", self.first), ("round", self.round))
        }
        return {"n": self.n, "delta": self.delta, "group": self.group, **plain, "text": self.text}


def shuffled(protocol: Protocol, n: int, delta: float = 1e-6) -> Shuffled:
    """Loss of the first report and of a round if the reports of n users arrive shuffled.

    Parameters
    ----------
    protocol : Protocol
    n : int
        Users who report in the round, 1..10^7.
    delta : float
        Chance, in [1e-12, 0.1], with which the bound need not hold.

    Returns
    -------
    Shuffled

    Raises
    ------
    ParameterError
        If a number is out of range, or the protocol's encoding is unknown here.

    Notes
    -----
    `Amplified.lower` says how far the bound may be off. It covers one round only.
    """
    n = checks.integer("n", n, 1, MOST_USERS, "count the users of a round")
    if not (isinstance(delta, int | float) and 1e-12 <= delta <= 0.1):
        raise ParameterError(f"delta must be in [1e-12, 0.1], got {delta!r}; try 1e-6")
    encoding = protocol.encoding
    if type(encoding) not in (Symbols, Hashed, OneHot, SampledBuckets):
        raise ParameterError(
            "protocol must have an encoding of this package, got "
            f"{type(encoding).__name__}; its answers are unknown here"
        )
    keys = encoding.key_count
    first = _amplified(_first_report(protocol), n, keys, delta)
    if not protocol.longitudinal:
        later = first
    else:
        one = _later_report(protocol)
        once = eps_2(protocol)
        later = Amplified(once, 0.0, once, None) if one is None else _amplified(one, n, keys, delta)
    return Shuffled(n, float(delta), 1 + (n - 1) / keys, first, later)


class _Pair(NamedTuple):
    """The two answers that tell two values apart, and who sends them.

    The user sends one with chance p, the other with q. Others send each with at least r, and, if
    all of them hold what hides worst, with the chances of ``worst``.
    """

    p: float
    q: float
    r: float
    worst: tuple[float, float]


def _first_report(protocol: Protocol) -> _Pair:
    encoding: Any = protocol.encoding
    first: Any = protocol.first_channel
    second: Any = protocol.second_channel
    p, q = first.p, first.q
    if second is not None:
        p, q = encoding.chain(first.p, first.q, second.p, second.q)
    p, q = float(p), float(q)
    if protocol.g is not None:
        return _of_symbols(p, q, protocol.g)
    if encoding.size == 1:
        return _of_symbols(p, q, 2)
    # Two bits, one of each value: the others hold a third one, if there is any.
    one, other = p * (1 - q), q * (1 - p)
    third = q * (1 - q) if encoding.bins > 2 else other
    return _Pair(one, other, other, (third, third) if encoding.bins > 2 else (one, other))


def _later_report(protocol: Protocol) -> _Pair | None:
    """The fresh round alone, between two memos; None for bits, of which all may differ."""
    second: Any = protocol.second_channel
    if second is None or not second.q or protocol.g is None:
        return None
    return _of_symbols(float(second.p), float(second.q), protocol.g)


def _of_symbols(p: float, q: float, g: int) -> _Pair:
    return _Pair(p, q, q, (q, q) if g > 2 else (p, q))


def _amplified(pair: _Pair, n: int, keys: int, delta: float) -> Amplified:
    local = math.log(pair.p / pair.q)
    groups, beyond = _groups(n, keys)
    if delta <= beyond:
        groups, beyond = [(1.0, 1)], 0.0
    most = [(weight, _clones(pair, size, pair.r, pair.r, hidden=False)) for weight, size in groups]
    eps = _solve(lambda at: beyond + sum(w * one(at) for w, one in most), local, delta)
    lower, closed = 0.0, None
    if keys == 1:
        attained = _clones(pair, n, *pair.worst, hidden=True)
        # More users than are summed up over could only lower what is attained.
        known = n <= _summed(n, sum(pair.worst) / 2)
        lower = min(_solve(attained, local, delta, below=True), eps) if known else 0.0
        if n > 1 and local <= math.log(n / (16 * math.log(2 / delta))):
            b = math.exp(local)
            root = 8 * math.sqrt(b * math.log(4 / delta) / n)
            closed = math.log1p((b - 1) / (b + 1) * (root + 8 * b / n))
    return Amplified(eps, lower, local, closed)


def _solve(
    divergence: Callable[[float], float], local: float, delta: float, *, below: bool = False
) -> float:
    """Where a falling function of eps meets delta: from above, or from below."""
    low, high = 0.0, local
    if divergence(0.0) <= delta:
        return 0.0
    for _ in range(30):
        middle = (low + high) / 2
        if divergence(middle) > delta:
            low = middle
        else:
            high = middle
    return low if below else high


def _groups(n: int, keys: int) -> tuple[list[tuple[float, int]], float]:
    """Parts of the law of how many users share one's key: weight, and the smallest size in it.

    Also what lies beyond all of them.
    """
    if keys == 1:
        return [(1.0, n)], 0.0
    if n == 1 or (n - 1) / keys < 1e-3:
        # Hardly anybody shares a key: as if nobody did.
        return [(1.0, 1)], 0.0
    mean = (n - 1) / keys
    reach = _DEVIATIONS * math.sqrt(mean) + 2 * _DEVIATIONS
    lowest, highest = max(0, math.floor(mean - reach)), min(n - 1, math.ceil(mean + reach))
    sizes = np.arange(lowest, highest + 1)
    law = np.exp(_log_binomial(n - 1, sizes, 1 / keys))
    parts = np.array_split(np.arange(len(sizes)), min(_PARTS, len(sizes)))
    groups = [(float(law[part].sum()), 1 + int(sizes[part[0]])) for part in parts]
    return groups, max(0.0, 1 - float(law.sum()))


def _summed(n: int, r: float) -> int:
    """Users that are summed up over: more would only lower the divergence."""
    return min(n, max(2, int(_CELLS / r)))


def _clones(pair: _Pair, n: int, r: float, s: float, *, hidden: bool) -> Callable[[float], float]:
    """Hockey-stick divergence, of the worse direction, among n - 1 others who send with r and s.

    ``hidden``: what the user sends if neither answer looks like what the others send else. If not,
    it is taken to be recognised: then it says nothing of the value, but hides nothing either.
    """
    if n == 1:
        return lambda eps: max(0.0, pair.p - math.exp(eps) * pair.q)
    n = _summed(n, (r + s) / 2)
    low, high = _window(n - 1, r + s)
    share = r / (r + s)
    half = math.ceil(_DEVIATIONS * math.sqrt((high + 1) * share * (1 - share))) + 2
    # m answers of the two kinds arrive, a of the first: the user's own, or one of neither kind.
    m = np.arange(low, high + 2)[:, None]
    a = np.floor(m * share) + np.arange(-half, half + 1)[None]
    law = [_trinomial(n - 1, x, y, r, s) for x, y in ((a - 1, m - a), (a, m - a - 1), (a, m - a))]
    rest = max(0.0, 1 - pair.p - pair.q) * law[2] if hidden else 0.0
    one = (pair.p * law[0] + pair.q * law[1] + rest).ravel()
    two = (pair.q * law[0] + pair.p * law[1] + rest).ravel()
    kept = (one > 0) | (two > 0)
    one, two = one[kept], two[kept]

    def divergence(eps: float) -> float:
        factor = math.exp(eps)
        there, back = one - factor * two, two - factor * one
        return float(max(there[there > 0].sum(), back[back > 0].sum()))

    return divergence


def _window(trials: int, p: float) -> tuple[int, int]:
    """Where a binomial lies but for e^-32."""
    reach = _DEVIATIONS * math.sqrt(trials * p * (1 - p)) + 3 * _DEVIATIONS
    return max(0, math.floor(trials * p - reach)), min(trials, math.ceil(trials * p + reach))


def _trinomial(trials: int, x: Any, y: Any, r: float, s: float) -> Any:
    """Law of two of three counts; 0 where they are none."""
    logs = _log_factorial(np.arange(trials + 1))
    x, y = np.broadcast_arrays(x, y)
    there = (x >= 0) & (y >= 0) & (x + y <= trials)
    x, y = x[there].astype(np.int64), y[there].astype(np.int64)
    rest, left = trials - x - y, 1 - r - s
    tail = rest * math.log(left) if left > 1e-15 else np.where(rest > 0, -np.inf, 0.0)
    law = np.zeros(there.shape)
    ways = logs[trials] - logs[x] - logs[y] - logs[rest]
    law[there] = np.exp(ways + x * math.log(r) + y * math.log(s) + tail)
    return law


def _log_binomial(trials: int, x: Any, p: float) -> Any:
    ways = _log_factorial(trials) - _log_factorial(x) - _log_factorial(trials - x)
    return ways + x * math.log(p) + (trials - x) * math.log1p(-p)


def _log_factorial(x: Any) -> Any:
    """ln x! of whole numbers, to 1e-14 relative: Stirling's series from 9 on."""
    x = np.asarray(x, dtype=np.float64)
    small = _SMALL[np.minimum(x, len(_SMALL) - 1).astype(np.int64)]
    z = np.maximum(x, len(_SMALL)) + 1
    series = 1 / (12 * z) - 1 / (360 * z**3) + 1 / (1260 * z**5) - 1 / (1680 * z**7)
    stirling = (z - 0.5) * np.log(z) - z + 0.5 * math.log(2 * math.pi) + series
    return np.where(x < len(_SMALL), small, stirling)


_SMALL = np.array([math.lgamma(i + 1) for i in range(16)])
