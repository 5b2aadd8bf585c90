"""The expected error and cost of one protocol with a number of reports a round."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from loloha import checks
from loloha.encodings import Encoding, Hashed, OneHot, SampledBuckets, Symbols, for_encoding
from loloha.encodings.part import COST
from loloha.hashing import LinearHash
from loloha.planning import limits
from loloha.privacy.change import change_auc
from loloha.privacy.rounded import digits
from loloha.privacy.transcript import eps_2 as round_loss
from loloha.protocols import Protocol
from loloha.protocols.realised import as_asked
from loloha.server.bound import simultaneous_error
from loloha.server.frame import normal_quantile
from loloha.server.unbiased import inversion
from loloha.server.variance import drawn_from, harmonic_eligible, variance

REPORTS_OF_A_CHANGE = 10
"""Reports before and after a change, in statements of how surely it shows."""


@dataclass(frozen=True)
class Prospect:
    """What one protocol can see and costs. Numbers are infinite where no budgets allow it.

    Errors and frequencies are shares of the reports of one round.

    Attributes
    ----------
    name, label : str
        Its name in the registry; and with the parameter that distinguishes rows of one name.
    protocol : Protocol or None
    eligible : bool
        Whether it is within the given budgets eps_1, eps_2 and eps_inf. In a `loloha.plan` a report
        above 64 kB makes it False as well, unless the protocol was asked for by name.
    note : str
        Why it is not eligible; empty if it is.
    g : int or None
        Symbols that are randomised over; None for bits.
    variance : float
        V*, the variance of a rare value's estimate.
    rmse : float
        Root of the mean squared error over all values before any projection: of equal frequencies,
        for which it is largest. The same for every truth, unless users or buckets are sampled.
    uniform_below : float
        Spread of the true frequencies (standard deviation over the values) below which always
        answering 1/bins has the smaller mean squared error over all values.
    error_one : float
        Standard errors of one rare value's estimate that its interval is wide on either side, where
        many reports support it; wider where few do (docs/intervals.md).
    error_all : float
        Bound on the errors of all values at once (Hoeffding).
    visible_one : float
        Smallest frequency of a value picked beforehand whose interval lies above 0 with
        probability ``level``; ``inf`` if not even 1 is.
    visible_all : float
        The same when all values are looked at: of a value that is `Estimate.significant`.
    first_bytes, report_bytes : float
        Whole numbers, both the same: key and answer of a report. Every message carries the key.
    server_cost : str
        What the server does in a round.
    server_operations : float
        Its rough number of machine operations; ``inf`` where that is not known.
    shared : float
        Users for each key, on average; None where keys are not permanent.
    eps_1, eps_inf, eps_2, cap : float
        Loss of the first report; of all reports of one value; of any one round, all others known;
        most budget that can be spent. ``inf`` where nothing bounds it.
    left_out : bool
        Whether the size of its reports alone keeps it from being recommended.
    """

    name: str
    label: str
    protocol: Protocol | None
    eligible: bool
    note: str
    g: int | None = None
    variance: float = math.inf
    rmse: float = math.inf
    uniform_below: float = math.inf
    error_one: float = math.inf
    error_all: float = math.inf
    visible_one: float = math.inf
    visible_all: float = math.inf
    first_bytes: float = math.inf
    report_bytes: float = math.inf
    server_cost: str = ""
    server_operations: float = math.inf
    shared: float | None = None
    eps_1: float = math.inf
    eps_inf: float = math.inf
    eps_2: float = math.inf
    cap: float = math.inf
    left_out: bool = False

    @property
    def title(self) -> str:
        """The label, with the hash family where it is not the one that a protocol takes alone."""
        family = getattr(self.protocol, "hash", LinearHash.name)
        named = family == LinearHash.name or family in self.label
        return self.label if named else f"{self.label} {family}"

    @property
    def change(self) -> float | None:
        """How surely a change shows to the best test of 10 reports before and after it, at most."""
        # Area under its ROC curve, or an upper bound of it (`loloha.privacy.change_auc` says
        # which).
        shown = None if self.protocol is None else change_auc(self.protocol, REPORTS_OF_A_CHANGE)
        return None if shown is None else digits(shown.auc, 12)

    @property
    def above_optimum(self) -> float | None:
        """V* over the least that any report with this first loss allows, less 1."""
        if self.protocol is None or self.protocol.bins != self.protocol.k:
            return None
        best = limits.variance(self.protocol.k, self.protocol.asked_first)
        # What attains it differs from it by rounding alone.
        return max(0.0, round(float(variance(self.protocol, 1)) / best - 1, 10))

    @property
    def spends_every_round(self) -> bool:
        """Whether nothing is memoised, so that no bound holds for ever."""
        return self.protocol is not None and not self.protocol.longitudinal

    def to_dict(self) -> dict[str, Any]:
        """As JSON data; what is infinite is None."""
        plain = {field.name: checks.finite(getattr(self, field.name)) for field in fields(self)}
        plain["protocol"] = self.protocol.to_dict() if self.protocol else None
        plain["cap"] = checks.finite(digits(self.cap, 15))
        beside = ("change", "above_optimum", "spends_every_round")
        return plain | {name: checks.finite(getattr(self, name)) for name in beside}


def prospect(
    protocol: Protocol,
    n: int,
    eps_inf: float = math.inf,
    eps_1: float = math.inf,
    *,
    eps_2: float = math.inf,
    level: float = 0.95,
    label: str | None = None,
    population: int | None = None,
) -> Prospect:
    """What the protocol can see with n reports a round, what it costs, if it is within budgets."""
    # A sample of m of N users adds f(1-f) (N - m) / ((N - 1) m) to the variance: see
    # `loloha.variance`. At f = 0 it adds nothing, and Hoeffding's bound of all values holds for
    # draws without replacement as well (W. Hoeffding 1963, theorem 4). Of sampled buckets the
    # numbers are those of a bucket that some user samples, with its `harmonic_eligible`.
    level = checks.level(level)
    interval, power = normal_quantile((1 + level) / 2), normal_quantile(level)
    encoding = protocol.encoding
    note = _outside(protocol, eps_inf, eps_1, eps_2)
    eligible = harmonic_eligible(protocol, n)
    users = drawn_from(population, n)
    rare, whole, even = variance(
        protocol, users, (0.0, 1.0, 1 / protocol.bins), eligible=eligible
    ).tolist()
    sampled = (users - eligible) / max(users - 1, 1) / eligible
    error_all = simultaneous_error(protocol, eligible, level=level)
    alone, every = _margins(protocol, n, eligible, level)
    report_bytes = -(-encoding.report_bits // 8)
    cost, operations = _server(protocol, n)
    hashes = type(protocol.encoding) is Hashed
    return Prospect(
        name=protocol.name,
        label=label or protocol.name,
        protocol=protocol,
        eligible=not note,
        note=note,
        g=protocol.g,
        variance=rare,
        rmse=math.sqrt(even),
        # Of frequencies that spread by s it is sqrt(even - sampled s^2), and s of answering 1/bins.
        uniform_below=math.sqrt(even / (1 + sampled)),
        error_one=interval * math.sqrt(rare),
        error_all=error_all,
        visible_one=_visible(rare, whole, sampled, alone, power),
        visible_all=_visible(rare, whole, sampled, every, power),
        first_bytes=report_bytes,
        report_bytes=report_bytes,
        server_cost=cost,
        server_operations=operations,
        shared=n / protocol.encoding.key_count if protocol.longitudinal and hashes else None,
        eps_1=protocol.asked_first,
        eps_inf=protocol.asked_memo if protocol.longitudinal else math.inf,
        eps_2=as_asked(round_loss(protocol), eps_2),
        cap=protocol.cap,
    )


def _outside(protocol: Protocol, eps_inf: float, eps_1: float, eps_2: float) -> str:
    """Which budget the protocol breaks; empty if it keeps all."""
    if not protocol.longitudinal:
        return f"spends {protocol.asked_first:g} every round: nothing bounds the total"
    if protocol.asked_first > eps_1:
        return f"the first report spends {protocol.asked_first:g}, more than eps_1 = {eps_1:g}"
    if protocol.asked_memo > eps_inf:
        return f"one value spends {protocol.asked_memo:g}, more than eps_inf = {eps_inf:g}"
    lost = round_loss(protocol)
    if eps_2 < lost == math.inf:
        return f"nothing bounds what one round loses: more than eps_2 = {eps_2:g}"
    if lost > eps_2 * (1 + 1e-9):
        return f"one round loses {lost:g}, more than eps_2 = {eps_2:g}"
    return ""


def _margins(protocol: Protocol, n: int, eligible: Any, level: float) -> tuple[float, float]:
    """How far a frequency must be above its own noise to pass the test of one value, and of all."""
    # The least count that passes, with the continuity correction of a half, and the third order of
    # Cornish and Fisher at the frequency where that is least.
    test = inversion(protocol, n, np.zeros(1), np.array([eligible]))
    p, q = float(protocol.realised.p_star), float(protocol.realised.q_star)
    unit, by_noise = float(np.ravel(test.unit)[0]), float(eligible) * q
    z = normal_quantile(level)
    skew = (z * z - 1) / 6 * (1 - 2 * p)

    def margin(tested: int | None) -> float:
        threshold = float(np.ravel(test.threshold(level, tested))[0])
        least = math.floor(by_noise + threshold / unit) + 1
        return unit * (least - 0.5 - by_noise - skew)

    return margin(None), margin(protocol.bins)


def _visible(at_0: float, at_1: float, sampled: float, margin: float, quantile: float) -> float:
    """The f in [0, 1] with f = margin + quantile sqrt(variance at f); inf if there is none."""
    # The variance is at_0 + (at_1 - at_0) f + sampled f (1-f).
    if margin + quantile * math.sqrt(at_1) > 1:
        # The variance is concave in f, so the noise stays above f all the way.
        return math.inf
    # Squaring the equation leaves a quadratic.
    rise, square = at_1 - at_0 + sampled, quantile**2
    lead, middle = 1 + square * sampled, margin + square * rise / 2
    rest = margin**2 - square * at_0
    return (middle + math.sqrt(middle**2 - lead * rest)) / lead


_Work = Callable[[Protocol, Any, int], tuple[str, float]]


def _server(protocol: Protocol, n: int) -> tuple[str, float]:
    """What a round costs the server: in words, and roughly in machine operations."""
    work: _Work | None = COST.of(protocol.encoding)
    if work is None:
        return "what its own encoding counts; not known here", math.inf
    return work(protocol, protocol.encoding, n)


@for_encoding(COST.name, Symbols)
def _symbols(protocol: Protocol, encoding: Symbols, n: int) -> tuple[str, float]:
    return "one addition a report", n + encoding.k


@for_encoding(COST.name, Hashed)
def _hashed(protocol: Protocol, encoding: Hashed, n: int) -> tuple[str, float]:
    family = encoding.family
    if encoding.tabled:
        step, passes = "pass over", 2
        if type(family) is LinearHash:
            step, passes = "transform of", max(1, math.ceil(math.log2(family.size)))
        words = f"one addition a report, one {step} {family.table_rows} x {family.g} cells"
        return words, n + encoding.cells * passes
    if not protocol.longitudinal:
        return "one hash a report and value", n * family.k
    words, operations = _bits(protocol, encoding, n)
    return f"one hash a user and value, once; then {words}", operations


@for_encoding(COST.name, OneHot)
def _bits(protocol: Protocol, encoding: Encoding, n: int) -> tuple[str, float]:
    return f"{encoding.bins} bits a report, 64 to a word", n * -(-encoding.bins // 64)


@for_encoding(COST.name, SampledBuckets)
def _buckets(protocol: Protocol, encoding: SampledBuckets, n: int) -> tuple[str, float]:
    return f"{checks.counted(encoding.d, 'bit')} a report", n * encoding.d
