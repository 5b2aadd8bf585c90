"""What never leaves the device: no value, key or memo in an error, a repr or a pickle."""

import copy
import pickle
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laws.variants import FLAGSHIPS, Variant
from loloha.client.client import STORED_ROUNDS, Client
from loloha.client.seal import checksum
from loloha.errors import LolohaError
from loloha.protocols import Protocol
from loloha.report import Report
from loloha.rng import SimulationRng

every_protocol = pytest.mark.parametrize("variant", FLAGSHIPS, ids=str)


class Sentinel:
    """Of no type that a value may have, and quick to tell its secret."""

    def __repr__(self) -> str:
        return "SENTINEL"


SIZE = 10_007
VALUE, OUTSIDE, KEY = 9_973, 9_876_543_211, 9_967


def forged(state: dict[str, Any], field: str, junk: Any) -> dict[str, Any]:
    """A state with another field, under a checksum that fits."""
    body = {**state, field: junk}
    del body["checksum"]
    return {**body, "checksum": checksum(body)}


def enlarged(variant: Variant) -> Any:
    """The protocol over a domain whose values look like nothing else."""
    return type(variant.build())(**{**variant.build().get_params(), "k": SIZE})


def texts_of(error: BaseException) -> str:
    """All that a traceback or a log would show of an error."""
    return "".join(traceback.format_exception(error)) + repr(error) + str(error.args)


def refusals(protocol: Protocol, path: Path) -> Iterator[Callable[[], Any]]:
    """Everything that can go wrong with one user's secrets at hand."""
    client = protocol.client(rng=SimulationRng(2))
    report = client.report(VALUE, round=0)
    for wrong in (OUTSIDE, -OUTSIDE, Sentinel(), "SENTINEL", b"SENTINEL", [VALUE], float(VALUE)):
        yield lambda wrong=wrong: client.report(wrong, round=1)
        yield lambda wrong=wrong: protocol.check_value(wrong)
        yield lambda wrong=wrong: protocol.client(key=wrong)
    yield lambda: client.report(VALUE, round=-1)
    if not protocol.longitudinal:
        limited = protocol.client(limit=protocol.asked_memo)
        yield lambda: [limited.report(VALUE, round=round) for round in range(9000)]
    old = protocol.client(rng=SimulationRng(3))
    yield lambda: [
        old.report(VALUE, round=round) for round in [*range(STORED_ROUNDS + 1, 0, -1), 1]
    ]
    yield lambda: pickle.dumps(client)
    yield lambda: copy.deepcopy(client)
    state = client.to_dict()
    for field in state:
        for junk in (VALUE, "SENTINEL", [VALUE], Sentinel(), [[VALUE, VALUE]]):
            yield lambda field=field, junk=junk: Client.from_dict({**state, field: junk})
            yield lambda field=field, junk=junk: Client.from_dict(forged(state, field, junk))
    yield lambda: Client.from_dict([VALUE, "SENTINEL"])  # type: ignore[arg-type]
    path.write_text("SENTINEL")
    yield lambda: Client.load(path)
    tally = protocol.tally()
    for y in (OUTSIDE, b"SENTINEL", "SENTINEL", None):
        yield lambda y=y: tally.add(Report(report.key, y))
    for key in (OUTSIDE, (OUTSIDE,), "SENTINEL"):
        yield lambda key=key: tally.add(Report(key, report.y))
        yield lambda key=key: tally.update(np.array([OUTSIDE]), np.array([OUTSIDE]))


@every_protocol
def test_no_error_shows_a_value_key_or_memo(variant: Variant, tmp_path: Path) -> None:
    protocol = enlarged(variant)
    seen = 0
    for provoke in refusals(protocol, tmp_path / "state.json"):
        try:
            provoke()
        except (LolohaError, TypeError) as error:
            seen += 1
            said = texts_of(error)
            for secret in (str(VALUE), str(OUTSIDE), "SENTINEL'", "SENTINEL\n"):
                assert secret not in said, said
    assert seen > 80


@every_protocol
def test_no_repr_or_pickle_shows_what_a_client_holds(variant: Variant) -> None:
    protocol = enlarged(variant)
    key = None
    if protocol.encoding.kind == "keyed symbol" and protocol.longitudinal:
        key = KEY if protocol.encoding.is_key(KEY) else KEY << 31 | KEY
    client = protocol.client(key=key, rng=SimulationRng(6))
    report = client.report(VALUE, round=0)
    tally = protocol.tally()
    tally.add(report)
    shown = [repr(client), str(client), f"{client}", repr(report), str(report)]
    # Tools that print the variables of a traceback print what lies inside, too.
    shown += [repr(client._state), repr(client._state.record)]
    shown += [repr(protocol), repr(tally), str(pickle.dumps(protocol)), str(protocol.to_dict())]
    secrets = [str(VALUE), str(KEY), client.to_dict()["secret"], client.reporter(0)]
    if isinstance(report.y, bytes):
        secrets += [report.y.hex(), repr(report.y)]
    for text in shown:
        for secret in secrets:
            assert secret not in text
    assert repr(client) == f"Client({protocol!r}, state hidden)"
    assert not hasattr(client, "__dict__")
    assert sys.getsizeof(client) < 1000
