"""A folder's name is a name: no engine, and no statement, takes a column or a round out of it."""

import json
import os
import random
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loloha import OLOLOHA, BiLOLOHA
from loloha.cli import main
from loloha.engines import RoundTally, linked, local, sql, tally
from loloha.engines.base import plain_path
from loloha.engines.result import by_round
from loloha.engines.spark import started
from loloha.errors import ParameterError, WireError
from loloha.reportlog import ReportLog

PROTOCOL = BiLOLOHA(k=11, eps_inf=2.0, eps_1=1.0)
# Partitions, as data lakes call them: columns of reports, of the statement, of nothing.
PARTITIONS = [
    "y=1", "Y=1", "key=7", "round=9", "round=7", "ROUND=3", "reporter=ab", "campaign=x",
    "y=1/round=2/key=3", "place=4", "report=1", "n=5", "filename=2", "total=1",
    "y=__HIVE_DEFAULT_PARTITION__", "y%3D1", "round=%31",
]  # fmt: skip
ODD = [
    "a b",
    "it's",
    'a"b',
    "\u00fc\u2603",
    "two\nlines",
    "tick`",
    "#",
    "%zz",
    "$x",
    "semi;",
    "co:lon",
    "_x",
    ".x",
    "1.parquet",
]
PATTERNS = ["log[1]", "a*b", "a?b", "x{1,2}", "back\\slash"]


def counts(engine: Any, log: ReportLog, **options: Any) -> Any:
    return [
        (one.round, one.tally.counts.tolist(), *also(one))
        for one in tally(log, engine=engine, **options)
    ]


def also(one: RoundTally) -> tuple[int, ...]:
    return one.tally.n, one.duplicates, one.conflicts, one.invalid


def by_statement(dialect: str, log: ReportLog, **options: Any) -> Any:
    """What the printed statement gives; rows that are out of range it leaves out."""
    files = {round: [file.path for file in listed] for round, listed in log.scan().rounds.items()}
    query = sql.statement(
        log.protocol, dialect, sql.files_of(log.protocol, dialect, files), total=True, **options
    )
    if dialect == "spark":
        table = started().sql(query).toArrow()
    else:
        table = pa.table(duckdb.connect().sql(query))
    return [
        (one.round, one.counts.tolist(), one.n, one.duplicates, one.conflicts)
        for one in by_round(log.protocol, table, total=True)
    ]


def check(log: ReportLog, expected: Any, engines: Any, dialect: str) -> None:
    for guard in (True, False):
        for engine in engines:
            assert counts(engine, log, guard=guard) == expected
        assert by_statement(dialect, log, guard=guard) == [row[:-1] for row in expected]


NAMES = PARTITIONS + ODD + PATTERNS


@pytest.mark.parametrize(
    "name",
    ["/".join(NAMES[first::9]) for first in range(9)]
    + [pytest.param(name, marks=pytest.mark.long) for name in NAMES],
)
def test_folders_are_called_what_they_like(draw, make_log, name):
    files = [(round, draw(PROTOCOL, 40, round)) for round in (0, 2)]
    expected = counts("local", make_log(PROTOCOL, *files))
    assert [row[2] for row in expected] == [40, 40]
    check(make_log(PROTOCOL, *files, name=f"{name}/LOG"), expected, ["local", "duckdb"], "duckdb")


@pytest.mark.long
@pytest.mark.spark
def test_spark_does_not_read_them_either(draw, make_log, spark):
    files = [(round, draw(PROTOCOL, 40, round)) for round in (0, 2)]
    expected = counts("local", make_log(PROTOCOL, *files))
    for name in ("y=1/round=2/key=3", "Round=%31/a b/it's`"):
        check(make_log(PROTOCOL, *files, name=f"{name}/LOG"), expected, [spark], "spark")


def test_every_kind_of_report_has_its_own_columns(kind, draw, make_log):
    files = [(round, draw(kind, 30, round)) for round in (0, 1, 5)]
    expected = counts("local", make_log(kind, *files))
    log = make_log(kind, *files, name="y=1/key=2/reporter=3/round=4/place=5/LOG")
    check(log, expected, ["local", "duckdb"], "duckdb")


def test_a_backslash_beside_a_letter_of_a_pattern_has_no_words_in_a_statement(draw, make_log):
    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 40, 0)), name="*\\/\\?[1]/a\\b/c?/LOG")
    assert counts("duckdb", log) == counts("local", log)
    assert counts("local", log)[0][2] == 40
    with pytest.raises(ParameterError, match=r"path must be without .* use engine 'local'"):
        by_statement("duckdb", log)


def test_a_relative_path_is_no_home_and_no_address(draw, make_log, monkeypatch):
    """Readers of Parquet files take "~" for a home, and "file:" for a scheme."""
    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 40, 0)))
    monkeypatch.chdir(log.root.parent)
    for name in ("~", "~root", "file:", "http:", "-", "\\\\?\\C:"):
        shutil.copytree(log.root, name)
        assert counts("local", ReportLog(Path(name), PROTOCOL)) == counts("local", log), name
        assert counts("duckdb", ReportLog(Path(name), PROTOCOL)) == counts("local", log), name


@pytest.mark.parametrize("seed", range(2))
def test_names_of_letters_that_mean_something_elsewhere(draw, make_log, monkeypatch, seed):
    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 40, 0)))
    expected = counts("local", log)
    monkeypatch.chdir(log.root.parent)
    drawn = random.Random(seed)
    for _ in range(6):
        letters = drawn.choices(
            "\\?*[]{}#%a '\"\n!-,.:=~$&;|`()^@+<>\t\u00e9", k=drawn.randint(1, 6)
        )
        name = "".join(letters) + "x"
        shutil.copytree(log.root, name)
        for engine in ("local", "duckdb"):
            assert counts(engine, ReportLog(Path(name), PROTOCOL)) == expected, name


