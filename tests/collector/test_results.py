"""Estimates, series and privacy over HTTP, and that they say the same in every form."""

import csv
import io
import json
import math
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import pytest

import formulas
import loloha
from collecting import HOUR, START, Clock, campaign, clients, created, expected, messages
from loloha.campaign import Labels, Range
from uploading import EVERYTHING, fill, send

# -- results


def test_estimates_in_every_form_say_the_same(serve: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one, terms=EVERYTHING)
    estimate = expected(one, fill(client, path, one, 50), 0).estimate()
    address = f"{path}/rounds/0/estimates"
    query = {"level": 0.9, "projected": True}
    shown = client.get(address, params=query).json()
    lower, upper = estimate.interval(0.9)
    assert shown["label"] == one.labels
    assert shown["estimate"] == estimate.frequencies.tolist()
    assert shown["standard_error"] == estimate.standard_errors.tolist()
    assert shown["lower"] == lower.tolist()
    assert shown["upper"] == upper.tolist()
    assert sum(shown["projected"]) == pytest.approx(1)
    low, high = estimate.interval(0.9, simultaneous=True)
    most = int(estimate.frequencies.argmax())
    errors = np.maximum(high - estimate.frequencies, estimate.frequencies - low)
    assert shown["simultaneous_error"] == pytest.approx(errors.max())
    assert shown["largest"] == {
        "value": most, "label": one.labels[most], "estimate": estimate.frequencies[most],
        "lower": low[most], "upper": high[most],
    }  # fmt: skip
    assert shown["suppressed"] == 0
    assert shown["value"] == list(range(one.protocol.bins))
    assert shown["bins"] == one.protocol.bins
    assert shown["clear"] == estimate.significant(0.9).sum()
    answer = client.get(address, params={**query, "format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["label"] for row in rows] == one.labels
    assert [float(row["estimate"]) for row in rows] == shown["estimate"]
    assert [float(row["projected"]) for row in rows] == shown["projected"]
    answer = client.get(address, params={**query, "format": "parquet"})
    table = parquet.read_table(io.BytesIO(answer.content))
    assert table["estimate"].to_pylist() == shown["estimate"]
    assert table["upper"].to_pylist() == shown["upper"]
    about = json.loads(table.schema.metadata[b"loloha"])
    assert about["parameters"] == shown["parameters"]
    assert set(table["campaign"].to_pylist()) == {one.fingerprint}


def test_the_top_values_are_a_part_of_all_of_them(serve: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one, terms=EVERYTHING)
    fill(client, path, one, 50)
    address = f"{path}/rounds/0/estimates"
    query = {"projected": True}
    whole = client.get(address, params=query).json()
    shown = client.get(address, params={**query, "top": 2}).json()
    best = sorted(sorted(range(one.protocol.bins), key=lambda v: -whole["estimate"][v])[:2])
    assert shown["value"] == best
    # Picked by their estimates, they have intervals for all values.
    assert (np.array(shown.pop("lower")) <= np.array(whole["lower"])[best]).all()
    assert (np.array(shown.pop("upper")) > np.array(whole["upper"])[best]).all()
    for column in ("label", "estimate", "standard_error", "projected"):
        assert shown.pop(column) == [whole[column][v] for v in best]
    for about in ("bins", "clear", "simultaneous_error", "n"):
        assert shown[about] == whole[about]
    answer = client.get(address, params={"top": 2, "format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [int(row["value"]) for row in rows] == best
    assert client.get(address, params={**query, "top": 1000}).json() == whole


@pytest.mark.long
def test_a_domain_too_large_to_show_whole_shows_its_top(serve: Any) -> None:
    client = serve(apart=True)
    k = (1 << 21) + 1
    one = campaign(
        protocol=loloha.BiLOLOHA(k=k, eps_inf=2.0, eps_1=1.0), domain=Range(0.0, float(k), k)
    )
    path = created(client, one, terms=EVERYTHING)
    fill(client, path, one, 3)
    address = f"{path}/rounds/0/estimates"
    refused = client.get(address)
    assert refused.status_code == 413
    assert "top=1000" in refused.json()["detail"]
    shown = client.get(address, params={"top": 10}).json()
    assert (shown["n"], len(shown["value"]), shown["bins"]) == (3, 10, k)


def test_realised_parameters_go_out_with_every_estimate(serve: Any) -> None:
    # PAINS 16.
    client, one = serve(), campaign()
    path = created(client, one, terms=EVERYTHING)
    fill(client, path, one, 5)
    realised = one.protocol.numbers
    for address in ("rounds/0/estimates", "series", "privacy"):
        told = client.get(f"{path}/{address}").json()["parameters"]
        assert realised.items() <= told.items()


def test_estimates_below_the_minimum_cohort_are_suppressed(serve: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one, terms={"minimum_cohort": 10})
    address = f"{path}/rounds/0/estimates"
    assert client.get(address).json()["suppressed_because"] == "no_reports"
    some = fill(client, path, one, 9)
    shown = client.get(address).json()
    # By its name of 0.2 too.
    assert (shown["suppressed_because"], shown["withheld"]) == ("minimum_cohort",) * 2
    assert "estimate" not in shown
    assert client.get(address, params={"format": "csv"}).status_code == 409
    series = client.get(f"{path}/series").json()
    assert (series["n"], series["estimate"]) == ([9], [None])
    assert not client.get(f"{path}/rounds").json()["rounds"][0]["shown"]
    send(client, path, messages(one, clients(one, 10), 0)[9])
    assert len(some) == 9
    assert client.get(address).json()["suppressed_because"] is None
    assert len(client.get(f"{path}/series").json()["estimate"][0]) == 5


def test_series_over_rounds_for_chosen_and_for_top_values(serve: Any, clock: Clock) -> None:
    client, one = serve(), campaign()
    path = created(client, one, terms={**EVERYTHING, "late_seconds": 10 * HOUR})
    clock.now = START + 3 * HOUR
    tallies = [expected(one, fill(client, path, one, 20 + t, t), t) for t in range(3)]
    means = np.mean([tally.estimate().frequencies for tally in tallies], axis=0)
    series = client.get(f"{path}/series").json()
    assert series["round"] == [0, 1, 2]
    assert series["n"] == [20, 21, 22]
    assert series["label"] == one.labels
    for shown, tally in zip(series["estimate"], tallies, strict=True):
        assert shown == tally.estimate().frequencies.tolist()
    chosen = client.get(f"{path}/series", params={"value": [3, 1]}).json()
    assert chosen["label"] == ["d", "b"]
    assert chosen["estimate"][1] == tallies[1].estimate().frequencies[[3, 1]].tolist()
    for name, ends in zip(("lower", "upper"), tallies[1].estimate().interval(), strict=True):
        assert chosen[name][1] == ends[[3, 1]].tolist()
    top = client.get(f"{path}/series", params={"top": 2}).json()
    assert top["value"] == sorted(np.argsort(-means)[:2].tolist())
    assert client.get(f"{path}/series", params={"newest": 1}).json()["round"] == [2]
    assert client.get(f"{path}/series", params={"first": 1, "last": 1}).json()["round"] == [1]
    assert client.get(f"{path}/series", params={"value": 5}).status_code == 422
    text = client.get(f"{path}/series", params={"format": "csv", "level": 0.9})
    assert text.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(text.text)))
    assert len(rows) == 3 * 5
    assert rows[6]["label"] == one.labels[1]
    assert rows[6]["start"] == series["start"][1]
    assert (rows[6]["campaign"], rows[6]["level"]) == (one.fingerprint, "0.9")
    middle = tallies[1].estimate()
    assert float(rows[6]["estimate"]) == middle.frequencies[1]
    assert float(rows[6]["lower"]) == pytest.approx(middle.interval(0.9)[0][1], rel=1e-12)
    saved = client.get(f"{path}/series", params={"format": "parquet", "top": 2}).content
    assert pyarrow.parquet.read_table(io.BytesIO(saved)).num_rows == 3 * 2


def test_values_picked_by_their_estimates_have_intervals_for_all_values(serve: Any) -> None:
    """In both answers; chosen values, and all of them, have those of one value."""
    client, one = serve(), campaign()
    path = created(client, one, terms=EVERYTHING)
    estimate = expected(one, fill(client, path, one, 50), 0).estimate()
    for query, simultaneous in (("top=2", True), ("top=5", False), ("", False)):
        low, high = estimate.interval(simultaneous=simultaneous)
        shown = client.get(f"{path}/rounds/0/estimates?{query}").json()
        series = client.get(f"{path}/series?{query}").json()
        for lower, upper, values in (
            (shown["lower"], shown["upper"], shown["value"]),
            (series["lower"][0], series["upper"][0], series["value"]),
        ):
            assert lower == pytest.approx(low[values].tolist())
            assert upper == pytest.approx(high[values].tolist())
    low, high = estimate.interval()
    series = client.get(f"{path}/series?value=0&value=3").json()
    assert series["upper"][0] == pytest.approx(high[[0, 3]].tolist())


def test_buckets_without_any_user_are_null(serve: Any) -> None:
    protocol = loloha.DBitFlipPM(k=5, eps_inf=2.0, b=5, d=1)
    client, one = serve(), campaign(protocol=protocol)
    path = created(client, one, terms=EVERYTHING)
    fill(client, path, one, 1)
    shown = client.get(f"{path}/rounds/0/estimates", params={"projected": True}).json()
    assert shown["estimate"].count(None) == 4
    # The known one would get the shares of all others.
    assert shown["projected"].count(None) == 5
    assert client.get(f"{path}/series?top=2").status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "level=0.1", "level=1", "level=nan", "level=x", "format=xml", "projected=maybe",
        "level=0.99999999999999999",
    ],
)  # fmt: skip
def test_bad_queries_are_refused(serve: Any, query: str) -> None:
    client = serve()
    path = created(client, campaign())
    answer = client.get(f"{path}/rounds/0/estimates?{query}")
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"{query.partition('=')[0]} must be ")


