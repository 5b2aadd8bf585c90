"""Whatever answers as a device: users, each asked for a list of rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from typing import Protocol as Interface

from loloha.protocols import Protocol
from loloha.report import Answer, Key

History = list[tuple[int, int]]
"""(round, value) in the order in which a user is asked."""
Transcript = list[tuple[Key, Answer]]


class Device(Interface):
    """Anything that turns values into reports."""

    def run(self, histories: Iterable[History]) -> Iterator[Transcript]:
        """Answer for a new user each, in order."""
        ...


class ClientDevice:
    """Clients of this process."""

    def __init__(self, protocol: Protocol, make: Callable[[], Any] | None = None) -> None:
        self.make = protocol.client if make is None else make

    def run(self, histories: Iterable[History]) -> Iterator[Transcript]:
        """Answer for a new user each, in order."""
        for history in histories:
            client = self.make()
            reports = [client.report(value, round=t) for t, value in history]
            yield [(one.key, one.y) for one in reports]
