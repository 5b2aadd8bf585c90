"""What a newcomer types wrong: each answer names the cause and what to do."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from loloha.cli import main
from loloha.client import Client
from loloha.errors import StateError
from test_docs import LOOKED_UP, commands, name_of

OLOLOHA = ["--protocol", "ololoha", "--eps-inf", "2", "--eps-1", "1"]
NOBODY = "http://127.0.0.1:9/v1/campaigns/" + 64 * "a"


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*line: str) -> str:
        assert main(list(line)) in (1, 2)
        said = capsys.readouterr()
        assert not said.out
        return said.err

    return run


@pytest.fixture
def document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["campaign", "create", "h", *OLOLOHA, "--domain", "a,b,c"]) == 0
    path = tmp_path / "campaign.json"
    path.write_text(capsys.readouterr().out)
    return str(path)


def test_the_accuracy_check_of_a_campaign_is_in_percent(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["campaign", "create", "h", *OLOLOHA, "--domain", "a,b,c", "--n", "50000"]
    assert main(line) == 0
    said = capsys.readouterr().err
    assert re.search(
        r"rare value [\d.]+ %, of all at once [\d.]+ %; visible from [\d.]+ %; cap", said
    )


def test_a_missing_path_is_named(fails: Any, document: str) -> None:
    assert "log must be an existing folder, got 'NOLOG'" in fails(
        "tally", "NOLOG", "--campaign", document
    )
    for path in ("nosuch", "nosuch/round-0.tally"):
        assert f"exists, got '{path}'" in fails("estimate", path)
    said = fails("compare", "nosuch")
    assert "adult" in said
    assert "loloha data list" in said


def test_a_table_that_cannot_be_read_is_named_without_words_of_python(
    fails: Any, tmp_path: Path
) -> None:
    for name, content in (("a.csv", "user,r0\n1,\xe4\n".encode("latin1")), ("b.parquet", b"no")):
        path = tmp_path / name
        path.write_bytes(content)
        said = fails("run", str(path), *OLOLOHA, "--out", str(tmp_path / "out"))
        assert f"TABLE '{path}' must be" in said
        assert "got something else" in said


def test_a_file_of_labels_that_is_missing_is_no_label(fails: Any) -> None:
    said = fails("campaign", "create", "h", *OLOLOHA, "--domain", "nofile.txt")
    assert "no such file, so it is read as one label" in said


def test_one_label_and_all_others_are_a_domain(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["campaign", "create", "h", *OLOLOHA, "--domain", "yes", "--other", "no", "--json"]
    assert main(line) == 0
    assert '"yes"' in capsys.readouterr().out


def test_labels_may_be_longer_than_the_name_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    labels = [f"country{i}" for i in range(99)]
    line = ["campaign", "create", "h", *OLOLOHA, "--domain", ",".join(labels), "--json"]
    assert main(line) == 0
    assert json.loads(capsys.readouterr().out)["campaign"]["labels"] == labels
    assert main([*line[:-2], "é" * 200, "--other", "no"]) == 0


def test_a_collector_that_does_not_answer_is_named_and_the_token_is_not(
    fails: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loloha.sender.connection.Patience.wait", lambda *_: None)
    monkeypatch.setenv("LOLOHA_ADMIN_KEY", "a secret of the tests")
    line = ["campaign", "create", "h", *OLOLOHA, "--domain", "a,b", "--to"]
    said = fails(*line, "http://127.0.0.1:9")
    assert "collector must answer" in said
    assert "(asked: 127.0.0.1:9)" in said
    assert "secret" not in said
    assert "(asked: 127.0.0.1:9)" in fails("load-test", "adult", "--campaign", NOBODY)


def test_a_missing_and_a_wrong_admin_key_have_different_errors(
    fails: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fastapi", reason="the collector's extra is not installed")
    import time

    from collecting import ADMIN_KEY
    from loloha.collector.settings import Settings
    from serving import Served

    settings = Settings(store=f"sqlite:///{tmp_path}/c.db", admin_key=ADMIN_KEY, rate_limit="")
    with Served(settings, time.time) as url:
        line = ["campaign", "create", "h", *OLOLOHA, "--domain", "a,b", "--to", url]
        monkeypatch.delenv("LOLOHA_ADMIN_KEY", raising=False)
        assert "`export LOLOHA_ADMIN_KEY=...`" in fails(*line)
        monkeypatch.setenv("LOLOHA_ADMIN_KEY", "not the key of this one")
        said = fails(*line)
    assert "of this collector, got another" in said
    assert "not the key" not in said


def test_the_data_are_not_taken_for_labels(fails: Any, tmp_path: Path) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text("user,w1,w2\n" + "".join(f"u{i},a,b\n" for i in range(30)))
    said = fails("campaign", "create", "h", *OLOLOHA, "--domain", str(wide))
    assert "column named label" in said
    assert "u1" not in said


def test_a_secret_no_header_can_carry_is_named_by_its_variable(
    fails: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    create = ["campaign", "create", "h", *OLOLOHA, "--domain", "a,b", "--to", NOBODY[:18]]
    report = ["report", "a", "--consent", "--state", str(tmp_path / "s"), "--campaign", NOBODY]
    monkeypatch.setattr("loloha.cli.report._check", lambda *_: None)
    for variable, line in (("LOLOHA_ADMIN_KEY", create), ("LOLOHA_TOKEN", report)):
        for text, says in (("", "empty"), (" ", "empty"), ("private\n", "end of a line")):
            monkeypatch.setenv(variable, text)
            said = fails(*line)
            assert variable in said
            assert says in said
            assert "private" not in said


def test_a_store_that_cannot_be_opened_says_why(fails: Any, tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="the collector's extra is not installed")
    pytest.importorskip("psycopg", reason="the collector's extra is not installed")
    serve = ("serve", "--port", "0", "--store")
    missing = fails(*serve, f"sqlite:///{tmp_path}/nowhere/x.db")
    assert "existing folder" in missing
    said = fails(*serve, "postgresql://somebody:secret@127.0.0.1:1/x")
    assert "connection refused" in said
    assert "secret" not in said
    assert "somebody" not in said
    (tmp_path / "text.db").write_text("no database\n" * 100)
    assert "not an SQLite database" in fails(*serve, f"sqlite:///{tmp_path}/text.db")
    elsewhere = fails(*serve, f"sqlite:///{tmp_path}/x.db", "--host", "192.0.2.1")
    assert "host must be an address of this machine, got '192.0.2.1'" in elsewhere


def test_a_plan_says_what_it_lacks_or_would_ignore(
    fails: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["plan", "--k", "40", "--n", "50000", "--eps-inf", "2"]
    assert "got --k, --n, --eps-inf; leave" in fails(*line)
    assert "without --n, which it would ignore; leave it out" in fails(*line, "--frontier")
    both = fails(*line, "--frontier", "--eps-1", "1")
    assert "without --n, --eps-1," in both
    weak = ["--protocol", "ololoha", "--eps-inf", "6", "--eps-1", "1", "--domain", "a,b"]
    assert "eps_inf = 6 is above the limit" in fails("campaign", "create", "h", *weak)
    # What no budget bounds is no loss of nothing.
    assert main([*line, "--eps-1", "1"]) == 0
    said = capsys.readouterr().out
    assert "no bound" in said
    assert " none " not in said
    assert "e+0" not in said


def test_a_store_that_is_not_there_has_no_keys(
    fails: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sqlalchemy", reason="the collector's extra is not installed")
    store = ["--store", f"sqlite:///{tmp_path}/typo.db"]
    for line in (["list"], ["revoke", "0123456789ab"]):
        assert "store must exist" in fails("admin", *line, *store)
    assert not list(tmp_path.iterdir())
    assert main(["admin", "add", *store]) == 0
    assert "it is new" in capsys.readouterr().err
    assert main(["admin", "add", *store]) == 0
    assert "it is new" not in capsys.readouterr().err


@pytest.mark.parametrize("deep", ["new/folder/x.csv", "file/x.csv"])
def test_results_make_their_folders_or_say_where_they_cannot_go(
    fails: Any, tmp_path: Path, document: str, capsys: pytest.CaptureFixture[str], deep: str
) -> None:
    import loloha
    from loloha.engines.saved import save

    tally = loloha.OLOLOHA(k=3, eps_inf=2.0, eps_1=1.0).tally()
    tally.add(tally.protocol.client().report(1, round=0))
    save(tmp_path, 0, tally)
    (tmp_path / "file").write_text("of somebody")
    out = str(tmp_path / deep)
    for line in (["estimate", str(tmp_path / "round-0.tally")], ["campaign", "export", document]):
        if deep.startswith("new"):
            assert main([*line, "--out", out, "--force"]) == 0
            assert Path(out).exists()
            capsys.readouterr()
        else:
            assert f"--out must be writable, got '{out}': " in fails(*line, "--out", out)
    assert not list(tmp_path.rglob("*.part"))


def test_rounds_without_reports_are_reported(
    tmp_path: Path, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb", reason="the engines' extra is not installed")
    (tmp_path / "table.csv").write_text("user,r0,r1\n1,a,b\n2,b,c\n")
    log, table = str(tmp_path / "log"), str(tmp_path / "table.csv")
    assert (
        main(["log", "generate", table, "--campaign", document, "--out", log, "--seed", "1"]) == 0
    )
    capsys.readouterr()
    assert main(["tally", log, "--campaign", document, "--only-rounds", "0,9-11"]) == 0
    assert "3 of the rounds asked for have no reports: [9, 10, 11]" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b'{"type": "loloha-sender", "vers', b"", b"\0" * 64])
def test_a_damaged_state_can_be_withdrawn(
    fails: Any, tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    state, ledger = tmp_path / "bad.json", tmp_path / "bad.json.spent"
    spent = b'{"type": "loloha-spent", "version": 1, "spent": 2.0, "answered": {}}'
    state.write_bytes(content)
    ledger.write_bytes(spent)
    (tmp_path / ".loloha-0123456789abcdef").write_bytes(b"left by a killed writer")
    assert "withdraw" in fails("report", "1", "--state", str(state))
    assert state.exists()
    assert main(["report", "--state", str(state), "--withdraw"]) == 0
    assert "stays counted" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"bad.json.lock", "bad.json.spent"}
    assert ledger.read_bytes() == spent
    # And with a ledger that is damaged, too, it goes as well.
    state.write_bytes(b"[]")
    ledger.write_bytes(b"?")
    assert main(["report", "--state", str(state), "--withdraw"]) == 0
    assert "Nothing is known" in capsys.readouterr().out
    assert not ledger.exists()


def test_a_withdrawal_deletes_no_file_of_somebody_else(fails: Any, tmp_path: Path) -> None:
    path = tmp_path / "thesis.json"
    path.write_text("years of work")
    assert "check the path" in fails("report", "1", "--state", str(path))
    with pytest.raises(StateError, match=r"check the path; if it was one, .* delete it, and"):
        Client.load(path)
    assert "nothing was deleted" in fails("report", "--state", str(path), "--withdraw")
    assert path.read_text() == "years of work"


def test_a_state_of_a_newer_release_is_not_damaged(fails: Any, tmp_path: Path) -> None:
    path = tmp_path / "new.json"
    path.write_text('{"type": "loloha-sender", "version": 9}')
    assert "use the release" in fails("report", "--state", str(path), "--withdraw")
    assert path.exists()


def test_a_mean_says_how_to_get_labels_and_what_its_bound_is(
    tmp_path: Path, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import loloha
    from loloha.engines.saved import save

    protocol = loloha.OLOLOHA(k=3, eps_inf=2.0, eps_1=1.0)
    for round in range(2):
        tally = protocol.tally()
        for value in range(9):
            tally.add(protocol.client().report(value % 3, round=round))
        save(tmp_path, round, tally)
    files = [str(path) for path in sorted(tmp_path.glob("*.tally"))]
    assert main(["estimate", *files, "--mean"]) == 0
    said = capsys.readouterr().err
    assert "--campaign FILE" in said
    assert "bound is that of one round" in said
    assert main(["estimate", *files, "--campaign", document]) == 0
    assert not capsys.readouterr().err


@pytest.mark.parametrize("path", LOOKED_UP, ids=name_of)
def test_documented_simulations_say_how_many_rounds(path: Path) -> None:
    """A collector takes few rounds of Adult at a time, and a log of all of them is asked about."""
    for number, line in commands(path.read_text(encoding="utf-8")):
        many = "--users" in line and int(line[line.index("--users") + 1]) * 24 > 20_000_000
        if line[:2] == ["load-test", "adult"] or (line[:2] == ["log", "generate"] and many):
            assert "--rounds" in line, number


def test_a_campaign_of_panels_is_shown_with_what_they_guarantee(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    domain = ["--domain", "a,b,c", "--every", "4"]
    assert main(["campaign", "create", "h", *OLOLOHA, *domain]) == 0
    (tmp_path / "campaign.json").write_text(capsys.readouterr().out)
    assert main(["campaign", "show", str(tmp_path / "campaign.json")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert main(["explain", OLOLOHA[1], *OLOLOHA[2:], "--k", "3", "--every", "4"]) == 0
    explained = " ".join(capsys.readouterr().out.split())
    assert shown.endswith(explained)
    assert "w = 4" in explained
