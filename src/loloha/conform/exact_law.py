"""Laws that follow every path of a client's draws, in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from loloha.channels import exp_below
from loloha.client import Client
from loloha.distribution import exact_distribution, loss_between
from loloha.errors import LawError
from loloha.population.samplers import History, sample
from loloha.population.samplers.enumerated import EnumeratedDraws, RunByClients
from loloha.protocols import Protocol
from loloha.report import Report
from loloha.rng import Rng
from loloha.server.tally import Tally
from loloha.server.variance import variance

Law = Callable[[Protocol], None]


Chances = dict[Any, Fraction]


_CLOSE = 1e-9
"""Tolerance between formulas in floating point and realised numbers."""


def must(holds: Any, what: str) -> None:
    """Raise `LawError` unless it holds."""
    if not holds:
        raise LawError(what)


def counted(protocol: Protocol, reports: Sequence[Report]) -> Tally:
    """The tally of these reports."""
    tally = protocol.tally()
    tally.update(*protocol.encoding.arrays(reports))
    return tally


def _distribution(
    protocol: Protocol, values: Sequence[int], transcript: Callable[..., Any]
) -> Chances:
    """The joint distribution of a new client's state and its reports of these values."""

    def run(rng: Rng) -> Any:
        client = protocol.client(rng=rng)
        return transcript(client, [client.report(v, round=round) for round, v in enumerate(values)])

    return exact_distribution(run)


def _reports(protocol: Protocol, *values: int) -> Chances:
    """The distribution of a new client's messages for these values."""
    return _distribution(
        protocol, values, lambda _, sent: tuple((report.key, report.y) for report in sent)
    )


def _must_lose(pmfs: list[Chances], realised: float | None, bound: float, what: str) -> None:
    """Any two distributions are within e^bound, exactly; their loss is the realised one."""
    must(len({frozenset(pmf) for pmf in pmfs}) == 1, f"{what} must give no value away for certain")
    ratio = max(pmf[y] / other[y] for pmf in pmfs for other in pmfs for y in pmf)
    # A rational just below e^bound; above it by rounding alone breaks the guarantee too.
    within = ratio <= exp_below(Fraction(bound)) * (1 + Fraction(1, 10**50))
    loss = max(loss_between(pmf, other) for pmf in pmfs for other in pmfs)
    must(within, f"{what} must lose at most {bound!r}, loses {loss!r}")
    near = realised is None or math.isclose(loss, realised, rel_tol=_CLOSE, abs_tol=1e-12)
    must(near, f"{what} must lose what is realised, {realised!r}, loses {loss!r}")


def the_first_report_loses_what_is_realised(protocol: Protocol) -> None:
    """And at most ``asked_first``: in exact arithmetic, between any two values."""
    pmfs = [_reports(protocol, v) for v in range(protocol.k)]
    _must_lose(pmfs, protocol.realised.eps_first, protocol.asked_first, "the first report")


def all_reports_of_a_value_lose_what_its_memo_loses(protocol: Protocol) -> None:
    """A memo loses what is realised, at most ``asked_memo``; so do reports, however many."""
    if not protocol.longitudinal:
        return
    memos = [
        _distribution(
            protocol, [v], lambda client, sent: (sent[0].key, str(client.to_dict()["memo"][0][1]))
        )
        for v in range(protocol.k)
    ]
    _must_lose(memos, protocol.realised.eps_memo, protocol.asked_memo, "a memo")
    twice = [_reports(protocol, v, v) for v in (0, protocol.k - 1)]
    _must_lose(twice, None, protocol.realised.eps_memo * (1 + 1e-12), "two reports of one value")


def support_has_the_stated_chances(protocol: Protocol) -> None:
    """p_star where the user holds the bin, else q_star, or between as the user holds it in part."""
    real, encoding = protocol.realised, protocol.encoding
    p_star, q_star = Fraction(real.p_star), Fraction(real.q_star)
    for v in range(protocol.k):
        support, eligible = [Fraction(0)] * protocol.bins, [Fraction(0)] * protocol.bins
        for ((key, y),), chance in _reports(protocol, v).items():
            tally = counted(protocol, [Report(key, y)])
            for bin in range(protocol.bins):
                support[bin] += chance * int(tally.support()[bin])
                eligible[bin] += chance * int(tally.eligible()[bin])
        for bin, (supported, reached) in enumerate(zip(support, eligible, strict=True)):
            weight = encoding.weight(v, bin)
            stated = q_star + (p_star - q_star) * weight
            must(
                supported == stated * reached,
                f"a report of value {v} must support bin {bin} with chance {float(stated)!r}, "
                f"does with {float(supported / reached)!r}",
            )
            spread = float(stated * (1 - stated) / (p_star - q_star) ** 2)
            formula = variance(protocol, n=1, f=float(weight)) * float(reached)
            near = math.isclose(formula, spread, rel_tol=_CLOSE)
            must(near, f"variance where a report reaches a bin must be {spread!r}, is {formula!r}")


def a_population_is_simulated_as_its_clients_are(protocol: Protocol) -> None:
    """Counts and loss of one user in two rounds, whatever path `simulate` takes."""
    # Bits double the paths each.
    few = protocol.encoding.report_bits - protocol.encoding.key_bits <= 2
    values = [0, protocol.k - 1] if few else [protocol.k - 1]
    history = History(np.array([values]), protocol.k)

    def simulated(rng: Rng) -> Any:
        drawn = sample(protocol, history, EnumeratedDraws(rng), lambda _: None)
        counts = [tuple(count.tolist()) for count in drawn.counts]
        return (*counts, round(float(drawn.loss[0]), 9))

    def reported(client: Client, sent: list[Report]) -> Any:
        counts = [tuple(counted(protocol, [report]).counts.tolist()) for report in sent]
        return (*counts, round(client.loss, 9))

    try:
        simulated_pmf = exact_distribution(simulated)
    except RunByClients:
        return
    same = simulated_pmf == _distribution(protocol, values, reported)
    must(same, "a simulated population must have exactly the distribution of its clients")
