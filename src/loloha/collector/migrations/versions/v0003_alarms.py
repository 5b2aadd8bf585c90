"""Alarms: which rounds were tried, and events on their way."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create their tables."""
    op.create_table(
        "alarm_mark",
        sa.Column("campaign_id", sa.Integer, sa.ForeignKey("campaign.id"), primary_key=True),
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
