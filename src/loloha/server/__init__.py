"""From reports to frequencies: counts of a round, estimates, and what may be done with them."""
