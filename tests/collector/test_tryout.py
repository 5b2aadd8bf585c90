"""The page on which a visitor's browser is a device."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loloha
from browsing import browser, listening
from collecting import Clock
from javascript import CLIENT
from loloha.collector.dashboard import asset, pages

Serve = Callable[..., Any]


def test_the_page_and_all_it_imports_come_from_here(serve: Serve) -> None:
    client = serve()
    page = client.get("/try")
    assert page.headers["content-security-policy"] == pages.POLICY
    assert "{{" not in page.text
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\son\w+=", page.text)
    addresses = [f"/{one}" for one in re.findall(r'(?:src|href)="([^"./][^"]*)"', page.text)]
    assert f"/assets/{asset.digest()}/try/try.js" in addresses
    for address in addresses:
        assert client.get(address).status_code == 200, address
    for name, one in asset.tryout().items():
        answer = client.get(f"/assets/{asset.digest()}/try/{name}")
        assert answer.content == one.body
        text = one.body.decode()
        for imported in re.findall(r'from "\./([^"]+)"', text):
            assert imported in asset.tryout(), f"{name} imports {imported}"
        assert "node:" not in text
        hosts = re.findall(r"https?://[^\s\"'`)]+", text.replace("http://www.w3.org/2000/svg", ""))
        assert all("HOST" in host for host in hosts), hosts
    again = client.get("/try", headers={"If-None-Match": page.headers["etag"]})
    assert again.status_code == 304


def test_the_page_runs_the_client_that_ships() -> None:
    for name in ("index.js", "client.js", "protocol.js", "exact.js"):
        assert asset.tryout()[name].body == (CLIENT / "src" / name).read_bytes()


@pytest.mark.parametrize("name", ["node.js", "try.html", "index.html", "main.js", "..%2fasset.py"])
def test_no_other_file_is_served(serve: Serve, name: str) -> None:
    assert serve().get(f"/assets/{asset.digest()}/try/{name}").status_code == 404


@pytest.mark.long
@pytest.mark.browser
def test_a_visitor_reports_and_sees_what_leaves(tmp_path: Path) -> None:
    with listening(tmp_path, Clock()) as site, browser() as started:
        context = started.new_context(viewport={"width": 380, "height": 800})
        page = context.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text))
        page.goto(f"{site.url}/try")
        page.get_by_role("status").get_by_text("No round yet", exact=True).wait_for()
        # Nothing is asked of anybody from here on.
        context.set_offline(True)
        page.get_by_label("over 30 h").check()
        page.get_by_role("button", name="Report this round").click()
        page.get_by_role("status").get_by_text("Round 0", exact=True).wait_for()
        assert '"campaign"' in page.inner_text("#message")
        assert "over 30 h" not in page.inner_text("#message")
        # What the device keeps to itself is shown when it is asked for, and not before.
        assert "kept answer" not in page.inner_text("#history")
        page.get_by_label("Show what the device keeps to itself").check()
        page.locator("#history").get_by_text("kept answer").wait_for()
        page.get_by_label("Show what the device keeps to itself").uncheck()
        page.get_by_role("button", name="Ask for this round again").click()
        page.locator("#answer").get_by_text("same report again").wait_for()
        page.get_by_role("button", name="Report ten rounds").click()
        page.get_by_role("status").get_by_text("Round 10", exact=True).wait_for()
        assert page.locator("#rounds tr").count() == 11
        assert page.inner_text("#tiles dd strong") == "4"
        page.get_by_text("The estimate as a table").click()
        texts = page.locator("#estimates td:nth-child(3)").all_inner_texts()
        # A minus sign stands before what lies below 0.
        estimates = [float(text.split()[0].replace("−", "-")) for text in texts]
        assert len(estimates) == 8
        assert abs(sum(estimates) - 100) < 60
        shown = page.locator("#estimates td:nth-child(4)").all_inner_texts()
        eps_1 = float(page.locator("#eps").input_value())
        protocol = loloha.OLOLOHA(k=8, eps_inf=4.0, eps_1=eps_1, g=3)
        f, eligible = np.array(estimates) / 100, np.full(8, 3001)
        ends = loloha.server.estimate.inversion(protocol, 3001, f, eligible).interval(0.95)
        for text, *interval in zip(shown, *ends, strict=True):
            assert [float(end.strip(" %")) for end in text.split(" to ")] == pytest.approx(
                [100 * end for end in interval], abs=0.15
            )
        page.get_by_role("button", name="Begin anew").click()
        page.get_by_role("status").get_by_text("No round yet", exact=True).wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert wrong == []
        context.close()
