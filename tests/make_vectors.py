"""Write the golden vectors under tests/vectors: what ports in other languages must reproduce.

Run it as ``python tests/make_vectors.py`` after adding a protocol. Published vectors never change:
a difference in an old line means that old reports would be read wrongly.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from address_vectors import address_vectors
from answer_vectors import answer_vectors
from laws.variants import FLAGSHIPS
from limit_vectors import limit_vectors
from loloha.channels import BitChannel, SymbolChannel, TableChannel
from loloha.client import Client
from loloha.errors import ParameterError
from loloha.hashing import FAMILIES, MERSENNE_31, HashFamily
from loloha.protocols import GRR, LGRR, OLH, OLOLOHA, REGISTRY, DBitFlipPM, protocol_from_dict
from loloha.report import Answer, Key
from loloha.rng import SCALE, Rng
from message_vectors import message_vectors
from state_vectors import state_vectors
from value_vectors import value_vectors

VECTORS = Path(__file__).parent / "vectors"
SIZES = {
    "linear": [(2, 2), (2, 96), (3, 4), (3, 96), (5, 1412), (7, 50), (13, 360), (2, 1 << 24)],
    "prime": [(2, 2), (3, 3), (4, 96), (8, 16), (4, 1000), (18, 1000), (17, 12), (9, 1 << 24)],
    "affine": [(2, 96), (4, 96), (6, 360), (9, 1412), (12, 1234), (17, 1 << 22)],
    "xxhash": [(2, 96), (4, 360), (5, 1412)],
}
NO_KEYS = {
    "linear": [-1, 0],
    "prime": [-1],
    "affine": [-1, 0, MERSENNE_31, 1 << 31 | MERSENNE_31, MERSENNE_31 << 31, 1 << 62],
    "xxhash": [-1, 1 << 32],
}
# (round, value): new values, old ones again, a round asked twice, rounds out of order.
LIFE = [(0, 0), (1, 3), (2, 0), (1, 5), (7, 10), (5, 3), (8, 0), (9, 9)]
# Budgets of one round, and (eps_inf, eps_1) of two: the ends of what is allowed, and between.
EPS = (1e-6, 1e-3, 0.1, 1 / 3, 1.0, 2.0, 4.5, 12.5, 60.0, 700.0)
PAIRS = (
    *((eps, eps * share) for eps in EPS[1:] for share in (0.1, 0.5, 0.97)),
    *((eps, math.nextafter(eps, 0)) for eps in EPS[1:]),
    (math.nextafter(1e-6, 1), 1e-6),
    *((eps, 1e-6) for eps in (0.1, 2.0, 700.0)),
)
DOMAINS = (2, 3, 96, 1412, 1 << 24)


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
    above += [family.members] if family.name == "prime" else []
    return NO_KEYS[family.name] + above


def digits(family: HashFamily) -> int:
    """Least m >= 1 with g^m >= k."""
    return next(m for m in range(1, 60) if family.g**m >= family.k)


def client_vectors(*, joint: bool) -> Iterator[dict[str, Any]]:
    """One life of a client of each protocol: the draws it is given, the reports it makes.

    Those that draw one table for life are a file of their own.
    """
    for variant in FLAGSHIPS:
        protocol = variant.build()
        if protocol.joint != joint:
            continue
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


def panel_vectors() -> Iterator[dict[str, Any]]:
    """Lives of clients that report in one round of ``every``; null where they are not due."""
    for every, variant in product((2, 3, 1 << 24), FLAGSHIPS):
        protocol = variant.build()
        draws = Draws(f"{variant} every {every}")
        client = Client(protocol, rng=draws, every=every)
        due = client.account.residue or 0
        reports = [
            (round, v, client.report(v, round=round) if client.is_due(round) else None)
            for round, v in [*LIFE, (due, 1), (due + every, 2)]
        ]
        yield {
            "protocol": protocol.to_dict(),
            "every": every,
            "draws": draws.made,
            "reports": [
                [round, v, *((plain(report.key), plain(report.y)) if report else (None, None))]
                for round, v, report in reports
            ],
            "loss": client.loss,
        }


def threshold_vectors() -> Iterator[dict[str, Any]]:
    """What devices draw with over a grid of protocols; null where a protocol cannot be."""
    for spec in specifications():
        try:
            protocol = protocol_from_dict(spec)
        except ParameterError:
            yield {"protocol": spec, "thresholds": None}
        else:
            channels = (protocol.first_channel, protocol.second_channel)
            yield {"protocol": spec, "thresholds": [thresholds(each) for each in channels]}


def specifications() -> Iterator[dict[str, Any]]:
    """Each protocol, at sizes that its thresholds depend on, and one size else."""
    for cls in REGISTRY.values():
        own = {field.name for field in fields(cls)}
        sizes: list[dict[str, Any]] = [{"k": k} for k in DOMAINS]
        if cls in (OLH, OLOLOHA):
            sizes = [{"k": 96, "g": g, "hash": "affine"} for g in (2, 3, 17, 1 << 20)]
        elif cls is DBitFlipPM:
            sizes = [{"k": 96, "b": 24, "d": d} for d in (1, 2)]
        elif "target" in own:
            sizes = [{"k": 96, "target": "distribution"}]
        elif "hash" in own or cls not in (GRR, LGRR):
            sizes = [{"k": 96, **({"hash": "linear"} if "hash" in own else {})}]
        calibrations = ("tight", "published") if "calibration" in own else (None,)
        for size, calibration in product(sizes, calibrations):
            named = {"type": cls.name, "version": 1, **size}
            if calibration:
                named["calibration"] = calibration
            if "eps_1" in own:
                yield from ({**named, "eps_inf": one, "eps_1": other} for one, other in PAIRS)
            else:
                budget = "eps" if "eps" in own else "eps_inf"
                yield from ({**named, budget: eps} for eps in EPS)


def thresholds(channel: SymbolChannel | TableChannel | BitChannel | None) -> list[int] | None:
    """Out of 2^53."""
    if channel is None:
        return None
    if isinstance(channel, SymbolChannel):
        return [channel.keep]
    if isinstance(channel, TableChannel):
        return [channel.identity, channel.constant]
    return [channel.set, channel.unset]


FILES: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "hashes.json": hash_vectors,
    "clients.json": partial(client_vectors, joint=False),
    "tables.json": partial(client_vectors, joint=True),
    "panels.json": panel_vectors,
    "thresholds.json": threshold_vectors,
    "values.json": value_vectors,
    "addresses.json": address_vectors,
    "answers.json": answer_vectors,
    "limits.json": limit_vectors,
    "messages.json": message_vectors,
    "states.json": state_vectors,
}


def text(name: str) -> str:
    """A file of vectors: a JSON array, one vector a line."""
    return "[\n" + ",\n".join(json.dumps(vector) for vector in FILES[name]()) + "\n]\n"


if __name__ == "__main__":
    for name in FILES:
        (VECTORS / name).write_text(text(name))
