"""Campaigns that a dashboard shows, and how a test reads its page."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")

import loloha
from browsing import PATIENCE
from collecting import HOUR, START, campaign
from loloha.campaign import Campaign, Labels, Range, Schedule

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


def panels() -> Campaign:
    return campaign("Each in one round of three", schedule=Schedule(START, HOUR, every=3))


def timed() -> Campaign:
    protocol = loloha.OneBit(k=24, eps_inf=2.0, eps_1=1.0)
    return campaign("Hours as numbers", protocol=protocol, domain=Range(0, 24, 24))


def walk(k: int, n: int, tau: int, seed: int) -> Any:
    """Values of n users, the low ones more frequent; each changes now and then."""
    rng = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, k + 1)
    drawn = rng.choice(k, size=(n, tau), p=shares / shares.sum())
    kept = np.maximum.accumulate(np.where(rng.random((n, tau)) < 0.2, np.arange(tau), 0), axis=1)
    return np.take_along_axis(drawn, kept, axis=1)


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


def table(page: Any, place: str) -> list[list[str]]:
    """The table of a chart, as screen readers get it: its header, then its rows."""
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
