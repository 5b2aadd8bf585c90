"""The tally of a report log as one SQL statement, in several dialects.

Every statement gives rows (round, place, n, duplicates, conflicts): how many reports fell on which
place, and how many further rows of the same reporters were not counted. What a place is depends on
the kind of protocol; `counts_of` makes counts of it.

============== ===================================================================
kind           place
============== ===================================================================
symbol         y
keyed symbol   key * g + y where a table is counted, of thresholds less g; else each value that the
               report supports
bits           256 * (position of a byte) + (the byte)
sampled bits   2 * bucket + bit
============== ===================================================================

Where a report falls on several places, place -1 holds every report once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loloha import checks
from loloha.address import Address, Location
from loloha.encodings import (
    Encoding,
    Hashed,
    HiddenThreshold,
    OneHot,
    SampledBuckets,
    Symbols,
    Threshold,
    for_encoding,
)
from loloha.encodings.part import SQL
from loloha.engines.base import plain_path
from loloha.engines.dialect import DIALECTS, Dialect
from loloha.errors import ParameterError
from loloha.hashing import MERSENNE_31, AffineHash, HashFamily, PrimeHash
from loloha.protocols import Protocol
from loloha.reportlog import column

if TYPE_CHECKING:
    from loloha.arrays import Ints

EVERY_REPORT = -1
_DIGITS = "'0123456789ABCDEF'"


class _Recipe(NamedTuple):
    """The parts of a statement that depend on the kind of protocol."""

    report: str
    """The report as one value, ordered alike everywhere."""
    valid: str
    """Whether key and y are in range."""
    placed: str | None
    """From ``counted`` to rows with a place; None where the report is its only place."""


def statement(
    protocol: Protocol,
    dialect: str,
    source: str,
    *,
    guard: bool = True,
    one_round: int | None = None,
    total: bool = False,
    tasks: int | None = None,
) -> str:
    """The SQL that tallies all rounds of a campaign."""
    # ``tasks`` is for Spark: all rows of a reporter go to one of that many tasks first. Nearly each
    # row has a reporter of its own, so that adding up before would only fill memory. Of a
    # reporter's contradicting reports the smallest counts if the pseudonym starts with a zero bit,
    # else the largest: a fair coin that every engine tosses alike, in whatever order rows come. A
    # client that by mistake draws twice then adds noise but no bias; the smallest alone would
    # favour small symbols.
    speech = DIALECTS[checks.choice("dialect", dialect, DIALECTS)]
    recipe = SQL.required(protocol.encoding).recipe(protocol.encoding, speech)
    hint = "" if tasks is None else f"/*+ REPARTITION({tasks}, reporter) */ "
    valid = (
        f"valid AS (\n  SELECT {hint}{{by}}reporter, {recipe.report} AS report\n"
        f"  FROM {{source}}\n  WHERE {recipe.valid}\n)"
    )
    parts = [valid, _GUARDED.replace("{half}", speech.half) if guard else _TRUSTED]
    if recipe.placed is None:
        place, sums = "report", _SUMS if guard else "0 AS duplicates, 0 AS conflicts"
        rows = "counted"
    else:
        parts.append(f"placed AS (\n{recipe.placed}\n)")
        place, sums, rows = "place", _SUMS_ONCE, "placed"
    by = "round, " if one_round is None else ""
    round = by if one_round is None else f"CAST({one_round} AS BIGINT) AS round, "
    named = "" if place == "place" else " AS place"
    head, groups = f"{round}{place}{named}", f"{by}{place}"
    if total:
        head = (
            "CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,\n"
            f"  CASE WHEN grouping(round) = 1 THEN -1 ELSE {place} END AS place,\n"
            "  CAST(grouping(round) AS BIGINT) AS total"
        )
        groups = f"GROUPING SETS ((round, {place}), ())"
    parts[-1] += f"\nSELECT {head}, count(*) AS n,\n  {sums}\nFROM {rows}\nGROUP BY {groups}"
    return "WITH " + ",\n".join(parts).replace("{by}", by).replace("{source}", source)


def files_of(protocol: Protocol, dialect: str, files: Mapping[int, Sequence[Location]]) -> str:
    """The FROM clause for the files of each round of a log."""
    # Every file is named explicitly: only files of `ReportLog.scan` are read.
    # Columns are those of the files, and the round is written beside them: a folder called ``y=1``
    # or ``round=9`` is only a folder.
    if not any(files.values()):
        raise ParameterError("LOG must hold files of the campaign, got none; check the folder")
    if dialect not in ("duckdb", "spark"):
        raise ParameterError(
            f"dialect must be duckdb or spark for a LOG, got {dialect!r}; "
            "load the reports into a table and name it (source=...)"
        )
    return union(protocol, {round: _sources(dialect, some) for round, some in files.items()})


def union(protocol: Protocol, sources: Mapping[int, Sequence[str]]) -> str:
    """The FROM clause for several rounds, from those of their parts."""
    columns = ", ".join(["reporter", *column.types(protocol.encoding)])
    selected = [
        f"SELECT CAST({round} AS BIGINT) AS round, {columns} FROM {source}"
        for round, listed in sources.items()
        for source in listed
    ]
    return "(\n  " + "\n  UNION ALL ".join(selected) + "\n)"


def _sources(dialect: str, files: Sequence[Location]) -> list[str]:
    """The FROM clause for the files of one round, in one piece or several."""
    if dialect == "spark":
        # One at a time: of several Spark would infer columns from folder names.
        paths = (for_spark(path).removeprefix("file://") for path in files)
        return [f"parquet.`{path.replace('`', '``')}`" for path in paths]
    return [parquet(files)] if files else []


def for_spark(path: Location) -> str:
    """Where Spark finds a file: by its own scheme, or on this machine."""
    if isinstance(path, Address):
        plain_path(path)
        return path.for_spark
    return f"file://{plain_path(path)}"


def parquet(files: Sequence[Location]) -> str:
    """The FROM clause for Parquet files in DuckDB, with their own columns only."""
    listed = ", ".join("'" + _unpatterned(file).replace("'", "''") + "'" for file in files)
    return f"read_parquet([{listed}], hive_partitioning = false)"


def _unpatterned(file: Location) -> str:
    """A path that DuckDB takes for no pattern: in brackets a character of one is itself."""
    place = str(file if isinstance(file, Address) else file.absolute())
    path = re.sub(r"([*?\[])", r"[\1]", place)
    # Beside brackets it takes a backslash for a slash.
    return plain_path(file) if "\\" in place and path != place else path


_TRUSTED = "counted AS (\n  SELECT {by}report, 0 AS duplicates, 0 AS conflicts FROM valid\n)"
_GUARDED = """counted AS (
  SELECT {by}CASE WHEN reporter < {half} THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY {by}reporter
)"""
_SUM = "CAST(coalesce(sum({0}), 0) AS BIGINT) AS {1}"
_SUMS = ", ".join(_SUM.format(name, name) for name in ("duplicates", "conflicts"))
_SUMS_ONCE = ", ".join(
    _SUM.format(f"CASE WHEN place = {EVERY_REPORT} THEN {name} ELSE 0 END", name)
    for name in ("duplicates", "conflicts")
)


def _symbols(encoding: Symbols | HiddenThreshold, speech: Dialect) -> _Recipe:
    return _Recipe("y", f"y BETWEEN 0 AND {encoding.symbols - 1}", None)


def _keyed(encoding: Hashed, speech: Dialect) -> _Recipe:
    return _tabled(encoding.family) if encoding.tabled else _hashed(encoding.family, speech)


def _tabled(family: HashFamily) -> _Recipe:
    last = family.least_key + family.members - 1
    valid = f"key BETWEEN {family.least_key} AND {last} AND y BETWEEN 0 AND {family.g - 1}"
    return _Recipe(f"CAST(key AS BIGINT) * {family.g} + y", valid, None)


def _thresholds(encoding: Threshold, speech: Dialect) -> _Recipe:
    valid = f"key BETWEEN 1 AND {encoding.bins} AND y BETWEEN 0 AND 1"
    return _Recipe("CAST(key AS BIGINT) * 2 + y - 2", valid, None)


def _affine_key(family: AffineHash, speech: Dialect, key: str) -> tuple[str, str, str]:
    """Which keys are valid; a and b of the key."""
    shift = 1 << 31
    valid = f"key BETWEEN {shift} AND {MERSENNE_31 * shift - 1} AND key % {shift} < {MERSENNE_31}"
    return valid, speech.quotient.format(key, shift), f"{key} % {shift}"


def _prime_key(family: PrimeHash, speech: Dialect, key: str) -> tuple[str, str, str]:
    """As `_affine_key`."""
    factor = f"({speech.quotient.format(key, family.modulus)} + 1)"
    return f"key BETWEEN 0 AND {family.members - 1}", factor, f"{key} % {family.modulus}"


_SPLITS: dict[type[HashFamily], Callable[[Any, Dialect, str], tuple[str, str, str]]] = {
    AffineHash: _affine_key,
    PrimeHash: _prime_key,
}


def _hashed(family: HashFamily, speech: Dialect) -> _Recipe:
    split = _SPLITS.get(type(family))
    if split is None:
        raise ParameterError(
            f"hash must be one that SQL can compute, got {family.name!r}; use engine 'local'"
        )
    valid, a, b = split(family, speech, speech.item.format("report", 1))
    valid += f" AND y BETWEEN 0 AND {family.g - 1}"
    hashed = f"({a} * place + {b}) % {family.modulus} % {family.g}"  # type: ignore[attr-defined]
    placed = (
        "  SELECT {by}place, duplicates, conflicts\n"
        f"  FROM counted CROSS JOIN {speech.series.format(EVERY_REPORT, family.k, 'place')} AS v\n"
        f"  WHERE place = {EVERY_REPORT} OR {hashed} = {speech.item.format('report', 2)}"
    )
    return _Recipe(speech.pair.format("key", "CAST(y AS BIGINT)"), valid, placed)


def _one_hot(encoding: OneHot, speech: Dialect) -> _Recipe:
    size, last = (encoding.k + 7) // 8, encoding.k % 8
    digits = speech.hexadecimal.format("y")
    valid = f"octet_length(y) = {size}"
    if last:
        # The bits after the last must be zero; upper-case digits sort as numbers do.
        valid += f" AND substr({digits}, {2 * size - 1}, 2) <= '{(1 << last) - 1:02X}'"

    def digit(offset: str) -> str:
        return f"(position(substr(report, 2 * byte + {offset}, 1) IN {_DIGITS}) - 1)"

    placed = (
        f"  SELECT {{by}}duplicates, conflicts,\n    CASE WHEN byte = {EVERY_REPORT}"
        f" THEN {EVERY_REPORT}\n    ELSE 256 * byte + 16 * {digit('1')} + {digit('2')} END AS place"
        f"\n  FROM counted CROSS JOIN {speech.series.format(EVERY_REPORT, size, 'byte')} AS b"
    )
    return _Recipe(digits, valid, placed)


def _sampled(encoding: SampledBuckets, speech: Dialect) -> _Recipe:
    first, last = speech.item.format("y", 1), speech.item.format("y", encoding.d)
    valid = f"{first} >= 0 AND {last} < {2 * encoding.b} AND {speech.ascending.format('y')}"
    placed = (
        f"  SELECT {{by}}duplicates, conflicts, {speech.each.format('report')} AS place\n"
        "  FROM counted"
    )
    return _Recipe("y", valid, placed)


def counts_of(protocol: Protocol, places: Ints, n: Ints) -> tuple[Ints, int]:
    """Counts of one round, int64[cells], and their reports; a place may come several times."""
    encoding = protocol.encoding
    counts: Ints = np.zeros(encoding.cells, dtype=np.int64)
    all_of_them = places == EVERY_REPORT
    view: _View = SQL.required(encoding)
    reports = int(n[all_of_them].sum()) if view.on_many(encoding) else int(n.sum())
    places, n = places[~all_of_them], n[~all_of_them]
    if len(places) and int(places.min()) < 0:
        raise IndexError("a place below all places")
    view.fold(encoding, counts, places, n)
    return counts, reports


def _fold_cells(encoding: Encoding, counts: Ints, places: Ints, n: Ints) -> None:
    np.add.at(counts, places, n)


def _fold_bytes(encoding: OneHot, counts: Ints, places: Ints, n: Ints) -> None:
    for bit in range(8):
        having = (places >> bit & 1).astype(bool)
        np.add.at(counts, 8 * (places[having] >> 8) + bit, n[having])


def _fold_answers(encoding: SampledBuckets, counts: Ints, places: Ints, n: Ints) -> None:
    ones = (places & 1).astype(bool)
    np.add.at(counts, places[ones] >> 1, n[ones])
    np.add.at(counts, encoding.b + (places >> 1), n)


class _View(NamedTuple):
    """How SQL counts one encoding."""

    recipe: Callable[[Any, Dialect], _Recipe]
    fold: Callable[[Any, Ints, Ints, Ints], None]
    """Adds n reports at each place to the counts."""
    on_many: Callable[[Any], bool]
    """Whether a report falls on several places."""


for_encoding(SQL.name, Symbols, HiddenThreshold)(_View(_symbols, _fold_cells, lambda _: False))
for_encoding(SQL.name, Threshold)(_View(_thresholds, _fold_cells, lambda _: False))
for_encoding(SQL.name, Hashed)(_View(_keyed, _fold_cells, lambda encoding: not encoding.tabled))
for_encoding(SQL.name, OneHot)(_View(_one_hot, _fold_bytes, lambda _: True))
for_encoding(SQL.name, SampledBuckets)(_View(_sampled, _fold_answers, lambda _: True))
