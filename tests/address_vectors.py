"""Golden vectors of addresses: which a device takes, and how it stores them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loloha.errors import ParameterError
from loloha.sender.url import address_of

END = "/v1/campaigns/" + "0a" * 32
HOSTS = (
    "c", "C.example", "c.", "a_b-c", "127.0.0.1", "[::1]", "xn--bcher-kva.example",
    "b\u00fccher.example", "c:80", "c:65535", "", ".", "a..b", ".a", "a" * 63, "a" * 64, "c:0",
    "c:65536", "c:x", "c:", "u@c", "u:p@c", "c d", " c", "c\t", "c\n", "c\0", "c\\", "c%20", "c<",
    "c|", "c^", "c!", "1.2.3.256", "1.2.3", "01.2.3.4", "0x7f.1", "1.2.3.4.", "c.0x", "c.7",
    "[::1", "[::1%25e]", "[c]", "[1.2.3.4]", "*",
)  # fmt: skip
PATHS = (
    "", "/a", "/a/", "//a", "/a%20b", "/~a.b_c-d", "/a:b@c", "/..", "/a/..", "/.", "/%2e%2E",
    "/...", "/.a", "/a b", "/\u00fc", "/a?b", "/a#b", "/a\\b", "/<", "/a\n", "/{a}",
)  # fmt: skip
SCHEMES = (
    "http://",
    "https://",
    "HTTP://",
    "HTTPS://",
    "Http://",
    "ftp://",
    "//",
    "",
    "http:/",
    " http://",
)


def address_vectors() -> Iterator[dict[str, Any]]:
    """Each text, and the address that is stored, null where it is refused."""
    for scheme in SCHEMES:
        yield vector(f"{scheme}c{END}")
    for host in HOSTS:
        yield vector(f"https://{host}{END}")
    for path in PATHS:
        yield vector(f"https://c{path}{END}")
    for end in ("/", "//", "/document", "?", "#", " ", "\n", "/ ", "/.", "0", "A"):
        yield vector(f"https://c{END}{end}")
    for end in (END[:-1], END.upper(), END[3:], "/v1/campaigns/", ""):
        yield vector(f"https://c{end}")


def vector(text: str) -> dict[str, Any]:
    """A text, and its address."""
    try:
        return {"text": text, "address": address_of(text)}
    except ParameterError:
        return {"text": text, "address": None}
