"""Mean, quantiles and distribution function of numbers over rounds, each from all rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loloha.arrays import Floats
from loloha.encodings import HiddenThreshold
from loloha.server import statespace
from loloha.server.interval import Inversion, Scatter
from loloha.server.number import Numbers, mean_scatter
from loloha.server.statespace import Observed, Posterior
from loloha.server.variance import Channel

if TYPE_CHECKING:
    from loloha.server.observations import Observations


def of_series(observations: Observations, posterior: Posterior, *, smooth: bool) -> Numbers:
    """What filter or smoother say, as if so many reports of one round said it.

    The mean has a filter of its own: at single thresholds there are too few reports for it.
    """
    protocol, channel = observations.protocol, Channel.realised(observations.protocol)
    # Refuses protocols that do not ask for numbers.
    single = Numbers.of(protocol, observations.estimates, observations.eligible, observations.n)
    if isinstance(protocol.encoding, HiddenThreshold):
        return Numbers(protocol.k, channel, _share(posterior), None, None)
    states = _mean_states(observations, single.share.frequencies)
    p, q, contrast = channel
    f = np.clip(posterior.mean, 0, 1)
    scatter = (f * p * (1 - p) + (1 - f) * q * (1 - q)) / contrast**2
    eligible = np.maximum(scatter / posterior.variance, np.finfo(float).tiny)
    ones = eligible * (q + contrast * posterior.mean)
    return Numbers(
        protocol.k, channel, _share(states.smoothed if smooth else states.filtered), ones, eligible
    )


def _share(posterior: Posterior) -> Inversion:
    """A normal interval of the mean as a share of the range."""
    return Inversion(posterior.mean, Scatter(posterior.variance, 0.0, 0.0), 0.0, (0.0, 0.0))


def _mean_states(observations: Observations, shares: Floats) -> statespace.States:
    """Of the mean as a share of the range, with variances as `Observations.observed` has them."""
    protocol, every = observations.protocol, observations.every
    n = np.maximum(observations.n, 1)[:, None].astype(np.float64)
    users = n if every == 1 else n.max() * every
    known = np.where(np.isfinite(shares), observations.n[:, None], 0)
    f = np.clip(np.nansum(known * shares, axis=0) / known.sum(axis=0), 0, 1)
    variance = mean_scatter(protocol, Channel.realised(protocol), n, users).at(f)
    memo = mean_scatter(protocol, Channel.memoised(protocol), n, n).at(f)
    memo = np.minimum(memo, variance) / every
    whole = observations.observed()
    lasting = whole.lasting.mean(keepdims=True)
    observed = Observed(shares, memo, variance - memo, f, lasting, whole.elapsed)
    return statespace.smooth(observed, statespace.fit(observed))
