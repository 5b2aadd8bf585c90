"""Data sets: the paper's, made-up ones, and any table of a user."""

from __future__ import annotations

from loloha.datasets.browser import browsers
from loloha.datasets.catalogue import CATALOGUE
from loloha.datasets.dataset import DataError, Dataset, PrivacyWarning
from loloha.datasets.download import cache_folder, fetch
from loloha.datasets.pums import acs_weights
from loloha.datasets.synthetic import acs_standin, syn
from loloha.datasets.uci import adult
from loloha.datasets.us_state import STATES
from loloha.datasets.user_table import table
from loloha.errors import ExtraError

__all__ = [
    "CATALOGUE",
    "STATES",
    "DataError",
    "Dataset",
    "ExtraError",
    "PrivacyWarning",
    "acs_standin",
    "acs_weights",
    "adult",
    "browsers",
    "cache_folder",
    "fetch",
    "syn",
    "table",
]
