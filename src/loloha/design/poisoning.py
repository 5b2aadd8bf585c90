"""What reports that are lies can do to an estimate."""

from __future__ import annotations

from loloha.rules import checks
from loloha.rules.protocols import Protocol
from loloha.server.variance import expected_reach


def push(protocol: Protocol, n: int, m: int, f: float = 0.0) -> float:
    """By how much m fake reports that all support one value raise its estimate, on average.

    Parameters
    ----------
    protocol : Protocol
    n : int
        Honest reports of the round.
    m : int
        Fake reports beside them.
    f : float
        Frequency of the value among the honest.

    Returns
    -------
    float
        In frequency.

    Notes
    -----
    Of the R honest reports that can support the value (n, or n d/b where each samples d of b
    buckets) a share s = q_star + f (p_star - q_star) does. A liar samples the value's bucket, so
    the share becomes (s R + m) / (R + m); the estimate moves by its change over p_star - q_star.
    Exact but for R, which is random where buckets are sampled.
    """
    n = checks.integer("n", n, 1, 1 << 53, "give the honest reports of a round")
    m = checks.integer("m", m, 0, 1 << 53, "give the fake reports of a round")
    exact = protocol.realised
    contrast = float(exact.contrast)
    support = float(exact.q_star) + f * contrast
    reach = float(expected_reach(protocol, n))
    return m / (reach + m) * (1.0 - support) / contrast
