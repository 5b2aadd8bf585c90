"""Published estimates, for those who read by SQL."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create their tables, and the view that joins them."""
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
