"""The dashboard in a real browser: the right numbers in every panel."""

import re
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")


from browsing import Site
from dashboards import (
    K,
    Open,
    drawn,
    empty,
    frequent,
    panels,
    path,
    percent,
    small,
    table,
    tabled,
    timed,
    until,
    walk,
)

pytestmark = [pytest.mark.browser, pytest.mark.long]


def test_campaigns_are_listed_the_newest_first_and_chosen(visit: Open, site: Site) -> None:
    page = visit()
    listed = site.get("/v1/campaigns")["campaigns"]
    shown = page.locator("#campaigns a strong").all_text_contents()
    assert shown == [one["name"] for one in reversed(listed)]
    assert page.locator("#campaigns a[aria-current=page] strong").text_content() == shown[0]
    page.get_by_role("link", name="Pages").click()
    page.wait_for_selector("#map:not([hidden])")
    assert page.locator("h1:visible").text_content() == "Pages"
    assert page.title() == "Pages · loloha collector"
    assert f"campaign={frequent().fingerprint}" in page.url
    page.go_back()
    until(page, "name => document.querySelector('#name').textContent === name", shown[0])


@pytest.mark.parametrize("asked", ["deadbeef", "0" * 64])
def test_an_unknown_campaign_of_the_address_is_reported(
    visit: Open, site: Site, asked: str
) -> None:
    page = visit()
    assert page.locator("#problem").is_hidden()
    page.goto(f"{site.url}/?again#campaign={asked}")
    page.wait_for_selector("#problem:not([hidden])")
    assert "No such campaign here" in page.locator("#problem").text_content()
    page.get_by_role("link", name="Pages").click()
    page.wait_for_selector("#problem", state="hidden")


def test_suppressed_rounds_are_not_called_shown(visit: Open, site: Site) -> None:
    page = visit(frequent())
    rounds = site.get(path(frequent()) + "/rounds?newest=100")["rounds"]
    reported = [one for one in rounds if one["round"] >= 0 and one["n"] > 0]
    suppressed = sum(not one["shown"] for one in reported)
    assert suppressed == 1
    told = page.locator("#tiles > div").first.text_content()
    assert f"in {len(reported)} rounds, 1 suppressed" in told


def test_map_shows_the_series(visit: Open, site: Site) -> None:
    page = visit(frequent())
    series = site.get(path(frequent()) + "/series?newest=100&top=40")
    assert (len(series["value"]), series["round"]) == (40, [0, 1, 3, 4, 5])
    (heat,) = drawn(page, "map-chart")
    # Round 2 has no reports and round 3 too few: columns without colour, not left out.
    assert heat["x"] == [0, 1, 2, 3, 4, 5]
    z = np.array(heat["z"], dtype=float)
    assert z.shape == (40, 6)
    assert np.isnan(z[:, 2:4]).all()
    for column, row in ((0, 0), (1, 1), (4, 3), (5, 4)):
        expected = np.sqrt(np.maximum(0, series["estimate"][row]))
        np.testing.assert_allclose(z[:, column], expected, rtol=1e-12)
    rows = table(page, "map-table")
    assert rows[0] == ["Round", "Begins", "Reports", *series["label"]]
    told = [percent(f) for f in series["estimate"][0]]
    assert rows[1] == ["0", "2026-01-01 00:00 UTC", "3,000", *told]
    assert rows[3][3:] == ["suppressed"] * 40
    most = max(f for row in series["estimate"] if row for f in row)
    assert page.locator("#map-legend .marks span").last.text_content() == f"{100 * most:.1f} %"


def test_map_hides_on_demand_what_noise_could_explain(visit: Open, site: Site) -> None:
    page = visit(frequent())
    page.get_by_label("Hide what noise could explain").check()
    until(page, "location.hash.includes('masked=1')")
    until(page, "document.querySelector('#map-chart').data?.[0].z.flat().includes(null)")
    page.locator("#top").select_option(label="all 60")
    until(page, "document.querySelector('#map-chart').data[0].z.length === 60")
    series = site.get(path(frequent()) + "/series?newest=100&top=1000")
    (heat,) = drawn(page, "map-chart")
    for column, row in ((0, 0), (5, 4)):
        lower = np.array(series["lower"][row])
        shown = np.array([line[column] is not None for line in heat["z"]])
        np.testing.assert_array_equal(shown, lower > 0)


