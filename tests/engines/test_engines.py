"""Every engine gives the tally that a few lines of plain Python give, from whatever log."""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from logs import rewrite
from loloha import OLOLOHA, BiLOLOHA
from loloha.datasets import ExtraError
from loloha.engines import REGISTRY, duckdb, local, make_engine, sql, tally
from loloha.engines.base import library
from loloha.engines.linked import join
from loloha.engines.result import by_round
from loloha.engines.spark import started
from loloha.errors import ParameterError, WireError
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


@pytest.mark.long
def test_a_round_in_a_query_of_its_own_is_the_same(kind, messy, monkeypatch):
    monkeypatch.setattr("loloha.engines.duckdb.ROWS_A_QUERY", 1)
    monkeypatch.setattr("loloha.engines.duckdb.SHARE_ROWS", 20)
    log, _ = messy(kind)
    for guard in (True, False):
        assert found("duckdb", log, guard) == found("local", log, guard)


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.long), 3])
def test_passes_batches_and_threads_change_nothing(kind, messy, monkeypatch, threads):
    log, _ = messy(kind)
    want = [found("local", log, guard) for guard in (True, False)]
    monkeypatch.setattr("loloha.engines.local.SHARE_ROWS", 20)
    monkeypatch.setattr("loloha.engines.local.SUSPECTS", 3)
    monkeypatch.setattr("loloha.engines.local.BATCH_BYTES", 100)
    monkeypatch.setattr("loloha.engines.local.PIECE_ROWS", 7)
    engine = make_engine("local", threads=threads)
    assert engine.threads == threads
    assert [found(engine, log, guard) for guard in (True, False)] == want


def test_each_share_holds_its_own_repeated_pseudonyms(draw, make_log):
    """Of 400 reporters whose pseudonyms differ in the bytes that shares and threads are by."""
    reports = draw(PROTOCOL, 400, 0)
    log = make_log(PROTOCOL, (0, reports), (0, reports[:300]), (0, reports[250:280]))
    pieces = [piece for file in log.scan().rounds[0] for piece in local.pieces_of(file)]
    engine = make_engine("local", threads=2)
    starts = reports.reporters[:300, :8].copy().view(np.uint64).ravel()
    with ThreadPoolExecutor(2) as pool:
        for shares in (1, 3):
            for number in range(shares):
                got = engine._repeated(PROTOCOL, pieces, (number, shares), pool)
                want = [start for start in starts.tolist() if (start >> 32) % shares == number]
                assert sorted(got.tolist()) == sorted(want)


def test_parts_of_a_round_share_no_reporter(monkeypatch):
    """45 rows in three shares: what comes once, and each share of what comes more often."""
    monkeypatch.setattr("loloha.engines.duckdb.SHARE_ROWS", 20)
    connection = pytest.importorskip("duckdb").connect()
    connection.execute("CREATE TABLE once AS SELECT i AS reporter FROM range(30) t(i)")
    assert list(duckdb._apart(connection, "once", 30)) == [("once", False)]
    connection.execute("CREATE TABLE log AS FROM once UNION ALL SELECT 2 * i FROM range(15) t(i)")
    parts = [
        (sorted(row[0] for row in connection.sql(f"FROM {part}").fetchall()), guarded)
        for part, guarded in duckdb._apart(connection, "log", 45)
    ]
    assert parts[0] == (list(range(1, 30, 2)), False)
    assert len(parts) == 4
    assert all(guarded for _, guarded in parts[1:])
    assert sorted(one for rows, _ in parts[1:] for one in rows) == sorted([*range(0, 30, 2)] * 2)
    whose = [set(rows) for rows, _ in parts[1:]]
    assert sum(map(len, whose)) == 15
    assert all(whose)


def test_results_that_do_not_fit_together_come_in_parts(messy, monkeypatch, engine):
    log, _ = messy(PROTOCOL)
    want = found(engine, log, True)
    monkeypatch.setattr("loloha.engines.base.MOST_PLACES", 1)
    assert found(engine, log, True) == want


def test_duckdb_takes_limits(messy):
    log, _ = messy(PROTOCOL)
    limited = make_engine("duckdb", threads=1, memory="200MB")
    assert found(limited, log, True) == found("local", log, True)


def test_hashes_without_sql_are_counted_alone(draw, make_log):
    pytest.importorskip("xxhash")
    protocol = OLOLOHA(k=11, eps_inf=2.0, eps_1=1.0, g=4, hash="xxhash")
    reports = draw(protocol, 50, 0)
    log = make_log(protocol, (0, reports))
    (one,) = tally(log, engine="local")
    wanted = protocol.tally()
    wanted.update(reports.keys, reports.ys)
    assert one.tally == wanted
    with pytest.raises(ParameterError, match="use engine 'local'"):
        list(tally(log))


