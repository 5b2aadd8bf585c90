"""A log counted as it grows: killed and resumed anywhere, it is the batch tally in the end."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from logs import Reports, draw_reports
from loloha import BiLOLOHA
from loloha.campaign import Campaign, Labels, Schedule
from loloha.cli import followed, main
from loloha.cli.followed import Followed
from loloha.engines import growing, make_engine
from loloha.errors import LolohaError, StorageError, WireError
from loloha.reportlog import ReportLog
from storing import S3, refuse, s3, s3_server

__all__ = ["s3", "s3_server"]
PROTOCOL = BiLOLOHA(k=3, eps_inf=2.0, eps_1=1.0)
CAMPAIGN = Campaign(
    name="colours",
    protocol=PROTOCOL,
    domain=Labels(("red", "blue", "grey")),
    schedule=Schedule.from_dict({"start": "2026-01-01T00:00:00Z", "seconds": 86400}),
)
END = CAMPAIGN.schedule.ends(0)


def segments() -> list[tuple[int, Reports]]:
    """Files of two rounds, with retries and contradictions across them."""
    first, other = (draw_reports(PROTOCOL, 60, seed) for seed in (0, 1))
    other.reporters = first.reporters
    return [(0, first[:40]), (1, draw_reports(PROTOCOL, 20, 2)), (0, first[20:]), (0, other[50:]),
            (0, first[10:20]), (1, draw_reports(PROTOCOL, 5, 3))]  # fmt: skip


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("campaign.json").write_bytes(CAMPAIGN.to_json())
    return tmp_path


def add(log: ReportLog, segment: tuple[int, Reports]) -> Path:
    with log.writer() as writer:
        writer.write(segment[0], *segment[1].arrays)
        (path,) = writer.close()
    return path  # type: ignore[return-value]


def following(log: ReportLog, out: Any, **more: Any) -> Followed:
    about = {"campaign": CAMPAIGN.fingerprint, "guard": more.pop("guard", True)}
    given = {"rounds": None, "skip": False, "last": None, **more}
    return Followed(log, make_engine("local"), out, about, **given)


def is_batch(log: ReportLog, out: Path, *more: str) -> None:
    """The folder is that of a tally at once, but for the files that it names."""
    shutil.rmtree("batch", ignore_errors=True)
    line = ["tally", str(log.root), "--campaign", "campaign.json", "--engine", "local"]
    assert main([*line, "--out", "batch", *more]) == 0
    batch, kept = (json.loads((Path(one) / "summary.json").read_text()) for one in ("batch", out))
    assert [kept[name] for name in ("rounds", "refused", "engine", "guard", "campaign")] == [
        batch[name] for name in ("rounds", "refused", "engine", "guard", "campaign")
    ]
    files = sorted(path.name for path in out.glob("[!.]*"))
    assert files == sorted(path.name for path in Path("batch").iterdir())
    for name in files:
        if name != "summary.json":
            assert (out / name).read_bytes() == Path("batch", name).read_bytes()


def test_it_is_the_batch_tally_after_each_segment(there: Path) -> None:
    log, out = ReportLog("log", CAMPAIGN), Path("out")
    one = following(log, out)
    assert one.step() == []
    for segment in segments():
        add(log, segment)
        # Only the round that got a file is counted again.
        assert one.step() == [segment[0]]
        assert one.step() == []
        is_batch(log, out)
        one = following(log, out)
    assert one.step() == []


@pytest.mark.parametrize("failing", range(9))
def test_killed_anywhere_and_resumed_it_is_the_batch_tally(
    there: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    log, out = ReportLog("log", CAMPAIGN), Path("out")
    calls, whole, killed = iter(range(100)), followed.table_file.new_file, 0

    def dies(path: Path) -> Any:
        if next(calls) == failing:
            # As a kill does, it leaves a file that is not finished.
            path.parent.mkdir(exist_ok=True)
            (path.parent / f".{path.name}.0000.part").write_bytes(b"x")
            raise SystemExit(137)
        return whole(path)

    monkeypatch.setattr(followed.table_file, "new_file", dies)
    parts = segments()
    for number in range(0, len(parts), 2):
        for segment in parts[number : number + 2]:
            add(log, segment)
        try:
            following(log, out).step()
        except SystemExit:
            killed += 1
    following(log, out).step()
    assert killed == 1
    is_batch(log, out)


def test_a_round_that_grew_costs_what_is_new(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, out = ReportLog("log", CAMPAIGN), Path("out")
    read: list[str] = []
    looked: list[str] = []
    pieces, look = growing.pieces_of, ReportLog._look

    def noted(file: Any) -> Any:
        read.append(file.path.stem)
        return pieces(file)

    def seen(self: ReportLog, path: Any, *more: Any) -> Any:
        looked.append(path.stem)
        return look(self, path, *more)

    monkeypatch.setattr(growing, "pieces_of", noted)
    monkeypatch.setattr(ReportLog, "_look", seen)
    one = following(log, out)
    for number in range(12):
        path = add(log, (0, draw_reports(PROTOCOL, 30, number)))
        assert one.step() == [0]
        # Neither read nor digested again, in this process or in the next one.
        assert read == looked == [path.stem]
        read.clear()
        looked.clear()
        if number % 3 == 2:
            one = following(log, out)
            assert one.step() == []
    # A retry: its file, and the one that had it first.
    retry = add(log, (0, draw_reports(PROTOCOL, 30, 4)[:1]))
    one.step()
    assert len(read) == 2
    assert looked == [retry.stem]
    assert len(list((out / followed.SEEN / "round-0").iterdir())) < 5
    is_batch(log, out)
    # Without what the guard knew, or with a file less, it is counted whole.
    for damage in (lambda: shutil.rmtree(out / followed.SEEN), retry.unlink):
        damage()
        add(log, (0, draw_reports(PROTOCOL, 3, 99 + len(read))))
        following(log, out).step()
        is_batch(log, out)


@pytest.mark.long
def test_a_process_killed_at_random_moments_leaves_the_batch_tally(there: Path) -> None:
    log, out = ReportLog("log", CAMPAIGN), Path("out")
    line = [sys.executable, "-m", "loloha", "tally", "log", "--campaign", "campaign.json"]
    line += ["--engine", "local", "--follow", "--out", "out", "--pause", "0.01"]
    chance = random.Random(20)
    add(log, (0, draw_reports(PROTOCOL, 50, 0)))
    began = monotonic()
    with subprocess.Popen(line, stderr=subprocess.DEVNULL) as process:
        while not (out / "round-0.tally").exists():
            sleep(0.01)
        starts_in = monotonic() - began
        process.kill()
    left = set()
    for number in range(20):
        before = (out / "summary.json").read_bytes()
        with subprocess.Popen(line, stderr=subprocess.DEVNULL) as process:
            sleep(starts_in * chance.uniform(0.8, 1.2))
            for part in range(1, 6):
                add(log, (part % 3, draw_reports(PROTOCOL, 50, 5 * number + part)))
                sleep(chance.uniform(0, 0.05))
            # Every third has counted something by then, however slowly it started.
            while process.poll() is None and (
                number % 3 == 0 and (out / "summary.json").read_bytes() == before
            ):
                sleep(0.001)
            assert process.poll() is None
            process.kill()
        left.add((out / "summary.json").read_bytes())
    assert len(left) > 5
    following(log, out).step()
    is_batch(log, out)


def test_a_tally_that_is_not_the_one_that_was_noted_is_counted_again(there: Path) -> None:
    log, out = ReportLog("log", CAMPAIGN), Path("out")
    tallies = []
    for segment in segments():
        add(log, segment)
        following(log, out).step()
        tallies.append((out / "round-0.tally").read_bytes())
    # Of two at once the slower one was killed before it noted what it wrote.
    (out / "round-0.tally").write_bytes(tallies[0])
    (out / "round-1.tally").unlink()
    assert following(log, out).step() == [0, 1]
    is_batch(log, out)


def test_a_summary_that_could_not_be_written_is_written_the_next_time(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, out = ReportLog("log", CAMPAIGN), Path("out")
    one, whole = following(log, out), followed.table_file.new_file
    add(log, segments()[0])

    def fails(path: Path) -> Any:
        if path.name == "summary.json":
            raise StorageError("busy", "busy")
        return whole(path)

    with monkeypatch.context() as patch:
        patch.setattr(followed.table_file, "new_file", fails)
        with pytest.raises(StorageError):
            one.step()
    assert one.step() == []
    is_batch(log, out)


@pytest.mark.parametrize("resumed", [False, True])
def test_what_was_copied_while_it_was_looked_at_counts_once_it_is_whole(
    there: Path, resumed: bool
) -> None:
    log, out = ReportLog("log", CAMPAIGN), Path("out")
    for segment in segments():
        path = add(log, segment)
    # It is in a folder of its own, or of no round.
    for foreign in ("round=0/copy/a.parquet", "notes.txt"):
        (log.folder / foreign).parent.mkdir(exist_ok=True)
        (log.folder / foreign).write_bytes(b"x")
    content = path.read_bytes()
    path.write_bytes(content[:100])
    one = following(log, out, skip=True)
    assert one.step() == [0, 1]
    one.step()
    assert one.step() == []
    is_batch(log, out, "--skip-bad")
    path.write_bytes(content)
    os.utime(path, (END, END))
    one = following(log, out, skip=True) if resumed else one
    assert one.step() == ([0, 1] if resumed else [1])
    one.step()
    is_batch(log, out, "--skip-bad")


def test_a_round_that_vanishes_while_it_is_looked_at_is_not_shown(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ReportLog("log", CAMPAIGN)
    for segment in segments():
        add(log, segment)
    one, names = following(log, Path("out")), log.names()
    shutil.rmtree(log.round_folder(1))
    monkeypatch.setattr(ReportLog, "names", lambda *_, **__: names)
    assert one.step() == [0]
    assert one.step() == []


def test_what_came_too_late_is_left_out_however_late_it_is_looked_at(there: Path) -> None:
    log, out = ReportLog("log", CAMPAIGN), Path("out")
    last = {"last": lambda round: float(CAMPAIGN.schedule.ends(round) + 3600), "late_seconds": 3600}
    parts = segments()
    for number, (segment, when) in enumerate(zip(parts, (0, 0, 3600, 3601, 9, 0), strict=True)):
        os.utime(add(log, segment), (END, END + when))
        if number % 2:
            following(log, out, **last).step()
    following(log, out, **last).step()
    is_batch(log, out, "--late-seconds", "3600", "--skip-bad")
    summary = json.loads((out / "summary.json").read_text())
    assert summary["refused"] == {"late": 1}
    assert [row["n"] for row in summary["rounds"]] == [60, 25]


@pytest.mark.long
def test_only_what_it_counted_itself_is_gone_on_with(there: Path) -> None:
    log = ReportLog("log", CAMPAIGN)
    add(log, segments()[0])
    following(log, Path("out")).step()
    for other in ({"guard": False}, {"skip": True}, {"late_seconds": 5}):
        with pytest.raises(
            LolohaError, match="of an earlier --follow of this campaign with the sa"
        ):
            following(log, Path("out"), **other)
    Path("notes").mkdir()
    Path("notes", "x").touch()
    assert main(["tally", "log", "--campaign", "campaign.json", "--out", "tallies"]) == 0
    for out in ("notes", "tallies"):
        with pytest.raises(LolohaError, match="name another folder"):
            following(log, Path(out))


def test_a_damaged_file_ends_it_and_is_skipped_if_asked(there: Path) -> None:
    log = ReportLog("log", CAMPAIGN)
    for segment in segments()[:3]:
        path = add(log, segment)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(WireError, match="1 damaged"):
        following(log, Path("out")).step()
    one = following(log, Path("skipping"), skip=True)
    assert one.step() == [0, 1]
    is_batch(log, Path("skipping"), "--skip-bad")


def test_the_command_goes_on_until_it_is_interrupted(
    s3: S3, there: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = f"{s3.bucket()}/LOG"
    log, parts = ReportLog(root, CAMPAIGN), iter(segments())
    steps: list[float] = []

    def wait(seconds: float) -> None:
        steps.append(seconds)
        s3.fault = None
        if len(steps) == 3:
            s3.fault = lambda *_: refuse("403 Forbidden", "AccessDenied")
        elif (segment := next(parts, None)) is not None:
            add(log, segment)
        else:
            raise KeyboardInterrupt

    # Not that of the whole process: other threads wait, too.
    monkeypatch.setattr(followed, "sleep", wait)
    line = ["tally", root, "--campaign", "campaign.json", "--engine", "local", "--follow"]
    assert main([*line, "--out", f"{root}-tallies", "--pause", "7"]) == 130
    said = capsys.readouterr().err
    assert "no reports yet in s3://" in said
    assert said.count("access is denied") == 1
    assert set(steps) == {7.0}
    assert main(["estimate", f"{root}-tallies", "--campaign", "campaign.json"]) == 0
    assert main(["tally", root, "--campaign", "campaign.json", "--out", "b"]) == 0
    from loloha.address import located

    for name in ("round-0.tally", "round-1.tally"):
        assert located(f"{root}-tallies/{name}").read_bytes() == Path("b", name).read_bytes()
    assert main(line) == 2
    assert "--out must be given with --follow" in capsys.readouterr().err
    assert issubclass(StorageError, OSError)


def test_two_do_not_keep_one_folder_up_to_date(
    there: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would delete what the guard of the other remembers."""

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(followed, "sleep", interrupt)
    add(ReportLog("log", CAMPAIGN), segments()[0])
    line = ["tally", "log", "--campaign", "campaign.json", "--follow", "--out", "out"]
    with followed.alone(Path("out")):
        assert main(line) == 1
        assert "another one does; stop it" in capsys.readouterr().err
    assert main(line) == 130
    Path("file").touch()
    assert main([*line[:-1], "file/out"]) == 1
    assert "file/out" in capsys.readouterr().err


