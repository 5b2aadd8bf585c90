"""Detection of changes of a user's value from reports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from loloha.arrays import Ints
from loloha.client import Client
from loloha.errors import ParameterError
from loloha.protocols import Protocol
from loloha.rng import SimulationRng


@dataclass(frozen=True)
class Detection:
    """How well changes of users' values show in their reports.

    Attributes
    ----------
    users : int
        Users attacked.
    exposed : int
        Users of whom every change shows: as many different answers as different values.
    changes, seen : int
        Consecutive rounds with different values, and those of them with different answers.
    stays, alarms : int
        Consecutive rounds with one value, and those of them with different answers.
    """

    users: int
    exposed: int
    changes: int = 0
    seen: int = 0
    stays: int = 0
    alarms: int = 0

    @property
    def share(self) -> float:
        """Share of users of whom every change shows: Table 2 of the paper."""
        return self.exposed / self.users

    @property
    def hit_rate(self) -> float:
        """Share of the changes after which the answer changed; nan if nobody changed."""
        return self.seen / self.changes if self.changes else math.nan

    @property
    def alarm_rate(self) -> float:
        """Share of the unchanged rounds after which the answer changed all the same."""
        return self.alarms / self.stays if self.stays else math.nan

    def __add__(self, other: Self) -> Self:
        sums = {name: getattr(self, name) + getattr(other, name) for name in self.__dict__}
        return type(self)(**sums)


def detect_changes(answers: Ints, values: Ints) -> Detection:
    """Take every different answer for a different value, as in Table 2 of the paper.

    Parameters
    ----------
    answers : int[n, tau]
        What each user sent in each round; equal numbers stand for equal answers of that user.
    values : int[n, tau]
        The user's value (dBitFlipPM: the bucket).

    Returns
    -------
    Detection

    Raises
    ------
    ParameterError
        If the shapes differ.

    Notes
    -----
    Source: MATH section 10. A memoised answer repeats exactly, so where the server sees memoised
    answers each change that changed the answer is certain; a fresh second round hides it.
    """
    answers, values = np.asarray(answers), np.asarray(values)
    if answers.shape != values.shape or values.ndim != 2 or values.shape[0] == 0:
        raise ParameterError(
            f"answers and values must be of one shape [users, rounds], got {answers.shape} and "
            f"{values.shape}; give one answer for each value"
        )
    moved = values[:, 1:] != values[:, :-1]
    differs = answers[:, 1:] != answers[:, :-1]
    exposed = count_distinct(answers) == count_distinct(values)
    return Detection(
        users=len(values),
        exposed=int(np.count_nonzero(exposed)),
        changes=int(np.count_nonzero(moved)),
        seen=int(np.count_nonzero(moved & differs)),
        stays=int(np.count_nonzero(~moved)),
        alarms=int(np.count_nonzero(~moved & differs)),
    )


def count_distinct(rows: Ints) -> Ints:
    """How many different numbers each row holds, int64[n]."""
    ordered = np.sort(rows, axis=1)
    distinct: Ints = 1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1)
    return distinct


def record_answers(protocol: Protocol, values: Ints, seed: int) -> Ints:
    """Run a client for each user and number the different answers that it sends.

    Parameters
    ----------
    protocol : Protocol
    values : int[n, tau]
        Indices 0..k-1.
    seed : int
        Of all the clients' draws.

    Returns
    -------
    int64[n, tau]
        Equal for equal answers of one user; what `detect_changes` takes.
    """
    answers = np.empty(values.shape, dtype=np.int64)
    rng = SimulationRng(seed)
    for user, row in enumerate(values.tolist()):
        client = Client(protocol, rng=rng)
        numbers: dict[Any, int] = {}
        for t, v in enumerate(row):
            y = client.report(v, round=t).y
            answers[user, t] = numbers.setdefault(y, len(numbers))
    return answers
