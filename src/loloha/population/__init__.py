"""Whole populations whose values are known: simulated, evaluated, compared."""

from loloha.population.comparison import Comparison, compare
from loloha.population.population import Supports, linked, simulate, supports
from loloha.population.samplers import History
from loloha.population.simulation import Simulation

__all__ = [
    "Comparison",
    "History",
    "Simulation",
    "Supports",
    "compare",
    "linked",
    "simulate",
    "supports",
]
