"""A store beside files of another state of it is refused, and nothing is touched."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from time import time

import pytest

from collecting import START, batch, campaign, clients, messages
from loloha.cli import main
from loloha.collector.context import Context
from loloha.collector.metric import Metrics
from loloha.collector.settings import Settings
from loloha.collector.store import Store, sqlite_file
from loloha.collector.submission import Submission
from loloha.collector.terms import Terms
from loloha.errors import StoreError


def count(store: Store, seed: int, commits: int = 3) -> None:
    stored, _ = store.create(campaign(), Terms(), token=None, now=START)
    for number in range(commits):
        some = clients(stored.campaign, 2, seed=seed + 10 * number)
        read = batch(stored.campaign, messages(stored.campaign, some, 0))
        store.record([Submission.of(stored, read)], START + 60)


def number_of(store: Store) -> int:
    found = store.campaign(campaign().fingerprint)
    assert found is not None
    return store.rounds(found)[0].n


def backup(source: Path, target: Path) -> None:
    """As `.backup` does, while a collector runs."""
    with sqlite3.connect(source) as one, sqlite3.connect(target) as other:
        one.backup(other)
    one.close()
    other.close()


def killed(running: Path, folder: Path) -> Path:
    """What a collector that is killed leaves: all its files as they are."""
    folder.mkdir()
    for file in running.parent.glob(f"{running.name}*"):
        shutil.copy(file, folder / file.name)
    return folder / running.name


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.parent.glob(f"{path.name}*")}


@pytest.fixture
def later(tmp_path: Path) -> tuple[Path, Path]:
    """An older backup, and what was left of the store when it was killed later."""
    (tmp_path / "run").mkdir()
    path, old = tmp_path / "run" / "a.db", tmp_path / "old.db"
    store = Store(f"sqlite:///{path}")
    count(store, 0)
    backup(path, old)
    count(store, 1000)
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA wal_checkpoint(RESTART)")
    other.close()
    count(store, 2000)
    left = killed(path, tmp_path / "left")
    store.close()
    return old, left


@pytest.mark.parametrize("with_index", [True, False])
def test_a_backup_beside_the_log_of_a_later_state_is_refused_untouched(
    later: tuple[Path, Path], with_index: bool
) -> None:
    # It was opened, health said 200, and the pages of both were mixed.
    old, left = later
    shutil.copy(old, left)
    if not with_index:
        left.with_name("a.db-shm").unlink()
    before = contents(left)
    for _ in range(2):
        with pytest.raises(StoreError, match="-wal of another state"):
            Store(f"sqlite:///{left}")
        assert contents(left) == before
    left.with_name("a.db-wal").unlink()
    store = Store(f"sqlite:///{left}")
    assert number_of(store) == 6
    store.close()


def test_a_later_store_beside_an_older_log_is_refused(
    later: tuple[Path, Path], tmp_path: Path
) -> None:
    _, left = later
    log = left.with_name("a.db-wal").read_bytes()
    store = Store(f"sqlite:///{left}")
    assert number_of(store) == 18
    count(store, 3000)
    store.close()
    left.with_name("a.db-wal").write_bytes(log)
    with pytest.raises(StoreError, match="another state"):
        Store(f"sqlite:///{left}")


def test_what_a_killed_collector_left_is_opened_whole(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "a.db"
    store = Store(f"sqlite:///{path}")
    looks: list[Callable[[], object]] = [
        lambda: None,
        lambda: store.database.erase(None),  # type: ignore[arg-type]
        lambda: count(store, 500, commits=40),
    ]
    total = 0
    for number, look in enumerate(looks):
        count(store, 1000 * (number + 1))
        look()
        total = number_of(store)
        again = Store(f"sqlite:///{killed(path, tmp_path / str(number))}")
        assert number_of(again) == total
        again.close()
        # Also beside one that runs.
        Store(f"sqlite:///{path}", take_over=False).close()
    store.close()


def test_a_journal_beside_a_store_that_keeps_a_log_is_refused(sqlite_url: str) -> None:
    store = Store(sqlite_url)
    count(store, 0)
    store.close()
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    path.with_name(path.name + "-journal").write_bytes(
        bytes.fromhex("d9d505f920a163d7") + b"x" * 99
    )
    with pytest.raises(StoreError, match="-journal"):
        Store(sqlite_url)
    # An empty one, or an index alone, harms nobody.
    path.with_name(path.name + "-journal").write_bytes(b"")
    path.with_name(path.name + "-shm").write_bytes(os.urandom(1 << 15))
    again = Store(sqlite_url)
    assert number_of(again) == 6
    again.close()


def test_a_log_alone_is_refused(later: tuple[Path, Path]) -> None:
    _, left = later
    left.unlink()
    left.write_bytes(b"")
    with pytest.raises(StoreError, match="another state"):
        Store(f"sqlite:///{left}")


def test_a_damaged_store_is_refused_untouched(sqlite_url: str) -> None:
    store = Store(sqlite_url)
    count(store, 0)
    store.close()
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    whole = path.read_bytes()
    size = int.from_bytes(whole[16:18], "big")
    path.write_bytes(whole[:size] + whole[5 * size : 6 * size] * (len(whole) // size - 1))
    before = path.read_bytes()
    with pytest.raises(StoreError, match="damaged"):
        Store(sqlite_url)
    assert path.read_bytes() == before


def test_numbers_go_on_after_the_largest() -> None:
    assert sqlite_file.following(1) == 2
    assert sqlite_file.following(sqlite_file.MODULUS - 2) == sqlite_file.MODULUS - 1
    assert sqlite_file.following(sqlite_file.MODULUS - 1) == 1


def test_numbers_may_start_anew_within_a_log(sqlite_url: str, tmp_path: Path) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    store = Store(sqlite_url)
    with store.database.writer.connect() as connection:
        connection.exec_driver_sql(f"PRAGMA user_version = {sqlite_file.MODULUS - 3}")
        connection.commit()
    store.database.erase(None)  # type: ignore[arg-type]
    count(store, 0)
    again = Store(f"sqlite:///{killed(path, tmp_path / 'left')}")
    assert number_of(again) == 6
    again.close()
    store.close()


@pytest.mark.parametrize("flag", ["immutable", "mode"])
def test_a_store_that_cannot_be_written_says_so(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    store = Store(sqlite_url)
    count(store, 0)
    store.close()
    connect = sqlite3.dbapi2.connect

    def reading(database: str, *arguments: object, **more: object) -> sqlite3.Connection:
        kind = "mode=ro" if flag == "mode" else "mode=ro&immutable=1"
        more["uri"] = True
        address = database if database.startswith("file:") else f"file:{database}?{kind}"
        return connect(address, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(sqlite3.dbapi2, "connect", reading)
    assert main(["serve", "--port", "0", "--store", sqlite_url]) == 1
    *others, line = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert all(other.startswith("warning: ") for other in others)
    assert "read-only" in line


def state_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of a folder with its permissions, and the folder's own."""
    every = [folder, *folder.rglob("*")]
    return {
        str(one): (one.stat().st_mode, one.read_bytes() if one.is_file() else b"") for one in every
    }


