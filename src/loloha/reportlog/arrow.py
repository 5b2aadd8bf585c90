"""The Arrow form of reports: one schema a kind of protocol, and the way from and to arrays."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha import checks
from loloha.campaign import Campaign
from loloha.encodings import Encoding
from loloha.errors import WireError
from loloha.protocols import Protocol
from loloha.report import LARGEST_ROUND, REPORTER_BYTES
from loloha.reportlog import column

if TYPE_CHECKING:
    from loloha.arrays import Array, Bytes, Ints

FORMAT, VERSION = "loloha-reports", 1
METADATA = b"loloha"
DIGEST_DIGITS = 32


def rules(campaign: Campaign | Protocol) -> Protocol:
    """The protocol of a campaign; a bare protocol is a campaign with its own fingerprint."""
    return campaign if isinstance(campaign, Protocol) else campaign.protocol


def schema(campaign: Campaign | Protocol, *, round: int | None = None) -> Any:
    """The Arrow schema of reports of a campaign.

    Parameters
    ----------
    campaign : Campaign or Protocol
    round : int, optional
        The round that all reports belong to; it stands in the metadata. Without it, for reports of
        several rounds, there is a column ``round`` int64.

    Returns
    -------
    pyarrow.Schema
        ``reporter`` binary(16), then by kind of protocol, signed integers and binary only:

        ============== ============ =====================================================
        kind           ``key``      ``y``
        ============== ============ =====================================================
        symbol         -            int32, the symbol
        keyed symbol   int32, int64 int32, the symbol; keys of more than 31 bits are int64
        bits           -            binary(ceil(k / 8)), the first bit lowest
        sampled bits   -            int32[d] (fixed-size list), 2 bucket + bit, ascending
        ============== ============ =====================================================

        No column may hold nulls. The metadata entry ``loloha`` is a JSON object with format,
        version, campaign, protocol and, where given, round.
    """
    import pyarrow as pa

    protocol = rules(campaign)
    columns = [("reporter", pa.binary(REPORTER_BYTES))]
    if round is None:
        columns.insert(0, ("round", pa.int64()))
    columns += column.types(protocol.encoding).items()
    fields = [pa.field(name, kind, nullable=False) for name, kind in columns]
    return pa.schema(fields, {METADATA: origin(campaign, round)})


def origin(campaign: Campaign | Protocol, round: int | None) -> bytes:
    """What a file or stream says it belongs to: canonical JSON."""
    metadata: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "campaign": campaign.fingerprint,
        "protocol": rules(campaign).to_dict(),
    }
    if round is not None:
        metadata["round"] = checks.round_number(round)
    return json.dumps(metadata, sort_keys=True, separators=(",", ":")).encode()


def to_arrow(
    campaign: Campaign | Protocol, reporters: Any, keys: Any, ys: Any, *, rounds: Any
) -> Any:
    """Reports in arrays as an Arrow record batch.

    Parameters
    ----------
    campaign : Campaign or Protocol
    reporters : uint8[n, 16] or iterable of n bytes
        One pseudonym a report.
    keys, ys : array_like
        As `Tally.update` takes them.
    rounds : int or int64[n]
        One round, which goes to the metadata, or the round of each report.

    Returns
    -------
    pyarrow.RecordBatch

    Raises
    ------
    WireError
        If shapes or types differ from these, or a report is out of range.
    """
    import pyarrow as pa

    protocol = rules(campaign)
    rows = _pseudonyms(reporters)
    valid = protocol.tally().valid(keys, ys)
    if not valid.all():
        raise WireError(
            f"every report must be one of {protocol.name}, got {np.count_nonzero(~valid)} out of "
            "range; drop or repair them"
        )
    if len(rows) != len(valid):
        raise WireError(
            f"reporters must be as many as reports, {len(valid)}, got {len(rows)}; give one each"
        )
    one_round = np.ndim(rounds) == 0
    columns = [column.from_rows(rows)]
    if not one_round:
        columns.insert(0, pa.array(_many_rounds(rounds, len(valid)), pa.int64()))
    form = schema(campaign, round=checks.round_number(rounds) if one_round else None)
    columns += column.made(protocol.encoding, keys, ys)
    return pa.RecordBatch.from_arrays(columns, schema=form)


def from_arrow(campaign: Campaign | Protocol, data: Any) -> tuple[Bytes, Ints | None, Any]:
    """The arrays of an Arrow record batch (or table) of reports, in the order of its rows.

    Parameters
    ----------
    campaign : Campaign or Protocol
    data : pyarrow.RecordBatch or pyarrow.Table
        With the columns of `schema`; a column ``round`` may be there and is not read.

    Returns
    -------
    reporters : uint8[n, 16]
    keys, ys : arrays
        As `Tally.update` takes them; not checked for range, see `Tally.valid`.

    Raises
    ------
    WireError
        If a column is missing, of another type, or holds a null.
    """
    reporters = column.rows_in(data, "reporter", REPORTER_BYTES)
    return reporters, *answers_from_arrow(rules(campaign).encoding, data)


def answers_from_arrow(encoding: Encoding, data: Any) -> tuple[Ints | None, Any]:
    """Keys and ys alone: `from_arrow` where nobody asks who reported."""
    columns = [column.array(data, name, kind) for name, kind in column.types(encoding).items()]
    return column.read(encoding, columns)


def _pseudonyms(reporters: Array) -> Bytes:
    if not isinstance(reporters, np.ndarray):
        listed = list(reporters)
        if any(len(reporter) != REPORTER_BYTES for reporter in listed):
            raise WireError(f"reporters must have {REPORTER_BYTES} bytes each; send them whole")
        reporters = np.frombuffer(b"".join(listed), np.uint8).reshape(-1, REPORTER_BYTES)
    if reporters.dtype != np.uint8 or reporters.shape[1:] != (REPORTER_BYTES,):
        raise WireError(
            f"reporters must be uint8[n, {REPORTER_BYTES}], got {reporters.dtype} of shape "
            f"{reporters.shape}; give the bytes of each pseudonym as a row"
        )
    rows: Bytes = reporters
    return rows


def _many_rounds(rounds: Any, n: int) -> Ints:
    numbers = np.asarray(rounds)
    fits = numbers.dtype.kind in "iu" and numbers.shape == (n,)
    if not fits or (n and not 0 <= int(numbers.min()) <= int(numbers.max()) <= LARGEST_ROUND):
        raise WireError(f"rounds must be n integers in 0..{LARGEST_ROUND}; count rounds from 0")
    return numbers.astype(np.int64)
