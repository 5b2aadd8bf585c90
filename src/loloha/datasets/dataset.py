"""A data set: the value of each user in each round, and where it came from."""

from __future__ import annotations

import csv
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np

from loloha import checks
from loloha.arrays import Floats, Ints
from loloha.campaign.scalar import identity, unboxed
from loloha.checks import choice
from loloha.errors import LolohaError, ParameterError

SOURCES = ("real", "histogram", "synthetic", "stand-in", "user")
USER_NAMES = frozenset({"user", "user_id", "userid", "uid", "id"})
"""What columns of users are called."""
MISSING = -1


class DataError(LolohaError, ValueError):
    """An invalid file, table or download; cells are counted, never shown."""


class PrivacyWarning(UserWarning):
    """A warning: this works for data at hand, and would leak if they were private."""


@contextmanager
def foreign(requirement: str, advice: str) -> Iterator[None]:
    """Turns other libraries' errors into ours: their texts quote cells."""
    try:
        yield
    except (LolohaError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException:  # noqa: BLE001 (polars panics outside of Exception)
        raise DataError(f"{requirement}, got something else; {advice}") from None


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Values of n users over tau rounds, by index into k labels.

    Parameters
    ----------
    values : int[n, tau]
        Indices 0..k-1; -1 where a user has no report in a round. A signed integer type.
    labels : sequence of k hashable labels
        What each index stands for, k >= 2, all different.
    name : str
        Short name for titles and file names.
    source : {"real", "histogram", "synthetic", "stand-in", "user"}
        Where the values come from; "histogram" are real shares that ship with loloha, and
        made-up users who have them.
    provenance : str
        One sentence for every table and figure made from these values.
    rounds : sequence of tau labels, optional
        What each round is called, in order; 0..tau-1 when not given.
    backend : {"pandas", "polars", "pyarrow"}, optional
        Kind of the frame that the values came in: results come back in the same.

    Raises
    ------
    ParameterError
        If an argument does not fit this description. The message never shows a value.
    """

    values: np.ndarray[Any, np.dtype[np.signedinteger[Any]]]
    labels: tuple[Hashable, ...]
    name: str
    source: str
    provenance: str
    rounds: tuple[Hashable, ...] = field(default=())
    backend: str | None = None

    def __post_init__(self) -> None:
        choice("source", self.source, SOURCES)
        values = np.asarray(self.values).view()
        if values.ndim != 2 or 0 in values.shape or values.dtype.kind != "i":
            raise ParameterError(
                "values must be a signed integer array of shape [users, rounds], neither empty, "
                f"got {values.dtype} of shape {values.shape}; mark a missing report by -1"
            )
        labels = _distinct("labels", self.labels)
        if values.min() < MISSING or values.max() >= len(labels):
            raise ParameterError(
                f"values must lie in -1..{len(labels) - 1}, got some outside; "
                "index the labels, or use loloha.datasets.table"
            )
        rounds = _distinct("rounds", self.rounds if len(self.rounds) else range(values.shape[1]), 1)
        if len(rounds) != values.shape[1]:
            raise ParameterError(
                f"rounds must name each of the {values.shape[1]} columns of values, "
                f"got {len(rounds)} names; give one a round"
            )
        values.flags.writeable = False
        for attribute, content in (("values", values), ("labels", labels), ("rounds", rounds)):
            object.__setattr__(self, attribute, content)

    @property
    def k(self) -> int:
        """Number of labels."""
        return len(self.labels)

    @property
    def n(self) -> int:
        """Number of users."""
        return int(self.values.shape[0])

    @property
    def tau(self) -> int:
        """Number of rounds."""
        return int(self.values.shape[1])

    @property
    def reports(self) -> Ints:
        """How many users report in each round: int64[tau]."""
        reports: Ints = np.count_nonzero(self.values != MISSING, axis=0).astype(np.int64)
        return reports

    def counts(self) -> Ints:
        """How many users hold each value in each round.

        Returns
        -------
        int64[tau, k]
            Users without a report in a round are in none of its counts.
        """
        counts = np.empty((self.tau, self.k), dtype=np.int64)
        for t in range(self.tau):
            counts[t] = np.bincount(self.values[:, t] + np.int64(1), minlength=self.k + 1)[1:]
        return counts

    def frequencies(self) -> Floats:
        """Share of each value among the reports of each round: the truth for estimates.

        Returns
        -------
        float64[tau, k]
            Each row sums to 1; a round without a single report is a row of nan.
        """
        counts = self.counts()
        totals = counts.sum(axis=1, keepdims=True)
        frequencies: Floats = np.full(counts.shape, np.nan)
        np.divide(counts, totals, out=frequencies, where=totals > 0)
        return frequencies

    def __repr__(self) -> str:
        return (
            f"Dataset(name={self.name!r}, source={self.source!r}, "
            f"n={self.n}, k={self.k}, tau={self.tau})"
        )


def _distinct(name: str, labels: Sequence[Any], fewest: int = 2) -> tuple[Hashable, ...]:
    """Labels as Python scalars, all different."""
    scalars = tuple(unboxed(label) for label in labels)
    try:
        different = len(set(map(identity, scalars)))
    except TypeError:
        raise ParameterError(
            f"{name} must be hashable, got a label that is not; use text, numbers or dates"
        ) from None
    if different < len(scalars) or different < fewest:
        raise ParameterError(
            f"{name} must hold at least {fewest} labels, all different, "
            f"got {len(scalars)}, {different} of them different; give each label once"
        )
    return scalars


def narrowest(k: int) -> np.dtype[np.signedinteger[Any]]:
    """The smallest signed type for -1..k-1 that every engine reads."""
    return np.dtype(np.int16 if k <= 1 << 15 else np.int32)


def shipped(name: str) -> list[list[str]]:
    """Rows of a CSV file of this package, its header first; lines that begin with # say more."""
    text = (files(__package__) / name).read_text(encoding="utf-8")
    return list(csv.reader(line for line in text.splitlines() if not line.startswith("#")))


Seed = int | np.random.SeedSequence | np.random.Generator
"""What a random draw is repeated by."""


def entropy(rng: Seed) -> np.random.SeedSequence | np.random.Generator:
    """Where ``rng`` says that numbers come from; a seed is required, to have them again."""
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        return np.random.SeedSequence(int(rng))
    if isinstance(rng, np.random.SeedSequence | np.random.Generator):
        return rng
    raise ParameterError(
        "rng must be an integer seed >= 0, a numpy SeedSequence or a numpy Generator, got one of "
        f"type {type(rng).__name__}; pass rng=0"
    )


def generator(rng: Seed) -> np.random.Generator:
    """NumPy's usual generator."""
    return np.random.default_rng(entropy(rng))


def extra(module: str, purpose: str) -> Any:
    """Import a library of the extra ``cli``."""
    return checks.library(module, purpose, "cli")
