"""The engines, beside the logs that they count."""

import os
import shutil
from collections.abc import Iterator

import pytest

from logs import draw, kind, make_log, messy, protocol
from loloha.engines import Engine, make_engine
from loloha.engines.spark import started

__all__ = ["draw", "kind", "make_log", "messy", "protocol"]


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
    session = started()
    session.sparkContext.setLogLevel("OFF")
    # Small data: compiling a query and cutting it into tasks takes longer than running it.
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.files.openCostInBytes", "0")
    yield make_engine("spark", session=session)
    session.stop()
