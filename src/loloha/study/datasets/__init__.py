"""Data sets: the paper's, made-up ones, and any table of a user."""

from __future__ import annotations

from loloha.errors import ExtraError
from loloha.study.datasets.catalogue import CATALOGUE
from loloha.study.datasets.dataset import DataError, Dataset, PrivacyWarning
from loloha.study.datasets.download import cache_folder, fetch
from loloha.study.datasets.pums import acs_weights
from loloha.study.datasets.state import STATES
from loloha.study.datasets.synthetic import acs_standin, syn
from loloha.study.datasets.uci import adult
from loloha.study.datasets.user_table import table

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
    "cache_folder",
    "fetch",
    "syn",
    "table",
]
