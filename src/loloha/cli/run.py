"""``loloha run``: from a user's table to estimates, their error and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from loloha.checks import counted
from loloha.cli import console, input_table
from loloha.cli.parameter import find_protocol
from loloha.cli.results_folder import FILES, new_folder
from loloha.cli.summary import show_numbers, show_summary, show_top

if TYPE_CHECKING:
    from loloha.campaign.domain import Scale
    from loloha.datasets import Dataset
    from loloha.population.trial import Trial
    from loloha.protocols import Protocol

LARGEST_SEED = (1 << 63) - 1


def run(
    table: str,
    *,
    protocol: str,
    out: Path,
    every: int = 1,
    seed: int | None = None,
    top: int = 8,
    level: float = 0.95,
    force: bool = False,
    as_json: bool = False,
    reading: dict[str, Any],
    parameters: dict[str, Any],
) -> None:
    """Sanitise a table on simulated devices, estimate each round, compare with the truth.

    Writes estimates.parquet and .csv, metrics.json and frequencies.png and .svg to the folder
    --out, all or none. They hold the true frequencies of the table too: keep them as safe as the
    table itself. Without --domain or --range, labels are taken from the data, which a deployment
    must not do. With --every W each device reports in one round of W, and columns window_ hold the
    mean of the last W rounds.
    """
    check(top, level, seed)
    cls = find_protocol(protocol, parameters)
    with new_folder(out, FILES, force=force) as draft:
        with console.working("reading the table"):
            dataset = input_table.load(table, reading)
        input_table.require_numbers(cls, dataset, reading)
        rules = cls.from_params({**parameters, "k": dataset.k})
        scale = input_table.scale_of(dataset, reading)
        trial = run_and_save(
            dataset, rules, draft, seed=seed, top=top, level=level, every=every, scale=scale
        )
    files = [name for name in FILES if (out / name).exists()]
    if as_json:
        console.show_json({**trial.metrics(), "files": [str(out / name) for name in files]})
    else:
        show_summary(trial)
        if trial.numbers is None:
            show_top(trial, top)
        else:
            show_numbers(trial)
        console.show(f"\nResults: {out}/ ({', '.join(files)})")


def run_and_save(
    dataset: Dataset,
    protocol: Protocol,
    folder: Path,
    *,
    seed: int | None,
    top: int,
    level: float,
    every: int = 1,
    scale: Scale | None = None,
) -> Trial:
    """Simulate all devices, estimate, and write `FILES` into ``folder``."""
    import loloha
    from loloha.population.trial import Trial

    if seed is None:
        console.say("randomness: the operating system's (--seed makes a run repeatable)")
    task = f"simulating {counted(dataset.n, 'device')} over {counted(dataset.tau, 'round')}"
    with console.working(task) as progress:
        result = loloha.simulate(
            protocol, dataset, every=every, keep_tallies=False, progress=progress, rng=seed
        )
    with console.working("estimating, drawing and saving"):
        trial = Trial(result, level, seed, scale)
        save(trial, folder, top)
    return trial


def save(trial: Trial, folder: Path, top: int) -> None:
    """Write `FILES` into an empty folder."""
    trial.save(folder)
    text = console.to_json(trial.metrics())
    (folder / "metrics.json").write_text(text + "\n", encoding="utf-8")
    with console.drawing():
        trial.draw(folder, top)


def check(top: int, level: float, seed: int | None) -> None:
    """Refuse early what would fail at the end of a long run."""
    from loloha import checks
    from loloha.figure import MOST_PANELS

    checks.integer("top", top, 1, MOST_PANELS, "8 are easy to read")
    checks.level(level)
    if seed is not None:
        checks.integer("seed", seed, 0, LARGEST_SEED, "leave it out for the system's randomness")
