"""Campaigns, uploads and keys over HTTP: every route, every refusal."""

import gzip
import json
from typing import Any
from urllib.parse import urljoin

import numpy as np
import pyarrow
import pytest

import loloha
from collecting import (
    ADMIN,
    ADMIN_KEY,
    HOUR,
    START,
    Clock,
    batch,
    campaign,
    clients,
    created,
    expected,
    messages,
)
from loloha.campaign import Schedule
from loloha.collector.problem import MEDIA_TYPE
from loloha.collector.secret import hashed
from loloha.collector.store import Store
from loloha.report import Report
from loloha.wire import Refusal, encode
from loloha.wire.columns import CONTENT_TYPE, encode_many
from loloha.wire.message import key_from_text
from serving import accept_key
from uploading import EVERYTHING, JSON, LINES, fill, send

# -- campaigns


def test_a_campaign_is_created_once_and_shown_to_everybody(serve: Any) -> None:
    client, one = serve(), campaign()
    body = {"campaign": one.to_dict(), "expected_users": 1000, "terms": {"late_seconds": 5}}
    first = client.post("/v1/campaigns", json=body, headers=ADMIN)
    assert first.status_code == 201
    path = urljoin("/v1/campaigns", first.headers["location"])
    assert path == f"/v1/campaigns/{one.fingerprint}"
    assert first.json()["accuracy_check"] == first.json()["verdict"]
    assert first.json()["verdict"]["n"] == 1000
    again = client.post("/v1/campaigns", json={"campaign": one.to_dict()}, headers=ADMIN)
    assert again.status_code == 200
    assert not again.json()["created"]
    shown = client.get(path).json()
    assert shown["document"] == one.to_dict()
    assert shown["terms"] == {
        "late_seconds": 5,
        "early_seconds": 60,
        "minimum_cohort": 100,
        "publish_every": 100,
    }
    assert shown["now"] == {"round": 0, "first_open": 0, "last_open": 0}
    assert client.get(f"{path}/document").content == one.to_json()
    (listed,) = client.get("/v1/campaigns").json()["campaigns"]
    assert {**listed, "document": one.to_dict()} == shown


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"{", 400, "JSON"),
        (b"[]", 422, "object"),
        (b'{"surprise": 1}', 422, "unknown field `surprise`"),
        (b"{}", 422, "missing required field `campaign`"),
        (b'{"campaign": {"type": "x"}}', 422, "type"),
        ({"terms": []}, 422, "`$.terms`"),
        ({"terms": {"surprise": 1}}, 422, "terms must be"),
        ({"terms": {"late_seconds": -1}}, 422, "late_seconds must be"),
        ({"expected_users": 0}, 422, "`int` >= 1 - at `$.expected_users`"),
        ({"expected_users": "many"}, 422, "`$.expected_users`"),
        ({"token": "yes"}, 422, "`$.token`"),
        ({"accept_weak_privacy": 1}, 422, "`bool`, got `int` - at `$.accept_weak_privacy`"),
        ({"campaign": campaign(protocol=loloha.GRR(k=5, eps=1.0)).to_dict()}, 422, "weak privacy"),
    ],
)
def test_a_bad_campaign_is_refused(serve: Any, body: Any, status: int, says: str) -> None:
    if isinstance(body, dict):
        body = json.dumps({"campaign": campaign().to_dict(), **body}).encode()
    headers = {**ADMIN, "content-type": "application/json"}
    answer = serve().post("/v1/campaigns", content=body, headers=headers)
    assert answer.status_code == status
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert says in answer.json()["detail"]


def test_tolerances_keep_at_most_a_thousand_rounds_open(serve: Any) -> None:
    client, short = serve(), campaign(schedule=Schedule(START, 10))
    path = created(client, short)
    assert client.get(path).json()["terms"]["late_seconds"] == 5000
    other = campaign("other", schedule=Schedule(START, 10))
    body = {"campaign": other.to_dict(), "terms": {"late_seconds": 10_000, "early_seconds": 1}}
    answer = client.post("/v1/campaigns", json=body, headers=ADMIN)
    assert answer.status_code == 422
    assert "at most 10000" in answer.json()["detail"]


def test_weak_privacy_can_be_accepted(serve: Any) -> None:
    client = serve()
    created(client, campaign(protocol=loloha.GRR(k=5, eps=1.0)), accept_weak_privacy=True)


