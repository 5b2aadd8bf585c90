"""The columns of each kind of report: Arrow types, and the way from and to arrays; see `schema`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loloha.encodings import Encoding, Kind
from loloha.errors import WireError

if TYPE_CHECKING:
    from loloha.arrays import Array, Bytes, Ints


class _ReportKind(NamedTuple):
    """One kind of report."""

    types: Callable[[Encoding], dict[str, Any]]
    """Name and Arrow type of each column."""
    made: Callable[[Encoding, Any, Any], list[Any]]
    """The columns that hold keys and ys."""
    read: Callable[..., tuple[Ints | None, Any]]
    """Keys and ys, out of an encoding and the columns."""


def types(encoding: Encoding) -> dict[str, Any]:
    """Name and Arrow type of each column of an encoding's reports."""
    return _COLUMNS[encoding.kind].types(encoding)


def made(encoding: Encoding, keys: Array | None, ys: Array) -> list[Any]:
    """The columns that hold n reports."""
    return _COLUMNS[encoding.kind].made(encoding, keys, ys)


def read(encoding: Encoding, columns: list[Any]) -> tuple[Ints | None, Any]:
    """Keys and ys of the reports in columns of the right types, without nulls."""
    return _COLUMNS[encoding.kind].read(encoding, *columns)


# -- symbols


def _symbol_types(encoding: Encoding) -> dict[str, Any]:
    import pyarrow as pa

    if encoding.shapes(1)[0] is None:
        return {"y": pa.int32()}
    return {"key": pa.int32() if encoding.key_bits < 32 else pa.int64(), "y": pa.int32()}


def _symbols_made(encoding: Encoding, keys: Ints | None, ys: Ints) -> list[Any]:
    import pyarrow as pa

    parts = {"key": keys, "y": ys}
    return [pa.array(parts[name], kind) for name, kind in _symbol_types(encoding).items()]


def _read_symbols(encoding: Encoding, *columns: Any) -> tuple[Ints | None, Ints]:
    *key, y = map(_integers, columns)
    return (key[0] if key else None), y


# -- bits


def _bits_types(encoding: Encoding) -> dict[str, Any]:
    import pyarrow as pa

    return {"y": pa.binary(encoding.shapes(1)[1][1])}


def _bits_made(encoding: Encoding, keys: None, ys: Bytes) -> list[Any]:
    return [from_rows(ys)]


def _read_bits(encoding: Encoding, y: Any) -> tuple[None, Bytes]:
    return None, to_rows(y, encoding.shapes(1)[1][1])


def _sampled_types(encoding: Encoding) -> dict[str, Any]:
    import pyarrow as pa

    element = pa.field("element", pa.int32(), nullable=False)
    return {"y": pa.list_(element, _sampled(encoding))}


def _sampled_made(encoding: Encoding, keys: Ints, ys: Bytes) -> list[Any]:
    import pyarrow as pa

    bits = np.unpackbits(ys, axis=1, count=_sampled(encoding), bitorder="little")
    answers = pa.array((2 * keys + bits).ravel(), pa.int32())
    return [pa.FixedSizeListArray.from_arrays(answers, type=_sampled_types(encoding)["y"])]


def _read_sampled(encoding: Encoding, y: Any) -> tuple[Ints, Bytes]:
    answers = _integers(y.flatten()).reshape(len(y), _sampled(encoding))
    bits = np.packbits((answers & 1).astype(np.uint8), axis=1, bitorder="little")
    return answers >> 1, bits


def _sampled(encoding: Encoding) -> int:
    """Buckets of a report."""
    keys: Any = encoding.shapes(1)[0]
    return int(keys[1])


_COLUMNS: dict[Kind, _ReportKind] = {
    **dict.fromkeys(
        ("symbol", "keyed symbol"), _ReportKind(_symbol_types, _symbols_made, _read_symbols)
    ),
    "bits": _ReportKind(_bits_types, _bits_made, _read_bits),
    "sampled bits": _ReportKind(_sampled_types, _sampled_made, _read_sampled),
}


# -- bytes and numbers


def array(data: Any, name: str, kind: Any) -> Any:
    """One column of a record batch or table as one array, without nulls."""
    import pyarrow as pa

    places = data.schema.get_all_field_indices(name)
    got = data.schema.field(places[0]).type if len(places) == 1 else f"{len(places)} of them"
    # Lists are equal whatever their element is called.
    same = len(places) == 1 and (got == kind or str(got) == str(kind) or _same_list(got, kind))
    if not same:
        raise WireError(
            f"column {name!r} must be there once with type {kind}, got {got}; "
            "see loloha.reportlog.schema"
        )
    array = data.column(places[0])
    if array.null_count:
        raise WireError(f"column {name!r} must hold no nulls, got {array.null_count}; drop them")
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _same_list(got: Any, kind: Any) -> bool:
    import pyarrow as pa

    lists = pa.types.is_fixed_size_list(got) and pa.types.is_fixed_size_list(kind)
    same: bool = lists and (got.list_size, got.value_type) == (kind.list_size, kind.value_type)
    return same


def rows_in(data: Any, name: str, width: int) -> Bytes:
    """One column of binaries, uint8[n, width]; errors as `one`."""
    import pyarrow as pa

    return to_rows(array(data, name, pa.binary(width)), width)


def to_rows(column: Any, width: int) -> Bytes:
    """Binaries of one width as uint8[n, width]."""
    data: Any = np.frombuffer(column.buffers()[1] or b"", np.uint8)
    start = column.offset * width
    rows: Bytes = data[start : start + len(column) * width].reshape(len(column), width)
    return rows


def from_rows(rows: Bytes) -> Any:
    """Rows of bytes, uint8[n, width], as binaries of one width."""
    import pyarrow as pa

    buffer = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(rows.shape[1]), len(rows), [None, buffer])


def _integers(column: Any) -> Ints:
    if column.null_count:
        raise WireError("column 'y' must hold no nulls, got some in its lists; drop them")
    numbers: Ints = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
