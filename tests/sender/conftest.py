"""A clock that stands until a test moves it, and a collector over HTTP or in this process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collecting import ADMIN_KEY, START, Clock
from devices import FRESH, HOURS, PAGES
from faulty import Collector, Disk


@pytest.fixture
def clock() -> Clock:
    return Clock(START + 60)


@pytest.fixture
def url(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    from loloha.collector.settings import Settings
    from serving import Served, new_store, work_here

    work_here(monkeypatch)
    plain = Settings(store=new_store(tmp_path), admin_key=ADMIN_KEY, rate_limit="")
    with Served(plain, clock) as served:
        yield served


@pytest.fixture
def collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Collector:
    """Everybody's collector, in this process; that all is on the disk is tested elsewhere."""

    class Anything(dict[str, Any]):
        def __missing__(self, _: str) -> bytes:
            return (tmp_path / "state").read_bytes()

    disk = Disk(tmp_path)
    disk.durable = Anything()
    found = Collector([HOURS, PAGES, FRESH], disk)
    for module in ("sender", "collector"):
        monkeypatch.setattr(f"loloha.sender.{module}.Connection", found)
    return found
