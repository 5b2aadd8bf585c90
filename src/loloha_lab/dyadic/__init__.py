"""A budget for changes: one series of reports under a single eps, for studies."""

from loloha_lab.dyadic.client import DyadicClient
from loloha_lab.dyadic.guarantee import DyadicExplanation, explain_budget
from loloha_lab.dyadic.protocol import DyadicLH, Lies
from loloha_lab.dyadic.simulation import DyadicSimulation, simulate
from loloha_lab.dyadic.tally import DyadicEstimate, DyadicTally

__all__ = [
    "DyadicClient",
    "DyadicEstimate",
    "DyadicExplanation",
    "DyadicLH",
    "DyadicSimulation",
    "DyadicTally",
    "Lies",
    "explain_budget",
    "simulate",
]
