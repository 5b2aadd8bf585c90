"""Batches of reports: from the bytes of an upload to arrays, with a reason for each refusal.

One bad report never spoils the others; only an upload that cannot be read at all is an error.
"""

from __future__ import annotations

import binascii
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.campaign import Campaign
from loloha.report import REPORTER_BYTES
from loloha.wire.message import LARGEST_UPLOAD, MESSAGE_VERSION, TICKET_BYTES, Widths
from loloha.wire.refusal import REASONS, Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loloha.arrays import Array, Bools, Ints


@dataclass(frozen=True, eq=False)
class Batch:
    """The readable reports of one upload, in the array forms of the encoding."""

    codes: Any  # int8[size]: of each report 0, or the `Refusal.code` of why it cannot be read.
    index: Ints  # Position in the upload of each report that can.
    rounds: Ints
    reporters: Any  # S16[n], pseudonyms.
    keys: Any
    ys: Any
    tickets: Any = None  # S16[n], where the campaign assigns keys.

    @property
    def size(self) -> int:
        """Reports in the upload."""
        return len(self.codes)

    @property
    def refusals(self) -> list[tuple[int, Refusal]]:
        """Position and reason of each report that cannot be read."""
        return [(int(i), REASONS[self.codes[i] - 1]) for i in np.flatnonzero(self.codes)]

    @classmethod
    def joined(cls, batches: Sequence[Batch]) -> Batch:
        """Uploads of one campaign as one, their reports in that order."""

        def column(name: str) -> Any:
            parts = [getattr(batch, name) for batch in batches]
            return None if parts[0] is None else np.concatenate(parts)

        starts = accumulate((batch.size for batch in batches[:-1]), initial=0)
        index = [batch.index + start for batch, start in zip(batches, starts, strict=True)]
        names = "rounds", "reporters", "keys", "ys", "tickets"
        return cls(column("codes"), np.concatenate(index), *map(column, names))

    def take(self, rows: Bools | Ints) -> Batch:
        """Some of the readable reports, chosen by bool[n] or by their places."""
        columns = (self.reporters, self.keys, self.ys, self.tickets)
        rest = (None if column is None else column[rows] for column in columns)
        return Batch(self.codes, self.index[rows], self.rounds[rows], *rest)