def test_rounds_without_end_are_not_found(serve: Any) -> None:
    client, one = serve(), campaign()
    path, last = created(client, one), one.schedule.last
    for round, status in (
        ((1 << 53) - 1, 404), (1 << 53, 422), (-1, 422), (last, 200), (last + 1, 404),
    ):  # fmt: skip
        assert client.get(f"{path}/rounds/{round}/estimates").status_code == status


def test_privacy_is_explained_in_plain_words(serve: Any) -> None:
    client, one = serve(), campaign()
    shown = client.get(f"{created(client, one)}/privacy").json()
    found = loloha.privacy.explain(one.protocol)
    assert shown["text"] == str(found)
    assert shown["cap"] == one.protocol.cap
    assert shown["growth"][0] == {"reports": 1, "eps": found.growth[0][1]}
    assert shown["leaks"] == list(found.leaks)


@pytest.mark.parametrize("g", [2, 3])
def test_each_number_of_the_privacy_panel_is_that_of_the_maths(serve: Any, g: int) -> None:
    """All of /privacy, computed once more; the panel shows these (test_dashboard_browser.py)."""
    eps_inf, eps_1, k = 2.0, 1.0, 5
    protocol = loloha.OLOLOHA(k=k, g=g, eps_inf=eps_inf, eps_1=eps_1)
    client = serve()
    shown = client.get(f"{created(client, campaign(protocol=protocol))}/privacy").json()
    row = {
        "protocol": "ololoha", "g": g, "eps_inf": eps_inf, "alpha": eps_1 / eps_inf,
        "calibration": "tight", "hash": "linear",
    }  # fmt: skip
    (p1, q1), (p2, q2) = formulas.symbol_rounds(eps_inf, eps_1, g, published=False)
    assert [one["reports"] for one in shown["growth"]] == [*range(1, 21), 30, 50, 100]
    for one in shown["growth"]:
        wanted = formulas.loss_after("ololoha", eps_inf, eps_1, one["reports"], g)
        assert one["eps"] == pytest.approx(wanted, abs=1e-9)
    once = formulas.round_loss(row, k)
    assert shown["windows"] == [
        {"rounds": w, "eps": pytest.approx(w * once, abs=1e-9)} for w in (1, 2, 10)
    ]
    assert (shown["eps_1"], shown["eps_inf"], shown["cap"]) == (eps_1, eps_inf, g * eps_inf)
    assert shown["exchanged"] == eps_inf
    for one in shown["change"]:
        limit = formulas.area_in_the_limit(row, k)
        many = math.comb(one["reports"] + g - 1, g - 1) > 200
        wanted = limit if many else formulas.area_of_reports(row, k, one["reports"])
        assert one["auc"] == pytest.approx(wanted, abs=1e-6 + 4 * one["error"])
    m = next(m for m in range(9) if g**m >= k)
    same_key = formulas.area_of_one_report(row, k, users=True)
    assert shown["link"]["auc"] == pytest.approx(1 - (1 - same_key) / (g**m - 1), abs=1e-9)
    p_star, q_star = formulas.support(row, k)
    assert shown["parameters"] == pytest.approx({
        "g": g, "p1": p1, "q1": q1, "p2": p2, "q2": q2, "p_star": p_star, "q_star": q_star,
        "eps_first": eps_1, "eps_memo": eps_inf,
    }, abs=1e-9)  # fmt: skip


