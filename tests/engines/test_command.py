"""`loloha log generate`, `tally` and `estimate`: the whole way on the command line."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
import pytest

import loloha
from loloha import OLOLOHA, DBitFlipPM, population
from loloha.campaign import Campaign, Labels, Range, Schedule
from loloha.campaign.schedule import to_text
from loloha.cli import main
from loloha.engines.base import Engine
from loloha.engines.saved import every_of, find, load, save
from loloha.errors import WireError
from loloha.reportlog import ReportLog
from loloha.server.estimate_table import COLUMNS

K = 5
PROTOCOL = OLOLOHA(k=K, eps_inf=4.0, eps_1=3.0)


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, a protocol and a campaign."""
    monkeypatch.chdir(tmp_path)
    lines = ["r0,r1"] + ["red,red"] * 60 + ["blue,red"] * 30 + ["grey,"] * 10
    Path("table.csv").write_text("\n".join(lines))
    Path("protocol.json").write_text(json.dumps(PROTOCOL.to_dict()))
    campaign = Campaign(
        name="colours",
        protocol=PROTOCOL,
        domain=Labels(("red", "blue", "grey", "teal", "pink")),
        schedule=Schedule.from_dict({"start": "2026-01-01T00:00:00Z", "seconds": 86400}),
    )
    Path("campaign.json").write_bytes(campaign.to_json())
    return tmp_path


def run(*line: str) -> None:
    assert main(line) == 0


def generate(campaign: str = "campaign.json", **more: str) -> None:
    options = [word for name, value in more.items() for word in (f"--{name}", value)]
    run("log", "generate", "table.csv", "--domain", "red,blue,grey", "--campaign", campaign,
        "--out", "log", "--seed", "1", *options)  # fmt: skip


def told(capsys: Any, *line: str) -> Any:
    capsys.readouterr()
    run(*line, "--json")
    return json.loads(capsys.readouterr().out)


def test_from_a_table_to_estimates(there, capsys):
    generate(users="20000", truth="truth.parquet")
    truth = pyarrow.parquet.read_table("truth.parquet").to_pylist()
    assert truth[0] == {"round": 0, "value": 0, "truth": 0.6}
    assert truth[-1] == {"round": 1, "value": 0, "truth": 1.0}
    found = told(capsys, "tally", "log", "--campaign", "campaign.json", "--out", "tallies")
    assert [row["n"] for row in found["rounds"]] == [20000, 18000]
    assert (found["rows"], found["guard"], found["refused"]) == (38000, True, {})
    assert json.loads(Path("tallies/summary.json").read_text()) == found
    rows = told(capsys, "estimate", "tallies", "--campaign", "campaign.json", "--level", "0.999999")
    assert tuple(rows[0]) == (*COLUMNS, "bound")
    assert [row["label"] for row in rows] == 2 * ["red", "blue", "grey", "teal", "pink"]
    assert [row["value"] for row in rows] == 2 * [*range(5)]
    campaign = Campaign.from_json(Path("campaign.json").read_bytes())
    assert {row["campaign"] for row in rows} == {campaign.fingerprint}
    assert [row["start"] for row in rows[::5]] == [
        to_text(campaign.schedule.begins(round)) for round in (0, 1)
    ]
    for row in rows[:3]:
        share = {"red": 0.6, "blue": 0.3, "grey": 0.1}[row["label"]]
        assert row["lower"] < share < row["upper"]
        assert abs(row["estimate"] - share) < row["bound"]
        assert row["n"] == 20000


def test_every_way_to_the_tally_is_the_same(there, capsys):
    generate(users="500")
    one = ("tally", "log", "--campaign", "campaign.json")
    listed = [
        told(capsys, *one, "--engine", engine, *more)["rounds"]
        for engine in ("duckdb", "local")
        for more in ((), ("--trust-log",), ("--skip-bad",))
    ]
    assert all(rows == listed[0] for rows in listed)
    assert told(capsys, *one, "--only-rounds", "1")["rounds"] == listed[0][1:]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_warehouse_runs_the_statement_and_we_go_on(there, capsys, suffix):
    import duckdb

    generate(users="500")
    capsys.readouterr()
    run("tally", "log", "--campaign", "campaign.json", "--sql", "duckdb")
    query = capsys.readouterr().out.strip().removesuffix(";")
    duckdb.sql(f"COPY ({query}) TO 'result.{suffix}'")
    run("tally", "--campaign", "campaign.json", "--result", f"result.{suffix}", "--out", "a")
    run("tally", "log", "--campaign", "campaign.json", "--out", "b")
    one = (
        "tally",
        "--campaign",
        "campaign.json",
        "--result",
        f"result.{suffix}",
        "--only-rounds",
        "1",
    )
    assert [row["n"] for row in told(capsys, *one)["rounds"]] == [450]
    for round in (0, 1):
        assert load([Path(f"a/round-{round}.tally")]) == load([Path(f"b/round-{round}.tally")])


