"""Frequencies over a window of rounds, from all reports of each user together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loloha import checks
from loloha.encodings import Hashed, Symbols
from loloha.errors import ParameterError, WireError
from loloha.protocols import Protocol
from loloha.protocols.base import speakable
from loloha.server.estimate import normal_quantile
from loloha.server.interval import Inversion, Scatter

if TYPE_CHECKING:
    from loloha.arrays import Array, Floats, Ints

__all__ = ["Scores", "Window", "decode"]

METHODS = ("auto", "likelihood", "mean")
LEAST_GAIN = 0.001
"""Less of the variance than this is not worth an assumption."""
FALSE_ALARM = 0.05
"""Chance, over all values, that users who keep their values are taken for ones who do not.

By the normal approximation, where all report equally often: more where few reports support a value.
"""
SCALE = 1 << 20
# Values x users whose symbols are looked up at once.
_AT_ONCE = 1 << 22
# Sums of whole numbers stay exact in floating point.
_LARGEST_SUM = 1 << 50


@dataclass(frozen=True, eq=False)
class Window:
    """Frequencies among the reports of several rounds.

    Attributes
    ----------
    protocol : Protocol
    method : {"likelihood", "mean"}
        How they were decoded.
    reason : str
        Why so, in plain words.
    n, rounds : int
        Users (where reports are not joined, reports of a mean round), and rounds.
    frequencies, standard_errors : float64[k]
        As of an `Estimate`: unbiased, and the errors of users who keep their values. The plain mean
        is unbiased where they change, too, and its errors are then upper bounds.
    gain : float or None
        Share of the variance of a rare value that decoding by likelihood saves if nobody changes.
    seen : float or None
        Share of the squared error, summed over the values, that it saves by what these reports
        show, changes included; below 0 it loses. Itself an estimate.
    """

    protocol: Protocol
    method: str
    reason: str
    n: int
    rounds: int
    frequencies: Floats
    standard_errors: Floats
    gain: float | None = None
    seen: float | None = None
    inversion: Inversion | None = field(default=None, repr=False)
    doubt: Floats | float = field(default=0.0, repr=False)

    def interval(self, level: float = 0.95, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Lower and upper end of the interval of each value, in [0, 1]; float64[k] each.

        Parameters
        ----------
        level : float
            Chance, in (0, 1), that the interval of one given value holds its true frequency.
        simultaneous : bool
            As of `Estimate.interval`.

        Notes
        -----
        Where values were decoded by likelihood, those that the plain mean gives otherwise have
        wider intervals: by as much as both differ beyond the standard error of their difference.
        """
        test = self.inversion or Inversion(
            self.frequencies, Scatter(self.standard_errors**2, 0.0, 0.0), 0.0, (0.0, 0.0)
        )
        low, high = test.interval(level, simultaneous=simultaneous)
        return np.maximum(low - self.doubt, 0), np.minimum(high + self.doubt, 1)


