"""The publication's evaluation: its grid, figures and tables, measured and held against theory."""
