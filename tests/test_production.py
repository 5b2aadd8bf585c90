"""docs/production.md, followed to the letter as far as it goes without root and another machine."""

import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from installed import ROOT, server

PAGE = (ROOT / "docs" / "production.md").read_text()
_PART = re.compile(r"^## ([^\n]*)$|^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SQLITE = re.compile(r"sqlite:///|loloha[.-]?\S*\.db")
_POSTGRESQL = re.compile(r"postgres|\.dump")


def commands() -> list[tuple[str, str]]:
    """Each block and the section that it is in."""
    section, found = "", []
    for match in _PART.finditer(PAGE):
        if match[1]:
            section = match[1]
        elif section != "As a container":
            typed = [line[2:] for line in match[2].splitlines() if line.startswith("$ ")]
            found.append((section, "\n".join(typed)))
    return found


def needed() -> None:
    for program in ("sqlite3", "openssl", "curl", "nginx", "prometheus", "promtool"):
        if shutil.which(program) is None and shutil.which(program, path="/usr/sbin") is None:
            pytest.skip(f"no {program} is installed")


@pytest.fixture
def other_store() -> Iterator[str | None]:
    """A store on PostgreSQL that is yet to be made; None without a server."""
    url = os.environ.get("LOLOHA_TEST_POSTGRES")
    name = f"production_{secrets.token_hex(4)}"
    yield None if url is None else f"{url.rpartition('/')[0]}/{name}"
    for each in (name, f"{name}_before") if url is not None else ():
        where = f"--maintenance-db={url}"
        subprocess.run(["dropdb", "--if-exists", "--force", where, each], check=True)


@pytest.mark.long
def test_the_page_is_followed_with_either_store(tmp_path: Path, other_store: str | None) -> None:
    needed()
    ran = set()
    with server(tmp_path, other_store) as there:
        for not_mine in (_POSTGRESQL, _SQLITE)[: 1 if other_store is None else 2]:
            there.type("systemctl stop loloha; rm -f try.json", "root")
            for section, block in commands():
                if not_mine.search(block) or (section in ("Build", "Install") and ran & {block}):
                    continue
                there.type(block, "build" if section == "Build" else "root")
                ran.add(block)
            backups = {path.suffix for path in (tmp_path / "var/backups/loloha").iterdir()}
            assert (".db" if not_mine is _POSTGRESQL else ".dump") in backups
            assert (tmp_path / "root/hours.csv").read_text().startswith('"campaign","round"')
    assert other_store is None or ran == {block for _, block in commands()}


def test_systemd_reads_the_units(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd is installed")
    units = []
    for unit in (ROOT / "deploy").glob("loloha*.*er*"):
        copy = tmp_path / unit.name
        copy.write_text(unit.read_text().replace("/opt/loloha/bin/loloha", sys.executable))
        units.append(str(copy))
    assert len(units) == 3
    command = [program, "verify", "--man=no", *units]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
