"""The main job: a table goes in, and estimates, metrics and a picture come out, or nothing."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import loloha
from loloha import LolohaError
from loloha.campaign import Campaign, Range, Schedule
from loloha.cli import main
from loloha.cli.results_folder import FILES
from loloha.engines.saved import save
from loloha.protocols import REGISTRY
from loloha.server.estimate_table import COLUMNS

PAGES = """user,mon,tue,wed
ann,start,start,
ben,search,,help
cy,start,"settings, more",start
dan,help,help,help
eve,start,search,start
"""
LABELS = ["help", "search", "settings, more", "start"]
TRUTH = {
    "mon": [0.2, 0.2, 0.0, 0.6],
    "tue": [0.25, 0.25, 0.25, 0.25],
    "wed": [0.5, 0.0, 0.0, 0.5],
}
OLOLOHA = ["--protocol", "ololoha", "--eps-inf", "4", "--eps-1", "2"]
# Enough for each protocol of the registry, whichever it needs.
ENOUGH = {"eps_inf": "4", "eps_1": "2", "eps": "2"}


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    path = tmp_path / "pages.csv"
    path.write_text(PAGES, encoding="utf-8")
    return path


@pytest.fixture
def domain(tmp_path: Path) -> Path:
    path = tmp_path / "domain.json"
    path.write_text(json.dumps(LABELS), encoding="utf-8")
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results" / "out"


@pytest.mark.usefixtures("no_picture")
def test_devices_that_report_in_one_round_of_some(tmp_path: Path, capsys: Any) -> None:
    table, out = tmp_path / "table.csv", tmp_path / "out"
    rows = [f"{user},{','.join('abc'[user % 3] for _ in range(8))}" for user in range(3000)]
    table.write_text("\n".join(["user," + ",".join(f"r{t}" for t in range(8)), *rows]))
    line = ["run", str(table), *OLOLOHA, "--domain", "a,b,c", "--out", str(out), "--seed", "3"]
    assert main([*line, "--every", "4"]) == 0
    told = capsys.readouterr().out
    assert "MSE, window" in told
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["every"] == 4
    assert sum(one["n"] for one in metrics["rounds"]) == 2 * 3000
    # Four panels: about four times less error than one, whose sample errs too.
    assert metrics["window"]["mse"] < metrics["mse"] / 2
    assert metrics["window"]["coverage"] > 0.8
    found = pq.read_table(out / "estimates.parquet")
    assert found.column_names[-4:] == [
        "window_estimate", "window_standard_error", "window_lower", "window_upper"
    ]  # fmt: skip
    assert main([*line, "--force", "--every", "0"]) == 2
    assert "every must" in capsys.readouterr().err
    assert main([*line, "--force"]) == 0
    assert "every" not in json.loads((out / "metrics.json").read_text())


@pytest.fixture
def no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures take most of the time of a small run, and have tests of their own."""
    monkeypatch.setattr("loloha.population.trial.draw_run", lambda *_, **__: None)
    monkeypatch.setattr("loloha.population.trial.save", lambda *_: [])


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "estimates.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def needed(name: str) -> list[str]:
    """Options of a protocol's required parameters but k."""
    from loloha.cli.parameter import flag, required

    names = [one for one in required(REGISTRY[name]) if one != "k"]
    return [word for one in names for word in (flag(one), ENOUGH[one])]


def test_a_small_table_with_text_and_gaps(
    pages: Path, domain: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["run", str(pages), *OLOLOHA, "--domain", str(domain), "--out", str(out), "--seed", "7"]
    assert main(line) == 0
    told = capsys.readouterr()
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)

    table = rows(out)
    assert [(row["start"], row["label"]) for row in table] == [
        (round_, label) for round_ in TRUTH for label in LABELS
    ]
    assert [float(row["truth"]) for row in table] == [f for row in TRUTH.values() for f in row]
    assert [int(row["n"]) for row in table] == [5] * 4 + [4] * 8

    values = np.array([[3, 3, -1], [1, -1, 0], [3, 2, 3], [0, 0, 0], [3, 1, 3]], dtype=np.int16)
    protocol = loloha.OLOLOHA(k=4, eps_inf=4.0, eps_1=2.0)
    result = loloha.simulate(protocol, values, rng=7)
    np.testing.assert_allclose(
        [float(row["estimate"]) for row in table], result.estimates.ravel(), rtol=1e-12
    )
    for t in range(3):
        estimate = result.tallies[t].estimate()
        lower, upper = estimate.interval(0.95)
        of_round = table[4 * t : 4 * t + 4]
        for name, wanted in (
            ("standard_error", estimate.standard_errors),
            ("lower", lower),
            ("upper", upper),
        ):
            np.testing.assert_allclose([float(row[name]) for row in of_round], wanted, rtol=1e-9)

    # What a person sees: the table's name, its errors, the last round; and nobody's name.
    assert "User table 'pages', domain given (n = 5, k = 4, tau = 3)." in told.out
    assert "Round wed" in told.out
    everything = told.out + told.err + (out / "metrics.json").read_text("utf-8")
    for user in ("ann", "ben", "dan", "eve"):
        assert f" {user} " not in everything
        assert f'"{user}"' not in everything
    assert "read off" not in told.err


