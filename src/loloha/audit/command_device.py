"""A foreign program as a device: it reads a line for each report that is asked of it.

In: ``user round value``, three integers, users one after the other from 0. Out: ``key y``, where
the key is an integer, integers joined by commas, or ``-``; and y an integer, or for bits the packed
bytes in hexadecimal (8 bits to a byte, first bit lowest).
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

from loloha.audit.device import History, Transcript
from loloha.audit.program import Program, words_of
from loloha.errors import AuditError
from loloha.protocols import Protocol

# Lines that may be under way: less than a pipe holds, so that neither side waits for the other.
_LINES = 2048
_LONGEST = 1 << 24


class CommandDevice:
    """Runs a command for as long as it is used in a ``with`` block, and never beyond it."""

    def __init__(self, protocol: Protocol, command: str, *, timeout: float = 10.0) -> None:
        self.protocol, self.timeout = protocol, timeout
        self.users = itertools.count()
        self.program = Program(words_of(command), bufsize=0)
        self.process = self.program.process
        self.lines: queue.Queue[bytes] = queue.Queue(_LINES * 2)
        self.stopped = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the program and all that it started, whatever they do."""
        self.stopped.set()
        self.program.close(self.reader)

    def run(self, histories: Iterable[History]) -> Iterator[Transcript]:
        """Answer for a new user each, in order."""
        rest = iter(histories)
        while batch := self._batch(rest):
            asked = [
                b"%d %d %d\n" % (user, t, value) for user, history in batch for t, value in history
            ]
            answers: list[str] = []
            for start in range(0, len(asked), _LINES):
                part = asked[start : start + _LINES]
                self._write(b"".join(part))
                answers += [self._answer() for _ in part]
            place = iter(answers)
            for _, history in batch:
                yield [report_of(self.protocol, next(place)) for _ in history]

    def _batch(self, histories: Iterator[History]) -> list[tuple[int, History]]:
        batch, lines = [], 0
        for history in histories:
            batch.append((next(self.users), history))
            lines += len(history)
            if lines >= _LINES:
                break
        return batch

    def _write(self, data: bytes) -> None:
        pipe: Any = self.process.stdin
        try:
            pipe.write(data)
        except OSError:
            raise AuditError(self._ended()) from None

    def _read(self) -> None:
        """Put its lines where they can be waited for; an empty one stands for its end."""
        pipe: Any = self.process.stdout
        rest = b""
        while not self.stopped.is_set():
            data = pipe.read(1 << 16)
            whole = (rest + data).split(b"\n")
            rest = whole.pop()
            for line in [*whole, b""] if not data or len(rest) > _LONGEST else whole:
                while not self.stopped.is_set():
                    try:
                        self.lines.put(line + b"\n" if data or line else b"", timeout=0.1)
                        break
                    except queue.Full:
                        continue
            if not data or len(rest) > _LONGEST:
                return

    def _answer(self) -> str:
        try:
            line = self.lines.get(timeout=self.timeout)
        except queue.Empty:
            raise AuditError(
                f"command must answer within {self.timeout:g} seconds, got nothing; it must flush "
                "each line, or be given more time"
            ) from None
        if not line:
            raise AuditError(self._ended())
        return line.decode("ascii", "replace")

    def _ended(self) -> str:
        return (
            "command must answer each line that it reads, it ended before the audit did; run it "
            "by hand with a line 'user round value'"
        )


def report_of(protocol: Protocol, line: str) -> tuple[Any, Any]:
    """Key and answer of a line ``key y``."""
    encoding = protocol.encoding
    try:
        key_text, answer_text = line.split()
        key: Any = None
        if key_text != "-":
            numbers = tuple(int(part) for part in key_text.split(","))
            key = encoding.key_of(numbers)
        y: Any = bytes.fromhex(answer_text) if encoding.packed else int(answer_text)
    except ValueError:
        key, y = None, None
    if y is None or not encoding.is_sent(key) or not encoding.is_answer(y):
        raise AuditError(
            "command must answer 'key y' in the protocol's ranges, got something else (not "
            "shown); see the documentation of loloha audit"
        )
    return key, y
