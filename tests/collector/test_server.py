"""PostgreSQL in which no store can live is refused by name, before anything is written."""

import secrets
import socket
import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from types import SimpleNamespace
from typing import Any, Self

import pytest
import sqlalchemy as sql

from loloha.cli import main
from loloha.collector.store import Store, server
from loloha.collector.store.database import Database
from loloha.errors import StoreError

pytestmark = pytest.mark.postgres


class Server:
    """Makes databases and roles that are dropped afterwards."""

    def __init__(self, url: str) -> None:
        self.url = sql.make_url(url).set(drivername="postgresql+psycopg", query={})
        self.engine = sql.create_engine(self.url, isolation_level="AUTOCOMMIT")
        self.made: list[str] = []

    def run(self, *statements: str) -> None:
        with self.engine.connect() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def database(self, made: str = "", *statements: str) -> str:
        name = f"loloha_{secrets.token_hex(6)}"
        self.run(f"CREATE DATABASE {name} {made}")
        self.made.append(f"DROP DATABASE {name} WITH (FORCE)")
        self.run(*(statement.format(name) for statement in statements))
        return self.url.set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def postgres(postgresql_url: str) -> Iterator[Server]:
    one = Server(postgresql_url)
    yield one
    one.run(*one.made)
    one.engine.dispose()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