def test_a_log_is_the_same_by_a_link_and_a_relative_path(draw, make_log, monkeypatch):
    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 40, 0)), (2, draw(PROTOCOL, 40, 1)), name="y=1/LOG")
    expected = counts("local", log)
    (log.root.parent.parent / "key=3").symlink_to(log.root)
    monkeypatch.chdir(log.root.parent)
    for root in ("../key=3", "LOG", "../y=1/LOG", "./LOG/."):
        check(ReportLog(Path(root), PROTOCOL), expected, ["local", "duckdb"], "duckdb")


def test_links_that_lead_back_are_looked_at_once(draw, make_log):
    """Followed, two of them in one folder would be 2^40 places."""
    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 40, 0)))
    for folder in (log.folder, log.round_folder(0), log.round_folder(1)):
        folder.mkdir(exist_ok=True)
        for name in ("loop", "again", "x.parquet"):
            (folder / name).symlink_to("..")
    assert len(log.scan().refused["foreign"]) == 9
    assert [row[2] for row in counts("duckdb", log, skip=True)] == [40, 0]


def test_a_log_in_a_log_is_no_part_of_it(draw, make_log):
    reports = draw(PROTOCOL, 40, 0)
    log = make_log(PROTOCOL, (0, reports))
    beside, below = log.root / "y=1", log.round_folder(0) / "round=0"
    shutil.copytree(log.folder, beside / log.folder.name)
    assert counts("duckdb", log)[0][2] == 40
    shutil.copytree(beside, below)
    with pytest.raises(WireError, match="got 1 foreign"):
        counts("duckdb", log)
    assert counts("duckdb", log, skip=True)[0][2] == 40


def test_copies_of_a_file_are_not_counted_again(draw, make_log):
    """In its own folder under another name, and in that of another round; trusted or not."""
    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 40, 0)), (1, draw(PROTOCOL, 40, 1)))
    file = next(log.round_folder(0).iterdir())
    shutil.copy(file, file.with_name("copy.parquet"))
    os.link(file, file.with_name("link.parquet"))
    shutil.copy(file, log.round_folder(1))
    for guard in (True, False):
        with pytest.raises(WireError, match="got 2 damaged, 1 mixed"):
            counts("duckdb", log, guard=guard)
        assert [row[2] for row in counts("duckdb", log, guard=guard, skip=True)] == [40, 40]


def test_a_path_that_is_no_utf8_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="path of a log must be UTF-8"):
        ReportLog(Path(os.fsdecode(bytes(tmp_path) + b"/\xff")), PROTOCOL)


def test_users_are_joined_below_any_folder(draw, make_log):
    protocol = OLOLOHA(k=11, eps_inf=2.0, eps_1=1.0, hash="affine")
    files = [(round, draw(protocol, 40, 3)) for round in (0, 1)]
    one, other = (make_log(protocol, *files, name=name) for name in ("LOG", "key=3/y=0/LOG"))
    for a, b in zip(linked.join(one), linked.join(other), strict=True):
        assert np.array_equal(a, b)


def test_the_commands_read_no_folder_names(draw, make_log, capsys, monkeypatch):
    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 40, 0)), name="n=3/place=1/LOG")
    monkeypatch.chdir(log.root.parent)
    Path("p.json").write_text(json.dumps(PROTOCOL.to_dict()))
    hidden = log.round_folder(0) / ".unfinished.parquet"
    shutil.copy(next(log.round_folder(0).iterdir()), hidden)
    shutil.copytree(log.round_folder(0), log.folder / "round=007")
    shutil.copytree(log.round_folder(0), log.folder / "y=1")
    assert main(["log", "show", "LOG", "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert [shown[name] for name in ("rounds", "files", "rows")] == [1, 1, 40]
    assert main(["tally", "LOG", "--campaign", "p.json", "--sql", "duckdb", "--skip-bad"]) == 0
    query = capsys.readouterr().out.strip().removesuffix(";")
    pq.write_table(pa.table(duckdb.connect().sql(query)), "result.parquet")
    assert main(["tally", "--campaign", "p.json", "--result", "result.parquet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rounds"][0]["n"] == 40


def test_a_file_is_read_in_pieces_that_end_with_the_group_that_fills_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"y": range(65)}), path, row_group_size=10)
    for most, rows in (
        (10, [10] * 6 + [5]), (20, [20, 20, 20, 5]), (21, [30, 30, 5]), (65, [65]), (99, [65]),
    ):  # fmt: skip
        monkeypatch.setattr(local, "PIECE_ROWS", most)
        pieces = list(local.pieces_of(SimpleNamespace(path=path)))  # type: ignore[arg-type]
        assert [piece.rows for piece in pieces] == rows
        assert [group for piece in pieces for group in piece.groups] == [*range(7)]


@pytest.mark.parametrize("letter", "*?[]{}\\")
def test_some_engines_take_a_letter_for_a_pattern(letter: str) -> None:
    for path in (f"/a{letter}b/c", f"/a/{letter}"):
        with pytest.raises(ParameterError, match="path must be without"):
            plain_path(Path(path))
    assert plain_path(Path("/a b/c=1'(x)")) == "/a b/c=1'(x)"
