"""A budget for changes: the value is hashed to one bit, of which dyadic partial sums are reported.

For studies and comparisons: it is no `Protocol` of the registry, and has no messages. Source:
docs/budget.md, after Erlingsson et al. (2019) and Ohrimenko, Wirth and Wu (2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from loloha import checks, distribution
from loloha.channels import exp_below
from loloha.errors import ParameterError
from loloha.hashing import LinearHash
from loloha.hashing.linear import LARGEST_TABLE
from loloha.protocols.parameter_check import LARGEST_K
from loloha.rng import SCALE, Rng

if TYPE_CHECKING:
    from loloha_lab.dyadic.client import DyadicClient
    from loloha_lab.dyadic.tally import DyadicTally

MOST_CHANGES = 30
"""So that the number of ways to lie stays below 2^31, which populations draw at once."""
MOST_ROUNDS = 1 << 16


@cache
def ways(size: int, at_most: int) -> int:
    """How many of the vectors of ``size`` lies and truths have at most so many lies."""
    return sum(math.comb(size, lies) for lies in range(at_most + 1))


@dataclass(frozen=True)
class Lies:
    """Which of a user's first so many changed answers are lies: drawn once, at enrolment.

    With some probability a uniform choice of at most ``most`` lies, else one of more of them. So
    the likelihoods of any two choices differ by one ratio or not at all.

    Parameters
    ----------
    size : int
        Answers, at least 1.
    most : int
        0..size - 1.
    few : int
        Threshold of at most ``most`` lies, out of 2^53.
    """

    size: int
    most: int
    few: int

    @property
    def ratio(self) -> Fraction:
        """Largest ratio of the probabilities of two choices: e^loss."""
        few = ways(self.size, self.most)
        return Fraction(self.few * ((1 << self.size) - few), (SCALE - self.few) * few)

    @property
    def gap(self) -> Fraction:
        """Pr[an answer is the truth] - Pr[it is a lie], the same for each."""
        few, size = ways(self.size, self.most), self.size
        excess = sum(math.comb(size, lies) * (size - 2 * lies) for lies in range(self.most + 1))
        each = Fraction(self.few, few) - Fraction(SCALE - self.few, (1 << size) - few)
        return Fraction(excess, size) * each / SCALE

    def draw(self, rng: Rng) -> int:
        """Draw the lies: the bits of an integer, the first answer's lowest."""
        few = rng.bernoulli(self.few)
        # More than so many lies are at most so many truths.
        at_most = self.most if few else self.size - self.most - 1
        chosen = nth_choice(rng.below(ways(self.size, at_most)), self.size, at_most)
        return chosen if few else chosen ^ ((1 << self.size) - 1)


def nth_choice(number: int, size: int, at_most: int) -> int:
    """The choice of this number, 0..ways(size, at_most) - 1, as the bits of an integer."""
    chosen = 0
    for place in range(size):
        without = ways(size - place - 1, at_most)
        if number >= without:
            number, at_most, chosen = number - without, at_most - 1, chosen | 1 << place
    return chosen


@cache
def best_lies(eps: float, size: int) -> Lies:
    """The distribution of the largest gap whose realised loss is at most ``eps``."""
    ratio = exp_below(Fraction(eps))
    tried = []
    for most in range(size):
        few = Fraction(ways(size, most), 1 << size)
        tried.append(Lies(size, most, int(SCALE * few * ratio / (1 - few + few * ratio))))
    return max(tried, key=lambda lies: lies.gap)


class Piece(NamedTuple):
    """One dyadic interval of rounds: from 1, number * 2^level + 1 ... (number + 1) * 2^level."""

    level: int
    number: int


class Secret(NamedTuple):
    """What a user draws once: the hash, how often to report, and which answers are lies."""

    seed: int
    level: int
    lies: int


