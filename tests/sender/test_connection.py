"""How a device waits, tries again and gives up."""

import random
import socket
from socket import gaierror
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")


from loloha.errors import LolohaError, ParameterError
from loloha.sender.connection import Connection, Patience, Unreachable
from sending import ONCE
from serving import answering


def patience(waits: list[float], attempts: int = 4, chance: float = 1.0) -> Patience:
    return Patience(
        attempts=attempts, first=1.0, longest=3.0, sleep=waits.append, chance=lambda: chance
    )


# -- patience


def test_it_tries_again_with_longer_waits_and_the_same_bytes() -> None:
    waits: list[float] = []
    busy = (503, {}, b"{}")
    with (
        answering([None, busy, None, (200, {}, b'{"accepted":1}')]) as (url, seen),
        Connection(url, patience=patience(waits)) as connection,
    ):
        answer = connection.post("/x", b"the bytes", "text/plain")
        assert answer.json() == {"accepted": 1}
    assert waits == [1.0, 2.0, 3.0]
    assert seen == [("/x", b"the bytes")] * 4


def test_waits_are_drawn_so_that_devices_do_not_come_back_together() -> None:
    waits: list[float] = []
    with (
        answering([(503, {}, b"")]) as (url, _),
        Connection(url, patience=patience(waits, chance=0.25)) as connection,
        pytest.raises(Unreachable, match="503"),
    ):
        connection.get("/x")
    assert waits == [0.25, 0.5, 0.75]


@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        ("2", 2.0), ("100", 3.0), ("9" * 400, 3.0), ("Fri, 31 Dec 9999 23:59:59 GMT", 3.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0), ("-1", 0.0), ("nan", 0.0), ("soon", 0.0),
        ("0x10", 0.0), ("1.5", 0.0), ("1e3", 0.0),
    ],
)  # fmt: skip
def test_it_waits_as_long_as_it_was_asked_within_reason(asked: str, waited: float) -> None:
    waits: list[float] = []
    answers = [(429, {"retry-after": asked}, b""), (200, {}, b"")]
    with (
        answering(answers) as (url, _),
        Connection(url, patience=patience(waits, chance=0.0)) as connection,
    ):
        assert connection.get("/x").status == 200
    assert waits == [waited]


def test_an_absent_collector_is_reported_without_the_address() -> None:
    with Connection("http://127.0.0.1:9", patience=ONCE) as nobody:
        with pytest.raises(Unreachable, match="loloha serve") as caught:
            nobody.get("/x")
        assert isinstance(caught.value, LolohaError)
        assert "127" not in str(caught.value)
    assert "secret" not in repr(Connection("http://h/x", token="secret"))


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (socket.gaierror(-2, "odd"), "unknown host"),
        (TimeoutError(), "in time"),
        (ConnectionResetError(), "ConnectionResetError"),
    ],
)
def test_why_nothing_was_answered_is_said(
    failure: OSError, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise failure

    monkeypatch.setattr("socket.getaddrinfo", fail)
    with (
        Connection("http://nobody.invalid", patience=ONCE) as nobody,
        pytest.raises(Unreachable, match=says),
    ):
        nobody.get("/x")


@pytest.mark.parametrize(
    "url", ["", "x", "http://", "ftp://h", "http://u:p@h", "http://h:0", "http://h:99999", None, 3]
)
def test_bad_addresses_are_refused(url: Any) -> None:
    with pytest.raises(ParameterError, match="url must"):
        Connection(url)


@pytest.mark.parametrize("seed", range(2))
def test_any_text_is_an_address_or_refused(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is taken can be looked up, and asked: a host with an empty part cannot."""

    def lookup(host: str, *_: Any) -> None:
        host.encode("idna")
        raise gaierror("no such host")

    monkeypatch.setattr("socket.getaddrinfo", lookup)
    parts = [
        *"ab.-_/:@?#%[]\\\t\n\0 \x7f\x85*<|\u00e9\u3002\uff11\u200d\udcff0",
        "::1",
        "xn--",
        "a" * 64,
    ]
    drawn, asked = random.Random(seed), 0
    for _ in range(2000):
        text = "http://" + "".join(drawn.choices(parts, k=drawn.randint(1, 5)))
        try:
            connection = Connection(text, patience=ONCE)
        except ParameterError:
            continue
        asked += 1
        with connection, pytest.raises(Unreachable):
            connection.get("/x")
    assert asked > 50


def test_redirections_are_not_followed() -> None:
    answers = [(302, {"location": "/elsewhere"}, b"")]
    with answering(answers) as (url, seen), Connection(url, patience=ONCE) as connection:
        assert connection.post("/x", b"y", "text/plain").status == 302
    assert len(seen) == 1
