"""``loloha estimate``: from tallies to frequencies with their errors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loloha import checks
from loloha.address import Location
from loloha.cli import campaign_file, console, table_file
from loloha.cli.summary import UNITS, show_number_table, unit_of
from loloha.errors import LolohaError

if TYPE_CHECKING:
    from loloha.arrays import Floats
    from loloha.campaign import Campaign
    from loloha.protocols import Protocol
    from loloha.server.estimate import Estimate
    from loloha.server.estimate_table import EstimateTable
    from loloha.server.mean import Mean

FEW = 10


def estimate(
    tallies: list[Location],
    *,
    campaign: str | None = None,
    top: int | None = None,
    level: float = 0.95,
    only_clear: bool = False,
    mean: bool = False,
    project: bool = False,
    out: Location | None = None,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Estimate how frequent each value was in each round: unbiased, so possibly below zero.

    lower and upper hold one value's frequency with the given level; those of values picked by their
    estimates (--top, --only-clear, 10 in a terminal) hold for all values at once. bound is the
    largest error over all values at once. In small domains look at all values; in large ones at
    --top or --only-clear. With --mean every report counts once, errors are those of users who keep
    their values (upper bounds where they do not), and n is a round's. Where a user reports in one
    round of W, errors are those of all users, and columns window_ hold the mean of the last W
    rounds. Of numbers (onebit) it shows mean and quantiles of each round; with --top the shares
    above thresholds, too.
    """
    from loloha.campaign import Campaign
    from loloha.engines.saved import every_of, find, load
    from loloha.reportlog import rules
    from loloha.server.estimate_table import WINDOW
    from loloha.server.mean import mean as of_rounds
    from loloha.server.panel import evenness, panel_population, panel_windows

    agreed = None if campaign is None else campaign_file.load(campaign)
    table_file.check_shown(top, level, out, force)
    counted = {}
    by_round = find(tallies, campaign=None if agreed is None else agreed.fingerprint)
    for round, files in by_round.items():
        counted[round] = load(files, protocol=None if agreed is None else rules(agreed))
        if counted[round].n == 0:
            console.warn(f"round {round} has no reports, hence no estimate")
            del counted[round]
    if not counted:
        raise LolohaError("tallies must hold reports, got none in any round; wait for some")
    every = (
        agreed.schedule.every
        if isinstance(agreed, Campaign)
        else every_of(next(iter(by_round.values()))[0])
    )
    estimates: dict[int | None, Estimate] = {
        t: tally.estimate(panel_population(tally.n, every)) for t, tally in counted.items()
    }
    windows = {} if mean else panel_windows(counted, every)
    if mean:
        most = panel_population(max(tally.n for tally in counted.values()), every)
        estimates = {None: of_rounds(counted, every=every, population=most)}
        console.say(
            f"the mean of {checks.counted(len(counted), 'round')}, {min(counted)}..{max(counted)}"
        )
    of_numbers = not estimates[next(iter(estimates))].protocol.histogram
    whole = as_json or out or only_clear or of_numbers
    few = FEW if top is None and not whole else top
    tables = [
        _table(round, estimate, windows, agreed, level, few, only_clear, project)
        for round, estimate in estimates.items()
    ]
    pieces = (piece for table in tables for piece in table.pieces())
    if out is not None:
        table_file.write(pieces, out, announce=not as_json)
    if as_json:
        console.show_json([row for table in tables for row in table.to_frame().to_pylist()])
    elif out is None:
        if of_numbers:
            _show_numbers(estimates, agreed, level)
        if not of_numbers or top is not None or only_clear:
            per_round = {*tables[0].more} - {"bound", "projected", *WINDOW} if of_numbers else set()
            _show(list(pieces), mean and len(counted) > 1, per_round)
    sizes = evenness({t: tally.n for t, tally in counted.items()}, every)
    # Rounds that are not given are missing.
    if sizes is not None and sizes.smallest:
        (console.say if sizes.even else console.warn)(str(sizes))
    if any(_picked(estimate, few, only_clear) for estimate in estimates.values()):
        console.say(
            "lower and upper hold for all values at once: these were picked by their estimates"
        )