@pytest.mark.parametrize("asked", ["", "?client_encoding=latin1"])
def test_an_encoding_that_holds_no_label_is_named(
    postgres: Server, encoding: str, asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # SQL_ASCII was a traceback, LATIN1 a 500 at the first label that it lacks.
    url = postgres.database(f"TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'")
    assert main(["serve", "--port", "0", "--store", url + asked]) == 1
    *others, line = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert all(other.startswith("warning: ") for other in others)
    assert encoding in line
    assert "createdb" in line


@pytest.mark.parametrize(
    ("statement", "cause"),
    [
        ("ALTER DATABASE {} SET default_transaction_read_only = on", "default_transaction_read"),
        ("ALTER DATABASE {} SET search_path = nowhere", "search_path"),
    ],
)
def test_a_setting_that_lets_nothing_be_written_is_named(
    postgres: Server, statement: str, cause: str
) -> None:
    with pytest.raises(StoreError, match=cause):
        Store(postgres.database("", statement))


def test_a_user_that_may_not_create_tables_is_named_and_a_store_that_is_there_is_used(
    postgres: Server,
) -> None:
    role = f"loloha_{secrets.token_hex(6)}"
    url = postgres.database("TEMPLATE template0 ENCODING 'UTF8'")
    postgres.run(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    postgres.made.append(f"DROP ROLE {role}")
    own = sql.create_engine(sql.make_url(url), isolation_level="AUTOCOMMIT")
    with own.connect() as connection:
        connection.exec_driver_sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    theirs = sql.make_url(url).set(username=role, password="x").render_as_string(False)
    with pytest.raises(StoreError, match="GRANT CREATE"):
        Store(theirs)
    Store(url).close()
    with pytest.raises(StoreError, match="grant this user the tables"):
        Store(theirs)
    with own.connect() as connection:
        connection.exec_driver_sql(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
        Store(theirs).close()
        connection.exec_driver_sql(f"DROP OWNED BY {role}")
    own.dispose()


def test_a_short_statement_timeout_of_the_user_is_no_matter(postgres: Server) -> None:
    Store(postgres.database("", "ALTER DATABASE {} SET statement_timeout = '300ms'")).close()


def test_a_pool_in_transaction_mode_is_named(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It gives one session of the server to several clients in turn, or several to one.
    pids = iter(range(10))
    for backend in (lambda _: 1, lambda _: next(pids)):
        with monkeypatch.context() as patch:
            patch.setattr(server, "_backend", backend)
            with pytest.raises(StoreError, match="pool in transaction mode"):
                Store(postgresql_url)
    monkeypatch.setattr(server, "_backend", id)
    Store(postgresql_url).close()


@contextmanager
def full_pool(url: str) -> Iterator[str]:
    """Like a pool of sessions with none free: lets clients connect, and answers no query."""
    parsed = sql.make_url(url)
    target = (parsed.host or "127.0.0.1", parsed.port or 5432)

    class Relay(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(target) as database:
                answer = b""
                # Until it is ready for a query.
                while not answer.endswith(b"Z\0\0\0\5I"):
                    database.sendall(self.request.recv(1 << 16))
                    answer = database.recv(1 << 16)
                    self.request.sendall(answer)
                while self.request.recv(1 << 16):
                    pass

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Relay) as relay:
        Thread(target=relay.serve_forever, kwargs={"poll_interval": 0.01}).start()
        try:
            own = parsed.set(host="127.0.0.1", port=relay.server_address[1])
            yield own.render_as_string(hide_password=False)
        finally:
            relay.shutdown()


def test_a_pool_without_a_free_session_is_named_in_time(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It was waited for, at the start without a word, as long as the pool liked: two minutes.
    monkeypatch.setattr(server, "SECONDS_TO_WAIT", 0.2)
    with full_pool(postgresql_url) as url:
        with pytest.raises(StoreError, match="no session in time"):
            Store(url)
        database = Database(url)
        for opened in (database.read, database.write):
            with pytest.raises(StoreError, match="no session in time"), opened():
                pass


def test_a_commit_is_durable_whatever_the_database_says(
    postgres: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Reports that were acknowledged were lost in a crash of a server with it off."""
    for asked, kept in (("off", "on"), ("remote_apply", "remote_apply")):
        url = postgres.database("", f"ALTER DATABASE {{}} SET synchronous_commit = {asked}")
        database = Database(url)
        with database.writer.connect() as connection:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar_one() == kept
        database.close()
    assert "fsync" not in caplog.text


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE campaign (id int, title text)",
        "CREATE VIEW guard AS SELECT 1",
        "CREATE TYPE cell AS ENUM ('open')",
        "CREATE TABLE alembic_version (version_num text)",
        "CREATE TABLE alembic_version AS SELECT '0002' AS version_num",
        "CREATE TABLE alembic_version AS SELECT '19f' AS version_num; CREATE TABLE guard ()",
    ],
)
def test_a_database_of_another_program_is_named_and_left_alone(
    postgresql_url: str, made: str
) -> None:
    """It was called a newer release of loloha, or not writable."""
    engine = sql.create_engine(postgresql_url)
    everything = (
        "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(current_schema()::text) "
        "ORDER BY relname"
    )
    with engine.begin() as connection:
        connection.exec_driver_sql(made)
        before = connection.exec_driver_sql(everything).all()
    with pytest.raises(StoreError, match="another program; give loloha a database"):
        Store(postgresql_url)
    with engine.begin() as connection:
        assert connection.exec_driver_sql(everything).all() == before
    engine.dispose()


def test_tables_of_others_beside_a_store_are_no_matter(postgresql_url: str) -> None:
    engine = sql.create_engine(postgresql_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE customers (id int)")
    Store(postgresql_url).close()
    Store(postgresql_url).close()
    engine.dispose()


@pytest.mark.parametrize("one", [one for one in server.DURABILITY if not one.of_session])
def test_a_server_that_can_lose_what_was_acknowledged_is_refused_unless_that_is_accepted(
    one: server.Setting,
    postgresql_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    Store(postgresql_url).close()
    assert not caplog.text
    # As if the safe value, which this server has, were the other one.
    turned = one._replace(safe=one.losing)
    monkeypatch.setattr(server, "_OF_SERVER", [turned])
    with pytest.raises(StoreError, match=rf"{one.name} {one.safe}: .*accept_losses=True"):
        Store(postgresql_url)
    Store(postgresql_url, accept_losses=True).close()
    assert f"the server has {one.name} {one.safe}" in caplog.text


@pytest.mark.parametrize(
    ("version", "row", "cause"),
    [
        (110_022, None, "version 11; upgrade"),
        (150_000, ("UTF8", True, True, False, False, [], []), "standby"),
        (150_000, (b"SQL_ASCII", True, True, False, False, [], []), "SQL_ASCII"),
        (150_000, ("UTF8", False, False, False, False, [], []), None),
        (150_000, ("UTF8", False, False, False, False, ["cell"], ["fsync"]), "another program"),
        (150_000, ("UTF8", False, False, False, False, [], ["fsync"]), "fsync off"),
    ],
)
def test_what_is_in_the_way_comes_first(version: int, row: Any, cause: str | None) -> None:
    class Cursor:
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def execute(self, *_: object) -> "Cursor":
            return self

        def fetchone(self) -> Any:
            return row

    connection = SimpleNamespace(
        info=SimpleNamespace(server_version=version),
        execute=lambda _: None,
        cursor=lambda **_: Cursor(),
    )
    found = server._cause(connection, accept_losses=False)
    assert (found is None) if cause is None else cause in found
