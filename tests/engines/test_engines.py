"""Every engine gives the tally that a few lines of plain Python give, from whatever log."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from loloha import BiLOLOHA
from loloha.engines import REGISTRY, make_engine, tally
from loloha.errors import ParameterError
from loloha.report import Report

PROTOCOL = BiLOLOHA(k=11, eps_inf=2.0, eps_1=1.0)


def test_the_registry_names_modules():
    for name in REGISTRY:
        if name != "spark":
            assert make_engine(name).name == name
    with pytest.raises(ParameterError, match="engine must be one of"):
        make_engine("abacus")


def expected(protocol, rows: Iterable[tuple[bytes, Any, Any]], guard: bool) -> tuple[Any, ...]:
    """Counts, n, duplicates, conflicts and invalid rows, one row after the other."""
    tally, encoding = protocol.tally(), protocol.encoding
    invalid = 0
    by_reporter = defaultdict(list)
    for number, (reporter, key, y) in enumerate(rows):
        keys = None if key is None else np.array([key])
        if not encoding.valid(keys, np.array([y]))[0]:
            invalid += 1
            continue
        by_reporter[reporter if guard else number].append(in_order(key, y))
    duplicates = conflicts = 0
    for who, reports in by_reporter.items():
        counted = min(reports) if not guard or who < b"\x80" else max(reports)
        tally.add(counted[-1])
        if len({order for order, _ in reports}) == 1:
            duplicates += len(reports) - 1
        else:
            conflicts += len(reports) - 1
    return tally.counts.tolist(), tally.n, duplicates, conflicts, invalid


class Sortable(Report):
    """Never compared: equal orders mean equal reports."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False


def in_order(key: Any, y: Any) -> tuple[Any, Report]:
    """The report as (what it is ordered by, itself)."""
    if np.ndim(y) == 0:
        key = None if key is None else int(key)
        return (-1 if key is None else key, int(y)), Sortable(key, int(y))
    packed = y.astype(np.uint8).tobytes()
    if key is None:
        return packed, Sortable(None, packed)
    bits = np.unpackbits(y, bitorder="little")
    return tuple(2 * key + bits[: len(key)]), Sortable(tuple(map(int, key)), packed)


def spoilt(table: pa.Table, protocol) -> pa.Table:
    """The rows of ``table`` with every kind of fault, in its first rows."""
    kind, encoding = protocol.encoding.kind, protocol.encoding
    y = table["y"].to_pylist()
    key = table["key"].to_pylist() if "key" in table.column_names else None
    if kind in ("symbol", "keyed symbol"):
        y[0:3] = [-1, protocol.g, 2**31 - 1]
    if kind == "keyed symbol":
        wrong = [0, -1, -(2**31)]
        if encoding.key_bits == 62:
            wrong += [2**31 - 1, 5 * 2**31 + 2**31 - 1, 2**62 - 1, 2**63 - 1, -(2**63)]
        else:
            wrong += [encoding.family.size, 2**31 - 1]
        key[3 : 3 + len(wrong)] = wrong
    if kind == "bits" and encoding.k % 8:
        y[0] = y[0][:-1] + bytes([y[0][-1] | 1 << encoding.k % 8])
        y[1] = y[1][:-1] + b"\xff"
    if kind == "sampled bits":
        y[0] = [*y[0][:-1], 2 * encoding.b]
        y[1] = [-1, *y[1][1:]]
        if encoding.d > 1:
            y[2] = y[2][::-1]
            y[3] = [y[3][0] ^ 1, y[3][0], *y[3][2:]]
    columns = {"reporter": table["reporter"], "key": key, "y": y}
    arrays = [pa.array(columns[field.name], field.type) if field.name != "reporter"
              else columns["reporter"] for field in table.schema]  # fmt: skip
    return pa.Table.from_arrays(arrays, schema=table.schema)


@pytest.fixture
def messy(draw, make_log, rewrite):
    """A log of three rounds with replays, contradictions and faults, cut in two ways."""

    def make(protocol) -> tuple[Any, Any, dict[int, list[tuple[bytes, Any, Any]]]]:
        rounds = {}
        for round in (0, 3, 12):
            reports = draw(protocol, 60, round)
            other = draw(protocol, 60, 100 + round)
            twice = other[:]
            twice.reporters = reports.reporters
            again = draw(protocol, 20, 200 + round)
            # Most reporters differ from byte 0 on; some only in the last byte.
            again.reporters = np.repeat(reports.reporters[:1], 20, axis=0)
            again.reporters[:, 15] = np.arange(20) // 2
            rounds[round] = [reports, reports[10:30], twice[20:40], again, reports[:5], twice[:5]]
        pieces = [(t, piece) for t, listed in rounds.items() for piece in listed]
        cut = make_log(protocol, *pieces, (7, draw(protocol, 3, 0)[:0]))
        for path in sorted(cut.round_folder(3).iterdir())[:1]:
            rewrite(path, lambda table: spoilt(table, protocol))
        rows = {
            round: [row for file in files for row in read_rows(protocol, file.path)]
            for round, files in cut.scan().rounds.items()
        }
        return cut, rows

    return make


def read_rows(protocol, path) -> list[tuple[bytes, Any, Any]]:
    import pyarrow.parquet as pq

    from loloha.reportlog import from_arrow

    table = pq.read_table(path, partitioning=None)
    reporters, keys, ys = from_arrow(protocol, table)
    return [(reporters[i].tobytes(), None if keys is None else keys[i], ys[i])
            for i in range(len(ys))]  # fmt: skip


def found(engine, log, guard: bool) -> dict[int, tuple[Any, ...]]:
    return {
        one.round: (
            one.tally.counts.tolist(), one.tally.n, one.duplicates, one.conflicts, one.invalid,
        )
        for one in tally(log, engine=engine, guard=guard)
    }  # fmt: skip


@pytest.mark.parametrize("guard", [True, False])
def test_every_engine_counts_the_same(protocol, messy, guard, engine):
    log, rows = messy(protocol)
    got = found(engine, log, guard)
    want = {round: expected(protocol, listed, guard) for round, listed in rows.items()}
    assert got == want
    assert want[3][-1] > 0
    assert (want[0][2] > 0 and want[0][3] > 0) == guard
    assert list(got) == [0, 3, 7, 12]
    assert got[7][1:] == (0, 0, 0, 0)


@pytest.mark.spark
@pytest.mark.parametrize("guard", [True, False])
def test_spark_counts_the_same(kind, messy, guard, spark):
    log, rows = messy(kind)
    want = {round: expected(kind, listed, guard) for round, listed in rows.items()}
    assert found(spark, log, guard) == want
