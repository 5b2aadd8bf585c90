"""What 0.3 adds to the tables of 0.2.0; no release had a number between."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0002"


def upgrade() -> None:
    """Campaigns that are there are open, admin keys have no label and stay valid."""
    if op.get_bind().dialect.name == "postgresql":
        # Stops a collector of 0.2.0, which would write alone. On SQLite whoever starts takes the
        # store over in any case. First, as each of its transactions begins there: no deadlock.
        op.execute("UPDATE writer SET epoch = epoch + 1 WHERE epoch > 0")
    for column in (
        sa.Column("state", sa.Text, nullable=False, server_default="open"),
        sa.Column("last_writer", sa.BigInteger),
        sa.Column("newest_report", sa.BigInteger, nullable=False, server_default="0"),
    ):
        op.add_column("campaign", column)
    op.add_column("admin_key", sa.Column("label", sa.Text, nullable=False, server_default=""))
    for moment in ("created", "used", "expires"):
        op.add_column("admin_key", sa.Column(moment, sa.BigInteger))
    op.create_table(
        "admin_session",
        sa.Column("sha256", sa.LargeBinary, primary_key=True),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("began", sa.BigInteger, nullable=False),
        sa.Column("seen", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "alarm_mark",
        _of_campaign(),
        sa.Column("rule", sa.Text, primary_key=True),
        sa.Column("round", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "alarm",
        sa.Column("event", sa.Text, primary_key=True),
        sa.Column(
            "campaign_id", sa.Integer, sa.ForeignKey("campaign.id"), nullable=False, index=True
        ),
        sa.Column("round", sa.BigInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("due", sa.BigInteger),
    )
    op.create_table(
        "estimated_round",
        _of_campaign(),
        sa.Column("round", sa.BigInteger, primary_key=True),
        sa.Column("start", sa.Text, nullable=False),
        sa.Column("level", sa.Double, nullable=False),
        sa.Column("n", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "estimate",
        _of_campaign(),
        sa.Column("round", sa.BigInteger, primary_key=True),
        sa.Column("value", sa.Integer, primary_key=True),
        sa.Column("label", sa.Text, nullable=False),
        *(sa.Column(name, sa.Double) for name in ("estimate", "standard_error", "lower", "upper")),
    )
    op.execute("""
        CREATE VIEW loloha_estimates AS
        SELECT campaign.fingerprint AS campaign, estimate.round, estimated_round.start,
            estimate.value, estimate.label, estimate.estimate, estimate.standard_error,
            estimate.lower, estimate.upper, estimated_round.level, estimated_round.n
        FROM estimate
        JOIN estimated_round ON estimated_round.campaign_id = estimate.campaign_id
            AND estimated_round.round = estimate.round
        JOIN campaign ON campaign.id = estimate.campaign_id
            AND campaign.state NOT IN ('deleting', 'deleted')
    """)


def _of_campaign() -> sa.Column[int]:
    return sa.Column("campaign_id", sa.Integer, sa.ForeignKey("campaign.id"), primary_key=True)
