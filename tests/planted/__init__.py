"""Known bugs, and the tests that see each: a module for each part of the package."""

from planted.collector import COLLECTOR
from planted.design import BUDGETS
from planted.device import CLIENTS, SENDERS
from planted.engines import WINDOWS
from planted.mutant import Mutant
from planted.rules import NEW_ENCODINGS, RANDOMISED_RESPONSE
from planted.server import SERVER
from planted.study import LOADERS, PAPER, POPULATIONS

__all__ = ["PLANTED", "Mutant"]

PLANTED = [
    *RANDOMISED_RESPONSE,
    *CLIENTS,
    *SENDERS,
    *SERVER,
    *COLLECTOR,
    *POPULATIONS,
    *NEW_ENCODINGS,
    *LOADERS,
    *BUDGETS,
    *WINDOWS,
    *PAPER,
]
