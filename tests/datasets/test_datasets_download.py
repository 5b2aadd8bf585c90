"""Downloads: explicit, verified, and with nothing half-written left behind."""

import hashlib
import io
import socket
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loloha import datasets
from loloha.datasets import DataError, ExtraError, download
from loloha.errors import ParameterError


class Server:
    """A web server on this machine, and what it was asked for."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/files/"
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.promised = 0


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.removeprefix("/files/")
            served.asked.append(name)
            if name not in served.files:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(served.files[name]) + served.promised))
            self.end_headers()
            self.wfile.write(served.files[name])

        def log_message(self, *_: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Server(listening.server_port)
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    yield served
    listening.shutdown()
    thread.join()
    listening.server_close()


def zipped(weight: int = 7) -> bytes:
    names = ",".join(f"PWGTP{t}" for t in range(1, 81))
    rows = "".join("\n" + ",".join([str(weight + person)] * 80) for person in range(3))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        # A name alone would be stamped with the time of day: two archives, two hashes.
        archive.writestr(zipfile.ZipInfo("psam_p30.csv"), names + rows)
    return packed.getvalue()


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.rglob("*") if file.is_file())


def test_acs_is_fetched_once_and_its_hash_recorded(server: Server, tmp_path: Path) -> None:
    server.files["csv_pmt.zip"] = zipped()
    file = datasets.fetch("acs", "Montana", tmp_path, url=server.url)
    assert file == tmp_path / "acs" / "csv_pmt.zip"
    recorded = (tmp_path / "acs" / "csv_pmt.zip.sha256").read_text().split()
    assert recorded == [hashlib.sha256(zipped()).hexdigest(), "csv_pmt.zip"]
    assert datasets.fetch("acs", "mt", tmp_path, url=server.url) == file
    assert server.asked == ["csv_pmt.zip"]
    assert datasets.acs_weights("MT", file).labels == (7, 8, 9)


def test_fetched_data_are_found_without_a_path(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOLOHA_CACHE", str(tmp_path))
    with pytest.raises(DataError, match=r"loloha data fetch acs MT`, or use .*acs_standin"):
        datasets.acs_weights("Montana")
    server.files["csv_pmt.zip"] = zipped()
    datasets.fetch("acs", "MT", url=server.url)
    data = datasets.acs_weights("Montana")
    assert (data.n, data.source) == (3, "real")
    (tmp_path / "acs" / "csv_pmt.zip").write_bytes(zipped(weight=8))
    with pytest.raises(DataError, match="as it was fetched, its hash differs"):
        datasets.acs_weights("MT")
    (tmp_path / "acs" / "csv_pmt.zip.sha256").unlink()
    assert datasets.acs_weights("MT").labels == (8, 9, 10)


def test_a_file_that_changed_on_the_server_is_refused_and_discarded(
    server: Server, tmp_path: Path
) -> None:
    server.files["csv_pmt.zip"] = zipped()
    file = datasets.fetch("acs", "MT", tmp_path, url=server.url)
    file.unlink()
    server.files["csv_pmt.zip"] = zipped(weight=8)
    with pytest.raises(DataError, match="must have the SHA-256"):
        datasets.fetch("acs", "MT", tmp_path, url=server.url)
    assert files(tmp_path) == ["csv_pmt.zip.sha256"]


def test_a_page_in_place_of_the_zip_is_refused_and_discarded(
    server: Server, tmp_path: Path
) -> None:
    server.files["csv_pde.zip"] = b"<html>down for maintenance</html>"
    with pytest.raises(DataError, match="must be a zip file"):
        datasets.fetch("acs", "DE", tmp_path, url=server.url)
    assert files(tmp_path) == []


def test_an_interrupted_download_is_discarded(server: Server, tmp_path: Path) -> None:
    server.files["csv_pmt.zip"] = zipped()
    server.promised = 100
    with pytest.raises(DataError, match="must be reachable, got"):
        datasets.fetch("acs", "MT", tmp_path, url=server.url, timeout=300)
    assert files(tmp_path) == []


def test_adult_is_verified_by_known_hashes(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files |= {"adult.data": b"not it", "adult.test": b"neither"}
    with pytest.raises(DataError, match=r"adult\.data must have the SHA-256 5b00264637"):
        datasets.fetch("adult", cache=tmp_path, url=server.url)
    assert files(tmp_path) == []
    known = {name: hashlib.sha256(held).hexdigest() for name, held in server.files.items()}
    monkeypatch.setattr(download, "ADULT_SHA256", known)
    assert datasets.fetch("adult", cache=tmp_path, url=server.url) == tmp_path / "adult"
    assert files(tmp_path) == ["adult.data", "adult.test"]


def test_the_real_adult_files_pass(server: Server, tmp_path: Path, real_data: Path) -> None:
    server.files |= {name: (real_data / name).read_bytes() for name in ("adult.data", "adult.test")}
    fetched = datasets.adult(datasets.fetch("adult", cache=tmp_path, url=server.url), tau=1)
    assert np.array_equal(fetched.values, datasets.adult(tau=1).values)


def test_a_server_that_has_no_such_file_or_is_not_there(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"csv_pmt\.zip must be reachable, got HTTPError"):
        datasets.fetch("acs", "MT", tmp_path, url=server.url)
    # The discard port of this machine: nothing listens there.
    with pytest.raises(DataError, match="must be reachable, got ConnectionError"):
        datasets.fetch("acs", "MT", tmp_path, url="http://127.0.0.1:9", timeout=1)
    assert files(tmp_path) == []


def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(DataError, match="must be reachable, got ReadTimeout"):
            datasets.fetch("acs", "MT", tmp_path, url=url, timeout=0.2)
    assert files(tmp_path) == []


def test_poochs_advice_to_its_callers_is_not_shown(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.files["csv_pmt.zip"] = zipped()
    datasets.fetch("acs", "MT", tmp_path, url=server.url)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"name": "iris"}, "name must be one of"),
        ({"name": "acs"}, "state must be a US postal code"),
        ({"name": "adult", "state": "MT"}, "state must be given for 'acs' only"),
        ({"name": "acs", "state": "MT", "timeout": 0}, "timeout must be a number"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        datasets.fetch(**arguments)


def test_the_cache_is_the_argument_or_the_variable_or_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOLOHA_CACHE", "/from/the/variable")
    assert datasets.cache_folder(tmp_path) == tmp_path
    assert datasets.cache_folder() == Path("/from/the/variable")
    monkeypatch.delenv("LOLOHA_CACHE")
    assert datasets.cache_folder().name == "loloha"
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ExtraError, match=r"pooch must be installed.*loloha\[cli\]"):
        datasets.cache_folder()


def test_a_file_that_no_download_left_is_not_deleted(server: Server, tmp_path: Path) -> None:
    theirs = tmp_path / "acs" / "csv_pmt.zip"
    theirs.parent.mkdir()
    theirs.write_text("notes")
    with pytest.raises(DataError, match="left alone"):
        datasets.fetch("acs", "MT", cache=tmp_path, url=server.url)
    assert theirs.read_text() == "notes"
