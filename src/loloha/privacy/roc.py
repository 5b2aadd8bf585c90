"""ROC curves: how well scores distinguish two kinds of cases, with the AUC and errors.

Of two known distributions the best scores are likelihood ratios (J. Neyman and E. Pearson 1933).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loloha import _moved
from loloha.errors import ParameterError

if TYPE_CHECKING:
    from loloha.arrays import Array, Floats


class AUC(NamedTuple):
    """Area under an ROC curve: how often a random case of one kind scores above one of the other.

    Attributes
    ----------
    auc : float
        0.5: chance; 1: certainty. Equal scores count half.
    error : float
        Its standard error; 0 where nothing was drawn.
    bound : bool
        Whether it is an upper bound of the best test's AUC, four standard errors included, and
        not exactly that.
    """

    auc: float
    error: float
    bound: bool = False


ALLOWED = 4
"""Standard errors that are added to what was drawn, so that it bounds."""
SEED = 12
"""Of what is drawn: the same for the same arguments."""


def best_auc(stayed: Array, moved: Array, *, drawn: bool = False) -> AUC:
    """AUC of the likelihood-ratio test of two distributions, exactly or bounded from above."""
    absent, present = (pmf.ravel() / pmf.sum() for pmf in (stayed, moved))
    together = absent + present
    share = np.divide(present, together, out=np.zeros_like(present), where=together > 0)
    order = np.argsort(share)
    absent, present = absent[order], present[order]
    apart = present * (2 * np.cumsum(absent) - absent - 1)
    apart -= absent * (2 * np.cumsum(present) - present - 1)
    auc = min(1.0, max(0.5, 0.5 + float(apart.sum()) / 4))
    if not drawn:
        return AUC(auc, 0.0)
    rows = len(stayed)
    parts = np.bincount(order // (len(order) // rows), weights=apart, minlength=rows)
    error = 0.5 * math.sqrt(rows) * float(np.std(parts, ddof=1))
    return AUC(min(1.0, auc + ALLOWED * error), error, bound=True)


@dataclass(frozen=True, eq=False)
class Roc:
    """Scores of cases in which something holds, and of cases in which it does not.

    Parameters
    ----------
    absent, present : float64[m], float64[n]
        At least one of each; larger scores speak for presence, ``inf`` may occur.

    Raises
    ------
    ParameterError
        If one of them is empty, or a score is no number.
    """

    absent: Any
    present: Any

    def __post_init__(self) -> None:
        for name in ("absent", "present"):
            scores = np.sort(np.asarray(getattr(self, name), dtype=np.float64).ravel())
            if not scores.size or np.isnan(scores).any():
                raise ParameterError(
                    f"{name} must hold at least one score and no nan, got {scores.size} scores; "
                    "use more users"
                )
            object.__setattr__(self, name, scores)

    @cached_property
    def auc_with_error(self) -> AUC:
        """AUC and its standard error (E. DeLong and others 1988)."""
        above = _share_below(self.absent, self.present)
        below = 1 - _share_below(self.present, self.absent)
        spread = _mean_variance(above) + _mean_variance(below)
        return AUC(float(above.mean()), math.sqrt(spread))

    @property
    def auc(self) -> float:
        """Area under the curve."""
        return self.auc_with_error.auc

    @property
    def error(self) -> float:
        """Standard error of the AUC."""
        return self.auc_with_error.error

    area = _moved.renamed("area", "auc_with_error")

    @cached_property
    def curve(self) -> tuple[Floats, Floats, Floats]:
        """False alarms, hits, and the standard error of each hit rate, along all thresholds."""
        thresholds = np.unique(np.concatenate([self.absent, self.present]))[::-1]
        alarms, hits = (
            1 - np.searchsorted(scores, thresholds, side="left") / len(scores)
            for scores in (self.absent, self.present)
        )
        alarms, hits = np.append(0.0, alarms), np.append(0.0, hits)
        return alarms, hits, np.sqrt(hits * (1 - hits) / len(self.present))

    def hit_rate(self, alarm_rate: float) -> float:
        """Most hits at a rate of false alarms that is at most so large."""
        alarms, hits, _ = self.curve
        return float(hits[np.searchsorted(alarms, alarm_rate, side="right") - 1])

    def __repr__(self) -> str:
        return f"Roc(auc={self.auc:.4g}, error={self.error:.2g})"


def _share_below(reference: Array, scores: Array) -> Any:
    """Share of the sorted reference below each score, equal ones half."""
    low, high = (np.searchsorted(reference, scores, side=side) for side in ("left", "right"))
    return (low + high) / (2 * len(reference))


def _mean_variance(numbers: Array) -> float:
    return float(np.var(numbers) / len(numbers))
