"""``loloha estimate``: from tallies to frequencies with their errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loloha.cli import campaign_file, console, table_file
from loloha.cli.console import AsJson
from loloha.errors import LolohaError, ParameterError

if TYPE_CHECKING:
    from loloha.server.estimate import Estimate

COLUMNS = ("round", "value", "frequency", "standard_error", "low", "high", "bound", "n")
FEW = 10


def estimate(
    tallies: Annotated[
        list[Path],
        typer.Argument(
            metavar="TALLY...",
            help="Folders that `loloha tally` wrote, or files of them; those of one round add up.",
        ),
    ],
    *,
    campaign: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Campaign with the labels of the values.")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(help="Only the most frequent values; else all of them, or 10 in a terminal."),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of intervals and bounds.")] = 0.95,
    only_clear: Annotated[
        bool, typer.Option("--only-clear", help="Only values significantly above 0, all at once.")
    ] = False,
    mean: Annotated[
        bool,
        typer.Option(
            "--mean",
            help="Only the mean of all rounds, with the error that shared memos leave in it.",
        ),
    ] = False,
    project: Annotated[
        bool,
        typer.Option(
            "--project", help="Also a column of frequencies that are >= 0 and add up to 1."
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write .csv or .parquet.")
    ] = None,
    force: table_file.Force = False,
    as_json: AsJson = False,
) -> None:
    """Estimate how frequent each value was in each round: unbiased, so possibly below zero.

    low and high hold one value's frequency with the given level; those of values picked by their
    estimates (--top, --only-clear, 10 in a terminal) hold for all values at once. bound is the
    largest error over all values at once. In small domains look at all values; in large ones at
    --top or --only-clear. With --mean every report counts once, errors are those of users who keep
    their values (upper bounds where they do not), and n is a round's.
    """
    from loloha.engines.saved import find, load

    names, protocol = _agreed(campaign, tallies)
    _check(top, level, out, force)
    counted = {}
    for round, files in find(tallies).items():
        counted[round] = load(files, protocol=protocol)
        if counted[round].n == 0:
            console.warn(f"round {round} has no reports, hence no estimate")
            del counted[round]
    few = FEW if top is None and not (as_json or out or only_clear) else top
    found = _mean(counted) if mean else {t: one.estimate() for t, one in counted.items()}
    parts = [_part(round, one, level, few, only_clear, project) for round, one in found.items()]
    table = _joined(parts, names)
    if out is not None:
        table_file.write(table, out)
    if as_json:
        console.show_json(table.to_pylist())
    elif out is None:
        cells = [list(row.values()) for row in table.to_pylist()]
        console.show_table(table.column_names, cells, keys=2)
        if names is None:
            console.say("value is the number of a label; --campaign FILE shows the labels")
        if mean and len(counted) > 1:
            console.say(
                "bound is that of one round: users may keep their memos, and then more rounds "
                "lessen only part of the noise"
            )
    else:
        console.show(f"Estimates: {out} ({table.num_rows} rows)")
    if any(_picked(one, few, only_clear) for one in found.values()):
        console.say(
            "low and high hold for all values at once: these were picked by their estimates"
        )


def _picked(found: Estimate, top: int | None, only_clear: bool) -> bool:
    """Whether what is shown depends on the estimates."""
    return only_clear or (top is not None and top < len(found.frequencies))


def _agreed(campaign: Path | None, tallies: list[Path]) -> tuple[list[str] | None, Any]:
    """Labels and rules of a campaign, to which the tallies must not say that they do not belong."""
    from loloha.engines.saved import campaign_of
    from loloha.reportlog import rules

    if campaign is None:
        return None, None
    agreed = campaign_file.load(campaign)
    for folder in {path if path.is_dir() else path.parent for path in tallies}:
        if (counted := campaign_of(folder)) not in (None, agreed.fingerprint):
            raise ParameterError(
                f"tallies in {str(folder)!r} must be of campaign {agreed.fingerprint!r}, they are "
                f"of {counted!r}; give that one's file"
            )
    return campaign_file.labels(agreed), rules(agreed)


def _check(top: int | None, level: float, out: Path | None, force: bool) -> None:
    from loloha import checks

    if top is not None:
        checks.integer("top", top, 1, 1 << 24, "10 are easy to read")
    checks.level(level)
    if out is not None:
        table_file.check(out, force)


def _mean(counted: dict[int, Any]) -> dict[str, Estimate]:
    """The mean of these rounds under a name that says which."""
    from loloha.server.mean import mean

    if not counted:
        return {}
    return {f"mean of {len(counted)}, {min(counted)}..{max(counted)}": mean([*counted.values()])}


def _part(
    round: int | str,
    found: Estimate,
    level: float,
    top: int | None,
    only_clear: bool,
    project: bool,
) -> dict[str, Any]:
    """Columns of one round; the most frequent values first where not all are asked for."""
    import numpy as np

    from loloha.postprocess import project_simplex

    bound = np.broadcast_to(found.simultaneous(level), found.frequencies.shape)
    chosen = np.arange(len(found.frequencies))
    if only_clear:
        chosen = chosen[found.significant(level)]
    if top is not None or only_clear:
        chosen = _largest(found.frequencies, chosen, top)
    low, high = found.interval(level, simultaneous=_picked(found, top, only_clear))
    columns = {
        "round": np.full(len(chosen), round),
        "value": chosen,
        "frequency": found.frequencies[chosen],
        "standard_error": found.standard_errors[chosen],
        "low": low[chosen],
        "high": high[chosen],
        "bound": bound[chosen],
        "n": found.reach[chosen],
    }
    if project:
        columns["projected"] = project_simplex(found.frequencies)[chosen]
    return columns


def _largest(frequencies: Any, chosen: Any, top: int | None) -> Any:
    import numpy as np

    ranked = np.where(np.isnan(frequencies), -np.inf, frequencies)[chosen]
    if top is not None and top < len(chosen):
        kept = np.argpartition(-ranked, top - 1)[:top]
        chosen, ranked = chosen[kept], ranked[kept]
    return chosen[np.lexsort((chosen, -ranked))]


def _joined(parts: list[dict[str, Any]], names: list[str] | None) -> Any:
    """An Arrow table of all parts, with labels where they are known."""
    import numpy as np
    import pyarrow

    if not parts:
        raise LolohaError("tallies must hold reports, got none in any round; wait for some")
    rows: dict[str, Any] = {
        name: np.concatenate([part[name] for part in parts]) for name in parts[0]
    }
    if names is not None:
        rows["value"] = [names[value] for value in rows["value"]]
    return pyarrow.table(rows)
