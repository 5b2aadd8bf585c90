"""Backups by deploy/backup.sh: under load, of a store whose collector was killed, and cut off."""

import os
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
import sqlalchemy as sql

from collecting import ADMIN_KEY, START, Clock, campaign, clients, messages
from loloha.collector.settings import Settings
from loloha.sender.collector import Collector
from serving import Served

SCRIPT = Path(__file__).parents[2] / "deploy" / "backup.sh"
USERS, AT_ONCE = 400, 20


@pytest.fixture
def databases() -> Iterator[list[str]]:
    """Two databases of PostgreSQL."""
    url = os.environ.get("LOLOHA_TEST_POSTGRES")
    if not url:
        pytest.skip("no PostgreSQL: LOLOHA_TEST_POSTGRES is not set")
    names = [f"backup_{secrets.token_hex(4)}" for _ in range(2)]
    made = sql.make_url(url).set(drivername="postgresql+psycopg")
    engine = sql.create_engine(made, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for name in names:
            connection.execute(sql.text(f"CREATE DATABASE {name} ENCODING UTF8 TEMPLATE template0"))
        yield [f"{url.rpartition('/')[0]}/{name}" for name in names]
        for name in names:
            connection.execute(sql.text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


def needed(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"no {program} is installed")


def tried(store: str, folder: Path) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        ["sh", str(SCRIPT), str(folder)],
        env={**os.environ, "LOLOHA_STORE": store},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def backup(store: str, folder: Path) -> Path:
    ran = tried(store, folder)
    assert ran.returncode == 0, ran.stderr
    (made,) = folder.iterdir()
    assert made.stat().st_mode & 0o077 == 0
    return made


def settings(store: str) -> Settings:
    return Settings(store=store, admin_key=ADMIN_KEY, rate_limit="")


class Load:
    """Reports that are sent, some at a time, until all are; how many were acknowledged."""

    def __init__(self, url: str) -> None:
        one = campaign()
        self.lines = messages(one, clients(one, USERS), 0)
        self.acknowledged = 0
        with Collector(url, token=ADMIN_KEY) as collector:
            self.where = collector.create(one, {"minimum_cohort": 1}).url
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        assert self.acknowledged == USERS

    def wait_for(self, reports: int) -> None:
        while self.acknowledged < reports:
            assert self._thread.is_alive()
            time.sleep(0.01)

    def _send(self) -> None:
        with Collector(self.where) as collector:
            for first in range(0, USERS, AT_ONCE):
                few = self.lines[first : first + AT_ONCE]
                self.acknowledged += collector.submit(b"\n".join(few)).accepted
                time.sleep(0.02)


def must_go_on(store: str, load: Load, least: int, most: int) -> None:
    """A collector on a restored store knows what was acknowledged, and counts the rest once."""
    path = load.where[load.where.index("/v1") :]
    with (
        Served(settings(store), Clock(START + 60)) as url,
        Collector(url + path) as collector,
    ):
        counted = collector.estimates(0)["n"]
        assert least <= counted <= most
        assert collector.submit(b"\n".join(load.lines)).duplicates == counted
        assert collector.estimates(0)["n"] == USERS


def test_a_backup_under_load_has_all_that_was_acknowledged_before(
    sqlite_url: str, tmp_path: Path
) -> None:
    needed("sqlite3")
    with Served(settings(sqlite_url), Clock(START + 60)) as url, Load(url) as load:
        load.wait_for(USERS // 4)
        least = load.acknowledged
        made = backup(sqlite_url, tmp_path / "backups")
        most = load.acknowledged + AT_ONCE
    restored = tmp_path / "restored.db"
    shutil.copy(made, restored)
    must_go_on(f"sqlite:///{restored}", load, least, most)


@pytest.mark.long
@pytest.mark.postgres
def test_a_dump_under_load_has_all_that_was_acknowledged_before(
    databases: list[str], tmp_path: Path
) -> None:
    needed("pg_dump", "pg_restore")
    store, other = databases
    with Served(settings(store), Clock(START + 60)) as url, Load(url) as load:
        load.wait_for(USERS // 4)
        least = load.acknowledged
        made = backup(store, tmp_path / "backups")
        most = load.acknowledged + AT_ONCE
    command = ["pg_restore", "--exit-on-error", "--no-owner", "--dbname", other, str(made)]
    subprocess.run(command, check=True)
    must_go_on(other, load, least, most)


@pytest.mark.long
def test_a_backup_has_what_a_killed_collector_left_in_its_wal(
    sqlite_url: str, tmp_path: Path
) -> None:
    needed("sqlite3")
    killed = tmp_path / "killed"
    killed.mkdir()
    with Served(settings(sqlite_url), Clock(START + 60)) as url:
        with Load(url) as load:
            pass
        for file in tmp_path.glob("loloha.db*"):
            shutil.copy(file, killed)
    assert (killed / "loloha.db-wal").stat().st_size
    made = backup(f"sqlite:///{killed}/loloha.db", tmp_path / "backups")
    must_go_on(f"sqlite:///{made}", load, USERS, USERS)


def test_a_backup_that_is_cut_off_is_none(sqlite_url: str, tmp_path: Path) -> None:
    needed("sqlite3")
    folder = tmp_path / "backups"
    with Served(settings(sqlite_url), Clock(START + 60)) as url:
        with Load(url) as load:
            pass
        # Where the file is gone none is made in its place.
        assert tried(f"sqlite:///{tmp_path}/missing.db", folder).returncode != 0
        assert not (tmp_path / "missing.db").exists()
        damaged = tmp_path / "damaged.db"
        damaged.write_bytes(b"SQLite format 3\0" + bytes(5000))
        broken = tried(f"sqlite:///{damaged}", folder)
        assert broken.returncode != 0
        assert broken.stderr
        old = folder / "loloha-20000101T000000Z.db"
        old.write_text("")
        os.utime(old, (0, 0))
        assert not [one for one in folder.iterdir() if one.suffix == ".db" and one != old]
        assert old.exists()
        for left in folder.glob("*.partial"):
            left.unlink()
        # One that succeeds lets those of 14 days ago go.
        made = backup(sqlite_url, folder)
    assert made != old
    must_go_on(f"sqlite:///{made}", load, USERS, USERS)
