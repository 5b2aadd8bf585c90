"""Collectors without sums, many on one log: the tally counts each acknowledged report once."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from collecting import (
    ADMIN,
    ADMIN_KEY,
    HOUR,
    START,
    Clock,
    campaign,
    clients,
    created,
    expected,
    messages,
)
from loloha.campaign import Campaign, Schedule
from loloha.cli.followed import Followed
from loloha.collector.commit import Committer, Job, Pace
from loloha.collector.metric import Metrics
from loloha.collector.settings import Settings
from loloha.collector.store import Store
from loloha.collector.store.log_counts import put
from loloha.collector.submission import Submission
from loloha.collector.terms import Terms
from loloha.engines import RoundTally, make_engine, tally
from loloha.errors import ParameterError, StoreError
from loloha.reportlog import ReportLog
from loloha.sender.connection import Connection, Patience, Unreachable
from loloha.server.tally import Tally
from ports import free_port
from serving import create
from storing import KEY, S3, SECRET, refuse, s3, s3_server

__all__ = ["s3", "s3_server"]
JSON = "application/json"
SINGLE = {"content-type": JSON}
LINES = {"content-type": "application/x-ndjson"}


def await_health(url: str) -> None:
    with Connection(url, patience=Patience(attempts=600, first=0.1, longest=0.1)) as patient:
        assert patient.get("/healthz").status == 200


def counted(root: Any, one: Campaign) -> dict[int, Any]:
    return {each.round: each for each in tally(ReportLog(root, one), engine="local")}


def same(tally: Tally, other: Tally) -> bool:
    return tally.n == other.n and (tally.counts == other.counts).all()


def test_a_retry_that_reaches_another_collector_counts_once(
    serve: Any, clock: Clock, tmp_path: Path
) -> None:
    one, root = campaign(), str(tmp_path / "log")
    path = created(serve(), one)
    few = clients(one, 20)
    sent = messages(one, few, 0)
    first, second = (serve(append_only=root, segment_seconds=0) for _ in range(2))
    for client, part in ((first, sent[:15]), (second, sent[5:])):
        answer = client.post(f"{path}/reports", content=b"\n".join(part), headers=LINES)
        assert answer.json() == {"accepted": 15, "duplicates": 0, "refused": []}
    alone = second.post(f"{path}/reports", content=sent[0], headers=SINGLE)
    assert alone.json()["accepted"] == 1
    together = [json.loads(one) for one in sent[:2]]
    assert first.post("/v1/reports", json=together).json()["answers"][1]["status"] == 200
    # A round that is over is refused, and so is one to come; nothing of them is in the log.
    clock.now += 30 * HOUR
    late = first.post(f"{path}/reports", content=sent[0], headers=SINGLE)
    assert late.status_code == 410
    clock.now = START + 60
    mixed = b"\n".join([*messages(one, few[:2], 1), *sent[2:4]])
    answer = second.post(f"{path}/reports", content=mixed, headers=LINES).json()
    assert (answer["accepted"], [each["reason"] for each in answer["refused"]]) == (
        2,
        ["early"] * 2,
    )
    rounds = counted(root, one)
    assert list(rounds) == [0]
    assert same(rounds[0].tally, expected(one, few, 0))
    assert (rounds[0].duplicates, rounds[0].conflicts, rounds[0].invalid) == (15, 0, 0)


def test_its_end_leaves_no_connection_to_the_store(serve: Any, tmp_path: Path) -> None:
    client = serve(append_only=str(tmp_path / "log"))
    reader = client.app.state.context.store.database.reader
    assert client.get("/v1/campaigns").status_code == 200
    assert reader.pool.checkedin() > 0
    client.__exit__(None, None, None)
    assert reader.pool.checkedin() == 0


def test_what_it_does_not_offer_says_so_and_the_rest_is_there(serve: Any, tmp_path: Path) -> None:
    one = campaign()
    dashboard = serve()
    path = created(dashboard, one)
    client = serve(append_only=str(tmp_path / "log"))
    for route in ("/", "/try", "/admin", f"{path}/rounds", f"{path}/rounds/0/estimates",
                  f"{path}/smoothed", f"{path}/series", f"{path}/privacy"):  # fmt: skip
        answer = client.get(route)
        assert (answer.status_code, answer.json()["type"]) == (
            501,
            "urn:loloha:problem:append-only",
        )
        assert "ask the one with the dashboard" in answer.json()["detail"]
    state = f"/v1/admin/campaigns/{one.fingerprint}/state"
    for ask in (client.post("/v1/campaigns", json={"campaign": one.to_dict()}, headers=ADMIN),
                client.put(state, json={"state": "paused"}, headers=ADMIN),
                client.get("/v1/admin/keys", headers=ADMIN),
                client.post("/v1/admin/keys", json={"label": "more"}, headers=ADMIN),
                client.post("/v1/admin/keys/0/rotate", json={}, headers=ADMIN),
                client.delete("/v1/admin/keys/0", headers=ADMIN)):  # fmt: skip
        assert ask.status_code == 501
    assert client.get("/healthz").status_code == 200
    assert b"loloha_commit_seconds" in client.get("/metrics").content
    assert client.get(f"{path}/document").content == one.to_json()
    assert client.get("/v1/campaigns").json()["campaigns"][0]["fingerprint"] == one.fingerprint
    # What is paused elsewhere is refused here, once the store was looked at again.
    assert dashboard.put(state, json={"state": "paused"}, headers=ADMIN).status_code == 200
    client.app.state.context.running.committer._run_tidy()
    sent = messages(one, clients(one, 1), 0)[0]
    answer = client.post(f"{path}/reports", content=sent, headers=SINGLE)
    assert answer.status_code == 410
    # It wrote nothing to the store: the collector that does goes on.
    assert dashboard.get("/healthz").status_code == 200
    with pytest.raises(ParameterError, match="append_only must be given without keep_reports"):
        Settings.read(append_only="a", keep_reports="b")


def test_a_log_that_takes_nothing_is_an_outage_without_its_address(
    serve: Any, s3: S3, caplog: pytest.LogCaptureFixture
) -> None:
    one, root = campaign(), f"{s3.bucket()}/LOG"
    path = created(serve(), one)
    client = serve(append_only=root, segment_seconds=0)
    sent = messages(one, clients(one, 2), 0)
    assert client.post(f"{path}/reports", content=sent[0], headers=SINGLE).status_code == 200
    s3.fault = lambda method, _: (
        refuse("403 Forbidden", "AccessDenied") if method != "GET" else None
    )
    answer = client.post(f"{path}/reports", content=sent[1], headers=SINGLE)
    assert answer.status_code == 503
    assert "access is denied" in answer.json()["detail"]
    health = client.get("/healthz")
    assert health.status_code == 503
    said = answer.text + health.text + caplog.text
    assert not [word for word in (KEY, SECRET, root) if word in said]
    s3.fault = None
    assert client.post(f"{path}/reports", content=sent[1], headers=SINGLE).status_code == 200
    assert client.get("/healthz").status_code == 200
    assert counted(root, one)[0].tally.n == 2


class _Slow:
    """Notes when commits began and what they held."""

    def __init__(self) -> None:
        self.commits: list[tuple[float, int]] = []

    def record(self, submissions: Any, now: float) -> list[Any]:
        self.commits.append((time.monotonic(), sum(one.size for one in submissions)))
        return [one.batch.codes.copy() for one in submissions]


def test_a_segment_holds_what_came_in_a_time_or_so_many_reports(store: Any) -> None:
    from loloha.wire.batch import Reader

    one = campaign()
    stored = store.create(one, Terms(), token=None, now=START)[0]
    upload = Submission.of(stored, Reader(one).read_lines(messages(one, clients(one, 1), 0)[0]))

    class Future:
        def __init__(self) -> None:
            self.ended = threading.Event()

        def done(self) -> bool:
            return self.ended.is_set()

        def set_result(self, _: Any) -> None:
            self.ended.set()

    class Loop:
        def call_soon_threadsafe(self, call: Any, *arguments: Any) -> None:
            call(*arguments)

    def commits(seconds: float, reports: int, *sent: int) -> list[tuple[float, int]]:
        log = _Slow()
        committer = Committer(log, clock=lambda: START, metrics=Metrics(), largest_queue=100,
                              tidy=bool, pace=Pace(10_000, seconds, reports))  # fmt: skip
        committer.start()
        for n in sent:
            futures = [Future() for _ in range(n)]
            for future in futures:
                committer.submit(Job(upload, future, Loop()))
            assert all(future.ended.wait(300) for future in futures)
        committer.stop()
        return log.commits

    # Long before the time is over there are enough, and not before.
    assert [n for _, n in commits(3600.0, 10, 1, 10)] == [1, 10]
    # There are never enough, but the time is over.
    (began, _), *others = commits(0.5, 1000, 1, 3)
    assert sum(n for _, n in others) == 3
    assert others[0][0] - began >= 0.5


@pytest.mark.long
@pytest.mark.parametrize("where", ["local", "s3"])
def test_three_of_them_one_of_them_killed_lose_nothing(where: str, s3: S3, tmp_path: Path) -> None:
    root = f"{s3.bucket()}/LOG" if where == "s3" else str(tmp_path / "log")
    one = campaign(schedule=Schedule(int(time.time()) - 60, 86_400))
    environment = {**os.environ, "LOLOHA_ADMIN_KEY": ADMIN_KEY, "LOLOHA_RATE_LIMIT": "",
        "LOLOHA_SEGMENT_SECONDS": "0.05",
                   "LOLOHA_STORE": f"sqlite:///{tmp_path}/loloha.db"}  # fmt: skip

    def run(port: int, *more: str) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-m", "loloha", "serve", "--port", str(port), *more]
        return subprocess.Popen(line, env=environment, stderr=subprocess.DEVNULL)

    ports = [free_port() for _ in range(4)]
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    running = [run(ports[0])]
    try:
        await_health(urls[0])
        path = create(urls[0], one)
        running += [run(port, "--append-only", root) for port in ports[1:]]
        for url in urls:
            await_health(url)
        few = clients(one, 600)
        sent = messages(one, few, 0)
        acknowledged: set[int] = set()
        chance, killed = random.Random(22), threading.Event()

        def device(numbers: range) -> None:
            """Sends each report until some collector has it, then sometimes once more elsewhere."""
            for number in numbers:
                if number >= 480:
                    killed.wait()
                while True:
                    try:
                        url = urls[1 + chance.randrange(3)]
                        with Connection(url, patience=Patience(attempts=1)) as connection:
                            answer = connection.post(f"{path}/reports", sent[number], JSON)
                    except Unreachable:
                        continue
                    if answer.status == 200:
                        acknowledged.add(number)
                        if chance.random() < 0.8:
                            break

        threads = [
            threading.Thread(target=device, args=(range(start, 600, 12),)) for start in range(12)
        ]
        for thread in threads:
            thread.start()
        while len(acknowledged) < 200:
            time.sleep(0.01)
        running[2].kill()
        killed.set()
        for thread in threads:
            thread.join()
        assert len(acknowledged) == 600
        rounds = counted(root, one)
        assert list(rounds) == [0]
        assert same(rounds[0].tally, expected(one, few, 0))
        assert rounds[0].duplicates > 0
    finally:
        for process in running:
            process.kill()
            process.wait()


def test_a_followed_log_fills_the_store_that_a_dashboard_reads(
    serve: Any, sqlite_url: str, clock: Clock, tmp_path: Path
) -> None:
    one, root = campaign(), str(tmp_path / "log")
    dashboard = serve()
    path = created(dashboard, one, terms={"minimum_cohort": 10, "publish_every": 15})
    appending = serve(append_only=root, segment_seconds=0)
    store = Store(sqlite_url, take_over=False)
    stored = store.campaign(one.fingerprint)
    assert stored is not None
    followed = Followed(
        ReportLog(root, one), make_engine("local"), tmp_path / "out",
        {"campaign": one.fingerprint, "guard": True}, None, False, None,
        put=lambda tallied: put(store, stored, tallied, clock()),
    )  # fmt: skip
    few = clients(one, 40)
    sent = messages(one, few, 0)
    # Published are at least 15 more at a time, and a retry is a duplicate.
    for last, shown in ((12, 0), (20, 20), (30, 20), (40, 40)):
        part = b"\n".join(sent[max(0, last - 21) : last])
        assert appending.post(f"{path}/reports", content=part, headers=LINES).status_code == 200
        followed.step()
        (round,) = dashboard.get(f"{path}/rounds").json()["rounds"]
        assert (round["n"], round["published"], round["refused"]) == (last, shown, {})
        assert same(store.tally(stored, 0), expected(one, few[:shown], 0))
    assert round["duplicates"] > 0
    estimates = dashboard.get(f"{path}/rounds/0/estimates").json()
    assert estimates["n"] == 40
    # Who counts itself is not overwritten.
    json_of = messages(one, clients(one, 1, seed=99), 0)[0]
    assert dashboard.post(f"{path}/reports", content=json_of, headers=SINGLE).status_code == 200
    appending.post(f"{path}/reports", content=messages(one, clients(one, 1, seed=98), 0)[0],
                   headers=SINGLE)  # fmt: skip
    with pytest.raises(StoreError, match="devices reach a collector that counts"):
        followed.step()
    assert dashboard.get(f"{path}/rounds").json()["rounds"][0]["n"] == 41
    store.close()


def test_a_log_brings_no_sums_back_that_were_to_be_deleted(store: Any) -> None:
    one = campaign()
    terms = Terms(minimum_cohort=1, keep_days=30)
    stored = store.create(one, terms, token=None, now=START)[0]
    last = one.schedule.ends(0) + terms.late_seconds + 30 * 86_400
    for now, n in ((last, 0), (last - 1, 7)):
        put(store, stored, RoundTally(0, expected(one, clients(one, 7), 0), 0, 0, 0), now)
        assert store.tally(stored, 0).n == n