@dataclass(frozen=True, kw_only=True)
class DyadicLH:
    """Local hashing to one bit, reported by dyadic partial sums within one budget for all rounds.

    Each user draws a hash to one bit and a level h, and answers after every 2^h rounds: with the
    bit, by a lie drawn at enrolment, if it is not what it was at the last answer; else with a coin.
    Of the bit's changes the first ``changes`` count; from then on it counts as unchanged.

    Parameters
    ----------
    k : int
        Domain size, 2..2^24; values are the integers 0..k-1.
    eps : float
        Loss of all reports of all rounds together, for any two histories; 1e-6..700.
    rounds : int
        Rounds of the series, 1..2^16; after them a new series spends again.
    changes : int
        Changes of one user's bit that count, 0..30.

    Raises
    ------
    ParameterError
        If a parameter is outside its range, or the counts would not fit in memory.

    Notes
    -----
    To be studied and compared: `client`, `tally`, `loloha_lab.dyadic.simulate`. It is not in the
    registry: no campaign, message, engine or collector knows it. Source: docs/budget.md.
    """

    k: int
    eps: float
    rounds: int
    changes: int

    name: ClassVar[str] = "dyadic-lh"

    def __post_init__(self) -> None:
        def settle(field: str, value: Any) -> None:
            object.__setattr__(self, field, value)

        settle("k", checks.integer("k", self.k, 2, LARGEST_K, "count the labels of the domain"))
        settle("eps", checks.eps("eps", self.eps))
        most = "count the rounds of the whole series"
        settle("rounds", checks.integer("rounds", self.rounds, 1, MOST_ROUNDS, most))
        advice = "users who change more often are better served by loloha.OLH in one round each"
        settle("changes", checks.integer("changes", self.changes, 0, MOST_CHANGES, advice))
        if self.pieces * self.family.size * 2 > LARGEST_TABLE:
            raise ParameterError(
                f"rounds must leave a table of at most {LARGEST_TABLE} cells for k = {self.k}, "
                f"got {self.rounds!r}; choose fewer rounds or fewer values"
            )

    # -- numbers

    @cached_property
    def family(self) -> LinearHash:
        """The hashes to one bit."""
        return LinearHash(self.k, 2)

    @property
    def levels(self) -> int:
        """How many levels there are: those whose first interval ends within the rounds."""
        return self.rounds.bit_length()

    @property
    def pieces(self) -> int:
        """Number of dyadic intervals of all levels."""
        return sum(self.rounds >> level for level in range(self.levels))

    @cached_property
    def lies(self) -> tuple[Lies, ...]:
        """The distribution of each level's lies.

        The first answer always has news, and each change adds one answer that has, at most.
        """
        sizes = (min(self.changes + 1, self.rounds >> level) for level in range(self.levels))
        return tuple(best_lies(self.eps, size) for size in sizes)

    @property
    def loss(self) -> float:
        """What all reports of a user lose as devices draw them, at most ``eps``."""
        return min(distribution.log_of(max(lies.ratio for lies in self.lies)), self.eps)

    @property
    def spread(self) -> float:
        """1 - (2 c0 - 1), by which a sum of signs is divided to give a frequency."""
        return float(2 * (1 - self.family.collision))

    def sum_of(self, t: int) -> tuple[Piece, ...]:
        """The pieces that make up rounds 0..t, the longest first: at most one of each level."""
        through, start, pieces = t + 1, 0, []
        for level in reversed(range(through.bit_length())):
            if through >> level & 1:
                pieces.append(Piece(level, start >> level))
                start += 1 << level
        return tuple(pieces)

    def weight(self, piece: Piece) -> float:
        """What the mean answer of a piece is multiplied by, to estimate its share of a sum.

        The first piece of a level tells a sign; the others tell half of the step between two.
        """
        return (2 if piece.number else 1) / float(self.lies[piece.level].gap)

    def noise(self, t: int) -> float:
        """n V* of round ``t``: at most so much for any frequency, levels equally frequent."""
        weights = sum(self.weight(piece) ** 2 for piece in self.sum_of(t))
        return self.levels * weights / self.spread**2

    def noise_of_mean(self, rounds: slice) -> float:
        """n V* of the mean of rounds: each piece counts as often as it makes one of them up."""
        shares: dict[Piece, float] = {}
        ts = range(self.rounds)[rounds]
        for t in ts:
            for piece in self.sum_of(t):
                shares[piece] = shares.get(piece, 0.0) + self.weight(piece) / len(ts)
        return self.levels * sum(share**2 for share in shares.values()) / self.spread**2

    # -- the device's steps

    def check_value(self, value: Any) -> int:
        """``value`` as an int in 0..k-1.

        Raises
        ------
        DomainError
            For a value outside the domain or of another type; the value is never shown.
        """
        return checks.value(value, self.k)

    def enroll(self, rng: Rng) -> Secret:
        """Draw what a user keeps for the whole series."""
        seed, level = self.family.draw(rng), rng.below(self.levels)
        return Secret(seed, level, self.lies[level].draw(rng))

    def bit(self, secret: Secret, v: int) -> int:
        """The bit of the value ``v``."""
        return self.family.hash(secret.seed, v)

    def is_due(self, level: int, t: int) -> bool:
        """Whether users of a level answer at the end of round ``t``."""
        return (t + 1) % (1 << level) == 0

    # -- factory methods of the objects that hold state

    def client(self, *, rng: Rng | None = None) -> DyadicClient:
        """A new user's `DyadicClient`."""
        from loloha_lab.dyadic.client import DyadicClient

        return DyadicClient(self, rng=rng)

    def tally(self) -> DyadicTally:
        """The empty `DyadicTally` of the whole series."""
        from loloha_lab.dyadic.tally import DyadicTally

        return DyadicTally(self)
