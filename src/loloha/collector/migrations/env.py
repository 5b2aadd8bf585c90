"""The environment of alembic: migrations run in the transaction that `upgrade` began."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], render_as_batch=True)
context.run_migrations()
