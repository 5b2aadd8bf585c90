"""Golden vectors of answers: what settles a queued report, how long a collector asks to wait."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

JSON, PROBLEM, HTML = "application/json", "application/problem+json", "text/html"
MINE, OTHER = "0123456789abcdef" * 2, "f" * 32
FINAL = {
    "foreign_campaign": 409, "conflict": 409, "late": 410,
    "bad_reporter": 422, "bad_key": 422, "bad_y": 422, "bad_ticket": 422,
}  # fmt: skip
WAITING = {"early": 425, "malformed": 422, "unknown_version": 422, "tired": 422, "token": 401}


def receipt(**changes: Any) -> dict[str, Any]:
    """A collector's receipt for one report."""
    return {"accepted": 1, "duplicates": 0, "refused": [], "reporter": MINE, **changes}


def problem(reason: Any, status: Any, /, **changes: Any) -> dict[str, Any]:
    """A collector's refusal of one report."""
    plain = {
        "type": f"urn:loloha:problem:{reason}", "title": "The request failed", "status": status,
        "detail": "why not", "reason": reason, "reporter": MINE,
    }  # fmt: skip
    return {**plain, **changes}


def text(plain: Any) -> str:
    """JSON as a collector writes it."""
    return json.dumps(plain, separators=(",", ":"))


def without(plain: dict[str, Any], name: str) -> dict[str, Any]:
    """All members but one."""
    return {one: plain[one] for one in plain if one != name}


def _counted() -> Iterator[tuple[str, Any, str | bytes]]:
    yield "counted now", JSON, text(receipt())
    yield "counted before", JSON, text(receipt(accepted=0, duplicates=1))
    yield "spaces around it", JSON, " \t\r\n" + json.dumps(receipt(), indent=2) + "\n "
    yield "members of later releases", JSON, text(receipt(more={"a": [1.5, None, "\u20ac"]}))
    yield "a long number beside it", JSON, text(receipt())[:-1] + f',"more":{"9" * 5000}' + "}"
    yield "not only ASCII", JSON, json.dumps(receipt(note="é😀"), ensure_ascii=False)
    yield "a member twice, the last one counts", JSON, '{"accepted":7,' + text(receipt())[1:]
    yield "an escaped name", JSON, text(receipt()).replace("accepted", "\\u0061ccepted")
    yield "99 brackets beside it", JSON, text(receipt(more=[[]] * 97))
    for media in ("application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"):
        yield f"as {media}", media, text(receipt())


def _uncounted() -> Iterator[tuple[str, Any, str | bytes]]:
    for name in receipt():
        yield f"a receipt without {name}", JSON, text(without(receipt(), name))
        yield f"null for {name}", JSON, text(receipt(**{name: None}))
    for name in (OTHER, MINE.upper(), MINE + " ", "", 0, [MINE]):
        yield f"for the reporter {name!r}", JSON, text(receipt(reporter=name))
    for refused in ({}, "", False, 0, [[]], [None], [{"index": 0, "reason": "late"}]):
        yield f"refused: {text(refused)}", JSON, text(receipt(refused=refused))
    for counts in ((0, 0), (1, 1), (2, 0), (-1, 0), (True, False), ("1", "0"), ([1], [0])):
        body = text(receipt(accepted=counts[0], duplicates=counts[1]))
        yield f"counts {text(counts)}", JSON, body
    for one in ("1.0", "1e0", "10e-1", "+1", "01", "1.", "0x1"):
        yield f"{one} for one", JSON, text(receipt()).replace(":1,", f":{one},")
    yield "0.0 for none", JSON, text(receipt()).replace(":0,", ":0.0,")
    for coding in ("utf-16", "utf-16-le", "utf-32", "utf-8-sig"):
        yield f"in {coding}", JSON, text(receipt()).encode(coding)
    yield "not UTF-8", JSON, text(receipt(note="x")).encode().replace(b"x", b"\xff")
    yield (
        "half of a surrogate in UTF-8",
        JSON,
        (text(receipt(note="x")).encode().replace(b"x", b"\xed\xa0\x80")),
    )
    yield "NaN beside it", JSON, text(receipt(more=float("nan")))
    yield "Infinity beside it", JSON, text(receipt(more=float("inf")))
    yield "a control character", JSON, text(receipt(note="x")).replace("x", "\t")
    yield "half of it", JSON, text(receipt())[:30]
    yield "something behind it", JSON, text(receipt()) + "{}"
    yield "in a list", JSON, f"[{text(receipt())}]"
    yield "as text of JSON", JSON, text(text(receipt()))
    yield "a comment", JSON, text(receipt()) + "//"
    yield "a comma too many", JSON, text(receipt())[:-1] + ",}"
    yield "101 brackets", JSON, text(receipt(more=[[]] * 98))
    yield "deep", JSON, text(receipt())[:-1] + ',"more":' + "[" * 3000 + "]" * 3000 + "}"
    yield "longer than 65536 bytes", JSON, text(receipt()) + " " * (65_537 - len(text(receipt())))
    for body in ("", "null", "1", '"counted"', "[]", "{}", '{"ok":true}', "<html>Welcome!</html>"):
        yield f"the body {body!r}", JSON, body
    for media in (None, "", HTML, "text/plain", "text/json", "application/jsonp", PROBLEM,
                  "application/json, text/html", "text/html, application/json"):  # fmt: skip
        yield f"as {media}", media, text(receipt())


