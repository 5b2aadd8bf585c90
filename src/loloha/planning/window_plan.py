"""Ways to keep one loss in any window of rounds, whatever values do in it: their exact errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from loloha import checks
from loloha.campaign.schedule import RAREST
from loloha.errors import ParameterError
from loloha.planning.holding import hold
from loloha.privacy.rounded import product
from loloha.privacy.transcript import eps_2
from loloha.protocols import OLH, OLOLOHA, Protocol
from loloha.protocols.realised import as_asked
from loloha.report import MOST_REPORTS
from loloha.server.mean import mean_variance

PANELS = "panels"
"""The way that a plan recommends a protocol for."""
_INFINITY_OVER_LOSS = 2.0


@dataclass(frozen=True)
class Way:
    """One way to ask n users for many rounds, what it loses in a window, and how far it errs.

    Attributes
    ----------
    name : str
        What is done; the field's abbreviation in brackets.
    protocol : Protocol
    every : int
        In how many rounds a user reports once.
    window_loss : float
        Of any two histories that differ within one window alone.
    value_loss : float
        Of all reports of one value for ever; ``inf`` if nothing is memoised.
    reports : int
        Of a user in a window.
    mse_round, mse_window : float
        Mean squared error over all values, of equal frequencies, of one round and of the mean of a
        window: before any projection, of users who keep their values, and with all that a sample
        can add.
    """

    name: str
    protocol: Protocol
    every: int
    window_loss: float
    value_loss: float
    reports: int
    mse_round: float
    mse_window: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON data; what is infinite is None."""
        plain = {
            name: checks.finite(value) for name, value in vars(self).items() if name != "protocol"
        }
        return plain | {"protocol": self.protocol.to_dict()}


def windowed(
    window: int | None, loss: float | None, n: int, eps_inf: float | None, **others: float | None
) -> dict[str, float]:
    """eps_inf and eps_2 that keep a loss in any window of rounds, checked with what they need."""
    if window is None or loss is None:
        raise ParameterError("window and loss must be given together, got one; give both")
    taken = [name for name, given in others.items() if given is not None]
    if taken:
        raise ParameterError(
            f"window and loss must come without {taken[0]}, which follows from them; leave it out"
        )
    checks.integer("window", window, 2, RAREST, "say in how many rounds the loss must hold")
    checks.integer("n", n, window, MOST_REPORTS, "each round of the window needs a user")
    loss = checks.eps("loss", loss)
    if eps_inf is None:
        eps_inf = min(_INFINITY_OVER_LOSS * loss, checks.LARGEST_EPS)
    return {"eps_inf": checks.eps("eps_inf", eps_inf), "eps_2": loss}


def ways(protocol: Protocol, n: int, window: int, eps_inf: float, loss: float) -> tuple[Way, ...]:
    """What n users tell in panels under ``protocol``, beside the other ways to keep the loss."""
    # Population division (LPU) and budget division (LBU) are those of X. Ren, L. Shi, W. Yu, S.
    # Yang, C. Zhao, Z. Xu, "LDP-IDS" (arXiv 2204.00526), with fresh OLH. The last way is the
    # protocol as it would be without panels: it keeps no such loss.
    return tuple(_ways(protocol, n, window, eps_inf, loss))


def _ways(protocol: Protocol, n: int, window: int, eps_inf: float, loss: float) -> Iterator[Way]:
    k = protocol.k
    once = loss / window
    yield _way(f"{PANELS}, 1 round of {window}", protocol, n, window, window, loss)
    yield _way(f"LPU: fresh OLH, 1 of {window}", OLH(k=k, eps=loss), n, window, window, loss)
    if once >= checks.SMALLEST_EPS:
        yield _way("LBU: fresh OLH, all rounds", OLH(k=k, eps=once), n, window, 1, once)
        try:
            ololoha = hold(OLOLOHA, {"eps_inf": eps_inf, "eps_2": once}, {"k": k, "n": n})
        except ParameterError:
            # Too small a loss per round for a first report.
            ololoha = None
        if ololoha is not None:
            yield _way(f"{ololoha.name}, all rounds", ololoha, n, window, 1, once)
    yield _way("panels' protocol, all rounds", protocol, n, window, 1, loss)


def _way(name: str, protocol: Protocol, n: int, window: int, every: int, asked: float) -> Way:
    sizes, population = [n // every] * window, n if every > 1 else None
    even = 1 / protocol.bins
    single, mean = (
        float(mean_variance(protocol, some, even, every=every, population=population))
        for some in (sizes[:1], sizes)
    )
    reports = window // every
    value = protocol.asked_memo if protocol.longitudinal else math.inf
    lost = product(reports, as_asked(eps_2(protocol), asked))
    return Way(name, protocol, every, lost, value, reports, single, mean)
