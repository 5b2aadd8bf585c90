"""The page of admins: plain forms over what the HTTP API does, behind a session of an admin key."""

from loloha.collector.admin.admin_pages import routes

__all__ = ["routes"]
