"""A whole population at once: users x rounds of values in, what the server estimates out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from loloha import checks
from loloha.arrays import Array, Floats, Ints
from loloha.campaign.schedule import RAREST
from loloha.datasets import Dataset
from loloha.datasets.dataset import Seed
from loloha.errors import ParameterError
from loloha.population.samplers import Draws, History, sample, sample_reports
from loloha.population.simulation import Simulation
from loloha.protocols import Protocol
from loloha.protocols.base import speakable
from loloha.server.tally import Tally
from loloha.server.unbiased import unbiased

__all__ = ["History", "Simulation", "Supports", "linked", "simulate", "supports"]


class Supports(NamedTuple):
    """The bare counts of a simulated population: see `supports`.

    Attributes
    ----------
    supports, eligible : int64[tau, bins]
        Reports that support each bin, and that could support it.
    n : int64[tau]
        Reports of each round.
    loss : float64[n]
        What each user has spent over all rounds.
    """

    supports: Ints
    eligible: Ints
    n: Ints
    loss: Floats


def simulate(
    protocol: Protocol,
    values: Any,
    *,
    every: int = 1,
    keep_tallies: bool = True,
    progress: Callable[[float], object] | None = None,
    rng: Seed | None = None,
) -> Simulation:
    """Sanitise and estimate: every user's device, then the server, in every round.

    Parameters
    ----------
    protocol : Protocol
        Any; see Notes for what makes it fast.
    values : int[n, tau], Dataset or History
        Value of each user in each round, 0..k-1; -1, or a masked entry, where a user sends nothing.
        Of a `loloha.datasets.Dataset` the result keeps labels, rounds and truth.
        A `History` saves preparing the same values again for the next simulation.
    every : int
        Rounds of which a user reports in one, drawn for life, as `loloha.campaign.Schedule` has it.
        It is drawn here: give the values of all rounds. Ones that are -1 outside each user's own
        rounds already are refused; simulate those with ``every=1``.
    keep_tallies : bool
        Whether the result holds the tally of each round. They can be far larger than the
        estimates: g^m * g counts a round for local hashing with the linear family.
    progress : callable, optional
        Called with the share that is done, a float rising to 1.
    rng : int, SeedSequence or Generator, optional
        Equal seeds give equal results, with numba installed or without; by default the operating
        system's entropy. Predictable by design: a real user's report needs a `Client`.

    Returns
    -------
    Simulation

    Raises
    ------
    DomainError
        If a value is outside the domain; it is not shown.
    ParameterError
        If ``values`` is not an array [n, tau] of integers, or has each user in one round of
        ``every`` already, or ``rng`` is none of the above.

    Notes
    -----
    The counts have the joint distribution over all rounds that the same users' clients would give
    them, integer thresholds and memoised answers included. It is reached by whole-array code for
    the encodings of `loloha.population.samplers`; protocols with another encoding, or with a step
    of their own, are run client by client. Runs on one core.
    """
    tallies: list[Tally] = []
    # A new sequence starts from the operating system's entropy.
    seed = np.random.SeedSequence() if rng is None else rng
    history = _history(values, speakable(protocol).k)
    if checks.integer("every", every, 1, RAREST, "1 is a report in each round") > 1:
        _refuse_thinned(history, every)
        seed = np.random.default_rng(seed)
        history = due(history, every, seed)
    counted = _count(protocol, history, progress, seed, tallies.append if keep_tallies else None)
    estimates = unbiased(protocol, counted.supports, counted.eligible)
    dataset = values if isinstance(values, Dataset) else None
    return Simulation(protocol, estimates, *counted, tallies, dataset, every)


def supports(
    protocol: Protocol, values: Any, *, progress: Callable[[float], object] | None = None, rng: Seed
) -> Supports:
    """The counts alone, for experiments that run thousands of populations.

    Parameters, errors and distribution are those of `simulate`, and so are the counts for the same
    ``rng``.

    Returns
    -------
    Supports
    """
    return _count(protocol, values, progress, rng, None)


def _refuse_thinned(history: History, every: int) -> None:
    """Values of users who are in one round of so many already: most would be lost."""
    present = history.values >= 0
    own = np.array([present[:, first::every].any(axis=1) for first in range(every)])
    if (own.sum(axis=0) <= 1).all() and (present.sum(axis=1) > 1).any():
        raise ParameterError(
            f"values must be those of all rounds where every is {every}, got each user in one of "
            f"{every} already; simulate them with every=1"
        )


def due(history: History, every: int, rng: np.random.Generator, first: int = 0) -> History:
    """The history if each user reports in one round of ``every``, drawn once."""
    if every == 1:
        return history
    rounds = first + np.arange(history.tau)
    residues = rng.integers(every, size=(history.n, 1))
    return History(np.where(rounds % every == residues, history.values, -1), history.k)


def linked(protocol: Protocol, values: Any, *, rng: Seed) -> tuple[Ints | None, Ints]:
    """The reports themselves, joined by user, as `loloha.engines.window.decode` takes them.

    Parameters
    ----------
    protocol : Protocol
        Whose answers are symbols.
    values, rng
        As for `simulate`.

    Returns
    -------
    keys : int64[n] or None
        None where the protocol has none.
    ys : int64[n, tau]
        -1 where a user sends nothing.

    Raises
    ------
    ParameterError
        If answers are bits, or as for `simulate`.
    """
    encoding = protocol.encoding
    if encoding.packed:
        raise ParameterError(f"protocol must send symbols, got {protocol!r}; take a hashed one")
    history = _history(values, protocol.k)
    keys = None if encoding.shapes(1)[0] is None else np.zeros(history.n, dtype=np.int64)
    ys = np.full((history.n, history.tau), -1, dtype=np.int64)
    for t, sent in enumerate(sample_reports(protocol, history, Draws(rng))):
        ys[sent.senders, t] = sent.ys
        if keys is not None:
            keys[sent.senders] = sent.keys
    return keys, ys


def _count(
    protocol: Protocol,
    values: Any,
    progress: Callable[[float], object] | None,
    rng: Seed,
    keep: Callable[[Tally], object] | None,
) -> Supports:
    """Run a population, and pass on the tally of each round if wanted."""
    history = _history(values, speakable(protocol).k)
    progress = progress or (lambda _: None)
    sampled = sample(protocol, history, Draws(rng), progress, keep=keep is not None)
    support, eligible = np.zeros((2, history.tau, protocol.bins), dtype=np.int64)
    for t, counts in enumerate(sampled.counts):
        n = int(history.present[t])
        support[t] = sampled.encoding.support(counts)
        eligible[t] = sampled.encoding.eligible(counts, n)
        if keep is not None:
            tally = protocol.tally()
            tally.counts, tally.n = counts.copy(), n
            keep(tally)
    return Supports(support, eligible, history.present, sampled.loss)


def _history(values: Array, k: int) -> History:
    if isinstance(values, Dataset):
        if values.k != k:
            raise ParameterError(
                f"k of the protocol must be that of the data set, {values.k}, got {k}; "
                "make the protocol with k=dataset.k"
            )
        return History(values.values, k)
    if not isinstance(values, History):
        return History(values, k)
    if values.k != k:
        raise ParameterError(f"k must be that of the protocol, {k}, got {values.k}; prepare again")
    return values
