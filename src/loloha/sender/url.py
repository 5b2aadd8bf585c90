"""Addresses of collectors and their campaigns: taken as they are written, or refused."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import SplitResult, urlsplit

from loloha.errors import ParameterError

# What a browser's reader of addresses leaves as it is; others it mends, and asks elsewhere.
_LABEL = r"(?:[A-Za-z0-9_-]|[^\0-\x7f\s]){1,63}"
_PATH = r"(?:/(?!(?:\.|%2[Ee]){1,2}(?:/|\Z))[A-Za-z0-9_.~!$&'()*+,;=:@%-]*)*"
_URL = re.compile(
    rf"(?i:https?)://(\[[0-9A-Fa-f:.]+\]|(?:{_LABEL}\.)*{_LABEL}\.?)(?::[0-9]{{1,5}})?{_PATH}"
)
_NUMBER = re.compile(r"(?:^|\.)(?:[0-9]+|0[Xx][0-9A-Fa-f]*)\.?\Z", re.ASCII)
_ADDRESS = re.compile(r"(?:https?|HTTPS?)://.*/v1/campaigns/([0-9a-f]{64})/*")


def path_of(url: str) -> str:
    """The path of a URL, without a slash at its end."""
    return split(url).path.rstrip("/")


def split(url: str) -> SplitResult:
    """The parts of the URL of a collector, or of something that it has."""
    match = _URL.fullmatch(str(url))
    try:
        parts = urlsplit(match[0] if match else "")
        known = match is not None and parts.port != 0 and _is_host(match[1])
    except ValueError:
        known = False
    if not known:
        raise ParameterError(
            "url must be http://HOST or https://HOST, without a user name, got another; correct it"
        )
    return parts


def can_be_asked(url: str) -> bool:
    """Whether it is a URL, which may have a query."""
    place, _, query = url.partition("?")
    try:
        split(place)
    except ParameterError:
        return False
    return re.fullmatch("[!-~]*", query) is not None


def _is_host(host: str) -> bool:
    """Whether a name is an address that is written in the usual way, or can be looked up."""
    if host.startswith("["):
        return bool(IPv6Address(host[1:-1]))
    if _NUMBER.search(host):
        return bool(IPv4Address(host))
    return bool(host.encode("idna"))


def fingerprint_of(url: str) -> str:
    """The fingerprint that the address of a campaign ends with."""
    match = _ADDRESS.fullmatch(url) if path_of(url) else None
    if match is None:
        raise ParameterError(
            "url must be https://HOST/v1/campaigns/FINGERPRINT, got another; copy the address"
        )
    return match[1]


def address_of(url: str) -> str:
    """The address of a campaign as it is stored: without slashes at its end."""
    fingerprint_of(url)
    return url.rstrip("/")
