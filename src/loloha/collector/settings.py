"""Settings of a collector: flags, then `LOLOHA_*` variables, a TOML file, these defaults."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from loloha.address import Address, located
from loloha.campaign import Campaign, Schedule
from loloha.collector.input_error import explained
from loloha.collector.rate import parsed
from loloha.collector.secret import LONGEST_SECRET
from loloha.collector.terms import LONGEST_TOLERANCE, MOST_OPEN, Terms
from loloha.errors import ParameterError
from loloha.sender.url import can_be_asked
from loloha.server.alarm_rule import AlarmRule

SHORTEST_KEY = 16
_LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))
_ORIGIN = re.compile(
    r"\*|null|(?!http://.*:80$|https://.*:443$|https?://.*[A-Z])[a-z][a-z0-9+.-]*://[^/?#@\s]+"
)
# Variables of other commands and of tests.
_OTHER_VARIABLES = frozenset(("LOLOHA_TOKEN", "LOLOHA_TEST_POSTGRES"))


def _split(given: Any) -> Any:
    """Text as other settings have it, or a list as JSON, as 0.2.0 asked for."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given) if given.lstrip().startswith("[") else _words(given)
    except ValueError:
        raise ValueError("must be separated by commas, or a list as JSON") from None


def _words(text: str) -> list[str]:
    return [word for word in map(str.strip, text.split(",")) if word]


Listed = Annotated[list[str], NoDecode, BeforeValidator(_split)]


def _located(given: Any) -> Any:
    if not isinstance(given, str | Path | Address | None):
        raise ValueError("must be a path or an address such as s3://BUCKET/LOG")
    return None if given is None else located(given)


Anywhere = Annotated[Any, NoDecode, BeforeValidator(_located)]


class AlarmSetting(BaseModel):
    """A rule of alarms: of which campaign and labels, and how many false alarms are expected."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    campaign: str = "*"
    labels: list[str] | None = None
    expected: float | None = None
    fdr: float | None = None

    @model_validator(mode="after")
    def _is_a_rule(self) -> Self:
        try:
            AlarmRule(expected=self.expected, fdr=self.fdr)
        except ParameterError as error:
            raise ValueError(str(error)) from None
        if self.campaign != "*" and not re.fullmatch(r"[0-9a-f]{64}", self.campaign):
            raise ValueError("campaign must be a fingerprint, or * for all; copy it")
        return self

    def watches(self, fingerprint: str) -> bool:
        """Whether it is a rule of this campaign."""
        return self.campaign in ("*", fingerprint)

    def rule(self, campaign: Campaign) -> AlarmRule:
        """The rule by indices of bins."""
        return AlarmRule.of_labels(
            self.labels, campaign.bin_labels, campaign.protocol,
            expected=self.expected, fdr=self.fdr,
        )  # fmt: skip


class Settings(BaseSettings):
    """Everything that can be set.

    Attributes
    ----------
    store : str
        ``sqlite:///PATH`` or ``postgresql://USER@HOST/DATABASE``.
    host, port
        Where to listen; by default only this machine can connect.
    admin_key : str, optional
        An admin key beside those of the store, of 16 to 512 visible ASCII characters. Only as a
        variable or in the file, never as a flag.
    late_seconds, early_seconds, minimum_cohort, publish_every : int
        Defaults for the `Terms` of new campaigns.
    rate_limit : str
        Requests that one address, or IPv6 network of 64 bits, may send, e.g. "200/second"; what
        makes more work counts for more. Empty for no limit.
    largest_body, largest_unpacked : int
        Bytes of an upload, as received and after decompression.
    largest_held : int
        Bytes of bodies, and as many of answers, of all requests together, that may be in memory at
        a time.
    largest_queue : int
        Reports that may wait for a commit, of small uploads and of large ones each, before uploads
        are asked to come back later; one address has a quarter.
    keep_reports : path or address, optional
        Folder of a Parquet log of all reports; by default there is none.
    estimates_view : bool
        Keep published estimates as rows of the store, behind its view loloha_estimates.
    append_only : path or address, optional
        Folder of a report log that reports are appended to, and no more: nothing is counted, and
        of the store only campaigns are read. Any number of such collectors run side by side.
    segment_seconds : float
        With append_only, one file is written in so long at most, with all reports that came.
    segment_reports : int
        With append_only, a file is written at once where so many reports wait.
    allowed_origins : list of str
        Web pages that may send reports, e.g. "https://app.example": a list, or text with commas.
    allowed_hosts : list of str
        Names under which the collector may be asked, in the same form. By default those of
        this machine where it listens on loopback, else any.
    root_path : str
        Path under which a proxy shows the collector and passes requests on, e.g. "/stats/loloha".
        A proxy that takes it off again, as most do, needs none.
    trusted_proxies : str
        IP addresses or networks whose X-Forwarded-For is believed, separated by commas, or "*" for
        all; by default none.
    alarms : list of AlarmSetting
        Rules that each round is tried on once it is closed: `[[alarms]]` of the file, or a list as
        JSON, each with `expected` or `fdr`, and with `campaign` and `labels` or for all of them.
    alarm_webhook : str, optional
        Address that alarms are posted to, signed with alarm_secret where it is set. Only as
        variables or in the file, never as flags.
    log_format : {"text", "json"}
        Lines of the log, on stderr.
    log_level : {"debug", "info", "warning", "error"}
        What is logged; "info" has a line for each request.
    accept_clock : bool
        Believe the clock, although the store has seen no other time for long.
    accept_losses : bool
        Count although a setting of the PostgreSQL server lets a crash lose what was acknowledged.
    """

    model_config = SettingsConfigDict(env_prefix="LOLOHA_", extra="forbid", frozen=True)

    store: str = "sqlite:///loloha.db"
    host: str = "127.0.0.1"
    port: int = Field(8770, ge=0, le=65535)
    admin_key: SecretStr | None = None
    late_seconds: int = Terms.late_seconds
    early_seconds: int = Terms.early_seconds
    minimum_cohort: int = Terms.minimum_cohort
    publish_every: int | None = Terms.publish_every
    rate_limit: str = "200/second"
    largest_body: int = Field(16 << 20, ge=1024)
    largest_unpacked: int = Field(64 << 20, ge=1024)
    largest_held: int = Field(128 << 20, ge=1024)
    largest_queue: int = Field(1_000_000, ge=1)
    keep_reports: Anywhere = None
    estimates_view: bool = False
    append_only: Anywhere = None
    segment_seconds: float = Field(1.0, ge=0, le=20)
    segment_reports: int = Field(50_000, ge=1_000, le=1_000_000)
    allowed_origins: Listed = []
    allowed_hosts: Listed = []
    root_path: str = ""
    trusted_proxies: str = ""
    alarms: list[AlarmSetting] = []
    alarm_webhook: SecretStr | None = None
    alarm_secret: SecretStr | None = None
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    accept_clock: bool = False
    accept_losses: bool = False

    @model_validator(mode="after")
    def _appends_only(self) -> Self:
        counts = self.keep_reports is not None or self.alarms or self.estimates_view
        if self.append_only is not None and counts:
            raise ValueError(
                "append_only must be given without keep_reports, alarms and estimates_view: "
                "nothing is counted"
            )
        return self

    @field_validator("admin_key")
    @classmethod
    def _is_long(cls, key: SecretStr | None) -> SecretStr | None:
        if key is None:
            return None
        text = key.get_secret_value()
        if not text:
            raise ValueError("must not be empty; unset it, or draw a random one")
        if not SHORTEST_KEY <= len(text) <= LONGEST_SECRET:
            raise ValueError(
                f"must have {SHORTEST_KEY} to {LONGEST_SECRET} characters; draw a random one"
            )
        if not (text.isascii() and text.isprintable() and text == text.strip()):
            # No header can carry it.
            raise ValueError(
                "must be visible ASCII characters without a space at either end; remove others"
            )
        return key

    @field_validator("allowed_origins")
    @classmethod
    def _are_sent(cls, origins: list[str]) -> list[str]:
        if not all(map(_ORIGIN.fullmatch, origins)):
            raise ValueError(
                "must be origins as browsers send them, such as https://app.example: lower case, "
                "no path, no slash at the end, no usual port; correct them, or give * for all"
            )
        return origins

    @field_validator("alarm_webhook")
    @classmethod
    def _is_address(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not can_be_asked(url.get_secret_value()):
            raise ValueError("must be an address, https://HOST/PATH, without a user name")
        return url

    @field_validator("rate_limit")
    @classmethod
    def _is_rate(cls, rate: str) -> str:
        try:
            if rate:
                parsed(rate)
        except ValueError:
            raise ValueError("must be a number and a time, such as 200/second") from None
        return rate

    @field_validator("root_path")
    @classmethod
    def _is_path(cls, path: str) -> str:
        if not re.fullmatch(r"(/[A-Za-z0-9._-]+)*", path):
            raise ValueError("must be a path without a slash at its end, such as /stats/loloha")
        return path

    @field_validator("trusted_proxies")
    @classmethod
    def _are_addresses(cls, proxies: str) -> str:
        for word in _words(proxies):
            try:
                if word != "*":
                    ip_network(word)
            except ValueError:
                # The server would treat it as a literal host.
                raise ValueError(
                    "must be IP addresses or networks such as 10.0.0.0/8, separated by commas, or "
                    "*; correct them"
                ) from None
        return proxies

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # The file is named by a flag but ranks below flags.
        given = init_settings() if isinstance(init_settings, InitSettingsSource) else {}
        file = given.pop("toml_file", None)
        flags = InitSettingsSource(settings_cls, given)
        sources: tuple[PydanticBaseSettingsSource, ...] = (flags, env_settings)
        return (*sources, TomlConfigSettingsSource(settings_cls, file)) if file else sources

    @classmethod
    def read(cls, file: Path | None = None, **flags: Any) -> Self:
        """The settings of a run; flags that are None were not given."""
        given = {name: value for name, value in flags.items() if value is not None}
        if file is not None and not file.is_file():
            raise ParameterError(f"config must be a TOML file, got {str(file)!r}; check the path")
        try:
            if file is not None:
                given["toml_file"] = file
            settings = cls(**given)
            settings.terms({})
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            raise ParameterError(f"{explained(first)}; see docs/collector.md") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ParameterError(
                f"config must be TOML, got other text in {str(file)!r} ({error}); correct it"
            ) from None
        except ValueError as error:
            # From the terms, or JSON in a variable.
            raise ParameterError(f"settings must be valid: {error}") from None
        return settings

    @property
    def hosts(self) -> frozenset[str] | None:
        """Allowed host names, None for any."""
        if self.allowed_hosts:
            return frozenset(host.lower() for host in self.allowed_hosts)
        return _LOOPBACK if self.host in _LOOPBACK else None

    @classmethod
    def unknown_variables(cls, names: Iterable[str]) -> list[str]:
        """Unknown variables with the prefix of settings: perhaps misspelt."""
        prefix = cls.model_config["env_prefix"]
        known = {f"{prefix}{name}".upper() for name in cls.model_fields} | _OTHER_VARIABLES
        return sorted(
            name for name in names if name.upper().startswith(prefix) and name not in known
        )

    def terms(self, plain: Any, schedule: Schedule | None = None) -> Terms:
        """The terms of a new campaign: what was asked for, else the defaults set here."""
        longest = LONGEST_TOLERANCE if schedule is None else MOST_OPEN // 2 * schedule.seconds
        defaults = {
            "late_seconds": min(self.late_seconds, longest),
            "early_seconds": min(self.early_seconds, longest),
            "minimum_cohort": self.minimum_cohort,
        }
        if self.publish_every is not None:
            defaults["publish_every"] = self.publish_every
        terms = Terms.from_dict({**defaults, **plain} if isinstance(plain, dict) else plain)
        if schedule is not None:
            terms.require_few_rounds(schedule)
        return terms
