"""Golden vectors of values: which index a device gives to what it is given, at every edge."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from loloha.campaign.domain import Domain, domain_from_plain
from loloha.errors import DomainError

# Labels as a campaign's document has them, and values as JSON: a missing one is refused.
TEXTS = ["caf\u00e9", " cafe\u0301 ", "", " ", None, "other", "Caf\u00e9", "x"]
NUMBERS = ["1.9", "1.10", "1.1", 1.1, "2.0", "2", 2, 2.5, "1E2", 100, "10E1", "100", "100.0", "07"]
DOMAINS: list[tuple[Any, Any, list[Any]]] = [
    (["caf\u00e9", "tea"], "other", TEXTS),
    (["cafe\u0301", "tea"], None, TEXTS),
    (["1.9", "1.10", "2.0", "100"], "older", NUMBERS),
    ([1, 2, 100], "older", NUMBERS),
    (["1", "2", "100"], None, NUMBERS),
    (["true", "false"], None, [True, False, "true", "True", 1]),
]
RANGES: list[tuple[Any, Any, int]] = [
    (0, 1, 10), (0, 1, 3), (0, 100, 10), (0, 100, 7), (-1, 2.5, 6), (0.1, 0.8, 7), (-1, 1, 3),
    (1000000, 1000001, 10), (1000000, 1000005, 10), (0, 1e-9, 10), (0, 1, 1 << 24),
    (1e-300, 1, 3), (9007199254740991, 9007199254740992, 3),
]  # fmt: skip
WORDS = ["", " ", None, "x", "1_0", "0x1", "inf", "nan", "\u0663", "1e401", "1e999999999", True]


def value_vectors() -> Iterator[dict[str, Any]]:
    """Domains, the text of each value, and the index of what devices may be given."""
    for labels, other, values in DOMAINS:
        yield _values(domain_from_plain(labels, other), labels, other, values)
    for low, high, bins in RANGES:
        plain, other = {"range": [low, high], "bins": bins}, None if bins % 2 else "beyond"
        exact = [Fraction(str(low)) + (Fraction(str(high)) - Fraction(str(low))) * i / bins
                 for i in sorted({0, 1, bins // 2, bins - 1, bins})]  # fmt: skip
        near = [text for edge in exact for text in (_decimal(edge, 0), _decimal(edge, 1))]
        numbers = [low, high, (low + high) / 2, low - 1, f" +{high} ", f"{low}e0"]
        yield _values(domain_from_plain(plain, other), plain, other, [*numbers, *near, *WORDS])


def _values(domain: Domain, labels: Any, other: Any, values: list[Any]) -> dict[str, Any]:
    shown = sorted({v % domain.k for v in (0, 1, 2, domain.k // 2, -2, -1)})
    return {
        "labels": labels,
        "other": other,
        "k": domain.k,
        "texts": {str(v): domain.text(v) for v in shown},
        "values": [[value, _index(domain, value)] for value in values],
    }


def _index(domain: Domain, value: Any) -> int | str | None:
    """The index, None for a value outside, "missing" for what is no value."""
    try:
        return domain.index(value)
    except DomainError:
        return "missing"


def _decimal(edge: Fraction, more: int) -> str:
    """40 decimals of a number, cut off, and the last one raised by ``more``."""
    digits = abs(edge) * 10**40 // 1 + more
    text = str(digits).rjust(41, "0")
    return ("-" if edge < 0 else "") + f"{text[:-40]}.{text[-40:]}"
