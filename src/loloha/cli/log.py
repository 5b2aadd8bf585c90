"""``loloha log``: make report logs, and look at what is in one."""

from __future__ import annotations

import json
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from loloha.address import Address, Location, at, snapshot
from loloha.checks import counted
from loloha.cli import campaign_file, console
from loloha.cli.command import Commands
from loloha.cli.input_table import load, load_for
from loloha.cli.results_folder import writing_to
from loloha.cli.table_file import new_file
from loloha.errors import LolohaError, ParameterError

MOST_UNASKED = 20_000_000

group = Commands(name="log", no_args_is_help=True, help="Make report logs, and look into them.")


@group.command()
def generate(
    table: str,
    *,
    campaign: str,
    out: Location,
    seed: int | None = None,
    users: int | None = None,
    rounds: int | None = None,
    truth: Path | None = None,
    as_json: bool = False,
    reading: dict[str, Any],
) -> None:
    """Write the reports of simulated devices: any number of users, in little memory.

    For benchmarks and rehearsals: reports follow the distribution of real clients, but come from a
    seed. --out is the folder of the log. A file's cells are read as labels of the campaign, unless
    --domain or --range says otherwise.
    """
    from loloha import reportlog
    from loloha.population.generation import truth as true_counts

    agreed = campaign_file.load(campaign)
    log = reportlog.ReportLog(out, agreed)
    if files := sum(map(len, log.names().values())):
        raise LolohaError(
            f"--out must hold no reports of this campaign yet, got {counted(files, 'file')} of "
            f"them, each whole, in {str(log.folder)!r}; name another folder, or go on by "
            "`loloha tally`"
        )
    if truth is not None and truth.exists():
        raise LolohaError(f"--truth must be new, got {str(truth)!r}; name another file")
    values = _values(agreed, table, reading)
    _refuse_unasked(values, users, rounds)
    with ExitStack() as stack:
        if truth is not None:
            # Whole before the log is, and named right after it.
            draft = stack.enter_context(new_file(truth, "--truth"))
            _write_truth(draft, true_counts(values, log.protocol.k, users, rounds))
        stack.enter_context(writing_to(out))
        counts = reportlog.generate(
            log,
            values,
            users=users,
            rounds=rounds,
            progress=stack.enter_context(console.working("generating")),
            rng=secrets.randbits(63) if seed is None else seed,
        )
    summary = {
        "log": str(out), "campaign": agreed.fingerprint, "rounds": len(counts),
        "reports": (reports := log.scan(verify=False).rows),
    }  # fmt: skip
    if as_json:
        console.show_json(summary)
    else:
        console.show(
            f"{counted(reports, 'report')} of {counted(len(counts), 'round')} in {log.folder}; "
            f"`loloha tally {out} --campaign {campaign}` goes on"
        )


def _values(agreed: Any, table: str, reading: dict[str, Any]) -> Any:
    """The users' values as indices of the campaign's, int[n, tau]."""
    from loloha.campaign import Campaign
    from loloha.reportlog import rules

    if isinstance(agreed, Campaign):
        return load_for(agreed, table, reading)
    dataset, k = load(table, reading), rules(agreed).k
    if dataset.k > k:
        raise ParameterError(
            f"TABLE must have at most k = {k} labels, got {dataset.k}; "
            "use a campaign for its domain"
        )
    return dataset.values


def _refuse_unasked(values: Any, users: int | None, rounds: int | None) -> None:
    """Refuse to write an unexpectedly large log without an explicit number of rounds."""
    n, tau = users or len(values), values.shape[1]
    if rounds is None and n * tau > MOST_UNASKED:
        raise ParameterError(
            f"--rounds must be given for more than {MOST_UNASKED} reports, got none: {n} users in "
            f"the table's {tau} rounds make up to {n * tau}; --rounds {tau} writes all of them"
        )


def _write_truth(path: Path, counts: Any) -> None:
    import numpy as np
    import pyarrow
    from pyarrow import parquet

    rounds, values = np.nonzero(counts)
    users = counts[rounds, values]
    share = users / counts.sum(axis=1)[rounds]
    columns = {"round": rounds, "value": values, "truth": share}
    parquet.write_table(pyarrow.table(columns), at(path)[0])


@group.command()
def show(log: Location, *, as_json: bool = False) -> None:
    """List the campaigns of a log by its files, without checking them."""
    from concurrent.futures import ThreadPoolExecutor

    from loloha.reportlog.folder import readable, readers, round_of, visible

    listed: list[dict[str, Any]] = []
    there = isinstance(log, Address) or log.is_dir()
    folders: list[Location] = [*readable(log).glob("campaign=*")] if there else []
    for folder in sorted((folder for folder in folders if folder.is_dir()), key=str):
        here = snapshot(folder)
        rounds = [path for path in visible(here) if round_of(path) is not None]
        files = [path for round in rounds for path in visible(round) if path.suffix == ".parquet"]
        with ThreadPoolExecutor(readers(log)) as pool:
            footers = list(pool.map(_footer, files))
        protocols = (footer.get("protocol") for footer, rows in footers if rows is not None)
        listed.append({
            "campaign": folder.name.partition("=")[2],
            "protocol": next(filter(None, protocols), None),
            "rounds": len({path.parent for path in files}),
            "files": len(files),
            "rows": sum(rows or 0 for _, rows in footers),
            "unreadable": sum(rows is None for _, rows in footers),
        })  # fmt: skip
    if not listed:
        raise LolohaError(f"LOG must hold folders campaign=..., got {str(log)!r}; check the path")
    if as_json:
        console.show_json(listed)
    else:
        columns = ("campaign", "protocol", "rounds", "files", "rows", "unreadable")
        rows = [
            [entry[name] if name != "protocol" else (entry[name] or {}).get("type")
             for name in columns]
            for entry in listed
        ]  # fmt: skip
        console.show_table(columns, rows)


def _footer(path: Location) -> tuple[dict[str, Any], int | None]:
    """A file's metadata and number of rows; None if unreadable."""
    from pyarrow import ArrowException, parquet

    from loloha.reportlog.arrow import METADATA

    try:
        where, filesystem = at(path)
        footer = parquet.read_metadata(where, filesystem=filesystem)
        metadata = json.loads((footer.metadata or {}).get(METADATA, b"{}"))
        return (metadata, footer.num_rows) if isinstance(metadata, dict) else ({}, None)
    except (OSError, ArrowException, ValueError) as error:
        if isinstance(path, Address) and path.mount.is_failing(error):
            raise path.mount.failure(error, str(path)) from None
        return {}, None
