"""The events of an audit: which of two values a transcript supports."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from loloha.audit.device import Transcript
from loloha.encodings import SampledBuckets
from loloha.protocols import Protocol

STRETCH = 8
"""Reports from which a memo is inferred."""
DOUBT = 100
"""Likelihood ratio at which a memo counts as inferred."""
RARE = 0.01
"""Least share of users who must send the bits of both values."""

Event = Callable[[Protocol, tuple[int, int], Transcript], int | None]
"""0 if what was sent speaks for the first value, 1 for the second, None for neither."""


def _first(protocol: Protocol, values: tuple[int, int], sent: Transcript) -> int | None:
    return _leaning(protocol, values, *sent[0])


def _two(protocol: Protocol, values: tuple[int, int], sent: Transcript) -> int | None:
    first, other = (_leaning(protocol, values, *report) for report in sent[:2])
    return first if first == other else None


def _memo(protocol: Protocol, values: tuple[int, int], sent: Transcript) -> int | None:
    """The event of the memo, if the reports determine it with little doubt."""
    key, y = sent[0]
    if isinstance(y, bytes):
        return _told(protocol, _cells(protocol, values, key), _memoised_bits(protocol, sent))
    leanings = [_leaning(protocol, values, key, y) for key, y in sent]
    margin = leanings.count(0) - leanings.count(1)
    # With many symbols a memo shows either value's symbol at times, and its own more often.
    most = max(Counter(y for _, y in sent).values())
    if abs(margin) < _doubtless(protocol) or max(leanings.count(0), leanings.count(1)) < most:
        return None
    return int(margin < 0)


def _doubtless(protocol: Protocol) -> int:
    """Margin of reports at which a wrong memo is 100 times rarer."""
    second: Any = protocol.second_channel
    if second is None or not second.q:
        return 1
    log_ratio = math.log(protocol.encoding.likelihood_ratio(second.p, second.q))
    return min(math.ceil(math.log(DOUBT) / log_ratio), STRETCH // 2)


def _last(protocol: Protocol, values: tuple[int, int], sent: Transcript) -> int | None:
    """Whether the last report supports the memo of the first stretch or of the second."""
    memos = [
        _usual(protocol, [y for _, y in sent[start : start + STRETCH]]) for start in (0, STRETCH)
    ]
    y: Any = sent[-1][1]
    if isinstance(y, bytes):
        apart = [(int.from_bytes(m, "little") ^ int.from_bytes(y, "little")) for m in memos]
        near, far = (bits.bit_count() for bits in apart)
        return None if near == far else int(far < near)
    if memos[0] == memos[1] or y not in memos:
        return None
    return memos.index(y)


EVENTS: dict[str, Event] = {"eps_1": _first, "eps_t, t = 2": _two, "eps_inf": _memo, "eps_2": _last}


def _memoised_bits(protocol: Protocol, sent: Transcript) -> Callable[[int], int | None]:
    """The memo of a bit by its reports; None if they leave doubt."""
    second: Any = protocol.second_channel
    answers: list[Any] = [y for _, y in sent]
    rows = [int.from_bytes(y, "little") for y in answers]
    if second is None or not second.q:
        return lambda cell: rows[0] >> cell & 1
    one, zero = math.log(second.p / second.q), math.log((1 - second.p) / (1 - second.q))
    # Half of the largest possible margin, if that is small.
    needed = min(math.log(DOUBT), len(rows) * min(one, -zero) / 2)

    def read(cell: int) -> int | None:
        ones = sum(row >> cell & 1 for row in rows)
        shown = ones * one + (len(rows) - ones) * zero
        return int(shown > 0) if abs(shown) >= needed else None

    return read


def _leaning(protocol: Protocol, values: tuple[int, int], key: Any, y: Any) -> int | None:
    """Which one of the two values an answer supports, if exactly one."""
    cells = _cells(protocol, values, key)
    if isinstance(y, bytes):
        bits = int.from_bytes(y, "little")
        return _told(protocol, cells, lambda cell: bits >> cell & 1)
    return cells.index(y) if cells[0] != cells[1] and y in cells else None


def _cells(protocol: Protocol, values: tuple[int, int], key: Any) -> list[int]:
    """Memo symbols of the two values."""
    encoding: Any = protocol.encoding
    if encoding.is_key(key):
        return [encoding.memo_index(key, v) for v in values]
    # If the threshold is not sent, the greater value is likelier to reach it.
    return [int(v == max(values)) for v in values]


def _told(protocol: Protocol, cells: list[int], read: Callable[[int], int | None]) -> int | None:
    """Which one of two cells the bits support; None if both, neither or doubtful."""
    encoding: Any = protocol.encoding
    # The last cell of sampled buckets has no bit: an unset bit of the other cell then supports it.
    places = [place for place, cell in enumerate(cells) if cell < encoding.size]
    if cells[0] == cells[1] or len(places) < _bits_needed(encoding):
        return None
    known = {None if (bit := read(cells[place])) is None else place ^ bit ^ 1 for place in places}
    return None if len(known) != 1 else known.pop()


def _bits_needed(encoding: Any) -> int:
    """A single one of several bits loses half: it is not counted if enough users send both."""
    if type(encoding) is not SampledBuckets:
        return 2
    d, b = encoding.d, encoding.b
    return 2 if d * (d - 1) >= RARE * b * (b - 1) else 1


def _usual(protocol: Protocol, ys: list[Any]) -> Any:
    """The memo supported by the answers: the most frequent symbol, or each bit's majority."""
    if not isinstance(ys[0], bytes):
        return max(sorted(set(ys)), key=ys.count)
    rows = np.unpackbits(np.frombuffer(b"".join(ys), np.uint8).reshape(len(ys), -1), axis=1)
    return np.packbits(2 * rows.sum(axis=0, dtype=np.int64) > len(ys)).tobytes()
