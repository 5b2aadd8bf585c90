"""Layout of a user's table: its columns of users, rounds and values, and its rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from loloha.campaign.scalar import identity, is_missing
from loloha.checks import counted
from loloha.datasets.arrow_cells import Cells, Indices, declared, read_cells, refuse_rounded
from loloha.datasets.dataset import MISSING, USER_NAMES, DataError
from loloha.datasets.label import GAPS, encode, sort_labels, typed
from loloha.datasets.source import TableColumns
from loloha.errors import ParameterError

MONTH = re.compile("^([0-9]{4})-?(0[1-9]|1[0-2])$")
LARGEST_MATRIX = 1 << 31
MIDNIGHT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]00:00:00(?:\.0+)?")


@dataclass(frozen=True)
class Roles:
    """Names of the columns; ``round`` is None in a wide table, which may have no ``user``."""

    user: str | None
    round: str | None
    values: list[str]


def choose_roles(
    names: list[str],
    index: Sequence[str],
    layout: str,
    user: str | None,
    round_: str | None,
    value: str | None,
) -> Roles:
    """Choose the layout, and the column for each role."""
    asked = {"user": user, "round": round_, "value": value}
    for role, column in asked.items():
        if column is not None and column not in names:
            raise ParameterError(f"{role} must be one of {few(names)}, got {column!r}; name one")
    has_roles = round_ is not None or value is not None
    plain = [name for name in names if name not in index]
    is_long_by_name = any(sorted(map(str.lower, some)) == sorted(asked) for some in (names, plain))
    if layout == "long" or (layout == "auto" and (has_roles or is_long_by_name)):
        return _long_roles(names, asked)
    if has_roles:
        raise ParameterError(
            "round and value must be left out for a wide table, got one; pass layout='long'"
        )
    lower = {name.lower() for name in plain}
    if layout == "auto" and {"round", "value"} <= lower:
        raise DataError(
            "source must be a long or a wide table, got columns named round and value beside "
            "others: pass user=, round= and value= for one row per report, or layout='wide'"
        )
    user = user or _user(plain, index)
    rounds = [column for column in plain if column != user]
    if not rounds:
        raise DataError(
            f"source must have a column for each round, got only {names!r}; check the table"
        )
    return Roles(user, None, rounds)


def _user(plain: list[str], index: Sequence[str]) -> str | None:
    """The column of users of a wide table, by its name or as an index."""
    named = [name for name in plain if name.strip().lower() in USER_NAMES]
    # A value taken for a user is lost; a user taken for a value is published.
    if len(index) + len(named) > 1:
        raise DataError(
            "user must be one column of a wide table, where an index or a column named like a "
            f"user is one, got {few([*index, *named])}; pass user= one of them and drop the "
            "others, or round= and value= too if each row is a report"
        )
    return next(iter([*index, *named]), None)


def round_names(names: Sequence[str]) -> list[str]:
    """Names of the rounds of a wide table: days that pandas wrote as midnights are days."""
    days = [MIDNIGHT.fullmatch(name) for name in names]
    return [day[1] for day in days if day] if all(days) else list(names)


def longer_steps(rounds: Sequence[Hashable]) -> int:
    """Number of steps between rounds that are longer than the shortest by half: gaps."""
    places = [_place(label) for label in rounds]
    if any(place is None for place in places):
        return 0
    steps = np.diff(np.array(places, dtype=np.float64))
    # Months and years are of different lengths.
    return int(np.count_nonzero(steps >= 1.5 * steps.min())) if (steps > 0).any() else 0


def _place(label: Hashable) -> float | None:
    """Where a round lies in time, by its date or its number; None if it says neither."""
    text = str(label)
    with suppress(ValueError):
        # Days and months may be written as numbers, too: 20260105, 202601.
        day = MONTH.sub(r"\1-\2-01", text)
        return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
    with suppress(ValueError):
        return float(text)
    return None


def _long_roles(names: list[str], asked: dict[str, str | None]) -> Roles:
    """Choose three different columns, by default those named after their role."""
    lower = {column.lower(): column for column in names}
    columns_of = {role: column or lower.get(role) for role, column in asked.items()}
    missing = [role for role, column in columns_of.items() if column is None]
    if missing:
        raise ParameterError(
            f"this looks like a long table; name its columns with "
            f"{' and '.join(f'{role}=' for role in missing)} (it has {few(names)})"
        )
    chosen = [column for column in columns_of.values() if column is not None]
    if len(set(chosen)) < len(chosen):
        raise ParameterError(
            f"user, round and value must be three columns, got {chosen!r}; name each once"
        )
    return Roles(chosen[0], chosen[1], [chosen[2]])


def number_users(column: Any, field: Any, is_text: bool, once: bool) -> tuple[Indices, int]:
    """Number the users in order of appearance, and count them."""
    # Users are distinguished as values are: text without blanks around and with its accents
    # composed.
    refuse_rounded("user", column)
    cells = read_cells([column], is_text, [field])
    is_gap = [is_missing(content) for content in cells.seen]
    if is_text and any(content in GAPS for content in cells.seen):
        # Among numbers these mark a gap; among names they are one.
        is_gap = [is_missing(content) for content in typed(cells)]
    numbers: dict[Hashable, int] = {}
    table = [
        MISSING if gap else numbers.setdefault(identity(content), len(numbers))
        for content, gap in zip(cells.seen, is_gap, strict=True)
    ]
    users = cells.looked_up(table)[:, 0]
    anonymous = np.count_nonzero(users == MISSING)
    if anonymous:
        raise DataError(
            f"user must be filled in every row, got {counted(anonymous, 'row')} without a user "
            "(blank, null or nan); drop or fill them"
        )
    if once and len(numbers) < len(users):
        raise DataError(
            "user must differ from row to row in a wide table, got users again in "
            f"{counted(len(users) - len(numbers), 'row')}; where a row is a report, name its "
            "round= and value="
        )
    return users, len(numbers)


def arrange(
    users: Indices, n: int, columns: TableColumns, name: str, reports: Indices
) -> tuple[list[Hashable], Indices]:
    """Sort the rounds, and lay out rows (user, round, report) as users x rounds."""
    column, field = columns.table[name], columns.table.schema.field(name)
    refuse_rounded("round", column)
    cells = read_cells([column], columns.is_text, [field])
    rounds = _declared_order(column, field, cells, columns.categorical) or sort_labels(
        cells, natural=True
    )
    tau = len(rounds)
    places = encode(cells, rounds, loose=columns.is_text)[:, 0]
    absent = np.count_nonzero(places < 0)
    if absent:
        raise DataError(
            f"round must be filled in every row, got {counted(absent, 'row')} without a round; "
            "drop or fill them"
        )
    if n * tau > LARGEST_MATRIX:
        raise DataError(
            f"users x rounds must be at most {LARGEST_MATRIX} cells, got {n} x {tau}; "
            "group times into fewer rounds"
        )
    matrix = np.full(n * tau, MISSING, dtype=reports.dtype)
    is_report = reports != MISSING
    cell = users[is_report].astype(np.int64) * tau + places[is_report]
    matrix[cell] = reports[is_report]
    # Of several rows for one cell the last one stays: rows that differ from it conflict.
    conflicts = int(np.count_nonzero(matrix[cell] != reports[is_report]))
    if conflicts:
        raise DataError(
            f"{counted(conflicts, 'row')} repeat{'s' if conflicts == 1 else ''} a user and round "
            "with another value; keep one row for each user and round"
        )
    return rounds, matrix.reshape(n, tau)


def _declared_order(
    column: Any, field: Any, cells: Cells, categorical: Collection[str]
) -> list[Hashable]:
    """The rounds there are, in the order of their type, if it has one of its own."""
    order = declared([column], [field], categorical, certain=False)
    if order is None or not order.is_certain:
        return []
    there = {identity(content) for content in cells.seen}
    return [label for label in order.labels if identity(label) in there]


def few(names: list[str]) -> str:
    """Name the first columns."""
    return repr(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
