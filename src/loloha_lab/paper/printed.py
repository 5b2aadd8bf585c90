"""Numbers and formulas that the paper prints, beside ours where they differ."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from loloha.protocols import Protocol
from loloha_lab.attacks import Distinct
from loloha_lab.paper.exact_figures import optimal_g
from loloha_lab.paper.grid import CurvePoint, Grid
from loloha_lab.paper.grid_results import Results
from loloha_lab.paper.method import METHODS, PUBLISHED, TIGHT
from loloha_lab.paper.result_table import Table, data_note

SIZES = {
    "Syn": (10_000, 360, 120),
    "Adult": (45_222, 96, 260),
    "DB_MT": (10_336, 1412, 80),
    "DB_DE": (9_123, 1234, 80),
}
"""Users, values and rounds of each data set, as the paper has them."""
RUNS = 20
LARGEST_G = (5.0, 0.6, 17)
"""eps_inf, alpha, and the g that the paper names there."""
EXPOSED = {0.5: 0.005, 5.0: 0.001}
"""Table 2, DB_MT at d = 1, in percent, by eps_inf; 0 on the other data sets, 100 at d = b."""
K, G = 360, 2
REDUCED, STANDIN = "a reduced size was asked for", "a stand-in, since the file is not there"
# Percentages are printed with three digits after the point.
DIGITS = 3
BETA = 0.05


def gamma_variance(protocol: Protocol, n: int, f: float) -> float:
    """The paper's variance of one estimate."""
    gamma = f * protocol.p_star + (1 - f) * protocol.q_star
    return gamma * (1 - gamma) / (n * protocol.contrast**2)


def mean_if_one_over_g(protocol: Protocol, mean: float) -> float:
    """What the mean estimate would be if the server took 1/g for the collision probability."""
    support = protocol.q_star + mean * protocol.contrast
    g = protocol.g or 1
    return (support - 1 / g) / (protocol.p_star - 1 / g)


def paper_flip_variance(protocol: Protocol, n: int) -> float:
    """V* of dBitFlipPM as printed in the paper."""
    params = protocol.get_params()
    return float(params["b"] / (2 * params["d"] * n * math.sinh(params["eps_inf"] / 2)))


def paper_error_bound(protocol: Protocol, n: int) -> float:
    """The bound as printed, without the square."""
    return math.sqrt(protocol.k / (4 * n * BETA * protocol.contrast))


def exact_exceedance(protocol: Protocol, n: int, bound: float) -> float:
    """Chance that the estimate of a value nobody holds is off by ``bound`` or more."""
    from scipy.stats import binom

    width = n * protocol.contrast * bound
    centre = n * protocol.q_star
    above = binom.sf(math.ceil(centre + width) - 1, n, protocol.q_star)
    below = binom.cdf(math.floor(centre - width), n, protocol.q_star)
    return float(above + below)


def exposed_by_bucket(protocol: Protocol, visits: Distinct) -> float:
    """Share of users exposed if an answer of one bit were memoised for each visited bucket."""
    p, q = protocol.first
    buckets = np.bincount(visits.users, minlength=visits.n)
    sampled = 2 / protocol.bins
    differ = sampled * (p * (1 - q) + q * (1 - p)) + (1 - sampled) * 2 * q * (1 - q)
    return float(np.mean(buckets == 1) + np.mean(buckets == 2) * differ)


def quote(where: str, what: str, theirs: float, ours: float, why: str = "") -> dict[str, Any]:
    """A printed number beside ours, and the reason if they differ."""
    return {
        "in the paper": where,
        "what": what,
        "the paper": theirs,
        "here": ours,
        "difference": ours - theirs,
        "why": why if ours != theirs else "",
    }


def quoted_table(results: Results | None) -> Table:
    """Every number that the paper prints and that can be had: without a grid what needs none."""
    quotes = [*_optimal_g(), *_costs()]
    if results is not None:
        quotes += [*_sizes(results), *_budgets(results), *_exposures(results)]
    return Table(
        "printed",
        "The paper's printed numbers beside ours",
        quotes,
        "Figures 2 to 4 print no numbers; what the text says of them stands above each figure. "
        "Printed formulas are compared with measurements below. "
        + (data_note(results) if results else "No data."),
    )


