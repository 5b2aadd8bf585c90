"""A cache of smoothed series, valid until one of the rounds grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from loloha.collector.estimates import EstimateCache
from loloha.collector.prepared import Recent
from loloha.collector.store import Round
from loloha.collector.stored_campaign import StoredCampaign
from loloha.encodings import HiddenThreshold, Threshold
from loloha.server.alarm_rule import AlarmRule, deviate
from loloha.server.estimate import Estimate
from loloha.server.number import Numbers
from loloha.server.series import EstimatedSeries, series

if TYPE_CHECKING:
    from loloha.arrays import Floats
    from loloha.campaign.domain import Scale

MOST_CELLS = 1 << 18
"""Rounds times values that are estimated together, at some 150 bytes each."""
_MOST_CACHED = 4


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The numbers of a series, float64[tau, bins] each; NaN where a value is suppressed."""

    rounds: list[int]
    estimates: Floats
    standard_errors: Floats
    unbiased: Floats
    innovations: Floats
    mean: Floats
    n: list[int]
    numbers: Numbers | None
    """Mean and quantiles, where numbers are asked for."""
    of_mean: tuple[Floats, Floats] | None
    """For numbers, float64[tau, 1] each: the mean of a round alone, and its innovation."""

    def watched(self, rule: AlarmRule) -> tuple[Floats, Floats]:
        """Single-round estimates of what a rule watches, and their innovations."""
        if rule.mean and self.of_mean is not None:
            return self.of_mean
        return self.unbiased, self.innovations

    def ends(self, level: float, tested: int) -> tuple[Floats, Floats]:
        """Of intervals; where values are picked by their estimates, of all that were ``tested``."""
        margin = deviate((1 - level) / tested) * self.standard_errors
        return np.clip(self.mean - margin, 0, 1), np.clip(self.mean + margin, 0, 1)


class SmoothedCache:
    """Remembers what was estimated last, by the published reports of its rounds."""

    def __init__(self) -> None:
        self._recent: Recent[Smoothed] = Recent(_MOST_CACHED, lambda _: 1)

    def of(
        self, cache: EstimateCache, stored: StoredCampaign, shown: Sequence[Round]
    ) -> Smoothed | None:
        """All values of these rounds; None where no report is published."""
        name = stored.id, tuple((published.number, published.published) for published in shown)
        if (recent := self._recent.get(name)) is not None:
            return recent
        single = {
            published.number: cache.of(stored, published.number, published.published)
            for published in shown
        }
        of_numbers = isinstance(stored.campaign.protocol.encoding, Threshold)
        # If bins have few reports each, all bins of a shown round can be suppressed.
        if not any(
            estimate and (of_numbers or np.isfinite(estimate.frequencies).any())
            for estimate in single.values()
        ):
            return None
        together = series(
            {t: estimate and _whole(estimate) for t, estimate in single.items()}
            if of_numbers
            else single,
            every=stored.campaign.schedule.every,
        )
        unbiased = together.observations.estimates
        shown_bins = [
            np.isfinite(estimate.frequencies) if estimate else np.zeros(stored.bins, dtype=bool)
            for estimate in (single[t] for t in together.rounds)
        ]
        unknown = np.where(np.isfinite(unbiased) & shown_bins, 0.0, np.nan)
        smoothed = Smoothed(
            together.rounds,
            together.estimates + unknown,
            together.standard_errors + unknown,
            unbiased + unknown,
            together.innovations + unknown,
            together.posterior.mean + unknown,
            together.observations.n.tolist(),
            together.numbers if of_numbers else None,
            _of_mean(together, stored.campaign.domain.scale) if of_numbers else None,
        )
        return self._recent.put(name, smoothed)


def _of_mean(together: EstimatedSeries, scale: Scale | None) -> tuple[Floats, Floats]:
    start, step, _ = scale or (0.0, 1.0, 0.0)
    mean: Floats = start + step * together.observations.numbers.mean[:, None]
    return mean, together.mean_innovations


def _whole(estimate: Estimate) -> Estimate:
    """With the suppressed thresholds: mean and quantiles are of all reports together."""
    if isinstance(estimate.protocol.encoding, HiddenThreshold):
        return estimate
    return replace(estimate, frequencies=estimate.numbers.shares)


def rounds_together(stored: StoredCampaign) -> int:
    """How many rounds of a campaign are estimated together, the newest."""
    return min(stored.rounds_at_once, MOST_CELLS // stored.bins)
