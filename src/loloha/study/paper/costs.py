"""Table 1: what a report costs to send, and a round to count, measured beside the formulas."""

from __future__ import annotations

import time
from dataclasses import dataclass

from loloha.rules.protocols import Protocol
from loloha.rules.report import Report
from loloha.rules.rng import SimulationRng
from loloha.study.paper.contender import CONTENDERS, PUBLISHED, Contender

# Enough clients for a mean time; their reports are repeated until a round is full.
CLIENTS = 100
REPEATS = 5
FORMULAS: dict[str, tuple[str, str | None, str, str]] = {
    "rappor": ("k", "n k", "n k", "k ε∞"),
    "l-osue": ("k", "n k", "n k", "k ε∞"),
    "l-grr": ("⌈log₂ k⌉", "n", "n", "k ε∞"),
    "biloloha": ("1", "n k", "n + k log k", "2 ε∞"),
    "ololoha": ("⌈log₂ g⌉", "n k", "n + g k log k", "g ε∞"),
    "1bitflippm": ("1", "n b", "n", "2 ε∞"),
    "bbitflippm": ("b", "n b", "n b", "b ε∞"),
    "ololoha-prime": ("⌈log₂ g⌉", None, "n + g P²", "g ε∞"),
    "ololoha-joint": ("⌈log₂ g⌉", None, "n + g k log k", "B_g"),
}
"""Bits of a report after the first, server's operations in the paper and here, and the cap."""


@dataclass(frozen=True)
class Cost:
    """One row of Table 1.

    Attributes
    ----------
    contender : Contender
    protocol : Protocol
    report_bytes : int
        Of a report once the key is known; measured on reports that clients made.
    key_bytes : int
        Sent once.
    client_seconds : float
        A report, on one device in Python.
    server_seconds : float
        A round of n reports in memory: counting and decoding.
    """

    contender: Contender
    protocol: Protocol
    report_bytes: int
    key_bytes: int
    client_seconds: float
    server_seconds: float


def measure_costs(
    k: int = 360, n: int = 10_000, eps_inf: float = 2.0, alpha: float = 0.5
) -> list[Cost]:
    """Measure every contender on a domain of ``k`` values and rounds of ``n`` reports."""
    costs = []
    for contender in CONTENDERS.values():
        protocol = contender.build(k, eps_inf, alpha, PUBLISHED)
        encoding = protocol.encoding
        symbol_bytes = _bytes(encoding.report_bits - encoding.key_bits)
        reports, seconds = _report(protocol, min(CLIENTS, n))
        costs.append(
            Cost(
                contender,
                protocol,
                max(len(y) if isinstance(y := one.y, bytes) else symbol_bytes for one in reports),
                _bytes(encoding.key_bits),
                seconds,
                _count(protocol, reports, n),
            )
        )
    return costs


def _report(protocol: Protocol, clients: int) -> tuple[list[Report], float]:
    """One report of each client, and the mean time that its second report took."""
    reports, seconds = [], 0.0
    for number in range(clients):
        client = protocol.client(rng=SimulationRng(number))
        value = number % protocol.k
        client.report(value, round=0)
        started = time.perf_counter()
        reports.append(client.report(value, round=1))
        seconds += time.perf_counter() - started
    return reports, seconds / clients


def _count(protocol: Protocol, reports: list[Report], n: int) -> float:
    """Least time of counting and decoding a round."""
    repeats = -(-n // len(reports))
    keys, ys = protocol.encoding.arrays((reports * repeats)[:n])
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        tally = protocol.tally()
        tally.update(keys, ys)
        tally.estimate()
        times.append(time.perf_counter() - started)
    return min(times)


def _bytes(bits: int) -> int:
    return -(-bits // 8)
