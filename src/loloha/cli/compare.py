"""``loloha compare``: protocols side by side on one table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from loloha.checks import counted
from loloha.cli import console, input_table
from loloha.cli.results_folder import check_folder, unwritable, writing_to

if TYPE_CHECKING:
    from loloha.datasets import Dataset
    from loloha.population.comparison import Comparison

ARCHIVE = "runs.ndjson"
FILES = (ARCHIVE, *(f"comparison.{form}" for form in ("csv", "parquet", "png", "svg")))
SHOWN = (
    "protocol", "eps_inf", "eps_1", "eps_2", "mse", "expected_mse", "mse_clipped", "coverage",
    "eps_avg", "cap", "change_seen", "changes", "change_alarms", "stays",
)  # fmt: skip


def compare(
    table: str,
    *,
    protocol: list[str] | None = None,
    eps_inf: list[float] | None = None,
    alpha: float = 0.5,
    runs: int = 3,
    level: float = 0.95,
    calibration: str = "tight",
    seed: int = 0,
    jobs: int | None = None,
    out: Path | None = None,
    force: bool = False,
    as_json: bool = False,
    reading: dict[str, Any],
) -> None:
    """Simulate protocols at several budgets on one table, and compare each with the truth.

    By default the paper's protocols with two rounds, at eps_inf 1, 2 and 4. Writes comparison.csv
    and .parquet, and comparison.png and .svg, to the folder --out, and the runs, so that an
    interrupted comparison, or a larger one of the same table, continues there. changes and stays
    count the rounds of users that change_seen and change_alarms are shares of.
    """
    import loloha
    from loloha.population.comparison import PROTOCOLS

    with console.working("reading the table"):
        dataset = input_table.load(table, reading)
    if out is not None:
        _check(out, dataset, level, seed, force=force)
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(out, error) from error
    done_before: list[int] = []

    def advance(done: int, total: int) -> None:
        done_before.append(done)
        progress(done / total)

    place = nullcontext() if out is None else _resumable(out)
    with place, console.working("simulating") as progress:
        comparison = loloha.compare(
            dataset,
            protocol or PROTOCOLS,
            eps_inf or (1.0, 2.0, 4.0),
            alpha=alpha,
            runs=runs,
            level=level,
            calibration=calibration,
            seed=seed,
            jobs=console.cores() if jobs is None else jobs,
            keep=None if out is None else out / ARCHIVE,
            progress=advance,
        )
    if out is not None:
        if done_before[0]:
            console.say(f"{counted(done_before[0], 'run')} stored in {out / ARCHIVE} reused")
        _save(comparison, out)
    if as_json:
        console.show_json(
            {"note": comparison.note, "level": comparison.level, "rows": list(comparison.rows)}
        )
        return
    console.show(console.visible(comparison.note))
    console.show_table(SHOWN, [[row[name] for name in SHOWN] for row in comparison.rows], keys=2)
    uniform = comparison.rows[0]["mse_uniform"]
    console.show(f"Always answering 'uniform' has a mean squared error of {uniform:.4g}.")
    if out is not None:
        console.show(f"Results: {out}/ (comparison.csv, .parquet, .png, .svg)")


def _check(out: Path, dataset: Dataset, level: float, seed: int, *, force: bool) -> None:
    """Refuse a folder with results of another table, level or seed, or delete their runs."""
    from loloha.population.archive import Archive
    from loloha.population.comparison import identity_of

    if Archive(out / ARCHIVE).holds(identity_of(dataset, level, seed)):
        return
    check_folder(out, FILES, force)
    (out / ARCHIVE).unlink(missing_ok=True)


@contextmanager
def _resumable(out: Path) -> Iterator[None]:
    """Say on Ctrl-C that the runs stay, and how to go on."""
    try:
        with writing_to(out):
            yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"complete runs stay in {out / ARCHIVE}: the same line continues"
        ) from None


def _save(comparison: Comparison, out: Path) -> None:
    from loloha.server.frame import written

    with writing_to(out), TemporaryDirectory(dir=out, prefix=".comparison.") as near:
        draft = Path(near)
        for form in ("csv", "parquet"):
            with (draft / f"comparison.{form}").open("wb") as file:
                file.writelines(written([comparison.to_frame(backend="pyarrow")], form))
        with console.drawing():
            _draw(comparison, draft)
        # No file gets its name before all are complete.
        for whole in draft.iterdir():
            whole.replace(out / whole.name)


def _draw(comparison: Comparison, out: Path) -> None:
    from matplotlib.figure import Figure

    from loloha.figure import save

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    axes: Any
    for axes, column in ((left, "mse"), (right, "mse_clipped")):
        comparison.plot(column, ax=axes)
    save(figure, out / "comparison")
