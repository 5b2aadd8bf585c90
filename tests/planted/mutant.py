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
    "client/test_client.py",
    "hashing/test_hashing.py",
    "channels/test_channels.py",
)
TALLY, PROTOCOLS, ENCODINGS = (
    "server/test_tally.py",
    "protocols/test_protocols.py",
    "encodings/test_encodings.py",
)


def law(name: str) -> str:
    """The conformance suite's law of this name, on all variants."""
    return f"test_conformance.py -k {name}"


POPULATION_LAW, POPULATION = "population/test_population_law.py", "population/test_population.py"
DRAWS = "population/samplers/test_draws.py"
