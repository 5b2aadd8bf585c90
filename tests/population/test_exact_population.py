"""A simulated population has exactly the distribution of its clients, over all rounds jointly."""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

from laws import oracle
from laws.variants import VARIANTS, Variant, pairwise
from loloha.distribution import exact_distribution
from loloha.population.samplers import History
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
# Of most variants, and of the smallest of a protocol: by default, and in the long run.
MOST_PATHS, MOST_PATHS_OF_THE_SMALLEST = (96, 150), (512, 2048)
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

    def is_small(self, long: bool) -> bool:
        """Whether all outcomes can be listed in a fraction of a second, or in about one."""
        width = Width()
        self.way(self.variant.build(), self.history, width)
        if self.variant is not SMALLEST[self.variant.cls]:
            return width.paths <= MOST_PATHS[long]
        tried = (self.way, self.population) in TRIED
        return width.paths <= MOST_PATHS_OF_THE_SMALLEST[long or tried]


def groups() -> list[Any]:
    """For each protocol and population: enough for all pairs of parameters, then all."""
    listed: dict[str, list[Case]] = {}
    for way, variant, population in product(LAWS, VARIANTS, POPULATIONS):
        kind = f"{variant.cls.name}{'-joint' * ('joint' in str(variant))}"
        name = f"{way.__name__}:{kind}:{population}"
        listed.setdefault(name, []).append(Case(way, variant, population))
    found = []
    for name, cases in listed.items():
        few = {*pairwise([case.variant for case in cases]), SMALLEST[cases[0].variant.cls]}
        core = [case for case in cases if case.variant in few]
        found.append(pytest.param(core, False, id=name))
        found.append(pytest.param(cases, True, id=f"{name}:all", marks=pytest.mark.long))
    return found


# Every protocol is small enough here.
TRIED = {*product([sampled], ["there and back", "two users once", "once"]), (sent, "once")}


@pytest.mark.parametrize(("cases", "long"), groups())
def test_received_reports_have_the_distribution_of_the_clients(
    cases: list[Case], long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In rational arithmetic: no outcome more or less likely by even 2^-53."""
    oracle.draw_from_few_keys(monkeypatch)
    with monkeypatch.context() as patch:
        numpy_only(patch)
        small = [case for case in cases if case.is_small(long)]
    if any(case.variant is SMALLEST[case.variant.cls] for case in cases):
        assert small or (cases[0].way, cases[0].population) not in TRIED
    for case in small:
        protocol: Any = case.variant.build()
        history = case.history
        simulated = exact_distribution(lambda rng: case.way(protocol, history, rng))  # noqa: B023
        assert simulated == LAWS[case.way](protocol, history.values), str(case)
