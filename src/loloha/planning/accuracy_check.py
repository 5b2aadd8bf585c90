"""The accuracy check of a campaign: what it can detect, and whether its privacy is weak."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from loloha import checks
from loloha.campaign.document import Campaign
from loloha.encodings import Hashed
from loloha.errors import CampaignError
from loloha.planning.numeric import mean_error
from loloha.planning.prospect import prospect
from loloha.privacy.rounded import digits, percent
from loloha.protocols import Protocol

LARGEST_EPS = 5.0
"""Above it a constant value becomes nearly certain to a reader: needs explicit acceptance."""


@dataclass(frozen=True)
class AccuracyCheck:
    """Accuracy and cost of a campaign at an expected number of reports per round.

    Attributes
    ----------
    n : int
    standard_error : float
        Of a rare value's frequency in one round.
    error_95 : float
        Half-width of a 95 % interval of one rare value.
    error_all_95 : float
        Bound on the error of all values at once, at 95 %.
    visible : float
        A frequency that one round tells from zero in 95 % of cases, as `Prospect.visible_one`;
        ``inf`` if it tells none.
    cap : float
        Most a user can ever spend, ``inf`` if every round spends anew.
    mean_95 : float or None
        Where numbers are asked for, half-width of a 95 % interval of their mean, as a share of the
        range, at most; the errors of frequencies above are then those of shares at single
        thresholds.
    warnings : tuple of str
        Reasons to think again, in plain words; empty if there are none.
    """

    n: int
    standard_error: float
    error_95: float
    error_all_95: float
    visible: float
    cap: float
    warnings: tuple[str, ...]
    mean_95: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON data; an infinite cap is None."""
        infinite = {"visible": self.visible, "cap": digits(self.cap, 15)}
        plain = vars(self) | {name: checks.finite(number) for name, number in infinite.items()}
        return plain | {"warnings": list(self.warnings)}


def check_accuracy(campaign: Campaign, n: int) -> AccuracyCheck:
    """Accuracy of the campaign with ``n`` reports per round, n >= 1."""
    protocol = campaign.protocol
    seen = prospect(protocol, n, protocol.asked_memo, protocol.asked_first)
    error, visible = seen.error_one, seen.visible_one
    warnings = list(weaknesses(protocol))
    every = campaign.schedule.every
    # Errors of single thresholds are not errors of the mean or quantiles.
    mean = mean_error(protocol, n, every=every) if not protocol.histogram else None
    if mean is None and math.isinf(visible):
        warnings.append(
            f"With {n} reports a round no frequency at all can be distinguished from 0 with 95 % "
            "probability; find more users, fewer labels or a larger eps_1."
        )
    elif mean is None and error > 1 / protocol.bins:
        warnings.append(
            f"The 95 % error of one frequency ({percent(error)}) exceeds the average frequency "
            f"({percent(1 / protocol.bins)}): a value shows with 95 % probability from a frequency "
            f"of {percent(visible)} on."
        )
    return AccuracyCheck(
        n=n,
        standard_error=math.sqrt(seen.variance),
        error_95=error,
        error_all_95=seen.error_all,
        visible=visible,
        cap=seen.cap,
        warnings=tuple(warnings),
        mean_95=mean,
    )


def weaknesses(protocol: Protocol) -> tuple[str, ...]:
    """Why a protocol's privacy is weak, in plain words; empty if it is within the stated limit."""
    # The limit is eps_inf <= 5, and answers that are memoised.
    reasons = []
    if protocol.asked_memo > LARGEST_EPS:
        name = "eps_inf" if protocol.longitudinal else "eps"
        reasons.append(
            f"{name} = {protocol.asked_memo:g} is above the limit of {LARGEST_EPS:g}: all reports "
            f"of one value may change the odds about it by a factor of e^{protocol.asked_memo:g}."
        )
    if not protocol.longitudinal:
        reasons.append(
            f"{protocol.name} memoises nothing: every round spends {protocol.asked_memo:g} anew, "
            "without end."
        )
    return tuple(reasons)


def require_fit_keys(campaign: Campaign) -> None:
    """Refuse to assign keys of a family some of which put all values in one cell."""
    # Leaving these out would bias the estimates: the others' collision probability depends on the
    # pair of values.
    encoding = campaign.protocol.encoding
    if campaign.keys != "assigned" or type(encoding) is not Hashed or encoding.family.separates:
        return
    raise CampaignError(
        f"keys must be 'drawn' for hash={encoding.family.name!r} and g = {encoding.symbols}, got "
        "'assigned': some of these keys put all values in one cell; to leave "
        "them out would bias the estimates. Take hash='prime' or 'linear', and g at most k"
    )


def require_strong_privacy(campaign: Campaign, *, accept_weak_privacy: bool = False) -> None:
    """Refuse a campaign of weak privacy that nobody has accepted."""
    reasons = weaknesses(campaign.protocol)
    if reasons and not accept_weak_privacy:
        raise CampaignError(
            f"protocol must not have weak privacy: {' '.join(reasons)} Choose another, or accept "
            "it explicitly (accept_weak_privacy=True)"
        )
