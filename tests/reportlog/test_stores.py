"""Logs on a store: the same files, whole or not at all, and the same counts, despite faults."""

import json
import re
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logs import draw_reports, write_log
from loloha import BiLOLOHA, address, engines, mount
from loloha.address import Address, located
from loloha.cli import main
from loloha.engines import linked, sql
from loloha.errors import StorageError, WireError
from loloha.reportlog import ReportLog
from storing import KEY, S3, SECRET, cut, refuse, s3, s3_server, slow

__all__ = ["s3", "s3_server"]

PROTOCOL = BiLOLOHA(k=11, eps_inf=2.0, eps_1=1.0)
FILES = [
    (0, draw_reports(PROTOCOL, 40, 0)),
    (2, draw_reports(PROTOCOL, 40, 2)),
    (0, draw_reports(PROTOCOL, 40, 0)[10:30]),
    (0, draw_reports(PROTOCOL, 15, 77)),
    (5, draw_reports(PROTOCOL, 1, 0)[:0]),
]
ROWS = 115


def written(root: Any) -> ReportLog:
    log = ReportLog(root, PROTOCOL)
    for round, reports in FILES:
        with log.writer() as writer:
            writer.write(round, *reports.arrays)
    return log


def counts(log: ReportLog, engine: Any, **options: Any) -> Any:
    return [
        (one.round, one.tally.n, one.duplicates, one.conflicts, one.tally.counts.tolist())
        for one in engines.tally(log, engine=engine, **options)
    ]


def tree(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def keys(folder: Any) -> set[str]:
    return {str(path.path.relative_to(folder.path)) for path in folder.walk()}


@pytest.fixture(params=["s3", "memory"])
def root(request: pytest.FixtureRequest) -> Address:
    """A folder on a store without renames, and on a filesystem with them."""
    if request.param == "s3":
        store: S3 = request.getfixturevalue("s3")
        place = located(f"{store.bucket()}/y=1/LOG")
    else:
        fsspec = pytest.importorskip("fsspec")
        fsspec.filesystem("memory").store.clear()
        place = located("memory://m/y=1/LOG")
    assert isinstance(place, Address)
    return place


def test_a_log_on_a_store_has_the_files_and_counts_of_a_local_one(
    root: Address, tmp_path: Path
) -> None:
    local, remote = written(tmp_path), written(str(root))
    assert keys(root) == tree(tmp_path)
    for path in root.walk():
        assert path.read_bytes() == (tmp_path / path.path.relative_to(root.path)).read_bytes()
    contents = remote.scan()
    contents.must_be_clean()
    assert (contents.rows, list(contents.rounds)) == (ROWS, [0, 2, 5])
    assert [contents.digests(t) for t in (0, 2)] == [local.scan().digests(t) for t in (0, 2)]
    for guard in (True, False):
        expected = counts(local, "local", guard=guard)
        for engine in ("local", "duckdb"):
            assert counts(remote, engine, guard=guard) == expected
            assert counts(remote, engine, guard=guard, rounds=[2]) == expected[1:2]
    for one, other in zip(linked._joined(PROTOCOL, contents.rounds.values(), True),
                          linked._joined(PROTOCOL, local.scan().rounds.values(), True),
                          strict=True):  # fmt: skip
        assert np.array_equal(one, other)


def test_what_must_not_be_counted_is_sorted_out_there_too(root: Address, tmp_path: Path) -> None:
    log = written(str(root))
    good = log.scan()
    (first, *_), (second,) = good.rounds[0], good.rounds[2]
    whole = first.path.read_bytes()
    assert isinstance(first.path, Address)
    assert isinstance(second.path, Address)
    for name, content in [
        ("copy.parquet", whole),
        (f"{'0' * 32}.parquet", whole[:-9]),
        (f"{'1' * 32}.parquet", b""),
        ("notes.txt", b"x"),
        (".hidden.parquet", whole),
    ]:
        (first.path.parent / name).write_bytes(content)
    (second.path.parent / first.path.name).write_bytes(whole)
    (log.folder / "round=007" / first.path.name).write_bytes(whole)  # type: ignore[operator]
    (log.folder / "_SUCCESS").write_bytes(b"")  # type: ignore[arg-type]
    found = {why: len(paths) for why, paths in log.scan().refused.items()}
    assert found == {"damaged": 3, "foreign": 2, "mixed": 1}
    with pytest.raises(WireError, match=re.escape(f"the first is '{root}/campaign=")):
        log.scan().must_be_clean()
    expected = counts(written(tmp_path), "local")
    assert counts(log, "duckdb", skip=True) == counts(log, "local", skip=True) == expected


def test_a_listing_is_one_request_however_many_rounds(s3: S3) -> None:
    log = ReportLog(f"{s3.bucket()}/LOG", PROTOCOL)
    with log.writer() as writer:
        for round in range(30):
            writer.write(round, *draw_reports(PROTOCOL, 2, round).arrays)
    puts = [path for method, path in s3.requests if method == "PUT" and "campaign=" in path]
    # A small file is one request: nothing that a crash could leave half-done.
    assert (len(puts), len(set(puts))) == (30, 30)
    assert not [method for method, _ in s3.requests if method == "POST"]
    s3.requests.clear()
    assert log.scan(verify=False).rows == 60
    bucket = log.root.mount.host  # type: ignore[union-attr]
    assert len([1 for _, path in s3.requests if path == f"/{bucket}"]) == 1


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (refuse("403 Forbidden", "AccessDenied"), "access is denied, or there are no credentials"),
        (refuse("403 Forbidden", "InvalidAccessKeyId"), "its credentials are not accepted"),
        (refuse("403 Forbidden", "SignatureDoesNotMatch"), "its credentials are not accepted"),
        (refuse("301 Moved Permanently", "PermanentRedirect"), "in another region; add .region="),
    ],
)
def test_a_refusal_says_why_and_shows_no_secret(
    s3: S3, answer: Any, says: str, verify: bool, capfd: Any
) -> None:
    log = written(f"{s3.bucket()}/LOG")
    before = keys(log.root)
    # The answer to a question for one file has no body that could say more.
    less = f"{says}|access is denied|got OSError"
    failing: list[Callable[[], object]] = [
        lambda: log.scan(verify=verify),
        lambda: written(log.root),
    ]
    for call in failing:
        for match, place in ((says, ""), (less, "campaign=")):
            s3.fault = lambda _, path, place=place: answer if place in path else None
            with pytest.raises(StorageError, match=match) as caught:
                call()
            shown = f"{caught.value} {caught.value!r} {caught.value.__cause__} {log!r}"
            shown += str(caught.value.__context__ if not caught.value.__suppress_context__ else "")
            assert SECRET not in shown
            assert KEY not in shown
    s3.fault = None
    assert keys(log.root) == before
    assert SECRET not in "".join(capfd.readouterr())


