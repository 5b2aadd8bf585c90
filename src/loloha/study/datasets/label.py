"""Turning cells of any type into indices of a domain of labels, at array speed."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha.study.datasets.dataset import MISSING, DataError, extra, is_missing, narrowest
from loloha.study.datasets.source import PURPOSE

# Up to 18 digits: what is longer, or starts with 0 or +, is a code and stays text.
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
GAPS = frozenset({"NA", "NaN", "nan", "null"})
OUTSIDE = -2

Symbols = np.ndarray[Any, np.dtype[np.int32]]
Indices = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]


@dataclass(frozen=True, repr=False)
class Cells:
    """Cells of some columns, each by the number of its content among all contents seen.

    Parameters
    ----------
    symbols : int32[rows, columns]
        Index into ``seen``; -1 for null.
    seen : list
        Contents as Python scalars, in order of appearance within one type.
    is_text : bool
        Contents come from a CSV, so that their type is not known.
    """

    symbols: Symbols
    seen: list[Any]
    is_text: bool


def read_cells(columns: Sequence[Any], is_text: bool) -> Cells:
    """Number the different contents of Arrow columns of one length."""
    symbols, dictionaries = number(columns)
    seen = [content for dictionary in dictionaries for content in dictionary.to_pylist()]
    return Cells(symbols, [content.strip() for content in seen] if is_text else seen, is_text)


def number(columns: Sequence[Any]) -> tuple[Symbols, list[Any]]:
    """Symbols int32[rows, columns] into the concatenation of the Arrow arrays that follow."""
    pyarrow = extra("pyarrow", PURPOSE)
    plain = [_plain(column, pyarrow) for column in columns]
    symbols = np.full((len(columns[0]), len(columns)), MISSING, dtype=np.int32)
    dictionaries: list[Any] = []
    # Columns of one type share one dictionary: contents are handled once and not once a round.
    for kind in dict.fromkeys(column.type for column in plain):
        if pyarrow.types.is_null(kind):
            continue
        places = [place for place, column in enumerate(plain) if column.type == kind]
        chunks = [chunk for place in places for chunk in plain[place].chunks]
        encoded = pyarrow.chunked_array(chunks, type=kind).dictionary_encode().combine_chunks()
        indices = encoded.indices.fill_null(MISSING).to_numpy()
        offset = sum(map(len, dictionaries))
        if offset:
            indices = np.where(indices == MISSING, MISSING, indices + offset)
        symbols[:, places] = indices.reshape(len(places), -1).T
        dictionaries.append(encoded.dictionary)
    return symbols, dictionaries


def sort_labels(cells: Cells, natural: bool = False) -> list[Hashable]:
    """Sorted distinct labels of the cells.

    Parameters
    ----------
    cells : Cells
        Those of a CSV become numbers if all are plain numbers (or a mark of a gap).
    natural : bool
        Sort numbers inside text by value: "week 2" before "week 10".

    Raises
    ------
    DataError
        If the labels are of several kinds, which have no order.
    """
    contents = [content for content in _typed(cells) if not is_missing(content)]
    kinds = sorted({kind(content) for content in contents})
    if len(kinds) > 1:
        raise DataError(
            f"cells must be of one kind, got {' and '.join(kinds)}; cast the columns, or pass "
            "domain="
        )
    if natural and kinds == ["text"]:
        return sorted(set(contents), key=_by_parts)
    return sorted(set(contents))


def encode(cells: Cells, labels: Sequence[Hashable], loose: bool) -> Indices:
    """Indices of the cells into ``labels``: -1 for missing ones, -2 for those outside.

    Parameters
    ----------
    cells : Cells
    labels : sequence of k labels
    loose : bool
        Labels or cells are text from a file: numbers are compared with plain numbers, everything
        else by its text. Otherwise equal contents match, and True is not 1.
    """
    key = _loose_key if loose else _key
    index = {key(label): i for i, label in enumerate(labels)}
    has_numbers = any(kind(label) == "numbers" for label in labels)
    # The last entry serves the symbol -1, null.
    lookup = np.full(len(cells.seen) + 1, MISSING, dtype=narrowest(len(labels)))
    for symbol, content in enumerate(cells.seen):
        if is_missing(content):
            continue
        if cells.is_text and has_numbers:
            content = parse(content)
        found = index.get(key(content), OUTSIDE)
        is_gap = found == OUTSIDE and cells.is_text and has_numbers and content in GAPS
        lookup[symbol] = MISSING if is_gap else found
    return lookup[cells.symbols]


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


def _typed(cells: Cells) -> list[Any]:
    """Contents with the type that all of them have."""
    if cells.is_text:
        parsed = parse_all([text for text in cells.seen if text and text not in GAPS])
        return cells.seen if any(isinstance(content, str) for content in parsed) else parsed
    floats = [content for content in cells.seen if isinstance(content, float)]
    if not all(content.is_integer() for content in floats if not is_missing(content)):
        return cells.seen
    return [
        int(content) if isinstance(content, float) and not is_missing(content) else content
        for content in cells.seen
    ]


def _plain(column: Any, pyarrow: Any) -> Any:
    """Bring a column to a type whose contents become ordinary Python scalars."""
    types, found = pyarrow.types, column.type
    try:
        if types.is_dictionary(found):
            return pyarrow.chunked_array([_decoded(chunk, pyarrow) for chunk in column.chunks])
        if found in (pyarrow.string(), pyarrow.string_view()):
            return column.cast(pyarrow.large_string())
        # Finer times than Python has, or than pandas would be asked for.
        if types.is_timestamp(found):
            return column.cast(pyarrow.timestamp("us", found.tz))
        if types.is_time64(found):
            return column.cast(pyarrow.time64("us"))
        if types.is_duration(found):
            return column.cast(pyarrow.duration("us"))
    except pyarrow.ArrowInvalid:
        raise DataError(
            "times must be whole microseconds, got finer ones; round them first"
        ) from None
    if types.is_nested(found):
        raise DataError(
            f"cells must be text, numbers, booleans or dates, got a column of {found}; pick the "
            "field to count"
        )
    return column


def _decoded(chunk: Any, pyarrow: Any) -> Any:
    """Spell out a dictionary array; Arrow itself cannot for all types of text."""
    dictionary = _plain(pyarrow.chunked_array([chunk.dictionary]), pyarrow)
    return dictionary.combine_chunks().take(chunk.indices)


def _key(label: Any) -> Hashable:
    """Keep True apart from 1, which Python holds equal."""
    return (bool, label) if isinstance(label, bool) else label


def _loose_key(label: Any) -> Hashable:
    return label if kind(label) == "numbers" else str(label)


def _by_parts(text: Any) -> tuple[list[tuple[int, int, str]], str]:
    """Sort key that reads runs of digits as numbers; the text itself settles ties."""
    parts = [part for part in re.split(r"([0-9]+)", text) if part]
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts], text
