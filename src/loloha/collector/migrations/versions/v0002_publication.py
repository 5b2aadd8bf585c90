"""Counts that wait for their publication, and the last time that a collector saw."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add both; what an older release counted has been shown, so nothing waits."""
    op.create_table(
        "waiting_cell",
        sa.Column("campaign_id", sa.Integer, sa.ForeignKey("campaign.id"), primary_key=True),
        sa.Column("round", sa.BigInteger, primary_key=True),
        sa.Column("part", sa.Integer, primary_key=True),
        sa.Column("counts", sa.LargeBinary, nullable=False),
    )
    op.add_column("writer", sa.Column("seen", sa.BigInteger, nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop both, with the counts that wait."""
    op.drop_column("writer", "seen")
    op.drop_table("waiting_cell")
