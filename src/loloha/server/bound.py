"""A bound on the error of all estimates of a round at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from loloha import checks
from loloha.protocols import Protocol
from loloha.report import MOST_REPORTS
from loloha.server.variance import Channel, numbers, plain


def simultaneous_error(
    protocol: Protocol, n: Any, *, level: float = 0.95, bound: str = "hoeffding", f: Any = 0.0
) -> Any:
    """Bound on ``max_v |f_hat(v) - f(v)|`` that holds with probability at least ``level``.

    Parameters
    ----------
    protocol : Protocol
    n : int or int64[bins]
        Eligible users of a bin, >= 0; see `expected_eligible`.
    level : float
        1 - beta, in (0, 1).
    bound : {"hoeffding", "chebyshev", "bernstein"}
    f : float or float64[bins]
        True frequencies in [0, 1], for "bernstein" only: the rarer, the tighter. Where they are
        not known use `Estimate.simultaneous`.

    Returns
    -------
    float or float64[bins]
        ``inf`` where no report reaches the bin. Source: MATH section 9.

    Raises
    ------
    ParameterError
        If a parameter lies outside its range.
    """
    checks.choice("bound", bound, ("hoeffding", "chebyshev", "bernstein"))
    eligible = numbers("n", n, 0, MOST_REPORTS, "give the number of eligible users")
    channel = Channel.formula(protocol)
    log_tails = exponent(protocol, level)
    with np.errstate(divide="ignore", invalid="ignore"):
        if bound == "hoeffding":
            error = np.sqrt(log_tails / (2 * eligible))
        elif bound == "chebyshev":
            error = np.sqrt(protocol.bins / (4 * eligible * _beta(level)))
        else:
            share = channel.q + numbers("f", f, 0.0, 1.0, "give frequencies") * channel.contrast
            # Bernstein: n e^2 = 2 L (s (1-s) + e/3). The variance of users drawn at random, which
            # bounds that of fixed ones and of sampled buckets.
            third = log_tails / 3
            spread = 2 * log_tails * share * (1 - share)
            error = np.where(
                eligible, (third + np.sqrt(third**2 + eligible * spread)) / eligible, np.inf
            )
    return plain(error / channel.contrast)


def exponent(protocol: Protocol, level: float) -> float:
    """L = ln(2 bins / beta): two tails for each bin."""
    return math.log(2 * protocol.bins / _beta(level))


def _beta(level: float) -> float:
    return 1 - checks.level(level)


def farthest(exponent: float, eligible: Any, share: Any) -> Any:
    """How far above the observed ``share`` its expectation s can lie by Bernstein's bound."""
    # The largest x with n x^2 <= 2 L (s (1-s) + x/3), s = share + x: a quadratic in x.
    half = exponent * (4 / 3 - 2 * share)
    total = eligible + 2 * exponent
    return (half + np.sqrt(half**2 + 2 * exponent * total * share * (1 - share))) / total
