"""``loloha series``: one series, wherever its estimates come from, and alarms of a stated rate."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from pyarrow.parquet import read_table, write_table

import loloha
from loloha.campaign import Campaign, Labels, Range, Schedule
from loloha.cli import main
from loloha.engines.saved import save
from loloha.errors import ParameterError
from loloha.server.estimate_table import COLUMNS, NUMBERS, EstimateTable, round_columns
from loloha.server.observations import Observations

PROTOCOL = loloha.OLOLOHA(k=4, eps_inf=2.0, eps_1=1.0)
LABELS = ("a", "b", "c", "d")
CAMPAIGN = Campaign(
    name="c", protocol=PROTOCOL, domain=Labels(LABELS), schedule=Schedule(0, 86_400)
)
# A third of the users hold the last value in round 8 alone.
VALUES = np.repeat(np.random.default_rng(1).integers(0, 3, (2000, 1)), 12, axis=1)
VALUES[:700, 8] = 3
RESULT = loloha.simulate(PROTOCOL, VALUES, rng=2)
SERIES = loloha.series(RESULT.tallies, labels=LABELS)
ADDRESS = f"https://host/v1/campaigns/{CAMPAIGN.fingerprint}"


def exported() -> EstimateTable:
    """As `loloha export` has it."""
    return EstimateTable(
        campaign=CAMPAIGN.fingerprint,
        round=list(range(12)),
        start=[f"2026-01-{t + 1:02}T00:00:00Z" for t in range(12)],
        value=range(4),
        label=LABELS,
        estimate=RESULT.estimates,
        standard_error=RESULT.standard_errors,
        lower=RESULT.estimates - 0.1,
        upper=RESULT.estimates + 0.1,
        level=0.95,
        n=[2000] * 12,
        about={"parameters": {"protocol": PROTOCOL.to_dict()}},
    )


class Shown:
    """A collector that shows five rounds at a time."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def document(self) -> Campaign:
        return CAMPAIGN

    def rounds(self, first: int, newest: int, last: int = 11) -> list[dict[str, Any]]:
        return [{"round": t, "n": 2000} for t in range(first, last + 1)]

    def series(self, first: int, last: int, newest: int, level: float) -> dict[str, Any]:
        table, some = exported(), slice(max(first, last - 4), last + 1)
        part = {name: getattr(table, name) for name in COLUMNS}
        part |= {name: part[name][some] for name in (*NUMBERS, "round", "start", "n")}
        return {**part, "parameters": table.about["parameters"]}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    monkeypatch.setattr("loloha.sender.collector.Collector", lambda url: Shown())
    folder = tmp_path / "tallies"
    folder.mkdir()
    for t, tally in enumerate(RESULT.tallies):
        save(folder, t, tally)
    (tmp_path / "campaign.json").write_bytes(CAMPAIGN.to_json())
    from loloha.cli import table_file

    for name in ("e.csv", "e.parquet"):
        table_file.write(exported().pieces(), tmp_path / name)
    agreed = ["--campaign", str(tmp_path / "campaign.json")]
    return {
        "tallies": [str(folder), *agreed],
        "parquet": [str(tmp_path / "e.parquet")],
        "csv": [str(tmp_path / "e.csv"), *agreed],
        "address": [ADDRESS],
    }


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(["series", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_source_gives_the_same_series(
    places: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in places.values():
        rows = printed(arguments, capsys)
        assert list(rows[0]) == [*COLUMNS, "unbiased", "innovation"]
        found = np.array([row["estimate"] for row in rows]).reshape(12, 4)
        assert found == pytest.approx(SERIES.estimates, abs=1e-9)
        assert [row["label"] for row in rows[:4]] == list(LABELS)
        assert rows[0]["campaign"] == CAMPAIGN.fingerprint
        assert rows[5]["unbiased"] == pytest.approx(RESULT.estimates[1, 1])
        assert rows[0]["innovation"] is None
    later = printed([*places["csv"], "--first", "3", "--filter"], capsys)
    assert {row["round"] for row in later} == set(range(3, 12))
    filtered = loloha.series(dict(enumerate(RESULT.tallies[3:], 3)), smooth=False).estimates
    assert later[-1]["estimate"] == pytest.approx(filtered[-1, -1], abs=1e-9)


def test_alarms_of_a_burst(
    places: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    for rule in (["--expected", "0.01"], ["--fdr", "0.05", "--watch", "b, d"]):
        rows = printed([*places["tallies"], *rule], capsys)
        assert rows[8 * 4 + 3]["alarm"] == 1
        assert not any(row["alarm"] for row in rows[: 8 * 4])
    assert main(["series", *places["tallies"], "--expected", "0.01"]) == 0
    shown = capsys.readouterr()
    assert "grown" in shown.out
    assert "Not what the rounds before" in shown.out
    # Of other values nothing is said.
    rows = printed([*places["tallies"], "--expected", "0.01", "--watch", "b"], capsys)
    assert not any(row["alarm"] for row in rows if row["label"] != "b")


def test_a_file_of_the_series(places: dict[str, list[str]], tmp_path: Path) -> None:
    out = tmp_path / "series.parquet"
    assert main(["series", *places["address"], "--out", str(out), "--fdr", "0.1"]) == 0
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(out)
    assert rows.column_names == [*COLUMNS, "unbiased", "innovation", "alarm"]
    assert rows.num_rows == 48
    with pytest.raises(ParameterError, match="got a series"):
        EstimateTable.read(out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "must be a file or folder that exists"),
        (["nowhere.csv"], "No such file"),
        (["a.csv", "b.csv"], "one address, one file or folders"),
        (["{tallies}", ADDRESS], "one address, one file or folders"),
        (["{csv}"], "--campaign must be given"),
        (["{parquet}", "--watch", "a"], "--watch must come with"),
        (["{parquet}", "--watch", "x,a", "--fdr", "0.1"], "got 1 other;"),
        (["{parquet}", "--fdr", "0.1", "--expected", "1"], "got both"),
        (["{parquet}", "--expected", "5"], "at most the 4 values"),
        (["{parquet}", "--expected", "0"], "must be above 0"),
        (["{parquet}", "--first", "12"], "rounds must reach 12"),
        (["{parquet}", "--level", "1"], "level must be inside"),
        (["{parquet}", "--top", "0"], "top must be"),
        (["{parquet}", "--out", "x.txt"], "--out must end in"),
    ],
)
def test_what_cannot_be_a_series_is_refused(
    places: dict[str, list[str]],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    named = {name: own[0] for name, own in places.items()}
    assert main(["series", *(one.format(**named) for one in arguments)]) in (1, 2)
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_estimates_of_another_campaign_are_refused_from_every_source(
    places: dict[str, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Of the same protocol and labels: only the fingerprint tells them apart.
    other = replace(CAMPAIGN, name="another")
    (tmp_path / "other.json").write_bytes(other.to_json())
    tallies = tmp_path / "named"
    tallies.mkdir()
    for t, tally in enumerate(RESULT.tallies):
        save(tallies, t, tally, campaign=CAMPAIGN.fingerprint)
    for source in (str(tallies), *(places[name][0] for name in ("parquet", "csv", "address"))):
        assert main(["series", source, "--campaign", str(tmp_path / "other.json")]) == 2, source
        assert other.fingerprint in "".join(capsys.readouterr().err.split())
    assert main(["estimate", str(tallies), "--campaign", str(tmp_path / "other.json")]) == 2


def test_the_table_of_a_run_is_a_source_as_csv_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = tmp_path / "t.csv", tmp_path / "out"
    rows = ["user,2026-01-05,2026-01-12,2026-01-19,2026-01-26"]
    rows += [f"{u},0{u % 3},01,00,0{u % 2}" for u in range(300)]
    table.write_text("\n".join(rows) + "\n")
    line = ["run", str(table), "--protocol", "ololoha", "--eps-inf", "2", "--eps-1", "1"]
    assert main([*line, "--seed", "1", "--out", str(out)]) == 0
    capsys.readouterr()
    found = [printed([str(out / f"estimates.{form}")], capsys) for form in ("csv", "parquet")]
    assert found[0] == found[1]
    assert (found[0][0]["start"], found[0][1]["label"]) == ("2026-01-05", "01")
    (out / "metrics.json").write_text("[]")
    assert main(["series", str(out / "estimates.csv")]) == 2


def test_incomplete_files_are_refused(tmp_path: Path) -> None:
    rows = exported().to_frame()
    none = [None] * rows.num_rows
    cases = {
        "every value once": rows.slice(1),
        "they lack level": rows.drop_columns(["level"]),
        "single rounds of one campaign": rows.slice(0, 0),
        "single rounds": rows.drop_columns(["round"]).append_column("round", [none]),
    }
    import pyarrow
    import pyarrow.compute

    for message, table in cases.items():
        with pytest.raises(ParameterError, match=message):
            EstimateTable.from_rows(table)
    twice = pyarrow.concat_tables([rows.slice(0, 4), rows.slice(0, 4), rows.slice(8)])
    with pytest.raises(ParameterError, match="every value once"):
        EstimateTable.from_rows(twice)
    (tmp_path / "x.parquet").write_text("no table")
    with pytest.raises(ParameterError, match="it is no table"):
        EstimateTable.read(tmp_path / "x.parquet")
    few = EstimateTable.from_rows(rows.filter(pyarrow.compute.less(rows["value"], 3)))
    with pytest.raises(ParameterError, match="all 4 values, got 3"):
        loloha.series(few)


def test_the_users_of_sampled_buckets_are_read_off_their_errors() -> None:
    protocol = loloha.DBitFlipPM(k=8, b=8, d=3, eps_inf=2.0)
    values = np.random.default_rng(3).integers(0, 8, (300, 4))
    result = loloha.simulate(protocol, values, rng=4)
    table = result.table()
    found = Observations.of_table(table, protocol)
    assert (found.eligible == result.eligible).all()
    assert loloha.series(found).estimates == pytest.approx(loloha.series(result).estimates)


# -- numbers

HOURS = Campaign(
    name="h",
    protocol=loloha.OneBit(k=12, eps_inf=2.0, eps_1=1.0),
    domain=Range(-6, 18, 12),
    schedule=Schedule(0, 86_400),
)
MEANS = ("mean", "mean_standard_error", "mean_lower", "mean_upper")


@pytest.fixture
def hours(tmp_path: Path) -> tuple[loloha.population.Simulation, list[str]]:
    """Twelve rounds of 900 users, as tallies and as a campaign's file."""
    values = np.random.default_rng(3).integers(0, 7, (900, 1)) + np.arange(12) // 3
    result = loloha.simulate(HOURS.protocol, values, rng=4)
    for t, tally in enumerate(result.tallies):
        save(tmp_path, t, tally)
    (tmp_path / "hours.json").write_bytes(HOURS.to_json())
    return result, [str(tmp_path), "--campaign", str(tmp_path / "hours.json")]


def test_numbers_have_mean_and_quantiles_together_and_by_themselves(
    hours: tuple[Any, list[str]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    result, source = hours
    assert main(["series", *source, "--level", "0.9", "--out", str(tmp_path / "s.parquet")]) == 0
    assert main(["series", *source, "--level", "0.9", "--json"]) == 0
    told = capsys.readouterr().out
    rows = json.loads(told[told.index("[") :])
    written = read_table(tmp_path / "s.parquet").to_pylist()
    assert written == rows
    scale = HOURS.domain.scale
    together = loloha.series(result.tallies).numbers.summary(0.9, scale)
    single = [tally.estimate().numbers.summary(0.9, scale) for tally in result.tallies]
    for row in rows:
        for name, numbers in together.items():
            assert row[name] == pytest.approx(numbers[row["round"]])
            assert row[f"single_{name}"] == pytest.approx(single[row["round"]][name])
    assert main(["series", *source]) == 0
    shown = capsys.readouterr().out
    assert "each estimated from 12 rounds" in shown
    assert "single rounds" in shown
    assert (
        f"{loloha.series(result.tallies).numbers.summary(0.95, scale)['mean'][-1]:.4g} [" in shown
    )


def test_of_numbers_the_mean_is_watched(
    hours: tuple[Any, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    result, source = hours
    estimated = loloha.series(result.tallies)
    alarmed = estimated.alarms(expected=0.5, mean=True)[:, 0]
    assert alarmed.any()
    for watch in ([], ["--watch", "mean"]):
        rows = printed([*source, "--expected", "0.5", *watch], capsys)
        assert [row["mean_alarm"] for row in rows] == alarmed.repeat(11).tolist()
        assert "alarm" not in rows[0]
    innovations = [row["mean_innovation"] for row in rows[11::11]]
    assert innovations == pytest.approx(list(estimated.mean_innovations[1:, 0]))
    rows = printed([*source, "--expected", "0.5", "--watch", f'"{HOURS.bin_labels[3]}"'], capsys)
    assert "mean_alarm" not in rows[0]
    assert {row["label"] for row in rows if row["alarm"]} <= {HOURS.bin_labels[3]}
    assert main(["series", *source, "--expected", "0.5"]) == 0
    shown = capsys.readouterr()
    assert f"alarms: {alarmed.sum()} in 12 rounds" in shown.err
    told = [line for line in shown.out.splitlines() if " mean " in line]
    means = result.observations().numbers.summary(0.95, HOURS.domain.scale)["mean"]
    for row in np.flatnonzero(alarmed):
        assert any(f"{means[row]:.4g}" in line for line in told)
    alone = " ".join(shown.out.split())
    assert "in the units of the domain" in alone[alone.index("Not what") :]
    grown = 2 * estimated.change(11, 0, mean=True).estimates[0]
    assert f"mean grown since round 0: {grown:.4g} ±" in alone


def test_thresholds_of_numbers_are_printed_where_they_are_asked_for(
    hours: tuple[Any, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    source = hours[1]
    for command in ("series", "estimate"):
        assert main([command, *source]) == 0
        alone = capsys.readouterr().out
        assert main([command, *source, "--top", "3"]) == 0
        more = capsys.readouterr().out
        labels = [label for label in HOURS.bin_labels if label in more]
        assert "mean" in alone
        assert len(labels) >= 3
        assert not any(label in alone for label in HOURS.bin_labels)


def test_numbers_of_suppressed_thresholds_have_their_mean(
    hours: tuple[Any, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a collector shows a campaign whose thresholds are drawn by few users each."""
    result, (_, *source) = hours
    shape = result.estimates.shape
    scale = HOURS.domain.scale
    single = [tally.estimate().numbers.summary(0.95, scale) for tally in result.tallies]
    table = EstimateTable(
        campaign=HOURS.fingerprint, round=list(range(12)), value=range(11), label=HOURS.bin_labels,
        level=0.95, n=[900] * 12, about={"parameters": {"protocol": HOURS.protocol.to_dict()}},
        more=round_columns({"mean": [one["mean"] for one in single]}, 11),
        **dict.fromkeys(NUMBERS, np.full(shape, np.nan)),
    )  # fmt: skip
    write_table(table.to_frame(), tmp_path / "shown.parquet")
    path = str(tmp_path / "shown.parquet")
    assert main(["series", path, *source, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 12
    whole = loloha.series(result.tallies).numbers.summary(0.95, scale)
    for row in rows:
        for name in MEANS:
            # The variance of a mean without thresholds is a little larger.
            assert row[name] == pytest.approx(whole[name][row["round"]], abs=0.25)
        assert row["single_mean"] == pytest.approx(single[row["round"]]["mean"])
        assert "quantile_50" not in row
    assert main(["series", path]) == 2
    assert "take the address of the campaign, or tallies" in capsys.readouterr().err


class ShownHours(Shown):
    """Too few users drew each threshold, and too few reported in the last round."""

    def __init__(self, means: list[float]) -> None:
        self.means = means

    def document(self) -> Campaign:
        return HOURS

    def series(self, first: int, last: int, newest: int, level: float) -> dict[str, Any]:
        rounds = list(range(max(first, last - 4), last + 1))
        rows = [None if t == 11 else [None] * 11 for t in rounds]
        return {
            "campaign": HOURS.fingerprint, "value": list(range(11)), "label": HOURS.bin_labels,
            "round": rounds, "start": [f"2026-01-{t + 1:02}T00:00:00Z" for t in rounds],
            "n": [5 if t == 11 else 900 for t in rounds], "level": level,
            "numbers": {"mean": [None if t == 11 else self.means[t] for t in rounds]},
            "parameters": {"protocol": HOURS.protocol.to_dict()}, **dict.fromkeys(NUMBERS, rows),
        }  # fmt: skip


def test_a_collector_says_the_mean_of_suppressed_thresholds(
    hours: tuple[Any, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    result, scale = hours[0], HOURS.domain.scale
    means = [
        float(tally.estimate().numbers.summary(0.95, scale)["mean"]) for tally in result.tallies
    ]
    monkeypatch.setattr("loloha.sender.collector.Collector", lambda url: ShownHours(means))
    assert main(["series", ADDRESS, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["single_mean"] for row in rows] == pytest.approx(means[:11])
    whole = loloha.series(result.tallies[:11]).numbers.summary(0.95, scale)
    assert [row["mean"] for row in rows] == pytest.approx(list(whole["mean"]), abs=0.25)
    assert main(["series", ADDRESS, "--top", "3"]) == 0
    told = capsys.readouterr()
    assert "the mean alone" in told.err
    assert "--top" in told.err
    assert "nan" not in told.out
    assert "each estimated from 11 rounds" in told.out


@pytest.mark.parametrize("hidden", [{11}, {0, 5, 11}])
def test_a_series_ends_with_the_rounds_that_are_shown(
    places: dict[str, list[str]],
    hidden: set[int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """While a round runs the collector shows nothing of it; a gap is estimated."""

    class Running(Shown):
        def series(self, **asked: Any) -> dict[str, Any]:
            part = super().series(**asked)
            for name in NUMBERS:
                rows = zip(part["round"], part[name], strict=True)
                part[name] = [None if t in hidden else row for t, row in rows]
            return part

    monkeypatch.setattr("loloha.sender.collector.Collector", lambda url: Running())
    within = {t for t in range(12) if t not in hidden - {5}}
    assert {row["round"] for row in printed(places["address"], capsys)} == within
    assert main(["series", ADDRESS]) == 0
    told = capsys.readouterr().out
    assert "nan" not in told
    assert f"Round 10, estimated from {12 - len(hidden)} rounds" in told
    assert f"grown since round {min(within)}" in " ".join(told.split())
