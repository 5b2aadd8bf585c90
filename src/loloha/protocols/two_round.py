"""What all protocols with a permanent and an instantaneous round share: the two budgets."""

from __future__ import annotations

from dataclasses import dataclass

from loloha import checks
from loloha.protocols.base import Protocol


@dataclass(frozen=True, kw_only=True)
class TwoRound(Protocol):
    """A memoised (permanent) round followed by a fresh (instantaneous) one.

    Parameters
    ----------
    eps_inf : float
        Bound on the loss of all reports of one never-changing value, for ever; 1e-6..700.
    eps_1 : float
        Bound on the loss of the first report, 1e-6 <= eps_1 < eps_inf.
    """

    eps_inf: float
    eps_1: float

    def __post_init__(self) -> None:
        super().__post_init__()
        eps_inf, eps_1 = checks.budgets(self.eps_inf, self.eps_1)
        self._set("eps_inf", eps_inf)
        self._set("eps_1", eps_1)

    @property
    def asked_first(self) -> float:
        return self.eps_1

    @property
    def asked_memo(self) -> float:
        return self.eps_inf
