"""The view of estimates for those who read by SQL: what the HTTP interface shows, no more."""

import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sql
from starlette.testclient import TestClient

from collecting import HOUR, Clock, become, campaign, clients, created, messages
from loloha import DBitFlipPM
from loloha.collector.store import Store
from loloha.collector.store.copy import copy
from loloha.collector.store.deletion import Deletion
from loloha.collector.store.estimate_rows import EstimateRows
from loloha.errors import ParameterError
from loloha.server.estimate_table import COLUMNS
from uploading import LINES, send

TERMS = {"terms": {"late_seconds": 0, "early_seconds": 0, "minimum_cohort": 20, "keep_days": 30}}


@pytest.fixture
def shared(serve: Any, store_url: str) -> TestClient:
    """A collector that keeps the view: at its start, and when a test says so."""
    return serve(store=store_url, estimates_view=True)


def publish(client: TestClient) -> None:
    (upkeep,) = (one for one in opened(client)._upkeeps if "view" in one._what)
    assert upkeep.run() is False
    assert upkeep.cause is None


def opened(client: TestClient) -> Any:
    return client.app.state.context.running


def view(store: Store) -> list[dict[str, Any]]:
    with store.database.read() as connection:
        rows = connection.execute(
            sql.text("SELECT * FROM loloha_estimates ORDER BY campaign, round, value")
        )
        return [dict(row._mapping) for row in rows]


def shown(client: TestClient, path: str) -> list[dict[str, Any]]:
    answer = client.get(f"{path}/series", params={"format": "parquet"})
    rows = pq.read_table(io.BytesIO(answer.content)).select(COLUMNS).to_pylist()
    return sorted(rows, key=lambda row: (row["campaign"], row["round"], row["value"]))


def report(client: TestClient, path: str, one: Any, n: int, round: int) -> None:
    lines = messages(one, clients(one, n), round)
    assert send(client, path, b"\n".join(lines), LINES).json()["accepted"] == n


def test_the_view_is_what_the_interface_shows(shared: TestClient, clock: Clock) -> None:
    one, few = campaign(), campaign("few", protocol=DBitFlipPM(k=5, eps_inf=2.0, b=5, d=2))
    path, other = created(shared, one, **TERMS), created(shared, few, **TERMS)
    store = opened(shared).store
    report(shared, path, one, 19, 0)
    publish(shared)
    assert view(store) == []
    for n in (6, 30):
        report(shared, path, one, n, 0)
        publish(shared)
        assert view(store) == shown(shared, path)
        (counted,) = {row["n"] for row in view(store)}
        assert counted >= 20
    clock.now += HOUR
    report(shared, path, one, 21, 1)
    report(shared, other, few, 50, 1)
    publish(shared)
    rows = sorted(
        [*shown(shared, path), *shown(shared, other)],
        key=lambda row: (row["campaign"], row["round"], row["value"]),
    )
    assert view(store) == rows
    assert {row["round"] for row in rows} == {0, 1}
    # A bucket that fewer than the minimum cohort can support is shown by neither.
    assert None in {row["estimate"] for row in rows}
    assert tuple(rows[0]) == COLUMNS


def test_what_is_deleted_leaves_the_view(shared: TestClient, clock: Clock) -> None:
    one, two = campaign(), campaign("two")
    path, other = created(shared, one, **TERMS), created(shared, two, **TERMS)
    store = opened(shared).store
    for each, where in ((one, path), (two, other)):
        report(shared, where, each, 25, 0)
    publish(shared)
    assert {row["campaign"] for row in view(store)} == {one.fingerprint, two.fingerprint}
    become(shared, one, "closed")
    become(shared, one, "deleted")
    assert {row["campaign"] for row in view(store)} == {two.fingerprint}
    # Computed before the deletion, and written after it.
    stored = store.campaign(one.fingerprint)
    assert stored is not None
    EstimateRows(store).put(stored.id, [{**view(store)[0], "campaign": one.fingerprint}])
    assert EstimateRows(store).rounds(stored.id) == {}
    # Its terms keep a round for 30 days.
    clock.now += 32 * 86_400
    assert not Deletion(store).old_sums(clock.now)
    assert view(store) == []


