"""The statements that are handed out: the same tally in PostgreSQL, and errors that say why not."""

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from loloha import OLOLOHA, BiLOLOHA
from loloha.engines import sql, tally
from loloha.engines.result import by_round
from loloha.errors import ParameterError, WireError

PROTOCOL = BiLOLOHA(k=11, eps_inf=2.0, eps_1=1.0)


@pytest.fixture
def postgres() -> Iterator[Any]:
    """A connection whose tables vanish with it."""
    url = os.environ.get("LOLOHA_TEST_POSTGRES")
    if not url:
        pytest.skip("LOLOHA_TEST_POSTGRES names no PostgreSQL server")
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(url) as connection:
        yield connection
        connection.rollback()


@pytest.mark.postgres
@pytest.mark.parametrize("guard", [True, False])
def test_postgres_counts_the_same(kind, messy, guard, postgres):
    log, rows = messy(kind)
    y = {"bits": "bytea", "sampled bits": "int4[]"}.get(kind.encoding.kind, "int4")
    postgres.execute(
        f"CREATE TEMPORARY TABLE reports (round bigint, reporter bytea, key bigint, y {y})"
    )
    for round, files in log.scan().rounds.items():
        for file in files:
            listed = pa.parquet.read_table(file.path, partitioning=None).to_pylist()
            with postgres.cursor().copy("COPY reports FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(
                    ["int8", "bytea", "int8", {"integer": "int4", "integer[]": "int4[]"}.get(y, y)]
                )
                for row in listed:
                    copy.write_row((round, row["reporter"], row.get("key"), row["y"]))
    cursor = postgres.execute(sql.statement(kind, "postgres", "reports", guard=guard, total=True))
    columns = [column.name for column in cursor.description]
    table = pa.table(dict(zip(columns, map(list, zip(*cursor, strict=True)), strict=True)))
    got = {
        one.round: (one.counts.tolist(), one.n, one.duplicates, one.conflicts)
        for one in by_round(kind, table, total=True)
    }
    want = {
        one.round: (one.tally.counts.tolist(), one.tally.n, one.duplicates, one.conflicts)
        for one in tally(log, engine="local", guard=guard)
        if rows[one.round]
    }
    assert got == want


@pytest.mark.parametrize("dialect", sql.DIALECTS)
def test_every_protocol_has_a_statement_in_every_dialect(protocol, dialect):
    for guard in (True, False):
        text = sql.statement(protocol, dialect, "reports", guard=guard)
        assert ("GROUP BY round, reporter" in text) == guard


def test_with_the_linear_family_the_tally_is_a_plain_group_by():
    text = sql.statement(PROTOCOL, "duckdb", "reports", guard=False)
    assert "CAST(key AS BIGINT) * 2 + y" in text
    assert "GROUP BY round, report" in text
    assert "JOIN" not in text


def test_what_has_no_sql_says_so():
    with pytest.raises(ParameterError, match="dialect must be one of"):
        sql.statement(PROTOCOL, "cobol", "reports")
    peers = OLOLOHA(k=11, eps_inf=2.0, eps_1=1.0, g=4, hash="xxhash")
    with pytest.raises(ParameterError, match="use engine 'local'"):
        sql.statement(peers, "duckdb", "reports")


def result(**changed: Any) -> pa.Table:
    good = {"round": [1, 0, 1], "place": [2, 3, 1], "n": [1, 2, 3],
            "duplicates": [0, 1, 2], "conflicts": [0, 0, 5]}  # fmt: skip
    return pa.table({name: column for name, column in (good | changed).items() if column})


def test_rows_come_in_any_order_and_add_up():
    first, second = by_round(PROTOCOL, result())
    assert (first.round, first.counts[3], first.n, first.duplicates) == (0, 2, 2, 1)
    assert (second.round, second.counts[2], second.n, second.conflicts) == (1, 1, 4, 5)
    assert list(by_round(PROTOCOL, result().slice(0, 0))) == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"place": [2, 3, 10_000]}, "places must be those"),
        ({"place": [2, 3, -7]}, "places must be those"),
        ({"place": [2, 3, 2]}, "must have one row, got some twice"),
        ({"n": [1, 2, -3]}, "must not be negative"),
        ({"n": [1, 2, None]}, "column 'n' must hold whole numbers"),
        ({"n": [1.0, 2.0, 3.0]}, "column 'n' must hold whole numbers"),
        ({"n": None}, "column 'n' must hold whole numbers"),
    ],
)
def test_foreign_rows_are_refused(changed, says):
    with pytest.raises(WireError, match=says):
        list(by_round(PROTOCOL, result(**changed)))
