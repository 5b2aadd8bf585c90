"""One user's device on the network, and a fleet of them, against a real collector."""

import json
import math
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")

import loloha
from collecting import ADMIN_KEY, HOUR, START, Clock, campaign
from loloha.cli import main
from loloha.collector.settings import Settings
from loloha.device.collector import Collector
from loloha.device.sender import Connection, Patience, Sender, Unreachable
from loloha.errors import (
    CampaignError,
    DomainError,
    LolohaError,
    ParameterError,
    StateError,
)
from loloha.study.fleet import run_fleet
from serving import Served, answering, create, get

ONCE = Patience(attempts=1)
JSON = {"content-type": "application/json"}
RECEIPT = b'{"accepted":1,"duplicates":0,"refused":[]}'
"""As collectors of release 0.1.0 write it."""


@pytest.fixture
def clock() -> Clock:
    return Clock(START + 60)


@pytest.fixture
def url(tmp_path: Path, clock: Clock) -> Iterator[str]:
    plain = Settings(store=f"sqlite:///{tmp_path}/c.db", admin_key=ADMIN_KEY, rate_limit="")
    with Served(plain, clock) as served:
        yield served


def address(url: str, one: Any = None, **terms: Any) -> str:
    wanted = {"minimum_cohort": 1, "late_seconds": HOUR, **terms}
    return url + create(url, one or campaign(), terms=wanted)


def rounds(address: str) -> list[tuple[int, int, int]]:
    url, _, path = address.partition("/v1/")
    found = get(url, f"/v1/{path}/rounds").json()["rounds"]
    return [(one["round"], one["n"], one["duplicates"]) for one in found]


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


def test_a_report_is_sanitised_kept_and_sent(url: str, tmp_path: Path, clock: Clock) -> None:
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


def test_the_round_is_told_by_the_clock_at_each_report(
    url: str, tmp_path: Path, clock: Clock
) -> None:
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


def test_resetting_is_explicit_and_keeps_the_loss(url: str, tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path, clock) as one:
        one.agree(address(url))
        one.report("a")
        assert "2 spent" in one.reset()
        assert queue(one) == {}
        one.report("a")
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
        one.agree(address(url), limit=2.0)
        one.report("a")
        one.agree(address(url))
        with pytest.raises(ParameterError, match="limit"):
            one.agree(address(url), limit=0.0)
    with sender(tmp_path, clock) as one:
        assert one.limit == 2.0
        one.agree(address(url), limit=4.0)
    with sender(tmp_path, clock) as one:
        assert (one.limit, one.loss) == (4.0, 2.0)


@pytest.mark.parametrize("token", ["secret\r", "sec\nret", "s\u00e9cret", " ", ""])
def test_a_token_that_no_header_carries_is_refused_unseen(token: str) -> None:
    with pytest.raises(ParameterError, match="visible ASCII") as caught:
        Connection("http://127.0.0.1:9", token=token)
    assert "cret" not in str(caught.value)


def test_limits_domains_and_tokens(url: str, tmp_path: Path, clock: Clock) -> None:
    body = {"campaign": campaign().to_dict(), "token": True}
    with Connection(url, token=ADMIN_KEY) as admin:
        answer = admin.post("/v1/campaigns", json.dumps(body).encode(), "application/json")
    where = f"{url}{answer.headers['location']}"
    with sender(tmp_path, clock) as one:
        one.agree(where, token=answer.json()["token"], limit=2.0)
        with pytest.raises(DomainError):
            one.report("z")
        assert one.loss == 0
        one.report("a")
        assert one.deliver().sent == (0,)
        for round in range(1, 30):
            if one.report("bcde"[round % 4], round=round) is None:
                return
    pytest.fail("the limit was never reached")


def test_a_missing_token_keeps_the_queue(url: str, tmp_path: Path, clock: Clock) -> None:
    body = json.dumps({"campaign": campaign().to_dict(), "token": True}).encode()
    with Connection(url, token=ADMIN_KEY) as admin:
        path = admin.post("/v1/campaigns", body, "application/json").headers["location"]
    with sender(tmp_path, clock) as one:
        one.agree(url + path)
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
        # A collector of release 0.1.0 knows no such upload.
        monkeypatch.setattr(
            Connection, "post",
            lambda self, path, *rest: post(self, path.replace("/v1/reports", "/v1/no"), *rest),
        )  # fmt: skip
        clock.now += 9 * HOUR
        assert {each.sent for each in one.deliver_all().values()} == {(9,)}
    assert rounds(first) == rounds(second) == [(0, 1, 0), (9, 1, 0)]


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
    monkeypatch.setattr("loloha.device.agreement.MOST_QUEUED", 3)
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


