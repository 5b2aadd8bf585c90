"""report.html: every figure and table on one page that needs nothing else to be read."""

from __future__ import annotations

import base64
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loloha import __version__
from loloha_lab.paper.result_table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKAGES = ("numpy", "scipy", "matplotlib", "pyarrow", "joblib", "numba")
TEMPLATE = "page.html.j2"


@dataclass
class Section:
    """A figure or a table, with what there is to say about it."""

    name: str
    title: str
    claim: str = ""
    finding: str = ""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    tables: Sequence[Table] = ()


def write_page(out: Path, sections: Sequence[Section], **context: Any) -> Path:
    """Write figures (PNG, SVG), tables (CSV) and the page that shows them all, which is returned.

    ``context``: grid, facts, measurements, fit, differences, seconds, command.
    """
    from jinja2 import Environment, StrictUndefined

    source = (files("loloha_lab.paper") / TEMPLATE).read_text(encoding="utf-8")
    # Autoescape: labels and paths are text, never markup.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    drawn = {section.name: _save_figures(section, out / "figures") for section in sections}
    for section in sections:
        _save_tables(section, out / "tables")
    page = environment.from_string(source).render(
        sections=sections, drawn=drawn, versions=versions(), **context
    )
    path = out / "report.html"
    draft = path.with_suffix(".draft")
    draft.write_text(page, encoding="utf-8")
    return draft.replace(path)


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    installed = {"loloha": __version__, "Python": platform.python_version()}
    for package in PACKAGES:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            installed[package] = "absent"
    return installed | {"machine": f"{platform.system()} {platform.machine()}"}


def _save_figures(section: Section, folder: Path) -> list[dict[str, Any]]:
    """Write each figure as files, and return it for the page."""
    from loloha.figure import save

    folder.mkdir(parents=True, exist_ok=True)
    shown = []
    for stem, figure in section.figures.items():
        png, _ = save(figure, folder / stem)
        encoded = base64.b64encode(png.read_bytes()).decode("ascii")
        shown.append({"stem": stem, "png": encoded, "label": str(figure.get_label())})
    return shown


def _save_tables(section: Section, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for table in section.tables:
        (folder / f"{table.name}.csv").write_text(table.to_csv(), encoding="utf-8")
