"""Campaigns name the collector that wrote to them last: on PostgreSQL there can be several."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the name, and stop a collector of a release that would write alone."""
    op.add_column("campaign", sa.Column("last_writer", sa.BigInteger))
    if op.get_bind().dialect.name == "postgresql":
        # On SQLite a start takes the store over in any case.
        op.execute("UPDATE writer SET epoch = epoch + 1 WHERE epoch > 0")