def _show(pieces: list[Any], memos: bool, per_round: set[str]) -> None:
    import pyarrow

    table = pyarrow.concat_tables(pieces)
    unlabelled = table["label"].null_count == table.num_rows
    hidden = {"campaign", "start", "level", *per_round} | ({"label"} if unlabelled else set())
    names = [name for name in table.column_names if name not in hidden]
    rows = [list(row.values()) for row in table.select(names).to_pylist()]
    console.show_table(names, rows, keys=2)
    if unlabelled:
        console.say("value is the number of a label; --campaign FILE shows the labels")
    if memos:
        console.say(
            "bound is that of one round: users may keep their memos, and then more rounds "
            "lessen only part of the noise"
        )


def _show_numbers(
    estimates: dict[int | None, Estimate], agreed: Campaign | Protocol | None, level: float
) -> None:
    """Means and quantiles of numbers."""
    scale = campaign_file.scale_of(agreed)
    summaries = [estimate.numbers.summary(level, scale) for estimate in estimates.values()]
    columns = {name: [summary[name] for summary in summaries] for name in summaries[0]}
    unit = unit_of(scale, UNITS)
    rounds = ["mean" if round is None else round for round in estimates]
    n = [estimate.n for estimate in estimates.values()]
    show_number_table(rounds, columns, level, f"Numbers, {unit}", n)


def _picked(estimate: Estimate, top: int | None, only_clear: bool) -> bool:
    """Whether what is shown depends on the estimates."""
    return only_clear or (top is not None and top < len(estimate.frequencies))


def _table(
    round: int | None,
    estimate: Estimate,
    windows: dict[int, Mean],
    agreed: Campaign | Protocol | None,
    level: float,
    top: int | None,
    only_clear: bool,
    project: bool,
) -> EstimateTable:
    """One round; the most frequent values first where not all are asked for."""
    import numpy as np

    from loloha.campaign import Campaign
    from loloha.campaign.schedule import to_text
    from loloha.server.panel import window_columns

    chosen = np.arange(len(estimate.frequencies))
    if only_clear:
        chosen = chosen[estimate.significant(level)]
    if top is not None or only_clear:
        chosen = _largest(estimate.frequencies, chosen, top)
    about: dict[str, Any] = {}
    if agreed is not None:
        about["campaign"] = agreed.fingerprint
    if isinstance(agreed, Campaign):
        about["labels"] = agreed.bin_labels
        about["start"] = None if round is None else to_text(agreed.schedule.begins(round))
    picked = _picked(estimate, top, only_clear)
    table = estimate.table(level, bins=chosen, simultaneous=picked, round=round, **about)
    bound = np.broadcast_to(estimate.simultaneous(level), estimate.frequencies.shape)
    more = {"bound": [bound[chosen]]}
    if round is not None:
        more |= window_columns(windows, level, rounds=[round], bins=chosen, simultaneous=picked)
    if project:
        more["projected"] = [_projected(round, estimate.frequencies)[chosen]]
    numbers = estimate.summaries(level, campaign_file.scale_of(agreed))
    return replace(table, more=more).with_numbers(numbers)


def _projected(round: int | None, frequencies: Floats) -> Floats:
    """Projected on the simplex; NaN if a value is missing."""
    import numpy as np

    from loloha.postprocess import project_simplex

    unknown = int(np.isnan(frequencies).sum())
    if not unknown:
        return project_simplex(frequencies)
    which = "the mean" if round is None else f"round {round}"
    console.warn(
        f"{which} has no projection: nobody sampled {unknown} of its {len(frequencies)} values, "
        "and without them nothing says what the others add up to"
    )
    return np.full(len(frequencies), np.nan)


def _largest(frequencies: Any, chosen: Any, top: int | None) -> Any:
    import numpy as np

    ranked = np.where(np.isnan(frequencies), -np.inf, frequencies)[chosen]
    if top is not None and top < len(chosen):
        largest = np.argpartition(-ranked, top - 1)[:top]
        chosen, ranked = chosen[largest], ranked[largest]
    return chosen[np.lexsort((chosen, -ranked))]