@pytest.mark.usefixtures("no_picture")
def test_both_tables_hold_the_same_and_say_where_it_comes_from(
    pages: Path, domain: Path, out: Path
) -> None:
    assert main(["run", str(pages), *OLOLOHA, "--domain", str(domain), "--out", str(out)]) == 0
    table = pq.read_table(out / "estimates.parquet")
    assert table.schema.names == [*COLUMNS, "truth"]
    for row, seen in zip(rows(out), table.to_pylist(), strict=True):
        assert {name: str(cell) for name, cell in row.items() if name in ("start", "label")} == {
            "start": seen["start"],
            "label": seen["label"],
        }
        assert float(row["estimate"]) == pytest.approx(seen["estimate"], rel=1e-15)
    about = json.loads(table.schema.metadata[b"loloha"])
    assert "User table 'pages'" in about["note"]
    protocol = loloha.OLOLOHA(k=4, eps_inf=4, eps_1=2)
    assert about["parameters"] == {"protocol": protocol.to_dict(), **protocol.numbers}


@pytest.mark.usefixtures("no_picture")
def test_metrics_say_what_was_done_and_how_well(
    pages: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["run", str(pages), *OLOLOHA, "--out", str(out), "--seed", "7", "--json"]
    assert main([*line, "--level", "0.8"]) == 0
    told = capsys.readouterr()
    printed = json.loads(told.out)
    assert printed.pop("files") == [str(out / name) for name in FILES[:3]]
    saved = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    assert printed == saved
    assert set(saved) == {
        "loloha", "data_set", "protocol", "fingerprint", "realised", "seed", "randomness", "level",
        "coverage", "cap", "mse", "mse_clipped", "mse_uniform", "v_star", "expected_mse",
        "eps_avg", "eps_max", "rounds", "privacy",
    }  # fmt: skip
    protocol = loloha.OLOLOHA(k=4, eps_inf=4, eps_1=2)
    assert saved["protocol"] == protocol.to_dict()
    assert saved["fingerprint"] == protocol.fingerprint
    assert saved["realised"] == protocol.numbers
    assert (saved["seed"], saved["level"], saved["cap"]) == (7, 0.8, protocol.cap)
    assert saved["data_set"]["source"] == "user"
    assert [one["round"] for one in saved["rounds"]] == [0, 1, 2]
    assert [(one["start"], one["n"]) for one in saved["rounds"]] == [
        ("mon", 5), ("tue", 4), ("wed", 4),
    ]  # fmt: skip
    table = rows(out)
    squares = [(float(row["estimate"]) - float(row["truth"])) ** 2 for row in table]
    assert saved["mse"] == pytest.approx(np.mean(squares))
    assert saved["mse_uniform"] == pytest.approx(np.mean((0.25 - np.array([*TRUTH.values()])) ** 2))
    inside = [float(row["lower"]) <= float(row["truth"]) <= float(row["upper"]) for row in table]
    assert saved["coverage"] == pytest.approx(np.mean(inside))
    for row in table:
        n, f = int(row["n"]), np.array([float(row["estimate"])])
        ends = loloha.server.estimate.inversion(protocol, n, f, np.array([n])).interval(0.8)
        np.testing.assert_allclose(
            np.ravel(ends), [float(row["lower"]), float(row["upper"])], rtol=1e-9
        )
    assert saved["privacy"] == json.loads(json.dumps(loloha.privacy.explain(protocol).to_dict()))
    # Read off the data: told on stderr, so that stdout stays JSON.
    assert told.err.startswith("warning: the domain was read off the data")


@pytest.mark.long
def test_a_seed_repeats_a_run_and_without_one_none_is_stored(
    pages: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("a", "b"):
        line = ["run", str(pages), *OLOLOHA, "--out", str(tmp_path / name), "--seed", "1"]
        assert main(line) == 0
    assert "randomness" not in capsys.readouterr().err
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()

    seeds: list[Any] = []
    simulate = loloha.simulate

    def noting(*arguments: Any, rng: Any, **options: Any) -> Any:
        seeds.append(rng)
        return simulate(*arguments, rng=rng, **options)

    monkeypatch.setattr(loloha, "simulate", noting)
    assert main(["run", str(pages), *OLOLOHA, "--out", str(tmp_path / "c")]) == 0
    assert seeds == [None]
    assert "randomness: the operating system's" in capsys.readouterr().err
    assert json.loads((tmp_path / "c" / "metrics.json").read_text())["seed"] is None


FEW = {"l-grr", "ololoha", "rappor", "dbitflippm", "onebit"}


@pytest.mark.usefixtures("no_picture")
@pytest.mark.parametrize(
    "name",
    [
        # One of each encoding.
        pytest.param(name, marks=[pytest.mark.long] * (name not in FEW))
        for name in REGISTRY
    ],
)
def test_every_protocol_runs(name: str, pages: Path, domain: Path, out: Path) -> None:
    line = ["run", str(pages), "--protocol", name, *needed(name), "--out", str(out)]
    assert main([*line, "--domain", str(domain), "--seed", "3"]) == 0
    saved = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    assert saved["protocol"]["type"] == name
    # Of numbers the share with at least each value but the first, which all have.
    assert len(rows(out)) == 3 * (4 if REGISTRY[name].histogram else 3)


@pytest.mark.usefixtures("no_picture")
def test_a_mean_of_labels_read_off_the_data_needs_numbers(
    tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    line = ["run", str(table), "--protocol", "onebit", "--eps-inf", "4", "--eps-1", "2"]
    line += ["--out", str(out), "--force"]
    for cells in (["0.5", "1", "85.2"], ["a", "b", "c"], ["1", "2", "4"]):
        table.write_text("r0,r1\n" + "".join(f"{cell},{cell}\n" for cell in cells * 9))
        assert main(line) == 2
        assert "--range LOW HIGH" in capsys.readouterr().err
        assert main([*line, "--domain", ",".join(cells)]) == 0
    assert main([*line, "--range", "0", "3", "--bins", "3"]) == 1
    assert "widen --range" in capsys.readouterr().err


def test_a_picture_of_numbers_says_what_its_axes_are(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("r0,r1\n" + "".join(f"{v % 6},{v % 6}\n" for v in range(60)))
    line = ["run", str(table), "--protocol", "onebit", "--eps-inf", "4", "--eps-1", "2"]
    for given, threshold in (
        (["--range", "0", "6", "--bins", "3"], "\u2265 2"),
        (["--domain", "0,1,3,2,4,5"], "k-1"),
    ):
        out = tmp_path / given[0]
        assert main([*line, *given, "--seed", "1", "--out", str(out)]) == 0
        assert threshold in (out / "frequencies.svg").read_text(encoding="utf-8")


@pytest.mark.usefixtures("no_picture")
def test_numbers_come_in_the_units_of_the_range(
    tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, hours = tmp_path / "t.csv", [v / 4 for v in range(96)]
    table.write_text("r1,r2\n" + "".join(f"{v},{v}\n" for v in hours * 30))
    line = ["run", str(table), "--protocol", "onebit", "--eps-inf", "4", "--eps-1", "2"]
    line += ["--seed", "1"]
    assert main([*line, "--range", "0", "24", "--bins", "96", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "Numbers, in the units of the domain" in shown
    assert "uniform" not in shown
    numbers = json.loads((out / "metrics.json").read_text(encoding="utf-8"))["numbers"]
    # Middles of the parts.
    truth = {"mean": 12.0, "quantile_10": 2.375, "quantile_50": 11.875, "quantile_90": 21.625}
    first = rows(out)[0]
    for name, at in truth.items():
        assert numbers[f"{name}_truth"] == pytest.approx([at, at])
        assert float(first[name]) == numbers[name][0] == pytest.approx(at, abs=3)
        assert numbers[f"{name}_lower"][0] < at < numbers[f"{name}_upper"][0]
    # Labels that are no equal steps: numbers are steps of the domain.
    table.write_text("r1\n" + "low\nmiddle\nhigh\n" * 30)
    assert main([*line, "--domain", "low,middle,high", "--out", str(out), "--force"]) == 0
    assert "in steps 0..k-1" in capsys.readouterr().out


@pytest.mark.usefixtures("no_picture")
def test_estimates_of_numbers_have_mean_and_quantiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = Campaign(
        name="hours",
        protocol=loloha.OneBit(k=12, eps_inf=4.0, eps_1=2.0),
        domain=Range(0, 24, 12),
        schedule=Schedule(0, 3600),
    )
    (tmp_path / "c.json").write_bytes(campaign.to_json())
    values = np.random.default_rng(1).integers(0, 12, size=(2000, 1))
    (tally,) = loloha.simulate(campaign.protocol, values, rng=1).tallies
    (tmp_path / "tallies").mkdir()
    save(tmp_path / "tallies", 0, tally)
    line = ["estimate", str(tmp_path / "tallies")]
    assert main([*line, "--campaign", str(tmp_path / "c.json"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = tally.estimate().numbers.summary(0.95, campaign.domain.scale)
    for row in found:
        assert {name: row[name] for name in expected} == pytest.approx(expected)
    assert main(line) == 0
    shown = capsys.readouterr().out
    assert "Numbers, in steps 0..k-1 of the domain; --campaign FILE has its units" in shown


@pytest.mark.usefixtures("no_picture")
def test_buckets_are_compared_with_the_bucketed_truth(pages: Path, out: Path) -> None:
    line = ["run", str(pages), "--protocol", "dbitflippm", "--eps-inf", "4", "--out", str(out)]
    assert main([*line, "--b", "3", "--d", "3", "--domain", "a,help,search,start,z"]) == 1
    assert main([*line, "--b", "2", "--d", "2"]) == 0
    table = rows(out)
    assert [row["label"] for row in table[:2]] == ["help … search", "settings, more … start"]
    assert [float(row["truth"]) for row in table] == [0.4, 0.6, 0.5, 0.5, 0.5, 0.5]


def test_a_bucket_that_nobody_sampled_is_empty_not_zero(tmp_path: Path, out: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("r1,r2\n1,2\n2,1\n")
    line = ["run", str(table), "--protocol", "dbitflippm", "--eps-inf", "1", "--d", "1"]
    assert main([*line, "--domain", "1,2,3,4,5,6,7,8", "--out", str(out), "--seed", "0"]) == 0
    estimates = [row["estimate"] for row in rows(out)]
    assert estimates.count("") >= 2 * (8 - 2)
    nulls = pq.read_table(out / "estimates.parquet")["estimate"].null_count
    assert nulls == estimates.count("")
    json.loads((out / "metrics.json").read_text(), parse_constant=pytest.fail)


def test_a_round_without_reports_has_no_estimate(tmp_path: Path, out: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("r1,r2,r3\na,,b\nb,,a\n")
    assert main(["run", str(table), *OLOLOHA, "--out", str(out)]) == 0
    of_round = [row for row in rows(out) if row["start"] == "r2"]
    assert [(row["n"], row["estimate"], row["truth"]) for row in of_round] == [("0", "", "")] * 2
    saved = json.loads((out / "metrics.json").read_text())
    assert saved["rounds"][1]["mse"] is None
    assert saved["mse"] is not None


@pytest.mark.usefixtures("no_picture")
def test_long_parquet_with_dates_and_other_labels(tmp_path: Path, out: Path) -> None:
    from datetime import date

    table = tmp_path / "visits.parquet"
    days = [date(2024, 3, 1), date(2024, 2, 29)]
    pq.write_table(
        pa.table(
            {
                "who": ["x", "x", "y", "y", "z"],
                "day": [days[0], days[1], days[0], days[1], days[0]],
                "page": [2, 1, 3, 1, 2],
            }
        ),
        table,
    )
    line = ["run", str(table), *OLOLOHA, "--user", "who", "--round", "day", "--value", "page"]
    assert main([*line, "--domain", "1,2", "--on-unknown", "missing", "--out", str(out)]) == 0
    found = pq.read_table(out / "estimates.parquet")
    assert found["round"].to_pylist() == [0, 0, 1, 1]
    assert found["start"].to_pylist() == [str(days[1])] * 2 + [str(days[0])] * 2
    assert found["label"].to_pylist() == ["1", "2", "1", "2"]
    assert found["n"].to_pylist() == [2, 2, 2, 2]
    assert found["truth"].to_pylist() == [1, 0, 0, 1]


def test_labels_of_several_types_become_text() -> None:
    from loloha.server.frame import _column

    assert _column([1, "a"]).to_pylist() == ["1", "a"]
    assert _column([1, 2]).to_pylist() == [1, 2]
    assert _column([1, 1 << 80]).to_pylist() == ["1", str(1 << 80)]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["missing.csv", *OLOLOHA], 1, "must be an existing file"),
        (["FOLDER", *OLOLOHA], 1, "must be an existing file"),
        (["single.csv", *OLOLOHA], 1, "at least two different labels"),
        (["nothing.csv", *OLOLOHA], 1, "must have rows"),
        (["ragged.csv", *OLOLOHA], 1, "each row must have"),
        (["pages.csv", *OLOLOHA, "--domain", "start,help"], 1, "got 3 cells outside"),
        (["pages.csv", *OLOLOHA, "--domain", "start"], 1, "domain must be a readable"),
        (["pages.csv", *OLOLOHA, "--domain", "start,start"], 2, "all different"),
        (["pages.csv", *OLOLOHA, "--user", "nobody"], 2, "user must be one of"),
        (
            ["pages.csv", *OLOLOHA, "--round", "mon"],
            2,
            "a long table; name its columns with --value",
        ),
        (["pages.csv", *OLOLOHA, "--layout", "tall"], 2, "layout must be one of"),
        (["pages.csv", *OLOLOHA, "--on-unknown", "guess"], 2, "on_unknown must be one of"),
        (["pages.csv", *OLOLOHA, "--data-dir", "x"], 2, "--data-dir must be left out"),
        (["pages.csv", *OLOLOHA, "--k", "4"], 2, "--k"),
        (["pages.csv", *OLOLOHA, "--top", "0"], 2, "top must be"),
        (["pages.csv", *OLOLOHA, "--level", "1"], 2, "level must be inside"),
        (["pages.csv", *OLOLOHA, "--level", "nan"], 2, "level must be inside"),
        (["pages.csv", *OLOLOHA, "--seed", "-1"], 2, "seed must be"),
        (["pages.csv", *OLOLOHA, "--eps", "1"], 2, "got --eps;"),
        (["pages.csv", *OLOLOHA, "--g", "1"], 2, "g must be"),
        (["pages.csv", *OLOLOHA, "--hash", "linear", "--g", "4"], 2, "g must be"),
        (["pages.csv", "--protocol", "ololoha", "--eps-inf", "4"], 2, "include --eps-1"),
        (["pages.csv", "--protocol", "ololoha", "--eps-inf", "0", "--eps-1", "1"], 2, "eps_inf"),
        (["pages.csv", "--protocol", "grr", "--eps", "one"], 2, "--eps"),
        (["pages.csv", "--protocol", "laplace", "--eps", "1"], 2, "protocol must be one of"),
        (["pages.csv", "--protocol", "dbitflippm", "--eps-inf", "1", "--b", "5"], 2, "b must be"),
        (["syn", *OLOLOHA, "--user", "u"], 2, "--user must be left out"),
        (["syn", *OLOLOHA, "--domain", "1,2"], 2, "--domain must be left out"),
        (["syn", *OLOLOHA, "--data-dir", "x"], 2, "--data-dir must be left out"),
        (["acs", *OLOLOHA], 2, "must name a state"),
        (["acs:XX", *OLOLOHA], 2, "state must be"),
        (["acs:MT", *OLOLOHA, "--data", "nowhere"], 1, "path must be"),
        (["adult", *OLOLOHA, "--data", "nowhere"], 1, "path must be"),
        (["pages.csv"], 2, "--protocol"),
        ([], 2, "TABLE"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else None,
)
def test_bad_input_at_every_entry_point(
    arguments: list[str],
    code: int,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import re

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    (tmp_path / "FOLDER").mkdir()
    for name, text in {
        "pages": PAGES,
        "single": "day\nsun\nsun\n",
        "nothing": "a,b\n",
        "ragged": "a,b\n1,2\n1,2,3\n",
    }.items():
        (tmp_path / f"{name}.csv").write_text(text)
    before = sorted(tmp_path.iterdir())
    assert main(["run", *arguments, "--out", "out"]) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert re.search(says, told.err), told.err
    assert "Traceback" not in told.err
    errors = [line for line in told.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == ("Usage:" not in told.err)
    assert sorted(tmp_path.iterdir()) == before


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(
    pages: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from loloha import datasets

    monkeypatch.setattr(datasets, "table", lambda *_, **__: pytest.fail("was read"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    for out in (pages, pages / "x", tmp_path / "full", pages / "x" / "y"):
        assert main(["run", str(pages), *OLOLOHA, "--out", str(out)]) == 1
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith("error: --out must be")
        assert len(told.err.splitlines()) == 1


@pytest.mark.usefixtures("no_picture")
def test_results_are_replaced_with_force_alone(pages: Path, out: Path) -> None:
    line = ["run", str(pages), *OLOLOHA, "--out", str(out), "--seed"]
    assert main([*line, "1"]) == 0
    assert main([*line, "2"]) == 1
    assert json.loads((out / "metrics.json").read_text())["seed"] == 1
    assert main([*line, "3", "--force"]) == 0
    assert json.loads((out / "metrics.json").read_text())["seed"] == 3
    assert [path.name for path in out.parent.iterdir()] == [out.name]


@pytest.mark.parametrize(
    ("failure", "code"),
    [(KeyboardInterrupt(), 130), (LolohaError("no"), 1), (OSError(28, "No space left"), 1)],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("place", ["simulate", "save"])
def test_a_run_cut_short_leaves_nothing(
    failure: BaseException,
    code: int,
    place: str,
    pages: Path,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise failure

    if place == "simulate":
        monkeypatch.setattr(loloha, "simulate", fail, raising=False)
    else:
        # The tables are written by then.
        monkeypatch.setattr("loloha.population.trial.draw_run", fail)
    assert main(["run", str(pages), *OLOLOHA, "--out", str(out)]) == code
    assert "Results" not in capsys.readouterr().out
    assert list(out.parent.iterdir()) == []


@pytest.mark.usefixtures("no_picture")
def test_noise_above_all_values_is_reported(
    tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("r\n" + "".join(f"{v % 50}\n" for v in range(100)))
    line = ["run", str(table), "--protocol", "biloloha", "--eps-inf", "0.2", "--eps-1", "0.1"]
    assert main([*line, "--out", str(out), "--seed", "1"]) == 0
    assert "noise swamps the frequencies" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.usefixtures("no_picture")
def test_data_sets_by_name(
    tmp_path: Path, real_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = [*OLOLOHA, "--seed", "1", "--json", "--out"]
    wanted = {
        "acs:DE": ("DB_DE", "real", 9_123, 1_234),
        "adult": ("Adult", "real", 45_222, 96),
        "syn": ("Syn", "synthetic", 10_000, 360),
    }
    for table, (name, source, n, k) in wanted.items():
        data = [] if table == "syn" else ["--data", str(real_data)]
        assert main(["run", table, *data, *line, str(tmp_path / name)]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["data_set"].items() >= {"name": name, "source": source, "n": n, "k": k}.items()


@pytest.mark.parametrize("rounds", [2, 5])
def test_the_picture_of_numbers_has_mean_and_quantiles(
    rounds: int, tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []

    def keep(*_: Any, **given: Any) -> None:
        drawn.append(given["numbers"])

    monkeypatch.setattr("loloha.population.trial.draw_run", keep)
    monkeypatch.setattr("loloha.population.trial.save", lambda *_: [])
    table = tmp_path / "t.csv"
    values = np.repeat(np.arange(12) * 1.0, 80)
    head = ",".join(f"r{t}" for t in range(rounds))
    table.write_text(head + "\n" + "".join(",".join([str(v)] * rounds) + "\n" for v in values))
    line = ["run", str(table), "--protocol", "onebit", "--eps-inf", "4", "--eps-1", "2"]
    assert (
        main([*line, "--range", "0", "12", "--bins", "12", "--seed", "1", "--out", str(out)]) == 0
    )
    (lines,) = drawn
    assert lines.labels == ["mean", "10 % quantile", "50 % quantile", "90 % quantile"]
    numbers = json.loads((out / "metrics.json").read_text(encoding="utf-8"))["numbers"]
    for column, name in enumerate(("mean", "quantile_10", "quantile_50", "quantile_90")):
        assert lines.frequencies[:, column].tolist() == pytest.approx(numbers[name])
        assert lines.truth[:, column].tolist() == pytest.approx(numbers[f"{name}_truth"])
        assert lines.lower[:, column].tolist() == pytest.approx(numbers[f"{name}_lower"])
        assert lines.upper[:, column].tolist() == pytest.approx(numbers[f"{name}_upper"])
    assert (lines.together is None) == (rounds == 2)
    if lines.together is not None:
        assert lines.together.frequencies[:, 0] == pytest.approx(lines.truth[:, 0], abs=1)
        assert lines.together.truth is None
