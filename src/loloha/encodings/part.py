"""The registry of what an encoding brings beside its own methods, by its exact class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from loloha import checks
from loloha.errors import ParameterError

T = TypeVar("T")


class Part:
    """A part that encodings may register, by exact class: subclasses register their own."""

    def __init__(self, name: str, gives: str, otherwise: str) -> None:
        self.name, self.gives, self.otherwise = name, gives, otherwise
        self.known: dict[type, Any] = {}
        self.alike: dict[type, type] = {}
        PARTS[name] = self

    def of(self, encoding: object) -> Any:
        """The part that this encoding brings; None where it brings none."""
        cls = type(encoding)
        return self.known.get(self.alike.get(cls, cls))

    def required(self, encoding: object) -> Any:
        """The part that this encoding brings."""
        part = self.of(encoding)
        if part is None:
            raise ParameterError(
                f"protocol must have an encoding that brings {self.gives} ({self.name!r}), got "
                f"{type(encoding).__name__}; {self.otherwise}"
            )
        return part


PARTS: dict[str, Part] = {}
"""Every part, by name; those of other packages once they are imported."""


def for_encoding(part: str, *encodings: type) -> Callable[[T], T]:
    """Register a ``part``, one of `PARTS`, for classes of encodings."""

    def register(brought: T) -> T:
        for cls in encodings:
            known[cls] = brought
        return brought

    known = PARTS[checks.choice("part", part, PARTS)].known
    return register


def like_encoding(like: type, *encodings: type, parts: Sequence[str]) -> None:
    """Reuse another class's ``parts`` for classes of encodings.

    Such as all that only asks how symbols are randomised, and not which symbol a value has.
    """
    for part in parts:
        for cls in encodings:
            PARTS[checks.choice("part", part, PARTS)].alike[cls] = like


COUNTS = Part(
    "population.samplers:counts", "counts of many simulated users", "clients are run one by one"
)
REPORTS = Part(
    "population.samplers:reports", "reports of many simulated users", "clients are run one by one"
)
SQL = Part("engines.sql:view", "SQL that counts reports", "use engine 'local'")
COST = Part("planning.prospect:work", "the cost of counting a round", "plans call it not known")
CELLS = Part(
    "server.bayesian:cells",
    "a likelihood of what is counted",
    "tally must count whole answers (symbols, or a hash with a table): use project_simplex",
)
JOINT = Part("server.total:joint", "covariances of its estimates", "sums have no error without")
REPEATED = Part(
    "privacy.loss:repeated", "the loss of repeated reports", "eps_1, then eps_inf bound it"
)
ONE_ROUND = Part(
    "privacy.transcript:one_round", "the loss of one round, all others known", "nothing bounds it"
)
MEMO_CELLS = Part(
    "privacy.labelling:cells",
    "the memo cells of values under every key",
    "enumerate its client with loloha.distribution",
)
HISTORIES = Part(
    "privacy.enumeration:histories", "the exact loss between two histories", "it is bounded"
)
CELL_WORDS = Part(
    "privacy.plain_words:cells", "words for its memo symbols", "statements claim nothing of them"
)
LINK_WORDS = Part(
    "privacy.plain_words:links", "words for what joins reports", "take it that they can be joined"
)
ANSWER_WORDS = Part(
    "sender.preview:words", "words for a key and an answer", "previews show the bytes alone"
)
CHANGE = Part("privacy.change:memoised", "how surely a change of value shows", "it is not computed")
FRESH_CHANGE = Part(
    "privacy.change:one_round",
    "how surely a change shows in reports of one round each",
    "it is not computed",
)
SHUFFLED = Part(
    "privacy.shuffling:answers", "its answers beside those of others", "no gain is claimed"
)
