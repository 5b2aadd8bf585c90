"""Labels of cells, and their order."""

from __future__ import annotations

import datetime
import decimal
import math
import re
import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from loloha.campaign.domain import Domain as CampaignDomain
from loloha.campaign.scalar import identity, is_missing, whole
from loloha.datasets.arrow_cells import Cells, Indices
from loloha.datasets.dataset import MISSING, DataError, narrowest

# Up to 18 digits: longer ones, and those with leading 0 or +, are codes and stay text.
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
UNSORTABLE = re.compile(
    r"^[0-9]{1,2}([./-])[0-9]{1,2}\1([0-9]{2}\b|$)"  # a day and a month, in either order
    r"|^(?![0-9]{4}).*[0-9][^0-9]+(1[0-9]|20)[0-9]{2}\b"  # a year that is not first
    r"|\b(jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)[a-z]*\b"
    r"|\b(mon|tue|wed|thu|fri|sat|sun)[a-z]*\b"
    r"|[0-9] ?[ap]\.?m\b"
    r"|:[0-9.]+ ?[+-][0-9]{2}(:?[0-9]{2})?$",  # zones
    re.IGNORECASE,
)
"""Times whose text does not sort as they do: a year that is not first, names, am and pm, zones."""
SORTABLE = re.compile(
    r"[0-9]{4}((?P<dash>[-/.]?)[0-9]{2}((?P=dash)[0-9]{2})?|-?[QW][0-9]{1,2}(-[0-9])?)?"
    r"([T ][0-9]{2}(:?[0-9]{2}){0,2}([.,][0-9]+)?Z?)?",
    re.IGNORECASE,
)
"""Dates and times whose text sorts as they do, of one form."""
GAPS = frozenset({"NA", "NaN", "nan", "null"})
GAP_WORDS = ("NA", "N/A", "NaN", "null", "None", "-1")
"""What programs write for a missing value, in any case; in text it is a label."""
INFINITE = re.compile(
    r"[+-]?(inf(inity)?|\u221e|nan(\([a-z]*\))?|[0-9.]+e\+?[0-9]{3,})", re.IGNORECASE
)
"""What programs write for a number that is not finite, or beyond the largest that they have."""
COMMA = re.compile(r"\s*[+-]?[0-9.]*,[0-9]+\s*")
OUTSIDE = -2


def have_commas(contents: Iterable[Any]) -> bool:
    """Whether some are numbers with a decimal comma, as spreadsheets of many countries write."""
    return any(isinstance(content, str) and COMMA.fullmatch(content) for content in contents)


def gap_words(labels: Iterable[Hashable]) -> list[str]:
    """Which of `GAP_WORDS`, in any case, are among the labels; no other label is shown."""
    # Among numbers, -1 is a value where others are negative, too.
    known = list(labels)
    negative = [label for label in numbers_of(known) if label < 0]
    folded = {label.casefold() for label in known if isinstance(label, str)}
    folded |= {"-1"} if negative == [-1] else set()
    return [word for word in GAP_WORDS if word.casefold() in folded]


def numbers_of(labels: Iterable[Hashable]) -> list[Any]:
    """The labels that are numbers."""
    return [label for label in labels if kind(label) == "numbers"]


def sort_labels(cells: Cells, natural: bool = False) -> list[Hashable]:
    """Sorted distinct labels of the cells."""
    refuse_infinite(cells.seen, cells.is_text)
    contents = {identity(content): content for content in typed(cells) if not is_missing(content)}
    kinds = sorted({kind(content) for content in contents.values()})
    if len(kinds) > 1:
        raise DataError(
            f"cells must be of one kind, got {' and '.join(kinds)}; cast the columns, or pass "
            "domain=; if each row is a report, pass user=, round= and value="
        )
    by_parts = natural and kinds == ["text"]
    if by_parts and len(contents) > 1:
        _must_sort([str(content) for content in contents.values()])
    try:
        return sorted(contents.values(), key=_by_parts if by_parts else None)
    except TypeError:
        raise DataError(
            f"cells must have an order, got {kinds[0]}; turn them into text, or pass domain="
        ) from None


def refuse_infinite(contents: Iterable[Any], is_text: bool) -> None:
    """Refuse numbers that are not finite; written in text, where all others are numbers."""
    known = {content for content in contents if not is_missing(content) and content not in GAPS}
    if is_text:
        numbers = {text for text in known if not isinstance(parse(text), str)}
        infinite = {text for text in known - numbers if INFINITE.fullmatch(text)}
        is_number = numbers and infinite == known - numbers
    else:
        reals = (float, decimal.Decimal)
        infinite = {x for x in known if isinstance(x, reals) and not math.isfinite(x)}
        is_number = True
    if infinite and is_number:
        raise DataError(
            f"numbers must be finite, got {len(infinite)} that are not (as inf, or 1e400) among "
            f"{len(known)} different ones; correct such cells, or leave them blank if nothing was "
            "reported"
        )


def _must_sort(texts: Sequence[str]) -> None:
    """Refuse times whose text does not sort by time; warn if the order is a guess."""
    if all(map(UNSORTABLE.search, texts)):
        raise DataError(
            "rounds must sort by time, got text that does not, such as 5.1.2026, 1/5/2026, Jan "
            "2026, Monday, 9 am or times of several zones; write them like 2026-01-05 (times in "
            "UTC), or number the rounds"
        )
    forms = {re.sub("[0-9]", "0", text) for text in texts}
    if len(forms) == 1 and all(map(SORTABLE.fullmatch, texts)):
        return
    parts = [re.split("([0-9]+)", text) for text in texts]
    if len({tuple(part[::2]) for part in parts}) == 1:
        numbers = zip(*(part[1::2] for part in parts), strict=True)
        if sum(len(set(some)) > 1 for some in numbers) == 1:
            return
    warnings.warn(
        "rounds are sorted as text, numbers in it by value, which may not be their order in time: "
        "number them, or write dates like 2026-01-05",
        stacklevel=5,  # whoever asked for the table
    )


