"""The JavaScript client in a real browser, against a real collector on another origin."""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from browsing import browser
from collecting import ADMIN_KEY, HOUR, HOURS, START, Clock, campaign
from javascript import CLIENT, examples
from loloha.collector.settings import Settings
from serving import Served, create, get

pytestmark = [pytest.mark.browser, pytest.mark.long]

YEAR = 366 * 24 * HOUR


class World(NamedTuple):
    """A page on one origin, a collector on another, and a browser."""

    page_url: str
    collector_url: str
    path: str
    browser: Any

    def rounds(self) -> list[dict[str, Any]]:
        return list(get(self.collector_url, f"{self.path}/rounds").json()["rounds"])


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder, and says nothing."""

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the application, with the client's beside them."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "loloha").symlink_to(CLIENT)
    return folder


@pytest.fixture(scope="module")
def page_url(site: Path) -> Iterator[str]:
    """Where the application is served."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def world(chromium: Any, page_url: str, tmp_path: Path) -> Iterator[World]:
    settings = Settings(
        store=f"sqlite:///{tmp_path}/loloha.db", admin_key=ADMIN_KEY, allowed_origins=[page_url]
    )
    with Served(settings, Clock(START + 60)) as url:
        yield World(page_url, url, create(url, campaign()), chromium)


PRELUDE = """
const { Sender, indexedDbStorage } = await import("/loloha/loloha.min.js");
const make = (options = {}) => new Sender(indexedDbStorage("hours"), {
  clock: () => START + 60, attempts: 2, first: 0.01, timeout: 5, ...options,
});
const name = (error) => error.name;
"""


class Tab:
    """One page of the application, in which statements run."""

    def __init__(self, context: Any, world: World) -> None:
        self.world = world
        self.page = context.new_page()
        # Any file of the origin will do: the client needs no element of the page.
        self.page.goto(f"{world.page_url}/loloha/package.json")

    def run(self, statements: str) -> Any:
        address = self.world.collector_url + self.world.path
        constants = f"const START = {START}, address = {address!r};"
        return self.page.evaluate(f"async () => {{ {constants} {PRELUDE} {statements} }}")


def wait(tab: Tab, is_there: Callable[[], Any]) -> None:
    """Let the browser work until something is there, for as long as a slow machine needs."""
    for _ in range(1000):
        if is_there():
            return
        tab.page.wait_for_timeout(50)
    pytest.fail("never came")


@pytest.fixture
def context(world: World) -> Iterator[Any]:
    opened = world.browser.new_context()
    yield opened
    opened.close()


@pytest.fixture
def tab(context: Any, world: World) -> Tab:
    return Tab(context, world)


AGREE = "const sender = make(); await sender.agree(address, { limit: 4 });"


def test_consent_report_and_a_reload(tab: Tab) -> None:
    assert tab.run("return (await make().status()).consent") is False
    assert tab.run("return make().report('a').catch(name)") == "StateError"
    assert tab.world.rounds() == []
    said = tab.run(f"{AGREE} await sender.report('b'); return sender.deliver()")
    settled = {"sent": [0], "refused": {}, "waiting": [], "reason": ""}
    assert said == {**settled, "campaign": "open"}
    tab.page.reload()
    tab.run("const sender = make(); await sender.report('c'); await sender.deliver()")
    status = tab.run(
        "const { loss, limit, campaigns: [{ answered, campaign }] } = await make().status();"
        "return [loss, limit, answered, campaign.labels]"
    )
    assert status == [2, 4, [0], ["a", "b", "c", "d", "e"]]
    (first,) = tab.world.rounds()
    assert (first["n"], first["duplicates"], first["conflicts"]) == (1, 0, 0)


def test_the_page_of_the_docs_asks_and_reports_once(context: Any, world: World, site: Path) -> None:
    path = create(world.collector_url, HOURS)
    html = examples(world.collector_url + path)["html"]
    html = html.replace("</script>", "document.title = 'done';</script>")
    (site / "example.html").write_text(html)
    page, failed, answers = context.new_page(), [], [False, True]
    page.add_init_script(f"Date.now = () => {START + 60}000")
    page.on("dialog", lambda one: one.accept() if answers.pop(0) else one.dismiss())
    page.on("pageerror", lambda error: failed.append(error))
    # A user who declines, then agrees, then comes back and is asked no more.
    for n in (0, 1, 1):
        page.goto(f"{world.page_url}/example.html")
        page.wait_for_function("document.title === 'done'")
        rounds = get(world.collector_url, f"{path}/rounds").json()["rounds"]
        assert [one["n"] for one in rounds] == [1] * n
    assert (failed, answers) == ([], [])


