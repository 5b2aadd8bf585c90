"""Lines of the log, as text or JSON, without any network address."""

from __future__ import annotations

import json
import logging
import re
import sys
from contextlib import suppress
from ipaddress import ip_address

from loloha.campaign.schedule import to_text

MASK = "[address]"
_CANDIDATE = re.compile(r"[0-9A-Fa-f:.]{2,}")
_REQUEST = ("method", "route", "status", "milliseconds")


def set_up(form: str, level: str) -> None:
    """Write the log of this process to stderr, in a form (text, json), from a level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(AsJson() if form == "json" else AsText())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def without_addresses(text: str) -> str:
    """A text with network addresses masked: libraries' errors can hold those of devices."""
    return _CANDIDATE.sub(_masked, text)


def _masked(match: re.Match[str]) -> str:
    text = match.group()
    # A port or punctuation may follow.
    for bare in (text, text.rstrip(".:"), text.partition(":")[0], text.rpartition(":")[0]):
        with suppress(ValueError):
            ip_address(bare)
            return MASK
    return text


class AsText(logging.Formatter):
    """A line with time, level, origin and message; a traceback follows."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """One record."""
        return f"{to_text(int(record.created))} {without_addresses(super().format(record))}"


class AsJson(logging.Formatter):
    """An object a line; requests have method, route, status and milliseconds beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        """One record."""
        line = {
            "time": to_text(int(record.created)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in _REQUEST if hasattr(record, name)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(
            {
                name: without_addresses(value) if name in ("message", "traceback") else value
                for name, value in line.items()
            },
            ensure_ascii=False,
        )
