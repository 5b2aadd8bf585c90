"""Formulas as the paper prints them, where ours differ: to be held against measurements."""

from __future__ import annotations

import math

import numpy as np

from loloha.rules.protocols import Protocol
from loloha.study.attacks import Distinct

BETA = 0.05


def gamma_variance(protocol: Protocol, n: int, f: float) -> float:
    """The paper's variance of one estimate."""
    gamma = f * protocol.p_star + (1 - f) * protocol.q_star
    return gamma * (1 - gamma) / (n * protocol.contrast**2)


def mean_if_one_over_g(protocol: Protocol, mean: float) -> float:
    """What the mean estimate would be if the server took 1/g for the collision probability."""
    support = protocol.q_star + mean * protocol.contrast
    g = protocol.g or 1
    return (support - 1 / g) / (protocol.p_star - 1 / g)


def paper_flip_variance(protocol: Protocol, n: int) -> float:
    """V* of dBitFlipPM as printed in the paper."""
    params = protocol.get_params()
    return float(params["b"] / (2 * params["d"] * n * math.sinh(params["eps_inf"] / 2)))


def paper_error_bound(protocol: Protocol, n: int) -> float:
    """The bound as printed, without the square."""
    return math.sqrt(protocol.k / (4 * n * BETA * protocol.contrast))


def exact_exceedance(protocol: Protocol, n: int, bound: float) -> float:
    """Chance that the estimate of a value nobody holds is off by ``bound`` or more."""
    from scipy.stats import binom

    reach = n * protocol.contrast * bound
    centre = n * protocol.q_star
    above = binom.sf(math.ceil(centre + reach) - 1, n, protocol.q_star)
    below = binom.cdf(math.floor(centre - reach), n, protocol.q_star)
    return float(above + below)


def exposed_by_bucket(protocol: Protocol, visits: Distinct) -> float:
    """Share of users exposed if an answer of one bit were memoised for each visited bucket."""
    p, q = protocol.first
    buckets = np.bincount(visits.users, minlength=visits.n)
    sampled = 2 / protocol.bins
    differ = sampled * (p * (1 - q) + q * (1 - p)) + (1 - sampled) * 2 * q * (1 - q)
    return float(np.mean(buckets == 1) + np.mean(buckets == 2) * differ)