def test_a_page_reads_that_it_sends_too_fast(chromium: Any, page_url: str, tmp_path: Path) -> None:
    # The browser asks first (a preflight), then sends, then lets the page read why it was refused.
    settings = Settings(
        store=f"sqlite:///{tmp_path}/loloha.db",
        admin_key=ADMIN_KEY,
        allowed_origins=[page_url],
        rate_limit="4/hour",
    )
    context = chromium.new_context()
    with Served(settings, Clock(START + 60)) as url:
        world = World(page_url, url, create(url, campaign()), chromium)
        said = Tab(context, world).run(
            "const send = () => fetch(`${address}/reports`, { method: 'POST', body: '[]',"
            " headers: { 'content-type': 'application/json' } });"
            "let answer; do { answer = await send(); } while (answer.status === 200);"
            "return [answer.status, answer.headers.get('retry-after'), (await answer.json()).type]"
        )
    context.close()
    assert said == [429, "1", "urn:loloha:problem:rate-limit"]


def test_offline_and_back(tab: Tab, context: Any) -> None:
    tab.run(AGREE)
    context.set_offline(True)
    said = tab.run("const s = make(); await s.report('a'); return s.deliver()")
    assert (said["sent"], said["waiting"]) == ([], [0])
    assert "reached" in said["reason"]
    context.set_offline(False)
    assert tab.run("return make().deliver()")["sent"] == [0]
    assert [one["n"] for one in tab.world.rounds()] == [1]


def test_two_tabs_are_one_device(tab: Tab, context: Any, world: World) -> None:
    tab.run(AGREE)
    other = Tab(context, world)
    start = (
        "window.work = (async () => { const s = make();"
        "for (let i = 0; i < 8; i++) await s.report('abcde'[(i + OFFSET) % 5], { round: i });"
        "return (await s.deliver()).waiting.length; })()"
    )
    # Both are at it before either ends.
    tab.run(start.replace("OFFSET", "0"))
    other.run(start.replace("OFFSET", "2"))
    for each in (tab, other):
        each.run("await window.work")
    assert tab.run("return (await make().status()).campaigns[0].answered.length") == 8
    assert tab.run("return make().deliver().then(({ waiting }) => waiting)") == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
    ]
    (first,) = world.rounds()
    assert (first["n"], first["conflicts"]) == (1, 0)


def test_a_page_closed_in_the_middle_of_a_delivery(tab: Tab, context: Any, world: World) -> None:
    tab.run(f"{AGREE} await sender.report('a'); sender.deliverOnHide(); await sender.status()")
    tab.page.close(run_before_unload=False)
    other = Tab(context, world)
    # A browser that is closed may drop what the page has just sent.
    for _ in range(30):
        if world.rounds():
            break
        other.page.wait_for_timeout(100)
    # What became of it was not learnt, or was: it is settled now, and counted once.
    other.run("await make().deliver()")
    assert other.run("return (await make().status()).campaigns[0].waiting") == []
    (first,) = world.rounds()
    assert (first["n"], first["conflicts"]) == (1, 0)


def test_a_page_closed_before_the_answer(tab: Tab, context: Any, world: World) -> None:
    tab.run(f"{AGREE} await sender.report('a')")
    held = threading.Event()
    tab.page.route("**/reports", lambda route: held.set())
    tab.run("window.work = make().deliver()")
    wait(tab, held.is_set)
    tab.page.close()
    other = Tab(context, world)
    assert other.run("return make().deliver()")["sent"] == [0]
    assert [one["n"] for one in world.rounds()] == [1]


def test_a_private_window_is_another_user_who_is_asked(tab: Tab, world: World) -> None:
    tab.run(AGREE)
    private = world.browser.new_context()
    try:
        there = Tab(private, world)
        assert there.run("return (await make().status()).consent") is False
        there.run(f"{AGREE} await sender.report('a')")
    finally:
        private.close()
    assert tab.run("return (await make().status()).campaigns[0].answered") == []


@pytest.mark.parametrize(
    "fails",
    [
        "throw new DOMException('full', 'QuotaExceededError')",
        "const asked = put.apply(this, put_); this.transaction.abort(); return asked",
    ],
    ids=["at once", "at the commit"],
)
def test_a_full_storage_changes_nothing(tab: Tab, fails: str) -> None:
    tab.run(AGREE)
    full = (
        "const { put } = IDBObjectStore.prototype;"
        f"IDBObjectStore.prototype.put = function (...put_) {{ {fails} }};"
        "const said = await make().report('a').catch(name);"
        "IDBObjectStore.prototype.put = put; return said"
    )
    assert tab.run(full) == "StateError"
    assert tab.run("return make().deliver()")["sent"] == []
    assert tab.run("return (await make().status()).campaigns[0].answered") == []
    assert tab.run("const s = make(); await s.report('a'); return s.deliver()")["sent"] == [0]


