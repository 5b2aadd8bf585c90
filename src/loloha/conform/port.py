"""A port that runs as a command: questions and answers are JSON objects, one per line."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

from loloha.audit.device import Program
from loloha.errors import LolohaError
from loloha.rng import Rng

Difference = tuple[str, str | None]
"""A check, and how the port differs; None if it does not."""
LONGEST_LINE = 1 << 22
LOOK_EVERY = 0.2


def differs(got: Any, wanted: Any, answer: Any = None) -> str | None:
    """How an answer differs; None if it does not."""
    if got == wanted and isinstance(got, bool) is isinstance(wanted, bool):
        return None
    return f"expected {_short(wanted)}, got {_short(got if answer is None else answer)}"


def is_off(got: Any, wanted: float | None) -> str | None:
    """How a loss differs by more than rounding between languages; None if it does not."""
    if wanted is None or not isinstance(got, (int, float)):
        return differs(got, wanted)
    if math.isclose(got, wanted, rel_tol=1e-12):
        return None
    return f"expected {wanted}, got {_short(got)}"


def _short(plain: Any) -> str:
    shown = str(plain)
    return shown if len(shown) <= 300 else shown[:300] + " ..."


class PortError(LolohaError):
    """The command breaks the protocol: it ended, is silent, or sends invalid answers."""


class Port:
    """A running port; made by `connect`."""

    def __init__(self, program: Program, patience: float) -> None:
        self._program = program
        self._process = program.process
        self._patience = patience
        self._silent_since: float | None = None
        self._is_over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def ask(self, what: str, *, rng: Rng | None = None, **more: Any) -> dict[str, Any]:
        """Ask a question, and draw what the port asks for in between."""
        self._write(json.dumps({"ask": what, **more}))
        while "draw" in (answer := self._hear()):
            if rng is None:
                raise PortError(f"port must not draw to answer {what!r}, got a question for a draw")
            self._write(json.dumps({"drawn": _drawn(answer, rng)}))
        return answer

    def lines(self, asked: Sequence[str]) -> list[str]:
        """Write plain lines, and read as many: the audit's format, after its question."""
        self._write("\n".join(asked))
        return [self._line().rstrip("\n") for _ in asked]

    def end_lines(self) -> dict[str, Any]:
        """Write the empty line that ends them; the answer to it."""
        self._write("")
        return self._hear()

    def _write(self, text: str) -> None:
        to = self._process.stdin
        try:
            if to is not None:
                to.write(text + "\n")
                to.flush()
        except OSError:
            # The next read reports why it ended.
            return

    def _hear(self) -> dict[str, Any]:
        line = self._line()
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise PortError(f"port must answer by a JSON object on one line, got {line[:200]!r}")
        return answer

    def _line(self) -> str:
        pipe = self._process.stdout
        self._silent_since = monotonic()
        line = "" if pipe is None else pipe.readline(LONGEST_LINE)
        self._silent_since = None
        if self._is_over.is_set():
            raise PortError(
                f"port must answer within {self._patience:g} s, it is silent; see its errors"
            )
        if not line:
            raise PortError("port must run until its input ends, it ended before; see its errors")
        return line

    def _watch(self) -> None:
        """Kill a silent process, which ends the wait for its line."""
        while not self._is_over.wait(LOOK_EVERY):
            since = self._silent_since
            if since is not None and monotonic() - since > self._patience:
                self._is_over.set()
                self._program.kill()

    def close(self) -> None:
        """Stop watching."""
        self._is_over.set()


@contextmanager
def connect(command: Sequence[str], *, patience: float = 30.0) -> Iterator[Port]:
    """Start a port, and end it afterwards."""
    program = Program(command, encoding="utf-8")
    port = Port(program, patience)
    try:
        yield port
    finally:
        port.close()
        program.close()


def _drawn(asked: dict[str, Any], rng: Rng) -> int | bool:
    match asked:
        case {"draw": "bernoulli", "threshold": int(threshold)} if 0 <= threshold <= 1 << 53:
            return rng.bernoulli(threshold)
        case {"draw": "below", "n": int(n)} if 1 <= n <= 1 << 53:
            return rng.below(n)
    raise PortError(f"port must ask for a draw by its kind and threshold or n, got {asked!r}")
