"""Additive counts of one round: the server's whole knowledge of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from loloha import _moved
from loloha.arrays import Array, Bools, Ints
from loloha.errors import MergeError, ParameterError, WireError
from loloha.protocols import Protocol, protocol_from_dict
from loloha.protocols.base import speakable
from loloha.report import MOST_REPORTS, Report
from loloha.server.estimate import Estimate

FORMAT, VERSION = "loloha-tally", 1
WITH_ORIGIN = 2
"""Version of a message whose header has ``origin``: which reports were counted."""

_SEPARATOR = b"\n"
_DIGEST_BYTES = 32


class Additive:
    """Counts under one protocol; ``+`` merges them, in any order."""

    __slots__ = ("counts", "n", "protocol")

    def __init__(self, protocol: Any, shape: Any) -> None:
        self.protocol, self.n = protocol, 0
        self.counts: Ints = np.zeros(shape, dtype=np.int64)

    def __add__(self, other: object) -> Self:
        if not isinstance(other, type(self)):
            return NotImplemented
        if other.protocol != self.protocol:
            raise MergeError(
                f"tallies must follow one protocol, got {self.protocol!r} and {other.protocol!r}; "
                "estimate them separately"
            )
        merged: Self = self.protocol.tally()
        np.add(self.counts, other.counts, out=merged.counts)
        merged.n = self.n + other.n
        return merged

    def __radd__(self, other: object) -> Self:
        # sum() starts from 0.
        return self.__add__(self.protocol.tally()) if other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        same_rules = self.protocol == other.protocol and self.n == other.n
        return same_rules and bool(np.array_equal(self.counts, other.counts))

    __hash__ = None  # type: ignore[assignment]


class Tally(Additive):
    """Counts of the reports of one round, under one protocol; ``+`` merges, in any order.

    Parameters
    ----------
    protocol : Protocol
        The public rules that the reports follow.

    Attributes
    ----------
    counts : int64[cells]
        What the protocol's encoding counts; only ever added to.
    n : int
        Number of reports counted.
    """

    __slots__ = ()
    protocol: Protocol

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(speakable(protocol), protocol.encoding.cells)

    def add(self, report: Report) -> None:
        """Count one report.

        A report does not say which protocol it is of. All that is checked is that its key and y
        have the form and range of this protocol's: a BiLOLOHA report passes for an OLOLOHA one.
        Messages and logs carry the campaign's fingerprint, and those of others are refused.

        Raises
        ------
        WireError
            If its key or y is none that the protocol can have; nothing is counted.
        """
        encoding = self.protocol.encoding
        if not (
            isinstance(report, Report)
            and encoding.is_sent(report.key)
            and encoding.is_answer(report.y)
        ):
            raise WireError(
                f"report must have a key and y that {self.protocol.name} with these parameters "
                "can have, got others; check that client and server agree on the protocol"
            )
        cell = encoding.cell(report)
        if cell is None:
            encoding.count(self.counts, *encoding.arrays([report]))
        else:
            self.counts[cell] += 1
        self.n += 1

    def update(self, keys: Any, ys: Any) -> None:
        """Count n reports at once; all of them or, if one is invalid, none.

        Parameters
        ----------
        keys : int64[n], int64[n, d] or None
            Hash seeds, or sampled buckets in ascending order, or None where there is no key.
        ys : int64[n] or uint8[n, bytes]
            Symbols, or bits packed eight to a byte, first bit lowest.

        Raises
        ------
        WireError
            If the arrays have another shape or type, or a report is out of range (the error has its
            index); see `valid` to find all of them.
        """
        keys, ys = self._shaped(keys, ys)
        if not self.protocol.encoding.admit(self.counts, keys, ys):
            valid = self.protocol.encoding.valid(keys, ys)
            raise WireError(
                f"every report must be one of {self.protocol.name}, got {np.count_nonzero(~valid)} "
                f"out of range, the first at index {int(np.argmin(valid))}; drop or repair them"
            )
        self.n += len(ys)

    def valid(self, keys: Any, ys: Any) -> Bools:
        """Which of n reports `update` would accept, bool[n].

        Raises
        ------
        WireError
            If the arrays have another shape or type.
        """
        return self.protocol.encoding.valid(*self._shaped(keys, ys))

    def _shaped(self, keys: Array, ys: Array) -> tuple[Ints | None, Any]:
        encoding = self.protocol.encoding
        keys = None if keys is None else _integers("keys", _array("keys", keys))
        ys = _array("ys", ys)
        if not encoding.packed:
            ys = _integers("ys", ys)
        elif ys.dtype != np.uint8:
            raise WireError(f"ys must be packed bits of type uint8, got {ys.dtype}; pack them")
        got = (None if keys is None else keys.shape, ys.shape)
        if got != encoding.shapes(len(ys) if ys.ndim else 0):
            raise WireError(
                f"keys and ys must have shapes {encoding.shapes('n')} for {self.protocol.name}, "
                f"got {got}; see loloha.encodings.Encoding"
            )
        return keys, ys

    def support(self) -> Ints:
        """How many reports support each bin, int64[bins]."""
        return self.protocol.encoding.support(self.counts)

    def eligible(self) -> Ints:
        """How many reports could support each bin, int64[bins]; n but for sampled buckets."""
        return self.protocol.encoding.eligible(self.counts, self.n)

    reach = _moved.renamed("reach", "eligible")

    def estimate(self, population: int | None = None) -> Estimate:
        """Unbiased frequencies of the round; see `Estimate`.

        Parameters
        ----------
        population : int, optional
            Users of whom those who reported are a random sample, as a panel is. Errors are then
            those of the frequencies among all of them, and else among those who reported.

        Raises
        ------
        ParameterError
            If no report was counted, or the population is smaller.
        """
        return Estimate.from_support(
            self.protocol, self.n, self.support(), self.eligible(), population
        )

    def to_bytes(self, *, origin: Mapping[str, Any] | None = None) -> bytes:
        """A self-describing message: a JSON line (protocol, n), the counts, and a checksum.

        Counts are little-endian int64, zlib-compressed; the checksum is the SHA-256 of all before.

        Parameters
        ----------
        origin : mapping, optional
            Which reports were counted, as JSON in the first line; see `opened`.
        """
        import hashlib
        import zlib

        header = {
            "format": FORMAT,
            "version": VERSION,
            "protocol": self.protocol.to_dict(),
            "n": self.n,
        }
        if origin is not None:
            header |= {"version": WITH_ORIGIN, "origin": dict(origin)}
        head = json.dumps(header, separators=(",", ":")).encode()
        body = zlib.compress(self.counts.astype("<i8").tobytes(), level=1)
        message = head + _SEPARATOR + body
        return message + hashlib.sha256(message).digest()

    @classmethod
    def from_bytes(cls, message: bytes, *, protocol: Protocol | None = None) -> Self:
        """The tally that `to_bytes` wrote.

        Parameters
        ----------
        message : bytes
            All of it: a truncated or extended message is refused.
        protocol : Protocol, optional
            The rules it must follow.

        Raises
        ------
        WireError
            If the message is damaged, of another version, or for another protocol.
        """
        header, body = opened(message)
        try:
            rules = protocol_from_dict(header["protocol"])
        except ParameterError as error:
            raise WireError(f"tally must be of a known protocol: {error}") from error
        if protocol is not None and protocol != rules:
            raise WireError(
                f"tally must follow {protocol!r}, got {rules!r}; use the campaign it was made for"
            )
        tally = cls(rules)
        tally.counts = _unpacked(body, tally.counts.nbytes)
        tally.n = header["n"]
        # One report adds at most one to a cell.
        if int(tally.counts.min()) < 0 or int(tally.counts.max()) > tally.n:
            raise WireError(f"tally must hold counts in 0..{tally.n}, got others; send it again")
        return tally

    def __repr__(self) -> str:
        return f"Tally({self.protocol!r}, n={self.n})"


def _array(name: str, values: Array) -> Any:
    try:
        return np.asarray(values)
    except ValueError:
        raise WireError(f"{name} must be an array, got rows of unequal length; pack them") from None


def _integers(name: str, array: Any) -> Ints:
    if array.dtype.kind not in "iu" and array.size:
        raise WireError(f"{name} must be integers, got {array.dtype}; convert them")
    integers: Ints = array.astype(np.int64, copy=False)
    return integers


def opened(message: bytes) -> tuple[Mapping[str, Any], bytes]:
    """The header and the packed counts of a message of `Tally.to_bytes`."""
    import hashlib

    head, _, body = message[:-_DIGEST_BYTES].partition(_SEPARATOR)
    header = _header(head)
    if hashlib.sha256(message[:-_DIGEST_BYTES]).digest() != message[-_DIGEST_BYTES:]:
        raise WireError("tally must be complete and unchanged, it is damaged; send it again")
    return header, body


_KEYS = {VERSION: set[str](), WITH_ORIGIN: {"origin"}}


def _header(head: bytes) -> Mapping[str, Any]:
    try:
        header = json.loads(head)
    except (ValueError, RecursionError):
        header = None
    if (
        not isinstance(header, dict)
        or header.get("format") != FORMAT
        or type(header.get("version")) is not int
        or header.keys() - {"format", "version", "protocol", "n"} != _KEYS.get(header["version"])
        or not header.keys() >= {"protocol", "n"}
        or not isinstance(header.get("origin", {}), dict)
    ):
        raise WireError(
            f"tally must be a message of format {FORMAT!r}, version {VERSION} or {WITH_ORIGIN}; "
            "use a matching release"
        )
    if type(header["n"]) is not int or not 0 <= header["n"] <= MOST_REPORTS:
        raise WireError(f"n must be an integer in 0..{MOST_REPORTS}, got another; send it again")
    return header


def _unpacked(body: bytes, size: int) -> Ints:
    """Counts of ``size`` bytes; a hostile body must not inflate beyond them."""
    import zlib

    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(body, size + 1)
    except zlib.error:
        raw = b""
    if len(raw) != size or not unpacker.eof or unpacker.unused_data:
        raise WireError("tally must hold one count per cell; it is damaged, send it again")
    return np.frombuffer(raw, dtype="<i8").astype(np.int64)
