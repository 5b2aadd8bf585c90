"""Frequencies over a window of rounds, from all reports of each user together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha import checks
from loloha.encodings import Hashed, Symbols
from loloha.engines import constancy
from loloha.engines.scores import Scores
from loloha.errors import ParameterError, WireError
from loloha.protocols import Protocol
from loloha.protocols.base import speakable
from loloha.server.interval import Inversion, Scatter

if TYPE_CHECKING:
    from loloha.arrays import Array, Floats, Ints

__all__ = ["Scores", "Window", "decode"]

METHODS = ("auto", "likelihood", "mean")
LEAST_GAIN = 0.001
"""Least gain of variance that justifies the assumption."""
_PARTS: tuple[Callable[[constancy.Length], Floats], ...] = (
    lambda score: score.plain,
    lambda score: score.likely,
)
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
        Share of the squared error, summed over the values, that decoding by likelihood saves if
        nobody changes.
    seen : float or None
        Share of it that these reports show it to save, changes included; below 0 it loses. Itself
        an estimate.
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
    A user who sent T reports, s of which support v, adds a score of s, less its mean
    for other values, see `Scores`, with the weight of T reports: as in the plain mean, which has
    the score s. So both are unbiased for the same frequencies where users keep their value in the
    window, whoever reports how often. Where values change the mean is still unbiased and decoding
    is not: their difference shows the bias. With psi_u the mean's and delta_u the difference's part
    of user u, squared errors differ in expectation by that of

        sum over v of [ (sum delta_u)^2 + 2 sum psi_u delta_u - 2 (sum psi_u)(sum delta_u) / n ]

    but for what users differ by among themselves, a term of order 1/n without the noise. "auto"
    takes the mean where this is positive, by `constancy.DEVIATIONS` more than if nobody changed,
    and where a single value moves by more than keeping users explain: the sum drowns what happens
    to one. Both are tests of a change alone, whose false alarms are rare for few users and rare
    supports, too (docs/frontier.md). The choice is made from the same reports, once for all values.
    """
    checks.choice("method", method, METHODS)
    reports = _Reports(protocol, *_checked(protocol, keys, ys))
    lengths, k = reports.weighted(protocol), reports.encoding.bins
    plain, likely = (np.concatenate([part(length) for length in lengths]) for part in _PARTS)
    mean, decoded, together = reports.sums(np.stack([plain, likely, plain * (likely - plain)]))
    ends = [constancy.variances(lengths, part) for part in _PARTS]
    # Summed over the values, whose frequencies add up to 1: independent of them.
    before, after = (own + (k - 1) * other for own, other in ends)
    gain, moved = 1 - after / before, decoded - mean
    worse = float((moved**2 + 2 * (together - mean * moved / reports.n)).sum())
    f = np.clip(mean, 0, 1)
    f /= max(1, float(f.sum()))
    if method == "auto":
        least = constancy.DEVIATIONS * constancy.spread(lengths, k, reports.g, f)
        loses = worse >= max(0.0, least - gain * before)
        method, reason = _choice(
            gain, loses=loses, stands_out=lambda: _stands_out(reports, lengths)
        )
    else:
        reason = "asked for"
    doubt: Floats | float = 0.0
    if method == "likelihood":
        noise = np.sqrt(
            constancy.at_share(constancy.variances(lengths, lambda score: score.apart), f)
        )
        doubt = np.maximum(np.abs(moved) - noise, 0)
    frequencies = decoded if method == "likelihood" else mean
    own, other = ends[method == "likelihood"]
    scatter = Scatter(other, own - other, 0.0)
    errors = np.sqrt(scatter.at(np.clip(frequencies, 0, 1)))
    # Largest influence of one user: all reports may support a value.
    part = _PARTS[method == "likelihood"]
    unit = max(float(np.ptp(part(length))) for length in lengths)
    return Window(
        protocol, method, reason, reports.n, reports.rounds, frequencies, errors, gain,
        -worse / before, Inversion(frequencies, scatter, unit, (1.0, 1.0)), doubt,
    )  # fmt: skip


def decodable(protocol: Protocol) -> bool:
    """Whether there is an instantaneous round over symbols; else a report is the memo."""
    second: Any = protocol.second_channel
    return type(protocol.encoding) in (Hashed, Symbols) and second is not None and second.q > 0