def _optimal_g() -> Iterator[dict[str, Any]]:
    eps_inf, alpha, printed = LARGEST_G
    for calibration, why in ((PUBLISHED, ""), (TIGHT, "exp(ε₁) + 1: correction 2")):
        what = f"g of least variance at ε∞ = {eps_inf:g}, α = {alpha:g}, {calibration}"
        yield quote("Figure 1, text", what, printed, optimal_g(eps_inf, alpha, calibration), why)


def _costs() -> Iterator[dict[str, Any]]:
    """Table 1 in numbers, at the k of Syn and eps_inf = 1; bits of a report after the first."""
    bits = {"rappor": K, "l-osue": K, "l-grr": math.ceil(math.log2(K)), "biloloha": 1}
    caps = {"rappor": K, "l-osue": K, "l-grr": K, "biloloha": G, "1bitflippm": 2, "bbitflippm": K}
    for key, printed in bits.items():
        encoding = METHODS[key].build(K, 1.0, 0.5).encoding
        measured = encoding.report_bits - encoding.key_bits
        what = f"bits of a report, {METHODS[key].label}, k = {K}"
        yield quote("Table 1", what, printed, measured)
    for key, cap in caps.items():
        what = f"cap of {METHODS[key].label}, k = {K}, ε∞ = 1"
        yield quote("Table 1", what, cap, METHODS[key].build(K, 1.0, 0.5).cap)


def _sizes(results: Results) -> Iterator[dict[str, Any]]:
    grid = results.grid
    for name in grid.workloads:
        facts = results.facts[name]
        why = STANDIN if facts.source == "stand-in" else REDUCED
        measured = (facts.n, facts.k, facts.tau)
        for what, printed, ours in zip(("n", "k", "τ"), SIZES[name], measured, strict=True):
            yield quote("Data sets", f"{what} of {name}", printed, ours, why)
    yield quote("Evaluation", "runs of each point", RUNS, grid.runs, REDUCED)
    full = Grid()
    yield quote("Evaluation", "values of ε∞", len(full.eps_inf), len(grid.eps_inf), REDUCED)
    yield quote("Evaluation", "values of α", len(full.alphas), len(grid.alphas), REDUCED)


def _budgets(results: Results) -> Iterator[dict[str, Any]]:
    """The abstract: LOLOHA's budget is smaller by up to k/g."""
    grid = results.grid
    for name in grid.workloads:
        rappor, ours = (
            list(results.along(name, METHODS[key], PUBLISHED, grid.alphas[0]))[-1]
            for key in ("rappor", "biloloha")
        )
        ratio = results.mean(rappor, "eps_avg") / results.mean(ours, "eps_avg")
        yield quote(
            "Abstract",
            f"budget of RAPPOR over BiLOLOHA on {name}, up to k/g",
            results.facts[name].k / G,
            ratio,
            "k/g is the ratio of the caps, and nobody visits all values; it is a factor, not the "
            "“orders of magnitude” of the text",
        )


def _exposures(results: Results) -> Iterator[dict[str, Any]]:
    """Table 2: users of whom dBitFlipPM shows every change, in percent."""
    grid = results.grid
    for name, key in itertools.product(grid.workloads, ("1bitflippm", "bbitflippm")):
        for point in results.along(name, METHODS[key], PUBLISHED, grid.alphas[0]):
            printed = _printed_exposure(point)
            if point.eps_inf in (grid.eps_inf[0], grid.eps_inf[-1]) and printed is not None:
                d = "d = b" if METHODS[key].sampled == 0 else "d = 1"
                yield quote(
                    "Table 2",
                    f"users exposed on {name}, {d}, ε∞ = {point.eps_inf:g}, in %",
                    printed,
                    round(100 * results.mean(point, "exposed"), DIGITS),
                    _why_exposed(results, point),
                )


def _printed_exposure(point: CurvePoint) -> float | None:
    """None where we do not know what is printed."""
    if METHODS[point.method].sampled == 0:
        return 100.0
    return EXPOSED.get(point.eps_inf) if point.workload == "DB_MT" else 0.0


def _why_exposed(results: Results, point: CurvePoint) -> str:
    if results.grid.users or results.grid.rounds:
        return REDUCED
    if METHODS[point.method].sampled == 0:
        return "two answers of one user are equal by chance"
    visits = results.material(point).visits
    apart = round(100 * exposed_by_bucket(results.protocol(point), visits), DIGITS)
    return f"an answer memoised for each bucket would give {apart:g}: correction 10"
