"""One user's secrets and their way out, with the standard library alone."""
