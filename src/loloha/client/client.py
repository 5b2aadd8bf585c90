"""One user's client: key, memo, sent reports by round. Standard library only."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from threading import RLock
from typing import Any, NoReturn, Self

from loloha import checks
from loloha.client import fork
from loloha.client.answered import holds
from loloha.client.file import read_json, read_private, resolved, sweep, write_private
from loloha.client.limit import agreed, cost_of_reset, may_reset
from loloha.client.spending import Spending
from loloha.client.state import BEYOND_REPAIR, STORED_ROUNDS, Account, State, from_plain, to_plain
from loloha.errors import ParameterError, StateError
from loloha.protocols import Protocol
from loloha.protocols.base import speakable
from loloha.report import LARGEST_ROUND, Answer, Key, Report
from loloha.rng import Rng, SecureRng

__all__ = ["STORED_ROUNDS", "Account", "Client"]

_SYSTEM, _NOTHING = SecureRng(), Account()


class Client(Spending):
    """The secret state of one user, and the only thing that ever sees the user's values.

    Parameters
    ----------
    protocol : Protocol
        The public rules.
    key : int or tuple of int, optional
        A key that the server assigned; by default drawn here. Only where answers are memoised.
    limit : float, optional
        Hard limit on `loss`, checked here and never again: it has to cover the cap, since a client
        that fell silent later would show when its user moved. One-round ones, which have no cap,
        report as often as it allows; `BudgetError` ends them.
    rng : Rng, optional
        Source of randomness, for simulations only; by default the operating system's.
    account : Account, optional
        The `account` of the same user's earlier client, so that `loss` and `limit` go on from it,
        and the residue stays.
    every : int
        Of the campaign's schedule: the client reports in one round of so many, those whose number
        leaves a residue that is drawn here, uniform and permanent.

    Raises
    ------
    ParameterError
        For a key that is not in the protocol's family, a residue that ``every`` does not leave, or
        a limit that does not cover all that can be spent: `Protocol.cap`, for one-round ones one
        report, and what ``account`` committed.

    Notes
    -----
    Threads may share it: each step is done whole or not at all, whatever interrupts it. It belongs
    to the process that made it, and cannot be pickled or copied: a second copy would draw its own
    answers and spend more than `loss` says. What it remembers is in memory until `save`: save
    before a report leaves the device, as `loloha.sender.Sender` does.
    """

    __slots__ = ("_rng",)

    def __init__(
        self,
        protocol: Protocol,
        *,
        key: Key = None,
        limit: float | None = None,
        rng: Rng | None = None,
        account: Account | None = None,
        every: int = 1,
    ) -> None:
        account = account or _NOTHING
        before = account.spent if account.committed is None else account.committed
        self._set_up(speakable(protocol), agreed(limit, before, [protocol]), rng)
        every = checks.integer("every", every, 1, LARGEST_ROUND, "take it from the schedule")
        if account.residue is not None and not 0 <= account.residue < every:
            raise ParameterError(f"residue must be below every = {every}; start without an account")
        self._state = self._new(_check_key(key, protocol), account, every)

    def _set_up(self, protocol: Protocol, limit: float | None, rng: Rng | None) -> None:
        """All but the state."""
        self.protocol = protocol
        self.limit = limit
        self._rng: Rng = _SYSTEM if rng is None else rng
        self._lock = RLock()
        self._process = fork.here

    def _new(self, key: Key, account: Account, every: int) -> State:
        """Nothing reported, and all that is drawn at enrolment: key and residue, unless given."""
        protocol, rng, table = self.protocol, self._rng, None
        if protocol.longitudinal:
            key = protocol.enroll(rng) if key is None else key
            table = protocol.remember(rng)
        residue = account.residue
        if residue is None:
            residue = rng.below(every) if every > 1 else 0
        return State.new(key, table, account, (every, residue))

    # -- reporting

    def report(self, value: int, *, round: int) -> Report:
        """The sanitised report of ``value`` for one round.

        Parameters
        ----------
        value : int
            The user's value, 0..k-1; Python and NumPy integers are accepted.
        round : int
            Number of the round, >= 0. A round is answered once: asking again gives the same
            report, whatever the value. The newest 64 reports are remembered.

        Returns
        -------
        Report

        Raises
        ------
        DomainError
            If the value is outside the domain or of another type.
        BudgetError
            If `limit` leaves no report of a one-round rule; or does not cover the cap, in a state
            of release 0.2.0. Never because of the value.
        StateError
            If the round is not one of this client's, see `is_due`. If it was answered and its
            report is forgotten: a second answer would be one report more. Or in another process
            than the client's own.
        """
        value = self.protocol.check_value(value)
        round = checks.round_number(round)
        # Before the lock, which a fork may have inherited from another thread.
        if self._process is not fork.here:
            raise fork.elsewhere()
        with self._lock:
            before = self._state
            if not before.before.is_due(round):
                raise StateError(
                    f"round must be one in which this client reports, got {round!r}; ask "
                    "is_due before, and send nothing for the others"
                )
            if round <= before.last and holds(before.record.answered, round):
                return before.report_of(round)
            if self.limit is not None:
                self._must_cover(before, self.limit)
            if self.protocol.longitudinal:
                report, memo = self._memoised(before, value)
            else:
                report, memo = self._fresh(before, value)
            after = before.answering(round, report, memo)
            if self._state is not before:
                # A signal handler of this thread changed the state meanwhile: start again from it.
                return self.report(value, round=round)
            self._state = after
            return report

    def _memoised(self, state: State, value: int) -> tuple[Report, Mapping[int, Answer]]:
        protocol, rng, memo = self.protocol, self._rng, state.memo
        key = state.before.key
        x = protocol.memo_index(key, value)
        answer = memo.get(x)
        if answer is None:
            table = state.before.table
            answer = protocol.permanent(rng, x) if table is None else table[x]
            memo = {**memo, x: answer}
        return Report(protocol.encoding.sent(key), protocol.instant(rng, answer)), memo

    def _fresh(self, state: State, value: int) -> tuple[Report, Mapping[int, Answer]]:
        protocol, rng = self.protocol, self._rng
        key = protocol.enroll(rng)
        y = protocol.permanent(rng, protocol.memo_index(key, value))
        return Report(protocol.encoding.sent(key), y), state.memo

    def is_due(self, round: int) -> bool:
        """Whether the client reports in a round; always where ``every`` is 1.

        One that was missed is not made up for: that would be a second report among ``every``
        rounds.
        """
        return self._state.before.is_due(checks.round_number(round))

    @property
    def every(self) -> int:
        """In how many rounds the client reports once."""
        return self._state.before.panel[0]

    def has_answered(self, round: int) -> bool:
        """Whether a round counts as answered; it is never answered again."""
        return holds(self._state.record.answered, checks.round_number(round))

    @property
    def sent_rounds(self) -> tuple[int, ...]:
        """The newest rounds that were answered, in the order of answering."""
        return tuple(round for round, _ in self._state.record.sent)

    def reporter(self, round: int) -> str:
        """Pseudonym for one round, 32 hexadecimal digits: a retry is recognised by it.

        It is an HMAC of the round under a secret of this client, so two rounds cannot be joined
        through it.
        """
        round = checks.round_number(round)
        secret = self._state.before.secret
        return hmac.new(secret, b"round %d" % round, hashlib.sha256).hexdigest()[:32]

    # -- start anew

    def reset(self, *, wait: bool = True) -> str:
        """Forget key, memo, secret and sent reports, and start as a new user.

        Never happens by itself. What was spent stays spent and stays in `loss`; whatever is
        reported from now on is spent on top of it. Queued reports should be deleted with it. The
        rounds in which it `is_due` stay the same.

        Parameters
        ----------
        wait : bool
            Whether to wait for rounds that were not answered yet. If not, a round that was counted
            and is answered again counts this user twice: the new pseudonym cannot be recognised.
            Always where it reports in one round of `every`: a second report in a window would lose
            more than a panel may.

        Returns
        -------
        str
            The cost, in a sentence to show to whoever asked for it.

        Raises
        ------
        BudgetError
            If `limit` does not cover what was committed and the cap of a new user: nothing changes.
        """
        if self._process is not fork.here:
            raise fork.elsewhere()
        with self._lock:
            before = self._state
            spent, committed = self._loss(before), self._committed(before)
            if self.limit is not None:
                known = before.before.committed_before
                may_reset(self.limit, committed, [self.protocol], known)
            every, residue = before.before.panel
            wait = wait or every > 1
            rounds = before.record.answered if wait else ()
            after = self._new(None, Account(spent, rounds, committed, residue), every)
            if self._state is not before:
                return self.reset(wait=wait)
            self._state = after
        return cost_of_reset(spent, [self.protocol], wait=wait)

    # -- persistence

    def to_dict(self) -> dict[str, Any]:
        """The whole state, secrets included, as JSON data: keep it on the device only."""
        return to_plain(self.protocol, self.limit, self._state)

    @classmethod
    def from_dict(
        cls, state: Mapping[str, Any], *, protocol: Protocol | None = None, rng: Rng | None = None
    ) -> Self:
        """The client that `to_dict` described; it goes on exactly where that one was.

        Parameters
        ----------
        state : mapping
            What `to_dict` returned.
        protocol : Protocol, optional
            The rules that the state must be for; a state for others is refused.
        rng : Rng, optional
            As for `Client`.

        Raises
        ------
        StateError
            If the state is damaged, foreign, or of another version. Nothing of it is shown.
        """
        stored, limit, restored = from_plain(state, protocol)
        client = object.__new__(cls)
        client._set_up(stored, limit, rng)
        client._state = restored
        return client

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file that only its owner can read; whole or not at all.

        Raises
        ------
        StateError
            If it cannot be written. What the file holds then is the old state or the new one,
            whole; nothing may leave the device before a later `save` succeeds.
        """
        target = resolved(path)
        write_private(target, json.dumps(self.to_dict()).encode())
        sweep(target)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        protocol: Protocol | None = None,
        rng: Rng | None = None,
    ) -> Self:
        """Read what `save` wrote; see `from_dict`.

        Raises
        ------
        StateError
            If the file is missing, damaged, foreign, or of another version.
        """
        target = resolved(path)
        plain = read_json(target, read_private(target), BEYOND_REPAIR)
        return cls.from_dict(plain, protocol=protocol, rng=rng)

    def _copy(self) -> Self:
        """A copy for one step, adopted as a whole or dropped."""
        copied = object.__new__(type(self))
        copied._set_up(self.protocol, self.limit, self._rng)
        copied._state, copied._process = self._state, self._process
        return copied

    def __repr__(self) -> str:
        return f"Client({self.protocol!r}, state hidden)"

    def __reduce__(self) -> NoReturn:
        raise StateError("a client must not be pickled or copied; use save() and load()")


def _check_key(key: Key, protocol: Protocol) -> Key:
    if key is None:
        return None
    if not protocol.longitudinal or not protocol.encoding.is_key(key):
        raise ParameterError(
            f"key must be one of the family of {protocol.name}, got another (not shown); "
            "leave it out to draw one"
        )
    return key
