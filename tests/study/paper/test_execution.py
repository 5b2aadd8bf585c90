"""A grid can be stopped anywhere, damaged anywhere, run anyhow: the numbers stay the same."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loloha.study.paper import archive, execution
from loloha.study.paper.archive import Row
from loloha.study.paper.execution import find, result_path, run_grid
from loloha.study.paper.grid import Settings, cells
from loloha.study.paper.workload import Facts, prepare

SETTINGS = Settings(
    runs=2, eps_inf=(1.0,), alphas=(0.5,), workloads=("Syn", "Adult"), users=40, rounds=3
)
TIMES = ("seconds",)


def facts_of(out: Path, settings: Settings = SETTINGS) -> dict[str, Facts]:
    return prepare(
        settings.workloads, settings.seed, out, users=settings.users, rounds=settings.rounds
    )


def numbers(rows: list[Row]) -> list[Row]:
    """Rows without what depends on the clock."""
    return [{name: one for name, one in row.items() if name not in TIMES} for row in rows]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    out = tmp_path_factory.mktemp("grid")
    told: list[tuple[int, int]] = []
    outcome = run_grid(
        SETTINGS, facts_of(out), out, progress=lambda done, total: told.append((done, total))
    )
    assert (outcome.measured, outcome.found, outcome.damaged) == (len(told) - 1, 0, 0)
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1] == outcome.measured
    assert len(outcome.rows) == 2 * 7 * SETTINGS.runs
    assert len(outcome.attacks) == 2 * 7
    return out, numbers(outcome.rows)


def test_what_is_there_is_not_measured_again(
    done: tuple[Path, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, before = done
    monkeypatch.setattr(execution, "measure_and_keep", lambda *args: pytest.fail("measured"))
    outcome = run_grid(SETTINGS, facts_of(out), out)
    assert (outcome.measured, outcome.damaged) == (0, 0)
    assert numbers(outcome.rows) == before


def test_more_runs_keep_the_first_ones(done: tuple[Path, list[Row]]) -> None:
    out, before = done
    facts = facts_of(out)
    more = Settings(**{**SETTINGS.__dict__, "runs": 3})
    missing = [
        cell
        for cell in cells(more, facts)
        if find(cell, more.seed, facts[cell.point.workload], out) is None
    ]
    assert {cell.run for cell in missing} == {2}
    assert len(missing) == len(before) // 2


def test_damaged_and_lost_cells_are_measured_anew_with_the_same_numbers(
    done: tuple[Path, list[Row]],
) -> None:
    out, before = done
    facts = facts_of(out)
    first, second, third, *_ = cells(SETTINGS, facts)
    result_path(out, first).write_bytes(b"PAR1 damaged PAR1")
    whole = result_path(out, second).read_bytes()
    result_path(out, second).write_bytes(whole[: len(whole) // 2])
    result_path(out, third).unlink()
    outcome = run_grid(SETTINGS, facts, out)
    assert (outcome.measured, outcome.damaged) == (3, 2)
    assert numbers(outcome.rows) == before


def test_other_data_make_every_result_stale(done: tuple[Path, list[Row]]) -> None:
    out, _ = done
    facts = facts_of(out)
    cell = next(cells(SETTINGS, facts))
    assert find(cell, SETTINGS.seed, facts[cell.point.workload], out) is not None
    fewer = prepare(SETTINGS.workloads, SETTINGS.seed, out, users=30, rounds=3)
    assert find(cell, SETTINGS.seed, fewer[cell.point.workload], out) is None
    facts_of(out)


def test_two_processes_give_the_numbers_of_one(
    done: tuple[Path, list[Row]], tmp_path: Path
) -> None:
    _, before = done
    outcome = run_grid(SETTINGS, facts_of(tmp_path), tmp_path, jobs=2)
    assert numbers(outcome.rows) == before
    assert outcome.peak_bytes > 10**8


def test_another_seed_gives_other_numbers(done: tuple[Path, list[Row]], tmp_path: Path) -> None:
    _, before = done
    other = Settings(**{**SETTINGS.__dict__, "seed": 1, "workloads": ("Syn",), "runs": 1})
    outcome = run_grid(other, facts_of(tmp_path, other), tmp_path)
    errors = {row["mse_unbiased"] for row in before}
    assert not errors & {row["mse_unbiased"] for row in outcome.rows}


SCRIPT = """
import sys
from pathlib import Path
from test_execution import SETTINGS, facts_of
from loloha.paper.execution import run_grid
out = Path(sys.argv[1])
run_grid(SETTINGS, facts_of(out), out, jobs=1, progress=lambda done, total: print(done, flush=True))
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
    kept = len(list((tmp_path / archive.FOLDER).rglob("*.parquet")))
    assert 5 <= kept < len(before) + 14
    outcome = run_grid(SETTINGS, facts_of(tmp_path), tmp_path)
    assert outcome.found == kept
    assert numbers(outcome.rows) == before
    assert not list(tmp_path.rglob(f"*{archive.DRAFT}"))
