"""Documents about campaigns and reports, as they are sent and as they are described."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from loloha.collector.life import State, Wanted

Count = Annotated[int, Meta(ge=0)]
Fingerprint = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Object = dict[str, Any]


class ProblemDocument(Struct):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: Count
    detail: str
    reason: str | UnsetType = UNSET
    reporter: str | UnsetType = UNSET
    campaign: Literal["paused", "ended"] | UnsetType = UNSET


class Refused(Struct):
    """A report that is not counted, by its position in the upload."""

    index: Count
    reason: str


class ReceiptDocument(Struct):
    """What became of an upload: the first thousand refusals one by one, all of them by reason."""

    accepted: Count
    duplicates: Count
    refused: list[Refused]
    reasons: dict[str, Count] | UnsetType = UNSET
    reporter: str | UnsetType = UNSET


class Answered(Struct):
    """What one of several reports would be answered alone: a receipt, or a problem."""

    status: Count
    body: dict[str, Any]


class Answers(Struct):
    """An answer to each report of an upload for several campaigns, in their order."""

    answers: list[Answered]


class AssignedKey(Struct):
    """A key that the collector drew, and the proof of it."""

    key: str
    ticket: str


class TermsDocument(Struct):
    """The collector's terms for a campaign."""

    late_seconds: Count
    early_seconds: Count
    minimum_cohort: Count
    publish_every: Count
    keep_days: Count | UnsetType = UNSET


class NewCampaign(Struct, forbid_unknown_fields=True):
    """What is asked of the collector for a new campaign."""

    campaign: Object
    terms: Object = {}
    token: bool = False
    expected_users: Annotated[int, Meta(ge=1)] | None = None
    accept_weak_privacy: bool = False


class ScheduleDocument(Struct):
    """When rounds begin."""

    start: str
    seconds: Count
    every: Annotated[int, Meta(ge=2)] | UnsetType = UNSET
    expires: str | UnsetType = UNSET


class Now(Struct):
    """The round by the collector's clock, and the rounds that take reports."""

    round: int
    first_open: int
    last_open: int


class Summary(Struct):
    """A campaign without its labels, which can be many."""

    fingerprint: Fingerprint
    name: str
    protocol: Object
    bins: Count
    schedule: ScheduleDocument
    keys: Literal["assigned", "drawn"]
    terms: TermsDocument
    needs_token: bool
    created: str
    state: State
    now: Now


class AdminKeyDocument(Struct):
    """What is known of an admin key: its name is the beginning of its hash."""

    name: str
    label: str
    created: str | None
    used: str | None
    expires: str | None


class AdminKeysDocument(Struct):
    """The admin keys of the store, and whether the settings have one beside them."""

    keys: list[AdminKeyDocument]
    has_setting: bool


class WantedAdminKey(Struct, forbid_unknown_fields=True):
    """An admin key to be drawn, for so many days; null for one that stays."""

    label: str = ""
    days: int | None = None


class NewAdminKey(Struct):
    """An admin key, shown this once."""

    key: str
    known: AdminKeyDocument


class NewState(Struct, forbid_unknown_fields=True):
    """What a campaign is to become."""

    state: Wanted


class CampaignDocument(Summary):
    """A campaign with its document."""

    document: Object


class Campaigns(Struct):
    """A page of campaigns, the oldest first; more if there are older ones."""

    campaigns: list[Summary]
    more: bool


class CreatedDocument(Struct):
    """A campaign as it was created first."""

    campaign: CampaignDocument
    created: bool
    accuracy_check: Object | None
    verdict: Object | None
    """The same by its name of 0.2; gone in 0.4."""
    token: str | None


class Health(Struct):
    """Reports can be counted."""

    status: Literal["ok"]
    version: str
