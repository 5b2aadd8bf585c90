"""Counts of a round, estimates of frequencies, and statistics over rounds."""
