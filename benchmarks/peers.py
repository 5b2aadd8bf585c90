"""The same work by loloha and by other tools, in one run, each in a process of its own.

Run by ``make bench-peers`` in an environment of its own, because the others need older libraries:
``python benchmarks/peers.py --out docs/peers-table.md``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

EPS, EPS_INF, EPS_1 = 1.0, 2.0, 1.0
OURS = "loloha"


class Method(NamedTuple):
    """One tool's way of doing a task: one report, and all reports to frequencies."""

    report: Callable[[int], Any]
    collect: Callable[[list[Any]], Any]
    """From reports to what the server is given, not timed: how they arrive is not its work."""
    estimate: Callable[[Any], Any]
    unbiased: bool = True


@dataclass(frozen=True)
class Cell:
    """A row of the table."""

    task: str
    tool: str
    method: str
    make: Callable[[int, int], Method]
    k: int = 96
    n: int = 10_000
    runs: int = 5


# -- ours


def ours(name: str, **parameters: Any) -> Callable[[int, int], Method]:
    def make(k: int, n: int) -> Method:
        import loloha

        protocol = loloha.protocol(name, k=k, **parameters)

        def collect(reports: list[Any]) -> tuple[Any, Any]:
            keys = None if reports[0].key is None else np.array([one.key for one in reports])
            if isinstance(reports[0].y, bytes):
                packed = b"".join(one.y for one in reports)
                return keys, np.frombuffer(packed, np.uint8).reshape(len(reports), -1)
            return keys, np.array([one.y for one in reports])

        def estimate(arrays: tuple[Any, Any]) -> Any:
            tally = protocol.tally()
            tally.update(*arrays)
            return tally.estimate().frequencies

        return Method(lambda v: protocol.client().report(v, round=0), collect, estimate)

    return make


# -- pure-ldp


def pure(client: str, server: str, **parameters: Any) -> Callable[[int, int], Method]:
    def make(k: int, n: int) -> Method:
        from pure_ldp import frequency_oracles as oracles

        sender = getattr(oracles, client)(epsilon=EPS, d=k, **parameters)
        # Its hash table is made once, and so not timed.
        template = getattr(oracles, server)(epsilon=EPS, d=k, **parameters)
        tables = {"hash_matrix": template.hash_matrix} if "k" in parameters else {}

        def estimate(reports: list[Any]) -> Any:
            counter = getattr(oracles, server)(epsilon=EPS, d=k, **parameters, **tables)
            for report in reports:
                counter.aggregate(report)
            return counter.estimate_all(range(1, k + 1), suppress_warnings=True) / n

        # Its values start at 1.
        return Method(lambda v: sender.privatise(v + 1), list, estimate)

    return make


# -- multi-freq-ldpy


def multi(module: str, name: str, *, k_at_server: bool = True, **more: Any) -> Any:
    def make(k: int, n: int) -> Method:
        from importlib import import_module

        found = import_module(f"multi_freq_ldpy.{module}")
        client = getattr(found, f"{name}_Client")
        server = getattr(found, f"{name}_Aggregator_MI")
        eps = (EPS,) if module.startswith("pure") else (EPS_INF, EPS_1)
        sizes = (k,) if k_at_server else ()
        return Method(
            lambda v: client(int(v), k, *eps, **more),
            list,
            lambda reports: server(reports, *sizes, *eps, **more),
            unbiased=False,
        )

    return make


# -- counting with xxhash, as tightly as Python can


def direct(k: int, n: int) -> Method:
    from xxhash import xxh32_intdigest

    import loloha

    protocol = loloha.BiLOLOHA(k=k, eps_inf=EPS_INF, eps_1=EPS_1, hash="xxhash")
    texts = [str(v).encode() for v in range(k)]

    def estimate(reports: list[tuple[int, int]]) -> Any:
        counts = [0] * k
        for key, y in reports:
            for v, text in enumerate(texts):
                counts[v] += xxh32_intdigest(text, key) & 1 == y
        return (np.array(counts) / len(reports) - protocol.q_star) / protocol.contrast

    def collect(reports: list[Any]) -> list[tuple[int, int]]:
        return [(one.key, one.y) for one in reports]

    return Method(lambda v: protocol.client().report(v, round=0), collect, estimate)


