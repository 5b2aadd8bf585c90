"""Pictures show the numbers they were given, legibly, and the same ones every time."""

from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loloha import OLOLOHA, LolohaError, figure
from loloha.figure import Series, draw_run, save, style
from loloha.protocols import REGISTRY

PROTOCOL = OLOLOHA(k=5, eps_inf=2, eps_1=1)


def series(tau: int = 4, bins: int = 5, labels: Any = None, rounds: Any = None) -> Series:
    random = np.random.default_rng(1)
    truth = random.dirichlet(np.ones(bins), size=tau)
    estimates = truth + 0.01 * random.standard_normal(truth.shape)
    return Series(
        labels or list(range(bins)),
        rounds or list(range(tau)),
        estimates,
        estimates - 0.02,
        estimates + 0.03,
        truth,
    )


def panels(drawn: Any) -> list[Any]:
    """Visible axes of the rounds, without the histogram."""
    return [axes for axes in drawn.axes[:-1] if axes.get_visible()]


def line(axes: Any, name: str) -> Any:
    (found,) = [one for one in axes.lines if one.get_label() == name]
    return found.get_ydata()


def band(axes: Any) -> tuple[Any, Any]:
    """Lower and upper edge of the one filled band."""
    (one,) = axes.collections
    corners = one.get_paths()[0].vertices
    places = np.unique(corners[:, 0])
    edges = [corners[corners[:, 0] == place, 1] for place in places]
    return np.array([edge.min() for edge in edges]), np.array([edge.max() for edge in edges])


def test_panels_show_the_top_values_by_truth() -> None:
    given = series()
    assert given.truth is not None
    drawn = draw_run(given, PROTOCOL, top=3)
    order = np.argsort(-given.truth.mean(axis=0))[:3]
    assert [axes.get_title(loc="left") for axes in panels(drawn)] == [str(v) for v in order]
    for axes, column in zip(panels(drawn), order, strict=True):
        np.testing.assert_array_equal(
            line(axes, "estimate (ololoha)"), given.frequencies[:, column]
        )
        np.testing.assert_array_equal(line(axes, "truth"), given.truth[:, column])
        lower, upper = band(axes)
        np.testing.assert_allclose(lower, given.lower[:, column])
        np.testing.assert_allclose(upper, given.upper[:, column])


def test_mean_and_quantiles_take_the_place_of_shares() -> None:
    given = series(labels=["mean", "10 % quantile", "50 % quantile", "90 % quantile", "x"])
    smooth = replace(given, frequencies=given.frequencies / 2)
    drawn = draw_run(series(), PROTOCOL, top=2, numbers=replace(given, together=smooth))
    assert [axes.get_title(loc="left") for axes in panels(drawn)] == given.labels
    for column, axes in enumerate(panels(drawn)):
        np.testing.assert_array_equal(
            line(axes, "single round (ololoha)"), given.frequencies[:, column]
        )
        np.testing.assert_array_equal(line(axes, "rounds together"), smooth.frequencies[:, column])
        assert not any("%" in tick.get_text() for tick in axes.get_yticklabels())
    assert drawn.axes[-1].get_title(loc="left") == "Users who reach a value in round 3"


def test_rounds_together_are_the_line_and_single_rounds_its_points() -> None:
    given, smooth = series(), series(bins=5, tau=4)
    smooth = replace(smooth, frequencies=given.frequencies / 2, lower=given.lower / 2)
    drawn = draw_run(replace(given, together=smooth), PROTOCOL, top=2)
    order = np.argsort(-given.truth.mean(axis=0))[:2]
    for axes, column in zip(panels(drawn), order, strict=True):
        single, together = line(axes, "single round (ololoha)"), line(axes, "rounds together")
        np.testing.assert_array_equal(single, given.frequencies[:, column])
        np.testing.assert_array_equal(together, smooth.frequencies[:, column])
        np.testing.assert_allclose(band(axes)[0], smooth.lower[:, column])


def test_without_truth_the_top_values_are_those_estimated() -> None:
    given = series()
    blind = Series(given.labels, given.rounds, given.frequencies, given.lower, given.upper)
    drawn = draw_run(blind, PROTOCOL, top=2)
    order = np.argsort(-given.frequencies.mean(axis=0))[:2]
    assert [axes.get_title(loc="left") for axes in panels(drawn)] == [str(v) for v in order]
    assert all(one.get_label() != "truth" for one in panels(drawn)[0].lines)


@pytest.mark.parametrize("row", [None, 0, 2])
def test_bars_and_error_bars_are_those_of_the_round(row: int | None) -> None:
    given = series()
    assert given.truth is not None
    axes = draw_run(given, PROTOCOL, row=row).axes[-1]
    shown = 3 if row is None else row
    assert axes.get_title(loc="left") == f"All 5 values in round {shown}"
    heights = [bar.get_height() for bar in axes.patches]
    np.testing.assert_array_equal(heights, given.truth[shown])
    errors = axes.containers[1]
    np.testing.assert_array_equal(errors.lines[0].get_ydata(), given.frequencies[shown])
    reaches = np.array([segment[:, 1] for segment in errors.lines[2][0].get_segments()])
    np.testing.assert_allclose(reaches[:, 0], given.lower[shown])
    np.testing.assert_allclose(reaches[:, 1], given.upper[shown])


