"""The laboratory: the paper made anew, attacks, and what is only studied."""
