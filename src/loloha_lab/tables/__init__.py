"""Tables of the documentation that are computed."""
