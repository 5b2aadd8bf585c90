"""The base class of encodings, on a device and on a server."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from loloha.channels import BitChannel, SymbolChannel, TableChannel
from loloha.report import Answer, Key, Report
from loloha.rng import Rng

if TYPE_CHECKING:
    from loloha.arrays import Bools, Floats, Ints

Number = TypeVar("Number", float, Fraction)
Channel = SymbolChannel | TableChannel | BitChannel
Kind = Literal["symbol", "keyed symbol", "bits", "sampled bits"]


class Encoding(ABC):
    """From values 0..k-1 to answers, and from answers to support counts.

    Array forms of a report's key and y, for n reports:

    ============== =================== =========================
    kind           keys                ys
    ============== =================== =========================
    symbol         None                int64[n]
    keyed symbol   int64[n]            int64[n]
    bits           None                uint8[n, ceil(k / 8)]
    sampled bits   int64[n, d]         uint8[n, ceil(d / 8)]
    ============== =================== =========================
    """

    kind: ClassVar[Kind]

    @property
    @abstractmethod
    def bins(self) -> int:
        """How many frequencies are estimated: k, or the number of buckets."""

    @property
    @abstractmethod
    def memo_cells(self) -> int:
        """Most memo symbols that one user can ever visit."""

    @property
    @abstractmethod
    def memo_symbols(self) -> int:
        """Memo symbols are 0..memo_symbols - 1 (one user need not be able to visit all)."""

    @property
    def symbols(self) -> int | None:
        """Number g of symbols that are randomised over; None where answers are bits."""
        return None

    @property
    @abstractmethod
    def cells(self) -> int:
        """Length of the array of counts."""

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """Bits of key and y that a user sends the first time."""

    @property
    @abstractmethod
    def key_bits(self) -> int:
        """Bits of the key, which need to be sent only once."""

    @property
    def key_count(self) -> int:
        """How many keys there are to draw from; more than that where an encoding does not say."""
        return 1 << self.key_bits

    @property
    def keyed(self) -> bool:
        """Whether users draw a key that decides which values share a memo symbol."""
        return False

    @property
    def packed(self) -> bool:
        """Whether answers are bits, eight to a byte; else they are symbols."""
        return self.kind in ("bits", "sampled bits")

    @property
    def values(self) -> int:
        """Number of distinguished parts of the k values, usually the number of bins."""
        return self.bins

    @property
    def fractional(self) -> bool:
        """Whether a user can count in a bin by a fraction."""
        return False

    def bin(self, v: int) -> int:
        """The estimated bin that holds the value ``v``."""
        return v

    def weight(self, v: int, bin: int) -> Fraction:
        """By how much a user of the value ``v`` counts in a bin, 0..1."""
        return Fraction(self.bin(v) == bin)

    def bin_values(self, bin: int) -> tuple[int, int] | None:
        """The first and the last value that a bin counts; None where it is their mean."""
        return bin, bin

    def bin_label(self, bin: int, label: Callable[[int], str]) -> str:
        """The label of a bin: of its value, or of the first and last that it counts."""
        values = self.bin_values(bin)
        if values is None:
            return "mean"
        first, last = values
        return label(first) if first == last else f"{label(first)} … {label(last)}"

    def frequencies(self, shares: Floats) -> Floats:
        """What is estimated, float64[..., bins], of users with these shares of values [..., k]."""
        return shares

    # -- device

    def draw_key(self, rng: Rng) -> Key:
        """The user's permanent key."""
        return None

    def is_key(self, key: Key) -> bool:
        """Whether ``key`` could have been drawn."""
        return key is None

    def sent(self, key: Key) -> Key:
        """The part of the key in a report; some keys stay on the device."""
        return key

    def is_sent(self, key: Key) -> bool:
        """Whether a report could show this."""
        return self.is_key(key)

    def memo_index(self, key: Key, v: int) -> int:
        """Memo symbol of the value ``v``: values that share it share their answer."""
        return v

    @abstractmethod
    def is_answer(self, y: Answer) -> bool:
        """Whether ``y`` could have been sent."""

    @abstractmethod
    def randomise(self, rng: Rng, x: int, channel: Any) -> Answer:
        """First randomised response: from the memo symbol ``x`` to an answer."""

    @abstractmethod
    def rerandomise(self, rng: Rng, answer: Answer, channel: Any) -> Answer:
        """Second randomised response: from an answer to a fresh one."""

    def memo_indices(self, keys: Any, values: Ints, n: int) -> Ints:
        """Memo symbols of some values under each of n keys, int64[n, values]."""
        import numpy as np

        def key_of(row: Any) -> Key:
            return tuple(row) if isinstance(row, list) else row

        own = [None] if keys is None else map(key_of, keys.tolist())
        cells = [[self.memo_index(key, v) for v in values.tolist()] for key in own]
        return np.broadcast_to(np.array(cells, dtype=np.int64), (n, len(values)))

    # -- formulas; each works on floats and on exact fractions

    @abstractmethod
    def chain(self, p1: Number, q1: Number, p2: Number, q2: Number) -> tuple[Number, Number]:
        """p and q of two rounds after each other, before any hashing."""

    @abstractmethod
    def likelihood_ratio(self, p: Number, q: Number) -> Number:
        """Largest likelihood ratio of one answer between two memo symbols: e^loss."""

    @property
    def collision(self) -> Fraction:
        """Exact probability c0 that two different values of a user share their memo symbol."""
        return Fraction(0)

    def supporting(self, p: Number, q: Number) -> tuple[Number, Number]:
        """p_star and q_star: Pr[answer supports v | user holds v], [.. | user holds another]."""
        c0: Any = float(self.collision) if isinstance(p, float) else self.collision
        return p, c0 * p + (1 - c0) * q

    # -- server

    def arrays(self, reports: Sequence[Report]) -> tuple[Any, Any]:
        """Keys and ys of valid reports, in the array forms above."""
        import numpy as np

        keys, ys = self.shapes(len(reports))
        answers: Any = [report.y for report in reports]
        if self.packed:
            stacked = np.frombuffer(b"".join(answers), dtype=np.uint8).reshape(ys)
        else:
            stacked = np.array(answers, dtype=np.int64).reshape(ys)
        if keys is None:
            return None, stacked
        return np.array([report.key for report in reports], dtype=np.int64).reshape(keys), stacked

    @abstractmethod
    def shapes(self, n: Any) -> tuple[tuple[Any, ...] | None, tuple[Any, ...]]:
        """Shapes of keys and ys of n reports."""

    def key_of(self, numbers: tuple[int, ...]) -> Key:
        """The key that is written as these numbers; ValueError if none is."""
        keys, _ = self.shapes(1)
        if keys is None or len(numbers) != math.prod(keys):
            raise ValueError("key must have as many numbers as the encoding's keys")
        return numbers[0] if len(keys) == 1 else numbers

    @property
    def row_bytes(self) -> tuple[int, int]:
        """Bytes that key and y of one report take in the array forms."""
        keys, ys = self.shapes(1)
        return 8 * math.prod(keys) if keys else 0, (1 if self.packed else 8) * math.prod(ys)

    @abstractmethod
    def valid(self, keys: Any, ys: Any) -> Bools:
        """Which of n reports are in range, bool[n]; keys and ys have the array forms above."""

    @abstractmethod
    def count(self, counts: Ints, keys: Any, ys: Any) -> None:
        """Add n valid reports to ``counts`` int64[cells], in place."""

    def cell(self, report: Report) -> int | None:
        """The single cell that a valid report adds 1 to; None if there is not one."""
        return None

    @property
    def span(self) -> int:
        """Cells that one report can add to, at most."""
        return self.cells

    def increments(self, keys: Any, ys: Any) -> tuple[Ints, Ints]:
        """The cells that n valid reports add to, ascending, and how much; int64 each."""
        import numpy as np

        counts = np.zeros(self.cells, dtype=np.int64)
        self.count(counts, keys, ys)
        cells = np.flatnonzero(counts)
        return cells, counts[cells]

    def admit(self, counts: Ints, keys: Any, ys: Any) -> bool:
        """`count` n reports if all of them are `valid`, else leave ``counts`` as it is.

        Some encodings do both in one pass: override it together with either of them.

        Returns
        -------
        bool
            Whether they were counted.
        """
        if not self.valid(keys, ys).all():
            return False
        self.count(counts, keys, ys)
        return True

    @abstractmethod
    def support(self, counts: Ints) -> Ints:
        """How many reports support each bin, int64[bins]."""

    def expected_eligible(self, n: int) -> float:
        """How many of n reports are expected to be able to support one given bin."""
        return float(n)

    def lasting_share(self, f: Floats, contrast: float) -> Floats:
        """Covariance of memo noise of two rounds over its variance, float64[bins].

        For values drawn from the frequencies ``f`` in each, users whose report can support the
        bin, and p1 - q1 = ``contrast``. Here it is the chance that both rounds find a user at one
        memo symbol. Source: MATH section 19.
        """
        lasting: Floats = 0 * f + (f**2).sum()
        return lasting

    def eligible(self, counts: Ints, n: int) -> Ints:
        """How many reports could support each bin, int64[bins]."""
        import numpy as np

        return np.full(self.bins, n, dtype=np.int64)


class OfValues(Encoding):
    """Without a key: one memo symbol, one bin and one count a value."""

    k: int

    @property
    def bins(self) -> int:
        return self.k

    @property
    def memo_cells(self) -> int:
        return self.k

    @property
    def memo_symbols(self) -> int:
        return self.k

    @property
    def cells(self) -> int:
        return self.k

    @property
    def key_bits(self) -> int:
        return 0

    def support(self, counts: Ints) -> Ints:
        return counts.copy()


def occurrences(cells: Ints) -> tuple[Ints, Ints]:
    """The different cells, ascending, and how often each occurs: no table of all is made."""
    import numpy as np

    different, times = np.unique(cells, return_counts=True)
    return different, times.astype(np.int64)
