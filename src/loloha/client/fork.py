"""The id of this process, to notice a fork: asking the system takes as long as drawing a bit."""

from __future__ import annotations

import os

here = object()
"""Stands for this process; a fork gets another one."""


def _forked() -> None:
    global here
    here = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
