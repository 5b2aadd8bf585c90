"""What a collector must survive: kills, failing stores, many connections, arbitrary requests."""

import os
import random
import re
import signal
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import torture
from collecting import ADMIN, ADMIN_KEY, Clock, campaign, clients, created, messages
from loloha.collector import commit
from loloha.collector.settings import Settings
from loloha.report import Report
from loloha.sender import Connection, Patience
from loloha.sender.connection import _at_once
from loloha.wire import encode
from ports import free_port
from serving import Served, create, get, running_nginx

LINES = "application/x-ndjson"


@pytest.mark.parametrize(
    ("store", "kills"),
    [
        ("sqlite", 1),
        pytest.param("sqlite", 3, marks=pytest.mark.long),
        pytest.param("postgresql", 2, marks=[pytest.mark.long, pytest.mark.postgres]),
    ],
)
def test_a_killed_collector_loses_nothing_and_counts_nothing_twice(store: str, kills: int) -> None:
    # PAINS 18; `make torture` kills it 50 times.
    if store == "postgresql" and not os.environ.get("LOLOHA_TEST_POSTGRES"):
        pytest.skip("no PostgreSQL: LOLOHA_TEST_POSTGRES is not set")
    with torture.scratch_store(store) as url:
        assert "none twice" in torture.torture(url, kills, seed=18, kinds=[torture.kill])


@pytest.mark.long
@pytest.mark.postgres
def test_two_collectors_in_trouble_count_each_report_once() -> None:
    # `make torture` does so 50 times, to three.
    if not os.environ.get("LOLOHA_TEST_POSTGRES"):
        pytest.skip("no PostgreSQL: LOLOHA_TEST_POSTGRES is not set")
    kinds = [torture.kill, torture.cut, torture.end_sessions, torture.end_sessions, torture.restart]
    with torture.scratch_store("postgresql") as url:
        said = torture.torture(url, len(kinds), seed=22, kinds=kinds, collectors=2)
        assert "none twice" in said


def balanced(folder: Path) -> Any:
    """Starts the nginx of the docs in front of collectors."""

    @contextmanager
    def balancing(urls: list[str]) -> Iterator[list[str]]:
        sample = (Path(__file__).parents[2] / "docs" / "scale-out.md").read_text()
        sample = sample.partition("```nginx\n")[2].partition("```")[0]
        port = free_port()
        servers = "".join(f"server {url.removeprefix('http://')} max_fails=0;" for url in urls)
        changed, number = re.subn(r"(    server 10\.\S+ max_fails=0;\n)+", servers, sample)
        assert number == 1
        changed = changed.replace("listen 80;", f"listen 127.0.0.1:{port};")
        with running_nginx(changed, port, folder):
            yield [f"http://127.0.0.1:{port}"]

    return balancing


@pytest.mark.long
@pytest.mark.postgres
def test_collectors_behind_a_balancer_are_killed_and_restarted_and_none_notices(
    tmp_path: Path,
) -> None:
    if not os.environ.get("LOLOHA_TEST_POSTGRES"):
        pytest.skip("no PostgreSQL: LOLOHA_TEST_POSTGRES is not set")
    kinds = [torture.kill, torture.kill, torture.restart, torture.restart]
    with torture.scratch_store("postgresql") as url:
        said = torture.torture(
            url, len(kinds), seed=23, kinds=kinds, collectors=2, balancing=balanced(tmp_path)
        )
    assert ", 0 counted without an answer, 0 requests unanswered: " in said


@pytest.fixture
def served(store_url: str, clock: Clock) -> Iterator[str]:
    plain = Settings(store=store_url, admin_key=ADMIN_KEY, rate_limit="")
    with Served(plain, clock) as url:
        yield url


