"""Cells of Arrow columns as Python scalars, each content once, at array speed."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha.campaign.scalar import clean, identity, is_missing
from loloha.checks import counted
from loloha.datasets.csv import PURPOSE
from loloha.datasets.dataset import MISSING, DataError, extra, foreign
from loloha.datasets.label_list import Domain

Indices = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]
_DECLARED = (b"_PL_ENUM_VALUES", b"_PL_ENUM_VALUES2")
_TIMES = "times must be whole microseconds in the years 1 to 9999"
_TEXT = "cells must be scalars, and text UTF-8"


@dataclass(frozen=True, repr=False)
class Cells:
    """Cells of some columns, each by the number of its content among all contents seen."""

    symbols: Indices
    seen: list[Any]
    is_text: bool

    def looked_up(self, places: Sequence[int], dtype: Any = np.int32) -> Indices:
        """For each cell the place of its content; -1 for null."""
        # The last entry serves the symbol -1.
        indices: Indices = np.array([*places, MISSING], dtype=dtype)[self.symbols]
        return indices


def read_cells(columns: Sequence[Any], is_text: bool, fields: Sequence[Any] = ()) -> Cells:
    """Number the different contents of Arrow columns of one length."""
    pyarrow = extra("pyarrow", PURPOSE)
    named = fields or [None] * len(columns)
    plain = [_plain(column, field, pyarrow) for column, field in zip(columns, named, strict=True)]
    symbols = np.full((len(columns[0]), len(columns)), MISSING, dtype=np.int32)
    seen: list[Any] = []
    # Columns of one type share one dictionary: contents are handled once and not once a round.
    for kind in dict.fromkeys(column.type for column in plain):
        if pyarrow.types.is_null(kind):
            continue
        places = [place for place, column in enumerate(plain) if column.type == kind]
        chunks = [chunk for place in places for chunk in plain[place].chunks]
        with foreign(
            f"cells must be of a type that Arrow can compare, got {kind}", "cast it to text"
        ):
            encoded = pyarrow.chunked_array(chunks, type=kind).dictionary_encode().combine_chunks()
        indices = encoded.indices.fill_null(MISSING).to_numpy()
        if seen:
            indices = np.where(indices == MISSING, MISSING, indices + len(seen))
        symbols[:, places] = indices.reshape(len(places), -1).T
        seen += scalars(encoded.dictionary)
    return Cells(symbols, seen, is_text)


def scalars(array: Any) -> list[Any]:
    """The contents of a plain Arrow array, cleaned; a float has its shortest decimal."""
    types = extra("pyarrow", PURPOSE).types
    if types.is_float16(array.type) or types.is_float32(array.type):
        # 0.3 of a narrow column is three tenths, not 0.30000001192092896.
        cells, gaps = (part.to_numpy(zero_copy_only=False) for part in (array, array.is_null()))
        return [
            None if gap else float(str(cell)) or 0.0 for cell, gap in zip(cells, gaps, strict=True)
        ]
    with foreign(_TIMES if types.is_temporal(array.type) else _TEXT, "convert such cells"):
        contents = array.to_pylist()
    if types.is_floating(array.type) or types.is_decimal(array.type):
        # There is one zero, without a sign.
        return [abs(cell) if cell == 0 else cell for cell in contents]
    return [clean(cell) if isinstance(cell, str) else cell for cell in contents]


def refuse_rounded(role: str, column: Any) -> None:
    """Refuse users or rounds as floats too large to differ from their neighbours."""
    pyarrow = extra("pyarrow", PURPOSE)
    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    if not pyarrow.types.is_floating(kind):
        return
    numbers = column.cast(kind).to_numpy().astype(np.float64)
    largest = 1 << {16: 11, 32: 24, 64: 53}[kind.bit_width]
    rounded = np.count_nonzero(np.abs(numbers) >= largest)
    if rounded:
        raise DataError(
            f"{role} must be text, integers or floats below {largest}, got "
            f"{counted(rounded, 'cell')} that cannot be told from neighbours; read the "
            "column as integers or as text"
        )


def declared(
    columns: Sequence[Any], fields: Sequence[Any], categorical: Collection[str], certain: bool
) -> Domain | None:
    """The domain that all columns declare by their type, in its order; None where they do not."""
    pyarrow = extra("pyarrow", PURPOSE)
    domains: list[list[Any]] = []
    for column, field in zip(columns, fields, strict=True):
        if pyarrow.types.is_null(column.type):
            continue
        if not pyarrow.types.is_dictionary(column.type):
            return None
        says = column.type.ordered or any(name in (field.metadata or {}) for name in _DECLARED)
        if not says and field.name not in categorical:
            return None
        certain = certain or says
        listed = [pyarrow.chunked_array([chunk.dictionary]) for chunk in column.chunks]
        domains += [scalars(_plain(chunk, None, pyarrow).combine_chunks()) for chunk in listed]
    if not domains or any(listed != domains[0] for listed in domains):
        return None
    labels = [label for label in domains[0] if not is_missing(label)]
    if len(set(map(identity, labels))) < len(labels):
        raise DataError("categories must differ, got some that look alike; rename them")
    return Domain(tuple(labels), is_certain=certain or not _is_sorted(labels))


def _is_sorted(labels: list[Any]) -> bool:
    try:
        return labels == sorted(labels)
    except TypeError:
        return False


def _plain(column: Any, field: Any, pyarrow: Any) -> Any:
    """Bring a column to a type whose contents become ordinary Python scalars."""
    types = pyarrow.types
    column = _unwrapped(column, field, pyarrow)
    dtype = column.type
    if types.is_run_end_encoded(dtype):
        compute = extra("pyarrow.compute", PURPOSE)
        parts = [compute.run_end_decode(chunk) for chunk in column.chunks]
        return _plain(pyarrow.chunked_array(parts, type=dtype.value_type), None, pyarrow)
    if types.is_nested(dtype) or types.is_interval(dtype) or "interval" in str(dtype):
        raise _unusable(dtype)
    with foreign(_TIMES if types.is_temporal(dtype) else _TEXT, "round or convert such cells"):
        if types.is_dictionary(dtype):
            parts = [
                _plain(pyarrow.chunked_array([chunk.dictionary]), None, pyarrow)
                .combine_chunks()
                .take(chunk.indices)
                for chunk in column.chunks
            ]
            return pyarrow.chunked_array(parts, type=None if parts else pyarrow.null())
        if dtype in (pyarrow.string(), pyarrow.string_view()):
            return column.cast(pyarrow.large_string())
        if types.is_timestamp(dtype):
            # Instants: in UTC no hour comes twice, whatever the zone, known here or not.
            return column.cast(pyarrow.timestamp("us", dtype.tz and "UTC"))
        if types.is_decimal32(dtype) or types.is_decimal64(dtype):
            # No other function of Arrow knows them.
            return column.cast(pyarrow.decimal128(38, dtype.scale))
        if types.is_time64(dtype):
            return column.cast(pyarrow.time64("us"))
        if types.is_duration(dtype):
            return column.cast(pyarrow.duration("us"))
    return column


def _unwrapped(column: Any, field: Any, pyarrow: Any) -> Any:
    """The storage of an extension type that says what it is; others are refused."""
    name = getattr(column.type, "extension_name", None)
    if name is None:
        name = ((field and field.metadata) or {}).get(b"ARROW:extension:name", b"").decode()
    if not name:
        return column
    storage = column
    if isinstance(column.type, pyarrow.BaseExtensionType):
        storage = column.cast(column.type.storage_type)
    if name == "arrow.uuid":
        texts = [
            None if cell is None else str(uuid.UUID(bytes=cell)) for cell in storage.to_pylist()
        ]
        return pyarrow.chunked_array([pyarrow.array(texts, pyarrow.large_string())])
    if name == "arrow.json":
        return storage
    if name == "arrow.bool8":
        return storage.cast(pyarrow.bool_())
    raise _unusable(name)


def _unusable(kind: Any) -> DataError:
    return DataError(
        f"cells must be text, numbers, booleans or dates, got a column of {kind}; turn it into "
        "text, or pick the field to count"
    )
