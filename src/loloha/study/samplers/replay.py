"""A population of real clients, one Python call a report: for encodings without a faster way."""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.rules.protocols import Protocol
from loloha.rules.rng import SimulationRng
from loloha.study.samplers.draws import Draws
from loloha.study.samplers.sample import Progress, Sample


def replay(protocol: Protocol, values: Any, draws: Draws, progress: Progress) -> Sample:
    """Run the shipped client for each user, with seeded randomness."""
    n, tau = values.shape
    loss = np.zeros(n)
    tallies = [protocol.tally() for _ in range(tau)]
    for u, held in enumerate(values):
        client = protocol.client(rng=SimulationRng(draws.seed()))
        for t in np.flatnonzero(held >= 0):
            tallies[t].add(client.report(int(held[t]), round=int(t)))
        loss[u] = client.loss
        progress((u + 1) / n)
    return Sample(loss, iter([tally.counts for tally in tallies]))
