"""One small reproduction that several tests look at."""

from pathlib import Path

import pytest

from loloha_lab.paper.grid import Grid
from loloha_lab.paper.reproduction import Reproduction, reproduce

SMALL = Grid(
    runs=2,
    eps_inf=(1.0, 5.0),
    alphas=(0.5,),
    calibrations=("published", "tight"),
    workloads=("Syn", "Adult", "DB_MT"),
    users=40,
    rounds=2,
    seed=5,
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who looks at the reproduction waits for it; `test_command` makes a part of one meanwhile."""
    for item in items:
        if isinstance(item, pytest.Function) and "small" in item.fixturenames:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Reproduction, Path]:
    """All parts at a size of seconds, without any file of real data.

    Most of the time would go into pictures that nobody looks at: `test_command` has one drawn, and
    `test_figures` asks for the figure of areas.
    """
    out = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        patch.setattr("loloha_lab.paper.exact_figures.STRETCHES", (1,))
        patch.setenv("LOLOHA_CACHE", str(tmp_path_factory.mktemp("cache")))
        return reproduce(["all"], SMALL, out, command="loloha reproduce --users 40"), out


def draw_nothing(patch: pytest.MonkeyPatch) -> None:
    """Figures are made and saved, but hold no picture."""
    patch.setattr("matplotlib.figure.Figure.draw_without_rendering", lambda figure: None)
    patch.setattr(
        "matplotlib.figure.Figure.savefig",
        lambda figure, path, **_: Path(path).write_bytes(b"a picture" * 200),
    )


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    draw_nothing(monkeypatch)
