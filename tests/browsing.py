"""What tests of the dashboard share: a collector that listens, a population, and a browser."""

import asyncio
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import msgspec
import numpy as np
import pytest

from collecting import ADMIN, ADMIN_KEY, Clock
from loloha.campaign import Campaign
from loloha.population.samplers import Draws, History, sample_reports
from loloha.wire.columns import CONTENT_TYPE, encode_many

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--no-first-run",
]
# Generous: the machine may be busy with other tests.
PATIENCE = 60_000


class Site(NamedTuple):
    """A collector that listens on this machine."""

    url: str
    clock: Clock

    def get(self, path: str) -> Any:
        with urlopen(self.url + path) as answer:
            return msgspec.json.decode(answer.read())

    def read(self, path: str) -> bytes:
        with urlopen(self.url + path) as answer:
            body: bytes = answer.read()
        return body

    def post(self, path: str, body: bytes, kind: str) -> Any:
        request = Request(self.url + path, body, {"Content-Type": kind, **ADMIN})
        with urlopen(request) as answer:
            return msgspec.json.decode(answer.read())

    def create(self, campaign: Campaign, **more: Any) -> str:
        """Create a campaign; the path of it."""
        body = msgspec.json.encode({"campaign": campaign.to_dict(), **more})
        self.post("/v1/campaigns", body, "application/json")
        return f"/v1/campaigns/{campaign.fingerprint}"

    def send(self, campaign: Campaign, values: Any, *, seed: int, first: int = 0) -> None:
        """Let one user a row report its values, round by round; -1 sends nothing."""
        rng = np.random.default_rng(seed)
        protocol = campaign.protocol
        sent = sample_reports(protocol, History(values, protocol.k), Draws(rng))
        for t, (rows, keys, ys) in enumerate(sent):
            n = int(rows.sum())
            if not n:
                continue
            names = np.frombuffer(rng.bytes(16 * n), np.uint8).reshape(n, 16)
            body = encode_many(campaign, names, keys, ys, rounds=first + t)
            path = f"/v1/campaigns/{campaign.fingerprint}/reports"
            assert self.post(path, body, CONTENT_TYPE)["accepted"] == n


@contextmanager
def listening(folder: Path, clock: Clock) -> Iterator[Site]:
    """A collector on a free port, with a store of its own."""
    import uvicorn

    from loloha.collector.service import create_app
    from loloha.collector.settings import Settings

    settings = Settings(
        store=f"sqlite:///{folder}/loloha.db",
        admin_key=ADMIN_KEY,
        rate_limit="",
        late_seconds=30 * 86400,
    )
    server = uvicorn.Server(
        uvicorn.Config(create_app(settings, clock=clock), log_level="error", ws="none")
    )
    with socket.create_server(("127.0.0.1", 0)) as open_socket:
        port = open_socket.getsockname()[1]
        thread = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=[open_socket])), daemon=True
        )
        thread.start()
        while not server.started:
            assert thread.is_alive()
            thread.join(0.01)
        yield Site(f"http://127.0.0.1:{port}", clock)
        server.should_exit = True
        thread.join()


@contextmanager
def browser() -> Iterator[Any]:
    """A Chromium that is installed; without one the test is skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    named = os.environ.get("LOLOHA_TEST_CHROMIUM")
    path = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    # Chromium refuses to sandbox what root runs.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=[*FLAGS, *sandbox])
        yield started
        started.close()