def test_statements_for_tables_and_files(there, capsys):
    generate()
    one = ("tally", "--campaign", "campaign.json", "--sql")
    run(*one, "postgres", "--source", "reports_of_june")
    assert "FROM reports_of_june\n" in capsys.readouterr().out
    run(*one, "spark", "log", "--trust-log")
    text = capsys.readouterr().out
    for path in Path("log").rglob("*.parquet"):
        round = path.parent.name.partition("=")[2]
        columns = f"CAST({round} AS BIGINT) AS round, reporter, key, y"
        assert text.count(f"SELECT {columns} FROM parquet.`{path.absolute()}`") == 1
    assert "reporter <" not in text
    assert main([*one, "postgres", "log"]) == 2
    assert "name it by --source" in capsys.readouterr().err


def test_generating_tells_how_much(there, capsys):
    found = told(capsys, "log", "generate", "table.csv", "--domain", "red,blue,grey", "--campaign",
                 "protocol.json", "--out", "log", "--seed", "1", "--rounds", "3")  # fmt: skip
    assert found == {
        "log": "log", "campaign": PROTOCOL.fingerprint, "rounds": 3, "reports": 290,
    }  # fmt: skip


def test_tallies_of_one_round_add_up(there, capsys):
    for seed in ("1", "2"):
        run("log", "generate", "table.csv", "--campaign", "campaign.json", "--out", f"log{seed}",
            "--seed", seed, "--users", "300")  # fmt: skip
        run("tally", f"log{seed}", "--campaign", "campaign.json", "--out", f"t{seed}")
    single = [told(capsys, "estimate", f"t{seed}/round-0.tally")[0] for seed in (1, 2)]
    double = told(capsys, "estimate", "t1", "t2/round-0.tally")
    assert [one["n"] for one in (*single, double[0])] == [300, 300, 600]
    mean = sum(one["estimate"] for one in single) / 2
    assert double[0]["estimate"] == pytest.approx(mean)
    assert double[0]["value"] == 0


def test_tallies_of_panels_know_how_often_users_report(there, capsys):
    """With a campaign's file or without: errors of all users, windows, and how even panels are."""
    plain = json.loads(Path("campaign.json").read_text())
    plain["round"]["every"] = 3
    Path("panels.json").write_text(json.dumps(plain))
    generate("panels.json", users="3000", rounds="6")
    found = told(capsys, "tally", "log", "--campaign", "panels.json", "--out", "tallies")
    sizes = [row["n"] for row in found["rounds"]]
    assert found["rows"] == sum(sizes)
    assert min(sizes) > 800
    assert max(sizes) < 1100
    names = [f"window_{name}" for name in ("estimate", "standard_error", "lower", "upper")]
    rows = told(capsys, "estimate", "tallies")
    assert list(rows[0])[-4:] == names
    agreed = told(capsys, "estimate", "tallies", "--campaign", "panels.json")
    assert [[row[name] for name in names] for row in rows] == [
        [row[name] for name in names] for row in agreed
    ]
    tallies = {t: load(files) for t, files in find([Path("tallies")]).items()}
    means = loloha.rolling(tallies, 3, population=3 * max(sizes))
    assert [row["window_estimate"] for row in rows] == pytest.approx(
        [f for t in range(6) for f in means[t].frequencies]
    )
    mean = told(capsys, "estimate", "tallies", "--mean")
    assert "window_estimate" not in mean[0]
    assert mean[0]["standard_error"] < rows[-K]["window_standard_error"]
    run("estimate", "tallies")
    assert "panels of rounds 3..5" in capsys.readouterr().err
    run("estimate", "tallies/round-0.tally", "tallies/round-2.tally", "tallies/round-5.tally")
    assert "panels" not in capsys.readouterr().err
    # A tally that anything was done to says so.
    with pytest.raises(WireError, match="every must"):
        every_of(saved_with(Path("tallies/round-0.tally"), every=0))


