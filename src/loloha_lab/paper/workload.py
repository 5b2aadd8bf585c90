"""The four populations of the evaluation, prepared once and shared by all processes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from loloha import datasets
from loloha.arrays import Floats, Ints
from loloha.datasets import DataError, Dataset
from loloha.population.samplers import History
from loloha_lab.attacks import Distinct, visited

Loader = Callable[[Path | None, int | None, np.random.SeedSequence], Dataset]
FOLDER = "data"


class Workload(NamedTuple):
    """How to get one population: from a folder with files, a number of rounds, and a seed."""

    load: Loader
    width: int = 1
    """Values in a bucket of dBitFlipPM: it cuts the domain into k // width buckets."""


@dataclass(frozen=True)
class Facts:
    """What is worth telling about a prepared population."""

    name: str
    source: str
    provenance: str
    n: int
    k: int
    tau: int
    buckets: int
    digest: str

    @property
    def caption(self) -> str:
        """What every figure says of the data: name and origin."""
        origin = {
            "real": "real data",
            "histogram": "shipped real histogram",
            "synthetic": "synthetic by definition",
            "stand-in": "STAND-IN, not real data",
        }
        return f"{self.name}: {origin[self.source]}, n = {self.n}, k = {self.k}, τ = {self.tau}"


class Material:
    """A prepared population in one process: values mapped from disk, the rest computed once."""

    def __init__(self, facts: Facts, values: Ints) -> None:
        self.facts = facts
        self.values = values

    @cached_property
    def history(self) -> History:
        """The values as simulations take them, prepared for all of them."""
        return History(self.values, self.facts.k)

    @cached_property
    def truth(self) -> Floats:
        """Frequencies of each round, float64[tau, k]."""
        counts = [np.bincount(column, minlength=self.facts.k) for column in self.values.T]
        return np.stack(counts) / self.facts.n

    @cached_property
    def visits(self) -> Distinct:
        """The different buckets of each user."""
        return visited(self.values.astype(np.int64) * self.facts.buckets // self.facts.k)


def prepare(
    names: Iterable[str],
    seed: int,
    out: Path,
    *,
    data_dir: Path | None = None,
    users: int | None = None,
    rounds: int | None = None,
) -> dict[str, Facts]:
    """Load populations and lay their values down for all processes."""
    folder = out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    prepared = {}
    for name in names:
        source = np.random.SeedSequence(seed, spawn_key=words("data", name))
        dataset = WORKLOADS[name].load(data_dir, rounds, source)
        # One user's rounds lie together: everything that follows goes through users.
        values = np.ascontiguousarray(dataset.values[:users, :rounds])
        facts = Facts(
            name,
            dataset.source,
            dataset.provenance,
            *(values.shape[0], dataset.k, values.shape[1]),
            buckets=max(2, dataset.k // WORKLOADS[name].width),
            digest=hashlib.sha256(values.tobytes()).hexdigest(),
        )
        _lay_down(folder, facts, values)
        prepared[name] = facts
    return prepared


def _lay_down(folder: Path, facts: Facts, values: Ints) -> None:
    """Write values, then facts: facts that are there vouch for the values."""
    note, file = folder / f"{facts.name}.json", folder / f"{facts.name}.npy"
    text = json.dumps(asdict(facts), indent=2) + "\n"
    if file.is_file() and note.is_file() and note.read_text(encoding="utf-8") == text:
        return
    note.unlink(missing_ok=True)
    draft = file.with_suffix(".tmp")
    with draft.open("wb") as stream:
        np.save(stream, values)
    draft.replace(file)
    note.write_text(text, encoding="utf-8")


@cache
def material(out: Path, facts: Facts) -> Material:
    """The population that `prepare` laid down; loaded once in each process."""
    return Material(facts, np.load(out / FOLDER / f"{facts.name}.npy", mmap_mode="r"))


def words(*names: str) -> tuple[int, ...]:
    """Eight 32-bit words that depend on names alone: a spawn key that no enumeration can shift."""
    digest = hashlib.sha256("/".join(names).encode()).digest()
    return tuple(int.from_bytes(digest[at : at + 4], "little") for at in range(0, 32, 4))


def _syn(data_dir: Path | None, rounds: int | None, seed: np.random.SeedSequence) -> Dataset:
    return datasets.syn(tau=rounds or 120, rng=seed)


def _adult(data_dir: Path | None, rounds: int | None, seed: np.random.SeedSequence) -> Dataset:
    present = data_dir is not None and any(data_dir.glob("adult.*"))
    return datasets.adult(data_dir if present else None, tau=rounds or 260, rng=seed)


def _census(
    data_dir: Path | None, rounds: int | None, seed: np.random.SeedSequence, *, state: str, n: int
) -> Dataset:
    try:
        return datasets.acs_weights(state, data_dir, tau=rounds or 80)
    except DataError:
        return datasets.acs_standin(n, tau=rounds or 80, rng=seed)


WORKLOADS = {
    "Syn": Workload(_syn),
    "Adult": Workload(_adult),
    "DB_MT": Workload(partial(_census, state="MT", n=10_336), width=4),
    "DB_DE": Workload(partial(_census, state="DE", n=9_123), width=4),
}
"""The paper's data sets (MATH section 10), in the order of every figure."""
