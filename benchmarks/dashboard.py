"""The dashboard in a browser: how long until something, the map and the numbers can be seen."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import loloha
from benchmarks.measure import Row
from loloha.campaign import Campaign, Labels, Schedule
from loloha.cli import deployment

K, ROUNDS, USERS = 1000, 100, 2000
SIZE = f"{ROUNDS} rounds x {K} values, empty browser cache"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 120_000

# Notes when the map's cells, the tiles' numbers and the whole first chart are there.
WATCH = """
window.reached = {};
new MutationObserver(() => {
    const note = name => { window.reached[name] ??= performance.now(); };
    if (document.querySelector('#tiles strong')) note('numbers');
    if (document.querySelector('#map-chart :is(.sketch, .plot)')) note('sketch');
    if (document.querySelector('#map-chart[data-drawn]')) note('map');
}).observe(document, {subtree: true, childList: true, attributes: true});
"""
SEEN = """() => ({
    ...window.reached,
    paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
    bytes: performance.getEntriesByType('resource')
        .filter(one => new URL(one.name).pathname.startsWith('/v1'))
        .reduce((sum, one) => sum + one.transferSize, 0),
})"""


def rows() -> Iterator[Row]:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        return
    with deployment.collector() as running:
        campaign = _campaign()
        url = deployment.create(running, campaign, ROUNDS)
        _fill(url, campaign)
        first, *again = _visits(browser, f"{running.url}/#campaign={campaign.fingerprint}", 4)
    best = {name: min(one[name] for one in again) for name in first}
    yield Row("dashboard", "first paint", SIZE, best["paint"], "ms", 1000.0)
    yield Row("dashboard", "cells of the map", SIZE, best["sketch"], "ms", 1000.0)
    yield Row("dashboard", "numbers in the tiles", SIZE, best["numbers"], "ms", 1000.0)
    yield Row("dashboard", "map with labels, by plotly", SIZE, best["map"], "ms")
    yield Row("dashboard", "the same, the collector's first answer", SIZE, first["map"], "ms")
    yield Row("dashboard", "answers of the API", SIZE, best["bytes"] / 1000, "kB")


def _campaign() -> Campaign:
    now = int(time.time())
    return Campaign(
        name="First paint",
        protocol=loloha.OLOLOHA(k=K, eps_inf=3.0, eps_1=1.5),
        domain=Labels(tuple(range(K))),
        schedule=Schedule(
            now - now % deployment.HOUR - (ROUNDS - 1) * deployment.HOUR, deployment.HOUR
        ),
    )


def _fill(url: str, campaign: Campaign) -> None:
    from loloha.population.load_generator import generate_load

    values = np.random.default_rng(1).zipf(1.3, size=(USERS, ROUNDS)) % K
    generate_load(url, campaign, values, rng=2)


def _visits(browser: str, address: str, times: int) -> list[dict[str, Any]]:
    from playwright.sync_api import sync_playwright

    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    flags = ["--disable-background-networking", "--disable-gpu", *sandbox]
    seen = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=browser, args=flags, downloads_path=folder)
        for _ in range(times):
            # A new context has an empty cache.
            context = started.new_context(viewport={"width": 1280, "height": 900})
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            page.add_init_script(WATCH)
            page.goto(address)
            page.wait_for_selector("#map-chart[data-drawn]")
            page.wait_for_selector("#tiles strong")
            seen.append(page.evaluate(SEEN))
            context.close()
        started.close()
    return seen