def _choice(gain: float, loses: bool, stands_out: Callable[[], bool]) -> tuple[str, str]:
    if gain < LEAST_GAIN:
        return "mean", "so few reports a user leave nothing to gain"
    if loses:
        return "mean", "users change their values: likelihood would lose"
    if stands_out():
        return "mean", "more users hold a value in some rounds than in others: likelihood would err"
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
        self.encoding: Any = protocol.encoding
        self.keys = None if keys is None else keys[present]
        second: Any = protocol.second_channel
        ys, self.g = ys[present], int(second.g)
        users, _ = np.nonzero(ys >= 0)
        cells = users * self.g + ys[ys >= 0]
        counts = np.bincount(cells, minlength=self.n * self.g).reshape(self.n, self.g)
        lengths, which = np.unique(self.sent, return_inverse=True)
        self.lengths: Sequence[int] = lengths.tolist()
        # Of each user and symbol: where s stands among the 0..T of all lengths, one after another.
        self.places: Ints = counts + (np.cumsum(lengths + 1) - lengths - 1)[which, None]

    def weighted(self, protocol: Protocol) -> list[constancy.Length]:
        """What each number of reports says, each report with the same weight."""
        return [
            Scores(protocol, t).length(int((self.sent == t).sum()), t / int(self.sent.sum()))
            for t in self.lengths
        ]

    def sums(self, tables: Floats) -> Floats:
        """Sums over users of functions of s, [functions, sum of T + 1], for each value, [., k]."""
        largest = np.abs(tables).max(axis=1, keepdims=True)
        unit = _LARGEST_SUM / (np.where(largest, largest, 1) * self.n)
        return self.support(np.rint(tables * unit).astype(np.int64)) / unit

    def support(self, tables: Ints) -> Ints:
        """`sums` of whole numbers."""
        if self.keys is None:
            return np.stack([table[self.places].sum(axis=0) for table in tables])
        family, encoding = self.encoding.family, self.encoding
        if encoding.tabled:
            cells = (self.keys[:, None] * family.g + np.arange(family.g)).ravel()

            def decoded(table: Ints) -> Ints:
                # Whole numbers below 2^53: exact.
                weights = table[self.places].ravel()
                counts = np.bincount(cells, weights=weights, minlength=encoding.cells)
                support: Ints = encoding.support(counts.astype(np.int64))
                return support

            return np.stack([decoded(table) for table in tables])
        support = np.empty((len(tables), family.k), dtype=np.int64)
        step = max(1, _AT_ONCE // self.n)
        for start in range(0, family.k, step):
            values = np.arange(start, min(start + step, family.k))
            symbols = family.hash_many(self.keys[:, None], values)
            places = np.take_along_axis(self.places, symbols, axis=1)
            for row, table in zip(support, tables, strict=True):
                row[values] = table[places].sum(axis=0)
        return support


def _stands_out(reports: _Reports, lengths: Sequence[constancy.Length]) -> bool:
    """Whether a single value moves by more than unchanging users explain."""
    sums = reports.sums(constancy.exponents(lengths, reports.encoding.bins))
    return constancy.evidence(sums) >= -math.log(constancy.FALSE_ALARM)


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
    # Before the cast: numbers too large for int64 would become negative, as if not sent.
    if answers.dtype.kind == "u" and answers.size and int(answers.max()) >= 1 << 63:
        raise WireError("every report must be a symbol or -1, got one out of range; drop it")
    answers = answers.astype(np.int64)
    many = None if keys is None else np.asarray(keys)
    if (many is None) != (encoding.key_bits == 0) or (
        many is not None and (many.dtype.kind not in "iu" or many.shape != answers.shape[:1])
    ):
        raise WireError("keys must be one integer per user, or None for L-GRR; pass one of them")
    whose = None if many is None else many.astype(np.int64)
    for column in answers.T:
        sent = column != -1
        if not encoding.valid(None if whose is None else whose[sent], column[sent]).all():
            raise WireError(
                f"every report must be one of {protocol.name}, got one out of range; drop or "
                "repair it"
            )
    return whose, answers
