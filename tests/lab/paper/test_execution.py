"""A grid can be stopped anywhere, damaged anywhere, run anyhow: the numbers stay the same."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loloha.population import archive
from loloha.population.archive import Archive, Row
from loloha_lab.paper import execution
from loloha_lab.paper.execution import measure_grid
from loloha_lab.paper.grid import Cell, Grid, cells
from loloha_lab.paper.workload import Facts, prepare

GRID = Grid(runs=2, eps_inf=(1.0,), alphas=(0.5,), workloads=("Syn", "Adult"), users=40, rounds=3)
TIMES = ("seconds",)


def facts_of(out: Path, grid: Grid = GRID) -> dict[str, Facts]:
    return prepare(grid.workloads, grid.seed, out, users=grid.users, rounds=grid.rounds)


def numbers(rows: list[Row]) -> list[Row]:
    """Rows without what depends on the clock."""
    return [{name: one for name, one in row.items() if name not in TIMES} for row in rows]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    out = tmp_path_factory.mktemp("grid")
    told: list[tuple[int, int]] = []
    found = measure_grid(
        GRID, facts_of(out), out, progress=lambda done, total: told.append((done, total))
    )
    assert (found.measured, found.reused, found.damaged) == (
        len(told) - 1,
        0,
        0,
    )
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1] == found.measured
    assert len(found.rows) == 2 * 7 * GRID.runs
    assert len(found.attacks) == 2 * 7
    return out, numbers(found.rows)


def test_what_is_there_is_not_measured_again(
    done: tuple[Path, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, before = done
    monkeypatch.setattr(execution, "measure_task", lambda *args: pytest.fail("measured"))
    found = measure_grid(GRID, facts_of(out), out)
    assert (found.measured, found.damaged) == (0, 0)
    assert numbers(found.rows) == before


def found_in(out: Path, cell: Cell, facts: dict[str, Facts], seed: int = GRID.seed) -> Row | None:
    identity = cell.identity(seed, facts[cell.point.workload])
    return Archive(out / archive.FILE).find(cell.name, identity)


def test_more_runs_keep_the_first_ones(done: tuple[Path, list[Row]]) -> None:
    out, before = done
    facts = facts_of(out)
    more = Grid(**{**GRID.__dict__, "runs": 3})
    missing = [cell for cell in cells(more, facts) if found_in(out, cell, facts) is None]
    assert {cell.run for cell in missing} == {2}
    assert len(missing) == len(before) // 2


def test_damaged_and_lost_cells_are_measured_anew_with_the_same_numbers(
    done: tuple[Path, list[Row]],
) -> None:
    out, before = done
    facts = facts_of(out)
    file = out / archive.FILE
    first, second, _, *rest = file.read_bytes().splitlines(keepends=True)
    # One number altered, one line cut short, one gone.
    altered = first.replace(b'"eps_inf": 1.0', b'"eps_inf": 1.5')
    assert altered != first
    file.write_bytes(altered + second[: len(second) // 2] + b"\n" + b"".join(rest))
    found = measure_grid(GRID, facts, out)
    assert (found.measured, found.damaged) == (3, 1)
    assert numbers(found.rows) == before


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
    found = measure_grid(GRID, facts_of(tmp_path), tmp_path, jobs=2)
    assert numbers(found.rows) == before
    assert found.peak_bytes > 10**8


def test_another_seed_gives_other_numbers(done: tuple[Path, list[Row]], tmp_path: Path) -> None:
    _, before = done
    other = Grid(**{**GRID.__dict__, "seed": 1, "workloads": ("Syn",), "runs": 1})
    found = measure_grid(other, facts_of(tmp_path, other), tmp_path)
    errors = {row["mse"] for row in before}
    assert not errors & {row["mse"] for row in found.rows}


SCRIPT = """
import sys
from pathlib import Path
from test_execution import GRID, facts_of
from loloha_lab.paper.execution import measure_grid
out = Path(sys.argv[1])
measure_grid(GRID, facts_of(out), out, progress=lambda done, total: print(done, flush=True))
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
    found = measure_grid(GRID, facts_of(tmp_path), tmp_path)
    assert found.reused == kept
    assert numbers(found.rows) == before
    assert {path.name for path in tmp_path.iterdir()} == {archive.FILE, "data"}
