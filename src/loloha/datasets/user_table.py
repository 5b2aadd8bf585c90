"""A user's own table, one row per user or per report, as a data set."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from loloha.campaign.domain import Domain as Agreed
from loloha.campaign.domain import Range
from loloha.campaign.scalar import alike
from loloha.checks import choice, counted
from loloha.datasets.arrow_cells import Cells, Indices, declared, read_cells
from loloha.datasets.dataset import MISSING, DataError, Dataset, PrivacyWarning
from loloha.datasets.identifier import refuse_identifiers
from loloha.datasets.label import (
    OUTSIDE,
    encode,
    encode_for,
    gap_words,
    have_commas,
    kind,
    numbers_of,
    parse_all,
    refuse_infinite,
    sort_labels,
)
from loloha.datasets.label_list import Domain, read_domain
from loloha.datasets.layout import (
    arrange,
    choose_roles,
    few,
    longer_steps,
    number_users,
    round_names,
)
from loloha.datasets.source import read_columns
from loloha.errors import DomainError
from loloha.server.frame import BACKENDS

MANY_LABELS = 30
"""Labels from which on decimals look like measurements."""


def table(
    source: Any,
    *,
    layout: str = "auto",
    user: str | None = None,
    round: str | None = None,
    value: str | None = None,
    domain: Iterable[Hashable] | Agreed | str | Path | None = None,
    name: str | None = None,
    on_unknown: str = "error",
) -> Dataset:
    """Users x rounds from any table.

    Parameters
    ----------
    source : path, frame, Arrow stream or 2-D array
        A CSV file (comma, semicolon or tab; header line; .gz and .bz2 too) or Parquet file; a
        pandas, polars, pyarrow or other frame that narwhals knows; anything with
        ``__arrow_c_stream__``; a NumPy array of labels, [user, round].
    layout : {"auto", "wide", "long"}
        Wide: one row per user, one column per round, in the order of the columns. Long: one row
        per report, with columns for user, round and value; rounds are sorted (numbers and dates by
        value, text by its parts, so that "r2" comes before "r10"), users stay in order of
        appearance. Auto: long if ``round`` or ``value`` is given or the columns are just user,
        round and value; else wide.
    user : str, optional
        Column of users; it is read to check the table and then dropped. In a wide
        table without it, the named index of a pandas frame is taken (in Parquet too), or a column
        named user, user_id, userid, uid or id; where there are several, it must be given. Columns
        without a name, as row numbers have, are left out.
    round, value : str, optional
        Columns of a long table; "round" and "value" by default.
    domain : list of labels, path of a file with one, Labels or Range, optional
        Labels in the order of their index. JSON: a list, or an object with ``labels``; CSV: the
        column ``label``; other text: one label per line. The domain of a campaign reads cells as
        its devices would. Without it the domain is the one that the type of all
        columns declares (ordered or unsorted categories, an enum), else the sorted distinct labels
        of the table, with a `PrivacyWarning`.
    name : str, optional
        By default the stem of the file's name, or "table".
    on_unknown : {"error", "missing"}
        What to do with cells outside the domain: refuse, or take as not reported.

    Returns
    -------
    Dataset
        ``source="user"``; ``rounds`` holds the names of the columns, or the rounds.

    Raises
    ------
    DataError
        If the table cannot be read, is empty or malformed, has two values for one user and round,
        or has no domain of at least two labels; if a column of values holds users, whose cells are
        (nearly) all different. Cells are counted, never shown.
    DomainError
        If cells are outside the domain; says how many.
    ParameterError
        If an argument is unusable, or names a column that is not there.
    ExtraError
        If a library of ``loloha[cli]`` is needed and not installed.

    Warns
    -----
    PrivacyWarning
        If the domain is read off the data.
    UserWarning
        If labels that were read off the data look like gaps or times; if rounds seem to be missing.

    Notes
    -----
    Null, nan and blank text mean: no report. Text is compared in composed form (Unicode NFC) and
    without blanks around, for labels and for users. Labels keep the type of their column; text that
    looks like numbers stays text. A CSV has no types: where every cell of all value columns is a
    number written as it would be written again (not 1.10, 1E2 or 007; NA, NaN, nan and null then
    mean no report), labels are numbers, unless ``domain`` lists text. Numbers are compared by
    value, a float as its shortest decimal; where all floats are whole, as in a pandas column with
    gaps, labels are integers. Booleans are not numbers. Times with a zone are instants, in UTC.
    What is read how, in one table: docs/tables.md.
    """
    choice("layout", layout, ("auto", "wide", "long"))
    choice("on_unknown", on_unknown, ("error", "missing"))
    given = domain if domain is None or isinstance(domain, Agreed) else read_domain(domain)
    columns = read_columns(source)
    arrow, is_text = columns.table, columns.is_text
    roles = choose_roles(arrow.column_names, columns.index, layout, user, round, value)
    if roles.user is not None:
        who, field = arrow[roles.user], arrow.schema.field(roles.user)
        users, n = number_users(who, field, is_text, once=roles.round is None)
    value_columns = [arrow[column] for column in roles.values]
    fields = [arrow.schema.field(column) for column in roles.values]
    is_public = given is not None
    listed = (
        declared(value_columns, fields, columns.categorical, columns.certain)
        if not is_public
        else None
    )
    if listed is not None:
        given, is_public = listed, listed.is_certain
    cells = read_cells(value_columns, is_text, fields)
    refuse = partial(refuse_identifiers, cells, roles, is_wide=layout == "wide")
    odd = [] if is_public else refuse()
    labels, values = _index(cells, given, on_unknown, refuse)
    if not is_public and given is not None:
        # Categories may come from the data, unless some do not occur.
        is_public = len(np.unique(values[values != MISSING])) < len(labels)
    rounds: Sequence[Hashable] = round_names(roles.values)
    if roles.round is not None:
        rounds, values = arrange(users, n, columns, roles.round, values[:, 0])
    if not is_public:
        warnings.warn(
            "the domain was read off the data: fine for a study, but a deployment needs a public "
            "list (domain=...), since labels read off private data leak them",
            PrivacyWarning,
            stacklevel=2,
        )
        if odd:
            warnings.warn(
                f"no other column holds the labels of {few(odd)}, as of a user or a time: if one "
                "is the user, pass user=; if each row is a report, pass round= and value= too",
                UserWarning,
                stacklevel=2,
            )
        if words := gap_words(labels):
            warnings.warn(
                f"labels that were read off the data include {', '.join(words)}, which many "
                "programs write for a missing value; it counts as a value here: leave such cells "
                "blank if nothing was reported",
                UserWarning,
                stacklevel=2,
            )
        if len(labels) >= MANY_LABELS and any(number % 1 for number in numbers_of(labels)):
            warnings.warn(
                f"the {len(labels)} labels that were read off the data are numbers with decimals, "
                "each a value of its own: group them by a domain of parts (loloha.campaign.Range)",
                UserWarning,
                stacklevel=2,
            )
    if gaps := longer_steps(rounds):
        warnings.warn(
            f"rounds seem to be missing in {gaps} of {len(rounds) - 1} steps between them, which "
            "are longer than the shortest and count as one each: add them, with blank values",
            UserWarning,
            stacklevel=2,
        )
    title = name or (_printable(Path(source).stem) if isinstance(source, (str, Path)) else "table")
    provenance = (
        f"User table {title!r}, domain {'given' if is_public else 'read off the data'} "
        f"(n = {len(values)}, k = {len(labels)}, tau = {len(rounds)})."
    )
    library = type(source).__module__.partition(".")[0]
    backend = library if library in BACKENDS else None
    return Dataset(values, tuple(labels), title, "user", provenance, tuple(rounds), backend)


def _printable(name: str) -> str:
    """The name of a file, which may be no UTF-8, as text that can be."""
    return name.encode(errors="replace").decode()


def _index(
    cells: Cells, given: Domain | Agreed | None, on_unknown: str, refuse: Callable[..., object]
) -> tuple[Sequence[Hashable], Indices]:
    """Labels, and the index of each cell among them; ids are refused, others may be outside."""
    if isinstance(given, Agreed):
        labels: Sequence[Hashable] = given.texts
        indices = encode_for(cells, given)
        others = indices == given.k - 1 if given.other is not None else False
        refuse((indices == OUTSIDE) | others, given)
    else:
        labels = sort_labels(cells) if given is None else _listed(cells, given)
        if len(labels) < 2:
            raise DataError(
                f"source must hold at least two different labels, got {len(labels)}; "
                "pass domain= with all that can occur"
            )
        if number := alike(label for label in labels if isinstance(label, str)):
            raise DataError(
                f"labels must look different, got {number} that look like another or like nothing "
                "(characters that nobody sees, or letters of another alphabet); clean the cells"
            )
        loose = cells.is_text or (given is not None and given.is_text)
        indices = encode(cells, labels, loose)
    is_outside = indices == OUTSIDE
    if isinstance(given, Domain):
        refuse(is_outside)
    outside = np.count_nonzero(is_outside)
    if outside and on_unknown == "error":
        raise DomainError(
            f"source must hold only labels of the domain, got "
            f"{counted(outside, 'cell')} outside{_wanted(cells, given, labels)}; correct them, "
            "pass a domain that has them, or take them as not reported with on_unknown='missing'"
        )
    indices[is_outside] = MISSING
    if np.all(indices == MISSING):
        raise DataError("source must hold at least one report, got none; check the columns")
    return labels, indices


def _listed(cells: Cells, given: Domain) -> Sequence[Hashable]:
    """Labels of a domain; those of a text file take the type of the cells they are for."""
    refuse_infinite(given.labels, given.is_text)
    if given.is_text and (cells.is_text or not any(kind(seen) == "text" for seen in cells.seen)):
        return parse_all([str(label) for label in given.labels])
    return given.labels


def _wanted(cells: Cells, given: Domain | Agreed | None, labels: Sequence[Hashable]) -> str:
    """Why cells are outside: the campaign's requirement, or different kinds of cells and labels."""
    if isinstance(given, Agreed):
        point = ", with a decimal point and no comma" if have_commas(cells.seen) else ""
        return f" (each must be {given.wanted}{point if isinstance(given, Range) else ''})"
    kinds = {kind(seen) for seen in cells.seen if seen is not None}
    listed = {kind(label) for label in labels}
    if cells.is_text or kinds & listed:
        return ""
    return f" ({' and '.join(sorted(kinds))}, where the domain has {' and '.join(sorted(listed))})"