def test_a_large_domain_is_drawn_in_steps() -> None:
    given = series(bins=300)
    assert given.truth is not None
    axes = draw_run(given, OLOLOHA(k=300, eps_inf=2, eps_1=1)).axes[-1]
    band_of_round, truth = axes.patches
    np.testing.assert_array_equal(band_of_round.get_data().values, given.upper[3])
    np.testing.assert_array_equal(band_of_round.get_data().baseline, given.lower[3])
    np.testing.assert_array_equal(truth.get_data().values, given.truth[3])
    np.testing.assert_array_equal(line(axes, "estimate with interval"), given.frequencies[3])


@pytest.mark.long
def test_a_large_domain_needs_no_truth() -> None:
    given = series(bins=300)
    blind = Series(given.labels, given.rounds, given.frequencies, given.lower, given.upper)
    (band_of_round,) = draw_run(blind, OLOLOHA(k=300, eps_inf=2, eps_1=1)).axes[-1].patches
    np.testing.assert_array_equal(band_of_round.get_data().values, given.upper[3])


def test_one_round_has_a_histogram_alone() -> None:
    drawn = draw_run(series(tau=1), PROTOCOL)
    assert len(drawn.axes) == 1


def test_rounds_without_reports_leave_gaps() -> None:
    given = series()
    for one in (given.frequencies, given.lower, given.upper, given.truth):
        assert one is not None
        one[3] = np.nan
    drawn = draw_run(given, PROTOCOL, top=1)
    assert np.isnan(line(panels(drawn)[0], "truth")[3])
    assert drawn.axes[-1].get_title(loc="left") == "All 5 values in round 2"


def test_a_bin_that_nobody_sampled_comes_last() -> None:
    given = series()
    given.frequencies[:, 0] = np.nan
    blind = Series(given.labels, given.rounds, given.frequencies, given.lower, given.upper)
    assert blind.top(5)[-1] == 0


def test_titles_notes_and_labels_are_shown_as_given_on_one_line(tmp_path: Path) -> None:
    labels = ["$x^2$", "two\nlines", "日本語", "a" * 50, "[red]"]
    note = "where it comes from " * 20
    drawn = draw_run(series(labels=labels), PROTOCOL, title="$title$", note=note, top=5)
    titles = [axes.get_title(loc="left") for axes in panels(drawn)]
    assert sorted(titles) == sorted(["$x^2$", "two lines", "日本語", "a" * 23 + "…", "[red]"])
    assert drawn.get_suptitle() == "$title$"
    assert max(map(len, drawn.get_supxlabel().split("\n"))) <= figure.NOTE_WIDTH
    # Glyphs that the font lacks must not become warnings, which are errors here.
    assert [path.stat().st_size > 10_000 for path in save(drawn, tmp_path / "f")] == [True, True]


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (list(range(1, 100)), ["1", "10", "20", "30", "40", "50", "60", "70", "80", "90"]),
        ([f"page {i}" for i in range(6)], [f"page {i}" for i in range(6)]),
        (list("abc"), ["a", "b", "c"]),
        (
            [f"release number {i:03d}" for i in range(97)],
            [f"release number {i:03d}" for i in (0, 24, 48, 72, 96)],
        ),
        ([False, True], ["False", "True"]),
    ],
)
def test_ticks_are_few_and_round(labels: list[Any], shown: list[str]) -> None:
    protocol = OLOLOHA(k=max(2, len(labels)), eps_inf=2, eps_1=1)
    axes = draw_run(series(bins=len(labels), labels=labels), protocol).axes[-1]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == shown