@dataclass(frozen=True)
class Scores:
    """What it says of a value that s of T reports of a user support it.

    Parameters
    ----------
    protocol : Protocol
        With two rounds over symbols.
    reports : int
        T, at least 1.

    Notes
    -----
    The memoised answer supports the value with probability p1 or q (`held`, `other`), and then each
    report with p2, else q2. The score is the probability that the user holds the value, given s
    and 1/k beforehand, in whole multiples of 2^-20 of the largest: of all functions of s it has the
    least variance for users drawn at equal frequencies (it is the regression on s of who holds
    the value). Any function gives an unbiased estimate once its means are known, which are those
    of the rounded one. Source: MATH sections 13 and 16.
    """

    protocol: Protocol
    reports: int

    @property
    def second(self) -> tuple[float, float]:
        """p and q of the second round, which there is."""
        channel: Any = self.protocol.second_channel
        return float(channel.p), float(channel.q)

    @cached_property
    def laws(self) -> tuple[Floats, Floats]:
        """Law of s where the user holds the value, and another one; float64[T + 1] each."""
        exact = self.protocol.realised
        memo = self.protocol.encoding.supporting(exact.p1, exact.q1)
        binomials = [_binomial(self.reports, p) for p in self.second]
        own, other = (float(p) * binomials[0] + float(1 - p) * binomials[1] for p in memo)
        return own, other

    @cached_property
    def table(self) -> Ints:
        """The score of s = 0..T, int64[T + 1]: at most 2^20."""
        exact = self.protocol.realised
        memo = [float(p) for p in self.protocol.encoding.supporting(exact.p1, exact.q1)]
        p2, q2 = self.second
        s = np.arange(self.reports + 1)
        shown = s * math.log(p2 / q2) + (self.reports - s) * (math.log1p(-p2) - math.log1p(-q2))
        # The chance that the memo supports it would have after s reports at even odds.
        chance = 1 / (1 + np.exp(-np.clip(shown, -700, 700)))
        among = (memo[0] + (self.protocol.k - 1) * memo[1]) / self.protocol.k
        own, drawn = (m * chance + (1 - m) * (1 - chance) for m in (memo[0], among))
        scores: Ints = np.rint(SCALE * own / drawn * (among / memo[0])).astype(np.int64)
        return scores

    def moments(self, scores: Any) -> Moments:
        """Means and variances of a function of s, given at 0..T."""
        own, other = ((law @ scores, law @ scores**2) for law in self.laws)
        return Moments(own[0], other[0], own[1] - own[0] ** 2, other[1] - other[0] ** 2)


class Moments(NamedTuple):
    """Mean and variance of a user's score of a value that is held, and of another one."""

    held: float
    other: float
    held_variance: float
    other_variance: float


def decode(protocol: Protocol, keys: Any, ys: Any, *, method: str = "auto") -> Window:
    """Frequencies over a window of rounds, from all reports of each user together.

    Parameters
    ----------
    protocol : Protocol
        With two rounds over symbols: LOLOHA, L-GRR.
    keys : int64[n] or None
        Of each user; None for L-GRR.
    ys : int[n, T]
        The symbol that each user sent in each round, -1 where none was sent.
    method : {"auto", "likelihood", "mean"}
        By default likelihood, but the plain mean where the reports show that users change so much
        that it has the smaller squared error.

    Returns
    -------
    Window

    Raises
    ------
    ParameterError
        If the protocol has no second round over symbols, or there is no report.
    WireError
        If an array has another shape or type, or a report is out of range.

    Notes
    -----
    A user who sent T reports, s of which support v, adds a score of s, less its mean where v is not
    held; see `Scores`. Unbiased for users who keep their value in the window, whenever they report:
    a longer history weighs more. Where values change it is biased, and the plain mean is not: their
    difference shows the bias. With psi_u the mean's and delta_u the difference's part of user u,
    squared errors differ in expectation by that of

        sum over v of [ (sum delta_u)^2 + 2 sum psi_u delta_u - 2 (sum psi_u)(sum delta_u) / n ]

    but for what users differ by among themselves, a term of order 1/n without the noise. "auto"
    takes the mean where this is positive, and where a single value differs by more than noise
    explains at 95 %, all values at once: the sum drowns what happens to one. That is a test of one
    frequency in both decodings, not of change alone: users of some values who report more often
    weigh more, too. Its 95 % is a normal approximation, and alarms are more often false where few
    reports support a value (docs/frontier.md). The choice is made from the same reports, once for
    all values.
    """
    checks.choice("method", method, METHODS)
    reports = _Reports(protocol, *_checked(protocol, keys, ys))
    scores = {t: Scores(protocol, t) for t in reports.lengths}
    plain = _decoded(reports, [np.arange(t + 1) for t in reports.lengths], scores)
    likely = _decoded(reports, [scores[t].table for t in reports.lengths], scores)
    gain = float(1 - likely.other / plain.other)
    seen = _seen(reports, plain, likely)
    moved = likely.frequencies - plain.frequencies
    noise = _noise(reports, likely.parts - plain.parts)
    if method == "auto":
        bound = normal_quantile(1 - FALSE_ALARM / (2 * len(moved)))
        method, reason = _choice(gain, seen, stands_out=bool((np.abs(moved) > bound * noise).any()))
    else:
        reason = "asked for"
    chosen = likely if method == "likelihood" else plain
    doubt = np.maximum(np.abs(moved) - noise, 0) if method == "likelihood" else 0.0
    scatter = Scatter(chosen.other, chosen.held - chosen.other, 0.0)
    errors = np.sqrt(scatter.at(np.clip(chosen.frequencies, 0, 1)))
    # All reports of a user may support a value: by so much one more user moves its estimate.
    unit = float(np.ptp(chosen.parts, axis=1).max())
    return Window(
        protocol, method, reason, reports.n, reports.rounds, chosen.frequencies, errors, gain, seen,
        Inversion(chosen.frequencies, scatter, unit, (1.0, 1.0)), doubt,
    )  # fmt: skip


