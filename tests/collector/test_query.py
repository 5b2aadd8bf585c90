"""What is asked is written in one way, and no error is an echo of it."""

import json
from typing import Any

import pytest

from collecting import ADMIN_KEY, campaign, clients, created, messages
from loloha import checks
from loloha.errors import ParameterError

ADMIN = {"Authorization": f"Bearer {ADMIN_KEY}"}


@pytest.mark.parametrize(
    "part",
    [
        "rounds/00/estimates", "rounds/+0/estimates",
        "rounds/0/estimates?top=1_0", "rounds/0/estimates?top=%D9%A1", "series?newest=010",
        "series?first=%200", "series?value=0&value=1_0", "rounds?last=1.0",
    ],
)  # fmt: skip
def test_integers_are_plain_digits(serve: Any, part: str) -> None:
    client = serve()
    path = created(client, campaign())
    answer = client.get(f"{path}/{part}")
    assert answer.status_code == 422
    assert "digits" in answer.json()["detail"]
    for good in ("rounds/0/estimates?top=10", "series?newest=10&value=0", "rounds?first=0"):
        assert client.get(f"{path}/{good}").status_code == 200
    assert client.get("/v1/campaigns?newest=01").status_code == 422


def test_of_a_field_that_is_there_twice_the_last_counts_and_capitals_are_the_same(
    serve: Any,
) -> None:
    """As docs/http.md says."""
    client, one = serve(), campaign()
    path = created(client, one)
    message = messages(one, clients(one, 1), 0)[0]
    plain = json.loads(message)
    twice = message.replace(b'"y":', b'"y":"zz","y":')
    assert twice != message

    def send(body: bytes) -> Any:
        headers = {"content-type": "application/json"}
        return client.post(f"{path}/reports", content=body, headers=headers).json()

    assert send(twice)["accepted"] == 1
    capitals = {**plain, "reporter": plain["reporter"].upper(), "y": plain["y"].upper()}
    assert send(json.dumps(capitals).encode())["duplicates"] == 1


@pytest.mark.parametrize(
    "change",
    [
        {"campaign": {"name": "x" * 100_000}},
        {"campaign": {"version": "v" * 100_000}},
        {"campaign": {"type": ["t"] * 10_000}},
        {"expected_users": int("9" * 400)},
        {"expected_users": "u" * 100_000},
        {"terms": {"late_seconds": int("9" * 400)}},
        {"terms": {"x" * 100_000: 1}},
    ],
)
def test_errors_quote_a_little(serve: Any, change: dict[str, Any]) -> None:
    client = serve()
    asked: dict[str, Any] = {"campaign": campaign().to_dict(), **change}
    if "campaign" in change:
        asked["campaign"] = campaign().to_dict() | change["campaign"]
    answer = client.post("/v1/campaigns", json=asked, headers=ADMIN)
    assert answer.status_code == 422
    assert len(answer.content) < 1500


def test_values_are_cut_where_they_are_quoted() -> None:
    assert checks.shown("short") == "'short'"
    assert checks.shown(1.5) == "1.5"
    for long in ("x" * 100_000, 10**4000, 10**6000, [1] * 10_000, b"y" * 100):
        assert len(checks.shown(long)) < 100
    with pytest.raises(ParameterError, match="something of type int"):
        checks.integer("k", 10**6000, 1, 2, "mend it")
