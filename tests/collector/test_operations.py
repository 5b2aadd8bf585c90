"""Headers, health, limits, metrics and logs, and what must never be in them."""

import asyncio
import errno
import json
import logging
import os
import re
from pathlib import Path
from typing import Any

import pytest

from collecting import ADMIN, ADMIN_KEY, campaign, clients, created, messages
from golden import FOLDER
from javascript import CLIENT
from loloha import reportlog
from loloha.collector import problem
from loloha.collector.commit import Committer
from loloha.collector.problem import MEDIA_TYPE
from loloha.collector.store import Store
from loloha.errors import StoreError
from uploading import JSON, LINES, fill, send

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

    monkeypatch.setattr("loloha.collector.result_document.privacy.explain", broken)
    answer = client.get(f"{path}/privacy")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert "detail that nobody" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_request_that_ends_without_an_answer_counts_as_failed(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve()

    async def cut_off(*_: object) -> None:
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(client.app.chain.admission, "admit", cut_off)
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(client.app({"type": "http", "method": "GET"}, None, None))
    metrics = client.get("/metrics").text
    assert 'loloha_requests_total{method="GET",route="none",status="500"} 1.0' in metrics


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

    def full(*_: object) -> None:
        raise StoreError("queue must have room for the upload, too many wait; send it later")

    monkeypatch.setattr(Committer, "submit", full)
    answer = send(client, path, messages(one, clients(one, 1), 0)[0])
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("appends", [False, True])
def test_health_tells_of_a_disk_on_which_nothing_can_be_written(
    serve: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    number: int,
    appends: bool,
) -> None:
    client = serve()
    folder = Path(client.app.state.context.store.database.url.database).parent
    if appends:
        folder = tmp_path / "log"
        client = serve(append_only=str(folder))
    committer = client.app.state.context.running.committer
    sync = os.fsync

    def full(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    # No upload was sent: the collector finds out by a write of its own.
    monkeypatch.setattr(os, "fsync", full)
    committer._run_tidy()
    for _ in range(2):
        answer = client.get("/healthz")
        assert answer.status_code == 503
        words = (os.strerror(number), "disk", "read-only")
        assert any(word in answer.json()["detail"] for word in words)
        caplog.clear()
    monkeypatch.setattr(os, "fsync", sync)
    committer._run_tidy()
    assert client.get("/healthz").status_code == 200
    # Nothing of it is left.
    assert {path.name.partition(".")[0] for path in folder.iterdir()} <= {"loloha", "log"}


def test_causes_of_503_are_logged_once_a_while(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problem, "_logged", {})
    for _ in range(3):
        problem.unavailable("store must be writable")
        problem.unavailable("too many wait")
    assert [one.getMessage() for one in caplog.records] == [
        "answered 503: store must be writable",
        "answered 503: too many wait",
    ]
    monkeypatch.setattr(problem, "LOG_SECONDS", 0.0)
    problem.unavailable("too many wait")
    assert len(caplog.records) == 3


def test_health_tells_that_another_collector_has_taken_over(serve: Any) -> None:
    client = serve()
    assert client.head("/healthz").status_code == 200
    Store(client.app.state.context.settings.store).close()
    answer = client.get("/healthz")
    assert answer.status_code == 503
    assert "taken it over" in answer.json()["detail"]


def test_reports_cannot_be_logged_where_nothing_can_be_written(serve: Any, tmp_path: Path) -> None:
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


def test_metrics_have_no_label_for_a_value(serve: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one)
    fill(client, path, one, 5)
    text = client.get("/metrics").text
    assert 'loloha_reports_total{outcome="accepted"} 5.0' in text
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

        def fails(*_: object) -> None:
            raise ZeroDivisionError if status == 500 else StoreError("store must work")

        monkeypatch.setattr(Committer, "submit", fails)
    headers = {"origin": origin, "content-type": JSON}
    headers |= {"host": "evil.example"} if status == 421 else {}
    headers |= {"content-type": "text/plain"} if status == 415 else {}
    body = b" " * 2000 if status == 413 else b"[]"
    for _ in range(2):
        answer = client.post(path, content=body, headers=headers)
    assert answer.status_code == status
    assert answer.headers["access-control-allow-origin"] == origin
    exposed = answer.headers["access-control-expose-headers"].lower().split(", ")
    read = re.findall(r'headers\.get\("(.+?)"\)', (CLIENT / "src" / "answer.js").read_text())
    # Browsers show a page the type of every answer.
    assert set(read) == {*exposed, "content-type"} - {"etag"}
    assert ("retry-after" in answer.headers) == (status in (429, 503))
    assert answer.headers["x-content-type-options"] == "nosniff"
    elsewhere = client.post(path, content=body, headers={**headers, "origin": "https://x.example"})
    assert "access-control-allow-origin" not in elsewhere.headers


def test_a_log_of_reports_is_opt_in_and_has_each_report_once(serve: Any, tmp_path: Any) -> None:
    client, one = serve(keep_reports=str(tmp_path / "log")), campaign()
    path = created(client, one)
    some = fill(client, path, one, 25)
    send(client, path, messages(one, some, 0)[0])
    client.app.state.context.close()
    log = reportlog.ReportLog(tmp_path / "log", one)
    contents = log.scan()
    contents.must_be_clean()
    assert contents.rows == 25


def test_the_openapi_document_is_the_golden_one_and_names_what_it_refers_to(serve: Any) -> None:
    document = serve().get("/openapi.json").json()
    assert document == json.loads((FOLDER / "openapi.json").read_text(encoding="utf-8"))
    calls = [call for path in document["paths"].values() for call in path.items()]
    assert {method for method, _ in calls} == {"get", "post", "put", "delete"}
    for method, call in calls:
        # Those of the chain before the routes, whether a route reads its body or not.
        of_writes = {"400", "403", "408", "413", "415"} & set(call["responses"])
        assert method == "get" or len(of_writes) == 5, call["summary"]
    text = json.dumps(document)
    for name in document["components"]["schemas"]:
        assert name in text
    for name in re.findall(r"#/components/schemas/(\w+)", text):
        assert name in document["components"]["schemas"], name
