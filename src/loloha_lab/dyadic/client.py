"""One user's device under a budget for changes. Standard library only."""

from __future__ import annotations

from typing import NoReturn

from loloha import checks
from loloha.errors import ParameterError, StateError
from loloha.report import Report
from loloha.rng import SCALE, Rng, SecureRng
from loloha_lab.dyadic.protocol import DyadicLH


class DyadicClient:
    """The secret state of one user for one series of rounds.

    Parameters
    ----------
    protocol : DyadicLH
        The public rules.
    rng : Rng, optional
        Source of randomness, for simulations only; by default the operating system's.

    Notes
    -----
    It cannot be pickled or copied: a second copy would tell the same lies of other values.
    """

    __slots__ = ("_bit", "_left", "_rng", "_secret", "_sent", "_told", "_used", "protocol", "round")

    def __init__(self, protocol: DyadicLH, *, rng: Rng | None = None) -> None:
        self.protocol = protocol
        self._rng: Rng = SecureRng() if rng is None else rng
        self._secret = protocol.enroll(self._rng)
        self._left = protocol.changes
        self._bit: int | None = None
        # The bit at the last answer, and how many answers had news.
        self._told: int | None = None
        self._used = 0
        self._sent: Report | None = None
        self.round = -1

    def report(self, value: int, *, round: int) -> Report | None:
        """Take note of the value of one round; the report, if one is due at its end.

        Parameters
        ----------
        value : int
            The user's value, 0..k-1.
        round : int
            The next one, from 0: every round counts. The last one again gives the same answer,
            whatever the value. Give the value before where a round was missed.

        Returns
        -------
        Report or None
            Its key is the hash and the level, its y the bit. None where none is due, which depends
            on the level and the round alone.

        Raises
        ------
        DomainError
            If the value is outside the domain or of another type.
        ParameterError
            If the round is not the next one or the last one, or the series is over.
        """
        protocol = self.protocol
        value = protocol.check_value(value)
        last = protocol.rounds - 1
        advice = "a new series spends again"
        round = checks.integer("round", round, 0, last, advice)
        if round == self.round:
            return self._sent
        if round != self.round + 1:
            raise ParameterError(
                f"round must be {self.round + 1}, the next one, got {round!r}; give the value "
                "before for a round that was missed"
            )
        self._note(protocol.bit(self._secret, value))
        self.round, self._sent = round, self._answer(round)
        return self._sent

    def _note(self, bit: int) -> None:
        """Follow the bit for as long as its changes count."""
        if self._bit is None:
            self._bit = bit
        elif bit != self._bit and self._left:
            self._bit = bit
            self._left -= 1

    def _answer(self, round: int) -> Report | None:
        seed, level, lies = self._secret
        if not self.protocol.is_due(level, round):
            return None
        bit = self._bit
        if bit is None or bit == self._told:
            y = int(self._rng.bernoulli(SCALE // 2))
        else:
            y = bit ^ (lies >> self._used & 1)
            self._told = bit
            self._used += 1
        return Report((seed, level), y)

    @property
    def loss(self) -> float:
        """Budget spent: all of it, at enrolment, whatever is reported."""
        return self.protocol.eps

    def __repr__(self) -> str:
        return f"DyadicClient({self.protocol!r}, state hidden)"

    def __reduce__(self) -> NoReturn:
        raise StateError("a client must not be pickled or copied; enrol a new one")