LH1, LH = "one round, hashing to g = 2", "one round, hashing to the best g"
LOLOHA2, LOLOHA = "two rounds, hashing to g = 2", "two rounds, hashing to the best g"
WIDE = "two rounds, hashing to g = 2, k = 1000"
OUE, LOSUE = "one round, a bit a value", "two rounds, a bit a value"
GRR, LGRR = "one round, the value itself", "two rounds, the value itself"
TWO = {"eps_inf": EPS_INF, "eps_1": EPS_1}
LHM, LLH = "pure_frequency_oracles.LH", "long_freq_est.L_LH"

CELLS = [
    Cell(LH1, OURS, "BLH", ours("blh", eps=EPS)),
    Cell(LH1, "pure-ldp", "LH, g = 2", pure("LHClient", "LHServer", g=2)),
    Cell(LH1, "multi-freq-ldpy", "LH, not optimal", multi(LHM, "LH", optimal=False)),
    Cell(LH, OURS, "OLH", ours("olh", eps=EPS)),
    Cell(LH, "pure-ldp", "OLH", pure("LHClient", "LHServer", use_olh=True)),
    Cell(LH, "pure-ldp", "FastLH, 1000 hashes",
         pure("FastLHClient", "FastLHServer", use_olh=True, k=1000)),
    Cell(LH, "multi-freq-ldpy", "LH, optimal", multi(LHM, "LH")),
    Cell(LOLOHA2, OURS, "BiLOLOHA", ours("biloloha", **TWO)),
    Cell(LOLOHA2, "multi-freq-ldpy", "L-LH, not optimal", multi(LLH, "L_LH", optimal=False)),
    Cell(LOLOHA2, "xxhash", "direct counting", direct),
    Cell(LOLOHA, OURS, "OLOLOHA, tight", ours("ololoha", **TWO)),
    Cell(LOLOHA, OURS, "OLOLOHA, published", ours("ololoha", calibration="published", **TWO)),
    Cell(LOLOHA, "multi-freq-ldpy", "L-LH, optimal", multi(LLH, "L_LH")),
    Cell(WIDE, OURS, "BiLOLOHA", ours("biloloha", **TWO), k=1000),
    Cell(WIDE, "multi-freq-ldpy", "L-LH, not optimal",
         multi(LLH, "L_LH", optimal=False), k=1000, runs=1),
    Cell(WIDE, "xxhash", "direct counting", direct, k=1000, runs=1),
    Cell(OUE, OURS, "OUE", ours("oue", eps=EPS)),
    Cell(OUE, "pure-ldp", "OUE", pure("UEClient", "UEServer", use_oue=True)),
    Cell(OUE, "multi-freq-ldpy", "UE, optimal",
         multi("pure_frequency_oracles.UE", "UE", k_at_server=False)),
    Cell(LOSUE, OURS, "L-OSUE", ours("l-osue", **TWO)),
    Cell(LOSUE, "multi-freq-ldpy", "L-OSUE",
         multi("long_freq_est.L_OSUE", "L_OSUE", k_at_server=False)),
    Cell(GRR, OURS, "GRR", ours("grr", eps=EPS)),
    Cell(GRR, "pure-ldp", "DE", pure("DEClient", "DEServer")),
    Cell(GRR, "multi-freq-ldpy", "GRR", multi("pure_frequency_oracles.GRR", "GRR")),
    Cell(LGRR, OURS, "L-GRR, tight", ours("l-grr", **TWO)),
    Cell(LGRR, OURS, "L-GRR, published", ours("l-grr", calibration="published", **TWO)),
    Cell(LGRR, "multi-freq-ldpy", "L-GRR", multi("long_freq_est.L_GRR", "L_GRR")),
]  # fmt: skip


