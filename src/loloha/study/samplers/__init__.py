"""From a population's values to the counts of each round, with the law of the clients.

`sample` picks the sampler by the class of the protocol's encoding; an encoding that is not in
`SAMPLERS`, or a protocol that takes a step of its own, is run client by client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from loloha.rules.counting.arrays import Ints
from loloha.rules.encodings import Encoding, Hashed, OneHot, SampledBuckets, Symbols
from loloha.rules.protocols import Protocol
from loloha.study.samplers.bit import sample_bits, sample_buckets
from loloha.study.samplers.draws import Draws
from loloha.study.samplers.history import History
from loloha.study.samplers.replay import replay
from loloha.study.samplers.sample import Chain, Progress, Sample
from loloha.study.samplers.symbol import sample_symbols
from loloha.study.samplers.visits import Visits

Sampler = Callable[[Any, Chain, Visits, Draws, Progress], tuple[Ints, Iterator[Ints]]]
"""Gives how many first-round answers each user has drawn, and the counts of each round."""

SAMPLERS: dict[type[Encoding], Sampler] = {
    Symbols: sample_symbols,
    Hashed: sample_symbols,
    OneHot: sample_bits,
    SampledBuckets: sample_buckets,
}
"""The samplers know these classes exactly: a subclass may take its steps otherwise."""

STEPS = ("check_value", "enroll", "memo_index", "permanent", "instant", "client")


def sample(protocol: Protocol, history: History, draws: Draws, progress: Progress) -> Sample:
    """What the server sees of a population.

    Parameters
    ----------
    protocol : Protocol
    history : History
    draws : Draws
    progress : callable
    """
    sampler = SAMPLERS.get(type(protocol.encoding))
    if sampler is None or not _takes_usual_steps(protocol):
        return replay(protocol, history.values, draws, progress)
    if protocol.longitudinal:
        chain = Chain(protocol.first_channel, protocol.second_channel)
        visits = history.visits(protocol.bins)
        answers, counts = sampler(protocol.encoding, chain, visits, draws, progress)
    else:
        answers = history.reports
        counts = _one_round(sampler, protocol, history, draws, progress)
    loss: Any = answers * protocol.asked_memo
    return Sample(loss, counts)


def _takes_usual_steps(protocol: Protocol) -> bool:
    return all(getattr(type(protocol), step) is getattr(Protocol, step) for step in STEPS)


def _one_round(
    sampler: Sampler, protocol: Protocol, history: History, draws: Draws, progress: Progress
) -> Iterator[Ints]:
    """Nothing is kept: the users of every round are new ones, in their only round."""
    chain = Chain(protocol.first_channel, None)
    for t, held in enumerate(history.rounds(protocol.bins)):
        visits = Visits.of_round(held[held >= 0], protocol.bins)
        _, counts = sampler(protocol.encoding, chain, visits, draws, _ignore)
        yield next(counts)
        progress((t + 1) / history.tau)


def _ignore(share: float) -> None:
    pass


__all__ = ["SAMPLERS", "Chain", "Draws", "History", "Sample", "Sampler", "Visits", "sample"]
