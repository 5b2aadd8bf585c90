"""The paper's grid: one cell of each curve at full size, and what that makes for all of them."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Row, Time, best
from loloha_lab.paper.cell import measure
from loloha_lab.paper.grid import Cell, Grid, locate, points
from loloha_lab.paper.method import METHODS, PUBLISHED, TIGHT
from loloha_lab.paper.workload import material, prepare

CORES = 2
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PUBLISHED_MINUTES = 340 * 24 * 60.0


def rows() -> Iterator[Row]:
    grid = Grid(calibrations=(PUBLISHED, TIGHT))
    total = Time(0.0, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        facts = prepare(grid.workloads, grid.seed, out, data_dir=DATA if DATA.is_dir() else None)
        whole = points(grid, facts)
        for name, one in facts.items():
            took, cells = Time(0.0, 0.0), 0
            for method in METHODS.values():
                cell = Cell(locate(one, method, PUBLISHED, 3.0, 0.5), 0)
                each = best(lambda c=cell, f=one: measure(c, material(out, f), 1), repeats=3)
                count = grid.runs * sum(
                    (point.workload, point.method) == (name, method.key) for point in whole
                )
                took = Time(
                    took.clock + count * each.clock, took.processor + count * each.processor
                )
                cells += count
            total = Time(total.clock + took.clock, total.processor + took.processor)
            yield Row(
                "paper", f"cells of {name}", f"{cells} cells", unit="cells/s",
                **took.rate(cells),
            )  # fmt: skip
    yield Row(
        "paper", "the whole grid, both calibrations", f"{len(whole) * grid.runs} cells",
        figure=total.clock / CORES / 60, processor=total.processor / CORES / 60,
        unit=f"min on {CORES} cores", target=20.0, peer="the published timings, added up",
        peer_figure=PUBLISHED_MINUTES,
    )  # fmt: skip
