"""The collector's memory: sums, and a guard against counting a report twice. All SQL is here."""

from loloha.collector.store.database import UnfitError
from loloha.collector.store.round import Round
from loloha.collector.store.store import Store
from loloha.collector.store.tenure import TakenOverError

__all__ = ["Round", "Store", "TakenOverError", "UnfitError"]
