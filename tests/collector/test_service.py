"""The HTTP interface: every route, every refusal, and what must never be in an answer or a log."""

import csv
import gzip
import io
import json
import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
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
from loloha import reportlog
from loloha.collector.commit import Committer
from loloha.collector.problem import MEDIA_TYPE
from loloha.collector.secret import hashed
from loloha.collector.store import Store
from loloha.errors import StoreError
from loloha.rules.campaign import Range, Schedule
from loloha.rules.report import Report
from loloha.wire import Refusal, encode
from loloha.wire.columns import CONTENT_TYPE, encode_many
from loloha.wire.message import key_from_text

JSON, LINES = "application/json", "application/x-ndjson"
EVERYTHING = {"minimum_cohort": 1}


def send(client: Any, path: str, body: bytes, media: str = JSON, **headers: str) -> Any:
    sent = {"content-type": media, **{name.replace("_", "-"): one for name, one in headers.items()}}
    return client.post(f"{path}/reports", content=body, headers=sent)


def fill(client: Any, path: str, one: Any, n: int = 30, round: int = 0) -> list[Any]:
    some = clients(one, n)
    answer = send(client, path, b"\n".join(messages(one, some, round)), LINES)
    assert answer.json() == {"accepted": n, "duplicates": 0, "refused": []}
    return some


# -- campaigns


def test_a_campaign_is_created_once_and_shown_to_everybody(serve: Any) -> None:
    client, one = serve(), campaign()
    body = {"campaign": one.to_dict(), "expected_users": 1000, "terms": {"late_seconds": 5}}
    first = client.post("/v1/campaigns", json=body, headers=ADMIN)
    assert first.status_code == 201
    path = first.headers["location"]
    assert path == f"/v1/campaigns/{one.fingerprint}"
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
        (b'{"surprise": 1}', 422, "object"),
        (b"{}", 422, "campaign must be"),
        (b'{"campaign": {"type": "x"}}', 422, "type"),
        ({"terms": []}, 422, "terms must be"),
        ({"terms": {"surprise": 1}}, 422, "terms must be"),
        ({"terms": {"late_seconds": -1}}, 422, "late_seconds must be"),
        ({"expected_users": 0}, 422, "n must be"),
        ({"expected_users": "many"}, 422, "n must be"),
        ({"token": "yes"}, 422, "token must be"),
        ({"accept_weak_privacy": 1}, 422, "accept_weak_privacy must be"),
        ({"campaign": campaign(protocol=loloha.GRR(k=5, eps=1.0)).to_dict()}, 422, "weak privacy"),
    ],
)
def test_a_bad_campaign_is_refused(serve: Any, body: Any, status: int, says: str) -> None:
    if isinstance(body, dict):
        body = json.dumps({"campaign": campaign().to_dict(), **body}).encode()
    answer = serve().post("/v1/campaigns", content=body, headers=ADMIN)
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


def test_keys_of_the_store_work_and_only_their_hash_is_kept(serve: Any, sqlite_url: str) -> None:
    store = Store(sqlite_url)
    store.add_admin_key(hashed("a second key"))
    store.add_admin_key(hashed("a second key"))
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
    assert shown["frequencies"] == estimate.frequencies.tolist()


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
        assert shown["frequencies"] == expected(each, some, 0).estimate().frequencies.tolist()


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


def test_keys_that_devices_draw_are_not_assigned(serve: Any) -> None:
    client = serve()
    path = created(client, campaign())
    assert client.post(f"{path}/keys").status_code == 409


# -- results