def saved_with(path: Path, **origin: Any) -> Path:
    path.write_bytes(load([path]).to_bytes(origin={"round": 0, "sources": [], **origin}))
    return path


def test_a_tally_given_twice_is_refused(there, capsys):
    generate(users="300")
    run("tally", "log", "--campaign", "campaign.json", "--out", "a")
    shutil.copytree("a", "copy")
    Path("link").symlink_to("a")
    os.link("a/round-0.tally", "round-0.tally")
    capsys.readouterr()
    for again in (["a"], ["a/round-0.tally"], ["copy"], ["link"], ["round-0.tally"], ["./a"]):
        assert main(["estimate", "a", *again]) == 1
        assert "must be of different reports" in capsys.readouterr().err


def test_a_tally_under_the_name_of_another_round_is_refused(there, capsys):
    generate(users="300")
    run("tally", "log", "--campaign", "campaign.json", "--out", "a")
    Path("b").mkdir()
    shutil.copy("a/round-0.tally", "b/round-7.tally")
    os.link("a/round-0.tally", "b/round-8.tally")
    shutil.copy("a/round-1.tally", "a/round-2.tally")
    capsys.readouterr()
    for line in (["b/round-7.tally"], ["b/round-8.tally"], ["a"], ["b"]):
        assert main(["estimate", *line]) == 1
        assert "must be the tally of the round in its name" in capsys.readouterr().err


def test_reports_counted_in_two_tallies_are_refused(there, capsys):
    generate(users="300")
    log = ReportLog("log", Campaign.from_json(Path("campaign.json").read_bytes()))
    run("tally", "log", "--campaign", "campaign.json", "--only-rounds", "0", "--out", "early")
    # Later reports of the round are another file of it: the second tally holds the first's too.
    keys, ys = population.linked(PROTOCOL, [[1]] * 40, rng=5)
    with log.writer() as writer:
        writer.write(0, [bytes([7, i] * 8) for i in range(40)], keys, ys[:, 0])
    run("tally", "log", "--campaign", "campaign.json", "--out", "late")
    capsys.readouterr()
    assert main(["estimate", "early", "late"]) == 1
    assert "count the same" in capsys.readouterr().err
    run("estimate", "early", "late/round-1.tally")


def test_tallies_of_two_campaigns_are_not_added_up(there, capsys):
    for round, campaign in enumerate(["one", "other"]):
        tally = PROTOCOL.tally()
        tally.add(PROTOCOL.client().report(1, round=0))
        save(there, round, tally, campaign=campaign)
    assert main(["estimate", "."]) == 1
    assert "must be of one campaign" in capsys.readouterr().err


def test_empty_rounds_of_two_logs_add_up(there):
    for name in ("a", "b"):
        Path(name).mkdir()
        save(Path(name), 3, PROTOCOL.tally(), campaign="c", sources=[name])
    assert load(find([Path("a"), Path("b")])[3]).n == 0


def test_tallies_that_do_not_say_their_round_must_be_in_the_summary(there, capsys):
    """0.2.0 wrote them: they are read, and a copy under the name of another round is not."""
    generate(users="300")
    run("tally", "log", "--campaign", "campaign.json", "--out", "a")
    for round in (0, 1):
        path = Path(f"a/round-{round}.tally")
        path.write_bytes(load([path]).to_bytes())
    run("estimate", "a")
    shutil.copy("a/round-0.tally", "a/round-5.tally")
    capsys.readouterr()
    assert main(["estimate", "a"]) == 1
    assert "count the same" in capsys.readouterr().err


def test_a_result_that_is_not_whole_is_refused(there, capsys):
    import duckdb

    generate(users="500")
    capsys.readouterr()
    run("tally", "log", "--campaign", "campaign.json", "--sql", "duckdb")
    whole = duckdb.sql(capsys.readouterr().out.strip().removesuffix(";")).to_arrow_table()
    total = whole["total"].to_pylist().index(1)
    one = whole.slice(total, 1)
    others = pyarrow.concat_tables([whole.slice(0, total), whole.slice(total + 1)])
    last = others["round"].to_pylist().index(1)
    wrong = {
        "cut": others.slice(0, 3),
        "cut-with-total": pyarrow.concat_tables([others.slice(0, 3), one]),
        "without-total": others,
        "without-a-round": whole.filter(pyarrow.compute.not_equal(whole["round"], 1)),
        "row-twice": pyarrow.concat_tables([whole, others.slice(last, 1)]),
        "twice": pyarrow.concat_tables([whole, whole]),
    }
    for name, table in wrong.items():
        pyarrow.parquet.write_table(table, f"{name}.parquet")
        asked = ["tally", "--campaign", "campaign.json", "--result", f"{name}.parquet"]
        assert main(asked) == 1, name
        assert "result must hold its one row of totals" in capsys.readouterr().err
    pyarrow.parquet.write_table(whole.drop_columns("total"), "another-statement.parquet")
    assert main([*asked[:-1], "another-statement.parquet"]) == 1
    assert "column 'total' must hold whole numbers" in capsys.readouterr().err


