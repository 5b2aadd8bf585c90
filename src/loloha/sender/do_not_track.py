"""Opt-out by environment variable: no program reports anything (consoledonottrack.com)."""

from __future__ import annotations

import os

DO_NOT_TRACK = "DO_NOT_TRACK"
OPTED_OUT = (
    f"{DO_NOT_TRACK} is set, so nothing was drawn or sent; what is stored stays. Unset it, or set "
    "it to 0, to report"
)


def is_opted_out() -> bool:
    """Whether the variable is set, and not to 0, false or nothing."""
    return os.environ.get(DO_NOT_TRACK, "").strip().lower() not in ("", "0", "false")
