"""What the reports of a user reveal, and what they do not: the numbers, and plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha.design.loss import MOST_REPORTS, cap, counts, growth, loss_of
from loloha.design.transcript import (
    HistoryLoss,
    WorstLoss,
    eps_2,
    loss_between,
    window_loss,
    worst_loss,
)
from loloha.errors import ParameterError
from loloha.rules import checks
from loloha.rules.encodings import Hashed, SampledBuckets
from loloha.rules.hashing import AffineHash, XXHash
from loloha.rules.protocols import Protocol

USUAL_REPORTS = (1, 2, 5, 10, 100)

__all__ = [
    "Explanation",
    "HistoryLoss",
    "WorstLoss",
    "cap",
    "eps_2",
    "explain",
    "growth",
    "loss_between",
    "loss_of",
    "window_loss",
    "worst_loss",
]


@dataclass(frozen=True)
class Explanation:
    """The guarantee of a protocol: what it protects, what it does not, and the numbers.

    Attributes
    ----------
    protocol : Protocol
    eps_1 : float
        Loss of the first report, at most.
    growth : tuple of (int, float)
        (t, eps_t): loss of t reports of one value.
    eps_inf : float
        Loss of all reports of one value, for ever; ``inf`` for one-round rules.
    cap : float
        Most that `loss_of` can become; ``inf`` for one-round rules.
    parameters : dict
        g and what devices really draw with; see `loloha.rules.protocols.Realised`.
    protected, leaks : tuple of str
        One statement each.
    """

    protocol: Protocol
    eps_1: float
    growth: tuple[tuple[int, float], ...]
    eps_inf: float
    cap: float
    parameters: dict[str, Any]
    protected: tuple[str, ...]
    leaks: tuple[str, ...]

    @property
    def text(self) -> str:
        """All of it in plain words, one statement a line."""
        sections = (
            (f"Privacy of {self.protocol!r}", _numbers(self)),
            ("What is protected", self.protected),
            ("What leaks", self.leaks),
        )
        return "\n\n".join(
            "\n".join((title, *(f"- {line}" for line in lines))) for title, lines in sections
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON data; None where there is no bound."""
        return {
            "protocol": self.protocol.to_dict(),
            "eps_1": self.eps_1,
            "growth": [{"reports": t, "eps": eps} for t, eps in self.growth],
            "eps_inf": checks.finite(self.eps_inf),
            "cap": checks.finite(self.cap),
            "parameters": self.parameters,
            "protected": list(self.protected),
            "leaks": list(self.leaks),
            "text": self.text,
        }

    def __str__(self) -> str:
        return self.text


def explain(protocol: Protocol, *, reports: Any = None) -> Explanation:
    """What the protocol guarantees and what it does not, in plain words.

    Parameters
    ----------
    protocol : Protocol
    reports : int or sequence of int, optional
        At which numbers t of reports to show eps_t; by default 1, 2, 5, 10, 100.

    Returns
    -------
    Explanation
        ``str()`` gives the text.

    Raises
    ------
    ParameterError
        If reports are not integers >= 1, or none are given.
    """
    wanted = USUAL_REPORTS if reports is None else reports
    rounds = [int(t) for t in np.ravel(counts("reports", wanted, 1, MOST_REPORTS))]
    if not rounds:
        raise ParameterError("reports must hold at least one number, got none; leave it out")
    losses = growth(protocol, rounds)
    return Explanation(
        protocol=protocol,
        eps_1=protocol.asked_first,
        growth=tuple((t, float(loss)) for t, loss in zip(rounds, losses, strict=True)),
        eps_inf=protocol.asked_memo if protocol.longitudinal else math.inf,
        cap=protocol.cap,
        parameters=protocol.numbers,
        protected=_protected(protocol),
        leaks=tuple(_leaks(protocol)),
    )


