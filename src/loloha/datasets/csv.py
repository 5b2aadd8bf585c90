"""Reading CSV files: one parser, which is Arrow's, and every cell as the text that it is."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from loloha.checks import counted
from loloha.datasets.dataset import DataError, extra, foreign

TEXT = tuple(kind + packed for kind in (".csv", ".tsv", ".txt") for packed in ("", ".gz", ".bz2"))
PURPOSE = "read tables"
LARGEST_ROW = 1 << 24
"""Bytes of the longest row, header included."""
_QUOTED = re.compile(rb'"[^"]*("|$)')
_SEP = re.compile(rb'(?:\xef\xbb\xbf)?\s*"?sep=.?"?[ \t]*[\r\n]', re.IGNORECASE)
_END = "end of the file"
_UTF8 = "source must be a CSV in UTF-8, compressed as its suffix says"

Opener = Callable[[], IO[bytes]]


def read_csv(opener: Opener, types: dict[str, Any] | None = None) -> Any:
    """Columns of a CSV file, as an Arrow table."""
    pyarrow, reader = extra("pyarrow", PURPOSE), extra("pyarrow.csv", PURPOSE)
    names, delimiter = read_header(opener)
    if types is None:
        named = [name for name in names if name.strip()]
        refuse_repeated(named)
        types = dict.fromkeys(named, pyarrow.string())
    # A row more, with a field too many: a quote that is never closed swallows it.
    end = delimiter * len(names) + _END
    ragged: list[str] = []

    def skip(row: Any) -> str:
        ragged.append(row.text)
        return "skip"

    convert = reader.ConvertOptions(include_columns=list(types), column_types=types)
    with (
        foreign(
            "source must be a CSV in UTF-8 with each cell of its column's type "
            f"and rows of at most {LARGEST_ROW >> 20} MB",
            "repair it",
        ),
        opener() as stream,
    ):
        table = reader.read_csv(
            _WholeLines(stream, end),
            read_options=reader.ReadOptions(block_size=LARGEST_ROW),
            parse_options=_parsing(delimiter, skip),
            convert_options=convert,
        )
    if end not in ragged:
        raise DataError(
            "each quote that begins a cell must be closed, got one that is not; close it, or write "
            "the cell in quotes and double those that belong to it"
        )
    if others := len(ragged) - 1:
        raise DataError(
            f"each row must have {len(names)} fields like the header, got "
            f"{counted(others, 'row')} with another number; quote cells that hold the delimiter"
        )
    return table


def read_header(opener: Opener) -> tuple[list[str], str]:
    """Column names and delimiter of a CSV file."""
    reader = extra("pyarrow.csv", PURPOSE)
    with foreign(_UTF8, "convert the file"), opener() as stream:
        head = stream.read(LARGEST_ROW)
        # Arrow would decode rows with too many fields where nobody can catch its error.
        codecs.getincrementaldecoder("utf-8")().decode(head)
    _refuse_nul(head)
    if _SEP.match(head):
        raise DataError(
            "source must begin with the names of its columns, got a line sep=, which only "
            "spreadsheet programs understand; delete that line"
        )
    # Whichever the first line has most of, outside of quotes.
    line = re.split(rb"[\r\n]", _QUOTED.sub(b"", head.lstrip(b"\r\n")), maxsplit=1)[0]
    delimiter = max(",;\t", key=lambda mark: line.count(mark.encode()))
    if not head.removeprefix(b"\xef\xbb\xbf").strip():
        raise DataError("source must have a header line, got an empty one; name the columns")
    with foreign(_UTF8 + " and with a header line", "convert the file"), opener() as stream:
        first = reader.open_csv(
            stream,
            read_options=reader.ReadOptions(block_size=LARGEST_ROW),
            parse_options=_parsing(delimiter, lambda _: "skip"),
        )
        names = list(first.schema.names)
    if not any(name.strip() for name in names):
        raise DataError("source must have a header line, got an empty one; name the columns")
    return names, delimiter


def open_packed(path: Path) -> IO[bytes]:
    """Open a file that may be compressed, as its suffix says."""
    suffix = {".gz": "gzip", ".bz2": "bz2"}.get(path.suffix.lower())
    # Opened here: Arrow takes no name that is not UTF-8.
    packed: IO[bytes] = extra("pyarrow", PURPOSE).input_stream(path.open("rb"), compression=suffix)
    return packed


class _WholeLines(io.RawIOBase):
    """A stream and one line more, in parts that never end between CR and LF.

    There Arrow loses the LF of a cell.
    """

    def __init__(self, stream: IO[bytes], end: str) -> None:
        self._stream, self._pending, self._end = stream, b"", f"\n{end}\n".encode()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        part = self._pending + self._stream.read(size - len(self._pending) if size >= 0 else -1)
        _refuse_nul(part)
        ends = 0 < size == len(part) > 1 and part.endswith(b"\r")
        self._pending = b"\r" if ends else b""
        if not part:
            part, self._end = self._end, b""
        return part[:-1] if ends else part


def _refuse_nul(part: bytes) -> None:
    """No text in UTF-8 has a NUL, and every line of UTF-16 has many."""
    if b"\0" in part:
        raise DataError(
            "source must be a CSV in UTF-8, got NUL bytes, as UTF-16 has them; save it as CSV UTF-8"
        )


def _parsing(delimiter: str, invalid: Callable[[Any], str]) -> Any:
    return extra("pyarrow.csv", PURPOSE).ParseOptions(
        delimiter=delimiter, newlines_in_values=True, invalid_row_handler=invalid
    )


def refuse_repeated(names: Sequence[str]) -> None:
    """Refuse columns that cannot be distinguished."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"column names must differ, got {repeated} more than once; rename them")
