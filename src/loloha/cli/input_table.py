"""The TABLE of a command: a user's file, or one of the data sets by name."""

from __future__ import annotations

import re
import warnings
from ast import literal_eval
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from loloha.checks import counted
from loloha.cli import console
from loloha.cli.parameter import flag
from loloha.errors import CampaignError, DomainError, ParameterError

if TYPE_CHECKING:
    from loloha.campaign import Campaign, Range
    from loloha.campaign.domain import Scale
    from loloha.datasets import Dataset
    from loloha.protocols import Protocol

_ARGUMENT = re.compile(
    r"\b(layout|user|round|value|domain|on_unknown)="
    r"(?:'([^']*)'|(\"[^\"]*\")|(\.\.\.)|(?=[ ,;)]|$))"
)
BUILT_IN = ("syn", "adult", "browsers", "acs:STATE")


def load(table: str, reading: Mapping[str, Any], campaign: Campaign | None = None) -> Dataset:
    """Values of users over rounds."""
    from loloha import datasets

    given = dict(reading)
    folder = given.pop("data_dir", None)
    name, _, state = table.partition(":")
    if name not in ("syn", "adult", "browsers", "acs"):
        if folder is not None:
            takers = ", ".join(BUILT_IN)
            raise ParameterError(
                f"--data-dir must be left out for a file as TABLE; {takers} take it"
            )
        return _table(table, given, campaign)
    if given:
        raise ParameterError(
            f"{flag(next(iter(given)))} must be left out for {name}; it is for files"
        )
    if folder is not None and name in ("syn", "browsers"):
        raise ParameterError(f"--data-dir must be left out for {name}; it reads no files")
    if name == "syn":
        return datasets.syn()
    if name == "adult":
        return datasets.adult(folder)
    if name == "browsers":
        return datasets.browsers()
    if not state:
        raise ParameterError("TABLE must name a state, got 'acs'; write acs:MT for Montana")
    return datasets.acs_weights(state, folder)


def scale_of(dataset: Dataset, reading: Mapping[str, Any]) -> Scale | None:
    """The numbers that the values stand for; None unless they are equally spaced."""
    from loloha.campaign import Labels, Range

    domain = domain_of(*(reading.get(name) for name in ("domain", "range", "bins")))
    if isinstance(domain, Range):
        return domain.scale
    with suppress(CampaignError):
        return Labels(tuple(map(str, dataset.labels))).scale
    return None


def require_numbers(protocol: type[Protocol], dataset: Dataset, reading: Mapping[str, Any]) -> None:
    """Refuse labels read off the data whose mean and quantiles would be those of positions."""
    from loloha.datasets.label import have_commas

    if protocol.histogram or reading.get("domain") or scale_of(dataset, reading):
        return
    if any(isinstance(label, str) for label in dataset.labels):
        comma = have_commas(dataset.labels)
        seen = "numbers with a decimal comma; write a point," if comma else "text;"
    else:
        seen = "decimals, or integers in unequal steps;"
    raise ParameterError(
        f"values for {protocol.name} must be integers in equal steps or numbers of a range, got "
        f"{seen} give --range LOW HIGH and --bins N, or list ordered labels by --domain"
    )


def load_for(campaign: Campaign, table: str, reading: Mapping[str, Any]) -> Any:
    """The values of a table as indices of a campaign's, int[n, tau]."""
    # A file's cells are read as a device reads them, unless labels are given for it.
    import numpy as np

    dataset = load(table, reading, campaign)
    if tuple(dataset.labels) == tuple(campaign.domain.texts):
        return np.asarray(dataset.values)
    index = [campaign.domain.index(label) for label in dataset.labels]
    lacking = sum(place is None for place in index)
    if lacking and campaign.domain.other is None:
        raise ParameterError(
            f"labels of the table must be labels of the campaign, got "
            f"{counted(lacking, 'other')}; create a campaign with them, or with a label for others"
        )
    last = campaign.domain.k - 1
    # One place more, for -1: no report.
    places = np.array([last if place is None else place for place in index] + [-1])
    return places[np.asarray(dataset.values)]


def domain_of(
    domain: str | None, ends: tuple[float, float] | None, bins: int | None, other: str | None = None
) -> Path | list[str] | Range | None:
    """What --domain, or --range and --bins, give: a file, labels or parts; else None."""
    from loloha.campaign import Range

    if ends is None and bins is None:
        if domain is None:
            return None
        path, labels = Path(domain), [label.strip() for label in domain.split(",")]
        return path if len(labels) < 2 or is_file(path) else labels
    if ends is None or bins is None or domain is not None:
        raise ParameterError(
            "domain must be given by --domain, or by --range LOW HIGH and --bins; give one of them"
        )
    return Range(*ends, bins, other)


def is_file(path: Path) -> bool:
    """Whether there is such a file; a list of labels can be longer than any name."""
    with suppress(OSError):
        return path.is_file()
    return False


def in_flags(text: str) -> str:
    """Advice for callers of the function `table`, for users of the command."""

    def written(match: re.Match[str]) -> str:
        option = flag(match[1])
        if match[2] or match[3]:
            return f"{option} {quote(match[2] or literal_eval(match[3]))}"
        return option + (" FILE" if match[4] else "")

    return _ARGUMENT.sub(written, text).replace("(loloha.campaign.Range)", "(--range and --bins)")


def _table(path: str, given: dict[str, Any], campaign: Campaign | None) -> Dataset:
    """A user's file; warnings of the loader are printed line by line."""
    from loloha import datasets
    from loloha.campaign import Range

    domain: Any = domain_of(*(given.pop(name, None) for name in ("domain", "range", "bins")))
    if isinstance(domain, list):
        with suppress(ValueError):
            domain = [int(label) for label in domain]
    wider = "widen --range" if isinstance(domain, Range) else "list them in --domain"
    if domain is None and campaign is not None:
        domain, wider = campaign.domain, "create a campaign with them or with a label for others"
    if not Path(path).exists():
        raise datasets.DataError(
            f"TABLE must be an existing file or a data set ({', '.join(BUILT_IN)}), got {path!r}; "
            "check the path, or see `loloha data list`"
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            dataset = datasets.table(
                path, **given, **({} if domain is None else {"domain": domain})
            )
        except (ParameterError, DomainError, datasets.DataError) as error:
            message = in_flags(str(error)).replace("source must", f"TABLE {path!r} must", 1)
            message = message.replace("pass a domain that has them", wider, 1)
            raise type(error)(message) from None
    for warning in caught:
        console.warn(in_flags(str(warning.message)))
    return dataset
