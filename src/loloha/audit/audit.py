"""The audit: fixed events are counted under two histories; their ratio bounds the loss from below.

If an event has probability P under one history and Q under another, the client loses at least
ln(P/Q) between them. P is bounded from below and Q from above at a stated confidence, so the loss
is, too. It proves violations; it cannot prove their absence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from loloha import checks
from loloha.audit.device import ClientDevice, Device, History, Transcript
from loloha.audit.event import EVENTS, STRETCH
from loloha.errors import ParameterError
from loloha.privacy.loss import growth
from loloha.privacy.transcript import eps_2
from loloha.protocols import Protocol

LOOKS = (1 / 64, 1 / 8, 1.0)
"""Shares of the users after which the counts are evaluated; a violation ends the audit."""
BOUNDS = 10
"""Bounds per quantity and look: two of each event under each history, and two of both together."""
AGAIN = 500
"""Users, at most, who are asked for a round a second time."""


def clopper_pearson(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """Confidence bounds on a probability, each wrong with probability at most ``alpha``."""
    if not trials:
        return 0.0, 1.0
    low = 0.0 if not successes else _where(successes, trials, alpha)
    high = 1.0 if successes == trials else 1 - _where(trials - successes, trials, alpha)
    return low, high


def _where(successes: int, trials: int, alpha: float) -> float:
    """Largest p at which so many successes or more have probability at most alpha."""
    # Below the mean, terms fall at least as fast as a normal density: at 15 deviations by e^-112.
    m = np.arange(successes, min(trials, successes + 100 + 15 * math.isqrt(successes)) + 1)
    # ln C(trials, m), from its value at ``successes`` upwards.
    first = math.lgamma(trials + 1) - math.lgamma(successes + 1)
    first -= math.lgamma(trials - successes + 1)
    ways = first + np.append(0.0, np.cumsum(np.log((trials - m[:-1]) / m[1:])))
    low, high = 0.0, successes / trials
    for _ in range(45):
        p = (low + high) / 2
        # Past the mean the terms only fall: the sum starts at its largest.
        terms = ways + m * math.log(p) + (trials - m) * math.log1p(-p)
        if math.log(max(np.exp(terms - terms[0]).sum(), 1.0)) + terms[0] > math.log(alpha):
            high = p
        else:
            low = p
    return low


@dataclass(frozen=True)
class Finding:
    """One quantity of a client.

    Attributes
    ----------
    name : str
        "eps_1", "eps_2", "eps_inf", "eps_t" with t = 2, or a rule that has no exception.
    claimed : float
        What the protocol allows, exactly: formula or thresholds.
    lower : float
        What the client loses at least, at the audit's confidence.
    users : int
        Users asked.
    """

    name: str
    claimed: float
    lower: float
    users: int

    @property
    def violated(self) -> bool:
        """Whether the proven loss exceeds the claim."""
        return self.lower > self.claimed


@dataclass(frozen=True)
class Audit:
    """Findings of an audit.

    Attributes
    ----------
    findings : tuple of Finding
    confidence : float
        An honest client is accused with a chance of at most 1 - confidence.
    """

    findings: tuple[Finding, ...]
    confidence: float

    @property
    def passed(self) -> bool:
        """Whether nothing is violated."""
        return not any(finding.violated for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data; an infinite claim is None."""
        return {
            "passed": self.passed,
            "confidence": self.confidence,
            "findings": [
                {name: checks.finite(number) for name, number in asdict(finding).items()}
                | {"violated": finding.violated}
                for finding in self.findings
            ],
        }


def audit(
    protocol: Protocol,
    device: Device | None = None,
    *,
    users: int = 150_000,
    confidence: float = 1 - 1e-5,
    progress: Callable[[float], object] | None = None,
) -> Audit:
    """Ask a client for reports of chosen histories, and bound from below what they reveal.

    Notes
    -----
    Histories: one value for 8 rounds, against another (first report, first two, the
    memo as inferred from all); where there is a second round, both values for 8 rounds each and
    then one of the two (any one round). Clopper-Pearson bounds, shared out over all events,
    directions and looks. Besides, two rules without exception: a round asked again gives the same
    report, and a permanent key never changes.
    """
    users = checks.integer("users", users, 100, 10**9, "ask enough of them")
    if not 0.9 <= confidence < 1:
        raise ParameterError(f"confidence must be in [0.9, 1), got {confidence!r}; try 0.99999")
    asked = _Asked(protocol, ClientDevice(protocol) if device is None else device)
    alpha = (1 - confidence) / (BOUNDS * len(asked.claims) * len(LOOKS))
    findings: tuple[Finding, ...] = ()
    for look in LOOKS:
        asked.ask(max(100, round(users * look)), users, progress or (lambda _: None))
        findings = (*asked.rules(), *asked.losses(alpha))
        if any(finding.violated for finding in findings):
            break
    return Audit(findings, confidence)