class Reader:
    """Reads uploads for one campaign."""

    def __init__(self, campaign: Campaign, *, most: int = LARGEST_UPLOAD) -> None:
        self.campaign = campaign
        self.most = most
        self.encoding = campaign.protocol.encoding
        self.widths = Widths.of(self.encoding)
        self.ticketed = campaign.keys == "assigned"

    def read_json(self, body: bytes | bytearray) -> Batch:
        """One report, or an array of them."""
        from loloha.wire.text import messages

        return self.collect(*messages(body, self.most))

    def read_lines(self, body: bytes | bytearray) -> Batch:
        """One report a line (NDJSON); blank lines do not count."""
        from loloha.wire.text import lines

        return self.collect(*lines(body, self.most))

    def read_arrow(self, body: bytes | bytearray) -> Batch:
        """An Arrow IPC stream; see `loloha.wire.columns`."""
        from loloha.wire.columns import columns

        codes, rounds, reporters, keys, ys, tickets = columns(body, self.campaign, self.most)
        names = None if tickets is None else as_names(tickets)
        index = np.arange(len(rounds))
        return self._checked(codes, index, rounds, as_names(reporters), keys, ys, names)

    def collect(self, rows: list[Any], upload: bytearray) -> Batch:
        """Turn messages into columns."""
        codes = np.frombuffer(upload, dtype=np.int8).copy()
        index = np.flatnonzero(codes == 0)
        n, widths = len(rows), self.widths
        fingerprint = self.campaign.fingerprint
        reasons = np.zeros(n, dtype=np.int8)

        def column(texts: Sequence[str], width: int, reason: Refusal) -> Any:
            raw, bad = _from_hex(texts, width)
            reasons[bad & (reasons == 0)] = reason.code
            return raw

        if any(row.version != MESSAGE_VERSION for row in rows):
            reasons[[row.version != MESSAGE_VERSION for row in rows]] = Refusal.VERSION.code
        if any(row.campaign != fingerprint for row in rows):
            foreign = np.array([row.campaign.lower() != fingerprint for row in rows])
            reasons[foreign & (reasons == 0)] = Refusal.CAMPAIGN.code
        reporters = column([row.reporter for row in rows], REPORTER_BYTES, Refusal.REPORTER)
        keys = column([row.key for row in rows], widths.key_bytes, Refusal.KEY)
        ys = column([row.y for row in rows], widths.answer_bytes, Refusal.ANSWER)
        width = TICKET_BYTES if self.ticketed else 0
        tickets = column([row.ticket for row in rows], width, Refusal.TICKET)
        rounds = np.array([row.round for row in rows], dtype=np.int64)
        codes[index] = reasons
        good = reasons == 0
        return self._checked(
            codes,
            index[good],
            rounds[good],
            as_names(reporters[good]),
            self._keys(keys[good]),
            ys[good] if widths.packed else _numbers(ys[good]),
            as_names(tickets[good]) if self.ticketed else None,
        )

    def _keys(self, raw: Array) -> Any:
        shape, _ = self.encoding.shapes(len(raw))
        if shape is None:
            return None
        return _numbers(raw.reshape(-1, self.widths.group_bytes)).reshape(shape)

    def _checked(
        self,
        codes: Array,
        index: Array,
        rounds: Any,
        reporters: Array,
        keys: Array | None,
        ys: Array,
        tickets: Array | None,
    ) -> Batch:
        """Refuse what is out of range, and what is refused already."""
        valid = self.encoding.valid(keys, ys) if len(ys) else np.ones(0, dtype=bool)
        for row in np.flatnonzero(~valid & (codes[index] == 0)):
            key_holds = keys is None or self.encoding.is_sent(_plain(keys[row]))
            codes[index[row]] = (Refusal.ANSWER if key_holds else Refusal.KEY).code
        batch, good = Batch(codes, index, rounds, reporters, keys, ys, tickets), codes[index] == 0
        return batch if good.all() else batch.take(good)


def as_names(raw: Array) -> Any:
    """Rows of 16 bytes, uint8[n, 16], as S16[n]: comparable and sortable, one element each."""
    return np.ascontiguousarray(raw).reshape(-1).view("S16")


def _from_hex(texts: Sequence[str], width: int) -> tuple[Any, Any]:
    """Rows of ``width`` bytes, uint8[n, width], and which texts were not of that form, bool[n]."""
    n = len(texts)
    bad = np.zeros(n, dtype=bool)
    if not set(map(len, texts)) <= {2 * width}:
        bad |= np.array([len(text) != 2 * width for text in texts])
        texts = ["00" * width if wrong else text for text, wrong in zip(texts, bad, strict=True)]
    try:
        raw = binascii.unhexlify("".join(texts))
    except ValueError:
        rows = [_row(text) for text in texts]
        bad |= np.array([row is None for row in rows])
        raw = b"".join(bytes(width) if row is None else row for row in rows)
    return np.frombuffer(raw, dtype=np.uint8).reshape(n, width), bad


def _row(text: str) -> bytes | None:
    try:
        return binascii.unhexlify(text)
    except ValueError:
        return None


def _numbers(raw: Array) -> Ints:
    """Numbers from rows of bytes, most significant first; uint8[n, 0..8] to int64[n]."""
    # A number beyond int64 becomes negative, which no range check lets pass.
    padded = np.zeros((len(raw), 8), dtype=np.uint8)
    padded[:, 8 - raw.shape[1] :] = raw
    numbers: Ints = padded.view(">i8").reshape(-1).astype(np.int64)
    return numbers


def _plain(key: Any) -> Any:
    return tuple(map(int, key)) if isinstance(key, np.ndarray) else int(key)
