"""Unbiased frequencies and standard errors from support, and the test behind intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.arrays import Floats, Ints
from loloha.protocols import Protocol
from loloha.server.interval import Inversion, Scatter
from loloha.server.variance import Channel, spread


def inversion(
    protocol: Protocol, n: Any, frequencies: Floats, eligible: Ints, scatter: Scatter | None = None
) -> Inversion:
    """The test behind the intervals, of one round or of many at once; see `standard_errors`."""
    channel = Channel.realised(protocol)
    # Nearly always one number for all bins: then so are variance and unit.
    same = (eligible == eligible[..., :1]).all()
    known = np.where(eligible, eligible, np.nan)[..., : 1 if same else None]
    if scatter is None:
        scatter = Scatter.through(lambda f: spread(channel, n, known, f))
    unit = 1 / (known * channel.contrast)
    return Inversion(frequencies, scatter, unit, channel.skew)


def unbiased(protocol: Protocol, support: Ints, eligible: Ints) -> Floats:
    """Unbiased frequencies, float64[..., bins], NaN where no user is eligible (MATH section 1)."""
    channel = Channel.realised(protocol)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: Floats = support / eligible
    return (shares - channel.q) / channel.contrast


def standard_errors(protocol: Protocol, n: Any, frequencies: Floats, eligible: Ints) -> Floats:
    """Standard errors of estimates as `unbiased` gives them, of the n of `spread`."""
    # Of a fixed population, with f replaced by the estimate clipped to [0, 1]; see `variance`.
    with np.errstate(invalid="ignore", divide="ignore"):
        variances = spread(Channel.realised(protocol), n, eligible, np.clip(frequencies, 0, 1))
    errors: Floats = np.sqrt(variances)
    return errors
