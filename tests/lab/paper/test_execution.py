"""A grid can be stopped anywhere, damaged anywhere, run anyhow: the numbers stay the same."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loloha
from loloha.population import archive
from loloha.population.archive import Archive, Row
from loloha.population.evaluation import binned
from loloha.postprocess import project_simplex
from loloha_lab.paper import execution
from loloha_lab.paper.execution import Measurements, measure_grid
from loloha_lab.paper.grid import Cell, CurvePoint, Grid, cells, seed_sequence
from loloha_lab.paper.workload import Facts, material, prepare

GRID = Grid(runs=2, eps_inf=(1.0,), alphas=(0.5,), workloads=("Syn", "Adult"), users=40, rounds=3)
TIMES = ("seconds",)


def facts_of(out: Path, grid: Grid = GRID) -> dict[str, Facts]:
    return prepare(grid.workloads, grid.seed, out, users=grid.users, rounds=grid.rounds)


def measured(out: Path, grid: Grid = GRID, **more: Any) -> Measurements:
    return measure_grid(grid, facts_of(out, grid), out, series=True, **more)


def numbers(rows: list[Row]) -> list[Row]:
    """Rows without what depends on the clock."""
    return [{name: one for name, one in row.items() if name not in TIMES} for row in rows]


def results(found: Measurements) -> list[Row]:
    return numbers([*found.rows, *found.series])


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    out = tmp_path_factory.mktemp("grid")
    told: list[tuple[int, int]] = []
    found = measured(out, progress=lambda done, total: told.append((done, total)))
    assert (found.measured, found.reused, found.damaged) == (
        len(told) - 1,
        0,
        0,
    )
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1] == found.measured
    assert len(found.rows) == 2 * 7 * GRID.runs
    assert len(found.attacks) == len(found.series) == 2 * 7
    return out, results(found)


def test_what_is_there_is_not_measured_again(
    done: tuple[Path, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, before = done
    monkeypatch.setattr(execution, "measure_task", lambda *args: pytest.fail("measured"))
    found = measured(out)
    assert (found.measured, found.damaged) == (0, 0)
    assert results(found) == before


def found_in(out: Path, cell: Cell, facts: dict[str, Facts], seed: int = GRID.seed) -> Row | None:
    identity = cell.identity(seed, facts[cell.point.workload])
    return Archive(out / archive.FILE).find(cell.name, identity)


def test_more_runs_keep_the_first_ones(done: tuple[Path, list[Row]]) -> None:
    out, _ = done
    facts = facts_of(out)
    more = Grid(**{**GRID.__dict__, "runs": 3})
    missing = [cell for cell in cells(more, facts) if found_in(out, cell, facts) is None]
    assert {cell.run for cell in missing} == {2}
    assert len(missing) == 2 * 7


def test_damaged_and_lost_cells_are_measured_anew_with_the_same_numbers(
    done: tuple[Path, list[Row]],
) -> None:
    out, before = done
    file = out / archive.FILE
    first, second, _, *rest = file.read_bytes().splitlines(keepends=True)
    # One number altered, one line cut short, one gone.
    altered = first.replace(b'"eps_inf": 1.0', b'"eps_inf": 1.5')
    assert altered != first
    file.write_bytes(altered + second[: len(second) // 2] + b"\n" + b"".join(rest))
    found = measured(out)
    assert (found.measured, found.damaged) == (3, 1)
    assert results(found) == before


def test_other_data_make_every_result_stale(done: tuple[Path, list[Row]]) -> None:
    out, _ = done
    facts = facts_of(out)
    cell = next(cells(GRID, facts))
    assert found_in(out, cell, facts) is not None
    assert found_in(out, cell, facts, seed=GRID.seed + 1) is None
    fewer = prepare(GRID.workloads, GRID.seed, out, users=30, rounds=3)
    assert found_in(out, cell, fewer) is None
    facts_of(out)


def test_two_processes_give_the_numbers_of_one(
    done: tuple[Path, list[Row]], tmp_path: Path
) -> None:
    _, before = done
    found = measured(tmp_path, jobs=2)
    assert results(found) == before
    assert found.peak_bytes > 10**8


def test_another_seed_gives_other_numbers(done: tuple[Path, list[Row]], tmp_path: Path) -> None:
    _, before = done
    other = Grid(**{**GRID.__dict__, "seed": 1, "workloads": ("Syn",), "runs": 1})
    found = measured(tmp_path, other)
    for column in ("mse", "mse_smoothed"):
        errors = {row[column] for row in before if column in row}
        assert errors
        assert not errors & {row[column] for row in results(found) if column in row}


SCRIPT = """
import sys
from pathlib import Path
from test_execution import measured
measured(Path(sys.argv[1]), progress=lambda done, total: print(done, flush=True))
"""


def test_killed_at_any_moment_it_goes_on_where_it_was(
    done: tuple[Path, list[Row]], tmp_path: Path
) -> None:
    _, before = done
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 5:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    file = tmp_path / archive.FILE
    kept = len(file.read_bytes().splitlines())
    assert 5 <= kept < len(before) + 14
    # As if it had been killed in the middle of a line.
    file.write_bytes(file.read_bytes()[:-9])
    kept -= 1
    found = measured(tmp_path)
    assert found.reused == kept
    assert results(found) == before
    assert {path.name for path in tmp_path.iterdir()} == {archive.FILE, "data"}


def test_series_are_of_the_reports_of_the_first_run(done: tuple[Path, list[Row]]) -> None:
    out, before = done
    facts = facts_of(out)
    for row in (row for row in before if "mse_smoothed" in row):
        point = CurvePoint.of(row)
        alone = next(one for one in before if "mse" in one and CurvePoint.of(one) == point)
        population = material(out, facts[point.workload])
        protocol = point.protocol(population.facts)
        counting = np.random.default_rng(seed_sequence(Cell(point, 0), GRID.seed).spawn(2)[0])
        simulated = loloha.simulate(protocol, population.values, rng=counting)
        truth, single = binned(protocol, population.truth), simulated.estimates
        known = ~np.isnan(single[0])

        def error(shares: Any, truth: Any = truth) -> Any:
            return pytest.approx(np.mean((shares - truth) ** 2))

        assert alone["mse"] == error(single[:, known], truth[:, known])
        assert row["mse_projected"] == error(project_simplex(np.nan_to_num(single)))
        assert row["mse_filtered"] == error(loloha.series(simulated, smooth=False).estimates)
        assert row["mse_smoothed"] == error(loloha.series(simulated).estimates)
