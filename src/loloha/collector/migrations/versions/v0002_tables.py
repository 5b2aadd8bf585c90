"""The tables of 0.2.0, the oldest that are read."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = None


def upgrade() -> None:
    """Create them."""
    op.create_table(
        "writer",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("seen", sa.BigInteger, nullable=False, server_default="0"),
    )
    op.create_table("admin_key", sa.Column("sha256", sa.LargeBinary, primary_key=True))
    op.create_table(
        "campaign",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("fingerprint", sa.Text, nullable=False, unique=True),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("terms", sa.Text, nullable=False),
        sa.Column("token", sa.LargeBinary),
        sa.Column("secret", sa.LargeBinary, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("first_open", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "outcome",
        _of_campaign(),
        sa.Column("round", sa.BigInteger, primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("count", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    for name, place, content in (
        ("cell", "part", "counts"),
        ("waiting_cell", "part", "counts"),
        ("guard", "segment", "rows"),
        ("kept", "segment", "reports"),
    ):
        op.create_table(
            name,
            _of_campaign(),
            sa.Column("round", sa.BigInteger, primary_key=True),
            sa.Column(place, sa.Integer, primary_key=True),
            sa.Column(content, sa.LargeBinary, nullable=False),
        )
    op.execute("INSERT INTO writer (id, epoch) VALUES (1, 0)")


def _of_campaign() -> sa.Column[int]:
    return sa.Column("campaign_id", sa.Integer, sa.ForeignKey("campaign.id"), primary_key=True)
