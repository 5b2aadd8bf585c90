"""The dashboard: a page, its scripts and styles, and the charts' library from the plotly wheel."""

from loloha.collector.dashboard.pages import routes

__all__ = ["routes"]