def test_estimates_in_every_form_say_the_same(serve: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one, terms=EVERYTHING)
    estimate = expected(one, fill(client, path, one, 50), 0).estimate()
    address = f"{path}/rounds/0/estimates"
    query = {"level": 0.9, "projected": True}
    shown = client.get(address, params=query).json()
    lower, upper = estimate.interval(0.9)
    assert shown["labels"] == one.labels
    assert shown["frequencies"] == estimate.frequencies.tolist()
    assert shown["standard_errors"] == estimate.standard_errors.tolist()
    assert shown["lower"] == lower.tolist()
    assert shown["upper"] == upper.tolist()
    assert sum(shown["projected"]) == pytest.approx(1)
    assert shown["simultaneous_error"] == pytest.approx(estimate.simultaneous(0.9).max())
    assert shown["values"] == list(range(one.protocol.bins))
    assert shown["bins"] == one.protocol.bins
    assert shown["clear"] == (estimate.frequencies > shown["simultaneous_error"]).sum()
    answer = client.get(address, params={**query, "format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["label"] for row in rows] == one.labels
    assert [float(row["frequency"]) for row in rows] == shown["frequencies"]
    assert [float(row["projected"]) for row in rows] == shown["projected"]
    answer = client.get(address, params={**query, "format": "parquet"})
    table = parquet.read_table(io.BytesIO(answer.content))
    assert table["frequency"].to_pylist() == shown["frequencies"]
    assert table["upper"].to_pylist() == shown["upper"]
    about = json.loads(table.schema.metadata[b"loloha"])
    assert about["parameters"] == shown["parameters"]
    assert about["campaign"] == one.fingerprint


def test_the_top_values_are_a_part_of_all_of_them(serve: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one, terms=EVERYTHING)
    fill(client, path, one, 50)
    address = f"{path}/rounds/0/estimates"
    query = {"projected": True}
    whole = client.get(address, params=query).json()
    shown = client.get(address, params={**query, "top": 2}).json()
    best = sorted(sorted(range(one.protocol.bins), key=lambda v: -whole["frequencies"][v])[:2])
    assert shown["values"] == best
    for column in ("labels", "frequencies", "standard_errors", "lower", "upper", "projected"):
        assert shown.pop(column) == [whole[column][v] for v in best]
    for about in ("bins", "clear", "simultaneous_error", "n"):
        assert shown[about] == whole[about]
    answer = client.get(address, params={"top": 2, "format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [int(row["value"]) for row in rows] == best
    assert client.get(address, params={**query, "top": 1000}).json() == whole


def test_a_domain_too_large_to_show_whole_shows_its_top(serve: Any) -> None:
    client = serve(apart=True)
    k = 1 << 22
    one = campaign(
        protocol=loloha.BiLOLOHA(k=k, eps_inf=2.0, eps_1=1.0), domain=Range(0.0, float(k), k)
    )
    path = created(client, one, terms=EVERYTHING)
    fill(client, path, one, 3)
    address = f"{path}/rounds/0/estimates"
    refused = client.get(address)
    assert refused.status_code == 413
    assert "top=1000" in refused.json()["detail"]
    shown = client.get(address, params={"top": 10}).json()
    assert (shown["n"], len(shown["values"]), shown["bins"]) == (3, 10, k)


def test_realised_parameters_go_out_with_every_estimate(serve: Any) -> None:
    # PAINS 16.
    client, one = serve(), campaign()
    path = created(client, one, terms=EVERYTHING)
    fill(client, path, one, 5)
    realised = {"g": one.protocol.g, **one.protocol.realised.to_dict()}
    for address in ("rounds/0/estimates", "series", "privacy"):
        told = client.get(f"{path}/{address}").json()["parameters"]
        assert realised.items() <= told.items()


def test_estimates_below_the_minimum_cohort_are_withheld(serve: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one, terms={"minimum_cohort": 10})
    address = f"{path}/rounds/0/estimates"
    assert client.get(address).json()["withheld"] == "no_reports"
    some = fill(client, path, one, 9)
    shown = client.get(address).json()
    assert shown["withheld"] == "minimum_cohort"
    assert "frequencies" not in shown
    assert client.get(address, params={"format": "csv"}).status_code == 409
    series = client.get(f"{path}/series").json()
    assert (series["n"], series["frequencies"]) == ([9], [None])
    assert not client.get(f"{path}/rounds").json()["rounds"][0]["shown"]
    send(client, path, messages(one, clients(one, 10), 0)[9])
    assert len(some) == 9
    assert client.get(address).json()["withheld"] is None
    assert len(client.get(f"{path}/series").json()["frequencies"][0]) == 5


def test_series_over_rounds_for_chosen_and_for_top_values(serve: Any, clock: Clock) -> None:
    client, one = serve(), campaign()
    path = created(client, one, terms={**EVERYTHING, "late_seconds": 10 * HOUR})
    clock.now = START + 3 * HOUR
    tallies = [expected(one, fill(client, path, one, 20 + t, t), t) for t in range(3)]
    means = np.mean([tally.estimate().frequencies for tally in tallies], axis=0)
    series = client.get(f"{path}/series").json()
    assert series["rounds"] == [0, 1, 2]
    assert series["n"] == [20, 21, 22]
    assert series["labels"] == one.labels
    for shown, tally in zip(series["frequencies"], tallies, strict=True):
        assert shown == tally.estimate().frequencies.tolist()
    chosen = client.get(f"{path}/series", params={"value": [3, 1]}).json()
    assert chosen["labels"] == ["d", "b"]
    assert chosen["frequencies"][1] == tallies[1].estimate().frequencies[[3, 1]].tolist()
    top = client.get(f"{path}/series", params={"top": 2}).json()
    assert top["values"] == sorted(np.argsort(-means)[:2].tolist())
    assert client.get(f"{path}/series", params={"newest": 1}).json()["rounds"] == [2]
    assert client.get(f"{path}/series", params={"first": 1, "last": 1}).json()["rounds"] == [1]
    assert client.get(f"{path}/series", params={"value": 5}).status_code == 422
    text = client.get(f"{path}/series", params={"format": "csv", "level": 0.9})
    assert text.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(text.text)))
    assert len(rows) == 3 * 5
    assert rows[6]["label"] == one.labels[1]
    assert rows[6]["start"].replace(" ", "T") == series["begins"][1]
    assert (rows[6]["campaign"], rows[6]["level"]) == (one.fingerprint, "0.9")
    middle = tallies[1].estimate()
    assert float(rows[6]["estimate"]) == middle.frequencies[1]
    assert float(rows[6]["low"]) == pytest.approx(middle.interval(0.9)[0][1], rel=1e-12)
    saved = client.get(f"{path}/series", params={"format": "parquet", "top": 2}).content
    assert pyarrow.parquet.read_table(io.BytesIO(saved)).num_rows == 3 * 2


def test_buckets_without_any_user_are_null(serve: Any) -> None:
    protocol = loloha.DBitFlipPM(k=5, eps_inf=2.0, b=5, d=1)
    client, one = serve(), campaign(protocol=protocol)
    path = created(client, one, terms=EVERYTHING)
    fill(client, path, one, 1)
    shown = client.get(f"{path}/rounds/0/estimates", params={"projected": True}).json()
    assert shown["frequencies"].count(None) == 4
    assert shown["projected"].count(None) == 4
    assert client.get(f"{path}/series?top=2").status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "level=0.1", "level=1", "level=nan", "level=x", "format=xml", "projected=maybe",
        "level=0.99999999999999999",
    ],
)  # fmt: skip
def test_bad_queries_are_refused(serve: Any, query: str) -> None:
    client = serve()
    path = created(client, campaign())
    answer = client.get(f"{path}/rounds/0/estimates?{query}")
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("query.")


