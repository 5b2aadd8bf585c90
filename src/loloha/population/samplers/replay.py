"""A population of real clients, one Python call a report: for encodings without a faster way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from loloha.arrays import Array, Ints
from loloha.population.samplers.draws import Draws
from loloha.population.samplers.sample import Progress, Reports, Sample
from loloha.protocols import Protocol
from loloha.report import Report
from loloha.rng import SimulationRng

if TYPE_CHECKING:
    from loloha.client import Client


def replay(protocol: Protocol, values: Ints, draws: Draws, progress: Progress) -> Sample:
    """Run the shipped client for each user, with seeded randomness."""
    n, tau = values.shape
    loss = np.zeros(n)
    tallies = [protocol.tally() for _ in range(tau)]
    for u, history in enumerate(values):
        client = protocol.client(rng=SimulationRng(draws.seed()))
        for t, report in _sent(client, history):
            tallies[t].add(report)
        loss[u] = client.loss
        progress((u + 1) / n)
    return Sample(loss, iter([tally.counts for tally in tallies]), protocol.encoding)


def replay_reports(protocol: Protocol, values: Array, draws: Draws) -> Iterator[Reports]:
    """The same clients, and what they send, round by round."""
    rounds: list[list[Report]] = [[] for _ in range(values.shape[1])]
    for history in values:
        for t, report in _sent(protocol.client(rng=SimulationRng(draws.seed())), history):
            rounds[t].append(report)
    for t, sent in enumerate(rounds):
        yield Reports(values[:, t] >= 0, *protocol.encoding.arrays(sent))


def _sent(client: Client, history: Ints) -> Iterator[tuple[int, Report]]:
    """The reports of a user with these values, -1 for none."""
    for t, v in enumerate(history.tolist()):
        if v >= 0:
            yield t, client.report(v, round=t)
