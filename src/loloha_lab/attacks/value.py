"""The Bayes-optimal guess of the current value from all reports so far, or near it.

The observer knows the prior and how often values change: with a chance a round the value is drawn
anew from the prior. Memos are unknown and are filtered along with the cell that the value is in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from loloha import checks
from loloha.encodings import Hashed, OneHot, SampledBuckets, Symbols
from loloha.errors import ParameterError
from loloha.population.samplers import Draws, History, sample_reports
from loloha.protocols import Protocol
from loloha_lab.attacks import filtering
from loloha_lab.attacks.memo import BitMemos, SymbolMemos

if TYPE_CHECKING:
    from loloha.arrays import Array

# Tables of memos times cells of one user that are tracked exactly.
_STATES_AT_MOST = 1 << 11
# Numbers that are in memory at once.
_NUMBERS = 1 << 20
# Cells of jointly drawn responses whose tables are still as few.
_JOINT_AT_MOST = 4


@dataclass(frozen=True, eq=False)
class Guessing:
    """How often the likeliest value is the right one, round by round.

    Attributes
    ----------
    success, error : float64[tau]
        Share of users whose value is guessed, and its standard error.
    expected : float64[tau]
        What the observer believes that share to be: of the exact filter the success of the optimal
        guess. Particles are four independent clouds, each asked of the guess that the others make,
        as the best of many that are near looks better than it is. Of 12 values at
        eps_inf = 2, eps_1 = 1, with a chance of change of 0.1, the mean over 40 rounds is 0.200
        where 0.198 are right for RAPPOR (4 000 users; 0.210 and 0.209 +- 0.006 after the last), and
        0.246 where 0.240 are for L-OSUE (1 000 users; 0.256 and 0.247 +- 0.014).
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
        That memoises: LOLOHA, L-GRR, RAPPOR and its like, dBitFlipPM.
    prior : float[k]
        Probabilities of the values.
    change : float
        Chance in [0, 1], each round, that the value is drawn anew from the prior.
    rounds : int
        1..100 000.
    n : int
        Users, at least 1.
    method : {"auto", "exact", "particles"}
        The exact filter runs over all memos: for g up to 4, k up to 3 where there are k bits, two
        sampled buckets. Particles hold a memo of each cell: k^2 numbers each for k bits; their
        success is what an attack attains, and the optimal one may attain more.
    rng : int
        Seed.

    Raises
    ------
    ParameterError
        If a number is out of range, the prior does not sum to 1, the protocol does not memoise, or
        the exact filter is too large.
    """
    in_symbols = type(protocol.encoding) in (Hashed, Symbols)
    known = in_symbols or type(protocol.encoding) in (OneHot, SampledBuckets)
    if not protocol.longitudinal or not known or (in_symbols and protocol.second_channel is None):
        raise ParameterError(
            f"protocol must have a memo and an encoding of this package, and a second round over "
            f"symbols, got {protocol!r}; guess constant values of others with averaging"
        )
    chances = _prior(prior, protocol.k)
    if not (isinstance(change, int | float) and 0 <= change <= 1):
        raise ParameterError(f"change must be a probability in [0, 1], got {change!r}; per round")
    rounds = checks.integer("rounds", rounds, 1, 100_000, "count the rounds")
    n = checks.integer("n", n, 1, 1 << 24, "attack some users")
    checks.choice("method", method, ("auto", "exact", "particles"))
    memos = SymbolMemos.of(protocol) if in_symbols else BitMemos.of(protocol)
    memo_states = len(memos.blind)
    most = _STATES_AT_MOST // memo_states
    exact = method == "exact" or (method == "auto" and memos.tables <= most)
    if exact and memos.tables > 8 * most:
        raise ParameterError(
            f"method must be 'particles' for {memo_states} memos, got 'exact'; or lower k, g or d"
        )
    if not exact and protocol.joint:
        raise ParameterError(
            f"protocol must have at most {_JOINT_AT_MOST} cells where one table answers all, got "
            f"{protocol!r}; lower g"
        )
    generator = np.random.default_rng(rng)
    values = _values(chances, change, rounds, n, generator)
    sent = list(sample_reports(protocol, History(values, protocol.k), Draws(rng)))
    ys = np.stack([np.asarray(round.ys) for round in sent], axis=1)
    keys = sent[0].keys
    right, believed = np.zeros((2, rounds, n))
    crowd = filtering.CLOUDS * max(filtering.PARTICLES * memos.blind.size, protocol.k)
    step = max(1, _NUMBERS // (memos.tables * memo_states if exact else crowd))
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        cells = protocol.encoding.memo_indices(
            None if keys is None else keys[part], np.arange(protocol.k), part.stop - start
        )
        weight = _cell_prior(cells, chances, memo_states)
        run = filtering.exact if exact else filtering.particles
        for t, posterior in enumerate(run(memos, weight, change, ys[part], generator)):
            # Within a cell nothing is learned: its values keep their prior shares.
            share = np.divide(
                posterior, weight[:, None], out=np.zeros_like(posterior), where=weight[:, None] > 0
            )
            scores = np.take_along_axis(share, cells[:, None], axis=2) * chances
            right[t, part], believed[t, part] = _judged(scores, values[part, t])
    return Guessing(
        success=right.mean(axis=1),
        error=np.sqrt(right.var(axis=1) / n),
        expected=believed.mean(axis=1),
        prior=float(chances.max()),
        exact=exact,
    )


def _judged(scores: Array, values: Array) -> tuple[Any, Any]:
    """Chance that the guess is right, where ties are drawn, and what the clouds believe it to be.

    A posterior is believed of a guess that others made: of its own, the best of many that are near,
    it thinks too highly.
    """
    together = scores.sum(axis=1)
    likeliest = together >= together.max(axis=1, keepdims=True) * (1 - 1e-9)
    right = likeliest[np.arange(len(values)), values] / likeliest.sum(axis=1)
    others = together[:, None] - scores if scores.shape[1] > 1 else scores
    guess = others.argmax(axis=2)[:, :, None]
    return right, np.take_along_axis(scores, guess, axis=2).mean(axis=(1, 2))


def _prior(prior: Any, k: int) -> Any:
    chances = np.asarray(prior, dtype=np.float64)
    if chances.shape != (k,) or not (chances >= 0).all() or abs(chances.sum() - 1) > 1e-9:
        raise ParameterError(
            f"prior must be {k} probabilities that sum to 1, got shape {chances.shape} with sum "
            f"{float(chances.sum()):.6g}; divide by their sum"
        )
    return chances / chances.sum()


def _values(chances: Array, change: float, rounds: int, n: int, rng: np.random.Generator) -> Any:
    """Values of users: the last one, or drawn anew."""
    fresh = rng.choice(len(chances), size=(n, rounds), p=chances)
    drawn = rng.random((n, rounds)) < change
    drawn[:, 0] = True
    last = np.maximum.accumulate(np.where(drawn, np.arange(rounds), 0), axis=1)
    return np.take_along_axis(fresh, last, axis=1)


def _cell_prior(cells: Array, chances: Array, g: int) -> Any:
    """Probability of each cell, float64[n, g]."""
    n = len(cells)
    places = cells + g * np.arange(n)[:, None]
    spread = np.broadcast_to(chances, cells.shape).ravel()
    return np.bincount(places.ravel(), weights=spread, minlength=n * g).reshape(n, g)
