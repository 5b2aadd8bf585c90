"""A collector on a loopback port, for tests that need a real connection."""

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import uvicorn

from collecting import ADMIN_KEY
from loloha.campaign import Campaign
from loloha.collector import open_collector, workers
from loloha.collector.connections import bounded
from loloha.collector.process import Process
from loloha.collector.read_cache import ReadCache
from loloha.collector.service import create_app
from loloha.collector.settings import Settings
from loloha.collector.store import Store, schema
from loloha.collector.store.admin_key import AdminKey
from loloha.collector.store.database import Database
from loloha.collector.store.upgrade import upgrade
from loloha.sender.collector import Collector
from loloha.sender.sender import Connection


@cache
def _migrated() -> bytes:
    """A database that every migration has passed: they take longer than most tests of a store."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "new.db"
        with closing(Database(f"sqlite:///{file}")) as database:
            upgrade(database)
        assert [*file.parent.iterdir()] == [file]
        return file.read_bytes()


def new_store(folder: Path) -> str:
    """The address of a new SQLite store in the folder, which no collector has opened yet."""
    file = folder / "loloha.db"
    file.write_bytes(_migrated())
    file.chmod(0o600)
    return f"sqlite:///{file}"


class Near:
    """Does heavy work in this process: another one takes a second to begin."""

    def __init__(self, url: str) -> None:
        self.store = Store(url, take_over=False, is_ready=True)
        self.cache = ReadCache(lambda: self.store)

    def call(self, work: Any, *arguments: Any) -> Any:
        return work(self.cache, *arguments)

    def end(self) -> None:
        self.store.close()


def work_here(patch: pytest.MonkeyPatch, *, apart: bool = False) -> None:
    """Collectors that start from now on do heavy work in this process, unless ``apart``."""
    for module in (workers, open_collector):
        patch.setattr(module, "Process", Process if apart else Near)


class Served:
    """A collector on a loopback port, in a thread."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self.app = create_app(settings, clock=clock)
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.config = uvicorn.Config(
            self.app, access_log=False, log_level="error", http=bounded(settings), ws="none"
        )
        self.server = uvicorn.Server(self.config)
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],))

    def __enter__(self) -> str:
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive()
            time.sleep(0.01)
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def open(self) -> list[Any]:
        """Connections that are open now."""
        return list(self.server.server_state.connections)

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.socket.close()


def create(url: str, campaign: Campaign, **more: Any) -> str:
    """Create a campaign over the network; its path."""
    with Collector(url, token=ADMIN_KEY) as collector:
        return collector.create(campaign, **more).url.removeprefix(url)


def get(url: str, path: str) -> Any:
    with Connection(url, timeout=300) as connection:
        return connection.get(path)


class answering:
    """A server that gives prepared answers; None hangs up."""

    def __init__(self, answers: list[Any]) -> None:
        self.seen: list[tuple[str, bytes]] = []
        rest = list(answers)
        seen = self.seen

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                seen.append((self.path, body))
                answer = rest.pop(0) if len(rest) > 1 else rest[0]
                if answer is None:
                    self.close_connection = True
                    return
                status, headers, content = answer
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self) -> tuple[str, list[tuple[str, bytes]]]:
        self.thread.start()
        return f"http://127.0.0.1:{self.server.server_port}", self.seen

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@contextmanager
def running_nginx(servers: str, port: int, folder: Path) -> Iterator[None]:
    """An nginx with these servers, one of which listens on the port."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("no nginx is installed")
    places = "".join(
        f"{name}_temp_path {folder}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = folder / "nginx.conf"
    whole.write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/log;\n"
        f"events {{}}\nhttp {{ {places}\n{servers} }}\n"
    )
    command = [program, "-p", str(folder), "-c", str(whole)]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(500):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.01)
        yield
    finally:
        process.terminate()
        process.wait()


def accept_key(store: Store, sha256: bytes, now: float, label: str = "") -> AdminKey:
    """Have a store accept the key of a hash, as if it had drawn it."""
    key = AdminKey(sha256, label, int(now), None, None)
    with store.database.write() as connection:
        connection.execute(schema.admin_key.insert(), vars(key))
    return key
