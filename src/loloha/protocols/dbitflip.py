"""dBitFlipPM: d of b buckets sampled once, one memoised answer a pattern, no second round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, cast

from loloha import checks
from loloha.channels import BitChannel, Pair, grr, symmetric_bit_channel
from loloha.encodings import Encoding, SampledBuckets
from loloha.protocols.base import CALIBRATIONS, Protocol


@dataclass(frozen=True, kw_only=True)
class DBitFlipPM(Protocol):
    """dBitFlipPM. Source: MATH section 7.

    Parameters
    ----------
    eps_inf : float
        Bound on the loss of all reports of one never-changing value, for ever; 1e-6..700.
    b : int, optional
        Number of buckets, 2..k; by default k.
    d : int, optional
        Buckets that each user samples, 1..b; by default b.
    calibration : {"tight", "published"}
        They differ at d = 1, where the published p spends only eps_inf/2.
    """

    name: ClassVar[str] = "dbitflippm"
    summary: ClassVar[str] = "d of b buckets sampled once, one memoised round over d bits"

    eps_inf: float
    b: int | None = None
    d: int | None = None
    calibration: str = "tight"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("eps_inf", checks.eps("eps_inf", self.eps_inf))
        b = self.k if self.b is None else self.b
        self._set("b", checks.integer("b", b, 2, self.k, "use at most one bucket a value"))
        d = self.b if self.d is None else self.d
        self._set("d", checks.integer("d", d, 1, b, "sample at most all the buckets"))
        checks.choice("calibration", self.calibration, CALIBRATIONS)

    @cached_property
    def encoding(self) -> Encoding:
        return SampledBuckets(self.k, cast("int", self.b), cast("int", self.d))

    @property
    def _eps_bit(self) -> float:
        """Loss of one bit: with one sampled bucket two patterns differ in one bit, else in two."""
        return self.eps_inf if self.d == 1 and self.calibration == "tight" else self.eps_inf / 2

    @cached_property
    def first(self) -> Pair:
        return grr(self._eps_bit, 2)

    @cached_property
    def first_channel(self) -> BitChannel:
        return symmetric_bit_channel(self._eps_bit)

    @property
    def asked_first(self) -> float:
        return self.eps_inf

    @property
    def asked_memo(self) -> float:
        return self.eps_inf
