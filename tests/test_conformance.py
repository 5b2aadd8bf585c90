"""Laws x registry: each law on each small variant of each protocol that it is for.

An id reads ``protocol-parameters:law``. A protocol gets all laws by being registered.
"""

from types import ModuleType

import pytest

from laws import CASES, Case, client, device, oracle, server, shipped, specification
from loloha.rules.protocols import REGISTRY


@pytest.mark.parametrize("case", CASES, ids=str)
def test_law(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle.draw_from_few_keys(monkeypatch)
    case.law(case.variant.build())


@pytest.mark.parametrize("laws", [client, device, server, shipped.laws, specification])
def test_every_protocol_is_tried(laws: ModuleType) -> None:
    tried = {case.variant.cls for case in CASES if case.law.__module__ == laws.__name__}
    assert tried == set(REGISTRY.values())
