"""What one user has spent, and the limit on it."""

from __future__ import annotations

from threading import RLock

from loloha.client import fork
from loloha.client.limit import ANEW, agreed, covers, least
from loloha.client.state import Account, State
from loloha.errors import BudgetError
from loloha.protocols import Protocol


class Spending:
    """The costs of a `loloha.Client`: its state under the rules, and a limit."""

    __slots__ = ("_lock", "_process", "_state", "limit", "protocol")

    _lock: RLock
    _process: object
    _state: State
    limit: float | None
    protocol: Protocol

    @property
    def loss(self) -> float:
        """Budget spent so far: eps_inf for each memoised answer; one-round protocols, eps a report.

        Where all answers were drawn in one table: what so many of them spend together.
        """
        return self._loss(self._state)

    def _loss(self, state: State) -> float:
        units = len(state.memo) if self.protocol.longitudinal else state.record.reports
        return state.before.spent_before + self.protocol.spent(units)

    @property
    def committed(self) -> float:
        """The amount that a limit has to cover so far, independent of the values.

        The caps of this user's clients before and after each reset; of one-round ones what their
        reports spent.
        """
        return self._committed(self._state)

    def _committed(self, state: State, more: int = 0) -> float:
        return state.before.committed + self._own(state, more)

    def _own(self, state: State, more: int = 0) -> float:
        """The amount that this key commits: its cap, or without one the loss of its reports."""
        protocol = self.protocol
        return (
            protocol.cap if protocol.longitudinal else protocol.spent(state.record.reports + more)
        )

    def _claim(self, state: State) -> float:
        """The amount of it that a new limit has to cover, at least one report."""
        return max(least(self.protocol), self._own(state))

    @property
    def cap(self) -> float:
        """Most that `loss` can become without another `reset`."""
        return self._state.before.spent_before + self.protocol.cap

    @property
    def account(self) -> Account:
        """What was spent and which rounds were answered, for a later client of this user."""
        state = self._state
        every, residue = state.before.panel
        rounds, committed = state.record.answered, self._committed(state)
        return Account(self._loss(state), rounds, committed, residue if every > 1 else None)

    def _must_cover(self, state: State, limit: float) -> None:
        """Refuse a report by conditions that do not depend on the value."""
        if self.protocol.longitudinal:
            if state.before.committed_before is None or not covers(limit, self._committed(state)):
                raise BudgetError(ANEW)
        elif not covers(limit, self._committed(state, more=1)):
            raise BudgetError(
                f"loss must stay within limit = {limit!r}, one more report would exceed it; report "
                "no more, or ask the user to accept a higher limit"
            )

    def set_limit(self, limit: float | None) -> None:
        """Replace the hard limit on `loss`, as the user asks; what is spent stays spent.

        Raises
        ------
        ParameterError
            If it does not cover what is `committed`, or one report of a one-round rule.
        """
        if self._process is not fork.here:
            raise fork.elsewhere()
        with self._lock:
            state = self._state
            before = state.before.committed
            limit = agreed(limit, before, [self.protocol], [self._claim(state)])
            # With this consent, the amount spent replaces an unknown commitment.
            record = state.before._replace(committed_before=before)
            self._state = State(state.memo, record, state.last, state.run)
            self.limit = limit
