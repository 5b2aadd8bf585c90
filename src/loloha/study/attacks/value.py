"""What is the value now? The Bayes-optimal guess from all reports so far.

The observer knows the prior and how often values change: with a chance a round the value is drawn
anew from the prior. Memos are unknown and are filtered along with the cell that the value is in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from loloha.errors import ParameterError
from loloha.rules import checks
from loloha.rules.encodings import Hashed, Symbols
from loloha.rules.protocols import Protocol
from loloha.study.samplers import Draws, History, sample_reports

if TYPE_CHECKING:
    from loloha.rules.counting.arrays import Array

# Memo tables times cells of one user that are kept exactly.
_STATES_AT_MOST = 1 << 11
# Numbers that are held at once.
_NUMBERS = 1 << 22
PARTICLES = 500


@dataclass(frozen=True, eq=False)
class Guessing:
    """How often the likeliest value is the right one, round by round.

    Attributes
    ----------
    success, error : float64[tau]
        Share of users whose value is guessed, and its standard error.
    expected : float64[tau]
        What the observer believes that share to be: calibrated, because the guess is optimal.
    prior : float
        Success of always guessing the most frequent value.
    exact : bool
        Whether the filter was exact; else particles stand for what is not known.
    """

    success: Any
    error: Any
    expected: Any
    prior: float
    exact: bool


def guess_values(
    protocol: Protocol,
    prior: Any,
    change: float,
    rounds: int,
    *,
    n: int = 1000,
    method: Literal["auto", "exact", "particles"] = "auto",
    rng: int,
) -> Guessing:
    """Guess the values of n users whose values change, after each round.

    Parameters
    ----------
    protocol : Protocol
        Two rounds over symbols: LOLOHA or L-GRR.
    prior : float[k]
        Probabilities of the values.
    change : float
        Chance in [0, 1], each round, that the value is drawn anew from the prior.
    rounds : int
        1..100 000.
    n : int
        Users, at least 1.
    method : {"auto", "exact", "particles"}
        The exact filter runs over all memo tables: for g up to 4.
    rng : int
        Seed.

    Raises
    ------
    ParameterError
        If a number is out of range, the prior does not sum to 1, the protocol does not send
        symbols of a memo, or the exact filter is too large.
    """
    if not protocol.longitudinal or type(protocol.encoding) not in (Hashed, Symbols):
        raise ParameterError(
            f"protocol must send symbols of a memo, got {protocol!r}; guess constant values of "
            "others with averaging"
        )
    chances = _prior(prior, protocol.k)
    if not (isinstance(change, int | float) and 0 <= change <= 1):
        raise ParameterError(f"change must be a chance in [0, 1], got {change!r}; per round")
    rounds = checks.integer("rounds", rounds, 1, 100_000, "count the rounds")
    n = checks.integer("n", n, 1, 1 << 24, "attack some users")
    checks.choice("method", method, ("auto", "exact", "particles"))
    g = int(protocol.first_channel.g)  # type: ignore[union-attr]
    exact = method == "exact" or (method == "auto" and g**g * g <= _STATES_AT_MOST)
    if exact and g**g * g > 8 * _STATES_AT_MOST:
        raise ParameterError(f"method must be 'particles' for g = {g}, got 'exact'; or lower g")
    generator = np.random.default_rng(rng)
    values = _values(chances, change, rounds, n, generator)
    sent = list(sample_reports(protocol, History(values, protocol.k), Draws(rng)))
    ys = np.stack([np.asarray(one.ys) for one in sent], axis=1)
    keys = sent[0].keys
    right, believed = np.zeros((2, rounds, n))
    size = g**g * g if exact else PARTICLES * g * g
    step = max(1, _NUMBERS // size)
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        cells = _cells(protocol, None if keys is None else keys[part], part.stop - start)
        weight = _cell_prior(cells, chances, g)
        run = _exact if exact else _particles
        for t, posterior in enumerate(run(protocol, weight, change, ys[part], generator)):
            # Within a cell nothing is learned: its values keep their prior shares.
            share = np.divide(posterior, weight, out=np.zeros_like(weight), where=weight > 0)
            scores = np.take_along_axis(share, cells, axis=1) * chances
            best = scores.max(axis=1, keepdims=True)
            likeliest = scores >= best * (1 - 1e-9)
            own = likeliest[np.arange(len(scores)), values[part, t]]
            right[t, part] = own / likeliest.sum(axis=1)
            believed[t, part] = best[:, 0]
    return Guessing(
        success=right.mean(axis=1),
        error=np.sqrt(right.var(axis=1) / n),
        expected=believed.mean(axis=1),
        prior=float(chances.max()),
        exact=exact,
    )


def _prior(prior: Any, k: int) -> Any:
    chances = np.asarray(prior, dtype=np.float64)
    if chances.shape != (k,) or not (chances >= 0).all() or abs(chances.sum() - 1) > 1e-9:
        raise ParameterError(
            f"prior must be {k} probabilities that sum to 1, got shape {chances.shape} with sum "
            f"{float(chances.sum()):.6g}; divide by their sum"
        )
    return chances / chances.sum()


def _values(chances: Array, change: float, rounds: int, n: int, rng: np.random.Generator) -> Any:
    """Values of users: kept, or drawn anew."""
    fresh = rng.choice(len(chances), size=(n, rounds), p=chances)
    drawn = rng.random((n, rounds)) < change
    drawn[:, 0] = True
    last = np.maximum.accumulate(np.where(drawn, np.arange(rounds), 0), axis=1)
    return np.take_along_axis(fresh, last, axis=1)


def _cells(protocol: Protocol, keys: Array | None, n: int) -> Any:
    """Memo cell of each value under each user's key, int64[n, k]."""
    return protocol.encoding.memo_indices(keys, np.arange(protocol.k), n)


