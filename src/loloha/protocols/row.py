"""Parts that rows of the table share: ways to encode values, losses of one or two rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from loloha import _moved
from loloha.encodings import (
    Encoding,
    Hashed,
    HiddenThreshold,
    OneHot,
    SampledBuckets,
    Symbols,
    Threshold,
)
from loloha.hashing import hash_family
from loloha.protocols.base import Protocol

if not TYPE_CHECKING:
    __getattr__ = _moved.getter(__name__)


def of_values(protocol: Any) -> Encoding:
    """The value itself is the symbol."""
    return Symbols(protocol.k)


def of_bits(protocol: Any) -> Encoding:
    """One bit a value."""
    return OneHot(protocol.k)


def of_hashes(protocol: Any) -> Encoding:
    """The symbol is a hash of the value."""
    return Hashed(hash_family(protocol.hash, protocol.k, protocol.g))


def of_buckets(protocol: Any) -> Encoding:
    """One bit for each sampled bucket."""
    return SampledBuckets(protocol.k, protocol.b, protocol.d)


def of_thresholds(protocol: Any) -> Encoding:
    """Whether the value reaches a threshold, which is sent along or not."""
    return (HiddenThreshold if protocol.target == "mean" else Threshold)(protocol.k)


@dataclass(frozen=True, kw_only=True)
class OneRound(Protocol):
    """A fresh answer every round.

    Parameters
    ----------
    eps : float
        Bound on the loss of each report, 1e-6..700.
    """

    eps: float

    longitudinal: ClassVar[bool] = False


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
        # Not every pair of budgets is attainable with p2 = 1/2: fail early.
        _ = self.second
