"""Samplers: from a population's values to counts and reports, distributed as by clients.

`sample` gives counts and `sample_reports` the reports themselves, by code for the exact class of
the protocol's encoding; an encoding that brings none, or a protocol that takes a step of its own,
is run client by client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from loloha.arrays import Ints
from loloha.encodings import (
    Encoding,
    Hashed,
    HiddenThreshold,
    OneHot,
    SampledBuckets,
    Symbols,
    Threshold,
    for_encoding,
)
from loloha.encodings.part import COUNTS, REPORTS
from loloha.population.samplers.bit import report_bits, sample_bits
from loloha.population.samplers.draws import Draws
from loloha.population.samplers.history import History
from loloha.population.samplers.ordered import report_thresholds, sample_thresholds
from loloha.population.samplers.replay import replay, replay_reports
from loloha.population.samplers.sample import Chain, Progress, Reports, Sample
from loloha.population.samplers.symbol import quickest, report_symbols, sample_symbols
from loloha.population.samplers.visits import Visits
from loloha.privacy.loss import loss_of
from loloha.protocols import Protocol

Sampler = Callable[[Any, Chain, Visits, Draws, Progress], tuple[Ints, Iterator[Ints]]]
"""Gives how many first-round answers each user has drawn, and the counts of each round."""

Reporter = Callable[[Any, Chain, Visits, Draws], Iterator[Reports]]
"""Gives the reports of each round, with the same draws and the same distribution."""

for_encoding(COUNTS.name, Symbols, Hashed)(sample_symbols)
for_encoding(COUNTS.name, OneHot, SampledBuckets)(sample_bits)
for_encoding(REPORTS.name, Symbols, Hashed)(report_symbols)
for_encoding(REPORTS.name, OneHot, SampledBuckets)(report_bits)
for_encoding(COUNTS.name, Threshold, HiddenThreshold)(sample_thresholds)
for_encoding(REPORTS.name, Threshold, HiddenThreshold)(report_thresholds)

STEPS = ("check_value", "enroll", "memo_index", "remember", "permanent", "instant", "client")


def sample(
    protocol: Protocol, history: History, draws: Draws, progress: Progress, *, keep: bool = True
) -> Sample:
    """What the server sees of a population."""
    # ``keep`` says that tallies are wanted, not only their support.
    encoding = protocol.encoding
    sampler: Sampler | None = COUNTS.of(encoding)
    if sampler is None or not _takes_usual_steps(protocol):
        return replay(protocol, history.values, draws, progress)
    if not keep:
        # Fresh users have a single visit.
        encoding = quickest(encoding, history.n, history.tau if protocol.longitudinal else 1)
    if protocol.longitudinal:
        chain = Chain(protocol.first_channel, protocol.second_channel)
        visits = history.visits(protocol.encoding.values)
        answers, counts = sampler(encoding, chain, visits, draws, progress)
    else:
        answers = history.reports
        counts = _one_round(sampler, protocol, encoding, history, draws, progress)
    loss = loss_of(protocol, answers)
    return Sample(loss, counts, encoding)


def sample_reports(protocol: Protocol, history: History, draws: Draws) -> Iterator[Reports]:
    """The population's reports, round by round."""
    encoding = protocol.encoding
    reporter: Reporter | None = REPORTS.of(encoding)
    if reporter is None or not _takes_usual_steps(protocol):
        yield from replay_reports(protocol, history.values, draws)
    elif protocol.longitudinal:
        chain = Chain(protocol.first_channel, protocol.second_channel)
        yield from reporter(encoding, chain, history.visits(protocol.encoding.values), draws)
    else:
        chain = Chain(protocol.first_channel, None)
        for round_values in history.rounds(protocol.encoding.values):
            visits = Visits.of_round(round_values[round_values >= 0], protocol.encoding.values)
            (sent,) = reporter(encoding, chain, visits, draws)
            yield sent._replace(senders=round_values >= 0)


def _takes_usual_steps(protocol: Protocol) -> bool:
    return all(getattr(type(protocol), step) is getattr(Protocol, step) for step in STEPS)


def _one_round(
    sampler: Sampler,
    protocol: Protocol,
    encoding: Encoding,
    history: History,
    draws: Draws,
    progress: Progress,
) -> Iterator[Ints]:
    """Nothing is memoised: the users of every round are new ones, in their only round."""
    chain = Chain(protocol.first_channel, None)
    for t, round_values in enumerate(history.rounds(protocol.encoding.values)):
        visits = Visits.of_round(round_values[round_values >= 0], protocol.encoding.values)
        _, counts = sampler(encoding, chain, visits, draws, lambda _: None)
        yield next(counts)
        progress((t + 1) / history.tau)


__all__ = [
    "Chain",
    "Draws",
    "History",
    "Reports",
    "Sample",
    "Sampler",
    "Visits",
    "sample",
    "sample_reports",
]
