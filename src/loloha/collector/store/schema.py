"""The tables. Only sums and the replay guard of open rounds are stored, never a report."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

metadata = MetaData()


def _of_campaign() -> Column[int]:
    return Column("campaign_id", Integer, ForeignKey("campaign.id"), primary_key=True)


# One row. Whoever writes holds the newest epoch; an older writer notices and stops. On PostgreSQL
# all collectors hold the same one, and only a copy of the store begins another.
writer = Table(
    "writer",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    # Unix seconds that a collector saw last, by a clock that it believed.
    Column("seen", BigInteger, nullable=False, server_default="0"),
)

# SHA-256 of each admin key; moments in Unix seconds.
admin_key = Table(
    "admin_key",
    metadata,
    Column("sha256", LargeBinary, primary_key=True),
    Column("label", Text, nullable=False, server_default=""),
    # Unknown of those of 0.2.
    Column("created", BigInteger),
    Column("used", BigInteger),
    Column("expires", BigInteger),
)

# Sessions of the admin page, by SHA-256 of the secret that the browser keeps; moments as above.
admin_session = Table(
    "admin_session",
    metadata,
    Column("sha256", LargeBinary, primary_key=True),
    # An HMAC of the admin key's hash, keyed by that secret.
    Column("key", LargeBinary, nullable=False),
    Column("began", BigInteger, nullable=False),
    Column("seen", BigInteger, nullable=False),
)

campaign = Table(
    "campaign",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("fingerprint", Text, nullable=False, unique=True),
    Column("document", Text, nullable=False),
    Column("terms", Text, nullable=False),
    # SHA-256 of the submit token, where one is needed.
    Column("token", LargeBinary),
    # Keys the digests of the guard, and the tickets of assigned keys.
    Column("secret", LargeBinary, nullable=False),
    Column("created", BigInteger, nullable=False),
    # Rounds below it are closed for ever, even if the clock goes back.
    Column("first_open", BigInteger, nullable=False),
    # One of `life.STATES`.
    Column("state", Text, nullable=False, server_default="open"),
    # A number of the collector that wrote to it last: any other first reads what it did not write.
    Column("last_writer", BigInteger),
    # Unix time of the newest report that was counted, in whole minutes; 0 before the first.
    Column("newest_report", BigInteger, nullable=False, server_default="0"),
)

# How many reports were accepted, duplicates, or refused for which reason; round -1: before any.
outcome = Table(
    "outcome",
    metadata,
    _of_campaign(),
    Column("round", BigInteger, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("count", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)


def _of_round(name: str, place: str, content: str) -> Table:
    """Bytes of a round in numbered places."""
    return Table(
        name,
        metadata,
        _of_campaign(),
        Column("round", BigInteger, primary_key=True),
        Column(place, Integer, primary_key=True),
        Column(content, LargeBinary, nullable=False),
    )


# The published counts of a round, `CELLS` to a part, in the narrowest integers that hold them.
cell = _of_round("cell", "part", "counts")

# Counts of the reports since, until there are enough of them to be published together.
waiting_cell = _of_round("waiting_cell", "part", "counts")

# Reporters and digests, a segment a commit; gone when the round is closed.
guard = _of_round("guard", "segment", "rows")

# Reports on their way to the opt-in log of reports; empty where there is none.
queued = _of_round("kept", "segment", "reports")

# The newest round that a rule was tried on; rules by a digest of what they say.
alarm_mark = Table(
    "alarm_mark",
    metadata,
    _of_campaign(),
    Column("rule", Text, primary_key=True),
    Column("round", BigInteger, nullable=False),
)

# What alarmed in a round under a rule, one event, and when it is to be sent next; null: no more.
alarm = Table(
    "alarm",
    metadata,
    Column("event", Text, primary_key=True),
    Column("campaign_id", Integer, ForeignKey("campaign.id"), nullable=False, index=True),
    Column("round", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("due", BigInteger),
)

# Rounds whose published estimates are rows of `estimate`, and of how many reports these are.
estimated_round = Table(
    "estimated_round",
    metadata,
    _of_campaign(),
    Column("round", BigInteger, primary_key=True),
    Column("start", Text, nullable=False),
    Column("level", Double, nullable=False),
    Column("n", BigInteger, nullable=False),
)

# For those who read by SQL, through the view `loloha_estimates`; null where a value is suppressed.
estimate = Table(
    "estimate",
    metadata,
    _of_campaign(),
    Column("round", BigInteger, primary_key=True),
    Column("value", Integer, primary_key=True),
    Column("label", Text, nullable=False),
    Column("estimate", Double),
    Column("standard_error", Double),
    Column("lower", Double),
    Column("upper", Double),
)

VERSIONS = "alembic_version"
"""Table of the version of the others; programs that use the same library have one, too."""
NAMES = sorted({VERSIONS, *metadata.tables})
"""What a new store must find free."""
_MARKS = {VERSIONS, "writer", "admin_key", "campaign"}
"""A store of any release has these."""


def is_foreign(taken: Iterable[str]) -> bool:
    """Whether names that are taken, of those that matter, are not those of a store."""
    names = set(taken)
    return bool(names) and not names >= _MARKS
