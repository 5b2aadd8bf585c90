"""One user's device on the network, against a real collector."""

import json
import math
import stat
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urljoin

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")


import devices
from collecting import ADMIN_KEY, HOUR, START, Clock, campaign
from loloha.errors import CampaignError, DomainError, ParameterError, StateError
from loloha.sender.connection import Answer, Unreachable
from loloha.sender.sender import Connection, Sender
from sending import ONCE, Patience, address, rounds
from serving import answering

JSON = {"content-type": "application/json"}


RECEIPT = b'{"accepted":1,"duplicates":0,"refused":[],"reporter":"%s"}' % (b"0" * 32)


def sender(tmp_path: Path, clock: Clock, name: str = "state", **options: Any) -> Sender:
    return Sender(tmp_path / name, clock=clock, **{"patience": ONCE, **options})


def queue(one: Sender) -> dict[int, str]:
    (enrolment,) = one._state.agreed().enrolments
    return dict(enrolment.queue)


# -- consent


def test_nothing_happens_before_the_user_agrees(tmp_path: Path, clock: Clock) -> None:
    # PAINS 21.
    with sender(tmp_path, clock) as one:
        assert not one.consent
        assert one.loss == 0
        for act in (lambda: one.report("a"), one.deliver, one.reset, lambda: one.campaign):
            with pytest.raises(StateError, match="consent"):
                act()
    assert not (tmp_path / "state").exists()


def test_a_report_is_sanitised_stored_and_sent(url: str, tmp_path: Path, clock: Clock) -> None:
    where = address(url)
    with sender(tmp_path, clock) as one:
        one.agree(where)
        assert one.consent
        assert one.campaign == campaign()
        assert one.report("c") == 0
        delivery = one.deliver()
        assert (delivery.sent, delivery.waiting, delivery.refused) == ((0,), (), {})
        assert one.loss == 2.0
    assert rounds(where) == [(0, 1, 0)]
    mode = stat.S_IMODE((tmp_path / "state").stat().st_mode)
    assert mode == 0o600


@pytest.mark.parametrize("now", [math.nan, math.inf, -math.inf, "x", None, 10**400])
def test_a_clock_that_shows_no_time(url: str, tmp_path: Path, now: Any) -> None:
    with sender(tmp_path, lambda: now) as one:
        one.agree(address(url))
        with pytest.raises(ParameterError, match="clock must be"):
            one.report("a")
        assert one.loss == 0


def test_foreign_scalars_are_values_and_rounds(url: str, tmp_path: Path, clock: Clock) -> None:
    with Sender(tmp_path / "s", clock=clock) as device:
        device.agree(address(url))
        assert device.report(np.str_(" a "), round=np.int8(0)) == 0
        with pytest.raises(DomainError, match="missing or blank"):
            device.report(float("nan"), round=np.uint16(1))
    with Sender(tmp_path / "s", clock=clock) as device:
        assert device.answered == {0}
        assert device.deliver().sent == (0,)


def test_a_round_is_answered_once_across_restarts(url: str, tmp_path: Path, clock: Clock) -> None:
    where = address(url)
    with sender(tmp_path, clock) as one:
        one.agree(where)
        one.report("a")
        waiting = queue(one)
    for label in "bcd":
        with sender(tmp_path, clock) as one:
            one.report(label)
            assert queue(one) == waiting
    with sender(tmp_path, clock) as one:
        assert one.deliver().sent == (0,)
        assert one.report("e") == 0
        assert one.deliver().sent == ()
    assert rounds(where) == [(0, 1, 0)]


def test_the_clock_gives_the_round_at_each_report(url: str, tmp_path: Path, clock: Clock) -> None:
    # PAINS 19: across midnight, and across a restart.
    where = address(url)
    with sender(tmp_path, clock) as one:
        one.agree(where)
        clock.now = START + 24 * HOUR - 1
        assert one.report("a") == 23
        clock.now += 1
        assert one.report("a") == 24
        one.deliver()
    clock.now += HOUR
    with sender(tmp_path, clock) as one:
        assert one.report("a") == 25
        one.deliver()
        clock.now = START - 1
        with pytest.raises(StateError, match="begun"):
            one.report("a")
    assert [n for _, n, _ in rounds(where)] == [1, 1, 1]


