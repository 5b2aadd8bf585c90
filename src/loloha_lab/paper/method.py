"""The methods compared: the paper's seven and two of ours, from a domain and two budgets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from loloha import figure
from loloha.protocols import REGISTRY, Protocol

PUBLISHED, TIGHT = "published", "tight"


@dataclass(frozen=True)
class Method:
    """One curve of the figures."""

    key: str
    label: str
    protocol: str
    two_rounds: bool = True
    calibrated: bool = False
    sampled: int | None = None
    ours: bool = False
    hash: str | None = None
    memo: str | None = None
    look: tuple[tuple[str, str], ...] = ()

    def build(
        self,
        k: int,
        eps_inf: float,
        alpha: float | None,
        calibration: str = PUBLISHED,
        *,
        buckets: int | None = None,
        **more: Any,
    ) -> Protocol:
        """The protocol of one cell."""
        own = {name: getattr(self, name) for name in ("hash", "memo") if getattr(self, name)}
        params: dict[str, Any] = {"k": k, "eps_inf": eps_inf} | own | more
        if self.two_rounds and alpha is not None:
            params["eps_1"] = alpha * eps_inf
        if self.calibrated:
            params["calibration"] = TIGHT if self.ours else calibration
        if self.sampled is not None:
            params["b"] = buckets or k
            params["d"] = self.sampled or params["b"]
        return REGISTRY[self.protocol].from_params(params)

    def settle(self, k: int, eps_inf: float, alpha: float | None, calibration: str) -> str:
        """Under which calibration a cell is measured: "published" where the two are alike."""
        if self.ours or calibration == PUBLISHED:
            return TIGHT if self.ours else PUBLISHED
        tight, published = (self.build(k, eps_inf, alpha, each) for each in (TIGHT, PUBLISHED))
        return PUBLISHED if are_alike(tight, published) else TIGHT

    @property
    def style(self) -> dict[str, str]:
        """Colour, marker and line in every figure."""
        return figure.style(self.protocol) | {"linestyle": "-"} | dict(self.look)


METHODS = {
    method.key: method
    for method in (
        Method("rappor", "RAPPOR", "rappor"),
        Method("l-osue", "L-OSUE", "l-osue"),
        Method("l-grr", "L-GRR", "l-grr", calibrated=True),
        Method("biloloha", "BiLOLOHA", "biloloha"),
        Method("ololoha", "OLOLOHA", "ololoha", calibrated=True),
        Method(
            "1bitflippm",
            "1BitFlipPM",
            "dbitflippm",
            two_rounds=False,
            calibrated=True,
            sampled=1,
            look=(("linestyle", "--"), ("marker", "<")),
        ),
        Method(
            "bbitflippm", "bBitFlipPM", "dbitflippm", two_rounds=False, calibrated=True, sampled=0
        ),
        Method(
            "ololoha-prime",
            "OLOLOHA, least prime",
            "ololoha",
            calibrated=True,
            ours=True,
            hash="prime",
            look=(("color", "#DDCC77"), ("marker", "p")),
        ),
        Method(
            "ololoha-joint",
            "OLOLOHA, one table",
            "ololoha",
            calibrated=True,
            ours=True,
            memo="joint",
            look=(("color", "#882255"), ("marker", "o")),
        ),
    )
}
"""Key -> method, in the order of every legend and table."""

PAPER = [method for method in METHODS.values() if not method.ours]
BEYOND = [method for method in METHODS.values() if method.ours]
TWO_ROUNDS = [method for method in PAPER if method.two_rounds]


def are_alike(protocol: Protocol, other: Protocol) -> bool:
    """Whether two protocols are the same rules but for rounding: such are measured once."""
    if protocol.encoding != other.encoding or (protocol.second is None) != (other.second is None):
        return False
    pairs = zip(_numbers(protocol), _numbers(other), strict=True)
    return all(math.isclose(a, b, rel_tol=1e-12) for a, b in pairs)


def _numbers(protocol: Protocol) -> tuple[float, ...]:
    return (*protocol.first, *(protocol.second or ()))
