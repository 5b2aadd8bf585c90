"""The hot paths of this tree and of another commit, by turns on one machine, and their ratio."""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.table import number

ROOT = Path(__file__).resolve().parents[1]
TURNS = 3
SLOWER = 1.1
"""A ratio from which on a line is marked."""

Times = dict[str, float | None]


def lines(revision: str) -> Iterator[str]:
    """A line a piece of work: milliseconds of the processor there and here, and here over there."""
    with tempfile.TemporaryDirectory() as folder:
        parent = Path(folder).resolve()
        _unpack(revision, parent)
        trees = parent / "src", ROOT / "src"
        turns = [[_measure(tree) for tree in trees] for _ in range(TURNS)]
    before, now = (_least([turn[place] for turn in turns]) for place in range(2))
    yield f"{'least processor time, ms':44}{revision[:12]:>12}{'here':>12}{'ratio':>8}"
    for work, here in now.items():
        there = before[work]
        ratio = here / there if here is not None and there else None
        mark = "  slower" if ratio is not None and ratio > SLOWER else ""
        shown = "" if ratio is None else f"{ratio:.2f}"
        yield f"{work:44}{_shown(there):>12}{_shown(here):>12}{shown:>8}{mark}"


def _unpack(revision: str, folder: Path) -> None:
    command = ["git", "archive", "--format=tar", revision, "src"]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


def _measure(tree: Path) -> Times:
    """In a process of its own, by the benchmarks of this tree: an older one may have none."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(tree), str(ROOT)))}
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.core", str(tree)],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    times: Times = json.loads(run.stdout)
    return times


def _least(turns: list[Times]) -> Times:
    return {
        work: min((turn[work] for turn in turns if turn[work] is not None), default=None)
        for work in turns[0]
    }


def _shown(seconds: float | None) -> str:
    return "none" if seconds is None else number(1e3 * seconds)
