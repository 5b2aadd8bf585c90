"""Before anything is collected: what a protocol reveals, its errors, which to take."""
