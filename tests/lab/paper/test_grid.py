"""Cells are named, seeded by their name alone, and none is measured twice."""

from dataclasses import replace

import pytest

from loloha.errors import ParameterError
from loloha_lab.paper.grid import (
    Attack,
    Cell,
    CurvePoint,
    Grid,
    attacks,
    cells,
    points,
    seed_sequence,
)
from loloha_lab.paper.method import PAPER
from loloha_lab.paper.workload import Facts

SYN = Facts("Syn", "synthetic", "made up", 100, 360, 5, 360, "digest")
ADULT = Facts("Adult", "histogram", "counted", 100, 96, 5, 96, "digest")
FACTS = {"Syn": SYN, "Adult": ADULT}
BOTH = ("published", "tight")


def test_the_paper_has_sixteen_thousand_cells() -> None:
    facts = {name: replace(SYN, name=name) for name in Grid().workloads}
    # 5 protocols with alpha, 2 without; 10 eps_inf, 4 data sets, 20 runs.
    assert len(list(cells(Grid(), facts))) == 4 * 10 * (5 * 3 + 2) * 20


def test_a_tight_point_like_the_published_one_is_not_repeated() -> None:
    grid = Grid(workloads=("Adult",), calibrations=BOTH)
    found = points(grid, FACTS)
    assert len(found) == len(set(found))
    tight = {point.method for point in found if point.calibration == "tight"}
    assert tight == {"l-grr", "ololoha", "1bitflippm", "ololoha-prime", "ololoha-joint"}


def test_ours_are_measured_only_beside_the_tight_calibration() -> None:
    found = points(Grid(workloads=("Adult",)), FACTS)
    assert {point.method for point in found} == {method.key for method in PAPER}
    assert {point.calibration for point in found} == {"published"}


def test_names_and_seeds_of_all_tasks_differ() -> None:
    grid = Grid(workloads=("Syn", "Adult"), calibrations=BOTH, runs=2)
    tasks = [*cells(grid, FACTS), *attacks(grid, FACTS)]
    assert len({task.name for task in tasks}) == len(tasks)
    assert len({seed_sequence(task, 1).spawn_key for task in tasks}) == len(tasks)


def test_the_seed_of_a_cell_does_not_depend_on_the_grid_around_it() -> None:
    wanted = Cell(CurvePoint("Adult", "l-osue", "published", 2.0, 0.5), 1)
    for grid in (Grid(runs=2), Grid(runs=9, workloads=("Adult",), eps_inf=(2.0,))):
        facts = {name: replace(ADULT, name=name) for name in grid.workloads}
        assert wanted in set(cells(grid, facts))
    assert list(seed_sequence(wanted, 7).generate_state(2)) == [3735142511, 1037139734]


def test_whatever_decides_a_result_is_in_its_identity() -> None:
    cell = Cell(CurvePoint("Adult", "l-osue", "published", 2.0, 0.5), 1)
    other_point = Cell(replace(cell.point, eps_inf=2.5), 1)
    identities = [
        cell.identity(7, ADULT),
        cell.identity(8, ADULT),
        cell.identity(7, replace(ADULT, digest="other data")),
        replace(cell, run=2).identity(7, ADULT),
        other_point.identity(7, ADULT),
        Attack(cell.point, 10).identity(7, ADULT),
    ]
    assert len(set(identities)) == len(identities)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"runs": 0}, "runs must be"),
        ({"workloads": ("Nowhere",)}, "data sets must be"),
        ({"alphas": (1.0,)}, "alphas must lie"),
        ({"eps_inf": ()}, "eps_inf be given"),
        ({"calibrations": ("loose",)}, "calibration must be"),
        ({"users": 1}, "users must be"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Grid(**wrong)  # type: ignore[arg-type]


def test_less_than_the_paper_calls_itself_reduced() -> None:
    assert not Grid().reduced
    assert Grid(runs=3).reduced
    assert Grid(users=10).reduced
    assert Grid(workloads=("Syn",)).reduced
