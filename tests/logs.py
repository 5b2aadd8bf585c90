"""Report logs of every protocol, made of any valid reports: engines only count."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loloha import OLOLOHA, BiLOLOHA, DBitFlipPM
from loloha.protocols import REGISTRY, Protocol
from loloha.reportlog import ReportLog, from_arrow
from loloha.rng import SimulationRng

K = 11
BUDGETS = {"eps": 1.0, "eps_inf": 2.0, "eps_1": 1.0}


def smallest(cls: type[Protocol]) -> Protocol:
    names = {field.name for field in fields(cls) if field.init}
    return cls(k=K, **{name: value for name, value in BUDGETS.items() if name in names})


PROTOCOLS = [smallest(cls) for cls in REGISTRY.values()] + [
    BiLOLOHA(k=K, eps_inf=2.0, eps_1=1.0, hash="affine"),
    OLOLOHA(k=K, eps_inf=2.0, eps_1=1.0, hash="prime", g=4),
    # Too many cells for a table.
    OLOLOHA(k=1500, eps_inf=2.0, eps_1=1.0, hash="prime", g=4),
    DBitFlipPM(k=K, eps_inf=2.0, b=5, d=1),
    DBitFlipPM(k=K, eps_inf=2.0, b=10, d=3),
]


@dataclass
class Reports:
    """n reports in arrays; a slice of them is such an object too."""

    reporters: Any
    keys: Any
    ys: Any

    def __getitem__(self, rows: Any) -> "Reports":
        keys = None if self.keys is None else self.keys[rows]
        return Reports(self.reporters[rows], keys, self.ys[rows])

    def __len__(self) -> int:
        return len(self.reporters)

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        return self.reporters, self.keys, self.ys


def draw_reports(protocol: Protocol, n: int, seed: int) -> Reports:
    rng, device = np.random.default_rng(seed), SimulationRng(seed)
    kind = protocol.encoding.kind
    keys = [protocol.enroll(device) for _ in range(n)]
    reporters = rng.integers(0, 256, size=(n, 16), dtype=np.uint8)
    if kind in ("symbol", "keyed symbol"):
        ys = rng.integers(0, protocol.g, size=n)
    else:
        size = getattr(protocol.encoding, "d", protocol.k)
        bits = rng.integers(0, 2, size=(n, size), dtype=np.uint8)
        ys = np.packbits(bits, axis=1, bitorder="little")
    return Reports(reporters, None if keys[0] is None else np.array(keys, dtype=np.int64), ys)


@pytest.fixture(params=PROTOCOLS, ids=repr)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """Every protocol, with every kind of key."""
    one: Protocol = request.param
    return one


# One of each kind of key, answer and count.
KINDS = {(p.encoding.kind, getattr(p, "hash", None)): p for p in PROTOCOLS}


@pytest.fixture(params=KINDS.values(), ids=repr)
def kind(request: pytest.FixtureRequest) -> Protocol:
    """A protocol of every kind."""
    one: Protocol = request.param
    return one


@pytest.fixture
def draw() -> Callable[[Protocol, int, int], Reports]:
    """Valid reports of a protocol: (protocol, n, seed)."""
    return draw_reports


def write_log(root: Path, protocol: Protocol, *files: tuple[int, Reports]) -> ReportLog:
    log = ReportLog(root, protocol)
    log.folder.mkdir(parents=True, exist_ok=True)
    for round, reports in files:
        with log.writer() as writer:
            writer.write(round, *reports.arrays)
    return log


@pytest.fixture
def make_log(tmp_path: Path) -> Callable[..., ReportLog]:
    """A log with the given (round, reports) pairs, one file each."""

    def make(protocol: Protocol, *files: tuple[int, Reports], name: str = "log") -> ReportLog:
        return write_log(tmp_path / name, protocol, *files)

    return make


def rewrite(path: Path, change: Callable[[Any], Any], **written: Any) -> None:
    """Replace what a file of a log holds, and keep its name true."""
    pq.write_table(change(pq.read_table(path, partitioning=None)), path, **written)
    path.rename(path.with_name(sha256(path.read_bytes()).hexdigest()[:32] + ".parquet"))


def spoilt(table: pa.Table, protocol: Protocol) -> pa.Table:
    """The rows of ``table`` with every kind of fault, in its first rows."""
    kind, encoding = protocol.encoding.kind, protocol.encoding
    y = table["y"].to_pylist()
    key = table["key"].to_pylist() if "key" in table.column_names else None
    if kind in ("symbol", "keyed symbol"):
        y[0:3] = [-1, protocol.g, 2**31 - 1]
    if kind == "keyed symbol":
        family = getattr(encoding, "family", None)
        wrong = [family.least_key - 1 if family else 0, -1, -(2**31)]
        if family is None:
            wrong += [encoding.k, 2**31 - 1]
        elif encoding.key_bits == 62:
            wrong += [2**31 - 1, 5 * 2**31 + 2**31 - 1, 2**62 - 1, 2**63 - 1, -(2**63)]
        else:
            wrong += [family.members + family.least_key, 2**31 - 1]
        key[3 : 3 + len(wrong)] = wrong
    if kind == "bits" and encoding.k % 8:
        y[0] = y[0][:-1] + bytes([y[0][-1] | 1 << encoding.k % 8])
        y[1] = y[1][:-1] + b"\xff"
    if kind == "sampled bits":
        y[0] = [*y[0][:-1], 2 * encoding.b]
        y[1] = [-1, *y[1][1:]]
        if encoding.d > 1:
            y[2] = y[2][::-1]
            y[3] = [y[3][0] ^ 1, y[3][0], *y[3][2:]]
    columns = {"reporter": table["reporter"], "key": key, "y": y}
    arrays = [pa.array(columns[field.name], field.type) if field.name != "reporter"
              else columns["reporter"] for field in table.schema]  # fmt: skip
    return pa.Table.from_arrays(arrays, schema=table.schema)


@pytest.fixture(scope="session")
def messy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Protocol], tuple[Any, Any]]:
    """A log of four rounds with replays, contradictions and faults, and its rows by round."""

    @cache
    def make(protocol: Protocol) -> tuple[ReportLog, dict[int, list[tuple[bytes, Any, Any]]]]:
        pieces: list[tuple[int, Reports]] = [(7, draw_reports(protocol, 3, 0)[:0])]
        for round in (0, 3, 12):
            reports, other = (draw_reports(protocol, 60, seed + round) for seed in (0, 100))
            other.reporters = reports.reporters
            again = draw_reports(protocol, 20, 200 + round)
            # Most reporters differ from byte 0 on; these only in the last byte.
            again.reporters = np.repeat(reports.reporters[:1], 20, axis=0)
            again.reporters[:, 15] = np.arange(20) // 2
            files = [reports, reports[10:30], other[20:40], again, reports[:5], other[:5]]
            pieces += [(round, file) for file in files]
        log = write_log(tmp_path_factory.mktemp("messy"), protocol, *pieces)
        # One that is long enough for every kind of fault.
        files_of_3 = sorted(log.round_folder(3).iterdir())
        spoilt_file = next(one for one in files_of_3 if pq.read_metadata(one).num_rows >= 20)
        rewrite(spoilt_file, lambda table: spoilt(table, protocol))
        rows = {
            round: [row for file in files for row in read_rows(protocol, file.path)]
            for round, files in log.scan().rounds.items()
        }
        return log, rows

    return make


def read_rows(protocol: Protocol, path: Path) -> list[tuple[bytes, Any, Any]]:
    table = pq.read_table(path, partitioning=None)
    reporters, keys, ys = from_arrow(protocol, table)
    return [(reporters[i].tobytes(), None if keys is None else keys[i], ys[i])
            for i in range(len(ys))]  # fmt: skip
