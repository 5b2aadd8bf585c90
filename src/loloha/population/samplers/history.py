"""The histories of a population, checked, and prepared for many simulations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from loloha import checks
from loloha.arrays import Array, Ints
from loloha.errors import DomainError, ParameterError
from loloha.population.samplers.visits import Visits, int32
from loloha.protocols.parameter_check import LARGEST_K

# Reports that are turned from rows of users to rows of rounds at once.
REPORTS_AT_ONCE = 1 << 20


class History:
    """Value of each user in each round; prepared once, it can be simulated again and again.

    Parameters
    ----------
    values : int[n, tau]
        0..k-1; -1, or a masked entry, where a user sends nothing. Not copied: do not change it.
    k : int
        Domain size.

    Attributes
    ----------
    values : int[n, tau]
    n, tau, k : int

    Raises
    ------
    DomainError
        If a value is outside the domain; it is not shown.
    ParameterError
        If ``values`` is not an array [n, tau] of integers.
    """

    def __init__(self, values: Array, k: int) -> None:
        self.k = checks.integer("k", k, 2, LARGEST_K, "count the labels of the domain")
        self.values, lowest = _checked(values, self.k)
        self._complete = lowest >= 0
        self.n, self.tau = self.values.shape
        self._visits: dict[int, Visits] = {}

    @cached_property
    def reports(self) -> Ints:
        """Number of reports of each user, int64[n]."""
        if self._complete:
            return np.full(self.n, self.tau)
        reports: Ints = (self.values >= 0).sum(axis=1)
        return reports

    @cached_property
    def present(self) -> Ints:
        """Number of reports of each round, int64[tau]."""
        if self._complete:
            return np.full(self.tau, self.n)
        present: Ints = (self.values >= 0).sum(axis=0)
        return present

    def visits(self, bins: int) -> Visits:
        """Which of ``bins`` near-equal parts of the domain each user ever holds; cached."""
        if bins not in self._visits:
            self._visits[bins] = Visits(self._binned(bins, self.values), bins)
        return self._visits[bins]

    def rounds(self, bins: int) -> Iterator[Any]:
        """Bin of each user, int32[n], round by round; -1 where a user sends nothing."""
        step = max(1, REPORTS_AT_ONCE // max(1, self.n))
        for start in range(0, self.tau, step):
            # A column at a time would read all of the array for each.
            yield from int32(self._binned(bins, self.values[:, start : start + step]).T)

    def _binned(self, bins: int, values: Ints) -> Any:
        if bins == self.k:
            return values
        # Integer division, as on the device; the last entry is for -1.
        bin_of = np.append(np.arange(self.k, dtype=np.int64) * bins // self.k, -1)
        return bin_of.astype(np.int32)[values]

    def __repr__(self) -> str:
        users, rounds = checks.counted(self.n, "user"), checks.counted(self.tau, "round")
        return f"History({users}, {rounds}, k={self.k})"


def _checked(values: Array, k: int) -> tuple[Any, int]:
    """``values`` as an integer array [n, tau] in -1..k-1, and the least of them."""
    if isinstance(values, np.ma.MaskedArray) and _is_integer(values):
        # An unsigned type has no -1 to fill in.
        values = np.ma.filled(values.astype(np.int64), -1)
    array = np.asarray(values)
    if array.ndim != 2 or not _is_integer(array):
        raise ParameterError(
            "values must be integers, one row per user and one column per round, got "
            f"{array.dtype} of shape {array.shape}; make a data set of a table of labels by "
            "loloha.datasets.table, or map labels to positions, and gaps to -1"
        )
    lowest, highest = (int(array.min()), int(array.max())) if array.size else (0, 0)
    if lowest < -1 or highest >= k:
        raise DomainError(
            f"values must be in 0..{k - 1}, or -1 for no report, got others (not shown: they are "
            "private); check the domain"
        )
    return array, lowest


def _is_integer(array: Array) -> bool:
    return array.dtype.kind in "iu"