def test_what_cannot_be_sent_now_stays_and_goes_out_later(tmp_path: Path, clock: Clock) -> None:
    one = campaign()
    document, taken = (200, {}, one.to_json()), (200, JSON, RECEIPT)
    with answering([document, None, taken]) as (url, seen), sender(tmp_path, clock) as device:
        device.agree(f"{url}/v1/campaigns/{one.fingerprint}")
        device.report("a", round=0)
        device.report("b", round=1)
        delivery = device.deliver()
        assert (delivery.sent, delivery.waiting) == ((), (0, 1))
        assert "try again later" in delivery.reason
        assert device.deliver().sent == (0, 1)
    # The first report went out twice, byte for byte.
    assert [body for _, body in seen[1:]] == [seen[1][1], seen[1][1], seen[3][1]]


@pytest.mark.parametrize("said", [b"", b"[]", b"{}", b'{"key":"x","ticket":"y"}', b'{"key":"01"}'])
def test_a_key_that_is_none_is_refused(tmp_path: Path, clock: Clock, said: bytes) -> None:
    one = campaign(keys="assigned")
    answers = [(200, {}, one.to_json()), (200, {}, said)]
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
            patch.setattr("loloha.device.file.os.fsync", full)
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
        for bad in ("", "ftp://x/v1/campaigns/" + "0" * 64, "http://x", "http://x/v1/campaigns/1"):
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
    other = campaign("other").to_dict()
    own = good["enrolments"][0]
    damaged = [
        {**own, **change}
        for change in (
            {"campaign": other}, {"queue": 3}, {"queue": [[9, "x"]]}, {"queue": [[0, 1]]},
            {"queue": [[0, "x"]]}, {"queue": [[0, "7"]]}, {"queue": [[0, "{}"]]},
            {"queue": [[0, json.dumps({"reporter": "0" * 32})]]},
            {"client": {}}, {"url": "x"}, {"url": None}, {"token": 3}, {"ticket": []},
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
    path.write_text(json.dumps(good))
    sender(tmp_path, clock).close()


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, clock: Clock) -> None:
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


# -- patience


def patience(waits: list[float], attempts: int = 4, chance: float = 1.0) -> Patience:
    return Patience(
        attempts=attempts, first=1.0, longest=3.0, sleep=waits.append, chance=lambda: chance
    )


def test_it_tries_again_with_longer_waits_and_the_same_bytes() -> None:
    waits: list[float] = []
    busy = (503, {}, b"{}")
    with (
        answering([None, busy, None, (200, {}, b'{"accepted":1}')]) as (url, seen),
        Connection(url, patience=patience(waits)) as connection,
    ):
        answer = connection.post("/x", b"the bytes", "text/plain")
        assert answer.json() == {"accepted": 1}
    assert waits == [1.0, 2.0, 3.0]
    assert seen == [("/x", b"the bytes")] * 4


def test_waits_are_drawn_so_that_devices_do_not_come_back_together() -> None:
    waits: list[float] = []
    with (
        answering([(503, {}, b"")]) as (url, _),
        Connection(url, patience=patience(waits, chance=0.25)) as connection,
        pytest.raises(Unreachable, match="503"),
    ):
        connection.get("/x")
    assert waits == [0.25, 0.5, 0.75]


@pytest.mark.parametrize(
    ("asked", "waited"), [("2", 2.0), ("100", 3.0), ("-1", 0.0), ("nan", 0.0), ("soon", 0.0)]
)
def test_it_waits_as_long_as_it_was_asked_within_reason(asked: str, waited: float) -> None:
    waits: list[float] = []
    answers = [(429, {"retry-after": asked}, b""), (200, {}, b"")]
    with (
        answering(answers) as (url, _),
        Connection(url, patience=patience(waits, chance=0.0)) as connection,
    ):
        assert connection.get("/x").status == 200
    assert waits == [waited]


def test_nobody_there_is_said_without_the_address() -> None:
    with Connection("http://127.0.0.1:9", patience=ONCE) as nobody:
        with pytest.raises(Unreachable, match="ConnectionRefusedError") as caught:
            nobody.get("/x")
        assert isinstance(caught.value, LolohaError)
        assert "127" not in str(caught.value)
    assert "secret" not in repr(Connection("http://h/x", token="secret"))


@pytest.mark.parametrize(
    "url", ["", "x", "http://", "ftp://h", "http://u:p@h", "http://h:0", "http://h:99999", None, 3]
)
def test_bad_addresses_are_refused(url: Any) -> None:
    with pytest.raises(ParameterError, match="url must"):
        Connection(url)


def test_redirections_are_not_followed() -> None:
    answers = [(302, {"location": "/elsewhere"}, b"")]
    with answering(answers) as (url, seen), Connection(url, patience=ONCE) as connection:
        assert connection.post("/x", b"y", "text/plain").status == 302
    assert len(seen) == 1


# -- a fleet


@pytest.fixture(autouse=True)
def patient_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine an answer takes its time: what is sent again counts as a duplicate."""
    monkeypatch.setattr("loloha.study.fleet.Collector", partial(Collector, timeout=120.0))


@pytest.mark.parametrize("name", ["biloloha", "rappor", "l-grr", "dbitflippm", "olh"])
def test_a_fleet_is_counted_whole(url: str, clock: Clock, name: str) -> None:
    sizes = {"olh": {"eps": 1.0}, "dbitflippm": {"eps_inf": 2.0, "b": 5, "d": 2}}
    protocol = loloha.protocol(name, k=5, **sizes.get(name, {"eps_inf": 2.0, "eps_1": 1.0}))
    clock.now = START + 3 * HOUR
    weak = {"accept_weak_privacy": True}
    terms = {"minimum_cohort": 1, "late_seconds": 5 * HOUR}
    where = url + create(url, campaign(protocol=protocol), terms=terms, **weak)
    values = np.random.default_rng(1).integers(-1, 5, size=(200, 3))
    seen: list[int] = []
    with Collector(where) as collector:
        one = collector.document()
    receipt = run_fleet(where, one, values, batch=64, progress=seen.append, rng=2)
    present = (values >= 0).sum(axis=0).tolist()
    assert [n for _, n, _ in rounds(where)] == present
    assert receipt.sent == receipt.accepted == sum(seen) == sum(present)
    assert (receipt.duplicates, receipt.refused) == (0, {})


def test_the_estimates_of_a_fleet_are_near_the_truth(url: str, clock: Clock) -> None:
    where = address(url, late_seconds=9 * HOUR)
    clock.now = START + 2 * HOUR
    share = np.array([0.5, 0.2, 0.2, 0.1, 0.0])
    values = np.random.default_rng(3).choice(5, size=(20_000, 2), p=share)
    run_fleet(where, campaign(), values, rng=4)
    base, _, path = where.partition("/v1/")
    for round in range(2):
        shown = get(base, f"/v1/{path}/rounds/{round}/estimates").json()
        truth = np.bincount(values[:, round], minlength=5) / 20_000
        z = (np.array(shown["frequencies"]) - truth) / np.array(shown["standard_errors"])
        # alpha = 10 x 2e-10: sees a wrong label order, round or protocol.
        assert np.abs(z).max() < 6.4, z


def test_a_fleet_says_what_was_refused(url: str) -> None:
    where = address(url)
    values = np.zeros((10, 3), dtype=int)
    receipt = run_fleet(where, campaign(), values)
    assert (receipt.accepted, receipt.refused) == (10, {"early": 20})


def test_a_fleet_that_does_not_fit_is_refused(url: str) -> None:
    where = address(url)
    for values in (
        np.zeros(3, dtype=int),
        np.full((2, 2), 5),
        np.zeros((2, 2)),
        np.full((1, 1), -2),
    ):
        with pytest.raises((DomainError, ParameterError), match="values must"):
            run_fleet(where, campaign(), values)
    one = np.zeros((1, 1), dtype=int)
    with pytest.raises(ParameterError, match="assigns"):
        run_fleet(where, campaign(keys="assigned"), one)
    with pytest.raises(CampaignError, match="take the batch"):
        run_fleet(f"{url}/v1/campaigns/{'0' * 64}", campaign(), one)


# -- command line


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*arguments: str, **environment: str) -> Ended:
        for name in ("LOLOHA_ADMIN_KEY", "LOLOHA_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        code = main(arguments)
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return run


def test_from_campaign_to_counted_reports_on_the_command_line(
    run: Run, url: str, tmp_path: Path, clock: Clock
) -> None:
    create = [
        "campaign", "create", "Hours", "--protocol", "biloloha", "--eps-inf", "2", "--eps-1", "1",
        "--labels", "a,b,c", "--other", "else", "--seconds", "3600", "--minimum-cohort", "1",
        "--start", "2026-01-01T00:00:00Z", "--users", "1000", "--to", url,
    ]  # fmt: skip
    refused = run(*create)
    assert refused.returncode == 1
    assert "LOLOHA_ADMIN_KEY" in refused.stderr
    done = run(*create, "--json", LOLOHA_ADMIN_KEY=ADMIN_KEY)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["created"]
    assert said["terms"]["minimum_cohort"] == 1
    assert said["verdict"]["n"] == 1000
    where = said["url"]
    shown = run("campaign", "show", where)
    assert said["fingerprint"] in shown.stdout
    assert "What leaks" in shown.stdout
    file = tmp_path / "campaign.json"
    assert run("campaign", "export", where, "--out", str(file)).returncode == 0
    assert run("campaign", "export", where, "--out", str(file)).returncode == 2
    assert json.loads(file.read_bytes()) == said["campaign"]

    table = tmp_path / "table.csv"
    table.write_text("user,r0,r1\n" + "".join(f"{i},{'abz'[i % 3]},b\n" for i in range(30)))
    clock.now = START + HOUR
    fleet = run("fleet", str(table), "--campaign", where, "--json")
    assert fleet.returncode == 0, fleet.stderr
    assert json.loads(fleet.stdout)["accepted"] == 60

    # The campaign's clock says round 1: of three rounds two can be sent.
    table.write_text("user,r0,r1,r2\n0,a,b,c\n")
    more = run("fleet", str(table), "--campaign", where)
    assert more.returncode == 2
    assert (
        "takes rounds 0 to 1 now, the table has 3 from round 0 on; --first 0 --rounds 2 fits"
        in (more.stderr)
    )
    assert run("fleet", str(table), "--campaign", where, "--rounds", "2").returncode == 0

    # The collector's clock stands at the campaign's first hour, this machine's does not.
    state = str(tmp_path / "me")
    without = run("report", "a", "--campaign", where, "--state", state)
    assert without.returncode == 1
    assert "--consent" in without.stderr
    early = run("report", "a", "--campaign", where, "--state", state, "--consent", "--json")
    assert early.returncode == 1, early.stderr
    assert len(json.loads(early.stdout)["waiting"]) == 1
    clock.now = time.time()
    sent = run("report", "--state", state, "--json")
    assert sent.returncode == 0, sent.stderr
    assert len(json.loads(sent.stdout)["sent"]) == 1
    gone = run("report", "--withdraw", "--state", state)
    assert gone.returncode == 0
    assert "deleted" in gone.stdout
    assert run("report", "a", "--withdraw", "--state", state).returncode == 2


def test_weak_privacy_and_bad_domains_are_refused_on_the_command_line(run: Run) -> None:
    create = ["campaign", "create", "x", "--protocol", "biloloha", "--eps-1", "1"]
    weak = run(*create, "--eps-inf", "9", "--labels", "a,b")
    assert weak.returncode == 1
    assert "limit of 5" in weak.stderr
    accepted = run(*create, "--eps-inf", "9", "--labels", "a,b", "--accept-weak-privacy")
    assert accepted.returncode == 0
    ranged = run(*create, "--eps-inf", "2", "--range", "0", "10", "--bins", "5", "--json")
    assert json.loads(ranged.stdout)["campaign"]["labels"] == {"range": [0, 10], "bins": 5}
    for domain in ([], ["--range", "0", "1"], ["--labels", "a,b", "--bins", "3"]):
        assert run(*create, "--eps-inf", "2", *domain).returncode == 2
