"""Laws x registry: each law on the small variants of each protocol that it is for.

An id reads ``protocol:law``; what it ends with, if anything, is left to the long run. A protocol
gets all laws by being registered.
"""

from itertools import combinations
from types import ModuleType
from typing import Any

import pytest

from laws import CASES, Case, client, device, oracle, server, shipped, specification
from laws.variants import pairwise
from loloha.protocols import REGISTRY

# Two users: their outcomes are the square of one user's, which has many with these parameters.
TWO_USERS = {"reset_draws_a_new_key_and_memo", "clients_are_independent"}
MANY_OUTCOMES = ("joint-g3", "prime-joint", "prime-independent-g3", "xxhash")


def is_slow(case: Case) -> bool:
    return case.law.__name__ in TWO_USERS and any(word in str(case) for word in MANY_OUTCOMES)


def groups() -> list[Any]:
    """The cases of a law and a protocol: enough for all pairs of parameters, then the rest."""
    listed: dict[str, list[Case]] = {}
    for case in CASES:
        listed.setdefault(f"{case.variant.cls.name}:{case.law.__name__}", []).append(case)
    found = []
    for name, cases in listed.items():
        quick = [case for case in cases if not is_slow(case)]
        enough = {*pairwise([case.variant for case in quick])}
        rest = [case for case in cases if is_slow(case) or case.variant not in enough]
        found.append(pytest.param([case for case in quick if case.variant in enough], id=name))
        if rest:
            found.append(pytest.param(rest, id=f"{name}:the rest", marks=pytest.mark.long))
    return found


@pytest.mark.parametrize("cases", groups())
def test_law(cases: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    oracle.draw_from_few_keys(monkeypatch)
    for case in cases:
        try:
            case.law(case.variant.build())
        except BaseException as error:
            error.add_note(f"in {case}")
            raise


@pytest.mark.parametrize("laws", [client, device, server, shipped.laws, specification])
def test_every_protocol_is_tried(laws: ModuleType) -> None:
    tried = {case.variant.cls for case in CASES if case.law.__module__ == laws.__name__}
    assert tried == set(REGISTRY.values())


def test_few_variants_hold_every_pair_of_parameters() -> None:
    cases = [case for case in CASES if case.variant.cls is REGISTRY["ololoha"]]
    variants = list(dict.fromkeys(case.variant for case in cases))
    few = pairwise(variants)
    assert 3 * len(few) < len(variants)
    wanted = {pair for variant in variants for pair in combinations(variant.params, 2)}
    assert wanted == {pair for variant in few for pair in combinations(variant.params, 2)}