def test_a_bucket_that_is_not_there_is_named(s3: S3, capsys: Any, tmp_path: Path) -> None:
    log = ReportLog("s3://nobody-has-it/LOG", PROTOCOL)
    (tmp_path / "p.json").write_text(json.dumps(PROTOCOL.to_dict()))
    with pytest.raises(StorageError, match=r"nobody-has-it.*bucket or container does not exist"):
        log.scan()
    with pytest.raises(StorageError, match="does not exist; check the name, or create it"):
        written(log.root)
    for line in (["log", "show"], ["tally", "--campaign", str(tmp_path / "p.json")]):
        assert main([*line, "s3://nobody-has-it/LOG"]) == 1
        assert "does not exist" in capsys.readouterr().err
    with pytest.raises(WireError, match="log must be an existing folder, got 's3://"):
        ReportLog(f"{s3.bucket()}/LOG", PROTOCOL).scan()
    other = BiLOLOHA(k=12, eps_inf=2.0, eps_1=1.0)
    with pytest.raises(WireError, match="1 of others"):
        ReportLog(written(f"{s3.bucket()}/LOG").root, other).scan()


def once(answer: Any) -> Any:
    """Every request meets a fault the first time; those that are sent again do not."""
    seen: set[tuple[str, str]] = set()

    def fault(*request: str) -> Any:
        new = request not in seen
        seen.add(request)
        return answer if new else None

    return fault


@pytest.mark.long
@pytest.mark.parametrize("fault", ["slow", "busy", "cut"])
def test_passing_faults_change_nothing(s3: S3, fault: str, tmp_path: Path) -> None:
    expected = counts(written(tmp_path), "local")
    answer = {"slow": slow, "busy": refuse("503 Slow Down", "SlowDown"), "cut": cut}[fault]
    log = ReportLog(f"{s3.bucket()}/LOG", PROTOCOL)
    s3.fault = once(answer)
    written(log.root)
    assert counts(log, "local") == expected
    assert counts(log, "duckdb") == expected