def test_no_option_is_ignored(there: Path, capsys: Any) -> None:
    add(ReportLog("log", CAMPAIGN), segments()[0])
    line = ["tally", "--campaign", "campaign.json"]
    for more, says in (
        (["log", "--follow", "--out", "o", "--json"], "without --sql, --json"),
        (["log", "--follow", "--out", "o", "--force"], "without --sql, --json"),
        (["log", "--follow", "--out", "o", "--sql", "duckdb"], "without --sql, --json"),
        (["--result", "r.csv", "--follow", "--out", "o"], "with LOG, without"),
        (["--result", "r.csv", "--late-seconds", "5"], "--late-seconds must be given with LOG"),
        (["log", "--follow", "--out", "o", "--pause", "nan"], "pause must be"),
        (["log", "--follow", "--out", "o", "--pause", "-1"], "pause must be"),
    ):
        assert main([*line, *more]) == 2
        assert says in capsys.readouterr().err


def test_a_statement_names_no_file_that_is_late(there: Path, capsys: Any) -> None:
    paths = [add(ReportLog("log", CAMPAIGN), segment) for segment in segments()[:1] * 2]
    paths.append(add(ReportLog("log", CAMPAIGN), segments()[2]))
    for path, when in zip(paths, (END, END, END + 9), strict=True):
        os.utime(path, (when, when))
    line = ["tally", "log", "--campaign", "campaign.json", "--sql", "duckdb"]
    assert main([*line, "--late-seconds", "8"]) == 0
    shown = capsys.readouterr().out
    assert paths[0].stem in shown
    assert paths[2].stem not in shown
