"""Laws that every registered protocol obeys, and how a law says what it is tried on."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from laws import oracle
from laws.variants import Variant

# Failures in the modules below show both sides of a comparison, as in a test.
pytest.register_assert_rewrite("laws.client", "laws.device", "laws.server", "laws.specification")

Law = Callable[[Any], None]


class Case(NamedTuple):
    """One law on one variant of one protocol."""

    law: Law
    variant: Variant

    def __str__(self) -> str:
        return f"{self.variant}:{self.law.__name__}"


CASES: list[Case] = []


def law(variants: list[Variant], only: Callable[[Any], bool] = lambda _: True) -> Any:
    """Register a law, to be tried on those of the variants whose protocol is as ``only`` says."""

    def register(check: Law) -> Law:
        CASES.extend(Case(check, variant) for variant in variants if only(variant.build()))
        return check

    return register


def longitudinal(protocol: Any) -> bool:
    """Whether answers are memoised."""
    return bool(protocol.longitudinal)


def at_most_bits(number: int) -> Callable[[Any], bool]:
    """Whether answers have so few bits that all their outcomes can be listed."""
    return lambda protocol: oracle.bits(protocol) <= number