def test_statements_name_the_files_that_the_engines_read(there, capsys):
    import duckdb

    generate(users="500")
    shutil.copytree("log", "log[1]")
    shutil.copytree("log", "log1")
    folder = next(Path("log[1]").glob("campaign=*"))
    shutil.copy(next(folder.glob("round=0/*.parquet")), folder / "round=0" / ".hidden.parquet")
    (folder / "_round=0").mkdir()
    shutil.copy(next(folder.glob("round=0/*.parquet")), folder / "_round=0")
    one = ("tally", "log[1]", "--campaign", "campaign.json")
    expected = told(capsys, *one)["rounds"]
    assert expected == told(capsys, "tally", "log", "--campaign", "campaign.json")["rounds"]
    shutil.rmtree("log1")
    for more, rounds in (((), expected), (("--only-rounds", "1"), expected[1:])):
        capsys.readouterr()
        run(*one, *more, "--sql", "duckdb")
        query = capsys.readouterr().out.strip().removesuffix(";")
        duckdb.sql(f"COPY ({query}) TO 'result.csv'")
        result = ("tally", "--campaign", "campaign.json", "--result", "result.csv")
        assert told(capsys, *result)["rounds"] == rounds
    (folder / "round=0" / "more.parquet").write_bytes(b"no parquet")
    assert main([*one, "--sql", "duckdb"]) == 1
    said = capsys.readouterr().err
    assert "undamaged" in said
    assert "(--skip-bad; they are counted)" in said
    run(*one, "--sql", "duckdb", "--skip-bad")


def test_the_mean_of_rounds_has_the_error_that_shared_memos_leave(there, capsys):
    from loloha.server.mean import mean

    generate(users="20000")
    run("tally", "log", "--campaign", "campaign.json", "--out", "t")
    rows = told(capsys, "estimate", "t", "--mean", "--campaign", "campaign.json")
    wanted = mean([load([Path(f"t/round-{round}.tally")]) for round in (0, 1)])
    assert {row["round"] for row in rows} == {None}
    assert [row["label"] for row in rows] == ["red", "blue", "grey", "teal", "pink"]
    assert [row["estimate"] for row in rows] == wanted.frequencies.tolist()
    assert [row["standard_error"] for row in rows] == wanted.standard_errors.tolist()
    assert rows[0]["n"] == 19000
    run("estimate", "t", "--mean", "--out", "mean.parquet")
    assert pyarrow.parquet.read_table("mean.parquet")["round"].null_count == K


def test_few_rows_of_many_values(there, capsys):
    generate(users="20000")
    run("tally", "log", "--campaign", "campaign.json", "--out", "t")
    top = told(capsys, "estimate", "t", "--top", "2", "--project")
    assert [(row["round"], row["value"]) for row in top[:2]] == [(0, 0), (0, 1)]
    assert len(top) == 4
    assert all(0 <= row["projected"] <= 1 for row in top)
    clear = told(capsys, "estimate", "t", "--only-clear")
    assert {(row["round"], row["value"]) for row in clear} > {(0, 0), (0, 1), (0, 2), (1, 0)}
    # Picked by their estimates: the interval is one that holds for all values at once.
    everything = {(row["round"], row["value"]): row for row in told(capsys, "estimate", "t")}
    for row in clear + top:
        named = everything[row["round"], row["value"]]
        assert row["lower"] < named["lower"]
        assert row["upper"] > named["upper"]
    capsys.readouterr()
    run("estimate", "t")
    assert "standard_error" in capsys.readouterr().out


