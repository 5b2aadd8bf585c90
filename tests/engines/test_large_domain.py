"""A million values and more: from clients to the few values that are surely there."""

import json
from csv import DictReader

import numpy as np
import pytest

from loloha import BiLOLOHA
from loloha.cli import main
from loloha.engines import tally
from loloha.reportlog import ReportLog, generate
from loloha.rng import SimulationRng

K = 10**6
COMMON = {7: 0.5, 999_999: 0.3, 524_288: 0.2}


@pytest.fixture
def log(tmp_path) -> ReportLog:
    protocol = BiLOLOHA(k=K, eps_inf=5.0, eps_1=4.0)
    values = np.repeat(list(COMMON), [round(10 * share) for share in COMMON.values()])[:, None]
    log = ReportLog(tmp_path / "log", protocol)
    generate(log, values, users=20_000, rng=4)
    return log


@pytest.mark.parametrize("engine", ["duckdb", "local"])
def test_what_is_above_the_bound_is_there_and_nothing_else(engine, log):
    """Sees any value whose estimate is off by the bound that holds for all with 1 - 2e-9."""
    (one,) = tally(log, engine=engine)
    estimate = one.tally.estimate()
    bound = estimate.simultaneous(1 - 2e-9).max()
    assert bound < 0.07
    assert set(np.flatnonzero(estimate.frequencies > bound)) == set(COMMON)
    for value, share in COMMON.items():
        assert abs(estimate.frequencies[value] - share) < bound


def test_a_client_knows_no_domain_size():
    client = BiLOLOHA(k=1 << 24, eps_inf=2.0, eps_1=1.0).client(rng=SimulationRng(1))
    report = client.report((1 << 24) - 1, round=0)
    assert 1 <= report.key < 1 << 24
    assert report.y in (0, 1)


def test_only_what_is_clear_is_printed(log, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.json").write_text(json.dumps(log.protocol.to_dict()))
    assert main(["tally", "log", "--campaign", "p.json", "--out", "t"]) == 0
    capsys.readouterr()
    assert main(["estimate", "t", "--only-clear", "--out", "e.csv"]) == 0
    with (tmp_path / "e.csv").open() as file:
        assert [int(row["value"]) for row in DictReader(file)] == list(COMMON)
