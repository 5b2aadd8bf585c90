"""Requests to a collector, with retries and bounded waits. Standard library only."""

from __future__ import annotations

import http.client
import io
import json
import random
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from socket import gaierror, socket
from typing import Any, Self

from loloha.errors import LolohaError, ParameterError
from loloha.sender.url import split

_LARGEST_ANSWER = 64 << 20
_LONGEST_DETAIL = 300
_STEP = 1 << 16
_REQUEST_STEPS = 6
_BUSY = frozenset((429, 500, 502, 503, 504))
_LONGEST_WAIT = 1e9
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DATE = re.compile(
    rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\d\d) ({'|'.join(_MONTHS)}) ([1-9]\d{{3}}) "
    r"(\d\d):(\d\d):(\d\d) GMT",
    re.ASCII,
)


class Unreachable(LolohaError):
    """The collector did not answer, or asked to retry, until the time-out.

    Attributes
    ----------
    address : str
        Host and port that were asked, for whoever typed them; no part of the message, which an
        application may log.
    """

    address: str = ""


@dataclass(frozen=True)
class Answer:
    """An answer of a collector."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON data in UTF-8; None if it is none."""
        try:
            return json.loads(self.body.decode())
        except (ValueError, RecursionError):
            return None

    @property
    def detail(self) -> str:
        """The detail of a problem document as a short line without control characters."""
        plain = self.json()
        detail = plain.get("detail") if isinstance(plain, dict) else None
        if not isinstance(detail, str) or not detail:
            return f"the collector must send a receipt or a reason, it answered {self.status} alone"
        shown = "".join(c if c.isprintable() else " " for c in detail[: _LONGEST_DETAIL + 1])
        return shown if len(detail) <= _LONGEST_DETAIL else f"{shown[:_LONGEST_DETAIL]}..."


@dataclass(frozen=True)
class Patience:
    """How often to try, and how long to wait in between."""

    attempts: int = 5
    first: float = 0.5
    longest: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random

    def wait(self, failed: int, asked: float | None) -> None:
        """Wait after the ``failed``-th failure; at least as long as it was asked for."""
        drawn = self.chance() * min(self.longest, self.first * 2.0 ** (failed - 1))
        self.sleep(max(drawn, min(self.longest, asked or 0.0)))


def is_token(text: Any) -> bool:
    """Whether a header carries it: ASCII characters that print, not spaces alone."""
    return isinstance(text, str) and text.isascii() and text.isprintable() and text.strip() != ""


Begin = Callable[[Callable[[], None]], None]


def _at_once(send: Callable[[], None]) -> None:
    send()


class Connection:
    """A connection to one collector, opened when it is needed and again when it breaks.

    Use as a context manager, or close it.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 10.0,
        patience: Patience | None = None,
    ) -> None:
        self._url = split(url)
        if token is not None and not is_token(token):
            # http.client would quote it in its error.
            raise ParameterError(
                "token must be visible ASCII characters, got others, perhaps the end of a line; "
                "set it again without them"
            )
        self._token = token
        self._timeout = timeout
        self._patience = patience or Patience()
        self._open: http.client.HTTPConnection | None = None

    def get(self, path: str) -> Answer:
        """GET a path."""
        return self.request("GET", path)

    def post(self, path: str, body: bytes, media: str, begin: Begin = _at_once) -> Answer:
        """POST a body of a media type; safe to repeat, as everything a collector takes is.

        ``begin(send)`` begins each attempt, once there is a connection, and may refuse to.
        """
        return self.request("POST", path, body, {"Content-Type": media}, begin=begin)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        once: bool = False,
        begin: Begin = _at_once,
    ) -> Answer:
        """Send a request until the answer is not "retry later", or ``once``."""
        sent = {"Accept": "application/json", **(headers or {})}
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        reason = ""
        attempts = 1 if once else self._patience.attempts
        for attempt in range(1, attempts + 1):
            asked = None
            try:
                answer = self._once(method, path, body, sent, begin)
            except ssl.SSLCertVerificationError as error:
                self.close()
                raise Unreachable(_distrusted(error)) from error
            except (OSError, http.client.HTTPException) as error:
                self.close()
                reason = f"answer, got {_cause(error)}"
            else:
                if answer.status not in _BUSY:
                    return answer
                asked = seconds_asked(answer.headers, time.time())
                reason = f"take the request, it said: {answer.detail}"
            if attempt < attempts:
                self._patience.wait(attempt, asked)
        failed = Unreachable(f"collector must {reason}")
        failed.address = self._url.netloc
        raise failed

    def close(self) -> None:
        """Close the connection; the next request opens it again."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], begin: Begin
    ) -> Answer:
        if self._open is None:
            self._open = self._connect()
        if self._open.sock is None:
            self._open.connect()
        self._open.sock.settimeout(self._timeout)
        until = time.monotonic() + _REQUEST_STEPS * self._timeout
        self._open.response_class = partial(TimedResponse, until, self._timeout)  # type: ignore[assignment]
        begin(partial(self._open.request, method, path, body, dict(headers)))
        response = self._open.getresponse()
        content = _body(response)
        fields: dict[str, str] = {}
        for name, value in response.getheaders():
            # Repeated headers are one list.
            fields[name.lower()] = ", ".join(filter(None, (fields.get(name.lower()), value)))
        if response.will_close:
            self.close()
        return Answer(response.status, fields, content)

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=context)
        return http.client.HTTPConnection(host, port, timeout=self._timeout)

    def __repr__(self) -> str:
        return f"Connection({self._url.scheme}://{self._url.hostname})"


