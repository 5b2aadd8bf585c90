"""A device that reports to a collector over HTTP."""

from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")


from collecting import HOUR, campaign
from loloha.sender.sender import Patience
from serving import create, get

ONCE = Patience(attempts=1)


def address(url: str, one: Any = None, **terms: Any) -> str:
    wanted = {"minimum_cohort": 1, "late_seconds": HOUR, **terms}
    return url + create(url, one or campaign(), terms=wanted)


def rounds(address: str) -> list[tuple[int, int, int]]:
    url, _, path = address.partition("/v1/")
    found = get(url, f"/v1/{path}/rounds").json()["rounds"]
    return [(one["round"], one["n"], one["duplicates"]) for one in found]
