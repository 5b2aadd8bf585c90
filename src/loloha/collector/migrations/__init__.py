"""Ordered migrations of the store's tables; each one is final once it is released."""
