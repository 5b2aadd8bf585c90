"""Bugs to plant one by one, each with the tests that must see it; `mutants.py` runs them."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A bug: replace the only occurrence of ``old`` in a file of src/loloha by ``new``."""

    bug: str
    file: str
    old: str
    new: str
    caught_by: str
    """Arguments of pytest, below tests/."""


CLIENT, HASHING, CHANNELS = (
    "device/test_client.py",
    "rules/test_hashing.py",
    "rules/test_channels.py",
)
TALLY, PROTOCOLS, ENCODINGS = (
    "server/test_tally.py",
    "rules/test_protocols.py",
    "rules/test_encodings.py",
)


def law(name: str) -> str:
    """The conformance suite's law of this name, on all variants."""
    return f"test_conformance.py -k {name}"


POPULATION_LAW, POPULATION = "study/test_population_law.py", "study/test_population.py"
DRAWS = "study/samplers/test_draws.py"