@pytest.mark.parametrize("content", [b"notes\n", b"SQLite format 3", b"%PDF-1.7" + bytes(9000)])
def test_what_is_no_database_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    """Its permissions were taken away before it was refused."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    path.chmod(0o664)
    (tmp_path / "folder").mkdir(mode=0o755)
    os.mkfifo(tmp_path / "pipe", 0o644)
    before = state_of(tmp_path)
    for name, what in [
        ("notes.txt", "not an SQLite"),
        ("folder", "than a file"),
        ("pipe", "than a file"),
    ]:
        with pytest.raises(StoreError, match=f"{what}.*nothing was touched"):
            Store(f"sqlite:///{tmp_path / name}")
        assert state_of(tmp_path) == before


@pytest.mark.parametrize("version", ["0001", "9999"])
def test_a_store_of_another_release_is_only_read(sqlite_url: str, version: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    Store(sqlite_url).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (version,))
    connection.close()
    path.chmod(0o640)
    before = state_of(path.parent)
    with pytest.raises(StoreError, match="store must be of"):
        Store(sqlite_url)
    assert state_of(path.parent) == before


def test_a_refused_start_changes_neither_store_nor_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one was made, or made private, before the other was refused."""
    monkeypatch.delenv("LOLOHA_ADMIN_KEY", raising=False)
    (tmp_path / "notes.txt").write_text("notes")
    log = tmp_path / "documents"
    log.mkdir(mode=0o755)
    (log / "letter.txt").write_text("dear")
    before = state_of(tmp_path)
    line = ["serve", "--port", "0", "--store"]
    for store, kept in [("notes.txt", "new"), ("new.db", "documents"), ("notes.txt", "documents")]:
        address = f"sqlite:///{tmp_path / store}"
        assert main([*line, address, "--keep-reports", str(tmp_path / kept)]) == 1
        with pytest.raises(StoreError):
            Context(
                Settings(store=address, keep_reports=tmp_path / kept), time, Metrics(), time
            ).open()
        assert state_of(tmp_path) == before


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE orders (id INTEGER)",
        "CREATE TABLE campaign (id INTEGER, title TEXT)",
        "CREATE TABLE alembic_version AS SELECT '0002' AS version_num",
    ],
)
def test_a_file_of_another_program_is_named_and_left_as_it_is(
    tmp_path: Path, made: str, mode: str
) -> None:
    """Its mode, permissions and `user_version`, which is that program's, were overwritten."""
    path = tmp_path / "theirs.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.executescript(f"{made}; PRAGMA user_version = 7")
    connection.close()
    path.chmod(0o644)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="belongs to another program; nothing was touched"):
        Store(f"sqlite:///{path}")
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o644