def test_a_round_in_which_a_bucket_has_nobody_has_no_projection(there, capsys):
    protocol = DBitFlipPM(k=K, eps_inf=4.0, b=5, d=1)
    Path("protocol.json").write_text(json.dumps(protocol.to_dict()))
    Path("table.csv").write_text("r0\nred\nblue\ngrey\ngrey\n")
    generate("protocol.json")
    run("tally", "log", "--campaign", "protocol.json", "--out", "t")
    run("estimate", "t", "--project", "--out", "e.parquet")
    said = " ".join(capsys.readouterr().err.split())
    assert "round 0 has no projection: nobody sampled" in said
    table = pyarrow.parquet.read_table("e.parquet")
    assert 0 < table["estimate"].null_count < K
    assert table["projected"].null_count == K


def test_estimates_go_to_files(there, capsys):
    generate()
    run("tally", "log", "--campaign", "campaign.json", "--out", "t")
    for name, read in (("e.csv", pyarrow.csv.read_csv), ("e.parquet", pyarrow.parquet.read_table)):
        run("estimate", "t", "--campaign", "campaign.json", "--out", name)
        table = read(name)
        assert (table.num_rows, table["label"][1].as_py()) == (2 * K, "blue")
        assert main(["estimate", "t", "--out", name]) == 1
        run("estimate", "t", "--out", name, "--force")
    assert sorted(path.name for path in there.glob(".*")) == []
    capsys.readouterr()


def test_buckets_have_numbers_not_labels(there, capsys):
    protocol = DBitFlipPM(k=K, eps_inf=4.0, b=2, d=2)
    Path("protocol.json").write_text(json.dumps(protocol.to_dict()))
    generate("protocol.json")
    run("tally", "log", "--campaign", "protocol.json", "--out", "t")
    rows = told(capsys, "estimate", "t", "--campaign", "protocol.json")
    assert [row["value"] for row in rows] == [0, 1, 0, 1]


def test_a_round_without_reports_is_reported(there, capsys):
    generate()
    folder = next(Path("log").glob("campaign=*"))
    (folder / "round=9").mkdir()
    run("tally", "log", "--campaign", "campaign.json", "--out", "t")
    capsys.readouterr()
    run("estimate", "t")
    assert "round 9 has no reports" in capsys.readouterr().err
    assert main(["estimate", "t/round-9.tally"]) == 1


def test_bad_files_end_it_or_are_counted(there, capsys):
    generate()
    path = next(Path("log").rglob("*.parquet"))
    path.write_bytes(path.read_bytes() + b"x")
    one = ["tally", "log", "--campaign", "campaign.json"]
    assert main(one) == 1
    assert "got 1 damaged" in capsys.readouterr().err
    assert told(capsys, *one, "--skip-bad")["refused"] == {"damaged": 1}
    run(*one, "--skip-bad")
    assert "skipped: 1 damaged file\n" in capsys.readouterr().err


def test_a_failing_engine_leaves_no_tallies(there, capsys, monkeypatch):
    generate()

    def broken(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Engine, "tally", broken)
    assert main(["tally", "log", "--campaign", "campaign.json", "--out", "t"]) == 130
    assert not Path("t").exists()
    assert sorted(path.name for path in there.glob(".*")) == []


def test_what_is_in_a_log(there, capsys):
    generate()
    generate("protocol.json")
    (next(Path("log").glob("campaign=*")) / "round=0" / "x.parquet").write_bytes(b"x")
    listed = told(capsys, "log", "show", "log")
    assert sorted((e["rows"], e["rounds"], e["unreadable"]) for e in listed) == [
        (190, 2, 0), (190, 2, 1),
    ]  # fmt: skip
    assert {entry["protocol"]["type"] for entry in listed} == {"ololoha"}
    run("log", "show", "log")
    assert "ololoha" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("tally --campaign campaign.json", 2, "LOG or --result must be given"),
        ("tally log --campaign nowhere.json", 1, "campaign must be readable"),
        ("tally log --campaign table.csv", 1, "campaign must be JSON"),
        ("tally log --campaign odd.json", 1, "spec|parameters|k must"),
        ("tally log --campaign campaign.json --only-rounds 3-1", 2, "rounds must be a list"),
        ("tally log --campaign campaign.json --only-rounds x", 2, "rounds must be a list"),
        ("tally log --campaign campaign.json --only-rounds 0-99999999999999", 2, "must be a list"),
        ("tally log --campaign campaign.json --engine abacus", 2, "engine must be one of"),
        ("tally nowhere --campaign campaign.json", 1, "log must be an existing folder"),
        ("tally --campaign campaign.json --result table.csv", 1, "column 'round' must hold"),
        ("tally --campaign campaign.json --result campaign.json", 1, "must be Parquet or CSV"),
        ("estimate nowhere.tally", 1, "tally must be a file or folder that exists"),
        ("estimate round-1.tally", 1, "tally must be a file or folder that exists"),
        ("estimate .", 1, "without any"),
        ("estimate . --top 0", 2, "top must be"),
        ("estimate . --level 1", 2, "level must be inside"),
        ("estimate . --out x.txt", 2, "must end in .csv or .parquet"),
        ("log show .", 1, "LOG must hold folders"),
        ("log generate table.csv --campaign campaign.json --seed 1 --out log --truth table.csv", 1,
         "--truth must be new"),
        ("log generate syn --campaign campaign.json --seed 1 --out log", 2,
         "labels of the table must be labels of the campaign"),
    ],
)  # fmt: skip
def test_misuse_is_explained(line, code, says, there, capsys):
    Path("odd.json").write_text('{"type": "ololoha", "version": 1, "k": 1}')
    assert main(line.split()) == code
    assert re.search(says, capsys.readouterr().err)


