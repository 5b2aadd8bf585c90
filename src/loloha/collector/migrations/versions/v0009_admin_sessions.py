"""Sessions of the admin page."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Create their table."""
    op.create_table(
        "admin_session",
        sa.Column("sha256", sa.LargeBinary, primary_key=True),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("began", sa.BigInteger, nullable=False),
        sa.Column("seen", sa.BigInteger, nullable=False),
    )
