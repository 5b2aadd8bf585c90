"""The values that a campaign asks for, and the text by which people know each of them."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

from loloha.errors import CampaignError
from loloha.rules import checks

LARGEST = 1 << 53
"""Integers beyond it are not the same in every language."""

_LONGEST_LABEL = 200


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
        for label in self.labels:
            if isinstance(label, bool) or not isinstance(label, (str, int)):
                raise CampaignError(
                    f"labels must be texts or integers, got {label!r}; write it as text"
                )
            if isinstance(label, int):
                checks.integer("label", label, -LARGEST, LARGEST, "write it as text")
            check_text("labels", str(label), _LONGEST_LABEL)
        if len(self._index) < len(self.labels):
            raise CampaignError("labels must all be different, got one twice; list each once")
        _check_other(self.other, self._index)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {str(label): index for index, label in enumerate(self.labels)}

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
        """Position of the label ``value``, None if there is none."""
        return self._index.get(str(value))

    def to_plain(self) -> Any:
        """As it stands in the document."""
        return list(self.labels)


@dataclass(frozen=True)
class Range:
    """A domain of ``bins`` equal parts of the numbers from ``low`` to ``high``, both included.

    A number on an edge belongs to the upper part, but for ``high`` itself. The arithmetic is exact.
    """

    low: int | float
    high: int | float
    bins: int
    other: str | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, _number(name, getattr(self, name)))
        checks.integer("bins", self.bins, 1, 1 << 24, "give the number of equal parts")
        if not self.low < self.high:
            raise CampaignError(
                f"range must be [low, high] with low < high, got {[self.low, self.high]!r}; "
                "swap or widen it"
            )
        _check_other(self.other, ())

    @property
    def k(self) -> int:
        """Number of values."""
        return self.bins + (self.other is not None)

    @property
    def texts(self) -> list[str]:
        """A label for each value, in order: the edges of its part."""
        edges = self._edges()
        parts = [f"[{a}, {b})" for a, b in pairwise(edges)]
        parts[-1] = parts[-1][:-1] + "]"
        return [*parts, *_if_any(self.other)]

    def text(self, v: int) -> str:
        """The label of one value."""
        if v == self.bins:
            return self.other or ""
        low, width = Fraction(self.low), (Fraction(self.high) - Fraction(self.low)) / self.bins
        a, b = _edge(low + v * width), _edge(low + (v + 1) * width)
        return f"[{a}, {b}{']' if v == self.bins - 1 else ')'}"

    def _edges(self) -> list[str]:
        low, width = Fraction(self.low), (Fraction(self.high) - Fraction(self.low)) / self.bins
        if low.denominator == width.denominator == 1:
            # The usual case, and much quicker.
            return [str(edge) for edge in range(int(low), int(self.high) + 1, int(width))]
        return [_edge(low + i * width) for i in range(self.bins + 1)]

    def index(self, value: Any) -> int | None:
        """Which part holds the number ``value``, None if none does."""
        number = _exact(value)
        low, high = Fraction(self.low), Fraction(self.high)
        if number is None or not low <= number <= high:
            return None
        return min(self.bins - 1, math.floor((number - low) * self.bins / (high - low)))

    def to_plain(self) -> Any:
        """As it stands in the document."""
        return {"range": [self.low, self.high], "bins": self.bins}


Domain = Labels | Range


def domain_from_plain(labels: Any, other: Any) -> Domain:
    """The domain that a document describes by ``labels`` and, or None, ``other``.

    Raises
    ------
    CampaignError
        If these are neither a list of labels nor a range with bins.
    """
    if isinstance(labels, list):
        return Labels(tuple(labels), other)
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
    if other in labels:
        raise CampaignError(
            f"other must differ from the labels, got {other!r}; drop it from one of the two"
        )


def check_text(name: str, text: Any, longest: int) -> None:
    """Refuse a text that people could not read or compare.

    Raises
    ------
    CampaignError
        Unless it is 1 to ``longest`` printable characters without spaces at the ends.
    """
    # A lone surrogate has no UTF-8 form, hence no fingerprint.
    if (
        not isinstance(text, str)
        or not 1 <= len(text) <= longest
        or not text.isprintable()
        or text != text.strip()
    ):
        raise CampaignError(
            f"{name} must be 1..{longest} printable characters without spaces at the ends, "
            f"got {text!r}; shorten or clean it"
        )


def _number(name: str, value: Any) -> int | float:
    number = checks.real(name, value, -LARGEST, LARGEST, "correct the range")
    # 10 and 10.0 are one range, so one fingerprint.
    return int(value) if number.is_integer() else number


def _exact(value: Any) -> Fraction | None:
    """The number that a text or a number stands for, None if it stands for none."""
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, str):
            value = int(value) if value.strip().lstrip("+-").isdecimal() else float(value)
        return Fraction(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _edge(edge: Fraction) -> str:
    return str(edge) if edge.denominator == 1 else f"{float(edge):g}"


def _if_any(other: str | None) -> list[str]:
    return [] if other is None else [other]