def test_a_wrong_clock(tab: Tab) -> None:
    tab.run(AGREE)
    behind = "make({ clock: () => START - 1 })"
    assert tab.run(f"return {behind}.report('a').catch(name)") == "StateError"
    ahead = f"make({{ clock: () => START + {10 * YEAR} }})"
    said = tab.run(f"const s = {ahead}; await s.report('a'); return s.deliver()")
    assert (said["sent"], said["refused"], len(said["waiting"])) == ([], {}, 1)
    # Mended: it goes on, and what waits does not hold it up.
    said = tab.run("const s = make(); await s.report('a'); return s.deliver()")
    assert said["sent"] == [0]


def test_a_campaign_changed_under_the_pin(tab: Tab) -> None:
    other = campaign("another name").to_json()
    tab.page.route("**/document", lambda route: route.fulfill(body=other, headers=ALLOWED))
    assert tab.run(f"return (async () => {{ {AGREE} }})().catch(name)") == "CampaignError"
    assert tab.run("return (await make().status()).consent") is False


ALLOWED = {"Access-Control-Allow-Origin": "*", "Content-Type": "application/json"}


def test_a_hotel_s_page_settles_nothing(tab: Tab) -> None:
    tab.run(f"{AGREE} await sender.report('a')")
    page = {**ALLOWED, "Content-Type": "text/html"}
    tab.page.route("**/reports", lambda route: route.fulfill(body="Welcome", headers=page))
    assert tab.run("return make().deliver()")["waiting"] == [0]
    tab.page.unroute("**/reports")
    assert tab.run("return make().deliver()")["sent"] == [0]


def test_withdrawn_consent(tab: Tab) -> None:
    tab.run(f"{AGREE} await sender.report('a')")
    assert "stays spent" in tab.run("return make().withdraw()")
    assert tab.run("return make().deliver().catch(name)") == "StateError"
    kept = tab.run("return indexedDbStorage('hours').read().then(JSON.parse)")
    assert kept.keys() == {"type", "version", "spent", "committed", "answered", "checksum"}
    assert tab.world.rounds() == []


HELD = """
window.sender = make(); sender.deliverOnHide();
while (!(await navigator.locks.query()).held.some(({ mode }) => mode === "shared")) {
  await new Promise((done) => setTimeout(done, 10));
}
await sender.status();
"""
HIDE = """
Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
document.dispatchEvent(new Event("visibilitychange"));
"""
WORKER = """
const code = `
  import { Sender, indexedDbStorage } from "${location.origin}/loloha/loloha.min.js";
  const sender = new Sender(indexedDbStorage("hours"));
  postMessage(await sender.END());
`;
const module = new Blob([code], { type: "text/javascript" });
const worker = new Worker(URL.createObjectURL(module), { type: "module" });
return new Promise((done, fail) => {
  worker.onmessage = ({ data }) => done(data);
  worker.onerror = fail;
});
"""


@pytest.mark.parametrize("end", ["withdraw", "reset"])
@pytest.mark.parametrize("where", ["a tab", "a worker"])
def test_no_tab_sends_what_another_has_deleted(
    tab: Tab, context: Any, world: World, end: str, where: str
) -> None:
    tab.run(f"{AGREE.replace('4', '99')} await sender.report('a')")
    others = [Tab(context, world) for _ in range(2)]
    for each in (tab, *others):
        each.run(HELD)
    erase = f"return sender.{end}()" if where == "a tab" else WORKER.replace("END", end)
    assert "stays spent" in tab.run(erase)
    # At once, and as its page goes away.
    others[0].run(HIDE)
    others[1].page.close(run_before_unload=False)
    tab.run(HIDE)
    tab.page.wait_for_timeout(500)
    assert world.rounds() == []
    if end == "reset":
        tab.run("await make().report('b', { round: 0 })")
        assert tab.run("return make().status().then(({ campaigns }) => campaigns[0].waiting)") == []


def test_a_tab_whose_copy_is_stale_sends_what_is_queued_now(
    tab: Tab, context: Any, world: World
) -> None:
    tab.run(f"{AGREE.replace('4', '99')} await sender.report('a')")
    other = Tab(context, world)
    other.run(HELD)
    tab.run("const s = make(); await s.reset({ wait: false }); await s.report('b')")
    other.run(HELD)
    other.page.close(run_before_unload=False)
    wait(tab, world.rounds)
    tab.run("await make().deliver()")
    (first,) = world.rounds()
    assert (first["n"], first["conflicts"]) == (1, 0)


