"""All options and arguments of the command line: one name has one meaning in all commands.

A command names what it takes in its signature, with a default of its own where it has one. Type and
meaning stand here; those of the parameters of protocols, in the documentation of the protocols.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from loloha.cli import parameter


class Option(NamedTuple):
    """An option: type, help, metavar, least value."""

    kind: Any
    help: str
    metavar: str | None = None
    least: int | None = None
    panel: str | None = None
    anywhere: bool = False
    """Whether some commands take an address for the path."""


VALUES, TABLE, ROUNDS = "Values", "The table", "Rounds"
TERMS, BACKWARDS, WINDOWS = "The collector's terms", "Planning backwards", "Planning for any window"

OPTIONS = {
    "accept_clock": Option(
        bool,
        "The clock is right, although it is more than 7 days ahead of the store's last time, or "
        "more than an hour behind it.",
    ),
    "accept_losses": Option(
        bool,
        "Start although a PostgreSQL setting lets a crash lose acknowledged reports.",
    ),
    "accept_weak_privacy": Option(bool, "Create the campaign although its privacy is weak."),
    "address": Option(str, "A campaign: https://HOST/v1/campaigns/FINGERPRINT.", "URL"),
    "all_values": Option(bool, "--error is for all values at once.", panel=BACKWARDS),
    "alpha": Option(float, "eps_1 / eps_inf."),
    "append_only": Option(
        Path,
        "Only append (sanitised) reports to a Parquet log, and count nothing.",
        "DIR|ADDRESS",
        anywhere=True,
    ),
    "archived": Option(bool, "Also those that are archived or deleted."),
    "archive": Option(str, "Data set to download.", "adult|acs"),
    "assign_keys": Option(
        bool,
        "The collector draws the devices' keys; not of the affine family, some of whose keys "
        "put all values in one cell.",
        panel=TERMS,
    ),
    "attributes": Option(
        int,
        "Number of attributes, of k values each, of one user: compares sharing the budgets with "
        "drawing one attribute for each user.",
    ),
    "audience": Option(str, "Reader of the page.", "officer|user"),
    "batch": Option(int, "Reports in a request.", least=1),
    "bins": Option(int, "Equal parts of --range.", panel=VALUES),
    "cache": Option(Path, "Folder for downloads; else LOLOHA_CACHE, else the user's cache.", "DIR"),
    "campaign": Option(
        str, "A campaign: https://HOST/v1/campaigns/FINGERPRINT, or its document.", "URL|FILE"
    ),
    "collector": Option(str, "Address of a collector, https://HOST.", "COLLECTOR"),
    "command": Option(str, "A program and its arguments, quoted as one."),
    "conf": Option(str, "A setting of Spark, for engine spark.", "NAME=VALUE"),
    "confidence": Option(float, "Probability that an honest client passes."),
    "config": Option(Path, "TOML file with settings.", "FILE"),
    "consent": Option(bool, "The user agrees to this campaign."),
    "copy": Option(str, "The store to copy to, a new one; written as the other.", "COPY"),
    "data_dir": Option(
        Path, "Folder with the files of adult or acs:MT; else what was fetched.", "DIR", panel=TABLE
    ),
    "data_set": Option(
        str,
        "Data set of the paper: Syn, Adult, DB_MT or DB_DE; or Browsers, in compare-guarantees.",
        "NAME",
    ),
    "days": Option(int, "Days for which the key is valid; by default until it is revoked."),
    "delta": Option(float, "Probability with which the bound for shuffled reports may fail."),
    "domain": Option(
        str,
        "All labels that can occur: a file (JSON; one label per line; CSV with a column label) or "
        '"a,b,c".',
        "FILE|LABELS",
        panel=VALUES,
    ),
    "early_seconds": Option(
        int, "Seconds before its beginning from which a round takes reports.", panel=TERMS
    ),
    "engine": Option(str, "Engine that counts the reports.", "duckdb|local|spark"),
    "eps_2": Option(float, "Bound on the loss of any one round, all others known."),
    "error": Option(float, "Target error of one rare value.", panel=BACKWARDS),
    "expected": Option(
        float, "Alarms: expected false ones per round, over all values watched; 0.1 is usual."
    ),
    "fdr": Option(float, "Alarms: expected share of false ones in a round; 0.05 is usual."),
    "filter": Option(bool, "Estimate each round from those up to it: what was known at its time."),
    "follow": Option(
        bool,
        "Run for ever: count a round again when it gets new files, and keep --out up to date. "
        "After an interruption, the same command resumes.",
    ),
    "first": Option(int, "Number of the first round.", least=0),
    "force": Option(bool, "Replace what is at --out."),
    "frontier": Option(bool, "Only show what a lower --eps-2 costs at --k and --eps-inf."),
    "host": Option(
        str,
        "Where to listen; by default 127.0.0.1, this machine alone. Put a proxy with TLS in front "
        "before you open it.",
    ),
    "html": Option(bool, "One HTML page that loads nothing."),
    "jobs": Option(int, "Number of processes; by default one per core."),
    "json": Option(bool, "Print JSON, with stable keys."),
    "key_label": Option(str, "Purpose or holder of the key.", "TEXT"),
    "keep_days": Option(
        int,
        "Days after which the sums of a closed round are deleted; by default never.",
        panel=TERMS,
    ),
    "keep_reports": Option(
        Path,
        "Also write a Parquet log of all (sanitised) reports.",
        "DIR|ADDRESS",
        anywhere=True,
    ),
    "key": Option(str, "An admin key by its name in the list, or - for the key itself on stdin."),
    "label": Option(
        str,
        "A label of the campaign or, where it asks for a range, a number in it: 41, not [40, 43). "
        "Without it, only queued reports are sent.",
        "VALUE",
    ),
    "late_seconds": Option(
        int,
        "Seconds after its end until which a round takes reports, up to 31622400; by default "
        "86400, or 500 rounds if that is less.",
        panel=TERMS,
    ),
    "layout": Option(str, "Form of the table; auto by default.", "auto|wide|long", panel=TABLE),
    "loss": Option(float, "Bound on the loss of any --window rounds.", panel=WINDOWS),
    "level": Option(float, "Confidence level of intervals and error bounds."),
    "limit": Option(
        float,
        "Hard limit on the loss, with --consent: at least the cap, since a device that fell "
        "silent later would reveal when its value changed. inf removes a limit.",
    ),
    "log": Option(
        Path, "Folder or address (s3, gs, abfs, hdfs) of a report log.", "LOG", anywhere=True
    ),
    "log_format": Option(str, "Format of the log: text, or one JSON object per line.", "text|json"),
    "log_level": Option(
        str,
        "Level of the log; info has a line for each request.",
        "debug|info|warning|error",
    ),
    "master": Option(
        str,
        "Where Spark runs: spark://HOST:PORT, yarn, k8s://..., or sc://HOST:PORT (Spark Connect).",
        "URL",
    ),
    "mean": Option(bool, "Only the mean of all rounds, with the error of shared memos."),
    "minimum_cohort": Option(int, "Least number of reports for a round to be shown.", panel=TERMS),
    "n": Option(int, "Reports expected in each round."),
    "name": Option(str, "Name of the campaign, shown to users.", "NAME"),
    "new_admin_key": Option(bool, "Add an admin key, shown once."),
    "number": Option(
        bool,
        "Values are numbers: ask for their mean and quantiles (protocol onebit).",
        panel=VALUES,
    ),
    "offline": Option(bool, "Simulate devices and server, without a collector."),
    "objective": Option(
        str,
        "Criterion among equally good errors: the cap, the loss of any one round, or the AUC of a "
        "change (over users with keys of their own), which then is a column.",
        "cap|round|change",
    ),
    "on_unknown": Option(
        str,
        "Labels outside the domain: refuse them, as by default, or take them as not reported.",
        "error|missing",
        panel=TABLE,
    ),
    "only": Option(str, "A group of checks; by default all.", "GROUP"),
    "only_clear": Option(bool, "Only values significantly above 0, all at once."),
    "only_rounds": Option(str, "Only these rounds, such as 0,3,7-9.", "LIST"),
    "other": Option(str, "Another label, for all other values.", "LABEL", panel=VALUES),
    "markdown": Option(bool, "Markdown, as by default."),
    "out": Option(
        Path, "File or folder for the results, as described above.", "PATH", anywhere=True
    ),
    "parts": Option(
        str, "fig1, fig2, fig3, fig4, table1, table2, or all (the default).", "PART..."
    ),
    "pause": Option(float, "Seconds between two checks of a growing log."),
    "population": Option(
        int, "Users, of whom each round has a random sample; by default nobody is missing.", least=1
    ),
    "port": Option(int, "By default 8770; 0 takes any free one."),
    "preview": Option(
        bool, "Show the bytes of this round's report, or of an example, and what they mean."
    ),
    "project": Option(bool, "Also a column of frequencies that are >= 0 and add up to 1."),
    "protocol": Option(str, "Name of a protocol; see `loloha protocols`.", "PROTOCOL"),
    "publish_every": Option(
        int,
        "Estimates of a round are updated in batches of at least that many reports, by default the "
        "minimum cohort; 0 shows a round once it is closed.",
        panel=TERMS,
    ),
    "quick": Option(bool, "Everything, reduced: about a minute of one core."),
    "range": Option(
        tuple[float, float], "Numbers from LOW to HIGH, in --bins parts.", "LOW HIGH", panel=VALUES
    ),
    "region": Option(str, "For acs: postal code or name of a state.", "STATE"),
    "result": Option(
        Path, "Instead of LOG: rows that the printed statement gave, as Parquet or CSV.", "FILE"
    ),
    "round": Option(str, "Column of rounds, in a long table.", "COLUMN", panel=TABLE),
    "rounds": Option(int, "Number of rounds to simulate; of a table, its first ones.", least=1),
    "runs": Option(int, "Repetitions of each measurement."),
    "seconds": Option(int, "Length of a round.", panel=ROUNDS),
    "every": Option(int, "A user reports in one round out of this many.", panel=ROUNDS),
    "seed": Option(
        int,
        "Equal seeds give equal results, for studies: no privacy then. Without one and without a "
        "default, the operating system's randomness.",
    ),
    "shuffled": Option(
        int,
        "Also say what a round reveals if the reports of N users arrive shuffled, without their "
        "senders.",
        "N",
    ),
    "skip_bad": Option(bool, "Skip damaged or foreign files, and say how many there were."),
    "source": Option(str, "For --sql without LOG: the SQL table of this campaign's reports."),
    "sources": Option(
        str,
        "A campaign's address, a .csv or .parquet file of estimates, or folders of tallies.",
        "SOURCE...",
    ),
    "sql": Option(str, "Print the statement instead of running it.", "duckdb|postgres|spark"),
    "start": Option(
        str,
        "Beginning of round 0: a day, or a moment such as 2026-01-01T08:00:00Z (UTC); by "
        "default now.",
        "DATE",
        panel=ROUNDS,
    ),
    "state": Option(Path, "The user's secret state.", "FILE"),
    "stay": Option(bool, "Keep the dashboard up until Ctrl-C."),
    "store": Option(
        str,
        "sqlite:///PATH or postgresql://USER@HOST/DATABASE; with a password rather as "
        "LOLOHA_STORE. By default sqlite:///loloha.db.",
        "URL",
    ),
    "successor_of": Option(
        str,
        "The earlier campaign that this one replaces: shows what a user who reports to both "
        "spends. Address, file of its document, or with --to its fingerprint.",
        "URL|FILE|FINGERPRINT",
    ),
    "table": Option(
        str,
        "CSV or Parquet file (wide: one row per user, one column per round; long: one per report), "
        "or a data set: syn, adult, browsers, acs:MT (any state).",
        "TABLE",
    ),
    "tallies": Option(
        Path,
        "Folders that `loloha tally` wrote, or files of them; those of one round add up.",
        "TALLY...",
        anywhere=True,
    ),
    "timeout": Option(float, "Seconds to wait for an answer."),
    "to": Option(str, "The collector; without it the document is only printed.", "URL"),
    "token": Option(bool, "Only devices with a token may report; it is shown once.", panel=TERMS),
    "top": Option(int, "Number of values to show, most frequent first."),
    "trust_log": Option(
        bool,
        "Count every row, check no digest: faster, for logs that have no report twice and that "
        "nobody else can write to.",
    ),
    "truth": Option(
        Path, "Also write the true frequencies as .parquet: round, value, truth.", "FILE"
    ),
    "until_eof": Option(bool, "Also stop when standard input ends, as with the parent process."),
    "until": Option(
        str,
        "End: from this day or moment on (UTC) devices draw and send nothing, and nothing is "
        "counted. By default the campaign goes on until it is closed.",
        "DATE",
        panel=ROUNDS,
    ),
    "url": Option(str, "Another folder to download from, for mirrors."),
    "user": Option(str, "Column of users.", "COLUMN", panel=TABLE),
    "users": Option(int, "Number of users to simulate; of a table, its first ones.", least=1),
    "value": Option(str, "Column of values, in a long table.", "COLUMN", panel=TABLE),
    "window": Option(
        int, "Rounds of a window: any such window loses at most --loss.", panel=WINDOWS
    ),
    "visible": Option(float, "Frequency to be distinguished from 0.", panel=BACKWARDS),
    "wait": Option(
        bool,
        "With --consent after a withdrawal: leave out rounds that were answered before. Answered "
        "again, a round counts the user twice.",
    ),
    "watch": Option(str, 'Alarms: only these labels: a,"b, c"; for numbers also mean.', "LABELS"),
    "wide": Option(bool, "Show all columns."),
    "withdraw": Option(bool, "The user withdraws consent: delete key, memo and queue."),
    "yes": Option(bool, "Do not ask first."),
}

GROUPS: dict[str, Callable[[], list[str]]] = {
    "reading": lambda: [
        "domain", "range", "bins", "layout", "user", "round", "value", "on_unknown", "data_dir"
    ],
    "terms": lambda: [
        "late_seconds", "early_seconds", "minimum_cohort", "publish_every", "keep_days"
    ],
    "parameters": lambda: [name for name in parameter.names() if name != "k"],
}  # fmt: skip
"""Options that a command receives together, those that were given, as a dict of this name."""

OLD = {
    "--data": "--data-dir",
    "--labels": "--domain",
    "--patience": "--timeout",
    "--rounds": "--only-rounds",
    "--table": "--source",
    "--users": "--n",
    "--weigh": "--objective",
}
OLD_COMMANDS = {"fleet": "load-test"}
"""Of 0.2.0: options, of commands that have the new one alone, and commands. Gone in 0.4."""


def option(name: str) -> Option:
    """The option of an argument of a command; KeyError if none is meant."""
    own = name.removeprefix("as_").rstrip("_")
    return OPTIONS[own] if own in OPTIONS else Option(*parameter.described(own))