def test_rounds_that_are_no_longer_shown_are_dropped(shared: TestClient) -> None:
    one = campaign()
    path = created(shared, one, **TERMS)
    report(shared, path, one, 25, 0)
    store = opened(shared).store
    publish(shared)
    stored = store.campaign(one.fingerprint)
    assert stored is not None
    EstimateRows(store).put(stored.id, [{**view(store)[0], "round": 7}])
    publish(shared)
    assert view(store) == shown(shared, path)


def test_a_collector_that_keeps_no_view_empties_it(serve: Any, store_url: str) -> None:
    client, one = serve(store=store_url, estimates_view=True), campaign()
    report(client, created(client, one, **TERMS), one, 25, 0)
    publish(client)
    client.app.state.context.close()
    store = opened(serve(store=store_url)).store
    assert view(store) == []


def test_a_copy_of_the_store_has_the_view(
    serve: Any, sqlite_url: str, postgresql_url: str, tmp_path: Path
) -> None:
    client, one = serve(store=sqlite_url, estimates_view=True), campaign()
    path = created(client, one, **TERMS)
    report(client, path, one, 25, 0)
    publish(client)
    rows = shown(client, path)
    client.app.state.context.close()
    for target in (postgresql_url, f"sqlite:///{tmp_path}/copy.db"):
        copy(sqlite_url, target)
        copied = Store(target)
        assert view(copied) == rows
        copied.close()


@pytest.mark.postgres
def test_a_user_of_postgresql_reads_the_view_and_nothing_else(
    serve: Any, postgresql_url: str
) -> None:
    client, one = serve(store=postgresql_url, estimates_view=True), campaign()
    report(client, created(client, one, **TERMS), one, 25, 0)
    publish(client)
    engine = sql.create_engine(sql.make_url(postgresql_url))
    schema = sql.make_url(postgresql_url).query["application_name"]
    role = f"analyst_{str(schema)[-8:]}"
    with engine.connect() as connection:
        for command in (
            f"CREATE ROLE {role}",
            f"GRANT USAGE ON SCHEMA {schema} TO {role}",
            f"GRANT SELECT ON loloha_estimates TO {role}",
            f"SET ROLE {role}",
        ):
            connection.execute(sql.text(command))
        assert connection.scalar(sql.text("SELECT count(*) FROM loloha_estimates")) == 5
        for table in ("estimate", "estimated_round", "cell", "guard", "outcome", "campaign"):
            with (
                pytest.raises(sql.exc.ProgrammingError, match="permission denied"),
                connection.begin_nested(),
            ):
                connection.execute(sql.text(f"SELECT * FROM {table}"))
        connection.rollback()
    engine.dispose()


def test_frames_read_it(serve: Any, sqlite_url: str) -> None:
    pandas = pytest.importorskip("pandas")
    duckdb = pytest.importorskip("duckdb")
    client, one = serve(store=sqlite_url, estimates_view=True), campaign()
    path = created(client, one, **TERMS)
    report(client, path, one, 25, 0)
    publish(client)
    engine = sql.create_engine(sqlite_url)
    with engine.connect() as connection:
        rows = pandas.read_sql("SELECT * FROM loloha_estimates", connection)
    engine.dispose()
    assert tuple(rows) == COLUMNS
    ((total,),) = duckdb.sql("SELECT sum(estimate) FROM rows WHERE level = 0.95").fetchall()
    assert total == pytest.approx(sum(row["estimate"] for row in shown(client, path)))


def test_it_is_not_stored_without_sums() -> None:
    from loloha.collector.settings import Settings

    with pytest.raises(ParameterError, match="estimates_view"):
        Settings.read(None, append_only="log", estimates_view=True)
