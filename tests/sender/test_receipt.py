"""What settles a report: its own receipt or its own refusal, and nothing that a gateway says."""

import json
import math
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collecting import START, campaign
from loloha.errors import CampaignError
from loloha.sender.connection import Answer, Connection, Patience, Unreachable, seconds_asked
from loloha.sender.receipt import Fate, _read, answers_of, fate
from loloha.sender.sender import Sender
from loloha.wire.refusal import Refusal
from serving import answering

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "answers.json").read_text())
ONCE = Patience(attempts=1)
JSON = {"content-type": "application/json"}
PROBLEM = {"content-type": "application/problem+json"}
HTML = {"content-type": "text/html"}
MINE, OTHER = "0" * 32, "f" * 32
OPEN = 200, {}, b'{"state":"open"}'


def receipt(**changes: Any) -> bytes:
    said = {"accepted": 1, "duplicates": 0, "refused": [], "reporter": MINE}
    return json.dumps({**said, **changes}).encode()


def problem(reason: str, status: int, /, **changes: Any) -> bytes:
    said = {
        "type": f"urn:loloha:problem:{reason}", "title": "no", "status": status,
        "detail": "why not", "reason": reason, "reporter": MINE,
    }  # fmt: skip
    return json.dumps({**said, **changes}).encode()


def without(body: bytes, *names: str) -> bytes:
    return json.dumps({k: v for k, v in json.loads(body).items() if k not in names}).encode()


COUNTED = {
    "now": (200, JSON, receipt()),
    "before": (200, JSON, receipt(accepted=0, duplicates=1)),
    "with a charset": (200, {"content-type": "application/json; charset=utf-8"}, receipt()),
    "and more": (200, JSON, receipt(more="fields of later releases")),
}
REFUSED = {
    "late": (410, PROBLEM, problem("late", 410)),
    "conflict": (409, PROBLEM, problem("conflict", 409)),
    "foreign": (409, PROBLEM, problem("foreign_campaign", 409)),
    "ticket": (422, PROBLEM, problem("bad_ticket", 422)),
}
# Bodies that are good, under every status that a gateway has ever invented, and the other way.
WAITING = {
    **{f"empty {status}": (status, {}, b"") for status in (
        100, 200, 201, 202, 203, 204, 205, 206, 207, 226, 300, 301, 302, 303, 304, 307, 308, 400,
        401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418,
        421, 422, 423, 424, 425, 426, 428, 429, 431, 444, 451, 494, 499, 500, 501, 502, 503, 504,
        505, 506, 507, 508, 510, 511, 520, 521, 522, 523, 524, 525, 526, 530, 598, 599, 999,
    )},
    **{f"a receipt with {status}": (status, JSON, receipt()) for status in (
        201, 202, 203, 204, 206, 226, 302, 304, 404, 410, 500, 503,
    )},
    "a hotel's page": (200, HTML, b"<html><body>Welcome! Please log in.</body></html>"),
    "a page called JSON": (200, JSON, b"<html></html>"),
    "half a receipt": (200, JSON, receipt()[:30]),
    "a receipt and more": (200, JSON, receipt() + receipt()),
    "a receipt as text": (200, {"content-type": "text/plain"}, receipt()),
    "a receipt as nothing": (200, {}, receipt()),
    "a receipt in a list": (200, JSON, b"[" + receipt() + b"]"),
    "another service's": (200, JSON, b'{"ok":true,"status":"accepted"}'),
    "another's receipt": (200, JSON, receipt(reporter=OTHER)),
    "a nameless one": (200, JSON, receipt(reporter=None)),
    "by no name": (200, JSON, without(receipt(), "reporter")),
    "a refusal by no name": (410, PROBLEM, without(problem("late", 410), "reporter")),
    "null for none refused": (200, JSON, receipt(refused=None)),
    "nothing counted": (200, JSON, receipt(accepted=0)),
    "a batch's": (200, JSON, receipt(accepted=2)),
    "counted twice": (200, JSON, receipt(duplicates=1)),
    "true for one": (200, JSON, receipt(accepted=True, duplicates=False)),
    "1.0 for one": (200, JSON, receipt(accepted=1.0)),
    "one refused": (200, JSON, receipt(refused=[{"index": 0, "reason": "late"}])),
    "without refusals": (200, JSON, without(receipt(), "refused")),
    "deep": (200, JSON, b"[" * 100_000),
    "deeper": (200, JSON, b'{"accepted":' * 100_000),
    "not UTF-8": (200, JSON, b"\xff\xfe"),
    "a problem with 200": (200, PROBLEM, problem("late", 410)),
    "a late problem as JSON": (410, JSON, problem("late", 410)),
    "a late page": (410, HTML, b"<h1>Gone</h1>"),
    "an old refusal": (410, PROBLEM, problem("late", 410, reporter=OTHER)),
    "another's problem": (410, PROBLEM, problem("late", 410, type="https://example/late")),
    "another status": (410, PROBLEM, problem("late", 409)),
    "another reason": (410, PROBLEM, problem("late", 410, reason="conflict")),
    "no reason": (410, PROBLEM, without(problem("late", 410), "reason")),
    "a list for a reason": (410, PROBLEM, problem("late", 410, reason=["late"])),
    "an unknown reason": (422, PROBLEM, problem("tired", 422)),
    "a reason with 503": (503, PROBLEM, problem("late", 503)),
    "early": (425, PROBLEM, problem("early", 425)),
    "malformed on the way": (422, PROBLEM, problem("malformed", 422)),
    "another release": (422, PROBLEM, problem("unknown_version", 422)),
    "the campaign is gone": (404, PROBLEM, problem("campaign", 404)),
    "a token is missing": (401, PROBLEM, problem("token", 401)),
    "unreadable": (400, PROBLEM, problem("unreadable", 400)),
}  # fmt: skip