def _unrefused() -> Iterator[tuple[str, int, Any, str]]:
    late = problem("late", 410)
    for name in ("type", "status", "reason", "reporter"):
        yield f"a refusal without {name}", 410, PROBLEM, text(without(late, name))
        yield f"a refusal with null for {name}", 410, PROBLEM, text({**late, name: None})
    yield "a refusal of another report", 410, PROBLEM, text(problem("late", 410, reporter=OTHER))
    yield "another's problem", 410, PROBLEM, text(problem("late", 410, type="https://x.test/late"))
    yield "another reason", 410, PROBLEM, text(problem("late", 410, reason="conflict"))
    yield "a list for a reason", 410, PROBLEM, text(problem("late", 410, reason=["late"]))
    yield "an inherited reason", 410, PROBLEM, text(problem("constructor", 410))
    yield "another status", 410, PROBLEM, text(problem("late", 409))
    yield "a status as text", 410, PROBLEM, text(problem("late", "410"))
    yield "a status with a point", 410, PROBLEM, text(late).replace("410", "410.0")
    for status in (200, 399, 500, 503):
        yield f"a refusal with {status}", status, PROBLEM, text(problem("late", status))
    yield "a refusal as JSON", 410, JSON, text(late)
    yield "a refusal as text", 410, HTML, text(late)
    for reason, status in WAITING.items():
        yield reason, status, PROBLEM, text(problem(reason, status))
    for status in (200, 204, 302, 401, 404, 407, 410, 422, 429, 500, 502, 503):
        yield f"nothing with {status}", status, None, ""
    for status in (201, 202, 203, 206, 404, 410, 503):
        yield f"a receipt with {status}", status, JSON, text(receipt())


# What stands in Retry-After, what in Date, what the device's clock says, how many seconds to wait.
NOON = 784_123_200  # Sun, 06 Nov 1994 12:00:00 GMT
SUNDAY = "Sun, 06 Nov 1994 {} GMT"
SECONDS: list[tuple[Any, Any, float, float | None]] = [
    *((text, None, NOON, seconds) for text, seconds in (
        ("0", 0), ("1", 1), ("120", 120), ("007", 7), ("1000000000", 10**9),
        ("1000000001", 10**9), ("9" * 30, 10**9), ("9" * 5000, 10**9), (" 5\t", 5),
        (None, None), ("", None), ("0x10", None), ("1.5", None), ("1.0", None), ("-1", None),
        ("-0", None), ("+5", None), ("1e3", None), ("5s", None), ("5 5", None), ("1, 2", None),
        ("1_0", None), ("Infinity", None), ("NaN", None), ("\u0665", None), ("soon", None),
        (SUNDAY.format("12:00:30"), 30), (SUNDAY.format("11:59:00"), 0),
        ("Mon, 07 Nov 1994 12:00:00 GMT", 86_400), ("Fri, 06 Nov 1994 12:00:30 GMT", 30),
        ("Thu, 29 Feb 1996 12:00:00 GMT", 41_472_000), ("Fri, 31 Dec 9999 23:59:59 GMT", 10**9),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Wed, 29 Feb 1995 12:00:00 GMT", None), ("Sun, 31 Nov 1994 12:00:30 GMT", None),
        (SUNDAY.format("24:00:00"), None), (SUNDAY.format("12:60:00"), None),
        (SUNDAY.format("12:00:60"), None), (SUNDAY.format("12:00:30").lower(), None),
        ("Sun, 06 Nov 1994 12:00:30 UTC", None), ("Sun, 06 Nov 1994 12:00:30 +0000", None),
        ("Sun, 6 Nov 1994 12:00:30 GMT", None), ("Sun, 06 Nov 94 12:00:30 GMT", None),
        ("Sunday, 06-Nov-94 12:00:30 GMT", None), ("Sun Nov  6 12:00:30 1994", None),
        ("1994-11-06T12:00:30Z", None), ("06 Nov 1994 12:00:30 GMT", None),
        ("Sun, 00 Nov 1994 12:00:30 GMT", None), ("Sun, 06 Nov 12024 12:00:30 GMT", None),
        *((f"Sun, 06 Nov {year} 12:00:30 GMT", None) for year in ("0000", "0001", "0094", "0999")),
        ("Thu, 06 Nov 1000 12:00:30 GMT", 0),
    )),
    # A device's clock may be wrong: the answer's own comes first.
    (SUNDAY.format("12:00:30"), SUNDAY.format("12:00:00"), 0.0, 30),
    (SUNDAY.format("12:00:30"), SUNDAY.format("12:00:00"), 2.0**40, 30),
    (SUNDAY.format("12:00:30"), SUNDAY.format("12:01:00"), NOON, 0),
    (SUNDAY.format("12:00:30"), "now", NOON, 30),
    (SUNDAY.format("12:00:30"), None, NOON + 0.25, 29.75),
    ("40", SUNDAY.format("12:00:00"), 0.0, 40),
]  # fmt: skip


def answer_vectors() -> Iterator[dict[str, Any]]:
    """Answers to one report and what becomes of it; then what `Retry-After` asks for."""
    for what, media, body in _counted():
        yield _answer(what, 200, media, body, "counted")
    for reason, status in FINAL.items():
        yield _answer(reason, status, PROBLEM, text(problem(reason, status)), "refused")
    for what, media, body in _uncounted():
        yield _answer(what, 200, media, body, "waiting")
    for what, status, media, body in _unrefused():
        yield _answer(what, status, media, body, "waiting")
    for header, date, now, seconds in SECONDS:
        yield {"retry_after": header, "date": date, "now": now, "seconds": seconds}


def _answer(what: str, status: int, media: Any, body: str | bytes, fate: str) -> dict[str, Any]:
    encoded = body if isinstance(body, bytes) else body.encode()
    return {
        "what": what, "status": status, "content_type": media, "reporter": MINE,
        "fate": fate, "body": encoded.hex(),
    }  # fmt: skip
