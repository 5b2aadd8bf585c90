"""Search of a campaign's labels, by the text that they hold."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, count, islice

MOST_MATCHES = 50


class Index:
    """An index of labels: one text, searched at the speed of memory."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._labels = labels
        folded = [label.casefold() for label in labels]
        # A separator that no label contains.
        used = set().union(*folded)
        self._mark = next(mark for mark in map(chr, count(1)) if mark not in used)
        self._text = self._mark + self._mark.join([*folded, ""])
        self._starts = list(accumulate((len(label) + 1 for label in folded), initial=1))

    def matches(self, text: str) -> list[dict[str, int | str]]:
        """As `matches`."""
        wanted, mark = text.strip().casefold(), self._mark
        if mark in wanted:
            return []
        best: dict[int, None] = {}
        for sought in (f"{mark}{wanted}{mark}", f"{mark}{wanted}", wanted):
            for value in islice(self._holding(sought), MOST_MATCHES):
                best.setdefault(value)
        return _shown(self._labels, list(best)[:MOST_MATCHES])

    def _holding(self, sought: str) -> Iterator[int]:
        """Labels in which something begins, each once."""
        place = self._text.find(sought)
        while place >= 0:
            # A match at a separator is the beginning of the next label.
            value = bisect_right(self._starts, max(place + sought.startswith(self._mark), 1)) - 1
            if value >= len(self._labels):
                return
            yield value
            place = self._text.find(sought, self._starts[value + 1] - 1)


def matches(labels: Sequence[str], text: str) -> list[dict[str, int | str]]:
    """At most 50 labels that hold ``text``: the same one, those it begins, then the others."""
    wanted = text.strip().casefold()
    kinds: tuple[list[int], ...] = ([], [], [])
    for value, label in enumerate(labels):
        folded = label.casefold()
        if wanted in folded:
            kinds[0 if folded == wanted else 1 if folded.startswith(wanted) else 2].append(value)
    return _shown(labels, [value for kind in kinds for value in kind][:MOST_MATCHES])


def _shown(labels: Sequence[str], values: list[int]) -> list[dict[str, int | str]]:
    return [{"value": value, "label": labels[value]} for value in values]
