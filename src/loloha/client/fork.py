"""The id of this process, to notice forks: a system call would cost as much as drawing a bit."""

from __future__ import annotations

import os

from loloha.errors import StateError

here = object()
"""Identifies this process; a fork gets another one."""


def _forked() -> None:
    global here
    here = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def elsewhere() -> StateError:
    """The refusal of a step in another process than the client's own."""
    return StateError(
        "client must stay in the process that made it, a fork has another copy; load the state "
        "where it is used"
    )
