"""What a state is made of, one by one: amounts, rows, and the checksum."""

import json
import math
from hashlib import sha256
from typing import Any

import pytest

from loloha.client.seal import amount, canonical, checksum, must_be_whole, sealed, unseal
from loloha.errors import StateError


@pytest.mark.parametrize("plain", [0.0, 1.5, 2.0**53, 1e300])
def test_an_amount_is_a_number_that_every_language_reads(plain: float) -> None:
    assert amount(plain) == plain


@pytest.mark.parametrize(
    "plain",
    [0, 1 << 53, -1.0, -1e-9, math.inf, math.nan, True, "1", None, [1.0], 10**400],
    ids=lambda plain: str(plain)[:9],
)
def test_what_is_no_amount_is_refused(plain: Any) -> None:
    with pytest.raises(ValueError, match="an amount must be a number >= 0"):
        amount(plain)


def test_what_would_be_written_otherwise_is_refused() -> None:
    must_be_whole({"a": 1, "checksum": "0"}, {"checksum": "1", "a": 1})
    for other in ({"a": 1, "later": None}, {}, {"a": 1.0}, {"a": True}, {"a": [1]}):
        with pytest.raises(StateError, match="the members of its version"):
            must_be_whole(other, {"a": 1})


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
