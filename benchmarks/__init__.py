"""How fast it is, and how much faster than the straightforward method: ``python -m benchmarks``."""
