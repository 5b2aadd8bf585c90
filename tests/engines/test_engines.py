"""Every engine gives the tally that a few lines of plain Python give, from whatever log."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from loloha import BiLOLOHA
from loloha.engines import REGISTRY, make_engine, tally
from loloha.errors import ParameterError
from loloha.report import Report

PROTOCOL = BiLOLOHA(k=11, eps_inf=2.0, eps_1=1.0)


def test_the_registry_names_modules():
    for name in REGISTRY:
        if name != "spark":
            assert make_engine(name).name == name
    with pytest.raises(ParameterError, match="engine must be one of"):
        make_engine("abacus")


def expected(protocol, rows: Iterable[tuple[bytes, Any, Any]], guard: bool) -> tuple[Any, ...]:
    """Counts, n, duplicates, conflicts and invalid rows, one row after the other."""
    tally, encoding = protocol.tally(), protocol.encoding
    invalid = 0
    by_reporter = defaultdict(list)
    for number, (reporter, key, y) in enumerate(rows):
        keys = None if key is None else np.array([key])
        if not encoding.valid(keys, np.array([y]))[0]:
            invalid += 1
            continue
        by_reporter[reporter if guard else number].append(in_order(key, y))
    duplicates = conflicts = 0
    for who, reports in by_reporter.items():
        counted = min(reports) if not guard or who < b"\x80" else max(reports)
        tally.add(counted[-1])
        if len({order for order, _ in reports}) == 1:
            duplicates += len(reports) - 1
        else:
            conflicts += len(reports) - 1
    return tally.counts.tolist(), tally.n, duplicates, conflicts, invalid


class Sortable(Report):
    """Never compared: equal orders mean equal reports."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False


def in_order(key: Any, y: Any) -> tuple[Any, Report]:
    """The report as (what it is ordered by, itself)."""
    if np.ndim(y) == 0:
        key = None if key is None else int(key)
        return (-1 if key is None else key, int(y)), Sortable(key, int(y))
    packed = y.astype(np.uint8).tobytes()
    if key is None:
        return packed, Sortable(None, packed)
    bits = np.unpackbits(y, bitorder="little")
    return tuple(2 * key + bits[: len(key)]), Sortable(tuple(map(int, key)), packed)


def found(engine, log, guard: bool) -> dict[int, tuple[Any, ...]]:
    return {
        one.round: (
            one.tally.counts.tolist(), one.tally.n, one.duplicates, one.conflicts, one.invalid,
        )
        for one in tally(log, engine=engine, guard=guard)
    }  # fmt: skip


@pytest.mark.parametrize("guard", [True, False])
def test_every_engine_counts_the_same(protocol, messy, guard, engine):
    log, rows = messy(protocol)
    got = found(engine, log, guard)
    want = {round: expected(protocol, listed, guard) for round, listed in rows.items()}
    assert got == want
    assert want[3][-1] > 0
    assert (want[0][2] > 0 and want[0][3] > 0) == guard
    assert list(got) == [0, 3, 7, 12]
    assert got[7][1:] == (0, 0, 0, 0)


@pytest.mark.spark
@pytest.mark.parametrize("guard", [True, False])
def test_spark_counts_the_same(kind, messy, guard, spark):
    log, rows = messy(kind)
    want = {round: expected(kind, listed, guard) for round, listed in rows.items()}
    assert found(spark, log, guard) == want
