"""Whole populations, device and server, beside one client and one hash at a time."""

from collections.abc import Iterator
from typing import Any

import loloha
from benchmarks.measure import Row, Time, best, peak, timed
from benchmarks.server import direct_counting
from loloha.datasets import Dataset, acs_standin, adult, browsers, syn
from loloha.population import simulate
from loloha.population.samplers import History
from loloha.rng import SimulationRng

# Users whose reports the straightforward method makes, in rounds of their own.
FEW_USERS = {"symbols": 200, "bits": 3}
BUDGET = {"eps_inf": 2.0, "eps_1": 1.0}


def rows() -> Iterator[Row]:
    for dataset in (adult(), browsers(), syn(), acs_standin()):
        for protocol in _protocols(len(dataset.labels)):
            yield _row(dataset, protocol)
        yield _again(dataset)
        yield _least_prime(dataset)


def _protocols(k: int) -> Iterator[Any]:
    yield loloha.BiLOLOHA(k=k, **BUDGET)
    yield loloha.OLOLOHA(k=k, eps_inf=5.0, eps_1=3.0)
    yield loloha.LGRR(k=k, **BUDGET)
    yield loloha.RAPPOR(k=k, **BUDGET)
    yield loloha.LOSUE(k=k, eps_inf=5.0, eps_1=2.5)
    yield loloha.DBitFlipPM(k=k, eps_inf=2.0, b=k // 4, d=1)


def _row(dataset: Dataset, protocol: Any) -> Row:
    values = dataset.values
    n, tau = values.shape
    bits = protocol.encoding.kind == "bits"
    units = n * tau * (protocol.k if bits else 1)

    def run() -> None:
        simulate(protocol, values, keep_tallies=False, rng=1)

    took = best(run, repeats=3)
    peer, peer_took = _one_by_one(protocol, values)
    target = 0.1 if bits else {None: None, 2: 15.0}.get(protocol.g, 60.0)
    return Row(
        "population", protocol.name + (f", g = {protocol.g}" if protocol.g else ""),
        f"{dataset.name}: n = {n}, tau = {tau}, k = {protocol.k}",
        unit="ns/bit" if bits else "ns/report", target=target, peer=peer,
        peer_figure=1e9 * peer_took / units, peak=peak(run), **took.each(units),
    )  # fmt: skip


def _again(dataset: Dataset) -> Row:
    """What a further simulation of the same population takes."""
    protocol = loloha.BiLOLOHA(k=len(dataset.labels), **BUDGET)
    history = History(dataset.values, protocol.k)
    took = best(lambda: simulate(protocol, history, keep_tallies=False, rng=1), repeats=3)
    n, tau = dataset.values.shape
    return Row(
        "population", "biloloha, history prepared before", f"{dataset.name}: k = {protocol.k}",
        unit="ns/report", target=15.0, **took.each(n * tau),
    )  # fmt: skip


def _least_prime(dataset: Dataset) -> Row:
    """The least-prime family beside the affine one, at the same g and by turns."""
    n, tau = dataset.values.shape
    history = History(dataset.values, len(dataset.labels))
    protocols = [
        loloha.OLOLOHA(k=history.k, g=4, hash=name, **BUDGET) for name in ("prime", "affine")
    ]

    def run(protocol: Any) -> Time:
        return timed(lambda: simulate(protocol, history, keep_tallies=False, rng=1))

    turns = [[run(protocol) for protocol in protocols] for _ in range(4)]
    prime, affine = (Time(*map(min, zip(*runs, strict=True))) for runs in zip(*turns, strict=True))
    return Row(
        "population", "ololoha, g = 4, least prime", f"{dataset.name}: k = {history.k}",
        unit="ns/report", peer="the same with the affine family",
        peer_figure=1e9 * affine.processor / (n * tau), **prime.each(n * tau),
    )  # fmt: skip


def _one_by_one(protocol: Any, values: Any) -> tuple[str, float]:
    """A client for each user, then the counts: seconds for all, from a few users."""
    n, tau = values.shape
    users = FEW_USERS["bits" if protocol.encoding.kind == "bits" else "symbols"]
    reports: list[Any] = []

    def clients() -> None:
        for u in range(users):
            client = protocol.client(rng=SimulationRng(u))
            reports.extend(client.report(int(v), round=t) for t, v in enumerate(values[u, :20]))

    rounds = min(tau, 20)
    made = timed(clients).processor / (users * rounds) * n * tau
    peer = f"one client a user; from {users} users"
    if protocol.encoding.kind == "keyed symbol":
        import numpy as np

        keys = np.array([report.key for report in reports[:100]])
        ys = np.array([report.y for report in reports[:100]])
        _, milliseconds = direct_counting(protocol, keys, ys)
        return f"{peer}, and one hash a (user, value)", made + milliseconds / 1e3 * n * tau / len(
            keys
        )
    tally = protocol.tally()

    def count() -> None:
        for report in reports:
            tally.add(report)

    counted = timed(count).processor / len(reports) * n * tau
    return peer, made + counted
