"""Tests by which a server detects fake users in its counts, at a stated false-alarm rate.

They see careless fakes only. Fakes that take the keys they are given, and answer as an honest user
who holds the target would, have the distribution of honest users.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from loloha.encodings import Hashed, OneHot
from loloha.server.tally import Tally


class Alarm(NamedTuple):
    """A test of the counts of one round.

    Attributes
    ----------
    z : float
        Standard deviations from what honest users cause.
    chance : float
        How often honest users alone go so far.
    """

    z: float
    chance: float


def key_alarm(tally: Tally) -> Alarm | None:
    """Whether some keys were sent too often to have been drawn: chosen ones are.

    Parameters
    ----------
    tally : Tally
        Of one round of hashed symbols that is counted by key.

    Returns
    -------
    Alarm or None
        Pearson's chi-square over all keys (normal by E. Wilson and M. Hilferty 1931), one-sided;
        None where keys are not counted, or fewer than 5 users share one.
    """
    encoding = tally.protocol.encoding
    if type(encoding) is not Hashed or encoding.cells == encoding.bins:
        return None
    sent = tally.counts.reshape(-1, encoding.symbols).sum(axis=1)
    keys: Any = encoding.family.members
    expected = tally.n / keys
    if expected < 5:
        return None
    # A row that no key has is never counted in.
    excess = float((sent.astype(float) ** 2).sum()) / expected - tally.n
    free = keys - 1
    z = ((excess / free) ** (1 / 3) - (1 - 2 / (9 * free))) / math.sqrt(2 / (9 * free))
    return Alarm(z, math.erfc(z / math.sqrt(2)) / 2)


def sum_alarm(tally: Tally) -> Alarm | None:
    """Whether the estimates add up to 1, as they must: bits that say one thing only do not.

    Parameters
    ----------
    tally : Tally
        Of one round of one-hot bits.

    Returns
    -------
    Alarm or None
        Two-sided; None where every report supports as much as any other, so that nothing shows.
    """
    protocol = tally.protocol
    if type(protocol.encoding) is not OneHot or not tally.n:
        return None
    p, q = float(protocol.realised.p_star), float(protocol.realised.q_star)
    k, n = protocol.k, tally.n
    honest = p + (k - 1) * q
    spread = math.sqrt(n * (p * (1 - p) + (k - 1) * q * (1 - q)))
    z = (float(tally.support().sum()) - n * honest) / spread
    return Alarm(z, math.erfc(abs(z) / math.sqrt(2)))
