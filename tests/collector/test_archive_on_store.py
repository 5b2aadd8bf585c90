"""The log of reports on a store: whole files, nothing forgotten while the store is away."""

import errno
from typing import Any

import pytest

from collecting import HOUR, Clock, campaign, clients, created, messages
from loloha import mount
from loloha.address import PARTIAL, Address, located
from loloha.collector import report_archive
from loloha.collector.report_archive import PROBE, ReportArchive
from loloha.collector.settings import Settings
from loloha.errors import ParameterError, StoreError
from loloha.reportlog import ReportLog
from storing import KEY, S3, SECRET, refuse, s3, s3_server

__all__ = ["s3", "s3_server"]
DENIED = refuse("403 Forbidden", "AccessDenied")


def test_reports_are_logged_on_a_store_and_wait_while_it_is_away(
    serve: Any, s3: S3, clock: Clock, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    root, one = f"{s3.bucket()}/LOG", campaign()
    client = serve(keep_reports=root)
    path = created(client, one)
    lines = {"content-type": "application/x-ndjson"}
    sent = b"\n".join(messages(one, clients(one, 20), 0))
    assert client.post(f"{path}/reports", content=sent, headers=lines).status_code == 200
    context = client.app.state.context
    clock.now += 1000 * HOUR
    s3.fault = lambda *_: DENIED
    for _ in range(3):
        context._open.log.run()
    health = client.get("/healthz")
    assert health.status_code == 503
    assert "access is denied" in health.json()["detail"]
    s3.fault = None
    context._open.log.run()
    assert client.get("/healthz").status_code == 200
    contents = ReportLog(root, one).scan()
    contents.must_be_clean()
    assert contents.rows == 20
    told = health.text + caplog.text + repr(client.app.state.context.settings)
    assert not [word for word in (KEY, SECRET) if word in told]
    assert root not in health.text


def test_health_sees_whether_files_for_the_store_can_grow_here(
    s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They grow in the temporary folder: with its disk full each upload fails."""
    place = located(f"{s3.bucket()}/LOG")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(report_archive.disk, "probe", full)
    archive = ReportArchive(place)
    # Reports that are kept wait in the store meanwhile.
    archive.prepare()
    with pytest.raises(OSError, match="No space left"):
        archive.probe()


def test_a_start_sees_whether_the_store_can_be_written(
    s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mount, "ATTEMPTS", 1)
    place = located(f"{s3.bucket()}/LOG")
    assert isinstance(place, Address)
    ReportArchive(place).prepare()
    ReportArchive(place).prepare()
    assert [one.name for one in place.walk()] == [PROBE]
    # Nothing is deleted: the right to write is all that a collector needs.
    assert "DELETE" not in {method for method, _ in s3.requests}
    s3.fault = lambda *_: DENIED
    with pytest.raises(
        StoreError, match=r"keep_reports must be an address to write to: s3://.*deni"
    ):
        ReportArchive(place).prepare()


def test_what_a_killed_collector_left_unfinished_is_deleted_where_that_can_be() -> None:
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").store.clear()
    place = located("memory://m/LOG")
    assert isinstance(place, Address)
    folder = place / "campaign=0" / "round=0"
    for name in (f".0123{PARTIAL}", "x.parquet"):
        (folder / name).write_bytes(b"x")
    ReportArchive(place).prepare()
    assert sorted(one.name for one in place.walk()) == [PROBE, "x.parquet"]


def test_an_address_is_a_setting_and_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOLOHA_KEEP_REPORTS", "s3://b/LOG?region=eu-west-1")
    assert Settings.read().keep_reports == located("s3://b/LOG?region=eu-west-1")
    for bad in (f"s3://{KEY}:{SECRET}@b/LOG", f"s3://b/LOG?x={SECRET}"):
        monkeypatch.setenv("LOLOHA_KEEP_REPORTS", bad)
        with pytest.raises(ParameterError, match="keep_reports") as caught:
            Settings.read()
        assert SECRET not in str(caught.value)
    with pytest.raises(ParameterError, match="must be a path or an address"):
        Settings.read(keep_reports=5)
