"""Which columns of a table hold what, and how rows become users x rounds."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha.errors import ParameterError
from loloha.study.datasets.dataset import MISSING, DataError, extra
from loloha.study.datasets.label import Indices, Symbols, encode, number, read_cells, sort_labels
from loloha.study.datasets.source import PURPOSE

USER_NAMES = frozenset({"user", "user_id", "userid", "uid", "id"})
LARGEST_MATRIX = 1 << 31


@dataclass(frozen=True)
class Roles:
    """Names of the columns; ``round`` is None in a wide table, which may have no ``user``."""

    user: str | None
    round: str | None
    values: list[str]


def choose_roles(
    names: list[str], layout: str, user: str | None, round_: str | None, value: str | None
) -> Roles:
    """Choose the layout, and the column for each role.

    Raises
    ------
    DataError
        If no column is left for rounds.
    ParameterError
        If an argument names no column, or does not go with the layout.
    """
    asked = {"user": user, "round": round_, "value": value}
    for role, column in asked.items():
        if column is not None and column not in names:
            raise ParameterError(f"{role} must be one of {_few(names)}, got {column!r}; name one")
    has_roles = round_ is not None or value is not None
    is_long_by_name = sorted(map(str.lower, names)) == sorted(asked)
    if layout == "long" or (layout == "auto" and (has_roles or is_long_by_name)):
        return _long_roles(names, asked)
    if has_roles:
        raise ParameterError(
            "round and value must be left out for a wide table, got one; pass layout='long'"
        )
    if user is None and names[0].strip().lower() in USER_NAMES:
        user = names[0]
    rounds = [column for column in names if column != user]
    if not rounds:
        raise DataError(
            f"source must have a column for each round, got only {names!r}; check the table"
        )
    return Roles(user, None, rounds)


def _long_roles(names: list[str], asked: dict[str, str | None]) -> Roles:
    """Choose three different columns, by default those named after their role."""
    lower = {column.lower(): column for column in names}
    chosen = []
    for role, column in asked.items():
        found = column or lower.get(role)
        if found is None:
            raise ParameterError(
                f"{role} must be given for a long table without a column of that name, got None; "
                f"pass {role}= one of {_few(names)}"
            )
        chosen.append(found)
    if len(set(chosen)) < len(chosen):
        raise ParameterError(
            f"user, round and value must be three columns, got {chosen!r}; name each once"
        )
    return Roles(chosen[0], chosen[1], [chosen[2]])


def number_users(column: Any, once: bool) -> tuple[Symbols, int]:
    """Number the users in order of appearance, and count them.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    once : bool
        Each row must be another user, as in a wide table.

    Raises
    ------
    DataError
        If a row has no user, or one that must be new is not.
    """
    symbols, dictionaries = number([column])
    users = symbols[:, 0]
    is_anonymous = users == MISSING
    for names in dictionaries:
        if extra("pyarrow", PURPOSE).types.is_large_string(names.type):
            # Without an empty name this finds -1, the rows found before.
            is_anonymous |= users == names.index("").as_py()
    if is_anonymous.any():
        raise DataError(
            f"user must be filled in every row, got {np.count_nonzero(is_anonymous)} rows "
            "without; drop them or fill them"
        )
    n = len(dictionaries[0])
    if once and n < len(users):
        raise DataError(
            f"user must differ from row to row in a wide table, got {len(users) - n} rows "
            "that repeat one; pass layout='long' if a row is a report"
        )
    return users, n


def arrange(
    users: Symbols, n: int, column: Any, is_text: bool, reports: Indices
) -> tuple[list[Hashable], Indices]:
    """Sort the rounds, and lay out rows (user, round, report) as users x rounds.

    Parameters
    ----------
    users : int32[rows]
    n : int
        Number of users.
    column : pyarrow.ChunkedArray
        The round of each row.
    is_text : bool
        The column comes from a CSV.
    reports : int[rows]
        Index of the label, or -1.

    Returns
    -------
    list of tau labels
        The rounds in order.
    int[n, tau]
        Of the type of ``reports``; -1 where there is none.

    Raises
    ------
    DataError
        If a row has no round, a user has two values for one, or there are too many rounds.
    """
    cells = read_cells([column], is_text)
    rounds = sort_labels(cells, natural=True)
    tau = len(rounds)
    places = encode(cells, rounds, loose=is_text)[:, 0]
    absent = np.count_nonzero(places < 0)
    if absent:
        raise DataError(
            f"round must be filled in every row, got {absent} rows without; drop or fill them"
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
    # Of rows for one cell the last one stands: a row that no longer finds its value was overruled.
    conflicts = np.count_nonzero(matrix[cell] != reports[is_report])
    if conflicts:
        raise DataError(
            f"a user must have one value a round, got {conflicts} rows that give another; keep "
            "one row for each user and round"
        )
    return rounds, matrix.reshape(n, tau)


def _few(names: list[str]) -> str:
    """Name the first columns."""
    return repr(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
