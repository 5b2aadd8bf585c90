"""What local privacy costs: the rows of the page, and the noise of a sum."""

from pathlib import Path

import numpy as np
import pytest

from loloha_lab.tables import trust

PAGE = (Path(__file__).parents[2] / "docs" / "trust-table.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("n", [1_000, 50_000])
def test_rows_are_on_the_page(n: int) -> None:
    for row in (trust.error_row(n), trust.window_row(n)):
        assert f"| {' | '.join(row)} |\n" in PAGE


def test_the_noise_of_a_sum_is_that_of_two_geometric_draws() -> None:
    """And two counts that move by one each are told apart by eps: e^(eps/2) each."""
    eps, rng = 1.0, np.random.default_rng(1)
    draws = rng.geometric(1 - np.exp(-eps / 2), (2, 200_000))
    assert np.var(draws[0] - draws[1]) == pytest.approx(trust.discrete_laplace(eps), rel=0.03)


def test_cells_of_values() -> None:
    assert trust.cells(1, 2) == 1
    assert trust.cells(2, 2) == pytest.approx(1.5)
    assert trust.cells(3.4, 2) == pytest.approx(0.6 * 1.75 + 0.4 * 1.875)
