"""The dashboard in a real browser: right numbers, clear words, by keyboard, in both themes."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")

import loloha
from browsing import PATIENCE, Site, browser, listening
from collecting import HOUR, START, Clock, campaign
from loloha.rules.campaign import Campaign, Labels

pytestmark = pytest.mark.browser

Open = Callable[..., Any]

WINDOW = {"width": 1280, "height": 900}
K, TAU, N = 60, 6, 3000
HOSTILE = (
    '<img src=x onerror="document.title=1">',
    '<a href="http://example.com/">b</a>',
    "a&lt;b",
)


def frequent() -> Campaign:
    return campaign(
        "Pages",
        protocol=loloha.OLOLOHA(k=K, eps_inf=5.0, eps_1=4.0),
        domain=Labels(tuple(f"/page/{v:02d}" for v in range(K))),
    )


def hostile() -> Campaign:
    labels = (*HOSTILE, "plain")
    return campaign(
        "<b>bold</b>",
        protocol=loloha.RAPPOR(k=4, eps_inf=5.0, eps_1=4.0),
        domain=Labels(labels),
    )


def noisy() -> Campaign:
    return campaign(
        "Pilot",
        protocol=loloha.BiLOLOHA(k=200, eps_inf=1.0, eps_1=0.5),
        domain=Labels(tuple(range(200))),
    )


def small() -> Campaign:
    return campaign("Small")


def empty() -> Campaign:
    return campaign("Empty", protocol=loloha.GRR(k=5, eps=1.0))


def tabled() -> Any:
    joint = loloha.OLOLOHA(k=5, eps_inf=2.0, eps_1=1.0, g=4, hash="prime", memo="joint")
    return campaign("One table for life", protocol=joint)


def walk(k: int, n: int, tau: int, seed: int) -> Any:
    """Values of n users, the low ones more frequent; each changes now and then."""
    rng = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, k + 1)
    drawn = rng.choice(k, size=(n, tau), p=shares / shares.sum())
    kept = np.maximum.accumulate(np.where(rng.random((n, tau)) < 0.2, np.arange(tau), 0), axis=1)
    return np.take_along_axis(drawn, kept, axis=1)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    clock = Clock(START + (TAU - 1) * HOUR + 60)
    with listening(tmp_path_factory.mktemp("store"), clock) as site:
        for made in (frequent(), hostile(), noisy(), small(), empty(), tabled()):
            weak = not made.protocol.longitudinal
            site.create(made, accept_weak_privacy=weak)
        values = walk(K, N, TAU, seed=1)
        values[:2950, 3] = -1  # A round below the minimum cohort ...
        values[:, 2] = -1  # ... and one without any report.
        site.send(frequent(), values, seed=2)
        site.send(hostile(), walk(4, 500, 2, seed=3), seed=4)
        site.send(noisy(), walk(200, 150, 2, seed=5), seed=6)
        site.send(small(), walk(5, 40, 2, seed=7), seed=8)
        yield site


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def usual(chromium: Any) -> Any:
    """What most pages share, so that the charts' library is fetched and compiled once."""
    context = chromium.new_context(viewport=WINDOW)
    context.set_default_timeout(PATIENCE)
    return context


@pytest.fixture
def visit(chromium: Any, usual: Any, site: Site) -> Iterator[Open]:
    """Open a page; in the end nothing may have gone wrong in it, or left this collector."""
    opened: list[Any] = []
    wrong: list[str] = []
    expected: list[str] = []

    def start(
        made: Campaign | None = None, more: str = "", *, at: Site = site, **options: Any
    ) -> Any:
        expected.extend(options.pop("expected", []))
        context = usual
        if options:
            context = chromium.new_context(**{"viewport": WINDOW, **options})
            context.set_default_timeout(PATIENCE)
        page = context.new_page()
        opened.append(context if options else page)

        def note_request(request: Any) -> None:
            if not request.url.startswith((at.url + "/", "data:", f"blob:{at.url}/")):
                wrong.append(f"asked another host: {request.url}")

        page.on("request", note_request)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "console",
            lambda said: (
                wrong.append(said.text) if said.type in ("error", "warning", "trace") else None
            ),
        )
        page.goto(at.url + "/" + ("" if made is None else f"#campaign={made.fingerprint}{more}"))
        page.wait_for_selector("body[data-state=ready]")
        return page

    yield start
    for one in opened:
        one.close()
    unexpected = [one for one in wrong if not any(word in one for word in expected)]
    assert unexpected == []


