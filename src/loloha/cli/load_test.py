"""``loloha load-test``: many simulated users against a collector."""

from __future__ import annotations

import time
from itertools import accumulate
from typing import Any

import typer

from loloha.checks import counted
from loloha.cli import console
from loloha.cli.campaign_file import load_campaign
from loloha.cli.input_table import load_for
from loloha.cli.parameter import secret
from loloha.cli.report import TOKEN
from loloha.errors import ParameterError
from loloha.wire.refusal import Refusal


def load_test(
    table: str,
    *,
    campaign: str,
    collector: str | None = None,
    users: int | None = None,
    rounds: int | None = None,
    first: int = 0,
    batch: int = 10_000,
    seed: int | None = None,
    as_json: bool = False,
    reading: dict[str, Any],
) -> None:
    """Let simulated users report to a collector, round by round, in batches.

    For trying a collector. Labels of the table must be labels of the campaign, unless it has a
    label for others. With the campaign's file, --collector is where to report; LOLOHA_TOKEN holds
    the submit token.
    """
    import numpy as np

    from loloha.population.load_generator import generate_load
    from loloha.sender.collector import Collector

    document = load_campaign(campaign)
    if ("://" in campaign) == (collector is not None):
        raise ParameterError(
            "--collector must be given with a file as --campaign, and with no address; "
            f"{'leave it out' if collector else 'add it'}"
        )
    url = f"{collector}/v1/campaigns/{document.fingerprint}" if collector else campaign
    with Collector(url) as asked:
        takes = asked.open_rounds()
    values = load_for(document, table, reading)
    # Rounds first: users can be many more than the table has.
    for axis, wanted in ((1, rounds), (0, users)):
        if wanted is not None:
            values = values.take(np.arange(wanted), axis, mode="wrap")
    has = range(first, first + values.shape[1])
    if rounds is None and not (has[0] in takes and has[-1] in takes):
        raise ParameterError(
            "--rounds must be given where the collector does not take all rounds of the table, "
            f"got none: it {_fitting(has, takes)}"
        )
    began = time.monotonic()
    sizes: list[int] = []
    answered: list[int] = []
    due = int((values >= 0).sum()) // document.schedule.every
    with console.counting("sending reports", due) as advance:

        def tell(more: int) -> None:
            answered.append(more)
            advance(more)

        try:
            with console.interrupted_once("stopping after the batches under way"):
                receipt = generate_load(
                    url,
                    document,
                    values,
                    first=first,
                    token=secret(TOKEN),
                    batch=batch,
                    progress=tell,
                    begins=sizes.extend,
                    rng=seed,
                )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_left(sum(answered), sizes, first, seed)) from None
    seconds = time.monotonic() - began
    summary = {
        "users": len(values),
        "rounds": values.shape[1],
        "sent": receipt.sent,
        "accepted": receipt.accepted,
        "duplicates": receipt.duplicates,
        "refused": dict(receipt.refused),
        "seconds": seconds,
    }
    if as_json:
        console.show_json(summary)
    else:
        console.show(
            f"{counted(receipt.sent, 'report')} of {counted(len(values), 'user')} in "
            f"{counted(values.shape[1], 'round')}: {receipt.accepted} counted, "
            f"{counted(receipt.duplicates, 'duplicate')}, "
            f"{sum(receipt.refused.values())} refused, {seconds:.1f} s"
        )
        for reason, count in sorted(receipt.refused.items()):
            console.warn(f"{count} refused: {reason}")
        if receipt.refused.keys() & {Refusal.EARLY, Refusal.LATE}:
            console.warn(f"the collector {_fitting(has, takes)}")
    if receipt.refused:
        raise typer.Exit(1)


def _left(answered: int, sizes: list[int], first: int, seed: int | None) -> str:
    """A message: what was sent of rounds of these sizes, and how to resume."""
    done = f"the collector has answered {counted(answered, 'report')}"
    if not answered:
        return f"{done}: the same line begins anew"
    whole = sum(total <= answered for total in accumulate(sizes))
    some = answered > sum(sizes[:whole])
    done += f", {whole} of {counted(len(sizes), 'round')}"
    if some:
        done += f" and a part of round {first + whole}"
    if seed is not None:
        return f"{done}; the same line goes on, as --seed keeps it from counting a report twice"
    done += "; without --seed the same line counts new ones beside them"
    rest = len(sizes) - whole - some
    if not rest:
        return done
    return (
        f"{done}, and --first {first + whole + some} --rounds {rest} sends the rounds left, with "
        "the first columns of the table"
    )


def _fitting(has: range, takes: range) -> str:
    """Which rounds a collector takes, and how to send those of a table that are among them."""
    open_now = f"rounds {takes[0]} to {takes[-1]}" if takes else "no round"
    wanted = len(range(max(has[0], takes.start), min(has.stop, takes.stop)))
    advice = f"--first {max(has[0], takes.start)} --rounds {wanted} fits" if wanted else "wait"
    return f"takes {open_now} now, the table has {len(has)} from round {has[0]} on; {advice}"
