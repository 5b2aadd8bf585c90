"""The publication's evaluation: its grid, figures and tables, measured and compared with theory."""