def test_withdrawing_deletes_queue_and_state_and_says_what_that_means(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    # PAINS 21.
    with sender(tmp_path, clock) as one:
        one.agree(address(url))
        one.report("a")
        said = one.withdraw()
        assert "deleted" in said
        assert "2 spent so far stays spent" in said
        assert not one.consent
        assert not (tmp_path / "state").exists()
        with pytest.raises(StateError, match="consent"):
            one.report("a")
        assert "deleted" in one.withdraw()


@pytest.mark.parametrize("end", ["withdraw", "reset"])
@pytest.mark.parametrize("when", ["between attempts", "while it connects"])
@pytest.mark.parametrize("together", [False, True])
def test_what_is_deleted_while_it_is_delivered_is_sent_no_more(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, together: bool, when: str,
    end: str,
) -> None:  # fmt: skip
    """By another thread: the rest of the queue is not tried either."""
    agreed = [campaign(), campaign("another")][: 1 + together]
    # One connection at a time is answered.
    gone = {"connection": "close"}
    documents = [(200, gone, one.to_json()) for one in agreed]
    busy = (503, gone, b"") if when == "between attempts" else None
    patience = Patience(attempts=3, sleep=lambda _: getattr(device, end)())
    with (
        answering([*documents, *[(200, gone, b"{}")] * len(agreed), *[busy] * 9]) as (url, seen),
        sender(tmp_path, clock, patience=patience) as device,
    ):
        device.agree(*(f"{url}/v1/campaigns/{one.fingerprint}" for one in agreed))
        for round in range(3):
            device.report_all(dict.fromkeys(device.campaigns, "a"), round=round)
        if when == "while it connects":
            connect = HTTPConnection.connect

            def late(self: HTTPConnection) -> None:
                connect(self)
                other = Thread(target=getattr(device, end))
                other.start()
                other.join()

            monkeypatch.setattr(HTTPConnection, "connect", late)
        before = len(seen)
        delivered = device.deliver_all()
    assert len(seen) == before + (when == "between attempts")
    assert not any(each.sent or each.waiting for each in delivered.values())


def test_resetting_is_explicit_and_keeps_the_loss(url: str, tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path, clock) as one:
        one.agree(address(url))
        one.report("a")
        assert "2 spent" in one.reset()
        assert queue(one) == {}
        one.report("a")
        assert one.loss == 2.0
        one.report("a", round=1)
        assert one.loss == 4.0
    with sender(tmp_path, clock) as one:
        assert one.loss == 4.0


def test_another_campaign_needs_another_consent(url: str, tmp_path: Path, clock: Clock) -> None:
    first, second = address(url), address(url, campaign("another"))
    with sender(tmp_path, clock) as one:
        one.agree(first)
        assert one.agree(first) == campaign()
        with pytest.raises(CampaignError, match="agreed to"):
            one.agree(second)
    with sender(tmp_path, clock, "second") as two:
        assert two.agree(second).name == "another"


def test_the_user_may_accept_another_limit(url: str, tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path, clock) as one:
        one.agree(address(url), limit=4.0)
        one.report("a")
        one.agree(address(url))
        for low in (0.0, 3.9):
            with pytest.raises(ParameterError, match="limit"):
                one.agree(address(url), limit=low)
    with sender(tmp_path, clock) as one:
        assert one.limit == 4.0
        one.agree(address(url), limit=5.0)
    with sender(tmp_path, clock) as one:
        assert (one.limit, one.loss) == (5.0, 2.0)


@pytest.mark.parametrize("token", ["secret\r", "sec\nret", "s\u00e9cret", " ", ""])
def test_a_token_that_no_header_carries_is_refused_unseen(token: str) -> None:
    with pytest.raises(ParameterError, match="visible ASCII") as caught:
        Connection("http://127.0.0.1:9", token=token)
    assert "cret" not in str(caught.value)


def test_limits_domains_and_tokens(url: str, tmp_path: Path, clock: Clock) -> None:
    body = {"campaign": campaign().to_dict(), "token": True}
    with Connection(url, token=ADMIN_KEY) as admin:
        answer = admin.post("/v1/campaigns", json.dumps(body).encode(), "application/json")
    where = urljoin(f"{url}/v1/campaigns", answer.headers["location"])
    with sender(tmp_path, clock) as one:
        with pytest.raises(ParameterError, match="limit"):
            one.agree(where, token=answer.json()["token"], limit=2.0)
        one.agree(where, token=answer.json()["token"], limit=4.0)
        with pytest.raises(DomainError):
            one.report("z")
        assert one.loss == 0
        one.report("a")
        assert one.deliver().sent == (0,)
        for round in range(1, 30):
            assert one.report("bcde"[round % 4], round=round) == round
        assert one.loss <= 4.0


def test_a_missing_token_keeps_the_queue(url: str, tmp_path: Path, clock: Clock) -> None:
    body = json.dumps({"campaign": campaign().to_dict(), "token": True}).encode()
    with Connection(url, token=ADMIN_KEY) as admin:
        path = admin.post("/v1/campaigns", body, "application/json").headers["location"]
    with sender(tmp_path, clock) as one:
        one.agree(urljoin(f"{url}/v1/campaigns", path))
        one.report("a")
        delivery = one.deliver()
        assert delivery.waiting == (0,)
        assert "token" in delivery.reason


def test_several_campaigns_go_out_in_one_upload(
    url: str, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = address(url), address(url, campaign("another"))
    posted: list[str] = []
    post = Connection.post
    with sender(tmp_path, clock) as one:
        one.agree(first, second, limit=8.0)
        one.report_all({"hours": "a", "another": "b"})
        one.report_all({"hours": "a", "another": "b"}, round=9)
        monkeypatch.setattr(
            Connection,
            "post",
            lambda self, path, *rest: (posted.append(path), post(self, path, *rest))[1],
        )
        delivered = one.deliver_all()
        assert {name: (each.sent, each.waiting) for name, each in delivered.items()} == {
            "hours": ((0,), (9,)), "another": ((0,), (9,)),
        }  # fmt: skip
        assert "not begun" in delivered["hours"].reason
        assert posted == ["/v1/reports"]
        # What does not take it as one upload, takes it one by one.
        monkeypatch.setattr(
            Connection, "post",
            lambda self, path, *rest: post(self, path.replace("/v1/reports", "/v1/no"), *rest),
        )  # fmt: skip
        clock.now += 9 * HOUR
        assert {each.sent for each in one.deliver_all().values()} == {(9,)}
    assert rounds(first) == rounds(second) == [(0, 1, 0), (9, 1, 0)]


@pytest.mark.parametrize(
    ("answer", "alone", "reason"),
    [
        (Unreachable("collector must answer"), 0, "collector must answer"),
        # Neither an answer to each nor one that settles any: they go one by one.
        (Answer(503, {}, b""), 3, "503"),
        (Answer(200, {}, b'{"answers": [{}, {}, {}, {}, {}, {}]}'), 0, "0"),
    ],
)
def test_an_upload_of_several_that_settles_nothing_is_not_repeated(
    tmp_path: Path, clock: Clock, collector: Any, monkeypatch: pytest.MonkeyPatch,
    answer: Answer | Exception, alone: int, reason: str,
) -> None:  # fmt: skip
    posted: list[str] = []

    def post(path: str, *_: Any) -> Answer:
        posted.append(path)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(collector, "post", post)
    clock.now += 2 * HOUR
    with devices.sender(tmp_path / "state", clock) as one:
        one.agree(devices.url(), devices.url(devices.PAGES))
        for round in range(3):
            one.report_all({"hours": "a", "pages": "b"}, round=round)
        delivered = one.deliver_all()
    paths = [f"/v1/campaigns/{one.fingerprint}/reports" for one in (devices.HOURS, devices.PAGES)]
    assert posted == ["/v1/reports", *np.repeat(paths, alone).tolist()]
    for each in delivered.values():
        assert (each.sent, each.refused, each.waiting) == ((), {}, (0, 1, 2))
        assert reason in each.reason


def test_more_reports_than_one_upload_takes_go_out_in_several(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    """What did not fit waited, and nothing said why."""
    first, second = address(url), address(url, campaign("another"))
    clock.now += 70 * HOUR
    with sender(tmp_path, clock) as one:
        one.agree(first, second)
        for round in range(10, 70):
            one.report_all({"hours": "a", "another": "b"}, round=round)
        for delivered in one.deliver_all().values():
            # The older ones are late.
            assert len(delivered.sent) + len(delivered.refused) == 60
            assert (delivered.waiting, delivered.reason) == ((), "")


def test_assigned_keys_are_fetched_and_used(url: str, tmp_path: Path, clock: Clock) -> None:
    # PAINS 24.
    where = address(url, campaign(keys="assigned"))
    with sender(tmp_path, clock) as one:
        one.agree(where)
        one.report("a")
        assert one.deliver().sent == (0,)
        with pytest.raises(StateError, match="assigned"):
            one.reset()
    with sender(tmp_path, clock) as one:
        one.report("b", round=0)
        assert "ticket" in (tmp_path / "state").read_text()
    assert rounds(where) == [(0, 1, 0)]


def test_early_reports_wait_and_late_ones_are_dropped(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    where = address(url)
    with sender(tmp_path, clock) as one:
        one.agree(where)
        one.report("a", round=3)
        one.report("a", round=0)
        delivery = one.deliver()
        assert (delivery.sent, delivery.waiting) == ((0,), (3,))
        assert "not begun" in delivery.reason
        clock.now += 9 * HOUR
        delivery = one.deliver()
        assert delivery.waiting == ()
        assert "closed" in delivery.refused[3]


def test_a_queue_is_bounded_and_its_oldest_report_goes(
    url: str, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each report wrote all that waited before it: a device without a network filled its disk.
    monkeypatch.setattr("loloha.sender.agreement.MOST_QUEUED", 3)
    where = address(url, late_seconds=40 * HOUR)
    clock.now = START + 20 * HOUR
    with sender(tmp_path, clock) as device:
        device.agree(where)
        for round in (5, 6, 7, 8, 9):
            device.report("a", round=round)
        kept = queue(device)
        assert list(kept) == [7, 8, 9]
        spent = device.loss
        # One that was dropped has its answer, and gets no second one.
        assert device.report("b", round=5) == 5
        assert (queue(device), device.loss) == (kept, spent)
        # The newest one stays, whichever round it is of.
        device.report("a", round=2)
        assert sorted(queue(device)) == [2, 8, 9]
    with sender(tmp_path, clock) as device:
        assert device.deliver().sent == (2, 8, 9)
    assert rounds(where) == [(2, 1, 0), (8, 1, 0), (9, 1, 0)]


def test_what_cannot_be_sent_now_stays_and_goes_out_later(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loloha.client.Client.reporter", lambda *_: "0" * 32)
    one = campaign()
    document, taken = (200, {}, one.to_json()), (200, JSON, RECEIPT)
    answers = [document, document, None, taken]
    with answering(answers) as (url, seen), sender(tmp_path, clock) as device:
        device.agree(f"{url}/v1/campaigns/{one.fingerprint}")
        device.report("a", round=0)
        device.report("b", round=1)
        delivery = device.deliver()
        assert (delivery.sent, delivery.waiting) == ((), (0, 1))
        assert "try again later" in delivery.reason
        assert device.deliver().sent == (0, 1)
    # The first report went out twice, byte for byte.
    assert [body for _, body in seen[2:]] == [seen[2][1], seen[2][1], seen[4][1]]


@pytest.mark.parametrize("said", [b"", b"[]", b"{}", b'{"key":"x","ticket":"y"}', b'{"key":"01"}'])
def test_a_key_that_is_none_is_refused(tmp_path: Path, clock: Clock, said: bytes) -> None:
    one = campaign(keys="assigned")
    document = 200, {}, one.to_json()
    answers = [document, document, (200, {}, said)]
    with answering(answers) as (url, _), sender(tmp_path, clock) as device:
        with pytest.raises(CampaignError, match="assign a key"):
            device.agree(f"{url}/v1/campaigns/{one.fingerprint}")
        assert not device.consent


def test_a_state_that_cannot_be_written_leaves_the_old_one(
    url: str, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with sender(tmp_path, clock) as one:
        one.agree(address(url))
        before = (tmp_path / "state").read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr("loloha.client.file.os.fsync", full)
            with pytest.raises(StateError, match="No space left"):
                one.report("a")
        assert (tmp_path / "state").read_bytes() == before
        assert one.loss == 0
        assert one.answered == frozenset()
        assert not list(tmp_path.glob(".loloha-*"))


def test_a_document_that_is_not_the_pinned_one_is_refused(tmp_path: Path, clock: Clock) -> None:
    one, two = campaign("one"), campaign("two")
    with answering([(200, {}, two.to_json())]) as (url, _), sender(tmp_path, clock) as device:
        with pytest.raises(CampaignError, match="agreed on"):
            device.agree(f"{url}/v1/campaigns/{one.fingerprint}")
        assert not device.consent


def test_what_is_no_campaign_address_is_refused(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path, clock) as one:
        path = "/v1/campaigns/" + "0" * 64
        for bad in (
            "", "http://x", "http://x/v1/campaigns/1", f"ftp://x{path}", f"http:/x{path}",
            f"http://x{path}?a", f"http://x{path}#a", f"http://x{path} ", f"http://x y{path}",
        ):  # fmt: skip
            with pytest.raises(ParameterError, match="url must"):
                one.agree(bad)


# -- state


def test_one_process_at_a_time(tmp_path: Path, clock: Clock) -> None:
    with (
        sender(tmp_path, clock),
        pytest.raises(StateError, match="one process at a time"),
    ):
        sender(tmp_path, clock)
    sender(tmp_path, clock).close()


def test_a_damaged_state_is_refused_and_not_shown(url: str, tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path, clock) as one:
        one.agree(address(url))
        one.report("a")
        assert "hidden" in repr(one)
    path = tmp_path / "state"
    good = json.loads(path.read_text())
    # As release 0.2.0 wrote it: a checksum would tell all of these.
    del good["checksum"]
    other = campaign("other").to_dict()
    own = good["enrolments"][0]
    damaged = [
        {**own, **change}
        for change in (
            {"campaign": other}, {"queue": 3}, {"queue": [[9, "x"]]}, {"queue": [[0, 1]]},
            {"queue": [[0, "x"]]}, {"queue": [[0, "7"]]}, {"queue": [[0, "{}"]]},
            {"queue": [[0, json.dumps({"reporter": "0" * 32})]]},
            {"client": {}}, {"url": "x"}, {"url": None}, {"token": 3}, {"ticket": []},
            # With reports that wait, those would not be its own.
            *({"queue": [], "ticket": bad} for bad in ("", "0" * 31, "0" * 33, "A" * 32, "ten")),
        )
    ]  # fmt: skip
    damaged.append({name: own[name] for name in own if name != "queue"})
    for bad in (
        b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"type":' * 100_000,
        *(json.dumps({**good, **change}).encode() for change in (
            {"version": 3}, {"version": 2.0}, {"type": "x"}, {"enrolments": []},
            {"enrolments": [own, own]}, {"limit": -1}, {"limit": float("inf")},
            {"spent_before": float("inf")}, {"spent_before": float("nan")}, {"limit": 10**400},
            *({"enrolments": [one]} for one in damaged),
        )),
        json.dumps({name: good[name] for name in good if name != "limit"}).encode(),
    ):  # fmt: skip
        path.write_bytes(bad)
        with pytest.raises(StateError) as caught:
            sender(tmp_path, clock)
        assert own["client"]["secret"] not in str(caught.value)
        assert caught.value.__cause__ is None
    for enrolment in (own, {**own, "queue": [], "ticket": "0a" * 16}):
        path.write_text(json.dumps({**good, "enrolments": [enrolment]}))
        sender(tmp_path, clock).close()


def test_an_unwritable_folder_is_reported(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(StateError, match="writable"):
        Sender(tmp_path / "no" / "state", clock=clock)


def test_killed_between_saving_and_sending_the_same_bytes_go_out(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    where = address(url)
    script = (
        "import os, sys\n"
        "from loloha.sender import Sender, Connection\n"
        "post = Connection.post\n"
        "def killed(*a):\n"
        "    if sys.argv[3] == 'after': post(*a)\n"
        "    os.kill(os.getpid(), 9)\n"
        "with Sender(sys.argv[1], clock=lambda: float(sys.argv[4])) as one:\n"
        "    one.agree(sys.argv[2])\n"
        "    Connection.post = killed\n"
        "    one.report('a')\n"
        "    one.deliver()\n"
    )
    for moment, expected in (("before", (0, 1, 0)), ("after", (0, 2, 1))):
        state = tmp_path / moment
        arguments = [str(state), where, moment, str(clock.now)]
        ended = subprocess.run([sys.executable, "-c", script, *arguments], check=False)
        assert ended.returncode == -9
        kept = json.loads(state.read_text())["enrolments"][0]["queue"]
        with sender(tmp_path, clock, moment) as one:
            assert [[round, message] for round, message in queue(one).items()] == kept
            assert one.deliver().sent == (0,)
        assert rounds(where) == [expected]


def test_a_device_needs_the_standard_library_alone() -> None:
    script = (
        "import sys, loloha.sender\n"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'msgspec', 'pyarrow', 'fastapi')))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
