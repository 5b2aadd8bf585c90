"""An S3 server in this process, and the faults that a real one has."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

SECRET = "SECRETSECRETSECRETSECRETSECRETSECRETSECR"
KEY = "AKIAQQQQQQQQQQQQQQQQ"
# No other account's variables, and no machine's role.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_EC2_METADATA_DISABLED": "true",
}


def refuse(status: str, code: str) -> Callable[..., Any]:
    """The answer of a server that has the error ``code``."""

    def answer(environ: Any, start: Any) -> Any:
        body = f"<Error><Code>{code}</Code><Message>{KEY} {SECRET}</Message></Error>".encode()
        start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [body]

    return answer


def cut(environ: Any, start: Any) -> Any:
    """Half of what is sent arrives, then nothing more."""
    import socket

    half = int(environ.get("CONTENT_LENGTH") or 0) // 2
    environ["wsgi.input"].read(half)
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    return refuse("500 Cut", "InternalFailure")(environ, start)


def slow(environ: Any, start: Any) -> Any:
    """Later, but right."""
    time.sleep(0.3)


@dataclass
class S3:
    """A server, its requests, and what becomes of the next ones."""

    application: Any
    url: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)
    fault: Callable[[str, str], Callable[..., Any] | None] | None = None
    """From method and path to what answers instead; None for the server itself."""

    def __call__(self, environ: Any, start: Any) -> Any:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.requests.append((method, path))
        instead = self.fault(method, path) if self.fault is not None else None
        answer = None if instead is None else instead(environ, start)
        return self.application(environ, start) if answer is None else answer

    def bucket(self, name: str | None = None) -> str:
        """The address of a new bucket."""
        import pyarrow.fs as fs

        name = name or f"b{uuid4().hex[:12]}"
        fs.S3FileSystem(
            endpoint_override=self.url, region="us-east-1", allow_bucket_creation=True
        ).create_dir(name)
        return f"s3://{name}"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3]:
    pytest.importorskip("moto.server", reason="needs moto and flask: pip install 'loloha[dev]'")
    import logging

    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = S3(DomainDispatcherApplication(create_backend_app))
    http = make_server("127.0.0.1", 0, server, threaded=True)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_port}"
    yield server
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def s3(s3_server: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """The server, without faults, as the one that the environment names."""
    for name in [one for one in os.environ if one.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, one in {**CREDENTIALS, "AWS_ENDPOINT_URL": s3_server.url}.items():
        monkeypatch.setenv(name, one)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    s3_server.requests.clear()
    yield s3_server
    s3_server.fault = None