def test_rounds_without_end_are_not_found(serve: Any) -> None:
    client = serve()
    path = created(client, campaign())
    for round, status in (((1 << 53) - 1, 404), (1 << 53, 422), (-1, 422), (10**6, 200)):
        assert client.get(f"{path}/rounds/{round}/estimates").status_code == status


def test_privacy_is_told_in_plain_words(serve: Any) -> None:
    client, one = serve(), campaign()
    shown = client.get(f"{created(client, one)}/privacy").json()
    found = loloha.privacy.explain(one.protocol)
    assert shown["text"] == str(found)
    assert shown["cap"] == one.protocol.cap
    assert shown["growth"][0] == {"reports": 1, "eps": found.growth[0][1]}
    assert shown["leaks"] == list(found.leaks)


def test_whoever_polls_is_told_that_nothing_has_changed(serve: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one, terms=EVERYTHING)
    fill(client, path, one, 5)
    for address in (
        "/v1/campaigns", path, f"{path}/rounds", f"{path}/rounds/0/estimates", f"{path}/series",
        f"{path}/privacy",
    ):  # fmt: skip
        tag = client.get(address).headers["etag"]
        for known in (tag, f'"x", W/{tag}'):
            answer = client.get(address, headers={"if-none-match": known})
            assert (answer.status_code, answer.content) == (304, b"")
            assert answer.headers["etag"] == tag
        assert client.get(address, headers={"if-none-match": '"x"'}).status_code == 200
    before = client.get(f"{path}/series").headers["etag"]
    send(client, path, messages(one, clients(one, 1, seed=77), 0)[0])
    assert client.get(f"{path}/series", headers={"if-none-match": before}).status_code == 200


