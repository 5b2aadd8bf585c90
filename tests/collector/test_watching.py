"""What an operator sees: metrics of each campaign, liveness, readiness, logs without addresses."""

import json
import logging
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as families

from collecting import (
    ADMIN,
    ADMIN_KEY,
    HOUR,
    START,
    batch,
    become,
    campaign,
    clients,
    created,
    messages,
)
from loloha.campaign import Schedule
from loloha.collector import metric
from loloha.collector.life import Wanted
from loloha.collector.log_format import MASK, AsJson, AsText, set_up, without_addresses
from loloha.collector.store import Store
from loloha.collector.store.overview import Overview
from loloha.collector.submission import Submission
from loloha.collector.terms import Terms
from loloha.errors import StoreError
from uploading import LINES, send

NEWEST = "loloha_campaign_newest_report_timestamp_seconds"


def samples(client: Any, name: str) -> dict[tuple[str, ...], float]:
    """The samples of a metric by the values of their labels."""
    return {
        tuple(one.labels.values()): one.value
        for family in families(client.get("/metrics").text)
        for one in family.samples
        if one.name == name
    }


def outcomes(client: Any, label: str) -> dict[str, float]:
    """What became of the reports of a campaign, where anything did."""
    every = samples(client, "loloha_campaign_reports_total")
    return {outcome: value for (one, outcome), value in every.items() if one == label and value}


def test_each_campaign_has_its_reports_and_refusals(serve: Any, clock: Any) -> None:
    client, one, other = serve(), campaign(), campaign("other")
    path = created(client, one)
    created(client, other)
    # A first report is a step from 0: there is a number before it.
    assert samples(client, "loloha_campaign_reports_total")[one.fingerprint, "accepted"] == 0
    first, second, third = messages(one, clients(one, 3), 0)
    send(client, path, b"\n".join([first, second]), LINES)
    send(client, path, first)
    send(client, path, messages(one, clients(one, 1), 5)[0])
    send(client, path, b'{"reporter": 1}')
    mine = {"accepted": 2.0, "duplicate": 1.0, "early": 1.0, "malformed": 1.0}
    assert outcomes(client, one.fingerprint) == mine
    assert outcomes(client, other.fingerprint) == {}
    become(client, one, "paused")
    send(client, path, b"\n".join([second, third]), LINES)
    become(client, one, "closed")
    send(client, path, third)
    assert outcomes(client, one.fingerprint) == {**mine, "paused": 2.0, "ended": 1.0}
    states = {label[0]: label[1:] for label in samples(client, "loloha_campaign_info")}
    assert states == {
        one.fingerprint: ("hours", "closed"),
        other.fingerprint: ("other", "open"),
    }
    become(client, one, "deleted")
    assert one.fingerprint not in client.get("/metrics").text


