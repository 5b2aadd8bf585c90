"""The fourteen protocols, a row each: parameters, encoding, rounds, and the rule that picks g."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

from loloha import _moved, checks
from loloha.channels import (
    second_losue,
    second_oue_after_oue,
    second_oue_after_sue,
    second_rappor,
    symbol_channel,
    table_channel,
    table_loss,
)
from loloha.encodings import Channel
from loloha.errors import ParameterError
from loloha.hashing import PrimeHash
from loloha.protocols.base import Protocol
from loloha.protocols.choice import LARGEST_G, hides_keys, least_variance_g, noise, published_g
from loloha.protocols.parameter_check import JOINT
from loloha.protocols.rounds import (
    BUCKET_BITS,
    OPTIMISED,
    SYMBOLS,
    SYMBOLS_TWICE,
    SYMMETRIC,
    bits,
    bits_twice,
)
from loloha.protocols.row import (
    OneRound,
    TwoRound,
    of_bits,
    of_buckets,
    of_hashes,
    of_thresholds,
    of_values,
)
from loloha.report import MOST_REPORTS

# -- one round: nothing is memoised, and every report spends eps


class GRR(OneRound):
    """Generalised randomised response over the k values. Source: MATH section 2."""

    name: ClassVar[str] = "grr"
    summary: ClassVar[str] = "one round of GRR over the k values"
    encoded, rounds = of_values, SYMBOLS


@dataclass(frozen=True, kw_only=True)
class BLH(OneRound):
    """Binary local hashing: a fresh hash to two symbols in every report. Source: MATH section 2.

    Parameters
    ----------
    hash : {"linear", "prime", "affine", "xxhash"}, optional
        Hash family; by default "linear" where g is prime and the table
        of seeds and symbols is affordable, else "affine".
    """

    name: ClassVar[str] = "blh"
    summary: ClassVar[str] = "fresh hash to g = 2 symbols, one round of GRR"
    encoded, rounds, g = of_hashes, SYMBOLS, 2

    hash: str | None = None


@dataclass(frozen=True, kw_only=True)
class OLH(OneRound):
    """Optimal local hashing: a fresh hash to g symbols in every report. Source: MATH section 2.

    Parameters
    ----------
    hash : {"linear", "prime", "affine", "xxhash"}, optional
        Hash family, as for `BLH`.
    g : int, optional
        Number of symbols, 2..2^20.
    calibration : {"tight", "published"}
        How g is chosen where it is not given: the integer of least exact V* among those that the
        hash family admits, or g = round(e^eps + 1).
    """

    name: ClassVar[str] = "olh"
    summary: ClassVar[str] = "fresh hash to the g symbols of least variance, one round of GRR"
    encoded, rounds = of_hashes, SYMBOLS

    hash: str | None = None
    g: int | None = None
    calibration: str = "tight"

    def best_g(self) -> int:
        if self.calibration == "published":
            return round(min(math.exp(self.eps) + 1, LARGEST_G))
        return least_variance_g(self.k, self.eps, self.hash)


class SUE(OneRound):
    """Symmetric unary encoding (basic RAPPOR). Source: MATH section 2."""

    name: ClassVar[str] = "sue"
    summary: ClassVar[str] = "one round over k bits, symmetric"
    encoded, rounds = of_bits, bits(SYMMETRIC)


class OUE(OneRound):
    """Optimised unary encoding. Source: MATH section 2."""

    name: ClassVar[str] = "oue"
    summary: ClassVar[str] = "one round over k bits, optimised"
    encoded, rounds = of_bits, bits(OPTIMISED)


# -- two rounds


class RAPPOR(TwoRound):
    """RAPPOR (L-SUE): symmetric bits, twice. Source: MATH section 5."""

    name: ClassVar[str] = "rappor"
    summary: ClassVar[str] = "k bits, both rounds symmetric (SUE, SUE)"
    encoded, rounds = of_bits, bits_twice(SYMMETRIC, SYMMETRIC, second_rappor)


class LOSUE(TwoRound):
    """L-OSUE: optimised bits, then symmetric ones. Source: MATH section 5."""

    name: ClassVar[str] = "l-osue"
    summary: ClassVar[str] = "k bits, optimised then symmetric (OUE, SUE)"
    encoded, rounds = of_bits, bits_twice(OPTIMISED, SYMMETRIC, second_losue)


class LOUE(TwoRound):
    """L-OUE: optimised bits, twice; needs e^eps_1 < (2 e^eps_inf + 1)/3. Source: MATH section 5."""

    name: ClassVar[str] = "l-oue"
    summary: ClassVar[str] = "k bits, both rounds optimised (OUE, OUE)"
    encoded, rounds = of_bits, bits_twice(OPTIMISED, OPTIMISED, second_oue_after_oue)


class LSOUE(TwoRound):
    """L-SOUE: symmetric bits, then optimised; eps_1 has an upper bound. Source: MATH section 5."""

    name: ClassVar[str] = "l-soue"
    summary: ClassVar[str] = "k bits, symmetric then optimised (SUE, OUE)"
    encoded, rounds = of_bits, bits_twice(SYMMETRIC, OPTIMISED, second_oue_after_sue)


@dataclass(frozen=True, kw_only=True)
class LGRR(TwoRound):
    """L-GRR: GRR over the k values, twice. Source: MATH sections 3 and 6.

    Parameters
    ----------
    calibration : {"tight", "published"}
        "tight" spends exactly eps_1 on the first report; "published" is the paper's formula,
        which for g > 2 is private but noisier than asked, and its g of OLOLOHA.
    """

    name: ClassVar[str] = "l-grr"
    summary: ClassVar[str] = "two rounds of GRR over the k values"
    encoded, rounds = of_values, SYMBOLS_TWICE

    calibration: str = "tight"


@dataclass(frozen=True, kw_only=True)
class LOLOHA(TwoRound):
    """A hash drawn once for ever, then two rounds of GRR over its g symbols.

    Parameters
    ----------
    calibration : {"tight", "published"}
        As for `LGRR`.
    hash : {"linear", "prime", "affine", "xxhash"}, optional
        Hash family, as for `BLH`.
    memo : {"independent", "joint"}
        "joint" draws the answers of all symbols together at enrolment (MATH section 15): the same
        accuracy, eps_1 and eps_inf, a far smaller cap; but one value that is exchanged for another
        costs up to the cap instead of eps_inf.
    m0 : float, optional
        For memo="joint", the probability that one symbol answers for all. By default changes
        show as they do for independent answers; 0 has the smallest cap, and changes show more.
    """

    encoded, rounds = of_hashes, SYMBOLS_TWICE

    calibration: str = "tight"
    hash: str | None = None
    memo: str = "independent"
    m0: float | None = None
    later: ClassVar[Mapping[str, Any]] = {"memo": "independent", "m0": None}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.memo != JOINT:
            return
        rest = cast("int", self.g) * self.first.q
        if self.m0 is not None and self.m0 >= rest:
            raise ParameterError(
                f"m0 must be below {rest:.6g}, all but the identity, got {self.m0!r}; leave it out"
            )
        cells, apart = self.encoding.memo_cells, self.encoding.memo_cells * self.eps_inf
        if self.cap > apart * (1 + 1e-9):
            raise ParameterError(
                f"memo must be 'independent' where one table spends more, {self.cap:.4g} against "
                f"{apart:.4g} over {cells} cells, got {self.memo!r}; leave it out or lower g or m0"
            )

    @cached_property
    def first_channel(self) -> Channel:
        alone = symbol_channel(self.eps_inf, cast("int", self.g))
        return alone if self.memo != JOINT else table_channel(alone, self.m0)

    def spent(self, answers: int) -> float:
        if self.memo != JOINT or answers < 2:
            return super().spent(answers)
        return max(self.eps_inf, table_loss(self.eps_inf, cast("int", self.g), self.m0, answers))

    @property
    def noise(self) -> float:
        """n V*."""
        return self.q_star * (1 - self.q_star) / self.contrast**2


@dataclass(frozen=True, kw_only=True)
class BiLOLOHA(LOLOHA):
    """LOLOHA with g = 2: the smallest cap and the fastest server. MATH section 4."""

    name: ClassVar[str] = "biloloha"
    summary: ClassVar[str] = "hash to g = 2 symbols, two rounds of GRR"
    g = 2


@dataclass(frozen=True, kw_only=True)
class OLOLOHA(LOLOHA):
    """LOLOHA with the g of least variance, or any g that is asked for. Source: MATH section 4.

    By default g is the integer of least exact V* among those that the hash family admits; with
    ``calibration="published"`` the paper's closed form.

    Parameters
    ----------
    g : int, optional
        Number of symbols, 2..2^20.
    n : int, optional
        Users expected. Where a hash is not asked for, and on average five of them share each key
        of the least-prime family, that family is taken if its V* is lower (MATH section 14). No
        part of the specification: what was chosen is.
    """

    name: ClassVar[str] = "ololoha"
    summary: ClassVar[str] = "hash to the g symbols of least variance, two rounds of GRR"
    hints: ClassVar[frozenset[str]] = frozenset({"n"})

    g: int | None = None
    n: InitVar[int | None] = None

    def __post_init__(self, n: int | None) -> None:
        asked_hash, asked_g = self.hash, self.g
        if n is not None:
            n = checks.integer("n", n, 1, MOST_REPORTS, "give the users you expect")
            self._settle()
        if n is not None and asked_hash is None and self.calibration == "tight":
            k, eps, prime = self.k, self.eps_1, PrimeHash.name
            g = least_variance_g(k, eps, prime) if asked_g is None else asked_g
            usual = noise(str(self.hash), k, cast("int", self.g), eps)
            if noise(prime, k, g, eps) < usual and hides_keys(prime, k, g, n):
                self._set("hash", prime)
                self._set("g", g)
        super().__post_init__()

    def best_g(self) -> int:
        if self.calibration == "published":
            return published_g(self.eps_inf, self.eps_1)
        return least_variance_g(self.k, self.eps_1, self.hash)


@dataclass(frozen=True, kw_only=True)
class OneBit(TwoRound):
    """1BitMean with a second round: a bit of a number, against a threshold of the user's own.

    The values 0..k-1 are numbers, or equal steps of a range. Source: MATH section 20.

    Parameters
    ----------
    target : {"distribution", "mean"}
        "distribution" sends the threshold beside the bit: distribution function, quantiles, mean.
        "mean" keeps it on the device, so that no key is sent, and only the mean is estimated.
    """

    name: ClassVar[str] = "onebit"
    summary: ClassVar[str] = "numbers: one bit against a drawn threshold, two rounds of GRR"
    encoded, rounds, calibration = of_thresholds, SYMBOLS_TWICE, "tight"
    histogram: ClassVar[bool] = False

    target: str = "distribution"


# -- one memoised round


@dataclass(frozen=True, kw_only=True)
class DBitFlipPM(Protocol):
    """dBitFlipPM: d of b buckets sampled once, one memoised answer a pattern. MATH section 7.

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
    encoded, rounds = of_buckets, BUCKET_BITS

    eps_inf: float
    b: int | None = None
    d: int | None = None
    calibration: str = "tight"


OWN: tuple[type[Protocol], ...] = (
    GRR, BLH, OLH, SUE, OUE, RAPPOR, LOSUE, LOUE, LSOUE, LGRR, BiLOLOHA, OLOLOHA, DBitFlipPM,
    OneBit,
)  # fmt: skip
"""The protocols of this package, in the order in which they are listed."""

if not TYPE_CHECKING:
    __getattr__ = _moved.getter(__name__)
