"""One upload for several campaigns: each report is answered as if it had come alone."""

import json
from typing import Any

import pytest

from collecting import ADMIN, campaign, clients, created, messages

PATH = "/v1/reports"


def send(client: Any, *parts: bytes, **headers: str) -> Any:
    body = b"[" + b",".join(parts) + b"]"
    return client.post(PATH, content=body, headers={"content-type": "application/json", **headers})


def test_each_report_is_answered_as_if_alone(serve: Any) -> None:
    client, hours, pages = serve(), campaign("hours"), campaign("pages")
    for one in (hours, pages):
        created(client, one)
    (first,), (second,) = (messages(one, clients(one, 1), 0) for one in (hours, pages))
    (late,) = messages(hours, clients(hours, 1, seed=5), 99)
    (unknown,) = messages(campaign("unknown"), clients(hours, 1), 0)
    parts = [first, second, first, late, unknown, b"3", b"{}", b"[]", first[:-1] + b',"x":1}']
    answers = send(client, *parts).json()["answers"]
    assert [one["status"] for one in answers[:5]] == [200, 200, 200, 425, 404]
    assert [one["status"] for one in answers[5:]] == [422] * 4
    for part, answer in zip(parts[:3], answers[:3], strict=True):
        assert answer["body"]["reporter"] == json.loads(part)["reporter"]
        assert answer["body"]["refused"] == []
    assert sum(one["body"]["accepted"] for one in answers[:3]) == 2
    assert answers[3]["body"]["reason"] == "early"
    assert answers[3]["body"]["reporter"] == json.loads(late)["reporter"]
    for one in (hours, pages):
        shown = client.get(f"/v1/campaigns/{one.fingerprint}/rounds").json()["rounds"]
        assert shown[0]["n"] == 1


def test_a_token_is_asked_for_as_if_alone(serve: Any) -> None:
    client, open_one, closed = serve(), campaign("open"), campaign("closed")
    created(client, open_one)
    body = {"campaign": closed.to_dict(), "token": True}
    token = client.post("/v1/campaigns", json=body, headers=ADMIN).json()["token"]
    parts = [messages(one, clients(one, 1), 0)[0] for one in (open_one, closed)]
    assert [one["status"] for one in send(client, *parts).json()["answers"]] == [200, 401]
    answers = send(client, *parts, authorization=f"Bearer {token}").json()["answers"]
    assert [one["status"] for one in answers] == [200, 200]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b" ", 400), (b"{}", 400), (b"[", 400), (b"[" * 100_000, 400), (b"\xff", 400), (b"[]", 413),
        (b"[" + b"{}," * 100 + b"{}]", 413), (b"[" + b" " * (1 << 20) + b"{}]", 413),
    ],
)  # fmt: skip
def test_what_is_no_small_array_is_refused(serve: Any, body: bytes, status: int) -> None:
    headers = {"content-type": "application/json"}
    assert serve().post(PATH, content=body, headers=headers).status_code == status


def test_a_parameter_that_means_nothing_is_refused(serve: Any) -> None:
    client, one = serve(), campaign()
    created(client, one)
    body = b"[" + messages(one, clients(one, 1), 0)[0] + b"]"
    headers = {"content-type": "application/json"}
    for query, status in (("?round=0", 422), ("", 200)):
        assert client.post(PATH + query, content=body, headers=headers).status_code == status