def test_admin_calls_need_a_key(serve: Any) -> None:
    client = serve()
    body = {"campaign": campaign().to_dict()}
    for headers, status in (
        ({}, 401),
        ({"Authorization": ADMIN_KEY}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": f"Basic {ADMIN_KEY}"}, 401),
        ({"Authorization": f"Bearer {ADMIN_KEY}x"}, 403),
        ({"Authorization": "Bearer " + "x" * 10_000}, 401),
        ({"Authorization": b"Bearer \xff\xfe"}, 403),
    ):
        answer = client.post("/v1/campaigns", json=body, headers=headers)
        assert answer.status_code == status, headers
        assert ADMIN_KEY not in answer.text
        assert ("www-authenticate" in answer.headers) == (status == 401)
    assert client.get("/v1/campaigns").json() == {"campaigns": [], "more": False}


def test_keys_of_the_store_work_and_only_their_hash_is_stored(serve: Any, sqlite_url: str) -> None:
    store = Store(sqlite_url)
    accept_key(store, hashed("a second key"), START)
    store.close()
    client = serve(admin_key=None)
    body = {"campaign": campaign().to_dict()}
    assert client.post("/v1/campaigns", json=body, headers=ADMIN).status_code == 403
    second = {"Authorization": "Bearer a second key"}
    assert client.post("/v1/campaigns", json=body, headers=second).status_code == 201


def test_without_any_admin_key_nobody_is_admin(serve: Any) -> None:
    client = serve(admin_key=None)
    body = {"campaign": campaign().to_dict()}
    assert client.post("/v1/campaigns", json=body, headers=ADMIN).status_code == 403


def test_a_submit_token_is_shown_once_and_then_needed(serve: Any) -> None:
    client, one = serve(), campaign()
    body = {"campaign": one.to_dict(), "token": True}
    token = client.post("/v1/campaigns", json=body, headers=ADMIN).json()["token"]
    again = client.post("/v1/campaigns", json=body, headers=ADMIN).json()
    assert again["token"] is None
    assert again["campaign"]["needs_token"]
    path = f"/v1/campaigns/{one.fingerprint}"
    (message,) = messages(one, clients(one, 1), 0)
    assert send(client, path, message).status_code == 401
    assert send(client, path, message, authorization="Bearer x").status_code == 403
    assert send(client, path, message, authorization=f"Bearer {token}").status_code == 200
    assert token not in client.get("/v1/campaigns").text


# -- uploads


def test_one_report_at_a_time_and_idempotent(serve: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one)
    (device,) = clients(one, 1)
    (message,) = messages(one, [device], 0)
    # The answer says whose receipt it is: a device knows its own from one out of a cache.
    whose = {"reporter": device.reporter(0), "refused": []}
    assert send(client, path, message).json() == {"accepted": 1, "duplicates": 0, **whose}
    assert send(client, path, message).json() == {"accepted": 0, "duplicates": 1, **whose}
    other = json.dumps({**json.loads(message), "y": "00" if b'"y":"01"' in message else "01"})
    refused = send(client, path, other.encode()).json()
    assert (refused["reason"], refused["reporter"]) == ("conflict", device.reporter(0))
    assert "reporter" not in send(client, path, b"[" + message + b"]").json()


@pytest.mark.parametrize("form", ["lines", "array", "arrow"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("n", [3, 600])
def test_batches_of_every_form(serve: Any, form: str, packed: bool, n: int) -> None:
    client, one = serve(), campaign()
    path = created(client, one, terms=EVERYTHING)
    some = clients(one, n)
    encoded = messages(one, some, 0)
    media = {"lines": LINES, "array": JSON, "arrow": CONTENT_TYPE}[form]
    if form == "lines":
        body = b"\n".join(encoded)
    elif form == "array":
        body = b"[" + b",".join(encoded) + b"]"
    else:
        read = batch(one, encoded)
        names = read.reporters.view(np.uint8).reshape(-1, 16)
        body = encode_many(one, names, read.keys, read.ys, rounds=0)
    headers = {"content_encoding": "gzip"} if packed else {}
    body = gzip.compress(body) if packed else body
    answer = send(client, path, body, media, **headers)
    assert answer.json() == {"accepted": n, "duplicates": 0, "refused": []}
    shown = client.get(f"{path}/rounds/0/estimates").json()
    estimate = expected(one, some, 0).estimate()
    assert shown["estimate"] == estimate.frequencies.tolist()


def test_a_batch_lists_what_was_refused(serve: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one)
    some = clients(one, 3)
    first, second, third = messages(one, some, 0)
    early = messages(one, some, 7)[0]
    answer = send(client, path, b"\n".join([first, b"{}", second, early, first, third]), LINES)
    assert answer.status_code == 200
    assert answer.json() == {
        "accepted": 3,
        "duplicates": 1,
        "refused": [{"index": 1, "reason": "malformed"}, {"index": 3, "reason": "early"}],
        "reasons": {"malformed": 1, "early": 1},
    }


def test_a_receipt_stays_small_however_many_are_refused(serve: Any) -> None:
    client = serve()
    path = created(client, campaign())
    receipt = send(client, path, b"0\n" * 60_000 + b"{}", LINES)
    said = receipt.json()
    assert (said["accepted"], said["duplicates"]) == (0, 0)
    assert said["reasons"] == {"malformed": 60_001}
    assert [one["index"] for one in said["refused"]] == list(range(1000))
    assert len(receipt.content) < 50_000


@pytest.mark.long
def test_ten_million_reports_of_no_bytes_are_refused(serve: Any) -> None:
    # 400 bytes of Arrow made an answer of 459 MB; 65 KB of gzip held 33 million zeros.
    client = serve(apart=True)
    path = created(client, campaign())
    sink = pyarrow.BufferOutputStream()
    nulls = pyarrow.record_batch({"y": pyarrow.nulls(10_000_000)})
    with pyarrow.ipc.new_stream(sink, nulls.schema) as stream:
        stream.write_batch(nulls)
    zeros = gzip.compress(b"[" + b",".join([b"0"] * 10_000_000) + b"]", 1)
    answers = [
        send(client, path, sink.getvalue().to_pybytes(), CONTENT_TYPE),
        send(client, path, zeros, JSON, content_encoding="gzip"),
    ]
    for answer in answers:
        assert (answer.status_code, answer.json()["type"]) == (413, "urn:loloha:problem:too-large")
        assert len(answer.content) < 500


def test_a_single_report_that_is_refused_is_a_problem(serve: Any, clock: Clock) -> None:
    client, one = serve(), campaign()
    path = created(client, one, terms={"late_seconds": HOUR})
    (some,) = clients(one, 1)
    (message,) = messages(one, [some], 0)
    send(client, path, message)
    plain = json.loads(message)
    report = some.report(0, round=0)
    other = encode(one, Report(report.key, 1 - report.y), round=0, reporter=some.reporter(0))
    cases = [
        (other, 409, Refusal.CONFLICT),
        (json.dumps({**plain, "campaign": "0" * 64}).encode(), 409, Refusal.CAMPAIGN),
        (json.dumps({**plain, "version": 2}).encode(), 422, Refusal.VERSION),
        (json.dumps({**plain, "y": "ff"}).encode(), 422, Refusal.ANSWER),
        (json.dumps({**plain, "key": "00"}).encode(), 422, Refusal.KEY),
        (json.dumps({**plain, "reporter": "x"}).encode(), 422, Refusal.REPORTER),
        (b'{"version": 1}', 422, Refusal.MALFORMED),
        (messages(one, [some], 3)[0], 425, Refusal.EARLY),
    ]
    for body, status, reason in cases:
        answer = send(client, path, body)
        assert (answer.status_code, answer.json()["reason"]) == (status, reason)
        assert answer.headers["content-type"] == MEDIA_TYPE
        assert ("retry-after" in answer.headers) == (reason is Refusal.EARLY)
    clock.now += 3 * HOUR
    answer = send(client, path, messages(one, clients(one, 1, seed=9), 0)[0])
    assert (answer.status_code, answer.json()["reason"]) == (410, Refusal.LATE)
    rounds = client.get(f"{path}/rounds").json()["rounds"]
    assert [one["n"] for one in rounds] == [1, 0]
    assert rounds[0]["conflicts"] == 1
    assert rounds[0]["state"] == "closed"
    assert sum(rounds[0]["refused"].values()) == len(cases)
    assert rounds[1]["refused"] == {"late": 1}


def test_a_single_report_is_answered_alike_whatever_its_size(serve: Any) -> None:
    """Above 32 KiB answers lacked the report's `reporter`, or wrote another: nothing settled it."""
    client, one = serve(), campaign(protocol=loloha.RAPPOR(k=5, eps_inf=2.0, eps_1=1.0))
    path = created(client, one, terms=EVERYTHING)
    (message,) = messages(one, clients(one, 1), 0)
    plain = json.loads(message)
    reporter = plain["reporter"].upper()
    for change in (
        {}, {"y": "ff"}, {"y": ""}, {"campaign": "0" * 64}, {"version": 2}, {"reporter": "x"},
        {"reporter": 7},
    ):  # fmt: skip
        body = json.dumps({**plain, "reporter": reporter, **change}).encode()
        # Once counted, both are duplicates.
        send(client, path, body)
        small, large = (send(client, path, blanks + body) for blanks in (b"", b" " * 40_000))
        assert (small.status_code, small.json()) == (large.status_code, large.json()), change
        if "reporter" not in change:
            assert large.json()["reporter"] == reporter


def test_a_foreign_fingerprint_is_refused_and_counted(serve: Any) -> None:
    # PAINS 10.
    client = serve()
    ours = created(client, campaign("ours"))
    theirs = campaign("theirs")
    answer = send(client, ours, b"\n".join(messages(theirs, clients(theirs, 4), 0)), LINES)
    assert answer.json()["refused"] == [
        {"index": i, "reason": "foreign_campaign"} for i in range(4)
    ]
    (round,) = client.get(f"{ours}/rounds").json()["rounds"]
    assert (round["n"], round["refused"]) == (0, {"foreign_campaign": 4})
    assert b'outcome="foreign_campaign"} 4.0' in client.get("/metrics").content


def test_replays_are_counted_once(serve: Any) -> None:
    # PAINS 17, over HTTP.
    client, one = serve(), campaign()
    path = created(client, one, terms=EVERYTHING)
    some = fill(client, path, one, 20)
    body = b"\n".join(messages(one, some, 0))
    for _ in range(3):
        answer = send(client, path, body, LINES).json()
        assert (answer["accepted"], answer["duplicates"]) == (0, 20)
    assert client.get(f"{path}/rounds/0/estimates").json()["n"] == 20


def test_two_campaigns_at_once_stay_apart(serve: Any) -> None:
    # PAINS 20.
    client, one, two = serve(), campaign("one"), campaign("two")
    paths = [created(client, each, terms=EVERYTHING) for each in (one, two)]
    both = [fill(client, paths[0], one, 7), fill(client, paths[1], two, 9)]
    for path, each, some in zip(paths, (one, two), both, strict=True):
        shown = client.get(f"{path}/rounds/0/estimates").json()
        assert shown["estimate"] == expected(each, some, 0).estimate().frequencies.tolist()


def test_rounds_follow_the_clock_across_midnight(serve: Any, clock: Clock) -> None:
    # PAINS 19: the round is the report's own, not one that was fixed when the service started.
    client, one = serve(), campaign()
    path = created(client, one, terms={"late_seconds": 60, "early_seconds": 0, **EVERYTHING})
    (some,) = clients(one, 1)
    for round in range(23, 26):
        clock.now = START + round * HOUR
        assert send(client, path, messages(one, [some], round)[0]).status_code == 200
        assert send(client, path, messages(one, [some], round + 1)[0]).status_code == 425
        clock.now += HOUR + 59
        (late,) = clients(one, 1, seed=round)
        assert send(client, path, messages(one, [late], round)[0]).status_code == 200
        clock.now += 1
        (later,) = clients(one, 1, seed=round + 100)
        assert send(client, path, messages(one, [later], round)[0]).status_code == 410
    assert [one["n"] for one in client.get(f"{path}/rounds").json()["rounds"]] == [2, 2, 2, 0]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"3", {}, 400),
        (b"", {}, 400),
        (b"{}", {"media": "text/plain"}, 415),
        (b"{}", {"media": ""}, 415),
        (b"{}", {"content_encoding": "br"}, 415),
        (b"{}", {"content_encoding": "gzip"}, 400),
        (gzip.compress(b"[]", mtime=0)[:-1], {"content_encoding": "gzip"}, 400),
        (gzip.compress(b"[]", mtime=0) + b"x", {"content_encoding": "gzip"}, 400),
        (b"x" * 3000, {}, 413),
        (gzip.compress(b" " * 6000, mtime=0), {"content_encoding": "gzip"}, 413),
        (b"not arrow", {"media": CONTENT_TYPE}, 400),
    ],
)
def test_uploads_that_cannot_be_read(
    serve: Any, body: bytes, headers: dict[str, str], status: int
) -> None:
    client = serve(largest_body=2048, largest_unpacked=4096)
    path = created(client, campaign())
    answer = send(client, path, body, headers.pop("media", JSON), **headers)
    assert answer.status_code == status
    assert answer.headers["content-type"] == MEDIA_TYPE


