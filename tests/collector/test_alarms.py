"""Smoothed series of a collector, and alarms: each round tried once, each event sent till it is."""

import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import chain, repeat
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import loloha
from collecting import HOUR, START, Clock, campaign, clients, created
from loloha.campaign import Labels, Range
from loloha.collector import alarm_watch
from loloha.collector.context import NUMBERS_A_REQUEST
from loloha.collector.smoothed_cache import MOST_CELLS, rounds_together
from loloha.collector.store import Store
from loloha.collector.store.alarms import AlarmStore, Event
from loloha.collector.store.deletion import Deletion
from loloha.collector.terms import Terms
from loloha.errors import ParameterError
from loloha.wire import encode

TERMS = {"late_seconds": 0, "early_seconds": 0, "minimum_cohort": 100}
SECRET = "a secret of the tests"
N, BURST = 300, 6


class Receiver:
    """Where alarms go; answers what it is told to, and remembers what came."""

    def __init__(self) -> None:
        self.status, self.got = 200, []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((dict(self.headers), body.decode()))
                self.send_response(receiver.status)
                self.send_header("Location", receiver.url + "elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


def values_of(round: int) -> Any:
    values = np.arange(N) % 4
    if round == BURST:
        values[: N // 2] = 4
    return values


def report(client: TestClient, path: str, agreed: Any, some: Any, round: int) -> None:
    lines = [
        encode(agreed, one.report(int(v), round=round), round=round, reporter=one.reporter(round))
        for one, v in zip(some, values_of(round)[: len(some)], strict=True)
    ]
    sent = client.post(
        f"{path}/reports",
        content=b"\n".join(lines),
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert sent.json()["accepted"] == len(some), sent.text


def watch(client: TestClient) -> None:
    client.app.state.context._open.alarms.run()  # type: ignore[attr-defined]


def filled(client: TestClient, clock: Clock, rounds: range, agreed: Any, some: Any) -> str:
    path = f"/v1/campaigns/{agreed.fingerprint}"
    for t in rounds:
        clock.now = START + t * HOUR + 60
        if t == 0:
            created(client, agreed, terms=TERMS)
            if client.app.state.context._open.alarms:  # type: ignore[attr-defined]
                watch(client)
        report(client, path, agreed, some, t)
    return path


AGREED = campaign(protocol=loloha.OLOLOHA(k=5, eps_inf=4.0, eps_1=3.0))


def test_smoothed_rounds_are_those_of_the_library(serve: Any, clock: Clock) -> None:
    client, some = serve(), clients(AGREED, N)
    path = filled(client, clock, range(8), AGREED, some)
    clock.now = START + 9 * HOUR
    client.app.state.context.store.close_rounds(clock.now)
    shown = client.get(f"{path}/smoothed").json()
    series = client.get(f"{path}/series").json()
    tallies = []
    for t in range(8):
        tally = AGREED.protocol.tally()
        for one, v in zip(some, values_of(t), strict=True):
            tally.add(one.report(int(v), round=t))
        tallies.append(tally)
    expected = loloha.series(tallies)
    lower, upper = expected.interval()
    assert np.array(shown["estimate"]) == pytest.approx(expected.estimates)
    assert np.array(shown["lower"]) == pytest.approx(lower)
    assert np.array(shown["upper"]) == pytest.approx(upper)
    assert shown["innovation"][0] == [None] * 5
    for name in ("round", "start", "n", "label", "value", "parameters"):
        assert shown[name] == series[name]
    assert np.array(shown["unbiased"]) == pytest.approx(np.array(series["estimate"]))
    # A value alone is as it is among all; picked by its estimates it has a wider interval.
    one = client.get(f"{path}/smoothed", params={"value": 2}).json()
    assert [row[0] for row in one["estimate"]] == [row[2] for row in shown["estimate"]]
    top = client.get(f"{path}/smoothed", params={"top": 2, "level": 0.9}).json()
    assert len(top["value"]) == 2
    place = shown["value"].index(top["value"][0])
    assert top["upper"][3][0] > one["estimate"][3][0] or top["upper"][3][0] > upper[3, place]
    table = client.get(f"{path}/smoothed", params={"format": "csv"}).text.splitlines()
    assert table[0].endswith('"unbiased","innovation"')
    assert len(table) == 1 + 40
    # Asked again, nothing is sent; unknown values and campaigns are refused.
    first = client.get(f"{path}/smoothed")
    again = client.get(f"{path}/smoothed", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 304
    assert client.get(f"{path}/smoothed", params={"value": 5}).status_code == 422
    assert client.get(f"/v1/campaigns/{'0' * 64}/smoothed").status_code == 404


def test_smoothing_is_charged_by_published_rounds_and_values(
    serve: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, some = serve(), clients(AGREED, N)
    path = filled(client, clock, range(3), AGREED, some)
    clock.now += HOUR
    report(client, path, AGREED, some[:10], 3)
    clock.now += HOUR
    context, charged = client.app.state.context, []
    context.store.close_rounds(clock.now)
    monkeypatch.setattr(context.rate, "charge", lambda _, cost: charged.append(cost))
    stored = context.store.campaign(AGREED.fingerprint)
    for newest in (4, 2):
        answer = client.get(f"{path}/smoothed", params={"newest": newest})
    headers = {"If-None-Match": answer.headers["ETag"]}
    assert client.get(f"{path}/smoothed", params={"newest": 2}, headers=headers).status_code == 304
    a_round = stored.work + 4 * 5
    assert charged == pytest.approx([n * a_round / NUMBERS_A_REQUEST for n in (3, 1)])


def test_suppressed_rounds_stay_so(serve: Any, clock: Clock) -> None:
    client, some = serve(), clients(AGREED, N)
    path = filled(client, clock, range(3), AGREED, some)
    # A few reports of a fourth round are below the cohort.
    clock.now = START + 3 * HOUR + 60
    report(client, path, AGREED, some[:10], 3)
    shown = client.get(f"{path}/smoothed").json()
    assert shown["round"] == [0, 1, 2, 3]
    assert shown["n"][3] == 10
    for name in ("estimate", "lower", "unbiased", "innovation"):
        assert [row is None for row in shown[name]] == [False, False, False, True]
    assert client.get(f"{path}/alarms").json() == {
        "campaign": AGREED.fingerprint, "rules": [], "alarms": []
    }  # fmt: skip


def test_domains_too_wide_are_refused(serve: Any, clock: Clock) -> None:
    wide = campaign(
        protocol=loloha.BiLOLOHA(k=MOST_CELLS, eps_inf=2.0, eps_1=1.0),
        domain=loloha.campaign.Range(0, 1, MOST_CELLS),
    )
    client = serve()
    path = created(client, wide, terms=TERMS)
    answer = client.get(f"{path}/smoothed")
    assert answer.status_code == 413
    assert "loloha series" in answer.json()["detail"]


def test_an_alarm_waits_for_no_webhook_where_there_is_none(serve: Any, clock: Clock) -> None:
    client = serve(alarms=[{"expected": 0.05}])
    path = filled(client, clock, range(BURST + 1), AGREED, clients(AGREED, N))
    clock.now += HOUR
    watch(client)
    assert len(client.get(f"{path}/alarms").json()["alarms"]) == 1
    assert AlarmStore(client.app.state.context.store).waiting() == 0


def test_a_burst_alarms_once_and_is_sent_until_it_arrives(
    serve: Any, clock: Clock, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    rules = [
        {"expected": 0.05},
        {"campaign": AGREED.fingerprint, "fdr": 0.05, "labels": ["e"]},
        {"campaign": "0" * 64, "expected": 0.1},
    ]
    settings = {"alarms": rules, "alarm_webhook": receiver.url, "alarm_secret": SECRET}
    client, some = serve(**settings), clients(AGREED, N)
    path = filled(client, clock, range(BURST + 1), AGREED, some)
    watch(client)
    assert client.get(f"{path}/alarms").json()["alarms"] == []
    # The burst's round is closed.
    receiver.status = 500
    clock.now += HOUR
    watch(client)
    listed = client.get(f"{path}/alarms").json()
    assert [rule["values"] for rule in listed["rules"]] == [None, [4]]
    assert "0.05 false alarms expected a round" in listed["rules"][0]["meaning"]
    assert len(listed["alarms"]) == 2
    for event in listed["alarms"]:
        assert event["round"] == BURST
        assert 4 in [one["value"] for one in event["alarms"]]
        assert {one["label"] for one in event["alarms"]} >= {"e"}
    # It does not answer well: the others wait, too, and come again after a pause.
    assert len(receiver.got) == 1
    assert "did not arrive: it answered 500; it is sent again" in caplog.text
    metrics = client.get("/metrics").text
    assert "loloha_waiting_alarms 2.0" in metrics
    assert f'loloha_alarms{{campaign="{AGREED.fingerprint}"}}' in metrics
    receiver.status = 200
    watch(client)
    watch(client)
    assert len(receiver.got) == 2
    clock.now += alarm_watch.FIRST_PAUSE
    watch(client)
    watch(client)
    assert len(receiver.got) == 3
    assert "loloha_waiting_alarms 0.0" in client.get("/metrics").text
    bodies = [body for _, body in receiver.got]
    # What is sent again is the same, under its name.
    assert len(set(bodies)) == 2
    for headers, body in receiver.got:
        event = json.loads(body)
        assert headers["Loloha-Event"] == event["event"]
        moment, digest = (part.split("=")[1] for part in headers["Loloha-Signature"].split(","))
        signed = hmac.new(SECRET.encode(), f"{moment}.{body}".encode(), hashlib.sha256)
        assert hmac.compare_digest(digest, signed.hexdigest())
        assert event in listed["alarms"]
    # A restart tries no round again.
    client.__exit__(None, None, None)
    other = serve(**settings)
    watch(other)
    assert len(receiver.got) == 3
    assert other.get(f"{path}/alarms").json() == listed


@pytest.mark.parametrize(
    ("target", "domain"), [("distribution", Range(10, 20, 5)), ("mean", Labels(tuple("abcde")))]
)
def test_of_numbers_the_mean_is_watched_in_their_own_units(
    serve: Any, clock: Clock, target: Any, domain: Any
) -> None:
    """Though no threshold has reports enough to be shown, whichever rule: no label or this one."""
    protocol = loloha.OneBit(k=5, eps_inf=4.0, eps_1=3.0, target=target)
    agreed = campaign(protocol=protocol, domain=domain)
    rules = [{"expected": 0.05}, {"fdr": 0.05, "labels": ["mean"]}]
    client = serve(alarms=[*rules, {"expected": 0.1, "labels": ["nobody's"]}])
    path = filled(client, clock, range(BURST + 1), agreed, clients(agreed, N))
    clock.now += HOUR
    watch(client)
    listed = client.get(f"{path}/alarms").json()
    assert [(rule["mean"], rule["values"]) for rule in listed["rules"]] == 2 * [(True, None)]
    assert listed["rules"][0]["meaning"].endswith("of the mean")
    assert [event["round"] for event in listed["alarms"]] == 2 * [BURST]
    single = client.get(f"{path}/rounds/{BURST}/estimates").json()["numbers"]["mean"][0]
    smoothed = client.get(f"{path}/smoothed", params={"newest": BURST + 1}).json()
    if target == "distribution":
        assert set(smoothed["unbiased"][BURST]) == {None}
    for event in listed["alarms"]:
        (one,) = event["alarms"]
        assert (one["value"], one["label"]) == (None, "mean")
        # Half of the users are at the upper end; the mean is in units of the range, or in steps.
        assert one["unbiased"] == pytest.approx(single)
        assert one["innovation"] > 2


def test_a_rule_begins_with_the_next_round(serve: Any, clock: Clock) -> None:
    plain, some = serve(), clients(AGREED, N)
    path = filled(plain, clock, range(BURST + 1), AGREED, some)
    plain.__exit__(None, None, None)
    clock.now += HOUR
    client = serve(alarms=[{"expected": 0.5}])
    watch(client)
    assert client.get(f"{path}/alarms").json()["alarms"] == []
    report(client, path, AGREED, some, BURST + 1)
    clock.now += HOUR
    watch(client)
    # Back to usual after the burst: not what was expected either.
    events = client.get(f"{path}/alarms").json()["alarms"]
    assert {event["round"] for event in events} <= {BURST + 1}


def test_rules_of_other_labels_are_logged_once(
    serve: Any, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    client = serve(alarms=[{"expected": 0.1, "labels": ["nobody's"]}])
    path = filled(client, clock, range(1), AGREED, clients(AGREED, N))
    watch(client)
    watch(client)
    assert client.get(f"{path}/alarms").json()["rules"] == []
    assert caplog.text.count("is not tried") == 1
    assert "nobody" not in caplog.text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alarms": [{}]}, "exactly one of expected and fdr"),
        ({"alarms": [{"expected": -1}]}, "expected"),
        ({"alarms": [{"fdr": 0.1, "campaign": "x"}]}, "fingerprint"),
        ({"alarms": [{"fdr": 0.1, "color": "x"}]}, "color"),
        ({"alarm_webhook": "ftp://host"}, "alarm_webhook"),
        ({"alarm_webhook": "https://user:password@host/"}, "alarm_webhook"),
        ({"alarm_webhook": "http://[::1"}, "alarm_webhook"),
        ({"alarm_webhook": "http://a..b/"}, "alarm_webhook"),
        ({"alarm_webhook": "http://a/?\u00e9"}, "alarm_webhook"),
    ],
)
def test_bad_rules_end_a_start(settings: Any, message: str) -> None:
    from loloha.collector.settings import Settings

    with pytest.raises(ParameterError, match=message):
        Settings.read(None, **settings)


def test_settings_come_as_variables_and_stay_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    from loloha.collector.settings import Settings

    monkeypatch.setenv("LOLOHA_ALARMS", '[{"expected": 0.1, "labels": ["a"]}]')
    monkeypatch.setenv("LOLOHA_ALARM_WEBHOOK", "https://host/password?a=%20")
    monkeypatch.setenv("LOLOHA_ALARM_SECRET", SECRET)
    settings = Settings.read()
    assert settings.alarms[0].labels == ["a"]
    assert "password" not in repr(settings)
    assert SECRET not in repr(settings)
    assert not settings.unknown_variables(["LOLOHA_ALARMS", "LOLOHA_ALARM_SECRET"])


def test_pauses_double_and_end() -> None:
    tries = range(1, alarm_watch.MOST_TRIES + 1)
    pauses = [
        None if due is None else due for due in (alarm_watch.next_try(0, one) for one in tries)
    ]
    assert pauses[:4] == [30, 60, 120, 240]
    assert max(pauses[:-1]) == alarm_watch.LONGEST_PAUSE
    assert pauses[-1] is None


def test_no_redirect_is_followed_and_no_address_is_shown(receiver: Receiver) -> None:
    receiver.status = 302
    assert alarm_watch.send(receiver.url, None, "e", "{}", 1.0) == "it answered 302"
    assert len(receiver.got) == 1
    assert "Loloha-Signature" not in receiver.got[0][0]
    receiver.status = 204
    assert alarm_watch.send(receiver.url, None, "e", "{}", 1.0) is None
    nobody = alarm_watch.send("http://127.0.0.1:9/token", None, "e", "{}", 1.0)
    assert nobody == "ConnectionRefusedError"


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (repeat(b"HTTP/1.1 100 Continue\r\n\r\n"), "TimeoutError"),
        (chain([b"HTTP/1.1 200 OK\r\n"], repeat(b"A: b\r\n", 80)), "TimeoutError"),
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], "BadStatusLine"),
        ([b"HTTP/1.1 200 OK\r\n", *repeat(b"A: b\r\n", 200)], "HTTPException"),
    ],
)
def test_whatever_answers_an_alarm_lets_the_next_be_sent(
    answers: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_slow = why == "TimeoutError"
    monkeypatch.setattr(alarm_watch, "PATIENCE", 0.1 if is_slow else 60.0)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with listening.accept()[0] as peer, suppress(OSError):
                for part in answers:
                    peer.sendall(part)
                    time.sleep(0.01 * is_slow)
                # What is closed unread takes the answer along.
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(1 << 16):
                    pass

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        assert alarm_watch.send(url, None, "e", "{}", 1.0) == why
        thread.join()


def test_events_are_stored_once_and_marks_go_on(store: Store) -> None:
    stored, _ = store.create(campaign(), Terms(), token=None, now=START)
    alarms = AlarmStore(store)
    event = Event("e1", stored.id, 3, "{}")
    for _ in range(2):
        alarms.add(stored.id, {"r": 3}, [event], due=10)
    alarms.add(stored.id, {"r": 4, "q": 1}, [], due=None)
    assert alarms.marks(stored.id) == {"r": 4, "q": 1}
    assert alarms.due(9) == []
    assert alarms.due(10) == [event]
    assert (alarms.waiting(), alarms.newest(stored.id)) == (1, ["{}"])
    alarms.tried("e1", 1, 40)
    assert alarms.due(39) == []
    assert alarms.due(40) == [event._replace(tries=1)]
    alarms.tried("e1", 2, None)
    assert (alarms.due(1 << 40), alarms.waiting()) == ([], 0)
    assert rounds_together(stored) == MOST_CELLS // 5


def test_alarms_go_with_their_rounds_and_with_their_campaign(
    serve: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, some = serve(alarms=[{"expected": 0.05}]), clients(AGREED, N)
    monkeypatch.setitem(TERMS, "keep_days", 1)
    path = filled(client, clock, range(BURST + 1), AGREED, some)
    store = client.app.state.context.store  # type: ignore[attr-defined]
    clock.now += HOUR
    watch(client)
    assert [one["round"] for one in client.get(f"{path}/alarms").json()["alarms"]] == [BURST]
    ended = START + (BURST + 1) * HOUR
    Deletion(store).old_sums(ended + 86_399)
    assert client.get(f"{path}/alarms").json()["alarms"]
    Deletion(store).old_sums(ended + 86_400)
    assert client.get(f"{path}/alarms").json()["alarms"] == []
    # Deleted while its rounds are tried: nothing is noted, nor told any more.
    stored, name = store.campaign(AGREED.fingerprint), f'loloha_alarms{{campaign="{path[-64:]}"}}'
    assert name in client.get("/metrics").text
    for state in ("closed", "deleted"):
        store.set_state(stored, state, ended)
    alarms = AlarmStore(store)
    alarms.add(stored.id, {"rule": BURST}, [Event("e", stored.id, BURST, "{}")], None)
    assert (alarms.marks(stored.id), alarms.newest(stored.id)) == ({}, [])
    watch(client)
    assert name not in client.get("/metrics").text
    assert alarms.marks(stored.id) == {}
