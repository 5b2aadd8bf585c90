"""Spark on a cluster, as its users start it: the same counts, wherever logs and folders are."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import loloha
from clustering import Cluster, awaited, cluster, spark_class, stopped
from loloha import BiLOLOHA
from loloha.address import Address, located
from loloha.cli import main
from ports import free_port
from storing import S3, s3, s3_server

__all__ = ["cluster", "s3", "s3_server"]
pytestmark = [pytest.mark.long, pytest.mark.spark]

PROTOCOL = BiLOLOHA(k=11, eps_inf=2.0, eps_1=1.0)


@pytest.fixture
def there(
    tmp_path: Path, s3: S3, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, list[str], Any]:
    """A log on the store, how Spark is told where it is, and what it holds."""
    # The driver's folder, which no worker sees.
    monkeypatch.chdir(tmp_path / "driver")
    lines = ["r0,r1", *(f"{user % 11},{user % 7}" for user in range(100))]
    Path("table.csv").write_text("\n".join(lines))
    Path("p.json").write_text(json.dumps(PROTOCOL.to_dict()))
    root = f"{s3.bucket()}/LOG"
    for seed in ("1", "2"):
        log = ["log", "generate", "table.csv", "--campaign", "p.json", "--users", "20000"]
        assert main([*log, "--out", f"{root}{seed}", "--seed", seed]) == 0
    place = located(root)
    assert isinstance(place, Address)
    # A log of several files a round, with replays, which the cluster knows by s3a alone: Hadoop's
    # view of file systems stands for the client of S3, which no package index has.
    mirror = tmp_path / "mirror"
    for number in (1, 2):
        for file in located(f"{root}{number}").walk():  # type: ignore[union-attr]
            below = Path(*file.path.parts[1:])
            (place / below.parts[0] / below.parts[1] / below.parts[2]).write_bytes(
                file.read_bytes()
            )
    for file in place.walk():
        target = mirror.joinpath(*file.path.parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    view = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
    link = f"spark.hadoop.fs.viewfs.mounttable.{place.mount.host}.link./LOG"
    conf = [f"spark.hadoop.fs.s3a.impl={view}", f"{link}={(mirror / 'LOG').as_uri()}",
            "spark.executor.memory=512m"]  # fmt: skip
    assert main(["tally", root, "--campaign", "p.json", "--engine", "local", "--out", "local"]) == 0
    expected = json.loads(Path("local/summary.json").read_text())["rounds"]
    assert [row["n"] for row in expected] == [40000, 40000]
    return root, [word for one in conf for word in ("--conf", one)], expected


def counted(out: str, expected: Any) -> None:
    """The tallies are those of engine local, file for file."""
    assert json.loads(Path(out, "summary.json").read_text())["rounds"] == expected
    for file in Path("local").glob("*.tally"):
        assert Path(out, file.name).read_bytes() == file.read_bytes()


def run(line: list[str], during: Callable[[], None] = lambda: None) -> str:
    """Run a command to its end; what it says besides its results."""
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1",
                                    "PYSPARK_PYTHON": sys.executable})  # fmt: skip
    try:
        during()
        out, err = process.communicate(timeout=400)
    finally:
        process.kill()
    assert process.returncode == 0, (out + err)[-3000:]
    return err


def loloha_tally(root: str, out: str, *more: str) -> list[str]:
    line = ["tally", root, "--campaign", "p.json", "--engine", "spark", "--out", out]
    return [sys.executable, "-m", "loloha", *line, *more]


def test_a_cluster_counts_as_this_machine_does_and_says_nothing_else(
    there: Any, cluster: Cluster
) -> None:
    root, conf, expected = there
    said = run(loloha_tally(root, "spark", "--master", cluster.url, *conf))
    counted("spark", expected)
    assert len({path.parts[-3] for path in cluster.executors()}) == 2
    assert "WARN" not in said.replace("WARNING: Using incubator modules", "")
    executed = "".join(path.read_text() for path in cluster.folder.glob("worker-*/app-*/*/stderr"))
    # Only the s3a address, never a path of the driver; no task of the 200 that Spark would make.
    assert f"s3a://{located(root).mount.host}/LOG/campaign=" in executed  # type: ignore[union-attr]
    assert str(Path.cwd()) not in executed.replace(f"{Path.cwd()}/p.json", "")
    assert "Running task 2.0" not in executed
    assert "RowBasedKeyValueBatch" not in executed


def test_a_worker_that_dies_in_mid_job_changes_no_count(there: Any, cluster: Cluster) -> None:
    root, conf, expected = there

    def loses_one() -> None:
        for _ in range(1200):
            if len(cluster.executors()) == 2 and any(
                "Running task" in (path / "stderr").read_text()
                for path in cluster.executors()
                if (path / "stderr").exists() and "worker-0" in str(path)
            ):
                break
            time.sleep(0.05)
        cluster.kill(0)

    # Longer tasks: one file at a time, and many of them.
    slow = ["--conf", "spark.sql.files.maxPartitionBytes=20000", "--conf",
            "spark.sql.files.openCostInBytes=0", "--conf", "spark.sql.shuffle.partitions=64",
            "--conf", "spark.sql.adaptive.enabled=false"]  # fmt: skip
    run(loloha_tally(root, "spark", "--master", cluster.url, *conf, *slow), loses_one)
    assert cluster.workers[0].poll() is not None
    counted("spark", expected)


def test_spark_submit_knows_its_master(there: Any, cluster: Cluster) -> None:
    root, conf, expected = there
    submit = Path(__import__("pyspark").__file__).parent / "bin" / "spark-submit"
    program = str(Path(loloha.__file__).with_name("__main__.py"))
    line = [str(submit), "--master", cluster.url, *conf, program, *loloha_tally(root, "spark")[3:]]
    run(line)
    counted("spark", expected)
    assert len({path.parts[-3] for path in cluster.executors()}) == 2


def test_spark_connect_is_a_master_too(there: Any, cluster: Cluster) -> None:
    pytest.importorskip("grpc", reason="needs grpc: pip install 'pyspark[connect]'")
    root, conf, expected = there
    port = free_port()
    log = cluster.folder / "connect.log"
    connect = "org.apache.spark.sql.connect.service.SparkConnectServer"
    server = spark_class(
        log, "org.apache.spark.deploy.SparkSubmit", "--master", cluster.url, *conf,
        "--conf", f"spark.connect.grpc.binding.port={port}",
        "--conf", "spark.connect.grpc.binding.address=127.0.0.1", "--class", connect,
        "spark-internal",
    )  # fmt: skip
    try:
        awaited(log, "(Spark Connect server started)")
        run(loloha_tally(root, "spark", "--master", f"sc://127.0.0.1:{port}"))
    finally:
        stopped(server)
    counted("spark", expected)
