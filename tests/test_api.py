"""The public API, line by line as its users write it."""

import math
from pathlib import Path

import numpy as np
import pytest

import loloha
from loloha.errors import LolohaError, MergeError
from loloha.protocols import REGISTRY

PROTOCOL = loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0)


def test_a_protocol_is_made_by_class_or_by_name() -> None:
    protocol = loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0)
    assert protocol == loloha.protocol("ololoha", k=96, eps_inf=2.0, eps_1=1.0)
    numbers = (
        protocol.g, protocol.p1, protocol.q1, protocol.p2, protocol.q2,
        protocol.p_star, protocol.q_star, protocol.cap,
    )  # fmt: skip
    assert all(math.isfinite(number) for number in numbers)
    assert protocol.cap == protocol.g * 2.0
    other = loloha.BiLOLOHA(k=96, eps_inf=2.0, eps_1=1.0, calibration="published", hash="affine")
    assert (other.g, other.hash) == (2, "affine")
    buckets = loloha.DBitFlipPM(k=1412, eps_inf=2.0, b=353, d=16)
    assert (buckets.bins, buckets.p2) == (353, None)
    assert loloha.OLH(k=96, eps=1.0).cap == math.inf


def test_a_client_reports_once_a_round_and_survives_a_restart() -> None:
    protocol = PROTOCOL
    client = protocol.client()
    report = client.report(42, round=0)
    assert (report.key, report.y) == (client.report(42, round=0).key, report.y)
    assert client.report(42, round=0) == report
    assert client.loss == 2.0
    client = loloha.Client.from_dict(client.to_dict())
    assert client.report(42, round=0) == report
    assert client.loss == 2.0


def test_a_tally_is_added_to_and_merged() -> None:
    protocol = PROTOCOL
    clients = [protocol.client() for _ in range(200)]
    reports = [client.report(42, round=0) for client in clients]
    tally = protocol.tally()
    tally.add(reports[0])
    keys = np.array([report.key for report in reports[1:]])
    ys = np.array([report.y for report in reports[1:]])
    other = protocol.tally()
    other.update(keys, ys)
    tally = tally + other
    with pytest.raises(MergeError):
        tally + loloha.BiLOLOHA(k=96, eps_inf=2.0, eps_1=1.0).tally()
    support = tally.support()
    assert (support.dtype, support.shape) == (np.int64, (96,))
    assert tally.n == 200
    estimate = tally.estimate()
    assert estimate.n == 200
    for array in (estimate.frequencies, estimate.standard_errors, *estimate.interval(0.95)):
        assert (array.dtype, array.shape) == (np.float64, (96,))
    projected = loloha.postprocess.project_simplex(estimate.frequencies)
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(1.0)


def test_a_population_is_simulated() -> None:
    protocol = PROTOCOL
    values = np.random.default_rng(1).integers(0, 96, size=(500, 6))
    result = loloha.simulate(protocol, values, rng=7)
    assert (result.estimates.dtype, result.estimates.shape) == (np.float64, (6, 96))
    assert (result.loss.dtype, result.loss.shape) == (np.float64, (500,))
    assert [tally.n for tally in result.tallies] == [500] * 6
    again = loloha.simulate(protocol, values, rng=7)
    assert np.array_equal(result.estimates, again.estimates)


def test_what_to_expect_is_known_beforehand() -> None:
    protocol = PROTOCOL
    v_star = loloha.variance(protocol, n=10_000)
    assert 0 < v_star < loloha.variance(protocol, n=1000)
    assert loloha.variance(protocol, n=10_000, f=np.array([0.0, 0.5])).shape == (2,)
    growth = loloha.privacy.growth(protocol, reports=[1, 2, 10])
    assert len(growth) == 3
    assert growth[0] == pytest.approx(1.0, abs=1e-9)
    assert growth[0] < growth[1] < growth[2] <= 2.0
    assert "2" in str(loloha.privacy.explain(protocol))
    plan = loloha.plan(k=96, n=50_000, eps_inf=2.0, eps_1=1.0)
    assert {row.protocol.name for row in plan.rows} == set(REGISTRY) - {"onebit"}
    assert plan.recommendation in plan.rows


def test_data_sets_have_values_labels_and_a_name(real_data: Path) -> None:
    for data_set, name, shape, k in (
        (loloha.datasets.syn(), "Syn", (10_000, 120), 360),
        (loloha.datasets.adult(real_data, tau=2), "Adult", (45_222, 2), 96),
        (loloha.datasets.acs_weights("MT", real_data, tau=2), "DB_MT", (10_336, 2), None),
    ):
        assert data_set.name == name
        assert data_set.values.shape == shape
        assert np.issubdtype(data_set.values.dtype, np.integer)
        assert 0 <= data_set.values.min() <= data_set.values.max() < len(data_set.labels)
        assert k in (None, len(data_set.labels))


def test_every_public_name_is_there_and_documented() -> None:
    assert len(loloha.__all__) == len(set(loloha.__all__))
    for name in loloha.__all__:
        assert getattr(loloha, name).__doc__, name
    assert set(loloha.__all__) <= set(dir(loloha))
    with pytest.raises(AttributeError, match="module 'loloha' has no attribute 'Nothing'"):
        loloha.Nothing  # noqa: B018


def test_one_except_clause_catches_what_loloha_raises() -> None:
    for provoke in (
        lambda: loloha.GRR(k=1, eps=1.0),
        lambda: PROTOCOL.client().report(96, round=0),
        lambda: PROTOCOL.tally().estimate(),
        lambda: loloha.Client.from_dict({}),
        lambda: loloha.Tally.from_bytes(b""),
    ):
        with pytest.raises(LolohaError):
            provoke()
