"""A simulated population has exactly the law of its clients, over all rounds jointly."""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

from laws import oracle
from laws.variants import VARIANTS, Variant
from loloha.law import exact_law
from loloha.population.samplers import History
from loloha.protocols import REGISTRY
from population import Law, Width, numpy_only, population_law, reports_law, sampled, sent

POPULATIONS = {
    "there and back": [[0, 1, 0]],
    "one stays, one moves": [[0, 0], [1, 0]],
    "three users once": [[0], [1], [0]],
    "two users once": [[1], [0]],
    "gaps": [[-1, 1, -1], [0, -1, -1]],
    "once": [[1]],
    "twice": [[0, 0]],
}
MOST_PATHS, MOST_PATHS_OF_THE_SMALLEST = 150, 2048
Way = Callable[..., Any]
# Counts of all rounds and losses; the reports themselves.
LAWS: dict[Way, Callable[[Any, Any], Law]] = {sampled: population_law, sent: reports_law}
SMALLEST = {variant.cls: variant for variant in reversed(VARIANTS)}


class Case(NamedTuple):
    way: Way
    variant: Variant
    population: str

    def __str__(self) -> str:
        return f"{self.way.__name__}:{self.variant}:{self.population}"

    @property
    def history(self) -> History:
        return History(np.array(POPULATIONS[self.population]), self.variant.build().k)

    def is_small(self) -> bool:
        """Whether all outcomes can be listed in about a second."""
        width = Width()
        self.way(self.variant.build(), self.history, width)
        smallest = self.variant is SMALLEST[self.variant.cls]
        return width.paths <= (MOST_PATHS_OF_THE_SMALLEST if smallest else MOST_PATHS)


def cases() -> list[Case]:
    with pytest.MonkeyPatch.context() as patch:
        oracle.draw_from_few_keys(patch)
        numpy_only(patch)
        every = (Case(*one) for one in product(LAWS, VARIANTS, POPULATIONS))
        return [case for case in every if case.is_small()]


CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_the_server_gets_has_the_law_of_the_clients(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In rational arithmetic: no outcome more or less likely by even 2^-53."""
    oracle.draw_from_few_keys(monkeypatch)
    protocol: Any = case.variant.build()
    history = case.history
    simulated = exact_law(lambda rng: case.way(protocol, history, rng))
    assert simulated == LAWS[case.way](protocol, history.values)


@pytest.mark.parametrize(
    ("way", "population"),
    [*product([sampled], ["there and back", "two users once", "once"]), (sent, "once")],
)
def test_every_protocol_is_tried(way: Way, population: str) -> None:
    tried = {case.variant.cls for case in CASES if (case.way, case.population) == (way, population)}
    assert tried == set(REGISTRY.values())
