"""Detection of columns of user ids: ids are all different, values repeat."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from loloha.campaign.domain import Domain as Agreed
from loloha.campaign.domain import Range
from loloha.campaign.scalar import identity, is_missing
from loloha.datasets.arrow_cells import Cells
from loloha.datasets.dataset import MISSING, DataError
from loloha.datasets.label import typed
from loloha.datasets.layout import Roles, few

FEWEST_REPORTS = 10
"""Cells from which a column's content decides; below, only its name."""
FEWEST_DIFFERENT = 4
"""Cells from which those of a column that all differ beside repeated ones are ids."""
_NAME = re.compile(r"(?:^|[\W_])(?i:id|uuid|guid|e-?mail)$|[a-z](?:ID|Id)$")
MANY_REPORTS = 30
"""Cells from which repeated ids are detected, as with two rows per user."""
_NEARLY, _HALF = 0.9, 0.5
_CHANCE = math.log(1e-3)


class _Column(NamedTuple):
    """Statistics of a column."""

    name: str
    reports: int
    distinct: int
    apart: float
    """Share of its labels that no other column holds."""

    @property
    def ratio(self) -> float:
        """Share of cells that differ."""
        return self.distinct / max(self.reports, 1)


def refuse_identifiers(
    cells: Cells,
    roles: Roles,
    outside: Any = None,
    agreed: Agreed | None = None,
    is_wide: bool = False,
) -> list[str]:
    """Refuse columns that hold ids; return others whose labels are in no other, as times are."""
    columns, labels = _looks(cells, roles.values)
    suspects = [column for column in columns if _stands_out(column, columns, labels)]
    # Numbers of a range can all differ, in every round.
    is_range = isinstance(agreed, Range)
    if not (suspects or is_range) and all(
        _log_chance(column, labels) < _CHANCE for column in columns
    ):
        suspects = columns
    if outside is not None:
        ratio = outside.mean(axis=0)
        strange = {name for name, share in zip(roles.values, ratio, strict=True) if share > _HALF}
        strange |= _plain_numbers(cells, columns) if is_range else set()
        suspects = [suspect for suspect in suspects if suspect.name in strange]
    if not suspects:
        lone = [
            column.name
            for column in columns
            if column.reports >= FEWEST_REPORTS and len(columns) > 1 and column.apart == 1
        ]
        if not is_wide and outside is None and len(lone) == len(columns) and not _are_alike(lone):
            raise DataError(
                f"columns must be rounds of one attribute, got columns that share no label: "
                f"{few(lone)}; if each row is a report, pass user=, round= and value=; if each "
                "column is a round, pass layout='wide'"
            )
        return lone
    name, repeats = suspects[0].name, suspects[0].ratio < _NEARLY
    differ = f"{suspects[0].distinct} of {suspects[0].reports} of its cells differ"
    if roles.round is not None:
        raise DataError(
            f"value must be a column whose labels come again, got {name!r}: {differ}; name it by "
            "value=, or list the labels by domain="
        )
    if suspects == columns and outside is None:
        raise DataError(
            f"columns must hold values that come again, got {name!r}: {differ}, so that nothing "
            "can be counted; list all values by domain=, or give numbers a domain of parts "
            f"(loloha.campaign.Range); if it is a user id, pass user={name!r}"
        )
    advice = f"pass user={name!r}"
    if repeats and outside is None:
        advice += ", and round= and value= if each row is a report, or drop the column"
    if roles.user is not None:
        advice = f"the user is {roles.user!r}: drop the column"
    looks = "looks like a user id" + " or another attribute" * repeats
    raise DataError(
        f"{name} {looks}; {advice} ({differ}; if it is a round, list its labels by domain=)"
    )


def _looks(cells: Cells, names: Sequence[str]) -> tuple[list[_Column], int]:
    """How each column looks, and the number of all labels."""
    numbers: dict[Any, int] = {}
    table = [
        MISSING if is_missing(content) else numbers.setdefault(identity(content), len(numbers))
        for content in typed(cells)
    ]
    reports = [column[column != MISSING] for column in cells.looked_up(table).T]
    distinct = [np.unique(column) for column in reports]
    columns_of = np.bincount(np.concatenate(distinct), minlength=1)
    return [
        _Column(
            name, len(column), len(own), float((columns_of[own] == 1).mean()) if len(own) else 0
        )
        for name, column, own in zip(names, reports, distinct, strict=True)
    ], len(numbers)


