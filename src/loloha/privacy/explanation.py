"""The explanation of a protocol's privacy: numbers, and plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha import checks
from loloha.campaign.schedule import RAREST
from loloha.errors import ParameterError
from loloha.privacy.change import change_auc, link_auc, worst_key
from loloha.privacy.loss import counts, growth
from loloha.privacy.plain_words import (
    exchanged,
    leaks,
    over_keys,
    panels,
    protected,
    residue,
    server,
    shares,
    worst,
)
from loloha.privacy.roc import AUC
from loloha.privacy.rounded import digits
from loloha.privacy.transcript import window_loss
from loloha.protocols import Protocol
from loloha.protocols.base import speakable
from loloha.report import MOST_REPORTS

USUAL_REPORTS = (1, 2, 5, 10, 100)
USUAL_WINDOWS = (1, 2, 10)
USUAL_STRETCHES = (1, 10, 100)


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
        Loss of all reports of one value, for ever; ``inf`` for one-round protocols.
    cap : float
        Most that `loss_of` can become; ``inf`` for one-round protocols.
    exchanged : float
        What tells two histories apart, at most, that differ in one of several memo cells and not in
        their pattern of equalities: eps_inf, more where responses are drawn jointly; ``inf`` for
        one-round protocols.
    windows : tuple of (int, float)
        (w, eps): loss of any w rounds, all other rounds known; ``inf`` where nothing bounds it.
    change : tuple of (int, AUC or None)
        (T, AUC): how surely the best test of T reports before and T after a moment sees whether
        the value changed; None where it is not computed. Of a server that knows the key and takes
        all values as equally likely; exact, or an upper bound that says so.
    link : AUC or None
        How surely two single reports show that one user, who did not change, sent both, and not two
        users who hold different values.
    parameters : dict
        g and what devices really draw with; see `loloha.protocols.Realised`.
    protected, leaks : tuple of str
        One statement each.
    """

    protocol: Protocol
    eps_1: float
    growth: tuple[tuple[int, float], ...]
    eps_inf: float
    cap: float
    exchanged: float
    windows: tuple[tuple[int, float], ...]
    change: tuple[tuple[int, AUC | None], ...]
    link: AUC | None
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
            "cap": checks.finite(digits(self.cap, 15)),
            "exchanged": checks.finite(self.exchanged),
            "windows": [{"rounds": w, "eps": checks.finite(eps)} for w, eps in self.windows],
            "change": [{"reports": t, **_plain(auc)} for t, auc in self.change],
            "link": _plain(self.link),
            "parameters": self.parameters,
            "protected": list(self.protected),
            "leaks": list(self.leaks),
            "text": self.text,
        }

    def __str__(self) -> str:
        return self.text


def explain(
    protocol: Protocol, *, reports: Any = None, keys: str = "drawn", every: int = 1
) -> Explanation:
    """What the protocol guarantees and what it does not, in plain words.

    Parameters
    ----------
    protocol : Protocol
    reports : int or sequence of int, optional
        At which numbers t of reports to show eps_t; by default 1, 2, 5, 10, 100.
    keys : {"drawn", "assigned"}
        As in `loloha.campaign.Campaign`. If they are assigned, the worst hash key has a statement
        of its own.
    every : int
        As in `loloha.campaign.Schedule`: a device reports in one round of so many.

    Returns
    -------
    Explanation
        ``str()`` gives the text.

    Raises
    ------
    ParameterError
        If it is no protocol, or reports are not integers >= 1, or none are given, or
        ``every`` is no integer from 1 to 2^24.
    """
    protocol = speakable(protocol)
    checks.choice("keys", keys, ("assigned", "drawn"))
    every = checks.integer("every", every, 1, RAREST, "1 is a report in each round")
    wanted = USUAL_REPORTS if reports is None else reports
    rounds = [int(t) for t in np.ravel(counts("reports", wanted, 1, MOST_REPORTS))]
    if not rounds:
        raise ParameterError("reports must hold at least one number, got none; leave it out")
    losses = growth(protocol, rounds)
    change = tuple((t, change_auc(protocol, t)) for t in USUAL_STRETCHES)
    link = link_auc(protocol, 1)
    shown = worst_key(protocol) if keys == "assigned" else None
    return Explanation(
        protocol=protocol,
        eps_1=protocol.asked_first,
        growth=tuple((t, float(loss)) for t, loss in zip(rounds, losses, strict=True)),
        eps_inf=protocol.asked_memo if protocol.longitudinal else math.inf,
        cap=protocol.cap,
        exchanged=exchanged(protocol),
        windows=tuple((w * every, window_loss(protocol, w)) for w in USUAL_WINDOWS),
        change=change,
        link=link,
        parameters=protocol.numbers,
        protected=protected(protocol) + panels(protocol, every),
        leaks=leaks(protocol, change, link)
        + (() if shown is None else (worst(*shown),))
        + residue(every),
    )


def _numbers(explanation: Explanation) -> list[str]:
    curve = ", ".join(f"{eps:.4g} after {t}" for t, eps in explanation.growth)
    lines = [
        f"eps_1 = {explanation.eps_1:.4g}: loss of the first report, at most.",
        f"eps_t = {curve}: loss of t reports of one value.",
    ]
    if explanation.protocol.longitudinal:
        cells = explanation.protocol.encoding.memo_cells
        answers = f"eps_inf for each of up to {cells} permanent responses"
        if explanation.protocol.joint:
            answers = f"by up to {cells} permanent responses, which are drawn jointly"
        lines += [
            f"eps_inf = {explanation.eps_inf:.4g}: loss of all reports of one value for ever.",
            f"cap = {explanation.cap:.4g}: lifetime bound on the budget spent, {answers}.",
        ]
        if explanation.exchanged > explanation.eps_inf:
            lines.append(
                f"exchanged = {explanation.exchanged:.4g}: price of that cap, the loss when one "
                f"cell is exchanged for another; {explanation.eps_inf:.4g} if independent."
            )
    else:
        lines += [
            "eps_inf = none: nothing is memoised, so no bound holds for ever.",
            "cap = none: every report spends again.",
        ]
    windows = ", ".join(
        f"{eps:.4g} for w = {w}" for w, eps in explanation.windows if math.isfinite(eps)
    )
    lines.append(f"Any w rounds, all others known: {windows or 'unbounded, even for one'}.")
    keys = over_keys(explanation.protocol)
    over = f" It is {keys}." if keys else ""
    lines.append(
        "AUC of the best test for one change, from T reports before it and T after: "
        f"{shares(explanation.change)}; 0.5 is chance, 1 is certainty. It is that of "
        f"{server(explanation.protocol)}.{over}"
    )
    shown = ", ".join(
        f"{name} = {number:.6g}"
        for name, number in explanation.parameters.items()
        if number is not None
    )
    lines.append(f"Devices draw with: {shown} (losses never above those asked for).")
    return lines


def _plain(auc: AUC | None) -> dict[str, float | None]:
    return dict.fromkeys(AUC._fields) if auc is None else auc._asdict()
