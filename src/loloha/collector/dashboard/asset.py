"""The files of the dashboard: read once, packed once, and named by their content.

Pages name them from where they stand themselves: a proxy may show the collector under any path.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from importlib.metadata import version
from importlib.resources.abc import Traversable
from pathlib import Path

from loloha.errors import StoreError

MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
PAGE = "index.html"
TRYOUT = "try.html"
CHARTS = "plotly.min.js"
# Runs before the first paint; all other scripts are modules.
_CLASSIC = {"early.js"}
_PRELOAD = '<link rel="modulepreload" href="{{{{assets}}}}/{name}">'
_PRESENT = '<meta id="{id}">'
_STYLE_ID = re.compile(r'getElementById\("([0-9a-f]{64})"\)')
# Nearly as small as at a higher level, in a third of the time.
_LEVEL = 4


@dataclass(frozen=True)
class Asset:
    """One file as it goes out."""

    body: bytes
    media_type: str

    @cached_property
    def packed(self) -> bytes:
        """The body under gzip, the same bytes every time."""
        return gzip.compress(self.body, _LEVEL, mtime=0)


@cache
def own() -> dict[str, Asset]:
    """All files of the dashboard by name, but the page itself."""
    return {name: file for name, file in _shipped("assets").items() if name != PAGE}


@cache
def digest() -> str:
    """Addresses by content: one address never stands for two different files."""
    state = hashlib.sha256()
    for name, file in sorted([*own().items(), *tryout().items()]):
        state.update(name.encode() + b"\0" + file.body + b"\0")
    return state.hexdigest()[:16]


@cache
def tryout() -> dict[str, Asset]:
    """All files of the page to try a device, the JavaScript client among them, but the page."""
    client = {
        name: file
        for name, file in _files(_client_folder()).items()
        # What only Node can run.
        if name.endswith(".js") and name != "node.js"
    }
    return client | {name: file for name, file in _shipped("tryout").items() if name != TRYOUT}


@cache
def tryout_page() -> Asset:
    """The page to try a device, which names its files."""
    assets = f"assets/{digest()}"
    parts = {"{{assets}}": assets, "{{tryout}}": f"{assets}/try"}
    return _filled(_shipped("tryout")[TRYOUT], parts)


@cache
def page() -> Asset:
    """The page, which names its files."""
    scripts = [name for name in sorted(own()) if name.endswith(".js") and name not in _CLASSIC]
    parts = {
        "{{preload}}": "\n".join(_PRELOAD.format(name=name) for name in scripts),
        "{{present}}": "\n".join(_PRESENT.format(id=id) for id in _inline_styles()),
        "{{assets}}": f"assets/{digest()}",
        "{{charts}}": charts_path(),
    }
    return _filled(_shipped("assets")[PAGE], parts)


def _filled(page: Asset, parts: dict[str, str]) -> Asset:
    text = page.body.decode()
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return Asset(text.encode(), page.media_type)


@cache
def charts() -> Asset:
    """plotly's JavaScript, out of the installed wheel."""
    try:
        body = resources.files("plotly").joinpath("package_data", CHARTS).read_bytes()
    except (ModuleNotFoundError, FileNotFoundError):
        raise StoreError(
            f"plotly must be installed with its {CHARTS}, got none; "
            "pip install --force-reinstall plotly"
        ) from None
    return Asset(body, MEDIA_TYPES["js"])


@cache
def charts_path() -> str:
    """The address of the charts' library, fixed for a version of plotly."""
    return f"assets/plotly-{version('plotly')}/{CHARTS}"


def _inline_styles() -> list[str]:
    """Style sheets that plotly's parts add for themselves unless an element has their id."""
    # They are for geographic maps, which the dashboard does not use, and its policy forbids them.
    try:
        return sorted(set(_STYLE_ID.findall(charts().body.decode())))
    except StoreError:
        return []


@cache
def _shipped(folder: str) -> dict[str, Asset]:
    return _files(resources.files(__package__).joinpath(folder))


def _client_folder() -> Traversable:
    """Where the JavaScript client is: in the wheel beside these files, or in the checkout."""
    packaged = resources.files(__package__).joinpath("client")
    if packaged.is_dir():
        return packaged
    return Path(__file__).resolve().parents[4] / "clients" / "js" / "src"


def _files(folder: Traversable) -> dict[str, Asset]:
    assets = {}
    for file in folder.iterdir():
        media_type = MEDIA_TYPES.get(file.name.rpartition(".")[2])
        if file.is_file() and media_type is not None:
            assets[file.name] = Asset(file.read_bytes(), media_type)
    return assets
