"""Finds values of a campaign by what their labels hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loloha.collector.process import Parts

if TYPE_CHECKING:
    from loloha.collector.desk import Desk

MOST_MATCHES = 50


def labels_like(desk: Desk, fingerprint: str, text: str) -> Parts:
    """The labels of a campaign that hold ``text``; see `matches`."""
    return Parts(matches(desk.known(fingerprint).labels, text), ())


def matches(labels: Sequence[str], text: str) -> list[dict[str, int | str]]:
    """Labels that hold ``text``, at most 50: the same one, then those it begins, then the others.

    Parameters
    ----------
    labels : list of str
    text : str
        In any case; all labels hold the empty one.
    """
    wanted = text.strip().casefold()
    found: tuple[list[int], ...] = ([], [], [])
    for value, label in enumerate(labels):
        folded = label.casefold()
        if wanted in folded:
            found[0 if folded == wanted else 1 if folded.startswith(wanted) else 2].append(value)
    best = [value for kind in found for value in kind][:MOST_MATCHES]
    return [{"value": value, "label": labels[value]} for value in best]
