"""Reports sent to a collector that runs in this process."""

from typing import Any

from collecting import clients, messages

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
