"""Whole populations, whose values somebody knows: simulation, data sets, attacks, the paper."""
