"""``loloha compare``: protocols side by side on one table."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from loloha.cli import console, input_table
from loloha.cli.results_folder import unwritable, writing_to

if TYPE_CHECKING:
    from loloha.population.comparison import Comparison

ARCHIVE = "runs.ndjson"
SHOWN = (
    "protocol", "eps_inf", "eps_1", "eps_2", "mse", "expected_mse", "mse_clipped", "coverage",
    "eps_avg", "cap", "change_seen", "change_alarms",
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
    as_json: bool = False,
    reading: dict[str, Any],
) -> None:
    """Simulate protocols at several budgets on one table, and compare each with the truth.

    By default the paper's protocols with two rounds, at eps_inf 1, 2 and 4. Writes comparison.csv
    and .parquet, and comparison.png and .svg, to the folder --out, and the runs, so that an
    interrupted comparison continues there.
    """
    import loloha
    from loloha.population.comparison import PROTOCOLS

    with console.working("reading the table"):
        dataset = input_table.load(table, reading)
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(out, error) from error
    place = nullcontext() if out is None else writing_to(out)
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
            progress=lambda done, total: progress(done / total),
        )
    if out is not None:
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