class _Timed(io.RawIOBase):
    """Reads from a socket with a total deadline, against slow trickles."""

    def __init__(self, raw: io.RawIOBase, sock: socket, until: float, timeout: float) -> None:
        self._raw, self._socket = raw, sock
        self._until, self._timeout = until, timeout

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("answer must be whole in time")
        self._socket.settimeout(min(self._timeout, left))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class TimedResponse(http.client.HTTPResponse):
    """A response that must be whole by a moment, its headers included."""

    def __init__(self, until: float, timeout: float, sock: socket, **options: Any) -> None:
        super().__init__(sock, **options)
        self.fp.close()
        raw = sock.makefile("rb", buffering=0)
        self.fp = io.BufferedReader(_Timed(raw, sock, until, timeout))


def _body(response: http.client.HTTPResponse) -> bytes:
    """The complete body: a short one is an error."""
    parts, size = [], 0
    while part := response.read(_STEP):
        parts.append(part)
        size += len(part)
        if size > _LARGEST_ANSWER:
            raise http.client.HTTPException("answer too large")
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(parts)


def _cause(error: Exception) -> str:
    """Why there is no answer, and what to do."""
    if isinstance(error, ConnectionRefusedError):
        return "no program that listens at its address; is `loloha serve` running?"
    if isinstance(error, gaierror):
        return "an unknown host; correct the address, or check the network"
    if isinstance(error, TimeoutError):
        return "nothing in time; try again later"
    return f"{type(error).__name__}; try again later"


def _distrusted(error: ssl.SSLCertVerificationError) -> str:
    return (
        f"collector must show a certificate that this device trusts, got: {error.verify_message}; "
        "for a private authority name its certificate in the variable SSL_CERT_FILE, else check "
        "the address and the clock"
    )


def seconds_asked(headers: Mapping[str, str], now: float) -> float | None:
    """How long `Retry-After` asks to wait, in seconds or by a date (RFC 9110); None for neither."""
    text = headers.get("retry-after", "").strip(" \t")
    if text.isascii() and text.isdigit():
        return min(float(text), _LONGEST_WAIT)
    until = _moment(text)
    if until is None:
        return None
    begin = _moment(headers.get("date", "").strip(" \t"))
    return min(max(until - (now if begin is None else begin), 0.0), _LONGEST_WAIT)


def _moment(text: str) -> float | None:
    """Unix seconds of a date in the one form that may still be sent, None for another text."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    day, month, year, hour, minute, second = match.groups()
    try:
        date = datetime(
            int(year), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), int(second),
            tzinfo=UTC,
        )  # fmt: skip
    except ValueError:
        return None
    return date.timestamp()