def _cell_prior(cells: Array, chances: Array, g: int) -> Any:
    """Probability of each cell, float64[n, g]."""
    n = len(cells)
    places = cells + g * np.arange(n)[:, None]
    spread = np.broadcast_to(chances, cells.shape).ravel()
    return np.bincount(places.ravel(), weights=spread, minlength=n * g).reshape(n, g)


def _channels(protocol: Protocol) -> tuple[Any, Any]:
    """Pr[memo | cell] and Pr[answer | memo], float64[g, g]."""
    first: Any = protocol.first_channel
    second: Any = protocol.second_channel
    return tuple(
        np.full((one.g, one.g), float(one.q)) + np.eye(one.g) * float(one.p - one.q)
        for one in (first, second)
    )  # type: ignore[return-value]


def _exact(
    protocol: Protocol, weight: Array, change: float, ys: Array, rng: np.random.Generator
) -> Iterator[Any]:
    """Posterior of the cell, float64[n, g], round by round: over (memo table, cell).

    Drawing all memos beforehand has the law of drawing each at its first visit.
    """
    first, second = _channels(protocol)
    g = len(first)
    tables = np.stack(np.meshgrid(*[np.arange(g)] * g, indexing="ij"), axis=-1).reshape(-1, g)
    chance = first[np.arange(g), tables].prod(axis=1)
    shown = second[tables]
    state = chance[None, :, None] * weight[:, None, :]
    for t in range(ys.shape[1]):
        if t:
            anew = state.sum(axis=2, keepdims=True) * weight[:, None, :]
            state = (1 - change) * state + change * anew
        state = state * shown[:, :, ys[:, t]].transpose(2, 0, 1)
        state /= state.sum(axis=(1, 2), keepdims=True)
        yield state.sum(axis=1)


def _particles(
    protocol: Protocol, weight: Array, change: float, ys: Array, rng: np.random.Generator
) -> Iterator[Any]:
    """The same over paths of cells, with the memo of each cell averaged over, not drawn.

    A particle holds the odds of each cell's memo. Its next cell is drawn given the answer, so its
    weight is how well the answer was foreseen (Rao-Blackwellised, locally optimal proposal).
    """
    first, second = _channels(protocol)
    g, n = len(first), len(ys)
    memo = np.broadcast_to(first, (n, PARTICLES, g, g)).copy()
    share = np.full((n, PARTICLES), 1 / PARTICLES)
    users, places = np.arange(n)[:, None], np.arange(PARTICLES)[None]
    cell = np.zeros((n, PARTICLES), dtype=np.int64)
    for t in range(ys.shape[1]):
        answer = second[:, ys[:, t]].T
        foreseen = np.einsum("npcx,nx->npc", memo, answer)
        moved = np.broadcast_to(weight[:, None, :], (n, PARTICLES, g)).copy()
        if t:
            moved *= change
            moved[users, places, cell] += 1 - change
        joint = moved * foreseen
        total = joint.sum(axis=2)
        posterior = (share[:, :, None] * joint).sum(axis=1)
        yield posterior / posterior.sum(axis=1, keepdims=True)
        share = share * total
        share /= share.sum(axis=1, keepdims=True)
        steps = np.cumsum(joint / total[:, :, None], axis=2)
        cell = (rng.random((n, PARTICLES, 1)) > steps[:, :, :-1]).sum(axis=2)
        updated = memo[users, places, cell] * answer[:, None, :]
        memo[users, places, cell] = updated / updated.sum(axis=2, keepdims=True)
        poor = 1 / (share**2).sum(axis=1) < PARTICLES / 2
        if poor.any():
            kept = _resampled(share[poor], rng)
            rows = np.flatnonzero(poor)[:, None]
            memo[poor], cell[poor] = memo[rows, kept], cell[rows, kept]
            share[poor] = 1 / PARTICLES


def _resampled(share: Array, rng: np.random.Generator) -> Any:
    """Systematic resampling of each row."""
    points = (np.arange(PARTICLES) + rng.random((len(share), 1))) / PARTICLES
    steps = np.cumsum(share, axis=1)
    steps[:, -1] = math.inf
    return np.stack([np.searchsorted(row, at) for row, at in zip(steps, points, strict=True)])
