"""Laws x registry: each law on each small variant of each protocol that it is for.

An id reads ``protocol-parameters:law``. A protocol gets all laws by being registered.
"""

from types import ModuleType
from typing import Any

import pytest

from laws import CASES, Case, client, device, oracle, server, shipped, specification
from loloha.protocols import REGISTRY

# Two users, each with a whole table of three symbols: a hundred times the outcomes that g = 2 has.
TWO_USERS = {"reset_draws_a_new_key_and_memo", "clients_are_independent"}


def weighed(case: Case) -> Any:
    long = case.law.__name__ in TWO_USERS and "joint-g3" in str(case)
    return pytest.param(case, marks=pytest.mark.long if long else ())


@pytest.mark.parametrize("case", [weighed(case) for case in CASES], ids=str)
def test_law(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle.draw_from_few_keys(monkeypatch)
    case.law(case.variant.build())


@pytest.mark.parametrize("laws", [client, device, server, shipped.laws, specification])
def test_every_protocol_is_tried(laws: ModuleType) -> None:
    tried = {case.variant.cls for case in CASES if case.law.__module__ == laws.__name__}
    assert tried == set(REGISTRY.values())