def test_a_body_without_length_is_cut_off_too(serve: Any) -> None:
    client = serve(largest_body=2048)
    path = created(client, campaign())

    def endless() -> Any:
        for _ in range(100):
            yield b" " * 1000

    headers = {"content-type": JSON}
    answer = client.post(f"{path}/reports", content=endless(), headers=headers)
    assert answer.status_code == 413


def test_unknown_campaigns_and_paths_are_problems(serve: Any) -> None:
    client = serve()
    for path in ("/v1/campaigns/" + "0" * 64, "/v1/campaigns/x", "/nothing", "/v1/campaigns/"):
        answer = client.get(path)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == MEDIA_TYPE
    assert client.put("/v1/campaigns").status_code == 405


# -- assigned keys


def test_an_attacker_cannot_pick_the_key_that_helps_him(serve: Any) -> None:
    # PAINS 24.
    client, one = serve(), campaign(keys="assigned")
    path = created(client, one, terms=EVERYTHING)
    given = client.post(f"{path}/keys").json()
    key = key_from_text(one, given["key"])
    some = one.protocol.client(key=key)
    report = some.report(2, round=0)
    good = encode(one, report, round=0, reporter=some.reporter(0), ticket=given["ticket"])
    picked = Report(key % (one.protocol.encoding.family.size - 1) + 1, report.y)
    assert picked.key != key
    bad = encode(one, picked, round=0, reporter=some.reporter(1), ticket=given["ticket"])
    without = encode(one, report, round=0, reporter=some.reporter(2))
    answer = send(client, path, b"\n".join([bad, good, without]), LINES).json()
    assert answer["accepted"] == 1
    assert [(each["index"], each["reason"]) for each in answer["refused"]] == [
        (0, "bad_ticket"),
        (2, "bad_ticket"),
    ]


