"""Table 1: what a report costs to send, and a round to count, measured beside the formulas."""

from __future__ import annotations

import time

from loloha.protocols import Protocol
from loloha.report import Report
from loloha.rng import SimulationRng
from loloha_lab.paper.method import METHODS, PUBLISHED
from loloha_lab.paper.result_table import Table

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


def cost_table(k: int = 360, n: int = 10_000) -> Table:
    """Table 1 for a domain of ``k`` values and rounds of ``n`` reports: formulas, and measured."""
    rows = []
    for method in METHODS.values():
        bits, theirs, ours, cap = FORMULAS[method.key]
        protocol = method.build(k, 2.0, 0.5, PUBLISHED)
        encoding = protocol.encoding
        symbol_bytes = _bytes(encoding.report_bits - encoding.key_bits)
        reports, seconds = _report(protocol, min(CLIENTS, n))
        sizes = [len(y) if isinstance(y := report.y, bytes) else symbol_bytes for report in reports]
        rows.append(
            {
                "protocol": method.label,
                "bits a report": bits,
                "bytes, measured": max(sizes),
                "bytes of the key, once": _bytes(encoding.key_bits),
                "server, paper": theirs,
                "server, here": ours,
                "ms a round, measured": _count(protocol, reports, n) * 1e3,
                "µs a report on a device, measured": seconds * 1e6,
                "cap": cap,
                "cap in numbers": protocol.cap,
            }
        )
    return Table(
        "table1",
        "Table 1. Communication, server cost and worst-case budget",
        rows,
        f"Measured at k = {k}, n = {n}, ε∞ = 2, ε₁ = 1, published calibration; the server counts "
        "and decodes reports in memory on one core, the device is the Python client. The last two "
        "rows are not in the paper and have the tight calibration. No data set.",
    )


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