def test_the_newest_report_of_a_campaign_outlasts_a_restart(serve: Any, clock: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one)
    assert samples(client, NEWEST) == {(one.fingerprint,): 0.0}
    clock.now += 100
    (message,) = messages(one, clients(one, 1), 0)
    send(client, path, message)
    # Neither a duplicate nor a refused report is a newer one.
    clock.now += HOUR
    assert send(client, path, message).json()["duplicates"] == 1
    send(client, path, b"{}")
    again = serve()
    assert samples(again, NEWEST) == {(one.fingerprint,): float(START + 160) // 60 * 60}


@pytest.mark.parametrize("fails", [False, True])
def test_a_commit_that_failed_leaves_the_time_of_the_newest_report(
    store: Store, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    one = campaign()
    stored, _ = store.create(one, Terms(), token=None, now=START)
    first, second = (
        Submission.of(stored, batch(one, [each])) for each in messages(one, clients(one, 2), 0)
    )
    if fails:

        def broken(*_: object) -> None:
            raise StoreError("store must be reachable; try again")

        with monkeypatch.context() as patch:
            patch.setattr(store._record, "remember", broken)
            patch.setattr(store, "_must_be_newest", broken)
            with pytest.raises(StoreError):
                store.record([first], START + 60)
        assert Overview(store).newest(1, START)[0].newest_report == 0
    store.record([first], START + 60)
    store.record([second], START + 30)
    assert Overview(store).newest(1, START)[0].newest_report == START + 60


def test_campaigns_beyond_a_number_share_one_label(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loloha.collector.open_collector.MOST_CAMPAIGNS", 2)
    client, made = serve(), [campaign(f"n{number}") for number in range(4)]
    for one in made:
        path = created(client, one)
    assert send(client, created(client, made[0]), messages(made[0], clients(made[0], 1), 0)[0])
    send(client, path, messages(made[3], clients(made[3], 1), 0)[0])
    assert outcomes(client, metric.OTHERS) == {"accepted": 1.0}
    assert outcomes(client, made[3].fingerprint) == {"accepted": 1.0}
    assert len(samples(client, "loloha_campaign_info")) == 2
    assert samples(client, "loloha_reports_total")["accepted",] == 2.0


def test_a_new_start_is_asked_for_only_where_it_helps(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve(rate_limit="3/minute")
    assert [client.get("/v1/campaigns").status_code for _ in range(4)][-1] == 429
    # Whoever watches is not locked out.
    for path in ("/livez", "/readyz", "/healthz"):
        assert client.head(path).status_code == 200, path
    client = serve()

    def broken(_: Store) -> None:
        raise StoreError("store must be reachable; try again")

    monkeypatch.setattr(Store, "ping", broken)
    ready = [client.get(path).status_code for path in ("/livez", "/readyz", "/healthz")]
    assert ready == [200, 503, 503]
    client.app.state.context.running.committer.stop()
    assert client.get("/livez").status_code == 503


def test_an_overview_says_when_a_campaign_is_over(store: Store) -> None:
    made = campaign(schedule=Schedule(START, HOUR, expires=START + 2 * HOUR))
    stored, _ = store.create(made, Terms(), token=None, now=START)
    overview = Overview(store)
    states: tuple[Wanted, ...] = ("open", "paused", "closed", "archived")
    for state in states:
        if state != "open":
            store.set_state(stored, state, START)
        for now, over in ((START + 2 * HOUR - 1, False), (START + 2 * HOUR, True)):
            shown = "closed" if over and state in ("open", "paused") else state
            assert [one.state for one in overview.newest(9, now)] == [shown]


# -- logs


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("from 203.0.113.9", f"from {MASK}"),
        ("('203.0.113.9', 4711)", f"('{MASK}', 4711)"),
        ("203.0.113.9:4711 left.", f"{MASK} left."),
        ("203.0.113.9:4711: left", f"{MASK} left"),
        ("1:2:3:4:5:6:7:8:4711 left", f"{MASK} left"),
        ("peer [2001:db8::77]:80 and fe80::1%eth0", f"peer [{MASK}]:80 and {MASK}%eth0"),
        ("::ffff:203.0.113.9.", MASK),
        ("at 12:30:45, ratio 1.25, add: feed", "at 12:30:45, ratio 1.25, add: feed"),
    ],
)
def test_addresses_are_masked_and_nothing_else(text: str, masked: str) -> None:
    assert without_addresses(text) == masked


def test_a_line_of_the_log_is_an_object() -> None:
    try:
        raise ValueError("peer 203.0.113.9 hung up\nand went")
    except ValueError:
        error = sys.exc_info()
    record = logging.LogRecord("asyncio", logging.ERROR, "x", 1, "lost für %s", ("::1",), error)
    record.created = START + 0.25
    vars(record).update(status=200, milliseconds=1.5)
    line = AsJson().format(record)
    assert "\n" not in line
    assert "für" in line
    shown = json.loads(line)
    assert (shown["time"], shown["level"]) == ("2026-01-01T00:00:00Z", "error")
    assert (shown["logger"], shown["message"]) == ("asyncio", f"lost für {MASK}")
    assert (shown["status"], shown["milliseconds"]) == (200, 1.5)
    assert f"peer {MASK} hung up" in shown["traceback"]
    text = AsText().format(record)
    assert text.startswith(f"2026-01-01T00:00:00Z ERROR asyncio lost für {MASK}\nTraceback")
    assert "203" not in text


@pytest.mark.parametrize(("form", "begin"), [("json", "{"), ("text", "2")])
def test_the_log_goes_to_stderr_in_its_form_from_its_level_on(
    form: str, begin: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    set_up(form, "warning")
    logging.getLogger("some.part").info("nothing new")
    logging.getLogger("some.part").warning("something wrong")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(begin)
    assert "something wrong" in line


FAULTY = """
import sys
from loloha.cli import main
from loloha.collector import campaigns

def broken(*_, **__):
    raise RuntimeError("no answer for 127.77.66.55 and ('203.0.113.9', 4711)")

campaigns.tagged = broken
sys.exit(main(["serve", "--port", "0", "--until-eof", *sys.argv[1:]]))
"""
DEVICES = ("127.77.66.55", "203.0.113.9", "2001:db8::77", "2001:db8")


@contextmanager
def serving(log: Path, *options: str) -> Iterator[int]:
    """A collector in a process of its own, whose log is a file; its port."""
    environment = {name: value for name, value in os.environ.items() if "LOLOHA" not in name}
    environment |= {"LOLOHA_ADMIN_KEY": ADMIN_KEY, "LOLOHA_TRUSTED_PROXIES": "127.0.0.0/8"}
    command = [sys.executable, "-c", FAULTY, *options]
    with (
        log.open("wb") as lines,
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=lines, env=environment) as process,
    ):
        try:
            while not (started := re.search(r"collector at http://.*:(\d+)/", log.read_text())):
                assert process.poll() is None, log.read_text()
                time.sleep(0.05)
            yield int(started[1])
            process.communicate(timeout=60)
        finally:
            process.kill()


def ask(port: int, line: str, body: bytes = b"", **more: str) -> bytes:
    """Send a request from an address of its own, behind a proxy; how the answer begins."""
    headers = {"host": "127.0.0.1", "x-forwarded-for": "203.0.113.9"}
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    if body:
        headers["content-length"] = str(len(body))
    head = "\r\n".join([f"{line} HTTP/1.1", *(f"{n}: {v}" for n, v in headers.items())])
    with socket.create_connection(("127.0.0.1", port), 30, ("127.77.66.55", 0)) as device:
        device.sendall(f"{head}\r\nconnection: close\r\n\r\n".encode() + body)
        return device.recv(1 << 16)


@pytest.mark.parametrize("form", ["json", pytest.param("text", marks=pytest.mark.long)])
def test_no_address_of_a_device_is_logged_even_where_the_collector_fails(
    form: str, tmp_path: Path
) -> None:
    one, log = campaign(), tmp_path / "log"
    path = f"/v1/campaigns/{one.fingerprint}"
    json_type = {"content_type": "application/json"}
    body = b'{"campaign": %s}' % one.to_json()
    store = tmp_path / "loloha.db"
    options = ("--store", f"sqlite:///{store}", "--log-format", form, "--log-level", "debug")
    with serving(log, *options) as port:
        assert b" 201 " in ask(port, "POST /v1/campaigns", body, **json_type, **ADMIN)
        assert b" 422 " in ask(port, f"POST {path}/reports", b"{}", **json_type)
        assert b" 500 " in ask(port, "GET /v1/campaigns", x_forwarded_for="2001:db8::77")
        assert b" 404 " in ask(port, "GET /203.0.113.9")
        # What is no HTTP, and who hangs up within a body.
        ask(port, "\0 /")
        with socket.create_connection(("127.0.0.1", port), 30, ("127.77.66.55", 0)) as device:
            device.sendall(b"POST /v1/reports HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{")
        store.unlink()
        assert b" 503 " in ask(port, "GET /readyz")
        assert b" 200 " in ask(port, "GET /livez")
    text = log.read_text()
    assert f"no answer for {MASK} and ('{MASK}', 4711)" in text
    assert "answered 503" in text
    for device in DEVICES:
        assert device not in text
    if form == "json":
        logged = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        (failed,) = [each for each in logged if each.get("status") == 500]
        assert (failed["method"], failed["route"]) == ("GET", "/v1/campaigns")
        assert failed["milliseconds"] >= 0
        assert {"error", "info", "warning"} <= {each["level"] for each in logged}
        assert len(logged) == len(text.splitlines()) - 1