def _stands_out(column: _Column, columns: Sequence[_Column], labels: int) -> bool:
    """Whether a column's cells are ids beside others that come again."""
    # Cells that all differ can be values, where there are many of them; other rounds then do so
    # too. A round may bring new labels, of a release, but is named as other rounds are.
    differ = 1 < column.distinct == column.reports
    is_named = _NAME.search(column.name.strip()) is not None
    is_unlikely = differ and _log_chance_of_none(column.reports, labels) < _CHANCE
    repeats = any(other.distinct < other.reports for other in columns)
    if differ and (is_named or is_unlikely) and repeats:
        return True
    is_odd = _is_named_otherwise(column, columns)
    if column.distinct >= FEWEST_REPORTS and column.apart >= _HALF and is_odd:
        return True
    # Users of a long table, beside its rounds and values, have more labels than both together.
    others = [other for other in columns if other is not column]
    is_larger = column.distinct > 2 * sum(other.distinct for other in others)
    if is_larger and all(other.reports > column.reports / 2 for other in others):
        is_long = column.reports >= MANY_REPORTS and column.distinct >= FEWEST_REPORTS
        if others and is_long and not _are_alike([other.name for other in columns]):
            return True
    if column.reports < FEWEST_REPORTS:
        tells = is_named or (is_odd and repeats and column.reports >= FEWEST_DIFFERENT)
        return len(columns) > 1 and differ and column.apart == 1 and tells
    if not any(other.ratio <= column.ratio / 2 for other in columns):
        return False
    least = _HALF if column.reports >= MANY_REPORTS else _NEARLY
    is_apart = column.apart >= _NEARLY and column.ratio >= least
    return is_apart or _log_chance(column, labels) < _CHANCE


def _is_named_otherwise(column: _Column, columns: Sequence[_Column]) -> bool:
    """Whether the names of all others, two at least, differ by digits alone, and not its own."""
    others = [other.name for other in columns if other is not column]
    return len(others) > 1 and _are_alike(others) and not _are_alike([column.name, *others])


def _are_alike(names: Sequence[str]) -> bool:
    """Whether the names differ by digits alone."""
    return len({re.sub(r"\d+", "0", name) for name in names}) == 1


def _log_chance(column: _Column, k: int) -> float:
    """Log-probability of so few repeats, for values out of k at equal frequencies, at most."""
    # As a logarithm: of no repeat exactly, of some by the Poisson distribution; 0 for so many, or
    # so few reports, that they say nothing.
    n, repeats = column.reports, column.reports - column.distinct
    if n < FEWEST_REPORTS or column.ratio < _NEARLY:
        return 0.0
    if not repeats:
        return _log_chance_of_none(n, k)
    mean = n * (n - 1) / (2 * k)
    terms = [i * math.log(mean) - mean - math.lgamma(i + 1) for i in range(repeats + 1)]
    return max(terms) + math.log(sum(math.exp(term - max(terms)) for term in terms))


def _log_chance_of_none(n: int, k: int) -> float:
    """Log-probability that n values out of k at equal frequencies all differ; less at others."""
    return math.lgamma(k + 1) - math.lgamma(k - n + 1) - n * math.log(k)


def _plain_numbers(cells: Cells, columns: Sequence[_Column]) -> set[str]:
    """Names of columns, beside others that repeat, of nothing but integers: no measurements."""
    # Measurements of any round may all differ, and then do so in the other rounds as well.
    repeats = [column for column in columns if column.ratio < _HALF]
    whole = np.array([*(isinstance(content, int) for content in typed(cells)), True])
    return {
        name.name
        for name, column in zip(columns, cells.symbols.T, strict=True)
        if repeats and name.distinct == name.reports and whole[column].all()
    }
