"""The list of data sets."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A data set: how to call for it, its size (None: depends), and where it comes from."""

    name: str
    call: str
    n: int | None
    k: int | None
    tau: int
    source: str
    origin: str


CATALOGUE = (
    Entry("Syn", "syn()", 10_000, 360, 120, "synthetic", "made up, any size"),
    Entry(
        "Adult", "adult()", 45_222, 96, 260, "histogram",
        "UCI Adult, hours per week, CC BY 4.0; histogram shipped, files by fetch('adult')",
    ),
    Entry(
        "Browsers", "browsers()", 20_000, 97, 169, "histogram",
        "caniuse-lite, browser versions by month, CC BY 4.0; shares shipped, paths simulated",
    ),
    Entry(
        "DB_MT", "acs_weights('MT')", 10_336, 1_412, 80, "real",
        "ACS PUMS 2018 person weights, Montana, public domain; by fetch('acs', 'MT')",
    ),
    Entry(
        "DB_DE", "acs_weights('DE')", 9_123, 1_234, 80, "real",
        "ACS PUMS 2018 person weights, Delaware, public domain; by fetch('acs', 'DE')",
    ),
    Entry(
        "DB_..", "acs_weights(state)", None, None, 80, "real",
        "the same of any state, DC or Puerto Rico; by fetch('acs', state)",
    ),
    Entry(
        "ACS stand-in", "acs_standin()", 10_336, None, 80, "stand-in",
        "made up in the shape of ACS weights, where those cannot be fetched",
    ),
)  # fmt: skip
"""The data sets that loloha can load, apart from a user's own tables."""