def test_polls_are_answered_304_while_nothing_changes(serve: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one, terms=EVERYTHING)
    fill(client, path, one, 5)
    for address in (
        "/v1/campaigns", path, f"{path}/rounds", f"{path}/rounds/0/estimates", f"{path}/series",
        f"{path}/privacy",
    ):  # fmt: skip
        tag = client.get(address).headers["etag"]
        for known in (tag, f'"x", W/{tag}'):
            answer = client.get(address, headers={"if-none-match": known})
            assert (answer.status_code, answer.content) == (304, b"")
            assert answer.headers["etag"] == tag
        assert client.get(address, headers={"if-none-match": '"x"'}).status_code == 200
    before = client.get(f"{path}/series").headers["etag"]
    send(client, path, messages(one, clients(one, 1, seed=77), 0)[0])
    assert client.get(f"{path}/series", headers={"if-none-match": before}).status_code == 200


def test_a_domain_of_1e5_labels_is_shown(serve: Any) -> None:
    k = 100_000
    wide = campaign(protocol=loloha.BiLOLOHA(k=k, eps_inf=2.0, eps_1=1.0), domain=Range(0, k, k))
    client = serve()
    path = created(client, wide, terms=EVERYTHING)
    fill(client, path, wide, 3)
    assert len(client.get(f"{path}/rounds/0/estimates").json()["estimate"]) == k
    assert len(client.get(f"{path}/series").json()["label"]) == k


