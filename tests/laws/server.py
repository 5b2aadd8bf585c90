"""The server: counts of every answer, unbiased estimates, and what goes out with them."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import loloha
from laws import law, oracle
from laws.device import reporting
from laws.variants import FLAGSHIPS, VARIANTS
from loloha.conform.laws import walk
from loloha.distribution import exact_distribution
from loloha.report import Report


def enumerable(protocol: Any) -> bool:
    return oracle.every_key_is_listed(protocol)


@law(VARIANTS)
def support_is_counted_from_every_answer(protocol: Any) -> None:
    """One report through the tally supports exactly the bins that MATH says."""
    for key in oracle.keys(protocol):
        for y in oracle.answers(protocol):
            tally = protocol.tally()
            sent = oracle.shown(protocol, key)
            tally.add(Report(sent, y))
            assert tuple(tally.support()) == oracle.supports(protocol, sent, y)
            assert tally.eligible().tolist() == reaches(protocol, sent)
            assert tally.n == 1


@law(VARIANTS, enumerable)
def estimates_are_unbiased_with_the_stated_variance(protocol: Any) -> None:
    """One user, every outcome of the client through tally and estimate; PAINS 8: f in {0, 1}."""
    r = protocol.realised
    for v in range(protocol.k):
        mass, mean, square = np.zeros((3, protocol.bins))
        support = [Fraction(0)] * protocol.bins
        reached = [Fraction(0)] * protocol.bins
        for ((key, y),), chance in exact_distribution(reporting(protocol, v)).items():
            tally = protocol.tally()
            tally.add(Report(key, y))
            estimate = tally.estimate()
            eligible = tally.eligible() > 0
            assert np.isfinite(estimate.frequencies[eligible]).all()
            assert np.isfinite(estimate.standard_errors[eligible]).all()
            mass += float(chance) * eligible
            mean += float(chance) * np.where(eligible, estimate.frequencies, 0)
            square += float(chance) * np.where(eligible, estimate.frequencies, 0) ** 2
            for bin in range(protocol.bins):
                support[bin] += chance * int(tally.support()[bin])
                reached[bin] += chance * int(eligible[bin])
        for bin in range(protocol.bins):
            held = oracle.held(protocol, v, bin)
            chance = r.q_star + held * r.contrast
            assert support[bin] / reached[bin] == chance
            p = float(chance)
            mean_there, square_there = mean[bin] / mass[bin], square[bin] / mass[bin]
            assert mean_there == pytest.approx(float(held), abs=1e-9)
            stated = p * (1 - p) / float(r.contrast) ** 2
            assert square_there - mean_there**2 == pytest.approx(stated, rel=1e-9)
            eligible = mass[bin]
            formula = loloha.variance(protocol, n=1, f=float(held))
            assert formula * eligible == pytest.approx(stated, rel=1e-9)


@law(VARIANTS)
def a_bin_is_divided_by_the_reports_that_could_support_it(protocol: Any) -> None:
    """Users who did not sample a bucket say nothing about it; a bin that nobody reaches is NaN."""
    reports = [protocol.client().report(user % protocol.k, round=0) for user in range(3)]
    tally = protocol.tally()
    for report in reports:
        tally.add(report)
    estimate = tally.estimate()
    said = np.sum([oracle.supports(protocol, report.key, report.y) for report in reports], axis=0)
    asked = np.sum([reaches(protocol, report.key) for report in reports], axis=0)
    assert estimate.n == 3
    assert estimate.eligible.tolist() == asked.tolist()
    r = protocol.realised
    for bin, frequency in enumerate(estimate.frequencies):
        if asked[bin]:
            share = Fraction(int(said[bin]), int(asked[bin]))
            assert frequency == pytest.approx(float((share - r.q_star) / r.contrast), rel=1e-9)
        else:
            assert np.isnan(frequency)


def reaches(protocol: Any, key: Any) -> list[int]:
    """Which bins a report with this key could support."""
    sampled = key if isinstance(key, tuple) else range(protocol.bins)
    if oracle.is_number(protocol) and key is not None:
        sampled = (key - 1,)
    return [int(bin in sampled) for bin in range(protocol.bins)]


@law(VARIANTS)
def many_reports_count_what_each_supports(protocol: Any) -> None:
    reports = [report for *_, report in walk(protocol)]
    at_once = protocol.tally()
    at_once.update(*protocol.encoding.arrays(reports))
    assert at_once.n == len(reports)
    each = [oracle.supports(protocol, report.key, report.y) for report in reports]
    assert at_once.support().tolist() == np.sum(each, axis=0).tolist()


def columns(protocol: Any, reports: list[Report]) -> tuple[Any, Any]:
    """The array forms of reports."""
    keyless = protocol.encoding.key_bits == 0
    keys = None if keyless else np.array([report.key for report in reports], dtype=np.int64)
    ys = [report.y for report in reports]
    if oracle.bits(protocol):
        return keys, np.frombuffer(b"".join(ys), dtype=np.uint8).reshape(len(ys), -1)
    return keys, np.array(ys, dtype=np.int64)


@law(FLAGSHIPS)
def what_clients_do_goes_out_with_every_estimate(protocol: Any) -> None:
    """PAINS 16: realised noise rates, equal to those of the enumerated client."""
    tally = protocol.tally()
    tally.add(protocol.client().report(0, round=0))
    said = tally.estimate().parameters
    r = protocol.realised
    assert said["protocol"] == protocol.to_dict()
    assert said["g"] == protocol.g
    for name in ("p1", "q1", "p2", "q2", "p_star", "q_star"):
        number = getattr(r, name)
        assert said[name] == (None if number is None else float(number))
    # What was asked for, where rounding alone makes a difference.
    assert r.eps_first <= said["eps_first"] <= min(protocol.asked_first, r.eps_first * (1 + 2e-9))
    assert r.eps_memo <= said["eps_memo"] <= min(protocol.asked_memo, r.eps_memo * (1 + 2e-9))