def until(page: Any, condition: str, argument: Any = None) -> None:
    """Wait for a condition; the page's policy forbids to wait for it inside of the page."""
    for _ in range(PATIENCE // 50):
        if page.evaluate(condition, argument):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never came true: {condition}")


def drawn(page: Any, chart: str) -> list[dict[str, Any]]:
    """What a chart shows, once it does."""
    page.locator(f"#{chart}").scroll_into_view_if_needed()
    page.wait_for_selector(f"#{chart}[data-drawn]")
    traces: list[dict[str, Any]] = page.evaluate(
        "id => JSON.parse(JSON.stringify(document.getElementById(id).data))", chart
    )
    return traces


def turn_to(page: Any, made: Campaign) -> None:
    """Choose another campaign."""
    if page.locator("#name").text_content() != made.name:
        page.locator("#campaigns a", has=page.get_by_text(made.name, exact=True)).click()
        until(page, "name => document.querySelector('#name').textContent === name", made.name)
        page.wait_for_selector("body[data-state=ready]")


def draw_all(page: Any) -> None:
    """See every chart that the page has."""
    for chart in page.locator(".chart:visible").all():
        drawn(page, chart.get_attribute("id"))


def table(page: Any, place: str) -> list[list[str]]:
    """The twin of a chart, as a reader of the screen gets it: its header, then its rows."""
    details = page.locator(f"details:has(#{place})")
    if details.count() and not details.evaluate("node => node.open"):
        details.locator("summary").click()
    page.wait_for_selector(f"#{place} table")
    rows: list[list[str]] = page.evaluate(
        "id => [...document.querySelectorAll(`#${id} tr`)]"
        ".map(row => [...row.cells].map(cell => cell.textContent))",
        place,
    )
    return rows


def percent(share: float | None) -> str:
    if share is None:
        return "–"
    text = f"{abs(100 * share):.2f}"
    return f"{'−' if share < 0 and float(text) else ''}{text} %"


def path(made: Campaign) -> str:
    return f"/v1/campaigns/{made.fingerprint}"


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


def test_map_shows_the_series(visit: Open, site: Site) -> None:
    page = visit(frequent())
    series = site.get(path(frequent()) + "/series?newest=100&top=40")
    assert (len(series["values"]), series["rounds"]) == (40, [0, 1, 3, 4, 5])
    (heat,) = drawn(page, "map-chart")
    # Round 2 has no reports and round 3 too few: columns without colour, not left out.
    assert heat["x"] == [0, 1, 2, 3, 4, 5]
    z = np.array(heat["z"], dtype=float)
    assert z.shape == (40, 6)
    assert np.isnan(z[:, 2:4]).all()
    for column, row in ((0, 0), (1, 1), (4, 3), (5, 4)):
        expected = np.sqrt(np.maximum(0, series["frequencies"][row]))
        np.testing.assert_allclose(z[:, column], expected, rtol=1e-12)
    rows = table(page, "map-table")
    assert rows[0] == ["Round", "Begins", "Reports", *series["labels"]]
    told = [percent(f) for f in series["frequencies"][0]]
    assert rows[1] == ["0", "2026-01-01 00:00 UTC", "3,000", *told]
    assert rows[3][3:] == ["withheld"] * 40
    most = max(f for row in series["frequencies"] if row for f in row)
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
        f, error = (np.array(series[one][row]) for one in ("frequencies", "standard_errors"))
        shown = np.array([line[column] is not None for line in heat["z"]])
        np.testing.assert_array_equal(shown, f >= 1.959963984540054 * error)


def test_lines_show_the_most_frequent_values_with_their_intervals(visit: Open, site: Site) -> None:
    page = visit(frequent())
    series = site.get(path(frequent()) + "/series?newest=100&top=40")
    sums = np.nansum(np.array([row for row in series["frequencies"] if row], dtype=float), axis=0)
    best = np.argsort(-sums, kind="stable")[:5]
    traces = drawn(page, "lines-chart")
    bands, lines = traces[:5], traces[5:]
    assert [line["name"] for line in lines] == [series["labels"][column] for column in best]
    # Neither colour alone nor dash alone tells them apart.
    assert len({line["line"]["dash"] for line in lines}) == 5
    assert len({line["marker"]["symbol"] for line in lines}) == 5
    estimates = site.get(path(frequent()) + "/rounds/5/estimates")
    for column, line, band in zip(best, lines, bands, strict=True):
        value = series["values"][column]
        assert line["y"][5] == pytest.approx(100 * estimates["frequencies"][value])
        assert line["y"][2] is line["y"][3] is None
        ends = {round(y, 9) for x, y in zip(band["x"], band["y"], strict=True) if x == 5}
        assert ends == {
            round(100 * estimates["lower"][value], 9),
            round(100 * estimates["upper"][value], 9),
        }
    plot = page.locator("#lines-chart .nsewdrag").first
    box = plot.bounding_box()
    for step in (20, 24):
        plot.hover(position={"x": box["width"] - step, "y": 50})
    until(
        page,
        """() => document.querySelector('#lines-chart .hoverlayer')
        .textContent.split('±').length === 6""",
    )
    rows = table(page, "lines-table")
    value = series["values"][best[0]]
    told = [percent(estimates[one][value]) for one in ("frequencies", "lower", "upper")]
    assert rows[-1][:4] == ["5", *told]


def test_any_value_can_be_added_by_its_label_and_removed(visit: Open, site: Site) -> None:
    page = visit(frequent(), "&top=20")
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
        [row[0] for row in series["frequencies"] if row]
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
    np.testing.assert_allclose(bars["x"], 100 * np.array(estimates["frequencies"]))
    np.testing.assert_allclose(
        bars["error_x"]["array"],
        100 * (np.array(estimates["upper"]) - estimates["frequencies"]),
    )
    rows = table(page, "round-table")
    columns = ("frequencies", "lower", "upper")
    expected = [
        [label, *(percent(estimates[one][v]) for one in columns)]
        for v, label in enumerate(estimates["labels"])
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
    order = np.argsort(-np.array(estimates["frequencies"]), kind="stable")[:20]
    (bars,) = drawn(page, "round-chart")
    np.testing.assert_allclose(bars["x"], 100 * np.array(estimates["frequencies"])[order])
    assert page.get_by_role("button", name="Round after").is_disabled()
    page.get_by_role("button", name="Round before").click()
    page.get_by_text(re.compile("^Round 4, from 2026-01-01 04:00 UTC, open: 3,000")).wait_for()
    page.get_by_role("button", name="Round before").click()
    # Withheld: said, and nothing shown or exported.
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


def test_privacy_is_said_as_the_api_says_it(visit: Open, site: Site) -> None:
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
    assert tiles["A change shows"] == f"{privacy['change'][1]['auc']:.3f}"
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


def test_empty_small_and_noisy_campaigns_say_so(visit: Open, tmp_path: Any, site: Site) -> None:
    with listening(tmp_path, Clock(START)) as nothing:
        page = visit(at=nothing)
        assert page.locator("h1:visible").text_content() == "No campaign yet"
        command = page.locator("#welcome-command").text_content()
        assert f"--to {nothing.url} " in command
        assert not page.locator("#campaign").is_visible()
        page.close()
    page = visit(empty())
    page.get_by_role("heading", name="No reports yet").wait_for()
    assert f"--campaign {site.url}{path(empty())} " in page.locator("#notices code").text_content()
    assert page.locator(".panel:visible").count() == 1
    turn_to(page, small())
    page.get_by_role("heading", name="Too few users for any estimate").wait_for()
    assert not page.locator("#map, #lines").first.is_visible()
    assert "minimum cohort of 100" in page.locator("#notices").text_content()
    turn_to(page, noisy())
    page.get_by_role("heading", name="Noise is above the signal in round 1").wait_for()
    bound = site.get(path(noisy()) + "/rounds/1/estimates")["simultaneous_error"]
    assert percent(bound) in page.locator("#notices").text_content()
    turn_to(page, frequent())
    page.get_by_role("heading", name="Some rounds have too few users").wait_for()
    assert page.locator(".notice.warn:visible").count() == 0


def test_labels_never_become_markup(visit: Open) -> None:
    page = visit(hostile())
    assert page.locator("h1:visible").text_content() == "<b>bold</b>"
    for chart in ("map-chart", "lines-chart", "round-chart"):
        drawn(page, chart)
        node = page.locator(f"#{chart}")
        assert node.locator("a, img").count() == 0
        assert HOSTILE[2] in node.text_content()
    for place in ("map-table", "lines-table", "round-table"):
        text = " ".join(cell for row in table(page, place) for cell in row)
        assert all(label in text for label in HOSTILE)
    assert page.locator("#chosen img, #chosen a").count() == 0
    assert page.title() == "<b>bold</b> · loloha collector"


def test_new_reports_appear_by_themselves_and_polls_cost_nothing(
    visit: Open, tmp_path: Any
) -> None:
    made = campaign("Live", protocol=loloha.RAPPOR(k=5, eps_inf=5.0, eps_1=4.0))
    with listening(tmp_path, Clock(START + 60)) as live:
        live.create(made)
        page = visit(made, at=live)
        assert page.get_by_role("heading", name="No reports yet").is_visible()
        with page.expect_response(re.compile("/series")) as waiting:
            pass
        assert waiting.value.status == 304
        live.send(made, walk(5, 300, 1, seed=1), seed=2)
        page.wait_for_selector("#round:not([hidden])")
        drawn(page, "round-chart")
        assert "300 reports" in page.locator("#round-lead").text_content()
        assert page.locator("#notices").text_content() == ""
        before = page.locator("#round-chart").get_attribute("data-drawn")
        statuses: list[int] = []
        page.on("response", lambda answer: statuses.append(answer.status))
        with page.expect_response(re.compile("/estimates")):
            pass
        page.wait_for_load_state("networkidle")
        assert set(statuses) == {304}
        assert page.locator("#round-chart").get_attribute("data-drawn") == before
        page.close()


def test_trouble_is_told_and_passes(visit: Open) -> None:
    page = visit(small(), expected=["Failed to load resource"])
    problem = (
        '{"type":"urn:loloha:problem:unavailable","title":"The collector cannot answer now",'
        '"status":503,"detail":"the store is locked; try again"}'
    )
    page.route(
        "**/v1/campaigns",
        lambda route: route.fulfill(
            status=503,
            content_type="application/problem+json",
            headers={"Retry-After": "1"},
            body=problem,
        ),
    )
    page.wait_for_selector("#problem:not([hidden])")
    told = page.get_by_role("alert").text_content()
    assert "The collector cannot answer now: the store is locked; try again" in told
    assert "What you see was fetched before." in told
    assert page.locator("#status").text_content() == "Trying again …"
    assert page.locator("h1:visible").text_content() == "Small"
    page.unroute("**/v1/campaigns")
    page.route("**/v1/campaigns", lambda route: route.abort())
    page.get_by_text("The collector does not answer.").wait_for()
    page.unroute("**/v1/campaigns")
    page.wait_for_selector("#problem", state="hidden")
    assert page.locator("#status").text_content() == "Live"


def test_without_charts_the_tables_remain(visit: Open, chromium: Any, site: Site) -> None:
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    held: list[Any] = []
    page.route("**/plotly.min.js", lambda route: held.append(route))
    page.goto(f"{site.url}/#campaign={frequent().fingerprint}")
    # Until they come the map's cells are there already: the frequent value dark, gaps empty.
    page.wait_for_selector("#map-chart .sketch")
    width, height, *pixels = page.evaluate(
        "() => { const c = document.querySelector('.sketch'), x = c.getContext('2d');"
        " return [c.width, c.height, ...[0, 2].map(i => [...x.getImageData(i, 0, 1, 1).data])]; }"
    )
    assert (width, height) == (6, 40)
    assert max(pixels[0][:3]) < 128
    assert pixels[0][3] == 255
    assert pixels[1] == [0, 0, 0, 0]
    for _ in range(PATIENCE // 50):
        if held:
            break
        page.wait_for_timeout(50)
    assert held
    for route in held:
        route.abort()
    page.get_by_text("The chart could not be loaded").first.wait_for()
    assert len(table(page, "round-table")) == K + 1
    context.close()


SIZES = """() => ({
    page: document.documentElement.scrollWidth,
    window: window.innerWidth,
    small: [...document.querySelectorAll('button, select, summary, .exports a')]
        .filter(node => node.checkVisibility() && node.getBoundingClientRect().height < 24)
        .map(node => node.outerHTML),
    spills: [...document.querySelectorAll('main *:not(.scroll *):not(.chart *)')]
        .filter(node => node.getBoundingClientRect().right > window.innerWidth + 1)
        .map(node => node.outerHTML.slice(0, 80)),
})"""


def test_a_phone_shows_all_without_scrolling_sideways(visit: Open) -> None:
    page = visit(frequent(), viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    for made in (frequent(), hostile(), small(), empty()):
        turn_to(page, made)
        draw_all(page)
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        page.wait_for_timeout(200)
        assert page.evaluate(SIZES) == {"page": 390, "window": 390, "small": [], "spills": []}


# Text whose contrast with the ground behind it is below 4.5 to 1 (WCAG 2.2, 1.4.3).
PALE = """() => {
    const parse = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b]
        .map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const ground = node => {
        for (; node; node = node.parentElement) {
            const [r, g, b, a = 1] = parse(getComputedStyle(node).backgroundColor);
            if (a === 1) return [r, g, b];
        }
        return [255, 255, 255];
    };
    const pale = [];
    for (const node of document.querySelectorAll('body *')) {
        const own = [...node.childNodes].some(c => c.nodeType === 3 && c.textContent.trim());
        if (!own || !node.checkVisibility() || node.matches('option, :disabled')) continue;
        const style = getComputedStyle(node);
        const colour = parse(node instanceof SVGElement ? style.fill : style.color);
        const [a, b] = [light(colour), light(ground(node))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) pale.push(`${ratio.toFixed(2)} ${node.textContent.slice(0, 40)}`);
    }
    return pale;
}"""


def test_text_stands_out_in_both_themes(visit: Open) -> None:
    page = visit(frequent())
    grounds = {"light": "rgb(244, 246, 248)", "dark": "rgb(15, 20, 25)"}
    for made in (frequent(), small(), noisy()):
        turn_to(page, made)
        for scheme, ground in grounds.items():
            page.emulate_media(color_scheme=scheme)
            draw_all(page)
            page.wait_for_timeout(300)
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
            assert page.evaluate(PALE) == []


def test_a_chosen_theme_is_kept_and_reaches_the_charts(visit: Open) -> None:
    page = visit(hostile(), color_scheme="light")
    light = drawn(page, "round-chart")[0]["marker"]["color"]
    page.get_by_label("Theme").select_option("dark")
    until(page, "document.querySelector('#round-chart').dataset.drawn === '2'")
    assert drawn(page, "round-chart")[0]["marker"]["color"] != light
    page.reload()
    page.wait_for_selector("body[data-state=ready]")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 20, 25)"
    assert page.get_by_label("Theme").input_value() == "dark"
    # Back to the system's, and the page follows it while it is open.
    page.get_by_label("Theme").select_option("auto")
    page.emulate_media(color_scheme="dark")
    page.emulate_media(color_scheme="light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(244, 246, 248)"


FOCUS = """() => {
    const node = document.activeElement;
    const style = getComputedStyle(node);
    const rest = node.getAttribute('aria-label') ?? node.textContent.trim().slice(0, 30);
    return [node.id || `${node.tagName.toLowerCase()} ${rest}`, style.outlineStyle !== 'none'];
}"""


def test_all_of_it_works_by_keyboard(visit: Open) -> None:
    page = visit(frequent())
    drawn(page, "map-chart")
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUS) == ["skip", True]
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        name, outlined = page.evaluate(FOCUS)
        if name.startswith("body"):
            break
        assert outlined, name
        reached.append(name)
    order = [name for name in reached if name in page.evaluate(VISIBLE_CONTROLS)]
    assert order == page.evaluate(VISIBLE_CONTROLS)
    assert reached.count("summary The map as a table") == 1
    # A value by its label, a round by the arrow keys, a table by the space bar.
    page.locator("#find").focus()
    page.keyboard.type("/page/44")
    page.keyboard.press("Enter")
    page.wait_for_selector("#chosen li:nth-child(6)")
    page.locator("#which").focus()
    page.keyboard.press("ArrowDown")
    page.get_by_text(re.compile("^Round 4, ")).wait_for()
    assert page.evaluate("document.activeElement.id") == "which"
    page.locator("summary", has_text="The round as a table").focus()
    page.keyboard.press("Space")
    page.wait_for_selector("#round-table table")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "scroll"


VISIBLE_CONTROLS = """() => [...document.querySelectorAll('main :is(button, select, input, a)[id]')]
    .filter(node => node.checkVisibility() && !node.disabled).map(node => node.id)"""

UNNAMED = """() => [...document.querySelectorAll(
    'button, select, input, a, [role=img], [role=region]')]
    .filter(node => node.checkVisibility() && !(
        node.getAttribute('aria-label') || node.textContent.trim() || node.labels?.length))
    .map(node => node.outerHTML.slice(0, 100))"""


def test_screen_readers_find_landmarks_names_and_twins(visit: Open) -> None:
    page = visit(frequent())
    for role in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(role).count() == 1
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("h1:visible").count() == 1
    assert page.evaluate(UNNAMED) == []
    assert page.get_by_role("region", name="Values over rounds").count() == 1
    charts = page.locator("[role=img]:visible")
    assert charts.count() == 5
    for chart in charts.all():
        assert len(chart.get_attribute("aria-label")) > 30
    # Each panel with a chart has the table of it.
    for panel in page.locator("section.panel:visible").all():
        assert panel.locator("details.twin").count() >= 1
    for summary in page.locator("details.twin summary:visible").all():
        summary.click()
    for made in page.locator("table").all():
        assert made.locator("caption").text_content()
        assert made.locator("thead th:not([scope=col])").count() == 0
        assert made.locator("tbody tr > :first-child:not(th[scope=row])").count() == 0