@pytest.mark.parametrize(
    "vector", VECTORS, ids=lambda vector: str(next(iter(vector.values())))[:40]
)
def test_answers_mean_what_they_mean_to_every_client(vector: dict[str, Any]) -> None:
    if "fate" in vector:
        media = vector["content_type"]
        headers = {} if media is None else {"content-type": media}
        answer = Answer(vector["status"], headers, bytes.fromhex(vector["body"]))
        assert fate(answer, vector["reporter"])[0].value == vector["fate"]
    else:
        sent = {"retry-after": vector["retry_after"], "date": vector["date"]}
        headers = {name: text for name, text in sent.items() if text is not None}
        assert seconds_asked(headers, vector["now"]) == vector["seconds"]


@pytest.mark.parametrize("answer", COUNTED.values(), ids=COUNTED)
def test_its_own_receipt_settles_a_report(answer: Any) -> None:
    assert fate(Answer(*answer), MINE) == (Fate.COUNTED, "")


@pytest.mark.parametrize("answer", REFUSED.values(), ids=REFUSED)
def test_its_own_refusal_settles_a_report(answer: Any) -> None:
    assert fate(Answer(*answer), MINE) == (Fate.REFUSED, "why not")


@pytest.mark.parametrize("answer", WAITING.values(), ids=WAITING)
def test_other_answers_leave_a_report_in_the_queue(answer: Any) -> None:
    found, why = fate(Answer(*answer), MINE)
    assert found is Fate.WAITING
    assert why


def test_an_answer_is_read_up_to_64_kib_100_brackets_and_19_digits() -> None:
    assert _read(b"7".rjust(1 << 16)) == 7
    assert _read(b"7".rjust((1 << 16) + 1)) is None
    assert _read(b"[" + b"{}," * 98 + b"{}]") == [{}] * 99
    assert _read(b"[" + b"{}," * 99 + b"{}]") is None
    assert _read(b"[%d, %d]" % (10**19 - 1, 10**19)) == [10**19 - 1, math.inf]


def test_every_reason_is_known_to_be_final_or_not() -> None:
    waiting = {
        reason
        for reason in Refusal
        if fate(Answer(422, PROBLEM, problem(reason, 422)), MINE)[0] is Fate.WAITING
    }
    assert waiting == {Refusal.EARLY, Refusal.MALFORMED, Refusal.VERSION}


