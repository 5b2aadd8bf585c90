"""A collector on either store, with a clock that stands until a test moves it."""

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")

import sqlalchemy as sql
from starlette.testclient import TestClient

from browsing import PATIENCE, Site, browser, listening
from collecting import ADMIN_KEY, HOUR, START, Clock
from dashboards import (
    TAU,
    WINDOW,
    K,
    N,
    Open,
    empty,
    frequent,
    hostile,
    noisy,
    panels,
    small,
    tabled,
    timed,
    walk,
)
from loloha.campaign import Campaign
from loloha.collector.service import create_app
from loloha.collector.settings import Settings
from loloha.collector.store import Store
from loloha.population.population import History, due
from serving import new_store, work_here


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
    return new_store(tmp_path)


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


@pytest.fixture
def serve(sqlite_url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start a collector; settings may be changed. Heavy work is done apart only where asked for."""
    running: list[TestClient] = []

    def start(
        *, steady: Callable[[], float] | None = None, apart: bool = False, **changes: Any
    ) -> TestClient:
        work_here(monkeypatch, apart=apart)
        plain = {"store": sqlite_url, "admin_key": ADMIN_KEY, "rate_limit": "", **changes}
        app = create_app(Settings(**plain), clock=clock, steady=steady)
        client = TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)
        client.__enter__()
        running.append(client)
        return client

    yield start
    for client in running:
        client.__exit__(None, None, None)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    clock = Clock(START + (TAU - 1) * HOUR + 60)
    with listening(tmp_path_factory.mktemp("store"), clock) as site:
        for made in (frequent(), hostile(), noisy(), panels(), small(), empty(), timed(), tabled()):
            weak = not made.protocol.longitudinal
            site.create(made, accept_weak_privacy=weak)
        values = walk(K, N, TAU, seed=1)
        values[:2950, 3] = -1  # A round below the minimum cohort ...
        values[:, 2] = -1  # ... and one without any report.
        site.send(frequent(), values, seed=2)
        site.send(hostile(), walk(4, 500, 2, seed=3), seed=4)
        site.send(noisy(), walk(200, 150, 2, seed=5), seed=6)
        site.send(small(), walk(5, 40, 2, seed=7), seed=8)
        users = due(History(walk(5, 900, 5, seed=9), 5), 3, np.random.default_rng(10))
        site.send(panels(), users.values, seed=11)
        site.send(timed(), walk(24, 600, 4, seed=12), seed=13)
        yield site


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def usual(chromium: Any) -> Any:
    """What most pages share, so that the charts' library is fetched and compiled once."""
    context = chromium.new_context(viewport=WINDOW)
    context.set_default_timeout(PATIENCE)
    return context


@pytest.fixture
def visit(chromium: Any, usual: Any, site: Site) -> Iterator[Open]:
    """Open a page; in the end nothing may have gone wrong in it, or left this collector."""
    opened: list[Any] = []
    wrong: list[str] = []
    expected: list[str] = []

    def start(
        made: Campaign | None = None, more: str = "", *, at: Site = site, **options: Any
    ) -> Any:
        expected.extend(options.pop("expected", []))
        context = usual
        if options:
            context = chromium.new_context(**{"viewport": WINDOW, **options})
            context.set_default_timeout(PATIENCE)
        page = context.new_page()
        opened.append(context if options else page)

        def note_request(request: Any) -> None:
            if not request.url.startswith((at.url + "/", "data:", f"blob:{at.url}/")):
                wrong.append(f"asked another host: {request.url}")

        page.on("request", note_request)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "console",
            lambda said: (
                wrong.append(said.text) if said.type in ("error", "warning", "trace") else None
            ),
        )
        page.goto(at.url + "/" + ("" if made is None else f"#campaign={made.fingerprint}{more}"))
        page.wait_for_selector("body[data-state=ready]")
        return page

    yield start
    for one in opened:
        one.close()
    unexpected = [one for one in wrong if not any(word in one for word in expected)]
    assert unexpected == []