def _numbers(found: Explanation) -> list[str]:
    curve = ", ".join(f"{eps:.4g} after {t}" for t, eps in found.growth)
    lines = [
        f"eps_1 = {found.eps_1:.4g}: loss of the first report, at most.",
        f"eps_t = {curve}: loss of t reports of one value.",
    ]
    if found.protocol.longitudinal:
        answers = f"eps_inf for each of up to {found.protocol.encoding.memo_cells} memoised answers"
        lines += [
            f"eps_inf = {found.eps_inf:.4g}: loss of all reports of one value, for ever.",
            f"cap = {found.cap:.4g}: most budget that can be spent, {answers}.",
        ]
    else:
        lines += [
            "eps_inf = none: nothing is memoised, so no bound holds for ever.",
            "cap = none: every report spends again.",
        ]
    shown = ", ".join(
        f"{name} = {number:.6g}" for name, number in found.parameters.items() if number is not None
    )
    lines.append(f"Devices draw with: {shown} (losses never above those asked for).")
    return lines


def _protected(protocol: Protocol) -> tuple[str, ...]:
    first, memo = protocol.asked_first, protocol.asked_memo
    one = (
        f"One report: whatever is sent, it shifts the odds between any two values by a factor of "
        f"at most e^{first:.4g} = {math.exp(first):.4g}."
    )
    if not protocol.longitudinal:
        return (one,)
    constant = (
        "A value that never changes: all its reports together, for ever, shift the odds between "
        f"any two values by a factor of at most e^{memo:.4g} = {math.exp(memo):.4g}."
    )
    pattern = (
        f"Values that change: two histories that visit {_cells(protocol)} in the same pattern of "
        "equalities (alike in the same rounds, different in the same rounds) are indistinguishable "
        f"up to {memo:.4g} times the number of distinct ones visited."
    )
    if protocol.encoding.kind in _CELLS:
        pattern += " Moves between values of one cell do not show."
    return one, constant, pattern


_CELLS = {
    "keyed symbol": "cells of the user's own hash",
    "sampled bits": "cells (one of the user's own sampled buckets, or none of them)",
}


def _cells(protocol: Protocol) -> str:
    """What one memoised answer belongs to."""
    return _CELLS.get(protocol.encoding.kind, "values")


def _leaks(protocol: Protocol) -> list[str]:
    leaks = [_over_time(protocol)]
    # One-round rules draw a fresh key, or none, for every report.
    if protocol.longitudinal:
        leaks.append(_link(protocol))
    leaks.append(
        "Absence: in which rounds a user reports, and from where, is visible to whoever receives "
        "the reports. A client that refuses because its limit is reached shows that too."
    )
    if protocol.longitudinal:
        leaks.append(
            "Reset: nothing renews by itself. A client that is reset, or installed again, is a new "
            f"user on top: what was spent stays spent, and up to {protocol.cap:.4g} more can be."
        )
    leaks.append("Other collections about the same user: their losses add to these.")
    return leaks


def _over_time(protocol: Protocol) -> str:
    """What more and more reports of one user show."""
    if not protocol.longitudinal:
        return (
            f"Repetition: every report spends {protocol.asked_first:.4g} again. Repeated reports "
            "of one value average the noise away, and nothing limits the total."
        )
    if protocol.second is None:
        seen = (
            "There is no second round: a report is repeated bit for bit while the value stays in "
            "one cell, so a report that differs from an earlier one proves a change."
        )
    else:
        seen = "The second round only slows this down."
    return (
        f"The pattern of changes: when a user moves between {_cells(protocol)}, and when back, "
        "shows in the reports, the more the longer they run. Neither eps_inf nor the cap bounds "
        f"it: the cap is a budget spent, not a bound on what any history reveals. {seen}"
    )


def _link(protocol: Protocol) -> str:
    """How the reports of one user can be joined."""
    encoding = protocol.encoding
    if isinstance(encoding, Hashed):
        family = encoding.family
        if not isinstance(family, AffineHash | XXHash):
            return (
                f"Linking: a user's reports carry the same key, one of {family.members}. About "
                f"n/{family.members} of n users share it; where there are fewer users than keys it "
                "can single one out."
            )
        return (
            f"Linking: a user's reports carry the same {family.key_bits}-bit key, a pseudonym that "
            "joins all reports of one user."
        )
    if isinstance(encoding, SampledBuckets):
        carried = "repeat the memoised bits unchanged"
        if encoding.d < encoding.b:
            carried = f"carry the same {encoding.d} sampled buckets and {carried}"
        return f"Linking: a user's reports {carried}, which can single a user out and join them."
    return (
        "Linking: no key is sent, but the memoised answer shows through repeated reports and can "
        "serve as a fingerprint that joins the reports of one user."
    )
