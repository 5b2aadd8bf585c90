"""A standalone Spark cluster of two workers, started from pyspark's own jars, on this machine."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

SECONDS = 120


@dataclass
class Cluster:
    """A master and its workers."""

    url: str
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def kill(self, worker: int) -> None:
        """A worker and its executors, at once."""
        os.killpg(self.workers[worker].pid, signal.SIGKILL)
        self.workers[worker].wait()

    def executors(self) -> set[Path]:
        """Folders of executors that were started, by worker."""
        return set(self.folder.glob("worker-*/app-*/*"))


def spark_class(log: Path, *words: str, hidden: Path | None = None, **more: str) -> Any:
    """A daemon of Spark in a process group of its own, to which ``hidden`` is an empty folder."""
    import pyspark

    home = Path(pyspark.__file__).parent
    line = [str(home / "bin" / "spark-class"), *words]
    if hidden is not None and hides():
        script = 'mount -t tmpfs none "$1" && shift && exec "$@"'
        line = ["unshare", "-m", "sh", "-c", script, "sh", str(hidden), *line]
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", **more}
    with log.open("wb") as out:
        return subprocess.Popen(
            line, stdout=out, stderr=out, env=environment, start_new_session=True
        )


def hides() -> bool:
    """Whether a process can be given folders of its own."""
    if not shutil.which("unshare"):
        return False
    return subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


def awaited(log: Path, pattern: str) -> str:
    """What a daemon says once it is there."""
    for _ in range(SECONDS * 5):
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.2)
    raise AssertionError(log.read_text(errors="replace")[-2000:])


def stopped(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("pyspark", reason="needs pyspark: pip install 'loloha[spark]'")
    if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
        pytest.skip("no Java on this machine; Spark needs Java 17 or newer")
    folder = tmp_path / "cluster"
    folder.mkdir()
    log = folder / "master.log"
    deploy = "org.apache.spark.deploy"
    master = spark_class(log, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", "0",
                         "--webui-port", "0")  # fmt: skip
    started = Cluster(awaited(log, r"Starting Spark master at (spark://[\d.:]+)"), folder)
    driver = tmp_path / "driver"
    driver.mkdir()
    try:
        for number in range(2):
            here = folder / f"worker-{number}"
            here.mkdir()
            started.workers.append(
                spark_class(
                    folder / f"worker-{number}.log", f"{deploy}.worker.Worker", started.url,
                    "--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0",
                    "--work-dir", str(here), hidden=driver, SPARK_LOCAL_DIRS=str(here / "spill"),
                )
            )  # fmt: skip
        for number in range(2):
            awaited(folder / f"worker-{number}.log", "(Successfully registered)")
        yield started
    finally:
        for process in (*started.workers, master):
            stopped(process)