def test_what_a_stranger_says_is_shown_short_and_harmless() -> None:
    loud = problem("tired", 422, detail="\x1b[2J\r\n" + "x" * 10_000)
    _, why = fate(Answer(422, PROBLEM, loud), MINE)
    assert why.isprintable()
    assert len(why) < 400
    _, why = fate(Answer(422, PROBLEM, problem("tired", 422, detail={"a": 1})), MINE)
    assert "answered 422" in why


@pytest.mark.parametrize("name", ["empty 204", "empty 407", "a hotel's page", "half a receipt"])
def test_a_gateway_loses_nothing(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loloha.client.Client.reporter", lambda *_: MINE)
    one = campaign()
    status, headers, body = WAITING[name]
    taken = (200, JSON, receipt())
    with answering([(200, {}, one.to_json()), OPEN, (status, headers, body), taken]) as (url, seen):
        with Sender(tmp_path / "state", clock=lambda: START + 60, patience=ONCE) as device:
            device.agree(f"{url}/v1/campaigns/{one.fingerprint}")
            device.report("a")
            delivery = device.deliver()
            assert (delivery.sent, delivery.refused, delivery.waiting) == ((), {}, (0,))
        with Sender(tmp_path / "state", clock=lambda: START + 60, patience=ONCE) as device:
            assert device.deliver().sent == (0,)
    assert seen[2][1] == seen[3][1]


def test_a_queue_does_not_knock_for_ever_where_nobody_counts(tmp_path: Path) -> None:
    one = campaign()
    with (
        answering([(200, {}, one.to_json()), OPEN, (200, HTML, b"<html>")]) as (url, seen),
        Sender(tmp_path / "state", clock=lambda: START + 60, patience=ONCE) as device,
    ):
        device.agree(f"{url}/v1/campaigns/{one.fingerprint}")
        for round in range(20):
            device.report("a", round=round)
        assert len(device.deliver().waiting) == 20
    assert len(seen) == 5


@pytest.mark.parametrize("single", {**COUNTED, **REFUSED, **WAITING}.values(),
                         ids={**COUNTED, **REFUSED, **WAITING})  # fmt: skip
def test_in_one_upload_each_is_answered_as_if_alone(single: Any) -> None:
    status, headers, body = single
    try:
        plain = json.loads(body)
    except (ValueError, RecursionError):
        return
    media = headers.get("content-type", "").partition(";")[0]
    if media != ("application/json" if status == 200 else "application/problem+json"):
        return
    whole = json.dumps({"answers": [{"status": status, "body": plain}]}).encode()
    (answer,) = answers_of(Answer(200, JSON, whole), 1) or [None]
    assert answer is not None
    assert fate(answer, MINE)[0] is fate(Answer(*single), MINE)[0]


@pytest.mark.parametrize(
    "said",
    [
        b"", b"[]", b"{}", b'{"answers":3}', b'{"answers":[]}', b"[" * 100_000, b"<html>",
        b'{"answers":[{},{},{}]}', b'{"accepted":2,"duplicates":0,"refused":[]}',
    ],
)  # fmt: skip
def test_an_answer_to_several_is_to_all_of_them(said: bytes) -> None:
    assert answers_of(Answer(200, JSON, said), 2) is None
    assert answers_of(Answer(404, JSON, b'{"answers":[{},{}]}'), 2) is None


@pytest.mark.parametrize("one", [None, 3, [], {}, {"status": True}, {"status": 200, "body": None}])
def test_what_is_no_answer_among_several_settles_nothing(one: Any) -> None:
    whole = json.dumps({"answers": [one, one]}).encode()
    answers = answers_of(Answer(200, JSON, whole), 2)
    assert answers is not None
    assert {fate(answer, MINE)[0] for answer in answers} == {Fate.WAITING}


# -- hostile answers


class dripping:
    """A server that sends some bytes, then one at a time, for as long as anybody listens."""

    def __init__(self, first: bytes, then: bytes, seconds: float = 0.02) -> None:
        self.first, self.then, self.seconds = first, then, seconds
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.serve)

    def serve(self) -> None:
        while not self.ended.is_set():
            try:
                served, _ = self.socket.accept()
            except OSError:
                return
            with served:
                served.recv(1 << 16)
                try:
                    served.sendall(self.first)
                    while not self.ended.wait(self.seconds):
                        served.sendall(self.then)
                except OSError:
                    pass

    def __enter__(self) -> str:
        self.thread.start()
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
DRIPS = {
    "the body": (OK + b"Content-Length: 100000\r\n\r\n", b" "),
    "the status": (b"", b"H"),
    "a header": (OK + b"X: ", b"x"),
    "headers": (OK, b"X: y\r\n"),
    "informational answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "trailers": (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n"),
    "until the end": (OK + b"\r\n", b" "),
}


