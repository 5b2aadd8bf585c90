"""The admin page: plain forms over the HTTP API's functions, behind a session of an admin key."""

from loloha.collector.admin.admin_pages import routes

__all__ = ["routes"]
