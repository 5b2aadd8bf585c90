"""Additive counts of a whole series under a budget for changes, and what they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha import checks
from loloha.arrays import Floats, Ints
from loloha.counting.decode import linear_support
from loloha.errors import WireError
from loloha.report import Report
from loloha.server.interval import Inversion, Scatter
from loloha.server.tally import Additive
from loloha_lab.dyadic.protocol import DyadicLH


@dataclass(frozen=True, eq=False)
class DyadicEstimate:
    """Frequencies of all rounds.

    Attributes
    ----------
    protocol : DyadicLH
    frequencies : float64[rounds, k]
        Of histories whose bit changes at most ``protocol.changes`` times: unbiased for these, with
        a user of more changes held at the bit of the last one that counts. NaN in a round whose
        pieces nobody has reported yet.
    standard_errors : float64[rounds]
        The same for all values: what is left out, f^2 / n at most, makes them too large.
    """

    protocol: DyadicLH
    frequencies: Floats
    standard_errors: Floats

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends of an interval in [0, 1] of each estimate, float64[rounds, k] each.

        Normal, with the largest variance that any frequency has: where frequencies are not small
        it covers more often than ``level``.
        """
        scatter = Scatter(self.standard_errors[:, None] ** 2, 0.0, 0.0)
        return Inversion(self.frequencies, scatter, 0.0, (0.0, 0.0)).interval(level)


class DyadicTally(Additive):
    """Counts of the reports of a whole series; ``+`` merges, in any order.

    Parameters
    ----------
    protocol : DyadicLH

    Attributes
    ----------
    counts : int64[pieces, 2^m, 2]
        Reports of each dyadic interval with each seed and bit; only ever added to.
    n : int
        Number of reports counted.
    """

    __slots__ = ("_first",)
    protocol: DyadicLH

    def __init__(self, protocol: DyadicLH) -> None:
        super().__init__(protocol, (protocol.pieces, protocol.family.size, 2))
        sizes = [protocol.rounds >> level for level in range(protocol.levels)]
        self._first = np.cumsum([0, *sizes])

    def add(self, report: Report, *, round: int) -> None:
        """Count one report that was made at the end of a round.

        Raises
        ------
        WireError
            If it is not one of the protocol's, or not due in that round; nothing is counted.
        """
        if not isinstance(report, Report):
            raise WireError(
                f"report must be a loloha.Report, got {type(report).__name__}; decode it first"
            )
        key = report.key if isinstance(report.key, tuple) else ()
        self.update(np.array([key]), np.array([report.y]), round=round)

    def update(self, keys: Any, ys: Any, *, round: int) -> None:
        """Count n reports of one round at once; all of them or, if one is invalid, none.

        Parameters
        ----------
        keys : int64[n, 2]
            Seed and level of each user.
        ys : int64[n]
            Bits.
        round : int
            0..rounds - 1.

        Raises
        ------
        WireError
            If the arrays have another shape or type, or a report is out of range or not due.
        ParameterError
            If there is no such round.
        """
        protocol = self.protocol
        round = checks.integer("round", round, 0, protocol.rounds - 1, "count rounds from 0")
        keys, ys = np.asarray(keys), np.asarray(ys)
        shaped = ys.ndim == 1 and keys.shape == (len(ys), 2)
        if not shaped or keys.dtype.kind not in "iu" or ys.dtype.kind not in "iu":
            raise WireError(
                "keys and ys must be integers of shapes [n, 2] and [n], got "
                f"{keys.dtype}{list(keys.shape)} and {ys.dtype}{list(ys.shape)}; see DyadicTally"
            )
        seeds, levels = keys[:, 0].astype(np.int64), keys[:, 1].astype(np.int64)
        due = [protocol.is_due(level, round) for level in range(protocol.levels)]
        valid = protocol.family.are_keys(seeds) & (levels >= 0) & (levels < protocol.levels)
        valid &= np.array(due)[np.where(valid, levels, 0)] & ((ys == 0) | (ys == 1))
        if not valid.all():
            raise WireError(
                f"every report must be one of {protocol.name} that is due in the round, got "
                f"{np.count_nonzero(~valid)} others; drop or repair them"
            )
        pieces = self._first[levels] + ((round + 1) >> levels) - 1
        np.add.at(self.counts, (pieces, seeds, ys.astype(np.int64)), 1)
        self.n += len(ys)

    def reports(self) -> Ints:
        """Number of reports of each dyadic interval, level by level, int64[pieces]."""
        total: Ints = self.counts.sum(axis=(1, 2))
        return total

    def estimate(self) -> DyadicEstimate:
        """Frequencies of all rounds: of each, the sum of the dyadic intervals that make it up.

        Notes
        -----
        With s = 1 where the user's hash of v is the user's bit, else -1, a user who holds v has
        E[s] = 1 and any other 2 c0 - 1 = 1 - spread; an interval of which n reported has the
        mean (2 C(v) - n) / n of s times the answers, C(v) its support. Source: docs/budget.md.
        """
        protocol = self.protocol
        n = self.reports().astype(np.float64)
        support = linear_support(self.counts.reshape(len(n), -1), protocol.family)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (2 * support - n[:, None]) / n[:, None]
            shares = 1 / n
        shares[n == 0] = np.nan
        shape = protocol.rounds, protocol.k
        sums, squares = np.zeros(shape), np.zeros(shape[0])
        for t in range(protocol.rounds):
            for piece in protocol.sum_of(t):
                at = self._first[piece.level] + piece.number
                weight = protocol.weight(piece)
                sums[t] += weight * means[at]
                squares[t] += weight**2 * shares[at]
        frequencies = 1 + (sums - 1) / protocol.spread
        return DyadicEstimate(protocol, frequencies, np.sqrt(squares) / protocol.spread)

    def __repr__(self) -> str:
        return f"DyadicTally({self.protocol!r}, {self.n} reports)"
