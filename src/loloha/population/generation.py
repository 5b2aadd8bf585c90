"""Making report logs of any size from a data set, a few users at a time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from loloha import checks
from loloha.arrays import Ints
from loloha.errors import ParameterError
from loloha.population.population import due
from loloha.population.samplers import Draws, History, sample_reports
from loloha.protocols import Protocol
from loloha.report import REPORTER_BYTES
from loloha.reportlog.folder import ReportLog

MOST_USERS, MOST_ROUNDS = 1 << 40, 1 << 20
# What one thread holds: users x rounds, and bytes of all their reports and memos.
_REPORTS_AT_ONCE = 1 << 22
_BYTES_AT_ONCE = 1 << 28
_MOST_USERS_AT_ONCE = 1 << 18


def generate(
    log: ReportLog,
    values: Any,
    *,
    users: int | None = None,
    rounds: int | None = None,
    progress: Callable[[float], object] | None = None,
    rng: int,
) -> Ints:
    """Write the reports that a population sends, without ever holding them all.

    Parameters
    ----------
    log : ReportLog
        Where to; rounds are 0, 1, ...
    values : int[n, tau]
        0..k-1, -1 where a user does not report. If the log's campaign asks a user in one round of
        some, each draws which, and reports in those.
    users : int, optional
        How many users to simulate: user u holds row u mod n. By default n.
    rounds : int, optional
        How many rounds: round t holds column t mod tau. By default tau.
    progress : callable, optional
        Told the share that is done, 0..1.
    rng : int
        Seed: equal arguments write equal files.

    Returns
    -------
    int64[rounds, k]
        How many users held each value in each round: the truth.

    Raises
    ------
    DomainError
        If a value is out of range; it is not shown.
    ParameterError
        If values, users or rounds are not as described.

    Notes
    -----
    Reports have the distribution of those of `Client`; a pseudonym is 16 random bytes, as an HMAC
    under a secret looks to everyone else. Users are handled in chunks, with all their rounds, so
    that each keeps a memo; each chunk becomes a row group of each round's file.
    """
    protocol = log.protocol
    values = History(values, protocol.k).values
    if not values.size:
        raise ParameterError(
            f"values must hold a user and a round, got shape {values.shape}; see loloha.datasets"
        )
    users = len(values) if users is None else _positive("users", users, MOST_USERS)
    rounds = values.shape[1] if rounds is None else _positive("rounds", rounds, MOST_ROUNDS)
    seed = checks.integer("rng", rng, 0, (1 << 128) - 1, "give a seed, so that it can be repeated")
    columns, every = np.arange(rounds) % values.shape[1], log.every

    def make(number: int, first: int, last: int) -> _Chunk:
        block = values[np.arange(first, last)[:, None] % len(values), columns]
        source = np.random.default_rng([seed, number])
        history = due(History(block, protocol.k), every, source)
        made = [
            (source.bytes(REPORTER_BYTES * len(ys)), keys, ys)
            for _, keys, ys in sample_reports(protocol, history, Draws(source))
        ]
        return last - first, made

    with log.writer() as writer:
        done = 0
        for number_of_users, made in _in_order(make, users, _users_at_once(protocol, rounds)):
            for round, (reporters, keys, ys) in enumerate(made):
                rows = np.frombuffer(reporters, np.uint8).reshape(-1, REPORTER_BYTES)
                writer.write(round, rows, keys, ys)
            done += number_of_users
            if progress is not None:
                progress(done / users)
    return truth(values, protocol.k, users, rounds)


def truth(values: Ints, k: int, users: int | None = None, rounds: int | None = None) -> Ints:
    """How many of ``users`` that hold the rows in turn hold each value, int64[rounds, k]."""
    users, rounds = users or len(values), rounds or values.shape[1]
    columns = np.arange(rounds) % values.shape[1]
    turns, rest = divmod(users, len(values))
    counts: Ints = np.empty((rounds, k), dtype=np.int64)
    for round, column in enumerate(columns):
        shifted = values[:, column].astype(np.int64) + 1
        every, some = (np.bincount(part, minlength=k + 1) for part in (shifted, shifted[:rest]))
        counts[round] = (turns * every + some)[1:]
    return counts


_Chunk = tuple[int, list[tuple[bytes, Any, Any]]]


def _in_order(make: Callable[[int, int, int], _Chunk], users: int, size: int) -> Iterator[_Chunk]:
    """Chunks in order, made by all cores, few of them at a time."""
    threads = os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[_Chunk]] = deque()
        for number, first in enumerate(range(0, users, size)):
            waiting.append(pool.submit(make, number, first, min(first + size, users)))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _users_at_once(protocol: Protocol, rounds: int) -> int:
    encoding = protocol.encoding
    key, answer = encoding.row_bytes
    a_round = REPORTER_BYTES + answer + key + 32
    cells = min(encoding.memo_symbols, rounds)
    a_user = rounds * a_round + cells * answer
    fit = min(_REPORTS_AT_ONCE // rounds, _BYTES_AT_ONCE // a_user, _MOST_USERS_AT_ONCE)
    return max(1, fit)


def _positive(name: str, number: int, most: int) -> int:
    return checks.integer(name, number, 1, most, "say how many to simulate")
