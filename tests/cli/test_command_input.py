"""Input of the command line: tables, repeated options, huge sizes, terminals."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import loloha
from loloha.campaign import Campaign, Labels, Range, Schedule
from loloha.cli import main
from loloha.cli.input_table import in_flags
from loloha.reportlog.writer import Writer

RUN = ["run", "--protocol", "grr", "--eps", "4", "--seed", "1"]


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def agree(domain: Any, name: str = "c.json") -> None:
    protocol = loloha.GRR(k=domain.k, eps=30.0)
    one = Campaign(
        name="a campaign", protocol=protocol, domain=domain, schedule=Schedule(0, 86_400)
    )
    Path(name).write_bytes(one.to_json())


def frequencies(table: str, *more: str) -> dict[str, float]:
    """True shares of the first round, by label, as a campaign reads the table."""
    import pyarrow.parquet as pq

    arguments = ["log", "generate", table, "--campaign", "c.json", "--seed", "1", *more]
    assert main([*arguments, "--out", "log", "--truth", "truth.parquet"]) == 0
    labels = Campaign.from_json(Path("c.json").read_bytes()).labels
    rows = [row for row in pq.read_table("truth.parquet").to_pylist() if row["round"] == 0]
    return {labels[row["value"]]: row["truth"] for row in rows}


def test_text_of_a_file_stays_text_for_a_campaign(there: Path) -> None:
    Path("t.csv").write_text("user,r0\n" + "a,1.9\nb,1.10\nc,2.0\nd,1E2\n")
    agree(Labels(("1.9", "1.10", "2.0", "100"), other="older"))
    assert frequencies("t.csv") == {"1.9": 0.25, "1.10": 0.25, "2.0": 0.25, "older": 0.25}


def test_numbers_of_a_file_fall_into_parts(there: Path) -> None:
    pd.DataFrame({"user": list("abcd"), "r0": [0.3, 0.1, None, 1.0]}).to_csv("t.csv", index=False)
    agree(Range(0, 1, 10))
    expected = dict.fromkeys(["[0.1, 0.2)", "[0.3, 0.4)", "[0.9, 1]"], pytest.approx(1 / 3))
    assert frequencies("t.csv") == expected


def test_long_files_with_names_of_their_own_go_everywhere(there: Path) -> None:
    frame = pd.DataFrame({"who": ["a", "b"], "when": [0, 0], "what": ["x", "y"]})
    frame.to_parquet("t.parquet")
    agree(Labels(("x", "y")))
    more = ("--user", "who", "--round", "when", "--value", "what")
    assert frequencies("t.parquet", *more) == {"x": 0.5, "y": 0.5}


def test_a_pivot_through_parquet_publishes_no_user(
    there: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    users = [f"u{i}" for i in range(300)]
    frame = pd.DataFrame({"user": users, "round": 0, "value": [i % 3 for i in range(300)]})
    frame.pivot(index="user", columns="round", values="value").to_parquet("t.parquet")
    assert main([*RUN, "t.parquet", "--out", "out", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data_set"]["k"] == 3
    assert b"u17" not in b"".join(path.read_bytes() for path in Path("out").iterdir())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--protocol", "olh"], "--protocol must be given once, got it 2 times"),
        (["--eps", "1"], "--eps must be given once"),
        (["--json", "--json"], "--json must be given once"),
        (["--seed=2"], "--seed must be given once"),
    ],
)
def test_an_option_is_given_once(
    there: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main([*RUN, "syn", "--out", "out", *arguments]) == 2
    assert says in capsys.readouterr().err
    assert not Path("out").exists()


def test_every_command_refuses_options_given_twice() -> None:
    from typer.main import get_command

    from loloha.cli.application import app
    from loloha.cli.command import Command

    def leaves(command: Any) -> Any:
        below = getattr(command, "commands", None)
        return [command] if below is None else [x for one in below.values() for x in leaves(one)]

    found = leaves(get_command(app))
    assert len(found) > 15
    assert all(isinstance(command, Command) for command in found)


def test_many_reports_are_not_written_unasked(
    there: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agree(Labels(tuple(range(1, 100)), other="more"))
    asked = ["log", "generate", "adult", "--campaign", "c.json", "--out", "log", "--seed", "1"]
    assert main([*asked, "--users", "1000000"]) == 2
    assert "1000000 users in the table's 260 rounds make up to 260000000" in capsys.readouterr().err
    assert not Path("log").exists()
    assert main([*asked, "--users", "10", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reports"] == 2600


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pass layout='long' if a row", "pass --layout long if a row"),
        ("pass domain= with all", "pass --domain with all"),
        ("or pass domain=", "or pass --domain"),
        ("list (domain=...), since", "list (--domain FILE), since"),
        ("with on_unknown='missing'", "with --on-unknown missing"),
        ("pass round= one of ['a=b', 'value=']", "pass --round one of ['a=b', 'value=']"),
    ],
)
def test_advice_is_in_words_of_the_shell(text: str, shown: str) -> None:
    assert in_flags(text) == shown


@pytest.mark.parametrize(
    "content",
    ["user,r0\na,x\na,y\n", "user,when\na,x\nb,y\n", "r0\na\n", "a,b\n", "user,r0\na,x\nb,z\n"],
)
def test_no_error_of_a_command_names_an_argument(
    there: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    Path("t.csv").write_text(content)
    for more in ([], ["--layout", "long"], ["--round", "when"], ["--domain", "x,y"]):
        main([*RUN, "t.csv", "--out", "out", "--force", *more])
        said = capsys.readouterr().err
        assert not any(f"{name}=" in said for name in ("layout", "round", "domain", "on_unknown"))


@pytest.mark.long
def test_a_terminal_without_the_characters_shows_escapes_and_keeps_the_results(
    there: Path,
) -> None:
    Path("t.csv").write_text("user,r0\na,caf\u00e9\nb,\u8336\n", encoding="utf-8")
    for encoding, more in (("ascii", ["--json"]), ("cp1252", [])):
        ended = subprocess.run(
            [sys.executable, "-m", "loloha", *RUN, "t.csv", "--out", "out", "--force", *more],
            capture_output=True, check=False,
            env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        assert b"Traceback" not in ended.stderr
        assert Path("out/metrics.json").exists()
        if more:
            assert json.loads(ended.stdout.decode(encoding))["data_set"]["k"] == 2


def test_labels_of_a_terminal_that_are_no_utf8_are_refused(
    there: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.csv").write_text("user,r0\na,x\nb,y\n")
    assert main([*RUN, "t.csv", "--out", "out", "--domain", "x,y,\udcff"]) == 2
    assert "UTF-8" in capsys.readouterr().err


def test_a_table_whose_name_is_no_utf8_is_run(there: Path) -> None:
    Path("\udcff.csv").write_text("user,r0\na,x\nb,y\n")
    assert main([*RUN, "\udcff.csv", "--out", "out"]) == 0
    assert json.loads(Path("out/metrics.json").read_bytes())["data_set"]["name"] == "?"


def test_a_log_and_its_truth_are_there_together_or_not_at_all(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    Path("t.csv").write_text("user,r0\na,1\nb,2\n")
    agree(Labels(("1", "2")))

    def interrupted(writer: Writer) -> None:
        (draft,) = Path().glob(".truth.parquet*")
        # Nothing but names is left to do.
        assert pq.read_table(draft).num_rows == 2
        writer.discard()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Writer, "close", interrupted)
        arguments = ["log", "generate", "t.csv", "--campaign", "c.json", "--out", "log"]
        assert main([*arguments, "--truth", "truth.parquet"]) == 130
    assert [path.name for path in Path().rglob("*.parquet*")] == []
    assert frequencies("t.csv") == {"1": 0.5, "2": 0.5}
