"""Large answers hold neither the interpreter nor the memory of the collector."""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from collecting import campaign
from loloha.collector import answer
from loloha.collector.answer import InPieces, Outgoing, cut, in_pieces
from loloha.collector.quota import Quota
from loloha.collector.stored_campaign import ComputedLabels


class Document(msgspec.Struct):
    name: str
    column: Any
    absent: Any = msgspec.UNSET
    more: Any = None


@pytest.mark.parametrize("numbers", [1, 3, 50_000])
@pytest.mark.parametrize("size", [1, 20, 1 << 18])
def test_pieces_are_the_whole(monkeypatch: pytest.MonkeyPatch, numbers: int, size: int) -> None:
    monkeypatch.setattr(answer, "_NUMBERS", numbers)
    monkeypatch.setattr(answer, "PIECE_BYTES", size)
    labels = ComputedLabels(campaign(), 5)
    floats = np.array([0.1, np.nan, -1e-300, 5.0])
    for column in (
        floats, np.arange(7), np.zeros(0), ["a", 'b"', "ü"], [], [1, 2],
        [floats, None, floats[:1]], [None, floats], [None, None], labels,
    ):  # fmt: skip
        plain = list(map(plainly, column.tolist() if isinstance(column, np.ndarray) else column))
        pieces = list(in_pieces(Document('"', column, more={"x": 1})))
        assert b"".join(pieces) == msgspec.json.encode(Document('"', plain, more={"x": 1}))
        assert max(map(len, pieces)) <= size


def plainly(one: Any) -> Any:
    return one.tolist() if isinstance(one, np.ndarray) else one


def sent(one: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    asyncio.run(one({"type": "http", "client": ("192.0.2.1", 1)}, None, send))
    return messages


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("beyond", [0, 1])
def test_a_large_answer_is_charged_for_before_it_begins(at_once: bool, beyond: int) -> None:
    size = answer.PIECE_BYTES + beyond
    charged: list[float] = []
    rate: Any = SimpleNamespace(charge=lambda _, cost: charged.append(cost))
    bodies = [b"x" * size] if at_once else [b"x" * (size - 7), b"x" * 7]

    async def app(scope: Any, _: None, send: Any) -> None:
        out = Outgoing(rate, Quota(4 * size * beyond, "answers must be read"), {}, scope, send)
        headers = [(b"content-length", b"%d" % size)]
        await out.send({"type": "http.response.start", "status": 203, "headers": headers})
        assert not out.has_begun
        for left, body in enumerate(bodies, 1 - len(bodies)):
            await out.send({"type": "http.response.body", "body": body, "more_body": left < 0})
        assert (out.has_begun, out.status) == (True, 203)

    start, *parts = sent(app)
    assert start["status"] == 203
    assert sum(len(part["body"]) for part in parts) == size
    assert max(len(part["body"]) for part in parts) <= answer.PIECE_BYTES
    assert charged == [size / answer.BYTES_A_REQUEST] * beyond


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 25])
def test_answers_go_out_in_pieces(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(answer, "PIECE_BYTES", 10)
    quota = Quota(100, "answers must be read; come back")
    start, *parts = sent(InPieces(quota, cut(b"x" * size), "text/plain", "a.txt"))
    assert start["status"] == 200
    assert (b"content-length", str(size).encode()) in start["headers"]
    assert b"".join(part["body"] for part in parts) == b"x" * size
    assert max(len(part["body"]) for part in parts) <= 10
    assert [part["more_body"] for part in parts] == [True] * (len(parts) - 1) + [False]
    assert quota.taken == 0


def test_answers_that_wait_for_their_readers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "PIECE_BYTES", 10)
    quota = Quota(100, "answers must be read; come back")
    with quota.reserve("192.0.2.2") as other:
        other.grow(60)
        assert sent(InPieces(quota, [b"x" * 41], "text/plain"))[0]["status"] == 503
        assert sent(InPieces(quota, [b"x" * 40], "text/plain"))[0]["status"] == 200
        # Small ones always pass.
        other.grow(40)
        assert sent(InPieces(quota, [b"x" * 10], "text/plain"))[0]["status"] == 200

    async def gone(_: object) -> None:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        asyncio.run(InPieces(quota, [b"x" * 20], "text/plain")({"type": "http"}, None, gone))
    assert quota.taken == 0