def test_a_refused_file_ends_it_unless_skipped(draw, make_log):
    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 5, 0)), (1, draw(PROTOCOL, 5, 1)))
    next(log.round_folder(0).iterdir()).write_bytes(b"PAR1")
    with pytest.raises(WireError, match="got 1 damaged"):
        next(tally(log))
    assert [one.tally.n for one in tally(log, skip=True)] == [0, 5]
    assert [one.round for one in tally(log, rounds=[1])] == [1]


def test_damage_in_a_trusted_log_is_an_error_of_ours(draw, make_log, engine):
    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 5000, 0)))
    path = next(log.round_folder(0).iterdir())
    content = bytearray(path.read_bytes())
    # The columns key and y lie behind 16 bytes of each pseudonym.
    content[80_000:-2000] = bytes(len(content) - 82_000)
    path.write_bytes(content)
    with pytest.raises(WireError, match=f"readable by engine {engine.name}, got"):
        list(tally(log, engine=engine, guard=False))


def test_a_file_that_one_engine_cannot_read_names_what_to_do(draw, make_log):
    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 5, 0)))
    split = {"reporter": "BYTE_STREAM_SPLIT"}
    rewrite(
        next(log.round_folder(0).iterdir()),
        lambda table: table,
        use_dictionary=False,
        column_encoding=split,
    )
    assert next(tally(log, engine="local")).tally.n == 5
    with pytest.raises(WireError, match=r"duckdb, got .*use another engine"):
        list(tally(log, engine="duckdb"))


@pytest.mark.parametrize("name", ["duckdb", "local"])
def test_what_a_library_says_while_a_result_is_streamed_is_not_passed_on(
    draw, make_log, monkeypatch, name
):
    # Arrow raises OSError with the text of whoever fills its stream.
    def broken(*_: object, **__: object):
        raise OSError("Invalid Input Error: key 12345")

    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 5, 0)))
    monkeypatch.setattr(type(make_engine(name)), "count", broken)
    monkeypatch.setattr("loloha.engines.local._open", broken)
    for counting in (lambda: list(tally(log, engine=name)), lambda: join(log)):
        with pytest.raises(WireError, match="must be readable") as caught:
            counting()
        assert "12345" not in str(caught.value)
        assert caught.value.__suppress_context__


@pytest.mark.parametrize("name", ["log[1]", "a*b", "a?b", "x{1,2}", "back\\slash", "it's, [[a]"])
def test_folders_that_look_like_patterns_are_read_as_they_are(draw, make_log, name):
    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 5, 0)), name=name)
    for engine in ("duckdb", "local"):
        assert next(tally(log, engine=engine)).tally.n == 5


@pytest.mark.long
@pytest.mark.spark
def test_spark_refuses_folders_that_look_like_patterns(draw, make_log, spark):
    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 5, 0)), name="log[1]")
    with pytest.raises(ParameterError, match="path must be without any of"):
        list(tally(log, engine=spark))


def test_a_missing_library_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ExtraError, match=re.escape("pip install 'loloha[engines]'")):
        library("duckdb", "engines")


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("guard", [True, False])
def test_spark_counts_the_same(kind, messy, guard, spark):
    log, rows = messy(kind)
    want = {round: expected(kind, listed, guard) for round, listed in rows.items()}
    assert found(spark, log, guard) == want


LEAST_PRIME = [
    # A table of keys and symbols, with P = k and P > k; preimages, where it would be too large.
    OLOLOHA(k=11, eps_inf=2.0, eps_1=1.0, hash="prime", g=4),
    OLOLOHA(k=12, eps_inf=2.0, eps_1=1.0, hash="prime", g=13),
    OLOLOHA(k=1500, eps_inf=2.0, eps_1=1.0, hash="prime", g=4),
]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("protocol", LEAST_PRIME, ids=repr)
def test_spark_counts_least_prime_hashes_as_the_other_engines(protocol, messy, spark):
    """Replays, contradictions and keys out of range included."""
    assert protocol.encoding.tabled == (protocol.k < 1500)
    log, _ = messy(protocol)
    got = found(spark, log, True)
    assert got == found("duckdb", log, True) == found("local", log, True)
    assert sum(got[0][0]) > 0
    assert got[3][-1] > 0


@pytest.mark.long
@pytest.mark.spark
def test_spark_runs_the_statement_that_is_printed(draw, make_log, spark):
    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 50, 0)), (3, draw(PROTOCOL, 20, 1)))
    files = {round: [file.path for file in listed] for round, listed in log.scan().rounds.items()}
    query = sql.statement(PROTOCOL, "spark", sql.files_of(PROTOCOL, "spark", files), total=True)
    table = started().sql(query).toArrow()
    got = [
        (one.round, one.counts.tolist(), one.n, one.duplicates, one.conflicts)
        for one in by_round(PROTOCOL, table, total=True)
    ]
    assert got == [
        (one.round, one.tally.counts.tolist(), one.tally.n, one.duplicates, one.conflicts)
        for one in tally(log, engine="local")
    ]