def test_rounds_of_long_names_show_the_first_and_the_last() -> None:
    names = [f"PWGTP{t}" for t in range(1, 81)]
    axes = panels(draw_run(series(tau=80, rounds=names), PROTOCOL, top=1))[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["PWGTP1", "PWGTP80"]


@pytest.mark.parametrize("tau", [3, 4, 5, 7, 20])
def test_names_of_rounds_stand_at_their_places(tau: int) -> None:
    """Only names of the first and of the last round are moved, off the edges of their panel."""
    drawn: Any = draw_run(
        series(tau=tau, rounds=[f"week {t}" for t in range(tau)]), PROTOCOL, top=1
    )
    panel = panels(drawn)[0]
    places, labels = [*panel.get_xticks()], panel.get_xticklabels()
    moved = [label.get_horizontalalignment() != "center" for label in labels]
    assert {place for place, is_moved in zip(places, moved, strict=True) if is_moved} <= {
        0,
        tau - 1,
    }
    assert len({*places}) >= 2


def test_frequencies_are_read_in_percent() -> None:
    axes = draw_run(series(), PROTOCOL).axes[-1]
    shown = [axes.yaxis.get_major_formatter()(f, 0) for f in (0.07, 0.475, -0.2, 0.0012)]
    assert shown == ["7%", "47.5%", "-20%", "0.12%"]


@pytest.mark.parametrize("length", [3, 10, 24])
@pytest.mark.parametrize("count", [12, 1000])
def test_tick_labels_never_overlap(length: int, count: int) -> None:
    labels = [f"{i:0{length}d}"[-24:] for i in range(count)]
    protocol = OLOLOHA(k=count, eps_inf=2, eps_1=1)
    drawn: Any = draw_run(series(bins=count, labels=labels), protocol, top=1)
    drawn.draw_without_rendering()
    ticks = drawn.axes[-1].get_xticklabels()
    if ticks[0].get_rotation():
        return
    boxes = [tick.get_window_extent() for tick in ticks]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_files_are_the_same_every_time_and_settings_of_the_user_stay(tmp_path: Path) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    first, second = (
        [path.read_bytes() for path in save(draw_run(series(), PROTOCOL), tmp_path / name)]
        for name in ("a", "b")
    )
    assert first == second
    assert first[0].startswith(b"\x89PNG")
    assert b"<svg" in first[1]
    assert dict(mpl.rcParams) == before


def test_a_layout_has_no_digits_that_its_solver_may_change() -> None:
    """It orders unknowns by address, so that the last digits differ from run to run."""
    drawn: Any = draw_run(series(), PROTOCOL)
    places = [axes.get_position().bounds for axes in drawn.axes]
    parts = [part.bbox_relative.get_points().ravel() for part in drawn.subfigs]
    assert parts
    for place in (*places, *parts):
        assert [round(float(end), 6) for end in place] == pytest.approx(place, rel=1e-15, abs=1e-15)


def test_nothing_of_pyplot_is_loaded() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from loloha import figure; assert 'matplotlib' not in sys.modules\n"
        "import numpy as np; one = np.full((2, 2), 0.5)\n"
        "from loloha import GRR\n"
        "figure.draw_run(figure.Series('ab', '12', one, one, one), GRR(k=2, eps=1))\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_bad_shapes_and_choices_are_refused() -> None:
    given = series()
    with pytest.raises(LolohaError, match="must be of shape"):
        Series(given.labels, given.rounds, given.frequencies[:2], given.lower, given.upper)
    with pytest.raises(LolohaError, match="must be of shape"):
        Series([], [], np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0)))
    for wrong in ({"top": 0}, {"top": 41}, {"row": 4}, {"row": -1}):
        with pytest.raises(LolohaError, match=f"{next(iter(wrong))} must be"):
            draw_run(given, PROTOCOL, **wrong)
    with pytest.raises(LolohaError, match="name must be one of"):
        style("laplace")


def test_every_protocol_has_a_look_of_its_own() -> None:
    looks = [tuple(style(name).values()) for name in REGISTRY]
    assert len(set(looks)) == len(REGISTRY)
    # The last eight of the registry, which figures compare, differ in colour alone.
    assert len({look[0] for look in looks[-8:]}) == 8


# Machado, Oliveira and Fernandes 2009, full severity, on linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


def lab(colour: str, sight: Any) -> Any:
    """CIE L*a*b* of a colour as it is seen."""
    gamma = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(gamma <= 0.04045, gamma / 12.92, ((gamma + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    white = np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.cbrt(to_xyz @ np.clip(sight @ linear, 0, 1) / white)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_stay_apart_for_colour_blind_eyes(sight: str) -> None:
    colours = {colour: lab(colour, SIGHT[sight]) for colour in (*figure.COLOURS, figure.TRUTH)}
    distances = {
        (one, other): float(np.linalg.norm(colours[one] - colours[other]))
        for one, other in combinations(colours, 2)
    }
    closest = min(distances, key=lambda pair: distances[pair])
    # 2.3 is just noticeable.
    assert distances[closest] > 15, (sight, closest, distances[closest])


def test_the_largest_of_many_values_have_names_that_do_not_touch() -> None:
    many = series(bins=97, labels=[f"value {i}" for i in range(97)])
    shares = np.full_like(many.frequencies, 0.001)
    # The third stands beside the first, whose name reaches over it.
    shares[:, [40, 90, 41]] = 0.5, 0.2, 0.1
    peaks = replace(many, frequencies=shares, lower=shares, upper=shares, truth=None)
    protocol = OLOLOHA(k=97, eps_inf=2, eps_1=1)
    drawn: Any = draw_run(peaks, protocol)
    assert [text.get_text() for text in drawn.axes[-1].texts] == ["value 40", "value 90"]
    assert not draw_run(series(), PROTOCOL).axes[-1].texts


def test_names_of_rounds_stay_below_their_own_panel() -> None:
    days = [f"2026-01-{day:02d}" for day in range(1, 7)]
    drawn: Any = draw_run(series(tau=6, rounds=days), PROTOCOL, top=4)
    drawn.draw_without_rendering()
    for panel in panels(drawn):
        boxes = [label.get_window_extent() for label in panel.get_xticklabels()]
        assert boxes[0].x0 > panel.bbox.x0 - 1
        assert boxes[-1].x1 < panel.bbox.x1 + 1
