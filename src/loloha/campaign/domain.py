"""The domain of a campaign: the values that it asks for, and the label of each."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from loloha import checks
from loloha.campaign.edge import Edges
from loloha.campaign.scalar import alike, clean, exact, spellings, unboxed, whole
from loloha.errors import CampaignError

LARGEST = 1 << 53
"""Larger integers are not exact in every language."""

_LONGEST_LABEL = 200


class Scale(NamedTuple):
    """The numbers that equally spaced values stand for.

    Attributes
    ----------
    start, step : float
        The value v, or a mean v of values, stands for start + step v: of a range the middle of its
        part.
    half : float
        How far a part extends to each side of it: half a step of a range, 0 of labels.
    """

    start: float
    step: float
    half: float


@dataclass(frozen=True)
class Labels:
    """A domain given by its labels.

    Parameters
    ----------
    labels : tuple of str or int
        In the order of their index; all different as text.
    other : str, optional
        Label of one more value, the last, for everything that is not among the labels.
    """

    labels: tuple[str | int, ...]
    other: str | None = None

    def __post_init__(self) -> None:
        self._check()
        self.refuse_alike()

    @classmethod
    def agreed(cls, labels: tuple[str | int, ...], other: str | None) -> Labels:
        """Those of a document; campaigns of earlier releases may have some that look alike."""
        made = object.__new__(cls)
        object.__setattr__(made, "labels", labels)
        object.__setattr__(made, "other", other)
        made._check()
        return made

    def _check(self) -> None:
        object.__setattr__(self, "labels", tuple(unboxed(label) for label in self.labels))
        for label in self.labels:
            if isinstance(label, bool) or not isinstance(label, (str, int)):
                raise CampaignError(
                    f"labels must be texts or integers, got {checks.shown(label)}; write it as text"
                )
            if isinstance(label, int):
                checks.integer("label", label, -LARGEST, LARGEST, "write it as text")
            check_text("labels", str(label), _LONGEST_LABEL)
        if len(self._index) < len(self.labels):
            raise CampaignError(
                "labels must all be different, got one twice (composed and decomposed accents are "
                "equal); list each once"
            )
        _check_other(self.other, self._index)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {clean(str(label)): index for index, label in enumerate(self.labels)}

    @cached_property
    def is_numeric(self) -> bool:
        """Whether every label is an integer as programs write it."""
        return all(str(whole(label)) == label for label in self._index)

    @property
    def scale(self) -> Scale | None:
        """The numbers of the values; None unless labels are integers in equal, ascending steps."""
        if self.other is not None or not self.is_numeric:
            return None
        numbers = [int(label) for label in self._index]
        steps = {after - before for before, after in pairwise(numbers)}
        if len(steps) != 1 or min(steps) <= 0:
            return None
        return Scale(float(numbers[0]), float(steps.pop()), 0.0)

    @property
    def wanted(self) -> str:
        """The requirement on a value, in words."""
        return "one of the campaign's labels"

    @property
    def k(self) -> int:
        """Number of values."""
        return len(self.labels) + (self.other is not None)

    @property
    def texts(self) -> list[str]:
        """A label for each value, in order."""
        return [*map(str, self.labels), *_if_any(self.other)]

    def text(self, v: int) -> str:
        """The label of one value."""
        return self.other or "" if v == len(self.labels) else str(self.labels[v])

    def index(self, value: Any) -> int | None:
        """Position of the label that ``value`` spells, None if there is none.

        Text is itself, whatever number it looks like; where all labels are integers, 7.0 is 7, as
        a column with gaps is written. A number is a label that is written so, or its integer.

        Raises
        ------
        DomainError
            If the value is missing, or no label can stand for its type.
        """
        for text in spellings(value):
            if text in self._index:
                return self._index[text]
            if self.is_numeric and (number := whole(text)) is not None:
                return self._index.get(str(number))
        return None

    def refuse_alike(self) -> None:
        """Refuse labels that look alike to people.

        Raises
        ------
        CampaignError
            If labels differ only in what nobody sees, or in letters that are drawn alike.
        """
        if number := alike(self.texts):
            raise CampaignError(
                f"labels must look different, got {number} that look like another or like "
                "nothing (characters that nobody sees, or letters of another alphabet); rename them"
            )

    def to_plain(self) -> Any:
        """Its form in the document."""
        return list(self.labels)


@dataclass(frozen=True)
class Range:
    """A domain of ``bins`` equal parts of the numbers from ``low`` to ``high``, both included.

    A number on an edge belongs to the part above it, and ``high`` to the last part. The arithmetic
    is exact, on decimals: a float stands for the shortest decimal that reads back as it.
    """

    low: int | float
    high: int | float
    bins: int
    other: str | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, _number(name, getattr(self, name)))
        bins = checks.integer("bins", self.bins, 1, 1 << 24, "give the number of equal parts")
        object.__setattr__(self, "bins", bins)
        if not self.low < self.high:
            raise CampaignError(
                f"range must be [low, high] with low < high, got "
                f"{checks.shown([self.low, self.high])}; swap or widen it"
            )
        _check_other(self.other, ())

    @property
    def k(self) -> int:
        """Number of values."""
        return self.bins + (self.other is not None)

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers: always."""
        return True

    @property
    def scale(self) -> Scale | None:
        """The numbers of the values, the middles of their parts; None where there is ``other``."""
        if self.other is not None:
            return None
        low, high = self._ends
        width = (high - low) / self.bins
        return Scale(float(low + width / 2), float(width), float(width / 2))

    @property
    def wanted(self) -> str:
        """The requirement on a value, in words: a label of a part is no number."""
        return f"a number from {self.low} to {self.high}"

    @property
    def texts(self) -> list[str]:
        """A label for each value, in order: the edges of its part."""
        edges = map(self._edges.text, range(self.bins + 1))
        parts = [f"[{a}, {b})" for a, b in pairwise(edges)]
        parts[-1] = parts[-1][:-1] + "]"
        return [*parts, *_if_any(self.other)]

    def text(self, v: int) -> str:
        """The label of one value."""
        if v == self.bins:
            return self.other or ""
        a, b = self._edges.text(v), self._edges.text(v + 1)
        return f"[{a}, {b}{']' if v == self.bins - 1 else ')'}"

    @cached_property
    def _edges(self) -> Edges:
        return Edges(*self._ends, self.bins)

    @cached_property
    def _ends(self) -> tuple[Fraction, Fraction]:
        low, high = exact(self.low), exact(self.high)
        return low or Fraction(0), high or Fraction(0)

    def index(self, value: Any) -> int | None:
        """Which part holds the number ``value``, None if none does.

        Raises
        ------
        DomainError
            If the value is missing, or of a type that no label can stand for.
        """
        texts = spellings(value)
        number = exact(texts[0] if isinstance(unboxed(value), bytes) and texts else value)
        low, high = self._ends
        if number is None or not low <= number <= high:
            return None
        return min(self.bins - 1, math.floor((number - low) * self.bins / (high - low)))

    def to_plain(self) -> Any:
        """Its form in the document."""
        return {"range": [self.low, self.high], "bins": self.bins}


