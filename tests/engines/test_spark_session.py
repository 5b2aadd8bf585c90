"""What a Spark session is asked for, without Java: its settings, its tasks, its columns."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from loloha import LGRR, BiLOLOHA, DBitFlipPM
from loloha.engines import spark
from loloha.engines.spark import SHUFFLE, UNSET


class Builder:
    """Notes what a session is built with."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}

    def config(self, name: str, setting: str) -> Self:
        self.said[name] = setting
        return self

    def appName(self, name: str) -> Self:
        return self.config("name", name)

    def remote(self, master: str) -> Self:
        return self.config("remote", master)

    def getOrCreate(self) -> dict[str, str]:
        return self.said


@pytest.fixture
def active(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The one active session, None at first."""
    sessions: list[Any] = [None]

    def library(name: str, extra: str) -> Any:
        session = SimpleNamespace(builder=Builder(), getActiveSession=lambda: sessions[0])
        return SimpleNamespace(SparkSession=session, PySparkException=ArithmeticError)

    monkeypatch.setattr(spark, "library", library)
    monkeypatch.setattr(spark, "_memory", lambda: {"memory": "half"})
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    return sessions


def test_a_session_is_the_active_one_or_is_started_here_or_at_the_master(
    active: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = {"name": "loloha", **spark.QUIET, **spark.LOCAL, "memory": "half"}
    assert spark.started() == here
    assert spark.started(conf={"spark.master": "mine"}) == here | {"spark.master": "mine"}
    there = {"name": "loloha", **spark.QUIET, "spark.master": "yarn"}
    assert spark.started("yarn") == there
    assert spark.started("sc://host") == {"name": "loloha", "remote": "sc://host"}
    active[0] = "the active one"
    assert spark.started() == "the active one"
    assert spark.started("yarn") == there
    active[0] = None
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert spark.started() == {"name": "loloha", **spark.QUIET}


def test_a_session_of_ours_has_half_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for pages, shown in ((2 << 20, "4096m"), (10, "1024m"), (3 << 19, "3072m")):
        sizes = {"SC_PHYS_PAGES": pages, "SC_PAGE_SIZE": 4096}
        monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
        assert spark._memory() == {"spark.driver.memory": shown}
    monkeypatch.delattr(os, "sysconf")
    assert spark._memory() == {}


@pytest.mark.parametrize(("before", "within"), [(UNSET, "7"), ("33", "33")])
def test_tasks_are_as_many_as_suit_the_log_unless_somebody_chose(before: str, within: str) -> None:
    told = {} if before == UNSET else {SHUFFLE: before}
    conf = SimpleNamespace(
        get=lambda name: told.get(name, UNSET), set=told.__setitem__, unset=told.pop
    )
    kept = dict(told)
    with spark._tasks(SimpleNamespace(conf=conf), 7):
        assert conf.get(SHUFFLE) == within
    assert told == kept


@pytest.mark.parametrize(
    ("protocol", "columns"),
    [
        (LGRR(k=5, eps_inf=2.0, eps_1=1.0), ["reporter binary", "y int"]),
        (BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0), ["reporter binary", "key int", "y int"]),
        (
            BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0, hash="affine"),
            ["reporter binary", "key bigint", "y int"],
        ),
        (
            DBitFlipPM(k=5, b=5, d=2, eps_inf=2.0),
            ["reporter binary", "y array<int>"],
        ),
    ],
    ids=repr,
)
def test_files_are_read_with_stated_columns_and_the_round_of_their_folder(
    protocol: Any, columns: list[str]
) -> None:
    said: dict[str, Any] = {}

    class Reader:
        def schema(self, text: str) -> Self:
            said["schema"] = text
            return self

        def option(self, name: str, setting: str) -> Self:
            said[name] = setting
            return self

        def parquet(self, *files: str) -> tuple[str, ...]:
            return files

    paths = [Path(f"/log/a/round={t}/{name}.parquet") for t, name in ((3, "x"), (4, "y"))]
    rounds: Any = {t: [SimpleNamespace(path=path)] for t, path in zip((3, 4), paths, strict=True)}
    files = spark._frame(SimpleNamespace(read=Reader()), protocol, rounds)
    assert [file.rsplit("/", 2)[1:] for file in files] == [
        ["round=3", "x.parquet"],
        ["round=4", "y.parquet"],
    ]
    assert said["basePath"].endswith("/log/a")
    shown = said["schema"].split(", ")
    assert (shown[-1], sorted(shown[:-1])) == ("round bigint", sorted(columns))
    (alone,) = spark._frame(SimpleNamespace(read=Reader()), protocol, {4: rounds[4]})
    assert alone == files[1]