def test_64_connections_with_all_kinds_of_reports_leave_exact_totals(served: str) -> None:
    users, rounds = 64, 2
    ones = [campaign("one"), campaign("two")]
    paths = [create(served, one, terms={"minimum_cohort": 1}) for one in ones]
    some = [clients(one, users) for one in ones]
    kinds = ("valid", "duplicate", "conflict", "malformed", "foreign")
    script = [(user, kind) for user in range(users) for kind in kinds for _ in range(rounds)]
    random.Random(1).shuffle(script)
    barrier = threading.Barrier(64)

    def work(part: list[tuple[int, str]]) -> list[tuple[int, str, int]]:
        connection = Connection(served, patience=Patience(attempts=1), timeout=60)
        barrier.wait()
        found = []
        for user, kind in part:
            which = user % 2
            one, client = ones[which], some[which][user]
            report = client.report(user % 5, round=0)
            if kind == "conflict":
                report = Report(report.key, 1 - report.y)
            other = ones[1 - which] if kind == "foreign" else one
            body = encode(other, report, round=0, reporter=client.reporter(0))
            if kind == "malformed":
                body = body[:-1] + b',"more":1}'
            answer = connection.post(f"{paths[which]}/reports", body, "application/json")
            found.append((user, kind, answer.status))
        connection.close()
        return found

    with ThreadPoolExecutor(64) as pool:
        answers = [
            one for part in pool.map(work, [script[i::64] for i in range(64)]) for one in part
        ]
    assert {status for _, kind, status in answers if kind == "malformed"} == {422}
    assert {status for _, kind, status in answers if kind == "foreign"} == {409}
    # Either the true report or the contradicting one came first; that one counts, the others never.
    sent = rounds * users
    connection = Connection(served)
    for which, path in enumerate(paths):
        (round,) = connection.get(f"{path}/rounds").json()["rounds"]
        half = [one for one in answers if one[0] % 2 == which]
        right = {kind: [one for one in half if one[1] == kind and one[2] == 200] for kind in kinds}
        first = len(right["valid"]) + len(right["duplicate"]) + len(right["conflict"])
        assert round["n"] == users // 2
        assert round["duplicates"] == first - users // 2
        assert round["conflicts"] == 3 * sent // 2 - first
        assert round["refused"]["malformed"] == round["refused"]["foreign_campaign"] == sent // 2
    connection.close()


def answer_of(url: str, path: str, body: bytes) -> Any:
    connection = Connection(url, patience=Patience(attempts=1), timeout=300)
    answer = connection._once("POST", path, body, {"Content-Type": LINES}, _at_once)
    connection.close()
    return answer


def test_clients_that_hang_up_harm_nobody(sqlite_url: str, clock: Clock) -> None:
    one = campaign()
    with Served(Settings(store=sqlite_url, admin_key=ADMIN_KEY), clock) as url:
        path = create(url, one)
        (message,) = messages(one, clients(one, 1), 0)
        head = (
            f"POST {path}/reports HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(message)}\r\n\r\n"
        ).encode()
        port = int(url.rpartition(":")[2])
        for sent in (head[:20], head, head + message[:-1], head + message):
            with socket.create_connection(("127.0.0.1", port)) as hanging:
                hanging.sendall(sent)
        answer = answer_of(url, f"{path}/reports", message)
        assert answer.status == 200
        assert b'status="500"' not in get(url, "/metrics").body


