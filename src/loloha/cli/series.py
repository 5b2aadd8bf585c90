"""``loloha series``: rounds estimated together, and alarms at a stated rate of false ones."""

from __future__ import annotations

import csv
import json
import math
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loloha import checks
from loloha.cli import campaign_file, console, table_file
from loloha.cli.summary import UNITS, show_number_table, unit_of
from loloha.errors import ParameterError

if TYPE_CHECKING:
    from loloha.arrays import Bools, Floats
    from loloha.campaign import Campaign
    from loloha.campaign.domain import Scale
    from loloha.protocols import Protocol
    from loloha.server.alarm_rule import AlarmRule
    from loloha.server.observations import Observations
    from loloha.server.series import EstimatedSeries

FEW = 10
FILES = (".csv", ".parquet")


def series(
    sources: list[str],
    *,
    campaign: str | None = None,
    filter_: bool = False,
    first: int = 0,
    population: int | None = None,
    expected: float | None = None,
    fdr: float | None = None,
    watch: str | None = None,
    top: int | None = None,
    level: float = 0.95,
    out: Path | None = None,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Estimate each round from all rounds, with errors that account for what rounds share.

    A source is a campaign's address, one file that `loloha export`, `loloha estimate --out` or
    `loloha run` wrote, or folders of tallies. A CSV needs --campaign, except that of a run, which
    has its protocol beside it. Estimates are shares: at least 0, and of sum 1; unbiased is the
    estimate of the round alone, to be published as raw numbers. innovation is the error of its
    prediction from earlier rounds, in standard deviations; with --expected or --fdr, alarm is 1 if
    it is too large. A burst in one round is smoothed: alarms and unbiased show it. Of numbers
    (onebit) it shows mean and quantiles of each round, with --top the shares above thresholds, too;
    the columns single_mean and so on are of the round alone. The series goes from the first to the
    last round with estimates. Time is counted by the numbers of rounds, not by dates: `loloha
    run` numbers the rounds of a table one after another, so give it rounds without reports too.
    """
    from loloha.server.series import series as of_rounds

    table_file.check_shown(top, level, out, force)
    with console.working("reading estimates"):
        observations, scale = _observations(sources, campaign, first, level)
        observations = observations.of_users(population)
    rule = _rule(expected, fdr, watch, observations)
    with console.working("estimating rounds together"):
        estimated = of_rounds(observations, smooth=not filter_, level=level)
    alarmed = None if rule is None else rule.alarmed(_innovations(estimated, rule))
    more = _alarm_columns(estimated, rule, alarmed)
    numbers = estimated.summaries(level, scale)
    table = estimated.table()
    table = replace(table, campaign=observations.campaign, more=table.more | more)
    table = table.with_numbers(numbers)
    if out is not None:
        table_file.write(table.pieces(), out, announce=not as_json)
    if as_json:
        console.show_json(table.to_frame().to_pylist())
    elif out is None:
        if numbers:
            _show_numbers(estimated, numbers, scale)
        if numbers and top is not None and observations.protocol.bins == 1:
            console.say("--top shows thresholds, of which this source has none to show")
        elif top is not None or not numbers:
            _show_last(estimated, top or FEW)
    if rule is not None and alarmed is not None and not as_json:
        _show_alarms(estimated, rule, alarmed, numbers, unit_of(scale, UNITS))


def _observations(
    sources: list[str], campaign: str | None, first: int, level: float
) -> tuple[Observations, Scale | None]:
    """Estimates of single rounds from the sources, and the units of numbers, if any."""
    from loloha.campaign import Campaign
    from loloha.cli.export import tables_of
    from loloha.reportlog import rules
    from loloha.server.estimate_table import EstimateTable
    from loloha.server.observations import Observations

    kinds = {_kind(source) for source in sources}
    if len(kinds) > 1 or (len(sources) > 1 and "tallies" not in kinds):
        raise ParameterError(
            f"SOURCE must be one address, one file or folders of tallies, got {len(sources)} "
            "sources; give one of them"
        )
    agreed = None if campaign is None else campaign_file.load(campaign)
    protocol = None if agreed is None else rules(agreed)
    scale = campaign_file.scale_of(agreed)
    if "tallies" in kinds:
        observations = _of_tallies([Path(source) for source in sources], agreed, first)
    elif "address" in kinds:
        agreed = agreed or campaign_file.load(sources[0])
        parts = tables_of(sources[0], first, level)
        scale = campaign_file.scale_of(agreed)
        observations = Observations.of_table(EstimateTable.joined(parts), protocol, scale)
    else:
        table, path = EstimateTable.read(Path(sources[0])), Path(sources[0])
        if protocol is None and not table.about.get("parameters"):
            protocol = _of_run(path)
        observations = Observations.of_table(table, protocol, scale).since(first)
    if agreed is not None:
        checks.of_campaign(
            f"estimates in {sources[0]!r}", observations.campaign, agreed.fingerprint
        )
    if isinstance(agreed, Campaign):
        # With suppressed thresholds there is only the mean.
        whole = observations.protocol.bins == len(agreed.bin_labels)
        labels = agreed.bin_labels if whole else None
        if not whole:
            console.say(
                "the mean alone: single thresholds have too few users to be shown; quantiles of "
                "rounds together are on the dashboard and in /smoothed"
            )
        observations = replace(observations.labelled(labels), campaign=agreed.fingerprint)
        observations = observations.of_panels(agreed.schedule.every)
    return observations, scale


def _kind(source: str) -> str:
    if "://" in source:
        return "address"
    return "file" if Path(source).suffix in FILES else "tallies"


def _of_run(path: Path) -> Protocol:
    """The protocol for a file that does not name it (any CSV): of a run it is beside the file."""
    from loloha.protocols import protocol_from_dict

    with suppress(OSError, ValueError, LookupError, TypeError, ParameterError):
        if path.name == "estimates.csv":
            return protocol_from_dict(
                json.loads(path.with_name("metrics.json").read_bytes())["protocol"]
            )
    raise ParameterError(
        f"--campaign must be given with {str(path)!r}, which does not name its protocol, as no CSV "
        "does; give the campaign's address or file, or take a .parquet file of the same estimates"
    )


def _of_tallies(
    folders: list[Path], agreed: Campaign | Protocol | None, first: int
) -> Observations:
    from loloha.engines.saved import find, load
    from loloha.reportlog import rules
    from loloha.server.observations import Observations

    campaign, protocol = (None, None) if agreed is None else (agreed.fingerprint, rules(agreed))
    by_round = find(folders, campaign=campaign)
    counted = {t: load(files, protocol=protocol) for t, files in by_round.items()}
    return Observations.of({t: tally for t, tally in counted.items() if t >= first})


def _rule(
    expected: float | None, fdr: float | None, watch: str | None, seen: Observations
) -> AlarmRule | None:
    from loloha.server.alarm_rule import AlarmRule

    if expected is None and fdr is None:
        if watch is not None:
            raise ParameterError("--watch must come with --expected or --fdr, got neither; add one")
        return None
    # Labels with a comma, as of ranges, are in double quotes.
    parts = [] if watch is None else next(csv.reader([watch], skipinitialspace=True))
    watched = None if watch is None else [part.strip() for part in parts]
    return AlarmRule.of_labels(watched, _labels(seen), seen.protocol, expected=expected, fdr=fdr)


def _labels(seen: Observations) -> Any:
    return range(seen.protocol.bins) if seen.labels is None else seen.labels


def _show_last(estimated: EstimatedSeries, top: int) -> None:
    import numpy as np

    lower, upper = estimated.interval()
    labels, row = _labels(estimated.observations), len(estimated.rounds) - 1
    order = np.argsort(-estimated.posterior.mean.mean(axis=0), kind="stable")[:top]
    number = estimated.rounds[row]
    grown = estimated.change(number, estimated.rounds[0])
    rows = [
        [
            str(labels[v]),
            *map(_percent, (estimated.estimates[row, v], lower[row, v], upper[row, v])),
            _percent(estimated.observations.estimates[row, v]),
            f"{_percent(grown.estimates[v])} ± {_percent(grown.standard_errors[v])}",
        ]
        for v in order.tolist()
    ]
    console.show_table(
        (
            "value",
            "estimate",
            f"{100 * estimated.level:g} % from",
            "to",
            "unbiased",
            "grown ± s.e.",
        ),
        rows,
        title=f"Round {number}, estimated from {_several(estimated)}; grown since round "
        f"{estimated.rounds[0]}; the most frequent values over all rounds",
    )


def _several(estimated: EstimatedSeries) -> str:
    """Number of rounds with estimates."""
    return checks.counted(int((estimated.observations.n > 0).sum()), "round")


def _show_numbers(
    estimated: EstimatedSeries, numbers: dict[str, dict[str, Any]], scale: Scale | None
) -> None:
    rounds = estimated.rounds
    titles = (f"each estimated from {_several(estimated)}", "single rounds")
    for title, summary in zip(titles, numbers.values(), strict=True):
        newest = {name: row[-FEW:] for name, row in summary.items()}
        unit = unit_of(scale, UNITS)
        show_number_table(
            rounds[-FEW:], newest, estimated.level, f"Numbers, {unit}; {title}",
            estimated.observations.n[-FEW:],
        )  # fmt: skip
    grown, step = estimated.change(rounds[-1], rounds[0], mean=True), scale[1] if scale else 1.0
    cells = [f"{step * float(part[0]):.4g}" for part in (grown.estimates, grown.standard_errors)]
    console.show(f"mean grown since round {rounds[0]}: {' ± '.join(cells)} (standard error)")
    if len(rounds) > FEW:
        console.say(f"the last {FEW} rounds; --out or --json has all {len(rounds)}")


def _innovations(estimated: EstimatedSeries, rule: AlarmRule) -> Floats:
    return estimated.mean_innovations if rule.mean else estimated.innovations


def _alarm_columns(
    estimated: EstimatedSeries, rule: AlarmRule | None, alarmed: Bools | None
) -> dict[str, Any]:
    """Innovations and alarms: of each value, and of the mean of numbers."""
    from loloha.server.estimate_table import round_columns

    protocol = estimated.observations.protocol
    columns: dict[str, Any] = {"innovation": estimated.innovations}
    of_mean: dict[str, Any] = {}
    if not protocol.histogram:
        of_mean["mean_innovation"] = estimated.mean_innovations[:, 0]
    if rule is not None and alarmed is not None:
        some = alarmed.astype(float)
        if rule.mean:
            of_mean["mean_alarm"] = some[:, 0]
        else:
            columns["alarm"] = some
    return columns | round_columns(of_mean, protocol.bins)


def _show_alarms(
    estimated: EstimatedSeries, rule: AlarmRule, alarmed: Bools, numbers: dict[str, Any], unit: str
) -> None:
    import numpy as np

    from loloha.server.alarm_rule import MEAN

    labels, innovations = _labels(estimated.observations), _innovations(estimated, rule)
    places = np.argwhere(alarmed).tolist()
    console.say(f"alarms: {len(places)} in {checks.counted(len(estimated.rounds), 'round')}")
    if places:
        console.show_table(
            ("round", "value", "unbiased", "innovation"),
            [
                [
                    estimated.rounds[row],
                    MEAN if rule.mean else str(labels[v]),
                    f"{numbers['single_']['mean'][row]:.4g}"
                    if rule.mean
                    else _percent(estimated.observations.estimates[row, v]),
                    round(float(innovations[row, v]), 2),
                ]
                for row, v in places
            ],
            title="Not what the rounds before led to expect (innovation: in standard deviations"
            + (f"; unbiased: {unit})" if rule.mean else ")"),
        )


def _percent(share: float) -> str:
    return "none" if math.isnan(share) else f"{100 * share:.2f} %"