def test_a_domain_of_1e5_labels_is_shown(serve: Any) -> None:
    k = 100_000
    wide = campaign(protocol=loloha.BiLOLOHA(k=k, eps_inf=2.0, eps_1=1.0), domain=Range(0, k, k))
    client = serve()
    path = created(client, wide, terms=EVERYTHING)
    fill(client, path, wide, 3)
    assert len(client.get(f"{path}/rounds/0/estimates").json()["frequencies"]) == k
    assert len(client.get(f"{path}/series").json()["labels"]) == k


def test_a_domain_too_wide_to_show_still_has_its_top(serve: Any) -> None:
    k = 1 << 22
    wide = campaign(protocol=loloha.BiLOLOHA(k=k, eps_inf=2.0, eps_1=1.0), domain=Range(0, k, k))
    client = serve()
    path = created(client, wide, terms=EVERYTHING)
    assert client.get(f"{path}/rounds/0/estimates").status_code == 413
    shown = client.get(f"{path}/series", params={"value": [0, k - 1]}).json()
    assert shown["labels"] == ["[0, 1)", f"[{k - 1}, {k}]"]


# -- operations


def test_every_answer_carries_the_security_headers(serve: Any) -> None:
    client = serve()
    path = created(client, campaign())
    for address in ("/healthz", "/metrics", "/openapi.json", "/nothing", path):
        headers = client.get(address).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_a_fault_of_ours_is_a_problem_without_details(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve()
    path = created(client, campaign())

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a detail that nobody should see")

    monkeypatch.setattr("loloha.collector.results.privacy.explain", broken)
    answer = client.get(f"{path}/privacy")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert "detail that nobody" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_one_upload_that_breaks_the_commit_fails_alone(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, one = serve(), campaign()
    path = created(client, one)
    honest = Store.record

    def broken(self: Store, submissions: Any, now: float) -> Any:
        if any(len(each.batch.index) == 2 for each in submissions):
            raise RuntimeError("a fault")
        return honest(self, submissions, now)

    monkeypatch.setattr(Store, "record", broken)
    first, second, third = messages(one, clients(one, 3), 0)
    assert send(client, path, b"\n".join([first, second]), LINES).status_code == 500
    assert send(client, path, third).json()["accepted"] == 1


def test_requests_are_limited_per_address(serve: Any) -> None:
    client = serve(rate_limit="3/minute")
    answers = [client.get("/v1/campaigns").status_code for _ in range(5)]
    assert answers == [200, 200, 200, 429, 429]
    last = client.get("/v1/campaigns")
    assert last.headers["retry-after"] == "1"
    assert last.headers["content-type"] == MEDIA_TYPE
    assert client.get("/healthz").status_code == 200


def test_a_full_queue_asks_to_come_back(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client, one = serve(), campaign()
    path = created(client, one)

    async def full(*_: object) -> None:
        raise StoreError("queue must have room for the upload, too many wait; send it later")

    monkeypatch.setattr(Committer, "commit", full)
    answer = send(client, path, messages(one, clients(one, 1), 0)[0])
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"


def test_health_tells_that_another_collector_has_taken_over(serve: Any) -> None:
    client = serve()
    assert client.head("/healthz").status_code == 200
    Store(client.app.state.context.settings.store).close()
    answer = client.get("/healthz")
    assert answer.status_code == 503
    assert "taken it over" in answer.json()["detail"]


def test_reports_cannot_be_kept_where_nothing_can_be_written(serve: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="keep_reports must be a folder to write to"):
        serve(keep_reports=str(tmp_path / "file" / "log"))


def test_health_tells_whether_the_store_answers(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve()
    assert client.get("/healthz").json()["status"] == "ok"

    def broken(_: Store) -> None:
        raise StoreError("store must be reachable; try again")

    monkeypatch.setattr(Store, "ping", broken)
    answer = client.get("/healthz")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"


def test_no_secret_value_key_or_address_is_logged(
    serve: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client, one = serve(), campaign()
    body = {"campaign": one.to_dict(), "token": True}
    token = client.post("/v1/campaigns", json=body, headers=ADMIN).json()["token"]
    path = f"/v1/campaigns/{one.fingerprint}"
    (message,) = messages(one, clients(one, 1), 0)
    send(client, path, message, authorization=f"Bearer {token}")
    send(client, path, b"{}", authorization="Bearer wrong-token")
    client.get(f"{path}/rounds/0/estimates")
    client.get(f"/nothing-{token}")
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("loloha")]
    assert any("/v1/campaigns/{fingerprint}/reports 200" in line for line in ours)
    text = "\n".join(ours)
    for secret in (token, ADMIN_KEY, "wrong-token", json.loads(message)["reporter"], "testclient"):
        assert secret not in text


def test_metrics_have_no_label_for_a_value_or_campaign(serve: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one)
    fill(client, path, one, 5)
    text = client.get("/metrics").text
    assert 'loloha_reports_total{outcome="accepted"} 5.0' in text
    assert one.fingerprint not in text
    assert 'route="/v1/campaigns/{fingerprint}/reports"' in text


def test_pages_of_allowed_origins_may_send_reports(serve: Any) -> None:
    origin = "https://app.example"
    asked = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    allowed, closed = serve(allowed_origins=[origin]), serve()
    answer = allowed.options("/v1/campaigns/x/reports", headers=asked)
    assert answer.headers["access-control-allow-origin"] == origin
    assert (
        "access-control-allow-origin"
        not in closed.options("/v1/campaigns/x/reports", headers=asked).headers
    )


@pytest.mark.parametrize("status", [429, 421, 413, 415, 404, 503, 500])
def test_pages_of_allowed_origins_may_read_every_error(
    serve: Any, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    # A browser hid them: a page could not tell a rate limit from a broken network.
    origin = "https://app.example"
    limits = {"rate_limit": "2/minute"} if status == 429 else {}
    client = serve(allowed_origins=[origin], largest_body=1024, **limits)
    path = f"{created(client, campaign())}/reports" if status != 404 else "/v1/nothing"
    if status in (500, 503):

        async def fails(*_: object) -> None:
            raise ZeroDivisionError if status == 500 else StoreError("store must work")

        monkeypatch.setattr(Committer, "commit", fails)
    headers = {"origin": origin, "content-type": JSON}
    headers |= {"host": "evil.example"} if status == 421 else {}
    headers |= {"content-type": "text/plain"} if status == 415 else {}
    body = b" " * 2000 if status == 413 else b"[]"
    for _ in range(2):
        answer = client.post(path, content=body, headers=headers)
    assert answer.status_code == status
    assert answer.headers["access-control-allow-origin"] == origin
    assert "Retry-After" in answer.headers["access-control-expose-headers"]
    assert ("retry-after" in answer.headers) == (status in (429, 503))
    assert answer.headers["x-content-type-options"] == "nosniff"
    elsewhere = client.post(path, content=body, headers={**headers, "origin": "https://x.example"})
    assert "access-control-allow-origin" not in elsewhere.headers


def test_a_log_of_reports_is_kept_on_demand_and_holds_each_once(serve: Any, tmp_path: Any) -> None:
    client, one = serve(keep_reports=str(tmp_path / "log")), campaign()
    path = created(client, one)
    some = fill(client, path, one, 25)
    send(client, path, messages(one, some, 0)[0])
    client.app.state.context.close()
    log = reportlog.ReportLog(tmp_path / "log", one)
    contents = log.scan()
    contents.must_be_clean()
    assert contents.rows == 25


def test_the_openapi_document_describes_every_route(serve: Any) -> None:
    client = serve()
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert {
        "/v1/campaigns",
        "/v1/campaigns/{fingerprint}",
        "/v1/campaigns/{fingerprint}/reports",
        "/v1/campaigns/{fingerprint}/rounds/{round}/estimates",
        "/healthz",
        "/metrics",
    } <= set(document["paths"])
    text = json.dumps(document)
    for name in document["components"]["schemas"]:
        assert name in text
    for name in re.findall(r"#/components/schemas/(\w+)", text):
        assert name in document["components"]["schemas"], name