Domain = Labels | Range


def domain_from_plain(labels: Any, other: Any) -> Domain:
    """The domain that a document describes by ``labels`` and, or None, ``other``."""
    if isinstance(labels, list):
        return Labels.agreed(tuple(labels), other)
    if isinstance(labels, Mapping) and set(labels) == {"range", "bins"}:
        ends = labels["range"]
        if isinstance(ends, list) and len(ends) == 2:
            return Range(ends[0], ends[1], labels["bins"], other)
    raise CampaignError(
        'labels must be a list, or {"range": [low, high], "bins": n}, got another; correct it'
    )


def _check_other(other: Any, labels: Container[str]) -> None:
    if other is None:
        return
    check_text("other", other, _LONGEST_LABEL)
    if clean(other) in labels:
        raise CampaignError(
            f"other must differ from the labels, got {checks.shown(other)}; "
            "drop it from one of the two"
        )


def check_text(name: str, text: Any, longest: int) -> None:
    """Refuse a text that people could not read or compare."""
    # A lone surrogate has no UTF-8 form, hence no fingerprint.
    if (
        not isinstance(text, str)
        or not 1 <= len(text) <= longest
        or not text.isprintable()
        or text != text.strip()
    ):
        raise CampaignError(
            f"{name} must be 1..{longest} printable characters without spaces at the ends, "
            f"got {checks.shown(text)}; shorten or clean it"
        )


def _number(name: str, value: Any) -> int | float:
    number = checks.real(name, value, -LARGEST, LARGEST, "correct the range")
    # 10 and 10.0 give the same range, hence one fingerprint.
    return int(value) if number.is_integer() else number


def _if_any(other: str | None) -> list[str]:
    return [] if other is None else [other]