@pytest.mark.parametrize("answer", [cut, refuse("503 Slow Down", "SlowDown")])
def test_a_write_that_fails_for_good_leaves_nothing_and_can_be_done_again(
    s3: S3, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mount, "ATTEMPTS", 2)
    log = written(f"{s3.bucket()}/LOG")
    before = counts(log, "local")
    s3.fault = lambda method, path: answer if method in ("PUT", "POST") else None
    more = draw_reports(PROTOCOL, 25, 9)
    for _ in range(2):
        writer = log.writer()
        writer.write(2, *more.arrays)
        with pytest.raises(StorageError, match=r"round=2/[0-9a-f]{32}\.parquet could not be used"):
            writer.close()
    assert counts(log, "local") == before
    s3.fault = None
    for _ in range(2):
        with log.writer() as writer:
            writer.write(2, *more.arrays)
    assert log.scan().rows == ROWS + 25


def test_a_large_file_is_seen_whole_or_not_at_all(s3: S3, monkeypatch: Any) -> None:
    """In several parts, one of which is lost; what is not a whole upload is no object."""
    place = located(f"{s3.bucket()}/LOG")
    assert isinstance(place, Address)
    content = np.random.default_rng(1).bytes(25 << 20)
    answer = refuse("403 Forbidden", "AccessDenied")
    parts = iter(range(100))
    s3.fault = lambda method, path: answer if method == "PUT" and next(parts) == 1 else None
    with pytest.raises(StorageError, match="access is denied"):
        (place / "x").write_bytes(content)
    s3.fault = None
    assert list(place.walk()) == []
    # No more is on the way, and thus in memory, than one part.
    monkeypatch.setattr(address, "PART", 10 << 20)
    running: list[int] = []
    most: list[int] = []
    application = s3.application

    def watched(environ: Any, start: Any) -> Any:
        running.append(0)
        most.append(len(running))
        time.sleep(0.02)
        try:
            return application(environ, start)
        finally:
            running.pop()

    with monkeypatch.context() as patch:
        patch.setattr(s3, "application", watched)
        (place / "x").write_bytes(content)
    assert max(most) == 1
    assert (place / "x").read_bytes() == content


