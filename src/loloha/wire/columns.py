"""Reports as an Arrow IPC stream, in the columns of `loloha.reportlog.schema`.

A stream from a stranger may only hold record batches that are not compressed: what it takes in
memory is then what was received.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

import numpy as np

from loloha import reportlog
from loloha.campaign import Campaign
from loloha.errors import WireError
from loloha.report import LARGEST_ROUND
from loloha.reportlog import column
from loloha.wire.message import TICKET_BYTES
from loloha.wire.refusal import Refusal
from loloha.wire.text import UploadTooLarge, too_large

CONTENT_TYPE = "application/vnd.apache.arrow.stream"
_TICKET = "ticket"
# A writer needs one batch, and a column for each part of a report.
_MOST_BATCHES, _MOST_COLUMNS = 1_000, 16


def encode_many(
    campaign: Campaign, reporters: Any, keys: Any, ys: Any, *, rounds: Any, tickets: Any = None
) -> bytes:
    """The Arrow IPC stream of n reports, their keys and ys in the array form of the encoding."""
    import pyarrow as pa

    batch = reportlog.to_arrow(campaign, reporters, keys, ys, rounds=rounds)
    if tickets is not None:
        proofs = column.from_rows(tickets)
        batch = batch.append_column(pa.field(_TICKET, proofs.type, nullable=False), proofs)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


class Columns(NamedTuple):
    """The reports of a stream; where ``codes`` refuses all, the others are empty."""

    codes: Any
    rounds: Any
    reporters: Any
    keys: Any
    ys: Any
    tickets: Any


def columns(body: bytes | bytearray, campaign: Campaign, most: int) -> Columns:
    """The columns of a stream of at most so many reports, with tickets if keys are assigned."""
    table, metadata = _open(body, most)
    reason = None
    if metadata.get("version") != reportlog.VERSION or metadata.get("format") != reportlog.FORMAT:
        reason = Refusal.VERSION
    elif metadata.get("campaign") != campaign.fingerprint:
        reason = Refusal.CAMPAIGN
    if reason is not None:
        # The columns may be those of another protocol: only the number of rows means something.
        codes = np.full(table.num_rows, reason.code, dtype=np.int8)
        nobody = np.zeros((0, 16), dtype=np.uint8)
        return Columns(
            codes,
            np.zeros(0, dtype=np.int64),
            nobody,
            *campaign.protocol.encoding.arrays([]),
            nobody,
        )
    reporters, keys, ys = reportlog.from_arrow(campaign, table)
    rounds = _rounds(table, metadata)
    outside = (rounds < 0) | (rounds > LARGEST_ROUND)
    codes = np.where(outside, Refusal.MALFORMED.code, 0).astype(np.int8)
    ticketed = campaign.keys == "assigned"
    if not ticketed and _TICKET in table.schema.names:
        codes[~outside] = Refusal.TICKET.code
    tickets = column.rows_in(table, _TICKET, TICKET_BYTES) if ticketed else None
    return Columns(codes, rounds, reporters, keys, ys, tickets)


def _rounds(table: Any, metadata: dict[str, Any]) -> Any:
    import pyarrow as pa

    if "round" not in table.schema.names:
        round = metadata.get("round")
        if not isinstance(round, int) or isinstance(round, bool) or not 0 <= round <= LARGEST_ROUND:
            raise WireError("stream must name its round, in its metadata or in a column; add it")
        return np.full(table.num_rows, round, dtype=np.int64)
    return column.array(table, "round", pa.int64()).to_numpy()


def _open(body: bytes | bytearray, most: int) -> tuple[Any, dict[str, Any]]:
    """The table of a stream and what its metadata say, after all checks of form."""
    import pyarrow as pa

    try:
        _must_be_plain(pa.ipc.MessageReader.open_stream(pa.py_buffer(body)))
        with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
            table = _read(stream, most)
        table.validate(full=True)
        metadata = json.loads((table.schema.metadata or {}).get(reportlog.arrow.METADATA, b""))
    except UploadTooLarge:
        raise
    except (pa.ArrowException, OSError, ValueError, RecursionError, struct.error):
        metadata = None
    if not isinstance(metadata, dict):
        raise WireError(
            "body must be an Arrow IPC stream of reports, uncompressed, without dictionaries, "
            "with the metadata of loloha.reportlog.schema; write it so"
        )
    return table, metadata


def _read(stream: Any, most: int) -> Any:
    """The record batches, one by one: columns of nulls take no bytes for any number of rows."""
    import pyarrow as pa

    if len(stream.schema) > _MOST_COLUMNS:
        raise ValueError("more columns than any report")
    batches: list[Any] = []
    rows = 0
    for batch in stream:
        rows += batch.num_rows
        if rows > most or len(batches) == _MOST_BATCHES:
            raise too_large(most)
        batches.append(batch)
    return pa.Table.from_batches(batches, stream.schema)


def _must_be_plain(messages: Any) -> None:
    """Refuse anything but a schema and then record batches that are not compressed."""
    expected = "schema"
    for message in messages:
        if message.type != expected or (
            expected == "record batch" and _is_compressed(message.metadata.to_pybytes())
        ):
            raise ValueError("a dictionary, or compressed")
        expected = "record batch"


def _is_compressed(metadata: bytes) -> bool:
    """Whether a record batch names a compression: the fourth field of its flatbuffer table."""
    # Message is (version, header type, header, body length), RecordBatch (length, nodes, buffers,
    # compression); a field is absent if its place in the vtable is zero or missing.
    root: int = struct.unpack_from("<I", metadata, 0)[0]
    header_field = _field(metadata, root, 2)
    header = header_field + struct.unpack_from("<I", metadata, header_field)[0]
    return bool(_field(metadata, header, 3) != header)


def _field(metadata: bytes, table: int, number: int) -> int:
    """Where a field of a flatbuffer table lies; the table's own place if it is absent."""
    vtable: int = table - int(struct.unpack_from("<i", metadata, table)[0])
    size = struct.unpack_from("<H", metadata, vtable)[0]
    place = 4 + 2 * number
    offset = struct.unpack_from("<H", metadata, vtable + place)[0] if place < size else 0
    return int(table + offset)