def test_lines_are_means_of_windows_where_that_is_asked_for(visit: Open, site: Site) -> None:
    page = visit(panels(), "&smoothed=false")
    series = site.get(path(panels()) + "/series?newest=100&top=40")
    assert "a device reports in one round of 3" in page.locator("#facts").text_content()
    switch = page.get_by_label("Mean of the last 3 rounds")

    def shows(name: str) -> None:
        lines = [one for one in drawn(page, "lines-chart") if one.get("name")]
        columns = [series["label"].index(line["name"]) for line in lines]
        for line, column in zip(lines, columns, strict=True):
            assert line["y"] == pytest.approx([100 * row[column] for row in series[name]])
        told = table(page, "lines-table")[-1][1::3]
        assert told == [percent(series[name][-1][column]) for column in columns]

    shows("estimate")
    assert "a sample of them" in page.locator("#lines-lead").text_content()
    switch.check()
    until(page, "location.hash.includes('windowed=1')")
    until(page, "document.querySelector('#lines-lead').textContent.includes('in which each')")
    shows("window_estimate")
    assert visit(frequent()).locator("#windows").is_hidden()
    assert visit(panels(), "&windowed=1&smoothed=false").locator("#windowed").is_checked()


def test_numbers_are_lines_of_mean_and_quantiles(visit: Open, site: Site) -> None:
    page = visit(timed(), "&smoothed=false")
    numbers = site.get(path(timed()) + "/series?newest=100&top=40")["numbers"]
    lines = {one["name"]: one for one in drawn(page, "numbers-chart") if one.get("name")}
    names = {"mean": "mean", "median": "quantile_50", "90 % quantile": "quantile_90"}
    assert set(lines) == {*names, "10 % quantile"}
    for shown, name in names.items():
        assert lines[shown]["y"] == pytest.approx(numbers[name])
    told = table(page, "numbers-table")
    assert told[0][:4] == ["Round", "mean", "from", "to"]
    assert float(told[1][1]) == pytest.approx(numbers["mean"][0], rel=1e-3)
    assert "Mean" in page.locator("#tiles").text_content()
    # Shares of users with at least a value are no frequencies of values.
    for panel in ("map", "lines"):
        assert page.locator(f"#{panel}").is_hidden()
    # Some 26 users drew each threshold: no bar is shown, hence no axis.
    assert "are suppressed of 23 thresholds" in page.locator("#round-lead").text_content()
    assert "Each bar" not in page.locator("#round-lead").text_content()
    assert page.locator("#round-chart").is_hidden()
    assert page.locator("[data-picture=round-chart]").is_hidden()
    assert visit(frequent()).locator("#numbers").is_hidden()


def test_numbers_of_rounds_are_estimated_together(visit: Open, site: Site) -> None:
    page = visit(timed())
    until(page, "document.querySelector('#numbers-lead').textContent.includes('Points are')")
    single = site.get(path(timed()) + "/series?newest=100&top=40")["numbers"]
    together = site.get(path(timed()) + "/smoothed?newest=100&top=1")["numbers"]
    bands, lines, points = (drawn(page, "numbers-chart")[at : at + 4] for at in (0, 4, 8))
    assert len(bands) == len(points) == 4
    names = ("mean", "quantile_10", "quantile_50", "quantile_90")
    for name, line, dots in zip(names, lines, points, strict=True):
        assert line["y"] == pytest.approx(together[name])
        assert dots["y"] == pytest.approx(single[name])
    assert together["mean"] != single["mean"]
    told = table(page, "numbers-table")
    assert told[0][:5] == ["Round", "mean", "from", "to", "single round"]
    shown = [float(cell) for cell in told[-1][1:5]]
    ends = [together[f"mean{end}"][-1] for end in ("", "_lower", "_upper")]
    assert shown == pytest.approx([*ends, single["mean"][-1]], rel=1e-3)
    page.locator("#numbers-smoothed").uncheck()
    until(page, "location.hash.includes('smoothed=false')")
    until(page, "document.querySelector('#numbers-chart').data.length === 8")
    assert "single round" not in table(page, "numbers-table")[0]


