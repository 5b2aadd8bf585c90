"""What device and server agree on: how values are drawn, named and counted, and nothing secret."""
