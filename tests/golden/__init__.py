"""What must not change by accident: numbers, documents and texts that others hold or compare.

``python -m golden`` in tests/ writes them anew; the difference is then part of the change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

import loloha
from laws.variants import FLAGSHIP, variants_of
from loloha.campaign import Campaign, Labels, Schedule
from loloha.protocols import REGISTRY, Protocol

FOLDER = Path(__file__).parent
PLANS = [
    {"k": k, "n": n, "eps_inf": eps_inf, "eps_1": eps_1}
    for k, n, eps_inf, eps_1 in (
        (2, 1000, 1.0, 0.5),
        (10, 50_000, 5.0, 3.0),
        (96, 50_000, 2.0, 1.0),
        (96, 1000, 5.0, 3.0),
        (1412, 10_000, 4.0, 2.0),
        (1 << 20, 10_000_000, 2.0, 1.0),
    )
]


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _rounded(data: Any) -> Any:
    """The same to 12 digits: what every machine computes alike."""
    if isinstance(data, float):
        return float(f"{data:.12g}")
    if isinstance(data, dict):
        return {name: _rounded(value) for name, value in data.items()}
    return [_rounded(value) for value in data] if isinstance(data, list | tuple) else data


def _text(data: Any) -> str:
    return json.dumps(_rounded(data), indent=1, sort_keys=True) + "\n"


def _flagship(cls: type[Protocol]) -> Protocol:
    asked = {one.name for one in fields(cls) if one.init and one.default is not None}
    return cls(**{name: value for name, value in FLAGSHIP.items() if name in asked})


def flagships() -> list[Protocol]:
    """One protocol of each name that this package has."""
    return [_flagship(cls) for cls in REGISTRY.own.values()]


def numbers() -> str:
    """Fingerprint, thresholds and numbers of every variant."""
    return _text(
        {
            str(variant): {
                "fingerprint": (rules := variant.build()).fingerprint[:16],
                "channels": [repr(rules.first_channel), repr(rules.second_channel)],
                "numbers": rules.numbers,
            }
            for cls in REGISTRY.own.values()
            for variant in variants_of(cls)
        }
    )


def populations() -> str:
    """Counts of seeded populations, as the bytes of their tallies."""
    values = np.random.default_rng(5).integers(0, 11, size=(700, 3))
    values[::7, 1] = -1
    return _text(
        {
            rules.name: {
                "tallies": [_short(tally.to_bytes()) for tally in result.tallies],
                "n": result.n.tolist(),
                "loss": float(result.loss.sum()),
            }
            for rules in flagships()
            for result in [loloha.simulate(rules, values, rng=11)]
        }
    )


def plans(count: int = len(PLANS)) -> str:
    """What is recommended, and every row's numbers, of so many surveys."""
    return _text({json.dumps(asked): loloha.plan(**asked).to_dict() for asked in PLANS[:count]})


def campaigns() -> str:
    """Documents of one campaign for each protocol, with their fingerprints."""
    labels, daily = Labels(tuple("abcdefghijk")), Schedule(0, 86_400)
    made = [
        Campaign(name="Golden", protocol=rules, domain=labels, schedule=daily)
        for rules in flagships()
    ]
    return _text({one.protocol.name: [one.fingerprint, one.to_dict()] for one in made})


def statements() -> str:
    """The SQL of every protocol in every dialect."""
    from loloha.engines import sql
    from loloha.engines.dialect import DIALECTS

    return "\n\n".join(
        f"-- {rules.name} in {dialect}\n" + sql.statement(rules, dialect, "reports", total=True)
        for rules in flagships()
        for dialect in DIALECTS
    )


def openapi() -> str:
    """The collector's OpenAPI document."""
    from loloha.collector.service import create_app
    from loloha.collector.settings import Settings

    return _text(create_app(Settings(store="sqlite://")).openapi())


def report_schema() -> str:
    """The schema of a report that the package ships, of the struct that the collector reads."""
    import msgspec

    from loloha.wire.text import Message

    about = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    about["$id"] = "urn:loloha:schema:report"
    return _text(about | msgspec.json.schema(Message)["$defs"][Message.__name__])


GOLDEN: dict[str, Callable[[], str]] = {
    "numbers.json": numbers,
    "populations.json": populations,
    "plans.json": plans,
    "campaigns.json": campaigns,
    "statements.sql": statements,
    "openapi.json": openapi,
    "../../src/loloha/conform/schema/report.json": report_schema,
}
"""What each file in this folder holds."""
