"""How Sphinx builds the documentation."""

from importlib.metadata import version as installed_version

project = "loloha"
author = "loloha developers"
copyright = "loloha developers"
version = release = installed_version("loloha")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
# The tables that benchmarks write are parts of other pages.
exclude_patterns = ["_build", "*-table.md"]

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
