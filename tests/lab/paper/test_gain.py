"""Ratios have the errors that they are given, and areas of the best test behave as it does."""

import math

import numpy as np
import pytest

import loloha
from loloha.privacy.roc import AUC
from loloha_lab.paper import pattern
from loloha_lab.paper.gain import Ratio, mean_ratio, ratio_of
from loloha_lab.paper.pattern import change_aucs


def test_a_ratio_of_means_and_its_error() -> None:
    found = ratio_of(np.array([2.0, 4.0]), np.array([1.0, 1.0]), expected=2.0)
    # Mean 3 with standard error 1, over exactly 1.
    assert (found.measured, found.error, found.expected) == (3.0, pytest.approx(1.0), 2.0)
    assert found.z == pytest.approx(math.log(1.5) * 3)
    assert math.isnan(ratio_of(np.array([2.0]), np.array([1.0])).error)


def test_the_mean_of_ratios_is_geometric() -> None:
    found = mean_ratio([Ratio(2.0, 0.2, 3.0), Ratio(8.0, 0.8, 12.0)])
    assert found.measured == pytest.approx(4.0)
    assert found.expected == pytest.approx(6.0)
    assert found.error == pytest.approx(4.0 * math.sqrt(2) * 0.1 / 2)


def test_means_of_ratios_scatter_as_their_error_says() -> None:
    # 2 000 means of 4 ratios of 20 runs each: z has a variance near 1, known within 3.2 %; alpha
    # 2e-9 at 6 of these. Sees an error that is not divided by the number of ratios (a quarter).
    rng = np.random.default_rng(5)
    runs = rng.normal(10, 1, size=(2000, 4, 2, 20))
    zs = [mean_ratio([ratio_of(a, b, 1.0) for a, b in trial]).z for trial in runs]
    spread = float(np.var(zs))
    assert 0.8 < spread < 1.35, f"seed 5, n 2000: variance {spread}, expected 1 to 1.1"


def test_more_reports_never_show_less() -> None:
    # At so small a budget what is drawn has errors as large as what shows.
    protocol = loloha.LGRR(k=1000, eps_inf=0.5, eps_1=0.2, calibration="published")
    areas = change_aucs(protocol, (1, 2, 3, 5, 10, 30))
    assert areas == sorted(areas)
    assert areas[0] >= 0.5


def test_bounds_never_show_less_though_they_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = {1: 0.4, 2: 0.7, 3: 0.6, 5: 0.8}
    monkeypatch.setattr(pattern, "change_auc", lambda _, reports: AUC(drawn[reports], 0.1))
    found = change_aucs(loloha.LGRR(k=3, eps_inf=2.0, eps_1=1.0), tuple(drawn))
    assert found == [0.5, 0.7, 0.7, 0.8]


def test_what_is_certain_is_not_drawn_again() -> None:
    protocol = loloha.RAPPOR(k=2000, eps_inf=2.0, eps_1=1.0)
    once, often = change_aucs(protocol, (1, 1000))
    assert once == often > 0.9999
