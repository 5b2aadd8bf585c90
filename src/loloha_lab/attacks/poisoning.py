"""Fake users: how far they push estimates, and what a server can see of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from loloha import checks
from loloha.arrays import Array, Bytes, Ints
from loloha.encodings import (
    Hashed,
    HiddenThreshold,
    OneHot,
    Part,
    SampledBuckets,
    Symbols,
    Threshold,
    for_encoding,
)
from loloha.errors import ParameterError
from loloha.hashing import HashFamily
from loloha.population.samplers import Draws, History, sample_reports
from loloha.protocols import Protocol
from loloha.report import MOST_REPORTS

Keys = Literal["chosen", "drawn"]

_KEYS_AT_MOST = 1 << 16


@dataclass(frozen=True)
class Poisoning:
    """What fake reports did to one round.

    Attributes
    ----------
    gain : float
        How much the sum of the targets' estimates rose, on average over the trials.
    error : float
        Its standard error.
    formula : float
        What it is expected to be.
    """

    gain: float
    error: float
    formula: float


def poisoning(
    protocol: Protocol,
    values: Array,
    fakes: int,
    targets: Sequence[int],
    *,
    keys: Keys = "drawn",
    trials: int = 20,
    rng: int,
) -> Poisoning:
    """Let fake users push the targets in one round of honest ones, again and again.

    Parameters
    ----------
    protocol : Protocol
    values : int[n]
        What the honest users hold.
    fakes : int
        Fake users m, at least 1.
    targets : sequence of int
        Different values to push.
    keys : {"chosen", "drawn"}
        Whether fakes choose the key that helps most, or take what is drawn or assigned. They
        always choose the best answer under it: that no assignment of keys prevents.
    trials : int
        At least 2.
    rng : int
        Seed.

    Returns
    -------
    Poisoning

    Raises
    ------
    ParameterError
        If a number is out of range or the protocol's encoding is unknown here.
    """
    honest_values = np.asarray(values)
    fakes = checks.integer("fakes", fakes, 1, 1 << 30, "count the fake users")
    trials = checks.integer("trials", trials, 2, 1 << 20, "repeat it")
    aimed = _targets(protocol, targets)
    view = fakes_of(protocol, aimed, keys)
    generator = np.random.default_rng(rng)
    gains = []
    for _ in range(trials):
        draws = Draws(int(generator.integers(1 << 62)))
        (honest,) = sample_reports(protocol, History(honest_values[:, None], protocol.k), draws)
        tally = protocol.tally()
        tally.update(honest.keys, honest.ys)
        before = tally.estimate().frequencies[aimed].sum()
        tally.update(*view.send(fakes, generator))
        gains.append(float(tally.estimate().frequencies[aimed].sum() - before))
    shares = np.bincount(honest_values, minlength=protocol.k) / len(honest_values)
    share = float(protocol.encoding.frequencies(shares)[aimed].sum())
    formula = poisoning_gain(protocol, len(honest_values), fakes, targets, keys=keys, share=share)
    return Poisoning(float(np.mean(gains)), float(np.std(gains) / math.sqrt(trials)), formula)


def poisoning_gain(
    protocol: Protocol,
    n: int,
    fakes: int,
    targets: Sequence[int],
    *,
    keys: Keys = "drawn",
    share: float = 0.0,
) -> float:
    """How far fakes raise the sum of the targets' estimates, on average.

    Parameters
    ----------
    protocol, fakes, targets, keys
        As for `poisoning`.
    n : int
        Honest reports.
    share : float
        Of the honest users, those who hold a target.

    Notes
    -----
    Of N reports that can support a target, M of them fake, with s of the targets supported by a
    fake on average of those it can reach: the sum moves from share to
    ``(1 - M/N) share + (M/N) (s - q_star |targets|) / (p_star - q_star)``. For sampled buckets N
    and M count those who sampled one.
    """
    aimed = _targets(protocol, targets)
    eligible, supported, _ = fakes_of(protocol, aimed, keys)
    weight = fakes * eligible / (protocol.encoding.expected_eligible(n) + fakes * eligible)
    p_star, q_star = float(protocol.realised.p_star), float(protocol.realised.q_star)
    pushed = (supported - len(aimed) * q_star) / (p_star - q_star)
    return float(weight * (pushed - share))


def adaptive_gain(protocol: Protocol) -> float:
    """What one fake adds to a target, in honest users, if its runs are to look honest.

    Parameters
    ----------
    protocol : Protocol
        Two rounds over hashed symbols.

    Returns
    -------
    float
        Such a fake skips the permanent round and draws the fresh one around the cell of the
        target: its reports have exactly the distribution of an honest user whose memo is that
        cell, so no test of its reports can tell. An honest user who holds the target adds 1.
    """
    p2, _ = _second(protocol)
    p_star, q_star = float(protocol.realised.p_star), float(protocol.realised.q_star)
    return (p2 - q_star) / (p_star - q_star)


def rounds_until_seen(protocol: Protocol, users: int, *, alarm: float = 0.01) -> int:
    """After how many equal reports in a row, under one key, a user is no honest device.

    Parameters
    ----------
    protocol : Protocol
        Two rounds over hashed symbols, whose key links the rounds.
    users : int
        Honest users watched.
    alarm : float
        Bound on the chance that any of them is accused within that many rounds, in (0, 1).

    Returns
    -------
    int
        Least T with users (p2^T + (g-1) q2^T) <= alarm: no history makes so long a run likelier
        than a value that never changes.
    """
    p2, q2 = _second(protocol)
    users = checks.integer("users", users, 1, MOST_REPORTS, "count the users watched")
    if not 0 < alarm < 1:
        raise ParameterError(f"alarm must be a probability in (0, 1), got {alarm!r}; try 0.01")
    g, rounds = int(protocol.first_channel.g), 1  # type: ignore[union-attr]
    while users * (p2**rounds + (g - 1) * q2**rounds) > alarm:
        rounds += 1
    return rounds


# -- each encoding: the share of fakes that reach a target, how many one supports, what they send


FAKES = Part("loloha_lab.attacks.poisoning:fakes", "what fakes can send", "simulate its fakes")


class Fakes(NamedTuple):
    """What fakes can do under one encoding: see above."""

    eligible: float
    supported: float
    send: Callable[[int, np.random.Generator], tuple[Any, Any]]


@for_encoding(FAKES.name, Symbols)
def _by_symbol(encoding: Symbols, aimed: Ints, keys: Keys) -> Fakes:
    return Fakes(1.0, 1.0, lambda fakes, rng: (None, np.resize(aimed, fakes)))


@for_encoding(FAKES.name, OneHot)
def _by_bits(encoding: OneHot, aimed: Ints, keys: Keys) -> Fakes:
    def send(fakes: int, rng: np.random.Generator) -> tuple[None, Bytes]:
        bits = np.zeros((fakes, encoding.k), dtype=bool)
        bits[:, aimed] = True
        return None, np.packbits(bits, axis=1, bitorder="little")

    return Fakes(1.0, float(len(aimed)), send)


@for_encoding(FAKES.name, Hashed)
def _by_hash(encoding: Hashed, aimed: Ints, keys: Keys) -> Fakes:
    family = encoding.family
    known = _known_keys(family)
    covered = _covered(family, known, aimed)[1]
    best = int(covered.argmax())

    def send(fakes: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        chosen = keys == "chosen"
        drawn = np.full(fakes, known[best]) if chosen else np.asarray(family.draw_many(fakes, rng))
        return drawn, _covered(family, drawn, aimed)[0]

    return Fakes(1.0, float(covered[best] if keys == "chosen" else covered.mean()), send)


@for_encoding(FAKES.name, SampledBuckets)
def _by_buckets(encoding: SampledBuckets, aimed: Ints, keys: Keys) -> Fakes:
    b, d = encoding.b, encoding.d

    def send(fakes: int, rng: np.random.Generator) -> tuple[Ints, Bytes]:
        rank = rng.random((fakes, b))
        if keys == "chosen":
            rank[:, aimed[:d]] = -1
        buckets = np.sort(np.argsort(rank, axis=1)[:, :d], axis=1)
        return buckets, np.packbits(np.isin(buckets, aimed), axis=1, bitorder="little")

    # Whoever sampled a target says so.
    return Fakes(min(1.0, d / len(aimed)) if keys == "chosen" else d / b, float(len(aimed)), send)


@for_encoding(FAKES.name, Threshold)
def _by_threshold(encoding: Threshold, aimed: Ints, keys: Keys) -> Fakes:
    def send(fakes: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        drawn = rng.integers(1, encoding.k, size=fakes)
        if keys == "chosen":
            drawn = 1 + np.resize(aimed, fakes)
        return drawn, np.isin(drawn - 1, aimed).astype(np.int64)

    # One threshold a fake, and at a target a bit that is 1.
    return Fakes(1 / len(aimed) if keys == "chosen" else 1 / encoding.bins, float(len(aimed)), send)


@for_encoding(FAKES.name, HiddenThreshold)
def _by_bit(encoding: HiddenThreshold, aimed: Ints, keys: Keys) -> Fakes:
    """Of the mean, as a share of the range."""
    return Fakes(1.0, 1.0, lambda fakes, rng: (None, np.ones(fakes, dtype=np.int64)))


def fakes_of(protocol: Protocol, aimed: Ints, keys: Keys) -> Fakes:
    """What fakes of these targets' bins can do."""
    checks.choice("keys", keys, ("chosen", "drawn"))
    fakes: Fakes = FAKES.required(protocol.encoding)(protocol.encoding, aimed, keys)
    return fakes