def test_uneven_panels_are_reported(visit: Open, site: Site) -> None:
    page = visit(panels())
    before = page.locator("#people-lead").text_content()
    assert "panels" not in before

    def uneven(route: Any) -> None:
        answer = route.fetch()
        document = {**answer.json(), "panels": {"text": "panels of rounds 0..2: uneven"}}
        route.fulfill(response=answer, json=document)

    page.route("**/rounds?*", uneven)
    page.reload()
    page.wait_for_selector("body[data-state=ready]")
    assert page.locator("#people-lead").text_content() == (
        f"{before} Sizes of panels of rounds 0..2: uneven."
    )


def test_lines_show_the_most_frequent_values_with_their_intervals(visit: Open, site: Site) -> None:
    page = visit(frequent(), "&smoothed=false")
    series = site.get(path(frequent()) + "/series?newest=100&top=40")
    sums = np.nansum(np.array([row for row in series["estimate"] if row], dtype=float), axis=0)
    best = np.argsort(-sums, kind="stable")[:5]
    traces = drawn(page, "lines-chart")
    bands, lines = traces[:5], traces[5:]
    assert [line["name"] for line in lines] == [series["label"][column] for column in best]
    # Neither colour alone nor dash alone tells them apart.
    assert len({line["line"]["dash"] for line in lines}) == 5
    assert len({line["marker"]["symbol"] for line in lines}) == 5
    estimates = site.get(path(frequent()) + "/rounds/5/estimates")
    for column, line, band in zip(best, lines, bands, strict=True):
        value = series["value"][column]
        assert line["y"][5] == pytest.approx(100 * estimates["estimate"][value])
        assert line["y"][2] is line["y"][3] is None
        ends = {round(y, 9) for x, y in zip(band["x"], band["y"], strict=True) if x == 5}
        assert ends == {
            # Picked by their estimates, they have intervals for all values at once.
            round(100 * series["lower"][-1][column], 9),
            round(100 * series["upper"][-1][column], 9),
        }
    plot = page.locator("#lines-chart .nsewdrag").first
    box = plot.bounding_box()
    for step in (20, 24):
        plot.hover(position={"x": box["width"] - step, "y": 50})
    until(
        page,
        """() => document.querySelector('#lines-chart .hoverlayer')
        .textContent.split('95 %:').length === 6""",
    )
    rows = table(page, "lines-table")
    told = [percent(series[one][-1][best[0]]) for one in ("estimate", "lower", "upper")]
    assert rows[-1][:4] == ["5", *told]


def test_rounds_are_estimated_together_unless_raw_numbers_are_asked_for(
    visit: Open, site: Site
) -> None:
    page = visit(frequent())
    until(page, "document.querySelector('#lines-lead').textContent.startsWith('Points are')")
    bands, lines, points = (drawn(page, "lines-chart")[at : at + 5] for at in (0, 5, 10))
    labels = [line["name"] for line in lines]
    series = site.get(path(frequent()) + "/smoothed?newest=100")
    columns = [series["label"].index(label) for label in labels]
    told = [t for t in range(6) if t not in (2, 3)]
    for name, traces in (("estimate", lines), ("unbiased", points)):
        rows = [row for row in series[name] if row]
        for column, line in zip(columns, traces, strict=True):
            assert [line["y"][t] for t in told] == pytest.approx(
                [100 * row[column] for row in rows]
            )
    assert len(bands) == 5
    row = table(page, "lines-table")[-1]
    shown = [percent(series[name][-1][columns[0]]) for name in ("estimate", "lower", "upper")]
    assert row[1:5] == [*shown, percent(series["unbiased"][-1][columns[0]])]
    link = page.get_by_text("CSV of all values, estimated together").get_attribute("href")
    assert site.read("/" + link).splitlines()[0].endswith(b'"unbiased","innovation"')
    page.locator("#smoothed").uncheck()
    until(page, "location.hash.includes('smoothed=false')")
    until(page, "document.querySelector('#lines-chart').data.length === 10")