def decodable(protocol: Protocol) -> bool:
    """Whether there is a second round over symbols, that lies: else a report is a memo."""
    second: Any = protocol.second_channel
    return type(protocol.encoding) in (Hashed, Symbols) and second is not None and second.q > 0


def _choice(gain: float, seen: float, *, stands_out: bool) -> tuple[str, str]:
    if gain < LEAST_GAIN:
        return "mean", "so few reports a user leave nothing to gain"
    if seen <= 0:
        return "mean", "users change their values, or report unevenly: likelihood would lose"
    if stands_out:
        return "mean", "more users hold or report a value in some rounds: likelihood would err"
    return "likelihood", "users keep their values well enough for all their reports to be one"


class _Reports:
    """Checked reports of each user who sent any."""

    def __init__(self, protocol: Protocol, keys: Ints | None, ys: Ints) -> None:
        sent = (ys >= 0).sum(axis=1)
        present = sent > 0
        self.rounds = ys.shape[1]
        self.sent: Ints = sent[present]
        self.n = len(self.sent)
        if not self.n:
            raise ParameterError("ys must hold at least one report, got none; wait for some")
        self.lengths: Sequence[int] = np.unique(self.sent).tolist()
        self.encoding: Any = protocol.encoding
        self.keys = None if keys is None else keys[present]
        second: Any = protocol.second_channel
        ys, g = ys[present], int(second.g)
        users, _ = np.nonzero(ys >= 0)
        cells = users * g + ys[ys >= 0]
        self.counts: Ints = np.bincount(cells, minlength=self.n * g).reshape(self.n, g)

    def support(self, scores: Any) -> Ints:
        """sum over users of the score of the symbol that v is to them; int64[n, g] to int64[k]."""
        if self.keys is None:
            total: Ints = scores.sum(axis=0)
            return total
        family, encoding = self.encoding.family, self.encoding
        if encoding.tabled:
            cells = (self.keys[:, None] * family.g + np.arange(family.g)).ravel()
            # Whole numbers below 2^53: exact.
            table = np.bincount(cells, weights=scores.ravel(), minlength=encoding.cells)
            decoded: Ints = encoding.support(table.astype(np.int64))
            return decoded
        support = np.empty(family.k, dtype=np.int64)
        step = max(1, _AT_ONCE // self.n)
        for start in range(0, family.k, step):
            values = np.arange(start, min(start + step, family.k))
            symbols = family.hash_many(self.keys[:, None], values)
            support[values] = np.take_along_axis(scores, symbols, axis=1).sum(axis=0)
        return support


class _Decoded(NamedTuple):
    """Estimates, each user's part of the one of a symbol, and variances at f = 1 and f = 0."""

    frequencies: Floats
    parts: Floats
    held: float
    other: float


def _decoded(reports: _Reports, tables: Sequence[Any], scores: dict[int, Scores]) -> _Decoded:
    """Estimates from the sums of any function of s, given at 0..T for each T."""
    each, mean_other = np.empty_like(reports.counts), np.empty(reports.n)
    contrast = own = other = 0.0
    for length, table in zip(reports.lengths, tables, strict=True):
        users = reports.sent == length
        moments = scores[length].moments(table.astype(np.float64))
        each[users], mean_other[users] = table[reports.counts[users]], moments.other
        size = int(users.sum())
        contrast += size * (moments.held - moments.other)
        own += size * moments.held_variance
        other += size * moments.other_variance
    frequencies = (reports.support(each) - mean_other.sum()) / contrast
    parts = (each - mean_other[:, None]) / contrast
    return _Decoded(frequencies, parts, own / contrast**2, other / contrast**2)


def _seen(reports: _Reports, plain: _Decoded, likely: _Decoded) -> float:
    """By how much of the mean's squared error the likelihood's is smaller: see `decode`."""
    apart = likely.parts - plain.parts
    moved = likely.frequencies - plain.frequencies
    together = _sums(reports, plain.parts * apart)
    worse = moved**2 + 2 * (together - plain.frequencies * moved / reports.n)
    f = np.clip(plain.frequencies, 0, 1)
    return float(-worse.sum() / (f * plain.held + (1 - f) * plain.other).sum())


def _noise(reports: _Reports, apart: Floats) -> Floats:
    """Standard error of a sum over users, by how their parts scatter; float64[k]."""
    sums, squares = _sums(reports, apart), _sums(reports, apart**2)
    noise: Floats = np.sqrt(np.maximum(squares - sums**2 / reports.n, 0))
    return noise


def _sums(reports: _Reports, parts: Floats) -> Floats:
    """Sums over users of the part of the symbol that a value is to them, float64[k]."""
    largest = float(np.abs(parts).max())
    if not largest:
        return np.zeros(reports.encoding.bins)
    unit = _LARGEST_SUM / (largest * reports.n)
    return reports.support(np.rint(parts * unit).astype(np.int64)) / unit


def _checked(protocol: Protocol, keys: Array, ys: Array) -> tuple[Ints | None, Ints]:
    """Keys int64[n] and symbols int64[n, T], all valid or -1."""
    encoding = speakable(protocol).encoding
    if not decodable(protocol):
        raise ParameterError(
            f"protocol must have a second round over symbols, got {protocol!r}; take the mean of "
            "its rounds (loloha.mean)"
        )
    try:
        answers = np.asarray(ys)
    except (ValueError, OverflowError, TypeError):
        raise WireError(
            "ys must be integers of shape [users, rounds], got rows of several lengths; put -1 "
            "where nothing was sent"
        ) from None
    if answers.ndim != 2 or answers.dtype.kind not in "iu":
        raise WireError(
            f"ys must be integers of shape [users, rounds], got {answers.dtype} of shape "
            f"{answers.shape}; put -1 where nothing was sent"
        )
    # Before a cast: what is too large for int64 would come out negative, as if not sent.
    if answers.dtype.kind == "u" and answers.size and int(answers.max()) >= 1 << 63:
        raise WireError("every report must be a symbol or -1, got one out of range; drop it")
    answers = answers.astype(np.int64)
    many = None if keys is None else np.asarray(keys)
    if (many is None) != (encoding.key_bits == 0) or (
        many is not None and (many.dtype.kind not in "iu" or many.shape != answers.shape[:1])
    ):
        raise WireError("keys must be one integer a user, or None for L-GRR; give them so")
    whose = None if many is None else many.astype(np.int64)
    for column in answers.T:
        sent = column != -1
        if not encoding.valid(None if whose is None else whose[sent], column[sent]).all():
            raise WireError(
                f"every report must be one of {protocol.name}, got one out of range; drop or "
                "repair it"
            )
    return whose, answers


def _binomial(n: int, p: float) -> Floats:
    """Law of the number of successes in n trials."""
    s = np.arange(n + 1)
    ways = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in s.tolist()]
    law: Floats = np.exp(np.array(ways) + s * math.log(p) + (n - s) * math.log1p(-p))
    return law
