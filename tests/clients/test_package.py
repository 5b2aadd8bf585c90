"""From an empty folder: the packed client is installed, and the lines of the docs report."""

import gzip
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from collecting import ADMIN_KEY, HOURS, START, Clock
from javascript import CLIENT, PAGE, examples, node
from loloha.collector.settings import Settings
from serving import Served, create, get

LARGEST = 17_600
"""Bytes: what docs/javascript.md says."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the packed client is installed, without a network."""
    node()
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm: the package of the JavaScript client is not tested")
    folder = tmp_path_factory.mktemp("application")
    run = {"cwd": folder, "capture_output": True, "text": True, "check": True}
    packed = subprocess.run([npm, "pack", str(CLIENT), "--json"], **run)  # type: ignore[call-overload]
    name = json.loads(packed.stdout)[0]["filename"]
    (folder / "package.json").write_text('{"type": "module"}')
    options = ["--offline", "--no-audit", "--no-fund", "--cache", str(folder / "cache")]
    subprocess.run([npm, "install", *options, name], **run)  # type: ignore[call-overload]
    return folder


def test_the_lines_of_the_docs_report_to_a_collector(installed: Path, tmp_path: Path) -> None:
    settings = Settings(store=f"sqlite:///{tmp_path}/loloha.db", admin_key=ADMIN_KEY)
    with Served(settings, Clock(START + 60)) as url:
        path = create(url, HOURS)
        lines = examples(url + path)["js"]
        for answer, printed in (("false", ""), ("true", "sent: [ 0 ]"), ("false", "sent: []")):
            script = f"const userAgreed = async () => {answer};\nDate.now = () => {START}_000;\n"
            (installed / "example.js").write_text(script + lines)
            ran = subprocess.run(
                [node(), "example.js"], cwd=installed, capture_output=True, text=True, timeout=300
            )
            assert ran.returncode == 0, ran.stderr
            assert printed in ran.stdout
            assert bool(printed) == bool(ran.stdout)
        (first,) = get(url, f"{path}/rounds").json()["rounds"]
        assert (first["round"], first["n"]) == (0, 1)


def test_each_example_of_the_docs_is_run() -> None:
    """The console's by `installed`, that of Node above, that of a page by test_browser.py."""
    assert [*examples("")] == ["console", "js", "html"]
    assert PAGE.read_text(encoding="utf-8").count("```") == 6


def test_only_the_client_is_packed(installed: Path) -> None:
    package = installed / "node_modules" / "loloha"
    found = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
    sources = {f"src/{path.name}" for path in (CLIENT / "src").iterdir()}
    programs = {"audit.js", "conform.js", "loloha.min.js"}
    assert found == sources | programs | {"package.json", "README.md", "LICENSE"}
    plain = json.loads((package / "package.json").read_text())
    assert "dependencies" not in plain


def test_the_one_file_for_pages_is_small_and_made_from_the_sources() -> None:
    """What a browser downloads: everything but files and texts, minified and packed by gzip."""
    sources = sorted((CLIENT / "src").glob("*.js"), key=lambda path: path.name)
    built = (CLIENT / "loloha.min.js").read_bytes()
    made_from = b"".join(path.read_bytes() for path in sources) + built
    digest = hashlib.sha256(made_from).hexdigest()[:16]
    why = "it is older than src: npm install && npm run build in clients/js"
    assert json.loads((CLIENT / "package.json").read_text())["built"] == digest, why
    assert len(gzip.compress(built, 9, mtime=0)) < LARGEST


def test_the_readme_licence_is_the_project_s() -> None:
    assert (CLIENT / "LICENSE").read_text() == (CLIENT.parents[1] / "LICENSE").read_text()
