"""Estimated frequencies over rounds, as a picture needs them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loloha.arrays import Floats, Ints
from loloha.errors import ParameterError


@dataclass(frozen=True, eq=False)
class Series:
    """Estimated frequencies over rounds."""

    labels: Sequence[Any]
    rounds: Sequence[Any]
    frequencies: Floats
    lower: Floats
    upper: Floats
    truth: Floats | None = None
    together: Series | None = field(default=None, kw_only=True)
    """The same rounds, each estimated from all of them."""

    def __post_init__(self) -> None:
        shape = (len(self.rounds), len(self.labels))
        given = [self.frequencies, self.lower, self.upper]
        given += [] if self.truth is None else [self.truth]
        if 0 in shape or any(np.shape(array) != shape for array in given):
            raise ParameterError(
                f"frequencies, lower, upper and truth must be of shape {shape}, got "
                f"{[np.shape(array) for array in given]}; give a row per round, a column per label"
            )

    def top(self, count: int) -> Ints:
        """Columns of the ``count`` largest means over the rounds: of the truth where known."""
        ranked = self.frequencies if self.truth is None else self.truth
        with warnings.catch_warnings():
            # A bin that nobody's report could support has no mean: it comes last.
            warnings.simplefilter("ignore", RuntimeWarning)
            means = np.nan_to_num(np.nanmean(ranked, axis=0), nan=-np.inf)
        return np.argsort(-means, kind="stable")[:count]

    def last_round(self) -> int:
        """Row of the last round with estimates; 0 if there is none."""
        rows = np.flatnonzero(~np.isnan(self.frequencies).all(axis=1))
        return int(rows[-1]) if rows.size else 0
