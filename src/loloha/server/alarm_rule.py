"""Estimates that the rounds before did not lead one to expect, at a rate of false alarms."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha import checks
from loloha.arrays import Bools, Floats
from loloha.errors import ParameterError
from loloha.protocols import Protocol
from loloha.server.interval import upper_deviate

USUAL_EXPECTED, USUAL_FDR = 0.1, 0.05

MEAN = "mean"
"""Label of the mean of numbers, beside those of the thresholds."""


@dataclass(frozen=True, kw_only=True)
class AlarmRule:
    """When the estimates of a round raise alarms: exactly one of ``expected`` and ``fdr``.

    Attributes
    ----------
    expected : float, optional
        False alarms expected a round, over all values watched, > 0; or
    fdr : float, optional
        Share, in (0, 1], of false ones among the alarms of a round (Benjamini and Hochberg).
    values : sequence of int, optional
        Bins that are watched; all by default.
    mean : bool
        Whether the mean of numbers (`loloha.OneBit`) is watched, in place of bins.
    """

    expected: float | None = None
    fdr: float | None = None
    values: Sequence[int] | None = None
    mean: bool = False

    def __post_init__(self) -> None:
        if (self.expected is None) == (self.fdr is None):
            raise ParameterError(
                "exactly one of expected and fdr must be given, got "
                f"{'none' if self.fdr is None else 'both'}; expected=0.1: one false alarm in ten "
                "rounds"
            )
        if self.values is not None:
            if self.mean:
                raise ParameterError(
                    "values must be left out where the mean is watched, got both; make two rules"
                )
            for value in self.values:
                checks.integer("values", value, 0, 1 << 24, "give indices of bins")
            if not len(self.values):
                raise ParameterError("values must be at least one, got none; leave it out for all")
        if self.expected is not None:
            _rate("expected", self.expected, 1 << 24, USUAL_EXPECTED)
        else:
            _rate("fdr", self.fdr, 1, USUAL_FDR)

    @classmethod
    def of_labels(
        cls,
        watched: Sequence[str] | None,
        labels: Sequence[Any],
        protocol: Protocol,
        *,
        expected: float | None = None,
        fdr: float | None = None,
    ) -> AlarmRule:
        """The rule that watches these of all ``labels``; by default all, of numbers their mean."""
        numbers = not protocol.histogram
        if numbers and (watched is None or [*watched] == [MEAN]):
            rule = cls(expected=expected, fdr=fdr, mean=True)
        else:
            place = {str(label): at for at, label in enumerate(labels)}
            whose = "labels of the estimates (numbers, if they have none)"
            whose += f", or {MEAN} alone" * numbers
            wanted = checks.places("labels watched", watched or (), place, whose)
            values = None if watched is None else tuple(wanted)
            rule = cls(expected=expected, fdr=fdr, values=values)
        rule.must_suit(protocol.bins)
        return rule

    def must_suit(self, bins: int) -> None:
        """Refuse a rule that these bins cannot have; the mean is one."""
        bins = 1 if self.mean else bins
        watched = range(bins) if self.values is None else sorted(set(self.values))
        if watched[-1] >= bins:
            raise ParameterError(
                f"values must lie in 0..{bins - 1}, got another; name bins by their number"
            )
        if self.expected is not None and self.expected > len(watched):
            raise ParameterError(
                f"expected must be at most the "
                f"{checks.counted(len(watched), 'value')} watched, got "
                f"{self.expected!r}; {USUAL_EXPECTED} is usual"
            )

    def alarmed(self, innovations: Floats) -> Bools:
        """Which of these alarm, bool[tau, bins], by their standardised errors of prediction."""
        self.must_suit(innovations.shape[1])
        watched: Any = slice(None) if self.values is None else sorted(set(self.values))
        sizes = np.abs(innovations[:, watched])
        some: Bools = np.zeros(sizes.shape, dtype=bool)
        for row, of_round in enumerate(sizes):
            tested = of_round[np.isfinite(of_round)]
            if tested.size:
                some[row] = of_round >= self._least(tested)
        alarmed: Bools = np.zeros(innovations.shape, dtype=bool)
        alarmed[:, watched] = some
        return alarmed

    def _least(self, sizes: Floats) -> float:
        """The size from which on those of a round alarm."""
        if self.expected is not None:
            return deviate(min(1.0, self.expected / sizes.size))
        share: Any = self.fdr
        descending = np.sort(sizes)[::-1]
        least = [deviate(share * (rank + 1) / len(sizes)) for rank in range(len(sizes))]
        passed = np.flatnonzero(descending >= least)
        return least[passed[-1]] if passed.size else np.inf


def deviate(tails: float) -> float:
    """What a standard normal exceeds in size with this probability."""
    # Of a tail, since 1 less a tiny one is 1.
    return upper_deviate(max(tails / 2, sys.float_info.min))


def _rate(name: str, value: Any, most: int, usual: float) -> None:
    """A number in (0, most]."""
    if not checks.real(name, value, 0.0, most, f"{usual} is usual"):
        raise ParameterError(f"{name} must be above 0, got {value!r}; {usual} is usual")
