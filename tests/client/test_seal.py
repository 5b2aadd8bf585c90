"""What a state is made of, one by one: amounts, rows, and the checksum."""

import json
import math
from hashlib import sha256
from typing import Any

import pytest

from loloha.client.seal import amount, canonical, checksum, nothing_else, once, sealed, unseal
from loloha.errors import StateError


@pytest.mark.parametrize("plain", [0, 0.0, 1.5, 1 << 53, 1e300])
def test_an_amount_is_a_number_that_every_language_reads(plain: float) -> None:
    assert amount(plain) == plain


@pytest.mark.parametrize(
    "plain",
    [-1, -1e-9, (1 << 53) + 1, math.inf, math.nan, True, "1", None, [1.0], 10**400],
    ids=lambda plain: str(plain)[:9],
)
def test_what_is_no_amount_is_refused(plain: Any) -> None:
    with pytest.raises(ValueError, match="an amount must be a number >= 0"):
        amount(plain)


def test_no_row_replaces_another() -> None:
    assert once([("a", 1), ("b", 2)]) == {"a": 1, "b": 2}
    assert once([]) == {}
    with pytest.raises(ValueError, match="must differ"):
        once([("a", 1), ("b", 2), ("a", 1)])


def test_members_that_nobody_read_are_refused() -> None:
    nothing_else({})
    with pytest.raises(StateError, match="no members but those of its version"):
        nothing_else({"later": None})


def test_a_state_is_sealed_by_the_checksum_of_all_else() -> None:
    plain: dict[str, Any] = {"b": [1, 2.5], "a": "\u00fc"}
    assert canonical(plain) == '{"a":"\u00fc","b":[1,2.5]}'.encode()
    assert checksum(plain) == sha256(canonical(plain)).hexdigest()
    read = json.loads(sealed(plain))
    assert read == plain | {"checksum": checksum(plain)}
    damaged = json.loads(sealed(plain)) | {"a": "u"}
    unseal(read)
    assert read == plain
    unseal(read)
    with pytest.raises(ValueError, match="must match its checksum"):
        unseal(damaged)
