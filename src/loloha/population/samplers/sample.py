"""The arguments and the result of every sampler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from loloha.arrays import Bools, Floats, Ints
from loloha.encodings import Encoding

Progress = Callable[[float], object]
"""Called with the share that is done, rising to 1."""


class Chain(NamedTuple):
    """The rounds of randomised response that a report goes through."""

    first: Any
    second: Any


class Reports(NamedTuple):
    """What a population sends in one round: who, and reports in the array forms of the encoding."""

    senders: Bools
    keys: Any
    ys: Any


class Sample(NamedTuple):
    """What the server sees of a population, and what it cost."""

    loss: Floats  # float64[n], over all rounds.
    # int64[cells] of each round, in order, as a tally of the encoding holds them.
    counts: Iterator[Ints]
    encoding: Encoding  # The protocol's, or one that counts less where no tally is needed.
