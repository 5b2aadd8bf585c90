"""Admin keys have a label, and are known to be made, used and to end at a time."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Existing keys have no label and stay valid."""
    op.add_column("admin_key", sa.Column("label", sa.Text, nullable=False, server_default=""))
    for moment in ("created", "used", "expires"):
        op.add_column("admin_key", sa.Column(moment, sa.BigInteger))