def measure(cell: Cell) -> dict[str, float | None]:
    """Microseconds a report, seconds a round, mean squared error, MiB of the process."""
    values = np.minimum(np.random.default_rng(7).zipf(1.5, size=cell.n) - 1, cell.k - 1)
    truth = np.bincount(values, minlength=cell.k) / cell.n
    method = cell.make(cell.k, cell.n)
    # Whatever compiles itself does so now.
    warm = [method.report(int(v)) for v in values[:1000]]
    cell.make(cell.k, len(warm)).estimate(method.collect(warm))
    before = _high_water(anew=True)
    client, server, raw, clipped = [], [], [], []
    for _ in range(cell.runs):
        start = time.perf_counter()
        reports = [method.report(int(v)) for v in values]
        client.append(time.perf_counter() - start)
        arrived = method.collect(reports)
        start = time.perf_counter()
        found = np.asarray(method.estimate(arrived))
        server.append(time.perf_counter() - start)
        raw.append(float(((found - truth) ** 2).mean()))
        positive = found.clip(0)
        clipped.append(float(((positive / positive.sum() - truth) ** 2).mean()))
    return {
        "client": min(client) / cell.n * 1e6,
        "server": min(server),
        "mse": sum(raw) / cell.runs if method.unbiased else None,
        "clipped": sum(clipped) / cell.runs,
        "memory": (_high_water() - before) / 2**20,
    }


def _high_water(*, anew: bool = False) -> int:
    """Most resident memory so far, or, anew, that of now, from which it then counts."""
    if anew:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def table(rows: list[tuple[Cell, dict[str, Any]]]) -> str:
    """The measurements as Markdown: for each task ours first, then the ratios of the others."""
    head = "tool | method | client, µs a report | server, s a round | MSE, unbiased | MSE, clipped"
    lines = [f"| {head} | memory, MiB |", "|---|---|---|---|---|---|---|"]
    task, base = "", dict[str, Any]()
    for cell, found in rows:
        if cell.task != task:
            task, base = cell.task, found
            lines.append(f"| **{task}** | | | | | | |")
        shown = [
            _beside(found[name], base[name], name, cell.tool != OURS)
            for name in ("client", "server", "mse", "clipped", "memory")
        ]
        lines.append(f"| {cell.tool} | {cell.method} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _beside(value: float | None, base: float | None, name: str, other: bool) -> str:
    if value is None:
        return "–"
    if name == "memory":
        return f"{value:.0f}"
    text = f"{value:.2e}" if name in ("mse", "clipped") else f"{value:.3g}"
    ratio = value / base if base else math.nan
    worth = other and math.isfinite(ratio)
    return f"{text} ({ratio:.3g}×)" if worth else text


def machine() -> str:
    """Where and with what this was measured."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or "unknown processor"
    tools = ("numpy", "numba", "pure-ldp", "multi-freq-ldpy", "xxhash")
    versions = ", ".join(f"{tool} {version(tool)}" for tool in tools)
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} cores of {model}, "
        f"Python {platform.python_version()}, {versions}."
    )


NOTES = f"""
{{measured}} Everyone gets the same n = 10 000 users, k = 96 values (Zipf, exponent 1.5) unless a
heading says otherwise, eps = {EPS:g} in one round, eps_inf = {EPS_INF:g} and eps_1 = {EPS_1:g} in
two. Times are the best of the runs, after a warm-up that compiles what compiles itself; the client
is one call a user for everyone (ours includes drawing the key and the operating system's
randomness), the server starts from the reports that its own API takes. In brackets: the ratio to
the first row of the task. *Unbiased* is the error of the estimates as they come, – where a tool
gives them clipped only; *clipped* after setting negative ones to 0 and scaling to sum 1. Memory is
what the process grew by, at its peak.

multi-freq-ldpy draws hash and both rounds anew in every call: nothing is memoised, so its users
have no bound over time. pure-ldp has one-round oracles only; it fails with xxhash 4, and imports
scikit-learn and statsmodels without declaring them, so it runs here with xxhash 3 and both.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--cell", type=int)
    chosen = parser.parse_args()
    if chosen.cell is not None:
        print(json.dumps(measure(CELLS[chosen.cell])))
        return
    rows = []
    for number, cell in enumerate(CELLS):
        print(f"{number + 1}/{len(CELLS)} {cell.task}: {cell.tool} {cell.method}", file=sys.stderr)
        line = [sys.executable, __file__, "--cell", str(number)]
        # The others warn a lot; a failure is shown.
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        rows.append((cell, json.loads(done.stdout.splitlines()[-1])))
    page = table(rows) + "\n" + NOTES.format(measured=machine())
    if chosen.out is None:
        print(page)
    else:
        chosen.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