@pytest.mark.parametrize("value", [0, K - 1])
def test_alarms_are_announced_listed_and_marked(visit: Open, site: Site, value: int) -> None:
    """Of a value that is drawn anyhow, and of the rarest one, of which the series tells nothing."""
    event = {
        "event": "e", "campaign": frequent().fingerprint, "name": "Pages", "round": 4,
        "start": "2026-01-01T04:00:00Z", "rule": {},
        "alarms": [{"value": value, "label": "a <b>", "unbiased": 0.31, "innovation": -4.75}],
    }  # fmt: skip
    document = {"campaign": "", "rules": [{"meaning": "0.1 expected"}], "alarms": [event]}

    page = visit(frequent())
    assert page.locator("#alarms").is_hidden()
    page.route("**/alarms", lambda route: route.fulfill(json=document))
    page.reload()
    page.wait_for_selector("body[data-state=ready]")
    assert "Round 4 differs" in page.locator("#notices").text_content()
    assert "a <b> (31.0 %, −4.8 standard deviations)" in page.locator("#notices").text_content()
    assert table(page, "alarms-table")[-1][2:] == ["a <b>", "31.00 %", "−4.8"]
    assert "0.1 expected" in page.locator("#alarms-lead").text_content()
    (ring,) = [
        one
        for one in drawn(page, "lines-chart")
        if one.get("marker", {}).get("symbol") == "circle-open"
    ]
    assert ring["x"] == [4]
    names = [one.get("name") for one in drawn(page, "lines-chart") if one.get("name")]
    assert len(names) == (6 if value else 5)
    assert (f"/page/{value:02d}" in names, names[0]) == (True, "/page/00")
    # No column is cut off, however long a label is.
    page.evaluate(
        "document.querySelector('#alarms-table td:nth-child(3)').textContent = 'a'.repeat(48)"
    )
    assert page.evaluate(
        "(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)"
        "(document.querySelector('#alarms-table .scroll'))"
    )


@pytest.mark.parametrize("smoothed", ["true", "false"])
def test_alarms_of_a_mean_are_in_its_units_and_marked(visit: Open, smoothed: str) -> None:
    event = {
        "event": "e", "campaign": timed().fingerprint, "name": "Hours", "round": 2,
        "start": "2026-01-01T02:00:00Z", "rule": {},
        "alarms": [{"value": None, "label": "mean", "unbiased": 11.25, "innovation": 4.75}],
    }  # fmt: skip
    document = {"campaign": "", "rules": [{"meaning": "0.1 expected"}], "alarms": [event]}
    page = visit(timed(), f"&smoothed={smoothed}")
    page.route("**/alarms", lambda route: route.fulfill(json=document))
    page.reload()
    page.wait_for_selector("body[data-state=ready]")
    assert "mean (11.25, +4.8 standard deviations)" in page.locator("#notices").text_content()
    assert table(page, "alarms-table")[-1][2:] == ["mean", "11.25", "+4.8"]
    drawn(page, "numbers-chart")
    until(
        page,
        "document.querySelector('#numbers-chart').data"
        ".some((one) => one.marker?.symbol === 'circle-open' && one.x[0] === 2)",
    )


def test_without_a_smoothed_series_single_rounds_stay(visit: Open) -> None:
    page = visit(frequent(), expected=["Failed to load resource"])
    problem = {"title": "no", "detail": "come back", "status": 503}
    page.route("**/smoothed?*", lambda route: route.fulfill(status=503, json=problem))
    page.reload()
    page.wait_for_selector("body[data-state=ready]")
    said = page.locator("#lines-lead").text_content()
    assert "They could not be estimated together: no: come back" in said
    assert len(drawn(page, "lines-chart")) == 10


def test_any_value_can_be_added_by_its_label_and_removed(visit: Open, site: Site) -> None:
    page = visit(frequent(), "&top=20&smoothed=false")
    drawn(page, "lines-chart")
    find = page.get_by_label("Add a value")
    find.press_sequentially("/page/5")
    until(page, "document.querySelectorAll('#found option').length === 10")
    find.fill("/PAGE/59")
    find.press("Enter")
    page.wait_for_selector("#chosen li:nth-child(6)")
    assert find.input_value() == ""
    until(page, "document.querySelector('#lines-chart').data.length === 12")
    line = drawn(page, "lines-chart")[-1]
    series = site.get(path(frequent()) + "/series?newest=100&value=59")
    told = [None if y is None else y / 100 for y in line["y"]]
    assert [told[t] for t in (0, 1, 4, 5)] == pytest.approx(
        [row[0] for row in series["estimate"] if row]
    )
    for left in range(5, 0, -1):
        page.locator("#chosen button").first.click()
        until(page, "left => document.querySelectorAll('#chosen li').length === left", left)
    assert page.locator("#chosen li").all_text_contents() == ["/page/59"]
    assert "&values=59" in page.url
    find.fill("nonsense")
    find.press("Enter")
    page.get_by_text("No value is labelled “nonsense”.").wait_for()
    page.get_by_role("button", name="Most frequent").click()
    page.wait_for_selector("#chosen li:nth-child(5)")


