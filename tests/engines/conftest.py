"""Report logs of every protocol, made of any valid reports: engines only count."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from loloha import BiLOLOHA, DBitFlipPM
from loloha.engines import Engine, make_engine
from loloha.engines.spark import local_session
from loloha.protocols import REGISTRY, Protocol
from loloha.reportlog import ReportLog
from loloha.rng import SimulationRng

K = 11
BUDGETS = {"eps": 1.0, "eps_inf": 2.0, "eps_1": 1.0}


def smallest(cls: type[Protocol]) -> Protocol:
    names = {field.name for field in fields(cls) if field.init}
    return cls(k=K, **{name: value for name, value in BUDGETS.items() if name in names})


PROTOCOLS = [smallest(cls) for cls in REGISTRY.values()] + [
    BiLOLOHA(k=K, eps_inf=2.0, eps_1=1.0, hash="affine"),
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


@pytest.fixture
def make_log(tmp_path: Path) -> Callable[..., ReportLog]:
    """A log with the given (round, reports) pairs, one file each."""

    def make(protocol: Protocol, *files: tuple[int, Reports], name: str = "log") -> ReportLog:
        log = ReportLog(tmp_path / name, protocol)
        log.folder.mkdir(parents=True, exist_ok=True)
        for round, reports in files:
            with log.writer() as writer:
                writer.write(round, *reports.arrays)
        return log

    return make


@pytest.fixture
def rewrite() -> Callable[..., None]:
    """Replace what a file of a log holds, and keep its name true."""

    def apply(path: Path, change: Callable[[Any], Any]) -> None:
        pq.write_table(change(pq.read_table(path, partitioning=None)), path)
        path.rename(path.with_name(sha256(path.read_bytes()).hexdigest()[:32] + ".parquet"))

    return apply


@pytest.fixture(params=["local", "duckdb"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """The engines that start at once."""
    return make_engine(request.param)


@pytest.fixture(scope="session")
def spark() -> Iterator[Engine]:
    """Spark in one session for all tests: starting it takes some 15 s."""
    pytest.importorskip("pyspark", reason="needs pyspark: pip install 'loloha[spark]'")
    if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
        pytest.skip("no Java on this machine; Spark needs Java 17 or newer")
    session = local_session()
    session.sparkContext.setLogLevel("OFF")
    # Small data: compiling a query and cutting it into tasks takes longer than running it.
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.files.openCostInBytes", "0")
    yield make_engine("spark", session=session)
    session.stop()
