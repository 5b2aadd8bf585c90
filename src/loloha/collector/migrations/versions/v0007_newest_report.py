"""A campaign has the time of its newest report."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Unknown for existing campaigns."""
    newest = sa.Column("newest_report", sa.BigInteger, nullable=False, server_default="0")
    op.add_column("campaign", newest)
