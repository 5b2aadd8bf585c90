"""How fast engines tally report logs, and how time grows with n, k, g and tau.

Run ``python -m benchmarks.growth --folder SCRATCH``: it makes logs there, tallies each with every
engine, stops unless all tallies are equal, removes the log, and writes ``docs/engines.json``, the
tables that docs include, and the pictures.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import loloha
from loloha.engines import Engine, make_engine
from loloha.hashing import is_prime
from loloha.reportlog import ReportLog, generate

DOCS = Path(__file__).resolve().parents[1] / "docs"
EPS = {"eps_inf": 2.0, "eps_1": 1.0}
HELD = 10_000
REPEATS, PATIENCE = 3, 20.0


@dataclass(frozen=True)
class Size:
    """One log: n users, k values, g symbols, tau rounds."""

    curve: str
    n: int
    k: int = 1000
    g: int = 2
    tau: int = 1

    @property
    def protocol(self) -> loloha.Protocol:
        """The rules of the log."""
        return loloha.OLOLOHA(k=self.k, g=self.g, **EPS)

    @property
    def reports(self) -> int:
        """Rows of the log."""
        return self.n * self.tau

    @property
    def x(self) -> int:
        """What the curve is drawn over."""
        return int(getattr(self, self.curve))


def sizes(largest: int) -> list[Size]:
    """Every log that is measured; ``largest`` bounds the reports of one."""
    ns = [Size("n", n) for n in (10**5, 10**6, 10**7, 10**8)]
    ks = [
        Size("k", 10**6, k=k) for k in (100, 1000, 10**4, 10**5, 10**6, 1 << 20, 1 << 22, 1 << 24)
    ]
    gs = [Size("g", 10**6, g=g) for g in range(2, 14) if is_prime(g)]
    taus = [Size("tau", 10**5, tau=tau) for tau in (1, 4, 16, 64, 256)]
    return [size for size in (*ns, *ks, *gs, *taus) if size.reports <= largest]


WAYS = (("duckdb", False), ("local", False), ("duckdb", True), ("local", True))
SPARK = (("spark", False), ("spark", True))


def ways(size: Size, spark: bool) -> Iterator[tuple[str, bool]]:
    """Engine and guard; Spark over n alone."""
    yield from WAYS
    if spark and size.curve == "n":
        yield from SPARK


def make_log(folder: Path, size: Size) -> tuple[ReportLog, Any]:
    """A log of Zipf-distributed values, and how many users held each, int64[tau, k]."""
    values = np.random.default_rng(5).zipf(1.3, size=(HELD, size.tau)) % size.k
    log = ReportLog(folder, size.protocol)
    return log, generate(log, values, users=size.n, rng=1)


def measure(log: ReportLog, engine: str, guard: bool) -> dict[str, Any]:
    """Seconds of a tally, the best of some, the most memory that it took, and what it found."""
    chosen = make_engine(engine)
    contents = log.scan(verify=False)
    base = _peak(chosen)
    seconds, cpu = [], []
    while len(seconds) < REPEATS and sum(seconds) < PATIENCE:
        start, spent = time.perf_counter(), _cpu(chosen)
        found = list(chosen.tally(log, contents, guard=guard))
        seconds.append(time.perf_counter() - start)
        cpu.append(_cpu(chosen) - spent)
    memory = (_peak(chosen) - base) / 2**20
    assert sum(one.tally.n for one in found) == contents.rows
    digest = sha256(b"".join(one.tally.counts.tobytes() for one in found)).hexdigest()
    took = {"seconds": min(seconds), "cpu": min(cpu), "memory": memory, "tally": digest}
    if engine == "spark":
        took["count"] = _spark_count(log)
    return took


def reach_of_errors(log: ReportLog, truth: Any) -> float:
    """Largest error of any estimate in units of what `Estimate.simultaneous` allows at 0.95."""
    tallies = (one.tally.estimate() for one in make_engine("local").tally(log, log.scan()))
    return max(
        float(
            np.max(np.abs(estimate.frequencies - held / held.sum()) / estimate.simultaneous(0.95))
        )
        for estimate, held in zip(tallies, truth, strict=True)
    )


def _spark_count(log: ReportLog) -> float:
    """Seconds in which Spark counts the rows of the log that hold a key and a symbol."""
    from loloha.engines.spark import started

    frame = started().read.parquet(f"file://{log.folder.absolute()}")
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        # count() alone would read the footers only.
        frame.where("key >= 0 AND y >= 0").count()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _peak(engine: Engine) -> int:
    """Most memory so far: this process's, and that of the Java of Spark."""
    return _high_water() + (_high_water(_java()) if engine.name == "spark" else 0)


