"""A campaign has a state."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Existing campaigns are open."""
    state = sa.Column("state", sa.Text, nullable=False, server_default="open")
    op.add_column("campaign", state)
