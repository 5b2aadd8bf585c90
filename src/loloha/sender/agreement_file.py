"""The file of a user's agreement: its content, and the next state that is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from threading import Lock, get_ident
from typing import Final, TypeVar

from loloha.client.file import LOCK, StateFile, read_json, read_private, resolved, write_private
from loloha.errors import StateError
from loloha.sender.agreement import BEYOND_REPAIR, STATE_TYPE, Agreement, Enrolment
from loloha.sender.ledger import Ledger

R = TypeVar("R")


LEDGER = ".spent"

Waiting = tuple[Enrolment, int, str]
"""A queued message: whose, and of which round."""


class QueueChanged(Exception):
    """What was to be sent was deleted or settled meanwhile; it was not sent."""


def _agreement(path: str, content: bytes) -> Agreement:
    return Agreement.from_plain(read_json(path, content, BEYOND_REPAIR))


def _must_look_ours(path: str, content: bytes) -> None:
    """Refuse to delete what no sender has written."""
    ours = STATE_TYPE.encode() in content or os.path.lexists(path + LEDGER)
    # A crash of the machine can leave nothing, or zeros.
    if content.strip(b"\0 \r\n") and not ours:
        raise StateError(
            f"state must look as if a sender had written it, {path!r} does not; nothing was "
            "deleted: check the path, and delete the file yourself if it is a state"
        )


def _is_ledger(path: str) -> bool:
    try:
        Ledger.from_plain(read_json(path, read_private(path), BEYOND_REPAIR))
    except StateError:
        return False
    return True


class _Unread:
    """Stands for an agreement whose file was not read."""


_UNREAD: Final = _Unread()


class AgreementFile:
    """What the user agreed to, in one file that only its owner can read, locked while it is open.

    Every step computes the next agreement, writes it, and only then adopts it. Whatever fails or
    interrupts a step, the next one starts from what the file holds.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._lock = Lock()
        self._owner = 0
        self._agreement: Agreement | _Unread | None = _UNREAD
        place = resolved(path)
        if os.path.lexists(place) and not os.path.lexists(place + LOCK):
            # Make nothing beside a foreign file.
            _agreement(place, read_private(place))
        self.file = StateFile(path)
        try:
            self.now()
        except BaseException:
            self.file.close()
            raise

    def alone(self, step: Callable[[], R]) -> R:
        """Take a step, one thread at a time; a signal handler of that thread gets an error."""
        # Before the lock, which a fork may have inherited from another thread.
        self.file.must_be_ours()
        if self._owner == get_ident() and self._lock.locked():
            raise StateError("sender must finish one call before the next; call later")
        with self._lock:
            self._owner = get_ident()
            try:
                return step()
            finally:
                self._owner = 0

    # -- parts of a step

    def now(self) -> Agreement | None:
        """What the file holds."""
        if not isinstance(self._agreement, _Unread):
            self.file.check()
            return self._agreement
        content = self.file.read()
        self._agreement = None if content is None else _agreement(self.file.path, content)
        return self._agreement

    @staticmethod
    def erase(path: str | os.PathLike[str]) -> str:
        """Delete a damaged state and what was left beside it, for a user who withdraws."""
        # The ledger of what was spent before stays, unless it is damaged itself.
        place = resolved(path)
        ledger = place + LEDGER
        if os.path.lexists(place):
            _must_look_ours(place, read_private(place))
        file = StateFile(path)
        try:
            _must_look_ours(place, file.read() or b"")
            file.delete()
            spent = "What was spent before it stays counted."
            if not _is_ledger(ledger):
                Path(ledger).unlink(missing_ok=True)
                spent = "Nothing is known of what was spent."
        finally:
            file.close()
        return (
            f"The damaged state at {file.path!r} is deleted, with key, memo and unsent reports; "
            "nothing more is reported. What was sent stays counted, and what this state had spent "
            f"can no longer be read. {spent} If you agree again, new answers are drawn and "
            "spend on top of all that."
        )

    def agreed(self) -> Agreement:
        """As `now`, where the user has agreed."""
        agreement = self.now()
        if agreement is None:
            raise StateError("consent must be given before anything is reported; ask the user")
        return agreement

    def only(self) -> Enrolment:
        """The one campaign that the user agreed to."""
        enrolments = self.agreed().enrolments
        if len(enrolments) > 1:
            raise StateError(
                f"campaign must be the only one, the user agreed to {len(enrolments)}; use "
                "campaigns, report_all and deliver_all"
            )
        return enrolments[0]

    def adopt(self, after: Agreement) -> None:
        """Write the next agreement, then make it the present one."""
        content = after.to_bytes()
        self._agreement = _UNREAD
        self.file.write(content)
        self._agreement = after

    def delete(self) -> None:
        """Delete the file, and what a killed write left."""
        self._agreement = _UNREAD
        self.file.delete()
        self._agreement = None

    def ledger(self) -> Ledger:
        """What outlives the agreement, from a file beside it."""
        path = self._ledger_path
        if not os.path.lexists(path):
            return Ledger()
        return Ledger.from_plain(read_json(path, read_private(path), BEYOND_REPAIR))

    def write_ledger(self, ledger: Ledger) -> None:
        """Keep what outlives the agreement."""
        write_private(self._ledger_path, ledger.to_bytes())

    @property
    def _ledger_path(self) -> str:
        return self.file.path + LEDGER

    # -- whole steps: the queue

    def begin(self, messages: Iterable[Waiting], send: Callable[[], None]) -> None:
        """Send messages, while nobody can delete them; QueueChanged where one waits no more."""

        def step() -> None:
            if not all(self._waits(*entry) for entry in messages):
                raise QueueChanged
            send()

        self.alone(step)

    def waiting(self, messages: Iterable[Waiting]) -> list[Waiting]:
        """Which of these messages are still in the queues of their enrolments."""
        return self.alone(lambda: [entry for entry in messages if self._waits(*entry)])

    def _waits(self, enrolment: Enrolment, round: int, message: str) -> bool:
        now = self._same(enrolment)
        return now is not None and now.queue.get(round) == message

    def settle(self, enrolment: Enrolment, round: int, message: str) -> bool:
        """Take this message out of the queue; whether it was still there."""

        def step() -> bool:
            now = self._same(enrolment)
            if now is None or now.queue.get(round) != message:
                return False
            self.adopt(self.agreed().changed(now, now.without(round)))
            return True

        return self.alone(step)

    def halt(self, enrolment: Enrolment, halted: str | None) -> tuple[int, ...]:
        """Note that a campaign is paused or has ended, or goes on; the rounds that are dropped."""

        def step() -> tuple[int, ...]:
            now = self._same(enrolment)
            # An end is final, even if a pause is reported later.
            if now is None or now.halted in (halted, "ended"):
                return ()
            queue = {} if halted else now.queue
            self.adopt(self.agreed().changed(now, replace(now, queue=queue, halted=halted)))
            return tuple(sorted(now.queue.keys() - queue.keys()))

        return self.alone(step)

    def drop(self, enrolment: Enrolment) -> tuple[int, ...]:
        """Take all that waits out of a queue that is never sent; the rounds that are dropped."""

        def step() -> tuple[int, ...]:
            now = self._same(enrolment)
            if now is None or not now.queue:
                return ()
            self.adopt(self.agreed().changed(now, replace(now, queue={})))
            return tuple(sorted(now.queue))

        return self.alone(step)

    def same(self, enrolment: Enrolment) -> Enrolment | None:
        """The enrolment as it is now, None if it is there no more."""
        return self.alone(lambda: self._same(enrolment))

    def _same(self, enrolment: Enrolment) -> Enrolment | None:
        agreement = self.now()
        enrolments = agreement.enrolments if agreement else ()
        return next((other for other in enrolments if other.url == enrolment.url), None)