SLOW = """
const begun = new Promise((asked) => {
  const waits = new Promise((go) => { window.go = go; });
  const slow = async (...request) => { asked(); await waits; return fetch(...request); };
  window.work = make({ fetch: slow }).agree(address).catch(name);
});
await begun;
"""


def test_a_withdrawal_ends_a_consent_that_another_tab_still_asks_for(
    tab: Tab, context: Any, world: World
) -> None:
    other = Tab(context, world)
    other.run(SLOW)
    tab.run(f"{AGREE} await sender.report('a'); await sender.deliver(); await sender.withdraw()")
    assert other.run("window.go(); return window.work") == "StateError"
    assert tab.run("return (await make().status()).consent") is False
    assert [one["n"] for one in world.rounds()] == [1]


def test_many_that_wait_leave_in_one_request_within_the_browser_s_bound(tab: Tab) -> None:
    tab.run(
        f"{AGREE} for (let round = 0; round < 120; round++) await sender.report('a', {{ round }})"
    )
    sent: list[Any] = []
    tab.page.on("request", lambda request: sent.append(request))
    tab.run(HELD)
    tab.run(HIDE)
    wait(tab, tab.world.rounds)
    # Time for a second one, if there were any.
    tab.page.wait_for_timeout(500)
    posts = [one for one in sent if one.method == "POST"]
    assert [one.url for one in posts] == [f"{tab.world.collector_url}/v1/reports"]
    assert len(posts[0].post_data) < 64 * 1024
    # The collector counts round 0 and asks to come again with those that are early.
    assert [one["n"] for one in tab.world.rounds()] == [1]


SILENT = """
const { open } = IDBFactory.prototype;
IDBFactory.prototype.open = () => ({});
const quick = new Sender(indexedDbStorage("hours", { timeout: 0.1 }));
"""


def test_a_storage_that_never_answers_ends_no_other_tab(
    tab: Tab, context: Any, world: World
) -> None:
    tab.run(AGREE)
    other = Tab(context, world)
    for step in ("status()", "report('a')", "withdraw()", "deliver()"):
        assert other.run(f"{SILENT} return quick.{step}.catch(name)") == "StateError"
    # Its lock is free again.
    assert tab.run("return make().report('a')") == 0


LATE = """
const { open } = IDBFactory.prototype;
const arrived = [];
IDBFactory.prototype.open = function (...given) {
  const asked = open.apply(this, given);
  const late = {};
  arrived.push(new Promise((done) => {
    asked.onsuccess = () => setTimeout(() => {
      late.result = asked.result;
      late.onsuccess();
      done();
    }, 300);
  }));
  return late;
};
const quick = new Sender(indexedDbStorage("hours", { timeout: 0.1 }));
const said = await quick.withdraw().catch(name);
await Promise.all(arrived);
await new Promise((done) => setTimeout(done, 100));
return said;
"""


def test_a_storage_that_answers_too_late_changes_nothing(
    tab: Tab, context: Any, world: World
) -> None:
    tab.run(f"{AGREE} await sender.report('a')")
    assert Tab(context, world).run(LATE) == "StateError"
    said = tab.run("return make().status().then((one) => [one.consent, one.campaigns[0].waiting])")
    assert said == [True, [0]]


def test_a_tab_that_holds_the_lock_is_reported(tab: Tab, context: Any, world: World) -> None:
    tab.run(f"{AGREE} await sender.report('a')")
    other = Tab(context, world)
    hold = (
        "window.lock = new Promise((held) => navigator.locks.request('loloha hours', () => {"
        " held(); return new Promise((done) => { window.free = done }) })); await lock"
    )
    other.run(hold)
    quick = "const quick = new Sender(indexedDbStorage('hours', { timeout: 0.1 }));"
    assert tab.run(f"{quick} return quick.withdraw().catch(name)") == "StateError"
    other.run("free()")
    assert "stays spent" in tab.run("return make().withdraw()")


def test_an_origin_that_is_not_allowed(chromium: Any, world: World) -> None:
    context = chromium.new_context()
    try:
        elsewhere = world.page_url.replace("127.0.0.1", "localhost")
        tab = Tab(context, world._replace(page_url=elsewhere))
        assert tab.run(f"return (async () => {{ {AGREE} }})().catch(name)") == "Unreachable"
    finally:
        context.close()


def test_a_page_without_locks(tab: Tab) -> None:
    hide = "Object.defineProperty(navigator, 'locks', { value: undefined });"
    found = tab.run(f"{hide} try {{ indexedDbStorage() }} catch (error) {{ return error.message }}")
    assert "https" in found
