"""Before anything is collected: which protocol, what error, what it costs."""

from typing import TYPE_CHECKING

from loloha import _moved
from loloha.planning.planning import plan
from loloha.planning.recommendation import Plan
from loloha.planning.sizing import plan_for
from loloha.planning.sweep import sweep

__all__ = ["Plan", "plan", "plan_for", "sweep"]

if not TYPE_CHECKING:
    __getattr__ = _moved.getter(__name__)
