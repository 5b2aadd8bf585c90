"""Privacy: what the reports of a user reveal, in numbers and in plain words."""

from typing import TYPE_CHECKING

from loloha import _moved
from loloha.privacy.change import change_auc, link_auc
from loloha.privacy.explanation import Explanation, explain
from loloha.privacy.loss import cap, growth, loss_of
from loloha.privacy.roc import AUC
from loloha.privacy.shuffling import Amplified, Shuffled, shuffled
from loloha.privacy.transcript import (
    HistoryLoss,
    WorstLoss,
    eps_2,
    loss_between,
    window_loss,
    worst_loss,
)

__all__ = [
    "AUC",
    "Amplified",
    "Explanation",
    "HistoryLoss",
    "Shuffled",
    "WorstLoss",
    "cap",
    "change_auc",
    "eps_2",
    "explain",
    "growth",
    "link_auc",
    "loss_between",
    "loss_of",
    "shuffled",
    "window_loss",
    "worst_loss",
]

if not TYPE_CHECKING:
    __getattr__ = _moved.getter(__name__)
