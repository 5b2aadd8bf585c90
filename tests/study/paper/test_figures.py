"""The figures plot the right numbers, in colours that stay."""

import csv
from pathlib import Path

import numpy as np
import pytest

from loloha.study.paper import figures
from loloha.study.paper.contender import CONTENDERS, PUBLISHED, TIGHT
from loloha.study.paper.reproduction import Reproduction

NAMES = {
    "RAPPOR": "rappor",
    "L-OSUE": "l-osue",
    "BiLOLOHA": "biloloha",
    "OLOLOHA": "ololoha",
}


def rows_of(reference: Path) -> list[dict[str, str]]:
    with (reference / "calibration.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_figure_1_is_the_reference(reference: Path) -> None:
    seen = 0
    for row in rows_of(reference):
        if row["protocol"] == "OLOLOHA" and row["calibration"] == PUBLISHED:
            g = figures.optimal_g(float(row["eps_inf"]), float(row["alpha"]), PUBLISHED)
            assert g == int(row["g"]), row
            seen += 1
    assert seen == 60


def test_figure_2_is_the_reference(reference: Path) -> None:
    seen = 0
    for row in rows_of(reference):
        key = NAMES.get(row["protocol"])
        # The reference has tight OLOLOHA at round(b + 1), which is not always the best g.
        if key is None or (key == "ololoha" and row["calibration"] == TIGHT):
            continue
        drawn = figures.theoretical_variance(
            CONTENDERS[key], float(row["eps_inf"]), float(row["alpha"]), row["calibration"]
        )
        assert drawn == pytest.approx(float(row["approx_variance_n10000"]), rel=1e-12), row
        seen += 1
    assert seen >= 180


def test_tight_ololoha_reaches_l_osue() -> None:
    for eps_inf in figures.EPS_INF:
        best, bound = (
            figures.theoretical_variance(CONTENDERS[key], eps_inf, 0.6, TIGHT)
            for key in ("ololoha", "l-osue")
        )
        assert bound * (1 - 1e-12) <= best < 1.03 * bound


def test_figure_3_shows_means_of_runs_and_theory(small: tuple[Reproduction, Path]) -> None:
    results = small[0].results
    assert results is not None
    figure = figures.draw_errors(results, "mse_unbiased")
    assert len(figure.axes) == 3
    contender = CONTENDERS["l-osue"]
    point = next(iter(results.along("Adult", contender, PUBLISHED, 0.5)))
    colour = contender.style["color"]
    lines = [line for line in figure.axes[1].get_lines() if line.get_color() == colour]
    measured, theory = (np.asarray(line.get_ydata(), dtype=float) for line in lines)
    assert measured[0] == np.mean(results.measured(point, "mse_unbiased"))
    assert theory[0] == results.expected(point)
    assert [line.get_gid() for line in lines] == [None, figures.THEORY]


def test_the_uniform_line_of_buckets_is_drawn_where_they_are_fewer(
    small: tuple[Reproduction, Path],
) -> None:
    results = small[0].results
    assert results is not None
    panels = figures.draw_errors(results, "mse_clipped").axes
    flat = [
        sum(len(set(np.asarray(line.get_ydata()).tolist())) == 1 for line in panel.get_lines())
        for panel in panels
    ]
    assert flat == [1, 1, 2]


def test_every_figure_says_which_data_were_used(small: tuple[Reproduction, Path]) -> None:
    results = small[0].results
    assert results is not None
    for figure in (
        figures.draw_errors(results, "mse_unbiased"),
        figures.draw_errors(results, "mse_clipped"),
        figures.draw_budgets(results),
        figures.draw_agreement(results),
    ):
        said = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
        assert "STAND-IN" in said
        assert "shipped real histogram" in said
        assert "REDUCED SIZE" in said


def test_theory_figures_say_that_they_use_no_data() -> None:
    for figure in (
        figures.draw_optimal_g(),
        figures.draw_variances(),
        figures.draw_variances(relative=True),
        figures.draw_patterns(),
    ):
        assert any("no data" in text.get_text() for text in figure.texts)