def test_a_locked_database_answers_503_and_recovers(
    sqlite_url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loloha.collector.store.server.SECONDS_TO_WAIT", 0.2)
    one = campaign()
    with Served(Settings(store=sqlite_url, admin_key=ADMIN_KEY), clock) as url:
        path = create(url, one)
        body = b"\n".join(messages(one, clients(one, 20), 0))
        other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        answer = answer_of(url, f"{path}/reports", body)
        assert answer.status == 503
        assert int(answer.headers["retry-after"]) > 0
        assert answer.json()["type"] == "urn:loloha:problem:unavailable"
        assert get(url, f"{path}/rounds").json()["rounds"] == []
        other.execute("ROLLBACK")
        other.close()
        assert answer_of(url, f"{path}/reports", body).json()["accepted"] == 20


def test_a_full_disk_answers_503_and_recovers(
    sqlite_url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the database is full here, not the disk that is probed.
    monkeypatch.setattr(commit, "PROBE_SECONDS", 3600.0)
    one = campaign()
    served = Served(Settings(store=sqlite_url, admin_key=ADMIN_KEY), clock)
    with served as url:
        path = create(url, one)
        database = served.app.state.context.store.database
        with database.write() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        body = b"\n".join(messages(one, clients(one, 900), 0))
        answer = answer_of(url, f"{path}/reports", body)
        assert answer.status == 503
        assert "retry-after" in answer.headers
        assert get(url, f"{path}/rounds").json()["rounds"] == []
        with Connection(url) as connection:
            assert connection._once("GET", "/healthz", None, {}, _at_once).status == 503
        with database.write() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
        assert answer_of(url, f"{path}/reports", body).json()["accepted"] == 900
        assert get(url, "/healthz").status == 200


@pytest.mark.postgres
def test_lost_connections_answer_503_and_recover(postgresql_url: str, clock: Clock) -> None:
    import sqlalchemy as sql

    one = campaign()
    with Served(Settings(store=postgresql_url, admin_key=ADMIN_KEY), clock) as url:
        path = create(url, one, terms={"minimum_cohort": 1})
        sent = messages(one, clients(one, 60), 0)
        schema = postgresql_url.partition("application_name=")[2]
        assert schema.startswith("loloha_")
        engine = sql.create_engine(postgresql_url, isolation_level="AUTOCOMMIT")
        stopping = threading.Event()
        ours = sql.text(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND application_name = current_setting('application_name') "
            "AND query ~ 'campaign|writer|guard|cell|outcome'"
        )

        def cut() -> None:
            with engine.connect() as connection:
                while not stopping.is_set():
                    connection.execute(ours)
                    time.sleep(0.003)

        cutter = threading.Thread(target=cut)
        cutter.start()
        statuses = set()
        for start in range(0, 60, 5):
            statuses.add(
                answer_of(url, f"{path}/reports", b"\n".join(sent[start : start + 5])).status
            )
        stopping.set()
        cutter.join()
        engine.dispose()
        assert statuses <= {200, 503}
        answer_of(url, f"{path}/reports", b"\n".join(sent))
        (round,) = get(url, f"{path}/rounds").json()["rounds"]
        assert round["n"] == 60
        shown = get(url, f"{path}/rounds/0/estimates").json()
        total = one.protocol.tally()
        for client in clients(one, 60):
            total.add(client.report(0, round=0))
        assert round["conflicts"] == 0
        assert shown["n"] == total.n


# -- arbitrary requests


Plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    media=st.sampled_from(
        ["application/json", LINES, "application/vnd.apache.arrow.stream", "text/plain", "x"]
    ),
    packing=st.sampled_from(["", "gzip", "identity", "br"]),
    body=st.binary(max_size=60) | Plain.map(lambda plain: repr(plain).encode()),
)
def test_no_upload_at_all_makes_a_500(serve: Any, media: str, packing: str, body: bytes) -> None:
    if not hasattr(serve, "path"):
        serve.client = serve()
        serve.path = created(serve.client, campaign())
    headers = {"content-type": media, "content-encoding": packing}
    answer = serve.client.post(f"{serve.path}/reports", content=body, headers=headers)
    assert answer.status_code in (200, 400, 409, 415, 422)


@pytest.mark.parametrize("examples", [1, pytest.param(50, marks=pytest.mark.long)])
def test_nothing_that_the_openapi_document_allows_makes_a_500(
    sqlite_url: str, clock: Clock, examples: int
) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    from schemathesis import checks

    one = campaign()
    known = [one.fingerprint, "0" * 64]
    plain = Settings(store=sqlite_url, admin_key=ADMIN_KEY, rate_limit="")
    with Served(plain, clock) as url:
        create(url, one)
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
        chance = random.Random(3)

        def check(case: Any) -> None:
            if case.path_parameters and "fingerprint" in case.path_parameters:
                case.path_parameters["fingerprint"] = chance.choice(known)
            case.headers = {**(case.headers or {}), **ADMIN}
            answer = case.call(base_url=url, timeout=300)
            wanted = [
                checks.not_a_server_error,
                checks.content_type_conformance,
                checks.response_schema_conformance,
            ]
            case.validate_response(answer, checks=wanted)

        for operation in schema.get_all_operations():
            run = given(case=operation.ok().as_strategy())(lambda case: check(case))
            settings(max_examples=examples, suppress_health_check=list(HealthCheck))(run)()


def test_a_started_collector_says_where_and_shows_a_key_once(tmp_path: Path) -> None:
    import subprocess

    command = [sys.executable, "-m", "loloha", "serve", "--port", "0"]
    environment = {key: one for key, one in os.environ.items() if not key.startswith("LOLOHA_")}
    keys = []
    for stop in (signal.SIGTERM, signal.SIGINT):
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
        )
        assert process.stderr is not None
        line = process.stderr.readline()
        if "admin key" in line:
            keys.append(line.split()[-1])
            line = process.stderr.readline()
        url = line.split()[2].rstrip("/")
        assert url.startswith("http://127.0.0.1:")
        assert get(url, "/healthz").status == 200
        process.send_signal(stop)
        _, rest = process.communicate(timeout=300)
        assert rest == ""
    # Ctrl-C is how it says that it ends.
    assert process.returncode == 0
    assert len(keys) == 1