def _high_water(process: Path = Path("/proc/self")) -> int:
    """Most resident memory of a process; getrusage would start from that of its parent."""
    lines = (process / "status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _cpu(engine: Engine) -> float:
    """Seconds of all cores so far, of this process and the Java of Spark."""
    spent = time.process_time()
    if engine.name == "spark":
        ticks = (_java() / "stat").read_text().rpartition(")")[2].split()[11:13]
        spent += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return spent


def _java() -> Path:
    from loloha.engines.spark import started

    return Path("/proc") / str(started().sparkContext._gateway.proc.pid)


def decode(size: Size) -> dict[str, float]:
    """Seconds from counts to the support of every value."""
    protocol = size.protocol
    tally = protocol.tally()
    rng = np.random.default_rng(3)
    family = protocol.encoding.family  # type: ignore[attr-defined]
    tally.update(family.draw_many(size.n, rng), rng.integers(0, size.g, size=size.n))
    seconds, cpu = [], []
    for _ in range(REPEATS):
        start, spent = time.perf_counter(), time.process_time()
        tally.support()
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - spent)
    return {"seconds": min(seconds), "cpu": min(cpu), "memory": _high_water() / 2**20}


def alone(*arguments: str) -> dict[str, Any]:
    """A measurement in a process of its own, so that its memory is its own."""
    line = [sys.executable, "-m", "benchmarks.growth", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(folder: Path, largest: int, spark: bool, store: Path) -> None:
    """Measure every log that ``store`` does not have yet, and keep what was found after each."""
    rows = json.loads(store.read_text())["rows"] if store.exists() else []
    done = {(row["curve"], row[row["curve"]]) for row in rows}
    for size in sizes(largest):
        if (size.curve, size.x) not in done:
            rows += measure_all(folder / f"{size.curve}-{size.x}", size, spark)
            store.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")


def measure_all(place: Path, size: Size, spark: bool) -> list[dict[str, Any]]:
    """Make one log, measure everything on it, and remove it."""
    text = json.dumps(asdict(size))
    print(text, file=sys.stderr, flush=True)
    start, spent = time.perf_counter(), time.process_time()
    log, truth = make_log(place, size)
    made = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - spent}
    rows = [_row(size, "generate", False, made)]
    rows[-1]["bytes"] = sum(path.stat().st_size for path in log.folder.rglob("*.parquet"))
    start, spent = time.perf_counter(), time.process_time()
    log.scan()
    took = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - spent}
    rows.append(_row(size, "digests", False, took))
    for engine, guard in ways(size, spark):
        given = ["--size", text, "--log", str(place), "--engine", engine]
        rows.append(_row(size, engine, guard, alone(*given, *(["--guard"] if guard else []))))
    if len({row["tally"] for row in rows if "tally" in row}) != 1:
        sys.exit(f"engines must give equal tallies, they differ: {text}; look into {place}")
    rows[0]["reach"] = reach_of_errors(log, truth)
    print(f"  all equal, errors reach {rows[0]['reach']:.2f} of their bound", file=sys.stderr)
    shutil.rmtree(place)
    if size.curve in ("k", "g"):
        rows.append(_row(size, "decode", False, alone("--size", text, "--engine", "decode")))
    return rows