def encode(cells: Cells, labels: Sequence[Hashable], loose: bool) -> Indices:
    """Indices of the cells into ``labels``: -1 for missing ones, -2 for those outside."""
    key = _loose_key if loose else identity
    index = {key(label): i for i, label in enumerate(labels)}
    has_numbers = any(kind(label) == "numbers" for label in labels)
    # Written for integers alone, a domain reads 7.0 as 7, as a column with gaps is written.
    has_integers = all(isinstance(label, str) and str(whole(label)) == label for label in labels)

    def place(content: Any) -> int:
        if is_missing(content):
            return MISSING
        read = number(content) if cells.is_text and has_numbers else content
        position = index.get(key(read), OUTSIDE)
        if position == OUTSIDE and cells.is_text and has_integers:
            position = index.get(str(whole(content)), OUTSIDE)
        is_gap = cells.is_text and (has_numbers or has_integers) and content in GAPS
        return MISSING if position == OUTSIDE and is_gap else position

    places = [place(content) for content in cells.seen]
    return cells.looked_up(places, narrowest(len(labels)))


def encode_for(cells: Cells, domain: CampaignDomain) -> Indices:
    """Indices of the cells among a campaign's values: -1 for missing ones, -2 for those outside."""

    def place(content: Any) -> int:
        if is_missing(content):
            return MISSING
        position = domain.index(content)
        if position is None and cells.is_text and domain.is_numeric and content in GAPS:
            return MISSING
        if position is None:
            return OUTSIDE if domain.other is None else domain.k - 1
        return position

    places = [place(content) for content in cells.seen]
    return cells.looked_up(places, narrowest(domain.k))


def parse(text: str) -> int | float | str:
    """Read a plain number; anything else, and codes like 007, stays text."""
    match = NUMBER.fullmatch(text)
    if match is None:
        return text
    if match.groups() == (None, None):
        return int(text)
    number = float(text)
    if math.isinf(number):
        return text
    return int(number) if number.is_integer() else number


def number(text: str) -> int | float | str:
    """Read a number that is written as it would be written again; 1.10 and 1E2 stay text."""
    read = parse(text)
    if isinstance(read, str) or text == str(read):
        return read
    # A float that is whole, as in a column with gaps; zero may keep a sign.
    return read if text == repr(float(text)) or text == "-0" else text


def parse_all(texts: Sequence[str]) -> list[Any]:
    """Read numbers if all are, and leave every one as text if one is not."""
    parsed = [parse(text) for text in texts]
    return list(texts) if any(isinstance(content, str) for content in parsed) else parsed


def kind(label: Any) -> str:
    """Name what labels of one order have in common; True is not the number 1."""
    for name, types in (
        ("true/false", bool),
        ("numbers", (int, float, decimal.Decimal)),
        ("text", str),
        ("times", datetime.datetime),
        ("dates", datetime.date),
    ):
        if isinstance(label, types):
            # Times with and without a zone have no common order.
            return f"{name} with a zone" if getattr(label, "tzinfo", None) else name
    return type(label).__name__


def typed(cells: Cells) -> list[Any]:
    """Contents with the type that all of them have; as many as were seen."""
    if cells.is_text:
        return _numbers(cells) or cells.seen
    floats = [content for content in cells.seen if isinstance(content, float)]
    if not all(content.is_integer() for content in floats if not is_missing(content)):
        return cells.seen
    return [
        int(content) if isinstance(content, float) and not is_missing(content) else content
        for content in cells.seen
    ]


def _numbers(cells: Cells) -> list[Any] | None:
    """Contents of a CSV as numbers, None where one of them is text."""
    # Two texts for one number, 2 and 2.0, are numbers only where no column holds both: one column
    # was written with gaps, as floats. In one column they are two versions.
    read = [None if not text or text in GAPS else number(text) for text in cells.seen]
    if any(isinstance(content, str) for content in read):
        return None
    alike: dict[Any, set[int]] = {}
    unsigned = set(cells.seen)
    for symbol, content in enumerate(read):
        # There is one zero: -0.0 beside 0.0 is no other version.
        text = cells.seen[symbol]
        is_signed = content == 0 and text.startswith("-") and text[1:] in unsigned
        if content is not None and not is_signed:
            alike.setdefault(content, set()).add(symbol)
    several = [symbols for symbols in alike.values() if len(symbols) > 1]
    if several:
        for column in cells.symbols.T:
            here = set(np.unique(column).tolist())
            if any(len(symbols & here) > 1 for symbols in several):
                return None
    return read


def _loose_key(label: Any) -> Hashable:
    return identity(label if kind(label) == "numbers" else str(label))


def _by_parts(text: Any) -> tuple[list[tuple[int, int, str]], str]:
    """Sort key that reads runs of digits as numbers; the text itself settles ties."""
    parts = [part for part in re.split(r"([0-9]+)", text) if part]
    return [_by_size(part) if part[0] in "0123456789" else (1, 0, part) for part in parts], text


def _by_size(digits: str) -> tuple[int, int, str]:
    """Sort key of a number of any length."""
    bare = digits.lstrip("0")
    return 0, len(bare), bare
