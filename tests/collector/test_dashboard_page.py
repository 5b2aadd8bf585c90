"""The dashboard in a real browser: clear words in trouble, by keyboard, in both themes."""

import re
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")

import loloha
from browsing import PATIENCE, Site, listening
from collecting import ADMIN_KEY, START, Clock, campaign
from dashboards import (
    HOSTILE,
    K,
    Open,
    drawn,
    empty,
    frequent,
    hostile,
    noisy,
    path,
    percent,
    small,
    table,
    until,
    walk,
)
from loloha.campaign import Campaign
from loloha.sender import Collector

pytestmark = [pytest.mark.browser, pytest.mark.long]


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


def test_a_campaign_that_takes_no_reports_says_so(visit: Open, tmp_path: Any) -> None:
    made = campaign("over")
    with listening(tmp_path, Clock(START)) as one:
        one.create(made)
        one.send(made, walk(5, 40, 1, seed=9), seed=1)
        where = f"{one.url}/v1/campaigns/{made.fingerprint}"
        with Collector(where, token=ADMIN_KEY) as collector:
            for state in ("paused", "closed"):
                collector.set_state(state)
                page = visit(made, at=one)
                page.get_by_role("heading", name=f"This campaign is {state}").wait_for()
                told = page.locator("#notices").text_content()
                assert ("show as soon as there are enough" in told) == (state == "paused")
                assert "with too few stays suppressed" in told
                page.close()


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


def test_trouble_is_shown_and_passes(visit: Open) -> None:
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
    assert "the store is locked" in told
    assert "earlier results" in told
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
    # Also what is asked for from now on: the page may have been on its way to do so.
    page.route("**/plotly.min.js", lambda route: route.abort())
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
        assert page.evaluate(CUT) == []


# Texts that reach beyond their chart, and texts on bars, whose colours go with the page.
CUT = """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(chart => {
    const box = node => node.getBoundingClientRect();
    const bars = [...chart.querySelectorAll('.barlayer path')].map(box);
    const frame = box(chart);
    return [...chart.querySelectorAll('text')].filter(text => {
        const { left, right, top, bottom } = box(text);
        const meets = b => b.left < right && b.right > left && b.top < bottom && b.bottom > top;
        const cut = left < frame.left - 1 || right > frame.right + 1;
        return right > left && (cut || (text.closest('.annotation') && bars.some(meets)));
    }).map(text => `${chart.id}: ${text.textContent}`);
})"""


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
            # Charts are drawn anew after the page, whenever the machine gets to it.
            for _ in range(200):
                page.wait_for_timeout(150)
                if not (pale := page.evaluate(PALE)):
                    break
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
            assert pale == []


def test_a_chosen_theme_is_stored_and_applies_to_the_charts(visit: Open) -> None:
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


def test_screen_readers_find_landmarks_names_and_tables(visit: Open) -> None:
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
        assert panel.locator("details.table").count() >= 1
    for summary in page.locator("details.table summary:visible").all():
        summary.click()
    for made in page.locator("table").all():
        assert made.locator("caption").text_content()
        assert made.locator("thead th:not([scope=col])").count() == 0
        assert made.locator("tbody tr > :first-child:not(th[scope=row])").count() == 0