def _row(size: Size, engine: str, guard: bool, found: dict[str, Any]) -> dict[str, Any]:
    row = {**asdict(size), "engine": engine, "guard": guard, **found}
    print(f"  {engine} {'guarded' if guard else ''} {found['seconds']:.3f} s "
          f"{size.reports / found['seconds'] / 1e6:.1f} M/s load {os.getloadavg()[0]:.1f}",
          file=sys.stderr, flush=True)  # fmt: skip
    return row


# -- what the documentation shows


def curve(rows: list[dict[str, Any]], over: str, engine: str, guard: bool) -> Any:
    """x and CPU seconds of one engine over one size."""
    found = sorted(
        (row[over], row["cpu"])
        for row in rows
        if (row["curve"], row["engine"], row["guard"]) == (over, engine, guard)
    )
    return np.array(found).reshape(-1, 2).T


def exponent(x: Any, seconds: Any) -> float:
    """Slope of log(seconds) over log(x) in the upper half, where fixed costs are small."""
    upper = slice(len(x) // 2 if len(x) > 3 else 0, None)
    if len(x[upper]) < 2:
        return math.nan
    return float(np.polyfit(np.log(x[upper]), np.log(seconds[upper]), 1)[0])


LINES = (
    ("duckdb", False, "DuckDB"),
    ("local", False, "local"),
    ("spark", False, "Spark"),
    ("duckdb", True, "DuckDB, guard"),
    ("local", True, "local, guard"),
    ("spark", True, "Spark, guard"),
    ("decode", False, "decode"),
)
GROWING = ("n", "tau")
"""Sizes that time is proportional to; over the others it bends where a table leaves a cache."""
AXES = {
    "n": "reports n of one round (k = 1000, g = 2)",
    "k": "values k (n = 10⁶, g = 2)",
    "g": "symbols g (n = 10⁶, k = 1000)",
    "tau": "rounds tau (n = 10⁵ each, k = 1000, g = 2)",
}


def draw(rows: list[dict[str, Any]], target: Path) -> None:
    """Four panels of growth, on two logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(12, 7), layout="constrained")
    for panel, (over, label) in zip(panels.flat, AXES.items(), strict=True):
        for number, (engine, guard, name) in enumerate(LINES):
            x, seconds = curve(rows, over, engine, guard)
            if len(x):
                text = f"{name}: {exponent(x, seconds):.2f}" if over in GROWING else name
                style = "--" if guard else "-"
                panel.loglog(x, seconds, f"o{style}", color=f"C{number}", label=text, ms=4)
        panel.set(xlabel=label, ylabel="CPU seconds")
        panel.grid(alpha=0.3)
        title = "fitted exponent" if over in GROWING else None
        panel.legend(
            fontsize=8, title=title, title_fontsize=8, loc="upper left", bbox_to_anchor=(1, 1)
        )
        if over == "g":
            panel.set_xticks(x, [f"{int(g)}" for g in x])
            panel.minorticks_off()
    figure.savefig(target, dpi=110)


def speed_table(rows: list[dict[str, Any]]) -> str:
    """Million reports a CPU second, and in brackets a second of the clock, over n."""
    ns = sorted({row["n"] for row in rows if row["curve"] == "n"})
    lines = [
        "| engine | " + " | ".join(f"n = 10^{round(math.log10(n))}" for n in ns)
        + " | memory at most | exponent |",
        "|---|" + "---|" * (len(ns) + 2),
    ]  # fmt: skip
    names = (*LINES[:-1], ("digests", False, "digests"), ("generate", False, "generate"))
    for engine, guard, name in names:
        here = [r for r in rows if (r["curve"], r["engine"], r["guard"]) == ("n", engine, guard)]
        if here:
            speeds = {
                r["n"]: f"{r['n'] / r['cpu'] / 1e6:.3g} ({r['n'] / r['seconds'] / 1e6:.3g})"
                for r in here
            }
            memory = max(r.get("memory", 0) for r in here)
            shown = [speeds.get(n, "–") for n in ns]
            shown.append(f"{memory:.0f} MiB" if memory else "–")
            shown.append(f"{exponent(*curve(rows, 'n', engine, guard)):.2f}")
            lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def size_table(rows: list[dict[str, Any]], over: str) -> str:
    """CPU seconds of tally and decode over k or g."""
    lines = [
        f"| {over} | DuckDB, s | local, s | DuckDB, MiB | local, MiB | decode, s | decode, MiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for x in sorted({row[over] for row in rows if row["curve"] == over}):
        here = {
            row["engine"]: row
            for row in rows
            if row["curve"] == over and row[over] == x and not row["guard"]
        }
        cells = [f"{here[e]['cpu']:.3g}" for e in ("duckdb", "local")]
        cells += [f"{here[e]['memory']:.0f}" for e in ("duckdb", "local")]
        cells += [f"{here['decode']['cpu']:.3g}", f"{here['decode']['memory']:.0f}"]
        lines.append(f"| {x} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


A_DAY = 10**9
PRICE = 0.05
"""Of a core for an hour, in dollars: what clouds ask for general machines, roughly."""


def day_table(rows: list[dict[str, Any]]) -> str:
    """What 10^9 reports a day would take, from the largest log that was measured."""
    lines = [
        "| work | from n | core seconds | dollars |",
        "|---|---|---|---|",
    ]
    for engine, guard, name in (*LINES[:-1], ("digests", False, "digests")):
        x, cpu = curve(rows, "n", engine, guard)
        if len(x):
            spent = float(cpu[-1]) * A_DAY / x[-1]
            cells = [
                f"10^{round(math.log10(x[-1]))}",
                f"{spent:.2g}",
                f"{spent / 3600 * PRICE:.1g}",
            ]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def machine() -> str:
    """Where and with what this was measured."""
    text = Path("/proc/cpuinfo").read_text()
    model = next(s.split(":")[1].strip() for s in text.splitlines() if s.startswith("model name"))
    tools = ("numpy", "numba", "pyarrow", "duckdb", "pyspark")
    versions = ", ".join(f"{tool} {version(tool)}" for tool in tools)
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} cores of {model}, "
        f"Python {platform.python_version()}, {versions}; files in the page cache, "
        f"load average {os.getloadavg()[0]:.1f}."
    )


def report(found: dict[str, Any]) -> None:
    """Write tables and pictures."""
    rows = found["rows"]
    draw(rows, DOCS / "images" / "growth.png")
    parts = {
        "n": speed_table(rows),
        "k": size_table(rows, "k"),
        "g": size_table(rows, "g"),
        "day": day_table(rows),
    }
    for name, text in parts.items():
        note = f"\n\n{found['machine']}\n" if name == "n" else "\n"
        (DOCS / f"engines-{name}-table.md").write_text(text + note, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="scratch space: 22 bytes a report")
    parser.add_argument("--largest", type=float, default=1e7, help="most reports of one log")
    parser.add_argument("--no-spark", action="store_true", help="it takes as long as the rest")
    parser.add_argument("--draw", action="store_true", help="only tables and pictures")
    for name in ("--size", "--log", "--engine"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--guard", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    store = DOCS / "engines.json"
    if chosen.size:
        size = Size(**json.loads(chosen.size))
        if chosen.engine == "decode":
            print(json.dumps(decode(size)))
        else:
            log = ReportLog(Path(chosen.log), size.protocol)
            print(json.dumps(measure(log, chosen.engine, chosen.guard)))
        return
    if not chosen.draw:
        run(chosen.folder, int(chosen.largest), not chosen.no_spark, store)
    report(json.loads(store.read_text()))


if __name__ == "__main__":
    main()
