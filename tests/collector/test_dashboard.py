"""The dashboard's files: where they are, how they are kept, and what the page may do."""

import gzip
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collecting import campaign, created
from loloha.collector import label_search
from loloha.collector.dashboard import asset, pages

Serve = Callable[..., Any]

CHARTS = f"/{asset.charts_path()}"


def test_page_names_its_files_by_their_content_and_all_of_them_are_there(serve: Serve) -> None:
    client = serve()
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    addresses = [f"/{one}" for one in re.findall(r'(?:src|href)="([^"#/][^"]*)"', page.text)]
    assert f"/assets/{asset.digest()}/main.js" in addresses
    assert CHARTS in addresses
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 200, address
        if address.startswith("/assets/"):
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert answer.headers["x-content-type-options"] == "nosniff"
    # Every module that another one imports is served, and fetched before it is asked for.
    modules = {name for name in asset.own() if name.endswith(".js")}
    for name in modules:
        body = asset.own()[name].body.decode()
        for imported in re.findall(r'from "\./([^"]+)"', body):
            assert imported in modules
            assert f"/assets/{asset.digest()}/{imported}" in addresses


def test_page_asks_no_other_host(serve: Serve) -> None:
    text = serve().get("/").text + "".join(
        one.body.decode() for one in asset.own().values() if not one.media_type.startswith("image")
    )
    assert re.findall(r"https?://[^\s\"'`)]+", text) == []
    assert "{{" not in serve().get("/").text


def test_policy_is_strict_and_only_the_page_has_it(serve: Serve) -> None:
    client = serve()
    policy = client.get("/").headers["content-security-policy"]
    assert policy == pages.POLICY
    assert "unsafe" not in policy
    assert "*" not in policy
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    assert directives == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data: blob:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    for other in ("/v1/campaigns", CHARTS):
        assert client.get(other).headers["content-security-policy"].endswith("sandbox")
    # Inline scripts, styles and handlers would be dead letters under this policy.
    page = asset.page().body.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\son\w+=", page)


def test_page_is_asked_for_again_but_sent_only_once(serve: Serve) -> None:
    client = serve()
    first = client.get("/")
    assert first.headers["cache-control"] == "no-cache"
    again = client.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["content-security-policy"] == pages.POLICY


@pytest.mark.parametrize("address", [f"/assets/{asset.digest()}/main.js", CHARTS])
def test_files_are_packed_for_who_can_unpack_them(serve: Serve, address: str) -> None:
    client = serve()
    plain = client.get(address, headers={"Accept-Encoding": "identity"})
    packed = client.get(address, headers={"Accept-Encoding": "br, gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    assert packed.content == plain.content
    assert int(packed.headers["content-length"]) < len(plain.content) / 2
    found = asset.charts() if "plotly" in address else asset.own()["main.js"]
    assert gzip.decompress(found.packed) == plain.content


@pytest.mark.parametrize(
    "address",
    [
        "/assets/0000000000000000/main.js",
        f"/assets/{asset.digest()}/index.html",
        f"/assets/{asset.digest()}/..%2f__init__.py",
        f"/assets/{asset.digest()}/",
        "/assets/plotly-0.0.0/plotly.min.js",
    ],
)
def test_no_other_file_is_served(serve: Serve, address: str) -> None:
    assert serve().get(address).status_code == 404


def test_routes_of_the_page_are_not_part_of_the_api(serve: Serve) -> None:
    document = serve().get("/openapi.json").json()
    assert {path for path in document["paths"] if not path.startswith("/v1/")} == {
        "/healthz",
        "/livez",
        "/readyz",
        "/metrics",
    }


def test_labels_are_found_by_what_they_hold_the_best_first(serve: Serve) -> None:
    labels = ["Dark", "very dark", "darkest", "light"]
    assert label_search.matches(labels, " dark") == [
        {"value": 0, "label": "Dark"},
        {"value": 2, "label": "darkest"},
        {"value": 1, "label": "very dark"},
    ]
    assert label_search.matches(labels, "sepia") == []
    assert len(label_search.matches([str(v) for v in range(1000)], "")) == label_search.MOST_MATCHES

    client = serve()
    path = created(client, campaign()).replace("/v1/campaigns", "/dashboard/labels")
    answer = client.get(path, params={"q": "C"})
    assert answer.json() == {"total": 5, "matches": [{"value": 2, "label": "c"}]}
    assert client.get(path, params={"q": "C"}, headers={"If-None-Match": answer.headers["etag"]})
    assert client.get("/dashboard/labels/" + "0" * 64).status_code == 404


def test_a_plotly_without_its_script_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asset, "CHARTS", "absent.js")
    asset.charts.cache_clear()
    asset.page.cache_clear()
    try:
        with pytest.raises(asset.StoreError, match=r"plotly must be installed with its absent\.js"):
            asset.charts()
        # The page itself comes nevertheless: its tables hold the same numbers.
        assert b"main.js" in asset.page().body
    finally:
        monkeypatch.undo()
        asset.charts.cache_clear()
        asset.page.cache_clear()


@given(
    st.lists(st.text("abAß.", min_size=1, max_size=4), min_size=1, max_size=120),
    st.text("abAß. \x01", max_size=3),
)
def test_an_index_gives_what_a_search_of_every_label_gives(labels: list[str], text: str) -> None:
    assert label_search.Index(labels).matches(text) == label_search.matches(labels, text)