def _known_keys(family: HashFamily) -> Ints:
    """All keys, or a fixed sample where they are too many."""
    if family.members <= _KEYS_AT_MOST:
        keys = np.arange(family.members + 1, dtype=np.int64)
        return keys[family.are_keys(keys)]
    return np.asarray(family.draw_many(_KEYS_AT_MOST, np.random.default_rng(0)))


def _covered(family: HashFamily, keys: Ints, aimed: Ints) -> tuple[Ints, Ints]:
    """The cell that holds most targets under each key, and how many it holds."""
    cells = family.hash_many(keys[:, None], aimed[None])
    covered = (cells[:, :, None] == cells[:, None, :]).sum(axis=2)
    best = covered.argmax(axis=1)
    rows = np.arange(len(keys))
    return cells[rows, best], covered[rows, best]


def _targets(protocol: Protocol, targets: Sequence[int]) -> Ints:
    values = [checks.integer("targets", v, 0, protocol.k - 1, "name values") for v in targets]
    # Of a mean alone there is one bin, which all values push.
    bins = sorted({protocol.encoding.bin(v) if protocol.bins > 1 else 0 for v in values})
    if bins and bins[0] < 0:
        raise ParameterError("targets must be values above 0 where numbers are asked for, got 0")
    if not bins or len(bins) != len(values):
        raise ParameterError(
            f"targets must be different values, at least one, got {len(values)}; name each once"
        )
    return np.array(bins, dtype=np.int64)


def _second(protocol: Protocol) -> tuple[float, float]:
    second: Any = protocol.second_channel
    if type(protocol.encoding) is not Hashed or second is None:
        raise ParameterError(
            f"protocol must send hashed symbols in two rounds, got {protocol!r}; only a key that "
            "stays links the rounds of a user"
        )
    return float(second.p), float(second.q)
