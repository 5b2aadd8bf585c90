"""Documents about rounds, estimates, alarms and privacy, as they are sent and described."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from loloha.collector.shape import Count, Fingerprint, Object, TermsDocument

Number = float | None
"""None where nothing is known."""


class RoundDocument(Struct):
    """What happened in a round; -1 is the time before any."""

    round: int
    start: str | None
    end: str
    state: Literal["before", "future", "open", "closed"]
    n: Count
    published: Count
    duplicates: Count
    conflicts: Count
    refused: dict[str, Count]
    opt_outs: Annotated[
        Count,
        Meta(
            description="How often an application said that its user wants no part. Nobody proves "
            "it, and not everybody says it: no bound on how many there are"
        ),
    ]
    shown: bool


class PanelSizes(Struct):
    """Whether panels are equal in size over the rounds of a window: Pearson's chi-square."""

    first: Count
    last: Count
    smallest: Count
    largest: Count
    chi_square: float
    freedom: Count
    p_value: float
    even: bool
    text: str


class RoundsDocument(Struct):
    """The rounds in which anything happened."""

    campaign: Fingerprint
    rounds: list[RoundDocument]
    panels: PanelSizes | UnsetType = UNSET


class Largest(Struct):
    """The value of the largest estimate, with an interval that holds for all values at once."""

    value: Count
    label: str
    estimate: float
    lower: float
    upper: float


Numbers = Annotated[
    dict[str, list[Number]],
    Meta(
        description="Where numbers are asked for, one of each a round: mean, mean_standard_error, "
        "mean_lower, mean_upper; quantile_10, quantile_10_lower, quantile_10_upper, and so on"
    ),
]


class EstimatesDocument(Struct):
    """Estimates of one round; without numbers where they are suppressed.

    Of a value that fewer reports can support than the minimum cohort they are None; ``suppressed``
    counts these values, and ``suppressed_because`` says why a whole round is not shown. ``clear``
    counts the values significantly above 0, all of them together at ``level``;
    ``simultaneous_error`` bounds the error of all of them at once.
    """

    campaign: Fingerprint
    round: Count
    start: str
    end: str
    state: Literal["future", "open", "closed"]
    n: Count
    minimum_cohort: Count
    level: float
    suppressed_because: str | None
    withheld: str | None
    """The same by its name of 0.2; gone in 0.4."""
    parameters: Object
    value: list[Count] | UnsetType = UNSET
    label: list[str] | UnsetType = UNSET
    estimate: list[Number] | UnsetType = UNSET
    standard_error: list[Number] | UnsetType = UNSET
    lower: list[Number] | UnsetType = UNSET
    upper: list[Number] | UnsetType = UNSET
    projected: list[Number] | UnsetType = UNSET
    bins: Count | UnsetType = UNSET
    simultaneous_error: Number | UnsetType = UNSET
    clear: Count | UnsetType = UNSET
    suppressed: Count | UnsetType = UNSET
    largest: Largest | UnsetType = UNSET
    numbers: Numbers | UnsetType = UNSET


class OverRounds(Struct):
    """Estimates over rounds, a row a round; None for rounds that are suppressed."""

    campaign: Fingerprint
    level: float
    minimum_cohort: Count
    value: list[Count]
    label: list[str]
    round: list[Count]
    start: list[str]
    n: list[Count]
    estimate: list[list[Number] | None]
    standard_error: list[list[Number] | None]
    lower: list[list[Number] | None]
    upper: list[list[Number] | None]


class SeriesDocument(OverRounds):
    """Estimates over rounds, a row a round; None for rounds that are suppressed."""

    parameters: Object
    window_estimate: list[list[Number]] | UnsetType = UNSET
    window_standard_error: list[list[Number]] | UnsetType = UNSET
    window_lower: list[list[Number]] | UnsetType = UNSET
    window_upper: list[list[Number]] | UnsetType = UNSET
    numbers: Numbers | UnsetType = UNSET


class SmoothedDocument(OverRounds):
    """Rounds estimated together, a row a round; None for rounds that are suppressed.

    ``unbiased`` is what each round says by itself, ``innovation`` the error of its prediction from
    the rounds before, in standard deviations.
    """

    unbiased: list[list[Number] | None]
    innovation: list[list[Number] | None]
    parameters: Object
    numbers: Numbers | UnsetType = UNSET


class AlarmedValue(Struct):
    """A value that alarmed; null and in units of the domain for the mean of numbers."""

    value: Count | None
    label: str
    unbiased: float
    innovation: float


class AlarmEvent(Struct):
    """What alarmed in a round under one rule."""

    event: str
    campaign: Fingerprint
    name: str
    round: Count
    start: str
    rule: Object
    alarms: list[AlarmedValue]


class Alarms(Struct):
    """The rules of a campaign, and its newest alarms, the oldest first."""

    campaign: Fingerprint
    rules: list[Object]
    alarms: list[AlarmEvent]


class Growth(Struct):
    """The loss after so many reports of one value."""

    reports: Count
    eps: float


class WindowLoss(Struct):
    """The loss of any so many rounds, whatever the values in them."""

    rounds: Count
    eps: Number


class Observer(Struct):
    """How surely an observer tells two cases apart: exactly, or at most so surely."""

    auc: Number
    error: Number
    bound: bool | None


class Change(Observer):
    """How surely a change shows after so many reports."""

    reports: Count


class Privacy(Struct):
    """What reports reveal, in numbers and in words."""

    campaign: Fingerprint
    protocol: Object
    eps_1: float
    eps_inf: Number
    cap: Number
    growth: list[Growth]
    windows: list[WindowLoss]
    change: list[Change]
    link: Observer
    parameters: Object
    protected: list[str]
    leaks: list[str]
    text: str
    terms: TermsDocument
    keys: Literal["assigned", "drawn"]