@pytest.mark.parametrize("drip", DRIPS.values(), ids=DRIPS)
def test_an_answer_is_whole_in_time_or_none(drip: tuple[bytes, bytes]) -> None:
    # A whole request takes at most six times the timeout of a step: this one would never end.
    with (
        dripping(*drip) as url,
        Connection(url, timeout=0.1, patience=ONCE) as connection,
        pytest.raises(Unreachable, match="collector must answer"),
    ):
        connection.post("/x", b"y", "text/plain")


HOSTILE = {
    "a header without end": OK + b"X: " + b"x" * (1 << 20),
    "a thousand headers": OK + b"X: y\r\n" * 1000 + b"\r\n",
    "a short body": OK + b"Content-Length: 1000\r\n\r\n{}",
    "a short chunk": OK + b"Transfer-Encoding: chunked\r\n\r\nffff\r\n{}",
    "no number": OK + b"Content-Length: -5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "no HTTP": b"SSH-2.0-OpenSSH\r\n",
    "nothing": b"",
}


@pytest.fixture
def once() -> Iterator[Any]:
    """Starts a server that sends the same bytes to everybody, and hangs up."""
    stops = []

    def start(said: bytes) -> str:
        server = socket.create_server(("127.0.0.1", 0))

        def serve() -> None:
            while True:
                try:
                    served, _ = server.accept()
                except OSError:
                    return
                with served:
                    served.recv(1 << 16)
                    try:
                        served.sendall(said)
                        served.shutdown(socket.SHUT_WR)
                        served.recv(1)
                    except OSError:
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        stops.append((server, thread))
        return f"http://127.0.0.1:{server.getsockname()[1]}"

    yield start
    for server, thread in stops:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_answer_is_unreachable(once: Any, said: bytes) -> None:
    with (
        Connection(once(said), timeout=300, patience=ONCE) as connection,
        pytest.raises(Unreachable),
    ):
        connection.get("/x")


def test_an_answer_is_bounded(once: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loloha.sender.connection._LARGEST_ANSWER", 1000)
    endless = OK + b"\r\n" + b"x" * 100_000
    with (
        Connection(once(endless), timeout=300, patience=ONCE) as connection,
        pytest.raises(Unreachable),
    ):
        connection.get("/x")


@pytest.mark.parametrize("ticket", ["", "0" * 31, "0" * 33, "0" * 480, "G" * 32, "A" * 32, 3, None])
def test_a_ticket_is_no_longer_than_a_ticket(tmp_path: Path, ticket: Any) -> None:
    one = campaign(keys="assigned")
    said = json.dumps({"key": "01", "ticket": ticket}).encode()
    with (
        answering([(200, {}, one.to_json()), (200, JSON, said)]) as (url, _),
        Sender(tmp_path / "state", patience=ONCE) as device,
    ):
        with pytest.raises(CampaignError, match="assign a key and a ticket"):
            device.agree(f"{url}/v1/campaigns/{one.fingerprint}")
        assert not device.consent


def test_an_untrusted_certificate_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate in certificate chain"

    def refuse(*_: Any) -> None:
        raise error

    monkeypatch.setattr("http.client.HTTPSConnection.connect", refuse)
    with (
        Connection("https://h", patience=Patience(sleep=waits.append)) as connection,
        pytest.raises(Unreachable, match=r"self-signed.*SSL_CERT_FILE"),
    ):
        connection.get("/x")
    assert waits == []
