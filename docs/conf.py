"""How Sphinx builds the documentation."""

from importlib.metadata import version as installed_version
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

project = "loloha"
author = "loloha developers"
copyright = "loloha developers"
version = release = installed_version("loloha")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
# Formulas are MathML, made here: the pages work without another host.
html_math_renderer = "mathml"
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
# The tables that benchmarks write are parts of other pages.
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
# Docstrings state the types with shape, range and unit; the signature's would repeat them.
autodoc_typehints = "none"
napoleon_google_docstring = False
# As fields of the class: as objects of their own they would meet the dataclass's own attributes.
napoleon_use_ivar = True

# Shapes such as float64[tau, bins] are no references, though they hold names of attributes.
suppress_warnings = ["ref.python"]

html_theme = "furo"
html_title = "loloha"


def _inline(translator: Any, node: Any) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _display(translator: Any, node: Any) -> None:
    formula = convert(node.astext().strip(), display="block")
    translator.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Render formulas as MathML, which browsers draw by themselves."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
