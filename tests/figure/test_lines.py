"""One set of axes for a notebook shows the numbers it was given, each in its own colour."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from loloha.errors import ParameterError
from loloha.figure import COLOURS, MARKERS, TRUTH, Series, plot_lines, style
from loloha.figure.lines import draw_errors, new_axes, plot_round


def axes() -> Any:
    return Figure().subplots()


def series(tau: int, bins: int = 10) -> Series:
    truth = np.random.default_rng(1).dirichlet(np.arange(1, bins + 1), size=tau)
    labels, rounds = [f"value {v}" for v in range(bins)], [f"r{t}" for t in range(tau)]
    return Series(labels, rounds, truth + 0.01, truth - 0.02, truth + 0.03, truth)


@pytest.mark.parametrize(("tau", "markers"), [(1, "o" * 8), (30, "".join(MARKERS)), (31, [""] * 8)])
@pytest.mark.parametrize("top", [1, 8])
def test_lines_are_the_estimates_bands_the_intervals_dots_the_truth(
    tau: int, markers: Any, top: int
) -> None:
    given, drawn = series(tau), axes()
    assert given.truth is not None
    assert plot_lines(given, top, drawn) is drawn
    order = np.argsort(-given.truth.mean(axis=0))[:top]
    estimates, truths = drawn.lines[::2], drawn.lines[1::2]
    assert len(estimates) == len(truths) == len(drawn.collections) == top
    for place, column in enumerate(order):
        line, truth, band = estimates[place], truths[place], drawn.collections[place]
        assert line.get_label() == given.labels[column]
        assert line.get_marker() == markers[place]
        assert line.get_xdata().tolist() == truth.get_xdata().tolist() == list(range(tau))
        assert line.get_ydata().tolist() == given.frequencies[:, column].tolist()
        assert truth.get_ydata().tolist() == given.truth[:, column].tolist()
        assert (line.get_linestyle(), truth.get_linestyle()) == ("-", "--")
        corners = band.get_paths()[0].vertices
        for t in range(tau):
            ends = corners[corners[:, 0] == t, 1]
            assert (ends.min(), ends.max()) == (given.lower[t, column], given.upper[t, column])
        assert 0 < band.get_alpha() < 0.5
        colours = {to_hex(one) for one in (line.get_color(), truth.get_color())}
        assert {*colours, to_hex(band.get_facecolor()[0])} == {COLOURS[place].lower()}
    legend = drawn.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [given.labels[v] for v in order]
    assert drawn.get_xticklabels()[0].get_text() == "r0"
    assert drawn.yaxis.get_major_formatter()(0.07, 0) == "7%"
    assert "truth" in drawn.get_ylabel()


def test_without_truth_nothing_is_said_of_it() -> None:
    given, drawn = series(3), axes()
    plot_lines(replace(given, truth=None), 2, drawn)
    assert len(drawn.lines) == 2
    assert "truth" not in drawn.get_ylabel()


def test_there_is_a_colour_for_each_line() -> None:
    for top in (0, len(COLOURS) + 1):
        with pytest.raises(ParameterError, match="top must be an integer in 1"):
            plot_lines(series(3), top, axes())


def test_one_round_is_drawn_under_its_title_as_it_is_written() -> None:
    given, drawn = series(1), axes()
    assert plot_round(given, "$title$", drawn) is drawn
    assert drawn.get_title(loc="left") == "$title$"
    errors = drawn.containers[1]
    assert errors.lines[0].get_ydata().tolist() == given.frequencies[0].tolist()
    assert to_hex(errors.lines[0].get_color()) == COLOURS[0].lower()


def test_errors_stand_in_the_row_of_their_protocol() -> None:
    names, drawn = ["grr", "ololoha", "grr"], axes()
    errors = {"best": [0.1, None, 0.3], "worst": [0.2, 0.4, None]}
    assert draw_errors(["a", "b", "c"], names, errors, 0.05, drawn) is drawn
    *points, average = drawn.lines
    shown = [(*point.get_ydata(), *point.get_xdata()) for point in points]
    assert shown == [
        pytest.approx((place, np.nan if number is None else number), nan_ok=True)
        for numbers in errors.values()
        for place, number in enumerate(numbers)
    ]
    for place, point in enumerate(points):
        look = style(names[place % 3])
        assert point.get_color() == look["color"]
        assert point.get_marker() == (look["marker"] if place < 3 else "|")
        assert point.get_linestyle() == "None"
    assert list(average.get_xdata()) == [0.05, 0.05]
    assert average.get_color() == TRUTH
    legend = [text.get_text() for text in drawn.get_legend().get_texts()]
    assert legend == ["best", "worst", "average frequency"]
    assert [text.get_text() for text in drawn.get_yticklabels()] == ["a", "b", "c"]
    low, high = drawn.get_ylim()
    assert low > high, "the first is on top"
    assert drawn.get_xscale() == "log"


def test_without_axes_a_new_figure_is_made() -> None:
    from matplotlib import pyplot

    pyplot.close("all")  # what other tests left open
    made = [
        new_axes(),
        plot_lines(series(2), 1),
        plot_round(series(1), ""),
        draw_errors(["a"], ["grr"], {"best": [1.0]}, 1.0),
    ]
    assert len({one.figure for one in made}) == len(pyplot.get_fignums()) == 4
    pyplot.close("all")