class _Asked:
    """The users asked so far, and how often each event occurred."""

    def __init__(self, protocol: Protocol, device: Device) -> None:
        self.protocol, self.device = protocol, device
        self.values = (0, protocol.k - 1)
        self.claims = _claims(protocol)
        self.counts = {name: np.zeros((2, 2), dtype=np.int64) for name in self.claims}
        self.users = dict.fromkeys(self.claims, 0)
        self.changed = self.moved = self.repeated = 0

    def ask(self, target: int, users: int, progress: Callable[[float], object]) -> None:
        """Run devices until there are so many users under each history."""
        length = STRETCH if self.protocol.longitudinal else 2
        plans = [("stay", [n for n in self.claims if n != "eps_2"], target)]
        if "eps_2" in self.claims:
            plans.append(("move", ["eps_2"], max(100, target // 2)))
        for kind, names, wanted in plans:
            missing = wanted - self.users[names[0]]
            if missing <= 0:
                continue
            histories = (
                self._history(kind, side, length, again=n < AGAIN)
                for n in range(missing)
                for side in (0, 1)
            )
            transcripts = self.device.run(histories)
            for n in range(missing):
                for side, transcript in enumerate(islice(transcripts, 2)):
                    self._count(kind, names, side, transcript, length)
                if n % 256 == 0:
                    progress((wanted - missing + n) / users)
            for name in names:
                self.users[name] = wanted

    def _history(self, kind: str, side: int, length: int, *, again: bool) -> History:
        if kind == "stay":
            history = [(t, self.values[side]) for t in range(length)]
        else:
            history = [(t, self.values[t // STRETCH]) for t in range(2 * STRETCH)]
            history.append((2 * STRETCH, self.values[side]))
        return [*history, history[-1]] if again else history

    def _count(
        self, kind: str, names: list[str], side: int, transcript: Transcript, length: int
    ) -> None:
        wanted = length if kind == "stay" else 2 * STRETCH + 1
        if len(transcript) > wanted:
            self.repeated += 1
            self.changed += transcript[wanted] != transcript[wanted - 1]
            transcript = transcript[:wanted]
        if self.protocol.longitudinal:
            self.moved += any(key != transcript[0][0] for key, _ in transcript)
        for name in names:
            leaning = EVENTS[name](self.protocol, self.values, transcript)
            if leaning is not None:
                self.counts[name][side, leaning] += 1

    def rules(self) -> Iterator[Finding]:
        """Rules without exception: claim 0; observed 1 if broken."""
        yield Finding("a round asked again", 0.0, float(self.changed > 0), self.repeated)
        if self.protocol.longitudinal and self.protocol.encoding.key_bits:
            users = sum(self.users.values())
            yield Finding("a permanent key", 0.0, float(self.moved > 0), users)

    def losses(self, alpha: float) -> Iterator[Finding]:
        """Largest proven log-ratio of each quantity's two events, in both directions."""
        for name, claimed in self.claims.items():
            n, counts, lower = self.users[name], self.counts[name], 0.0
            pairs = [(event[side], event[1 - side], n) for event in counts.T for side in (0, 1)]
            # One of two ratios is at least that of their sums: both events together have more
            # power.
            right, wrong = counts.trace(), counts[::-1].trace()
            for first, other, trials in [*pairs, (right, wrong, 2 * n)]:
                low = clopper_pearson(int(first), trials, alpha)[0]
                high = clopper_pearson(int(other), trials, alpha)[1]
                if low > 0:
                    lower = max(lower, math.log(low / high))
            yield Finding(name, claimed, lower, n)


def _claims(protocol: Protocol) -> dict[str, float]:
    """The quantities that can be audited, and what the protocol allows."""
    claims = {"eps_1": protocol.asked_first, "eps_t, t = 2": float(growth(protocol, 2))}
    if protocol.longitudinal:
        claims |= {"eps_inf": protocol.asked_memo, "eps_2": eps_2(protocol)}
    return claims
