"""A collector on either store, with a clock that stands until a test moves it."""

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")

import sqlalchemy as sql
from starlette.testclient import TestClient

from collecting import ADMIN_KEY, START, Clock
from loloha.collector import workers
from loloha.collector.desk import Desk
from loloha.collector.process import Process
from loloha.collector.service import create_app
from loloha.collector.settings import Settings
from loloha.collector.store import Store


@pytest.fixture
def clock() -> Clock:
    return Clock(START + 60)


def postgres_url() -> str:
    url = os.environ.get("LOLOHA_TEST_POSTGRES")
    if not url:
        pytest.skip("no PostgreSQL: LOLOHA_TEST_POSTGRES is not set")
    return url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/loloha.db"


@pytest.fixture
def postgresql_url() -> Iterator[str]:
    """A schema of its own, dropped afterwards; its connections bear its name."""
    url = sql.make_url(postgres_url()).set(drivername="postgresql+psycopg")
    name = f"loloha_{secrets.token_hex(6)}"
    engine = sql.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sql.text(f"CREATE SCHEMA {name}"))
    own = {"options": f"-csearch_path={name}", "application_name": name}
    yield url.update_query_dict(own).render_as_string(hide_password=False)
    with engine.connect() as connection:
        connection.execute(sql.text(f"DROP SCHEMA {name} CASCADE"))
    engine.dispose()


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
)
def store_url(request: pytest.FixtureRequest) -> str:
    """Each kind of store in turn."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    opened = Store(store_url)
    yield opened
    opened.close()


Serve = Callable[..., TestClient]


class Near:
    """Does heavy work in this process: another one takes a second to begin."""

    def __init__(self, url: str) -> None:
        self.store = Store(url, take_over=False, is_ready=True)
        self.desk = Desk(lambda: self.store)

    def call(self, work: Any, *arguments: Any) -> Any:
        return work(self.desk, *arguments)

    def end(self) -> None:
        self.store.close()


@pytest.fixture
def serve(sqlite_url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start a collector; settings may be changed. Heavy work is done apart only where asked for."""
    running: list[TestClient] = []

    def start(
        *, steady: Callable[[], float] | None = None, apart: bool = False, **changes: Any
    ) -> TestClient:
        monkeypatch.setattr(workers, "Process", Process if apart else Near)
        plain = {"store": sqlite_url, "admin_key": ADMIN_KEY, "rate_limit": "", **changes}
        app = create_app(Settings(**plain), clock=clock, steady=steady)
        client = TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)
        client.__enter__()
        running.append(client)
        return client

    yield start
    for client in running:
        client.__exit__(None, None, None)
