"""Mean and quantiles of numbers over rounds, each estimated from all."""

from __future__ import annotations

import numpy as np

from loloha.arrays import Floats
from loloha.encodings import HiddenThreshold
from loloha.server import smoother
from loloha.server.interval import Inversion, Scatter
from loloha.server.number import Numbers, mean_scatter
from loloha.server.observations import Observations
from loloha.server.smoother import States
from loloha.server.statespace import Observed, Posterior
from loloha.server.variance import Channel


def of_series(observations: Observations, posterior: Posterior, mean: Posterior) -> Numbers:
    """Filtered or smoothed estimates as those of one round with an equivalent number of reports."""
    protocol, channel = observations.protocol, Channel.realised(observations.protocol)
    # A normal interval of the mean as a share of the range.
    share = Inversion(mean.mean, Scatter(mean.variance, 0.0, 0.0), 0.0, (0.0, 0.0))
    if isinstance(protocol.encoding, HiddenThreshold):
        return Numbers(protocol.k, channel, share, None, None)
    p, q, contrast = channel
    f = np.clip(posterior.mean, 0, 1)
    scatter = (f * p * (1 - p) + (1 - f) * q * (1 - q)) / contrast**2
    eligible = np.maximum(scatter / posterior.variance, np.finfo(float).tiny)
    ones = eligible * (q + contrast * posterior.mean)
    return Numbers(protocol.k, channel, share, ones, eligible)


def mean_states(observations: Observations, shares: Floats) -> States:
    """Of the mean as a share of the range, with variances as `Observations.observed` has them."""
    protocol, users = observations.protocol, observations.sampled_from.astype(np.float64)
    n = np.maximum(observations.n, 1)[:, None].astype(np.float64)
    known = np.where(np.isfinite(shares), observations.n[:, None], 0)
    f = np.clip(np.nansum(known * shares, axis=0) / known.sum(axis=0), 0, 1)
    variance = mean_scatter(protocol, Channel.realised(protocol), n, users).at(f)
    memo = mean_scatter(protocol, Channel.memoised(protocol), n, n).at(f)
    memo = np.minimum(memo, variance) * observations.returning
    whole = observations.observed()
    lasting = whole.lasting.mean(keepdims=True)
    # The most that values can vary at this mean.
    turnover = f * (1 - f) / np.max(users)
    observed = Observed(
        shares, memo, variance - memo, f, turnover, lasting, whole.elapsed, whole.users
    )
    return smoother.averaged(observed)