def test_assigned_keys_are_drawn_from_the_whole_family(serve: Any) -> None:
    client, one = serve(), campaign(keys="assigned")
    path = created(client, one)
    drawn = {client.post(f"{path}/keys").json()["key"] for _ in range(150)}
    assert drawn == {f"{key:02x}" for key in range(1, 8)}


def test_sampled_buckets_are_assigned_too(serve: Any) -> None:
    protocol = loloha.DBitFlipPM(k=5, eps_inf=2.0, b=5, d=2)
    client, one = serve(), campaign(protocol=protocol, keys="assigned")
    path = created(client, one)
    given = client.post(f"{path}/keys").json()
    some = protocol.client(key=key_from_text(one, given["key"]))
    message = encode(
        one,
        some.report(1, round=0),
        round=0,
        reporter=some.reporter(0),
        ticket=given["ticket"],
    )
    assert send(client, path, message).status_code == 200


def test_keys_that_may_isolate_a_value_are_not_assigned(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = loloha.OLOLOHA(k=5, eps_inf=2.0, eps_1=1.0, g=4, hash="affine")
    client, one = serve(), campaign(protocol=protocol, keys="assigned")
    with pytest.raises(AssertionError, match="some of these keys put all values"):
        created(client, one)
    # One that 0.2.0 created.
    with monkeypatch.context() as before:
        before.setattr("loloha.collector.campaigns.require_fit_keys", lambda campaign: None)
        path = created(client, one)
    answer = client.post(f"{path}/keys")
    assert answer.status_code == 409
    assert answer.json()["type"].endswith("keys-are-not-assigned")


def test_keys_that_devices_draw_are_not_assigned(serve: Any) -> None:
    client = serve()
    path = created(client, campaign())
    assert client.post(f"{path}/keys").status_code == 409