def test_a_domain_too_wide_to_show_still_has_its_top(serve: Any) -> None:
    k = (1 << 21) + 1
    wide = campaign(protocol=loloha.BiLOLOHA(k=k, eps_inf=2.0, eps_1=1.0), domain=Range(0, k, k))
    client = serve()
    path = created(client, wide, terms=EVERYTHING)
    assert client.get(f"{path}/rounds/0/estimates").status_code == 413
    shown = client.get(f"{path}/series", params={"value": [0, k - 1]}).json()
    assert shown["label"] == ["[0, 1)", f"[{k - 1}, {k}]"]


def test_a_value_that_few_users_sampled_leaves_in_no_form(serve: Any) -> None:
    """The minimum cohort of a sampled bucket counts who sampled it: 10 of 40 of each in four."""
    protocol = loloha.DBitFlipPM(k=5, eps_inf=2.0, b=5, d=1)
    client, one = serve(), campaign(protocol=protocol)
    path = created(client, one, terms={"minimum_cohort": 10})
    estimate = expected(one, fill(client, path, one, 40), 0).estimate()
    few = (estimate.eligible < 10).tolist()
    assert any(few)
    assert not all(few)
    address = f"{path}/rounds/0/estimates"
    shown = client.get(address, params={"projected": True}).json()
    assert shown["projected"] == [None] * 5
    columns = ("estimate", "standard_error", "lower", "upper")
    for column in columns:
        assert [cell is None for cell in shown[column]] == few, column
    assert shown["suppressed"] == sum(few)
    assert not few[shown["largest"]["value"]]
    for query in ({}, {"top": 3}, {"top": 5, "projected": True}):
        answer = client.get(address, params={"format": "csv", **query})
        for row in csv.DictReader(io.StringIO(answer.text)):
            cells = {row[name] for name in ("estimate", "standard_error", "lower", "upper")}
            assert (cells == {""}) == few[int(row["value"])]
        answer = client.get(address, params={"format": "parquet", **query})
        table = parquet.read_table(io.BytesIO(answer.content))
        hidden = [few[value] for value in table["value"].to_pylist()]
        assert [cell is None for cell in table["upper"].to_pylist()] == hidden
    series = client.get(f"{path}/series").json()
    for column in columns:
        assert [cell is None for cell in series[column][0]] == few, column
    answer = client.get(f"{path}/series", params={"format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [{row[name] for name in columns[:4]} == {""} for row in rows] == few


def test_a_round_without_eligible_users_has_no_numbers(serve: Any) -> None:
    protocol = loloha.DBitFlipPM(k=50, eps_inf=2.0, b=50, d=1)
    client, one = serve(), campaign(protocol=protocol, domain=Range(0.0, 50.0, 50))
    path = created(client, one, terms={"minimum_cohort": 30})
    fill(client, path, one, 40)
    shown = client.get(f"{path}/rounds/0/estimates").json()
    assert (shown["suppressed"], shown["clear"]) == (50, 0)
    assert set(shown["estimate"]) == {None}
    assert "largest" not in shown
    assert client.get(f"{path}/series", params={"top": 2}).json()["estimate"] == [[None, None]]


def test_rounds_of_which_no_value_is_shown_first_and_last_are_null(
    serve: Any, clock: Clock
) -> None:
    """Rounds together begin and end with those that say something; none takes another's row."""
    protocol = loloha.DBitFlipPM(k=5, eps_inf=2.0, b=5, d=1)
    client, one = serve(), campaign(protocol=protocol)
    path = created(client, one, terms={"minimum_cohort": 20})
    for round, users in enumerate((30, 200, 250, 30)):
        clock.now = START + round * HOUR + 60
        fill(client, path, one, users, round)
    single = client.get(f"{path}/series").json()
    together = client.get(f"{path}/smoothed").json()
    assert together["round"] == [0, 1, 2, 3]
    for row in (1, 2):
        assert together["unbiased"][row] == pytest.approx(single["estimate"][row])
        assert sum(together["estimate"][row]) == pytest.approx(1)
    for row in (0, 3):
        assert single["estimate"][row] == [None] * 5
        assert not any(np.ravel([together[name][row] for name in ("estimate", "upper")]))
    assert together["n"] == [30, 200, 250, 30]


# -- numbers


def numbers(target: str = "distribution") -> Any:
    protocol = loloha.OneBit(k=12, eps_inf=2.0, eps_1=1.0, target=target)
    return campaign(protocol=protocol, domain=Range(-6, 18, 12))


@pytest.mark.parametrize("target", ["distribution", "mean"])
def test_numbers_have_mean_and_quantiles_in_their_own_units(serve: Any, target: str) -> None:
    client, one = serve(), numbers(target)
    # Fewer users than that draw any threshold: what is said of them alone is suppressed.
    path = created(client, one, terms={"minimum_cohort": 40})
    tally = expected(one, fill(client, path, one, 60), 0)
    estimate = tally.estimate()
    shown = client.get(f"{path}/rounds/0/estimates", params={"level": 0.9}).json()
    found = {name: row[0] for name, row in shown["numbers"].items()}
    step = 24 / 12
    assert found["mean"] == pytest.approx(-6 + step * (estimate.mean + 0.5))
    assert found["mean_standard_error"] == pytest.approx(step * estimate.mean_error)
    ends = found["mean_lower"], found["mean_upper"]
    assert ends == pytest.approx([-6 + step * (end + 0.5) for end in estimate.mean_interval(0.9)])
    if target == "mean":
        assert set(shown["numbers"]) == {"mean", "mean_standard_error", "mean_lower", "mean_upper"}
    else:
        assert shown["suppressed"] == one.protocol.bins
        for level in (0.1, 0.5, 0.9):
            name = f"quantile_{100 * level:.0f}"
            assert found[name] == -6 + step * (estimate.quantile(level) + 0.5)
            low, high = estimate.quantile_interval(level, 0.9)
            # From the lower end of the first part to the upper end of the last one.
            assert found[f"{name}_lower"] == -6 + step * low
            assert found[f"{name}_upper"] == -6 + step * (high + 1)
    series = client.get(f"{path}/series", params={"level": 0.9}).json()
    assert series["numbers"]["mean"] == [found["mean"]]
    assert list(series["numbers"]) == list(shown["numbers"])
    # Shares of single thresholds stay suppressed, mean and quantiles are of all reports together.
    answer = client.get(f"{path}/smoothed", params={"level": 0.9})
    assert answer.status_code == 200
    smoothed = answer.json()
    for name in ("estimate", "unbiased", "innovation"):
        known = [one is not None for one in smoothed[name][0]]
        assert not any(known) if target == "distribution" or name == "innovation" else all(known)
    whole = loloha.series([tally], level=0.9)
    summary = whole.numbers.summary(0.9, one.domain.scale)
    assert list(smoothed["numbers"]) == list(summary) == list(shown["numbers"])
    for name, (number,) in summary.items():
        assert smoothed["numbers"][name] == [pytest.approx(float(number))]


def test_only_where_numbers_are_asked_for(serve: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one, terms=EVERYTHING)
    fill(client, path, one, 5)
    assert "numbers" not in client.get(f"{path}/rounds/0/estimates").json()
    assert "numbers" not in client.get(f"{path}/series").json()
    assert "numbers" not in client.get(f"{path}/smoothed").json()
    labels = campaign(protocol=numbers().protocol, domain=Labels(tuple("abcdefghijkl")))
    path = created(client, labels, terms=EVERYTHING)
    estimate = expected(labels, fill(client, path, labels, 9), 0).estimate()
    shown = client.get(f"{path}/rounds/0/estimates").json()
    # Ordered labels without numbers: steps.
    assert shown["numbers"]["quantile_50"] == [estimate.median]
    assert shown["label"][0] == "b … l"
