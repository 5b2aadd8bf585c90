"""Write the golden vectors under tests/vectors: what ports in other languages must reproduce.

Run it as ``python tests/make_vectors.py`` after adding a protocol. Published vectors never change:
a difference in an old line means that old reports would be read wrongly.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from laws.variants import FLAGSHIPS
from loloha.rules.channels import BitChannel, SymbolChannel
from loloha.rules.hashing import FAMILIES, MERSENNE_31, HashFamily
from loloha.rules.report import Answer, Key
from loloha.rules.rng import SCALE, Rng

VECTORS = Path(__file__).parent / "vectors"
SIZES = {
    "linear": [(2, 2), (2, 96), (3, 4), (3, 96), (5, 1412), (7, 50), (13, 360), (2, 1 << 24)],
    "affine": [(2, 96), (4, 96), (6, 360), (9, 1412), (12, 1234), (17, 1 << 22)],
    "xxhash": [(2, 96), (4, 360), (5, 1412)],
}
NO_KEYS = {
    "linear": [-1, 0],
    "affine": [-1, 0, MERSENNE_31, 1 << 31 | MERSENNE_31, MERSENNE_31 << 31, 1 << 62],
    "xxhash": [-1, 1 << 32],
}
# (round, value): new values, old ones again, a round asked twice, rounds out of order.
LIFE = [(0, 0), (1, 3), (2, 0), (1, 5), (7, 10), (5, 3), (8, 0), (9, 9)]


class Draws(Rng):
    """Numbers that anybody can make again: SHA-256 of a name and a counter."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.made: list[int] = []

    def below(self, n: int) -> int:
        digest = hashlib.sha256(f"{self.name} {len(self.made)}".encode()).digest()
        self.made.append(int.from_bytes(digest, "big") % n)
        return self.made[-1]

    def bernoulli(self, threshold: int) -> bool:
        return self.below(SCALE) < threshold


def plain(part: Key | Answer) -> Any:
    """As JSON: bits in hexadecimal, integers beyond 2^53 as text."""
    if isinstance(part, bytes):
        return part.hex()
    if isinstance(part, tuple):
        return list(part)
    return str(part) if part is not None and part >= SCALE else part


def hash_vectors() -> Iterator[dict[str, Any]]:
    """Each family: members, values and symbols; and numbers that are no key."""
    for name, sizes in SIZES.items():
        for g, k in sizes:
            family = FAMILIES[name](k, g)
            draws = Draws(f"{name} {g} {k}")
            keys = edges(family) + [family.draw(draws) for _ in range(4)]
            values = sorted({0, 1, k // 2, k - 1, draws.below(k)})
            yield {
                "family": name,
                "g": g,
                "k": k,
                "collision": str(family.collision),
                "values": values,
                "symbols": {str(key): [family.hash(key, v) for v in values] for key in keys},
                "refused": [str(key) for key in refused(family)],
            }


def edges(family: HashFamily) -> list[int]:
    """The least and the greatest key."""
    last = refused(family)[-1] - 1
    greatest = (MERSENNE_31 - 1) << 31 | (MERSENNE_31 - 1)
    return [key for key in (0, 1, 1 << 31, last, greatest) if family.is_key(key)]


def refused(family: HashFamily) -> list[int]:
    """Numbers that are no key."""
    above = [family.g ** digits(family)] if family.name == "linear" else []
    return NO_KEYS[family.name] + above


def digits(family: HashFamily) -> int:
    """Least m >= 1 with g^m >= k."""
    return next(m for m in range(1, 60) if family.g**m >= family.k)


def client_vectors() -> Iterator[dict[str, Any]]:
    """One life of a client of each protocol: the draws it is given, the reports it makes."""
    for variant in FLAGSHIPS:
        protocol = variant.build()
        draws = Draws(str(variant))
        client = protocol.client(rng=draws)
        reports = [(round, v, client.report(v, round=round)) for round, v in LIFE]
        yield {
            "protocol": protocol.to_dict(),
            "fingerprint": protocol.fingerprint,
            "thresholds": [thresholds(protocol.first_channel), thresholds(protocol.second_channel)],
            "draws": draws.made,
            "reports": [
                [round, v, plain(report.key), plain(report.y)] for round, v, report in reports
            ],
            "loss": client.loss,
        }


def thresholds(channel: SymbolChannel | BitChannel | None) -> list[int] | None:
    """Out of 2^53."""
    if channel is None:
        return None
    if isinstance(channel, SymbolChannel):
        return [channel.keep]
    return [channel.set, channel.unset]


def lines(vectors: Iterator[dict[str, Any]]) -> str:
    """A JSON array, one vector a line."""
    return "[\n" + ",\n".join(json.dumps(vector) for vector in vectors) + "\n]\n"


def files() -> dict[str, str]:
    """Name -> text of every file of vectors."""
    return {"hashes.json": lines(hash_vectors()), "clients.json": lines(client_vectors())}


if __name__ == "__main__":
    for name, text in files().items():
        (VECTORS / name).write_text(text)