@pytest.mark.long
def test_two_writers_at_once_take_nothing_from_each_other(s3: S3) -> None:
    root = f"{s3.bucket()}/LOG"
    both = [draw_reports(PROTOCOL, 30, seed) for seed in range(4)]
    s3.fault = once(refuse("503 Slow Down", "SlowDown"))

    def write(number: int) -> None:
        # Two of the same reports, and others.
        with ReportLog(root, PROTOCOL).writer() as writer:
            writer.write(0, *both[number // 2].arrays)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    log = ReportLog(root, PROTOCOL)
    assert log.scan().rows == 120
    (one,) = engines.tally(log, engine="local")
    assert (one.tally.n, one.duplicates, one.conflicts) == (120, 0, 0)


def test_a_service_that_fails_while_it_is_counted_is_no_damaged_log(s3: S3) -> None:
    log = written(f"{s3.bucket()}/LOG")
    contents = log.scan()
    s3.fault = lambda *_: refuse("403 Forbidden", "AccessDenied")
    for engine in ("local", "duckdb"):
        for guard in (True, False):
            with pytest.raises(StorageError, match="access is denied"):
                list(engines.make_engine(engine).tally(log, contents, guard=guard))
    with pytest.raises(StorageError, match="access is denied"):
        linked._joined(PROTOCOL, contents.rounds.values(), True)


def test_statements_name_the_files_as_each_engine_knows_them(s3: S3) -> None:
    log = written(f"{s3.bucket()}/LOG")
    files = {t: [one.path for one in some] for t, some in log.scan().rounds.items()}
    text = sql.files_of(PROTOCOL, "duckdb", files)
    assert all(f"'{path}'" in text for some in files.values() for path in some)
    text = sql.files_of(PROTOCOL, "spark", files)
    assert "file:" not in text
    for path in (path for some in files.values() for path in some):
        assert f"parquet.`s3a{str(path)[2:]}`" in text


# -- the commands


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = ["r0,r1"] + ["1,1"] * 60 + ["2,1"] * 30 + ["3,"] * 10
    Path("table.csv").write_text("\n".join(lines))
    Path("p.json").write_text(json.dumps(PROTOCOL.to_dict()))
    return tmp_path


def shown(capsys: Any, *line: str) -> Any:
    capsys.readouterr()
    assert main([*line, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_from_a_table_to_estimates_on_a_store(root: Address, there: Path, capsys: Any) -> None:
    where = {"here": str(there / "x"), "there": str(root)}
    made = {}
    for name, place in where.items():
        log, tallies, out = f"{place}/LOG", f"{place}/tallies", f"{place}/estimates.csv"
        generated = shown(capsys, "log", "generate", "table.csv", "--campaign", "p.json",
                          "--out", log, "--users", "500", "--seed", "1")  # fmt: skip
        assert generated.pop("log") == log
        listed = shown(capsys, "log", "show", log)
        counted = [
            shown(capsys, "tally", log, "--campaign", "p.json", "--engine", engine, *more)
            for engine, more in (("local", ("--out", tallies)), ("duckdb", ("--trust-log",)))
        ]
        estimated = shown(capsys, "estimate", tallies, "--campaign", "p.json", "--out", out)
        made[name] = generated, listed, counted, estimated
    assert made["here"] == made["there"]
    for name in ("tallies/round-0.tally", "tallies/round-1.tally", "tallies/summary.json",
                 "estimates.csv"):  # fmt: skip
        place = located(f"{root}/{name}")
        assert place.read_bytes() == (there / "x" / name).read_bytes()
    log, tallies = f"{root}/LOG", f"{root}/tallies"
    # Nothing is replaced unasked, and no folder that holds other things.
    again = ["tally", log, "--campaign", "p.json", "--out", tallies, "--only-rounds", "1"]
    assert main(again) == 1
    assert "replace them with --force" in capsys.readouterr().err
    assert main(["log", "generate", "table.csv", "--campaign", "p.json", "--out", log]) == 1
    assert "must hold no reports of this campaign yet" in capsys.readouterr().err
    assert main([*again, "--force"]) == 0
    assert keys(located(tallies)) == {"round-1.tally", "summary.json"}
    # One tally twice, also under two addresses.
    assert main(["estimate", tallies, f"{tallies}/round-1.tally"]) == 1
    assert "must be of different reports" in capsys.readouterr().err


def test_tallies_are_complete_when_their_summary_is_there(s3: S3, there: Path, capsys: Any) -> None:
    log = written(f"{s3.bucket()}/LOG")
    line = ["tally", str(log.root), "--campaign", "p.json", "--out", f"{log.root}/t"]
    refused = refuse("403 Forbidden", "AccessDenied")
    s3.fault = lambda method, path: refused if method == "PUT" and "round-2" in path else None
    assert main(line) == 1
    assert "access is denied" in capsys.readouterr().err
    s3.fault = None
    assert keys(located(f"{log.root}/t")) == {"round-0.tally"}
    assert main(["estimate", f"{log.root}/t"]) == 1
    assert "without summary.json, which is written last" in capsys.readouterr().err
    assert main([*line, "--force"]) == 0
    assert main(["estimate", f"{log.root}/t"]) == 0
    shutil.rmtree(there / "t", ignore_errors=True)


def test_credentials_in_an_address_are_refused_before_anything_is_asked(
    s3: S3, there: Path, capsys: Any
) -> None:
    for bad in (f"s3://{KEY}:{SECRET}@b/LOG", f"s3://b/LOG?secret_key={SECRET}"):
        for line in (["log", "show", bad], ["tally", bad, "--campaign", "p.json"],
                     ["estimate", bad],
                     ["log", "generate", "table.csv", "--campaign", "p.json", "--out", bad],
                     ["serve", "--keep-reports", bad]):  # fmt: skip
            assert main(line) == 2
            assert SECRET not in "".join(capsys.readouterr())
    assert s3.requests == []


def test_a_local_log_is_written_as_before(tmp_path: Path) -> None:
    """Names of files are digests of their bytes: these are those of 0.2.0."""
    log = write_log(tmp_path, PROTOCOL, *FILES)
    assert sorted(path.name[:8] for path in log.folder.rglob("*.parquet")) == LOCAL


LOCAL = ["025d7d6b", "45f1be7c", "59e81e1f", "82d6c930", "de2d7e2f"]
