"""The TABLE of a command: a user's file, or one of the data sets by name."""

from __future__ import annotations

import re
import warnings
from ast import literal_eval
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loloha.cli import console
from loloha.cli.command import with_options
from loloha.errors import DomainError, ParameterError

if TYPE_CHECKING:
    from loloha.campaign import Campaign
    from loloha.campaign import Domain as Agreed
    from loloha.datasets import Dataset

_ARGUMENT = re.compile(
    r"\b(layout|user|round|value|domain|on_unknown)="
    r"(?:'([^']*)'|(\"[^\"]*\")|(\.\.\.)|(?=[ ,;)]|$))"
)
BUILT_IN = ("syn", "adult", "acs:STATE")
PANEL = "The table"

Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV or Parquet file (wide: one user a row, one round a column; long: one report "
        "a row), or a data set: syn, adult, acs:MT (any state).",
    ),
]
Domain = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|LABELS",
        help="All labels that can occur: a file (JSON, CSV, a label a line) or "
        '"a,b,c". Without it they are read off the data, which a deployment must not do.',
        rich_help_panel=PANEL,
    ),
]
Range = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--range",
        metavar="LOW HIGH",
        help="Instead of --domain: numbers from LOW to HIGH, in --bins parts.",
        rich_help_panel=PANEL,
    ),
]
Bins = Annotated[int | None, typer.Option(help="Equal parts of --range.", rich_help_panel=PANEL)]


def _option(metavar: str, help: str, kind: Any = str) -> Any:
    return Annotated[kind | None, typer.Option(metavar=metavar, help=help, rich_help_panel=PANEL)]


with_reading = with_options(
    "reading",
    {
        "layout": _option("auto|wide|long", "Form of the table; auto by default."),
        "user": _option("COLUMN", "Column of users."),
        "round": _option("COLUMN", "Long: column of rounds."),
        "value": _option("COLUMN", "Long: column of values."),
        "on_unknown": _option(
            "error|missing",
            "Labels outside the domain: refuse them, as by default, or take them as not reported.",
        ),
        "data": _option("PATH", "Files of adult or acs:MT, if not fetched.", Path),
    },
)
"""Gives a command the options of how its TABLE is read, as its argument ``reading``; see `load`."""


def load(
    table: str, domain: str | Agreed | None, *, data: Path | None = None, **options: Any
) -> Dataset:
    """Values of users over rounds.

    Parameters
    ----------
    table : str
        Path of a CSV or Parquet file, or "syn", "adult", "acs:MT" (any state).
    domain : str or campaign's domain, optional
        Path of a file with the labels, or the labels themselves, separated by commas; or a
        campaign's, which decides how a file is read and is no matter for the others.
    data : Path, optional
        Where the files of Adult or of the person weights lie.
    **options
        Those given, as for `loloha.datasets.table`.

    Raises
    ------
    LolohaError
        If there is no such table, it is malformed, or an option does not go with it.
    """
    from loloha import datasets

    given = dict(options)
    if domain is not None:
        given["domain"] = _domain(domain) if isinstance(domain, str) else domain
    name, _, state = table.partition(":")
    if name not in ("syn", "adult", "acs"):
        _refuse("--data", data, f"a file as TABLE; {', '.join(BUILT_IN)} take it")
        return _table(table, given)
    if not isinstance(domain, str):
        given.pop("domain", None)
    for option in given:
        _refuse("--" + option.replace("_", "-"), option, f"{name}; it is for files")
    if name == "syn":
        _refuse("--data", data, "syn; it is made up")
        return datasets.syn()
    if name == "adult":
        return datasets.adult(data)
    if not state:
        raise ParameterError("TABLE must name a state, got 'acs'; write acs:MT for Montana")
    return datasets.acs_weights(state, data)


def load_from(
    table: str,
    domain: str | None,
    ends: tuple[float, float] | None,
    bins: int | None,
    **options: Any,
) -> Dataset:
    """`load`, with labels or a range as options give them."""
    return load(table, agreed_domain(table, domain, ends, bins), **options)


def agreed_domain(
    table: str, domain: str | None, ends: tuple[float, float] | None, bins: int | None
) -> str | Agreed | None:
    """The domain that --domain, or --range and --bins, give for a table.

    Raises
    ------
    ParameterError
        If both are given, one of the two is missing, or the table is no file.
    """
    from loloha.campaign import Range as Parts

    if ends is None and bins is None:
        return domain
    if ends is None or bins is None or domain is not None:
        raise ParameterError(
            "domain must be given by --domain, or by --range LOW HIGH and --bins; give one of them"
        )
    if table.partition(":")[0] in ("syn", "adult", "acs"):
        raise ParameterError(f"--range must be left out for {table}; it is for files")
    return Parts(*ends, bins)


def load_for(campaign: Campaign, table: str, domain: str | Agreed | None, **reading: Any) -> Any:
    """The values of a table as indices of a campaign's, int[n, tau].

    A file's cells are read as a device reads them, unless labels are given for it.

    Raises
    ------
    LolohaError
        As `load`; or if some labels are not the campaign's, and it has none for others.
    """
    import numpy as np

    found = load(table, domain or campaign.domain, **reading)
    if domain is None and tuple(found.labels) == tuple(campaign.domain.texts):
        return np.asarray(found.values)
    index = [campaign.domain.index(label) for label in found.labels]
    lacking = sum(place is None for place in index)
    if lacking and campaign.domain.other is None:
        raise ParameterError(
            f"labels of the table must be labels of the campaign, {lacking} are not; create a "
            "campaign with them, or with a label for others"
        )
    last = campaign.domain.k - 1
    # One place more, for -1: no report.
    places = np.array([last if place is None else place for place in index] + [-1])
    return places[np.asarray(found.values)]


def _table(path: str, given: dict[str, Any]) -> Dataset:
    """A user's file; what the loader warns of is told in a line each."""
    from loloha import datasets

    if not Path(path).exists():
        raise datasets.DataError(
            f"TABLE must be an existing file or a data set ({', '.join(BUILT_IN)}), got {path!r}; "
            "check the path, or see `loloha data list`"
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            found = datasets.table(path, **given)
        except (ParameterError, DomainError, datasets.DataError) as error:
            said = in_flags(str(error)).replace("source must", f"TABLE {path!r} must", 1)
            raise type(error)(said) from None
    for one in caught:
        console.warn(in_flags(str(one.message)))
    return found


def in_flags(text: str) -> str:
    """Advice for callers of the function `table`, for users of the command."""

    def flag(found: re.Match[str]) -> str:
        option = "--" + found[1].replace("_", "-")
        if found[2] or found[3]:
            return f"{option} {quote(found[2] or literal_eval(found[3]))}"
        return option + (" FILE" if found[4] else "")

    return _ARGUMENT.sub(flag, text).replace("(loloha.campaign.Range)", "(--range and --bins)")


def _domain(text: str) -> Any:
    """A file where there is one; else labels, as numbers where all of them are."""
    path = Path(text)
    labels = [label.strip() for label in text.split(",")]
    if len(labels) < 2 or path.is_file():
        return path
    try:
        return [int(label) for label in labels]
    except ValueError:
        return labels


def _refuse(flag: str, option: Any, goal: str) -> None:
    if option is not None:
        raise ParameterError(f"{flag} must be left out for {goal}")