def test_a_cell_of_the_map_leads_to_its_round_and_value(visit: Open) -> None:
    page = visit(frequent())
    drawn(page, "map-chart")
    box = page.locator("#map-chart .nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 12, box["y"] + box["height"] - 4)
    page.wait_for_selector("#map-chart .hoverlayer text")
    assert "round 0, 2026-01-01 00:00 UTC" in page.locator("#map-chart .hoverlayer").text_content()
    page.mouse.click(box["x"] + box["width"] / 12, box["y"] + box["height"] - 4)
    page.wait_for_selector("#chosen li:nth-child(6)")
    assert page.locator("#which").input_value() == "0"


def test_round_shows_its_estimates_and_their_projection(visit: Open, site: Site) -> None:
    page = visit(frequent())
    estimates = site.get(path(frequent()) + "/rounds/5/estimates?projected=true")
    (bars,) = drawn(page, "round-chart")
    np.testing.assert_allclose(bars["x"], 100 * np.array(estimates["estimate"]))
    np.testing.assert_allclose(
        bars["error_x"]["array"],
        100 * (np.array(estimates["upper"]) - estimates["estimate"]),
    )
    rows = table(page, "round-table")
    columns = ("estimate", "lower", "upper")
    expected = [
        [label, *(percent(estimates[one][v]) for one in columns)]
        for v, label in enumerate(estimates["label"])
    ]
    assert rows[1:] == expected
    page.get_by_label("Project to the simplex").check()
    until(page, "document.querySelector('#round-chart').data.length === 2")
    points = drawn(page, "round-chart")[1]
    np.testing.assert_allclose(points["x"], 100 * np.array(estimates["projected"]))
    assert sum(points["x"]) == pytest.approx(100)
    assert page.get_by_text("no longer unbiased").is_visible()
    assert [row[-1] for row in table(page, "round-table")[1:]] == [
        percent(f) for f in estimates["projected"]
    ]


def test_rounds_are_walked_through_and_ordered(visit: Open, site: Site) -> None:
    page = visit(frequent(), "&order=frequency&count=20")
    estimates = site.get(path(frequent()) + "/rounds/5/estimates")
    order = np.argsort(-np.array(estimates["estimate"]), kind="stable")[:20]
    (bars,) = drawn(page, "round-chart")
    np.testing.assert_allclose(bars["x"], 100 * np.array(estimates["estimate"])[order])
    assert page.get_by_role("button", name="Round after").is_disabled()
    page.get_by_role("button", name="Round before").click()
    page.get_by_text(re.compile("^Round 4, from 2026-01-01 04:00 UTC, open: 3,000")).wait_for()
    page.get_by_role("button", name="Round before").click()
    # Suppressed: said, and nothing shown or exported.
    page.locator("#round-lead", has_text="50 reports, fewer than the minimum cohort").wait_for()
    assert not page.locator("#round-chart").is_visible()
    assert not page.locator("#csv").is_visible()
    page.locator("#which").select_option("0")
    drawn(page, "round-chart")
    assert page.get_by_role("button", name="Round before").is_disabled()
    assert "round=0" in page.url


def test_exports_are_what_the_api_gives(visit: Open, site: Site) -> None:
    page = visit(frequent(), "&projected=1")
    for name, format in (("CSV", "csv"), ("Parquet", "parquet"), ("JSON", "json")):
        link = page.get_by_role("link", name=name, exact=True)
        with page.expect_download() as waiting:
            link.click()
        download = waiting.value
        assert download.suggested_filename == f"round-5.{format}"
        asked = f"{path(frequent())}/rounds/5/estimates?format={format}&projected=true"
        assert download.path().read_bytes() == site.read(asked)
    drawn(page, "round-chart")
    with page.expect_download() as waiting:
        page.locator("[data-picture=round-chart]").click()
    assert waiting.value.path().read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_participation_counts_what_came_and_what_was_refused(visit: Open, site: Site) -> None:
    page = visit(frequent())
    rounds = site.get(path(frequent()) + "/rounds")["rounds"]
    shown, held = drawn(page, "people-chart")
    assert dict(zip(shown["x"], shown["y"], strict=True)) == {
        one["round"]: one["n"] for one in rounds if one["shown"]
    }
    assert (held["x"], held["y"]) == ([3], [50])
    rows = table(page, "people-table")
    assert [row[3] for row in rows[1:]] == [f"{one['n']:,}" for one in reversed(rounds)]
    assert "Nothing was refused" in page.locator("#people-lead").text_content()

    # Refused: a round that has not begun; and the same again, twice, of one reporter.
    site.send(small(), walk(5, 3, 1, seed=9), seed=10)
    site.send(small(), walk(5, 3, 1, seed=9), seed=11)
    body = b'{"version":1,"campaign":"%s","round":9,"reporter":"%s","key":"01","y":"00"}' % (
        small().fingerprint.encode(),
        b"0" * 32,
    )
    assert site.post(path(small()) + "/reports", body, "application/x-ndjson")["refused"]
    page = visit(small())
    (refusals,) = drawn(page, "refused-chart")
    found = site.get(path(small()) + "/rounds")["rounds"]
    (reason,) = {name for one in found for name in one["refused"]}
    assert refusals["name"] == reason
    assert sum(refusals["y"]) == 1
    header, *rows = table(page, "people-table")
    column = header.index(f"Refused: {reason}")
    assert sum(int(row[column]) for row in rows) == 1


def test_privacy_is_shown_as_in_the_api(visit: Open, site: Site) -> None:
    page = visit(frequent())
    privacy = site.get(path(frequent()) + "/privacy")
    tiles = dict(
        zip(
            page.locator("#privacy-tiles dt").all_text_contents(),
            page.locator("#privacy-tiles dd strong").all_text_contents(),
            strict=True,
        )
    )
    assert [tiles[one] for one in ("eps_1", "eps_inf", "cap")] == [
        f"{privacy[one]:g}" for one in ("eps_1", "eps_inf", "cap")
    ]
    assert tiles["Minimum cohort"] == "100"
    (curve,) = drawn(page, "privacy-chart")
    assert curve["x"] == [one["reports"] for one in privacy["growth"]]
    assert curve["y"] == [one["eps"] for one in privacy["growth"]]
    assert float(tiles["Any one round"]) == pytest.approx(privacy["windows"][0]["eps"], rel=1e-3)
    shows = privacy["change"][1]
    # A bound is called one, and never rounded down.
    assert tiles["A change shows"].startswith("≤ ") is shows["bound"]
    assert float(tiles["A change shows"].removeprefix("≤ ")) == pytest.approx(
        shows["auc"] + 5e-4 * shows["bound"], abs=5.1e-4
    )
    assert page.locator("#protected li").all_text_contents() == privacy["protected"]
    assert page.locator("#leaks li").all_text_contents() == privacy["leaks"]
    page.get_by_text("The whole statement, to quote").click()
    assert page.locator("#statement").text_content() == privacy["text"]
    cells = {row[0]: row[1] for row in table(page, "parameters")[1:]}
    assert cells.keys() == {n for n, p in privacy["parameters"].items() if p is not None}
    for name, told in cells.items():
        assert float(told) == privacy["parameters"][name]


def test_the_price_of_one_table_for_life_stands_beside_its_cap(visit: Open, site: Site) -> None:
    page = visit(tabled())
    privacy = site.get(path(tabled()) + "/privacy")
    names = page.locator("#privacy-tiles dt").all_text_contents()
    told = page.locator("#privacy-tiles dd strong").all_text_contents()
    at = names.index("cap")
    assert names[at + 1] == "One value exchanged"
    assert float(told[at]) == pytest.approx(privacy["cap"], rel=1e-3)
    assert float(told[at + 1]) == pytest.approx(privacy["exchanged"], rel=1e-3)
    assert privacy["exchanged"] > privacy["eps_inf"]
    assert "the price of that cap" in page.locator("#privacy-tiles").text_content()
    assert any("price of the smaller cap" in one for one in privacy["leaks"])
    usual = visit(frequent()).locator("#privacy-tiles dt").all_text_contents()
    assert "One value exchanged" not in usual


def test_without_a_bound_none_is_promised(visit: Open) -> None:
    page = visit(empty())
    tiles = page.locator("#privacy-tiles").text_content()
    assert "eps_infnonenothing is memoised: no bound holds for ever" in tiles
    assert "capnoneevery report spends again" in tiles