def test_the_range_of_the_campaign_may_be_given_again(there: Path) -> None:
    """As parts of numbers they are the campaign's own; nothing is looked up by its label."""
    Path("numbers.csv").write_text("user,r0,r1\n" + "".join(f"u{i},{i % 8},3\n" for i in range(40)))
    domain = Range(0, 8, 4)
    rules = OLOLOHA(k=4, eps_inf=2.0, eps_1=1.0)
    file = Path("numbers.json")
    schedule = Schedule.from_dict({"start": "2026-01-01T00:00:00Z", "seconds": 86400})
    campaign = Campaign(name="n", protocol=rules, domain=domain, schedule=schedule)
    file.write_bytes(campaign.to_json())
    for more in ([], ["--range", "0", "8", "--bins", "4"]):
        line = ["log", "generate", "numbers.csv", "--campaign", str(file), "--seed", "1", *more]
        assert main([*line, "--out", f"log-{len(more)}"]) == 0
    logs = [sorted(Path(f"log-{n}").rglob("*.parquet")) for n in (0, 5)]
    assert [path.name for path in logs[0]] == [path.name for path in logs[1]]


def test_a_second_log_does_not_mix_with_the_first(there, capsys):
    generate()
    again = "log generate table.csv --domain red,blue,grey --campaign campaign.json --seed 2"
    assert main([*again.split(), "--out", "log"]) == 1
    assert "no reports of this campaign yet" in capsys.readouterr().err
    for file in Path("log").rglob("*.parquet"):
        file.unlink()
    # Folders without reports, as a killed one of an earlier release left them.
    assert main([*again.split(), "--out", "log"]) == 0


def test_a_damaged_tally_is_named(there, capsys):
    generate()
    run("tally", "log", "--campaign", "campaign.json", "--out", "t")
    path = Path("t/round-0.tally")
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["estimate", "t"]) == 1
    assert "round-0.tally" in capsys.readouterr().err


def other_campaign(*labels: str) -> str:
    campaign = Campaign(
        name="other",
        protocol=PROTOCOL,
        domain=Labels(labels),
        schedule=Schedule.from_dict({"start": "2026-01-01T00:00:00Z", "seconds": 86400}),
    )
    Path("other.json").write_bytes(campaign.to_json())
    return "other.json"


def test_labels_find_their_place_in_the_campaign(there):
    generate(other_campaign("teal", "pink", "grey", "blue", "red"), truth="truth.parquet")
    truth = pyarrow.parquet.read_table("truth.parquet").to_pylist()
    held = {row["value"]: row["truth"] for row in truth if row["round"] == 0}
    assert held == {4: 0.6, 3: 0.3, 2: 0.1}


def test_tallies_of_another_campaign_get_no_labels_of_this_one(there, capsys):
    generate()
    run("tally", "log", "--campaign", "campaign.json", "--out", "tallies")
    other = other_campaign("teal", "pink", "grey", "blue", "red")
    for tallies in ("tallies", "tallies/round-0.tally"):
        assert main(["estimate", tallies, "--campaign", other]) == 2
        assert "must be of campaign" in capsys.readouterr().err
    run("estimate", "tallies", "--campaign", "campaign.json")
