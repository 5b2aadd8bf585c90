"""An encoding as a package of somebody else's would have it: one file, with the parts it brings."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import loloha
from loloha.encodings import PARTS, Symbols, for_encoding
from loloha.engines import sql
from loloha.population import samplers


class Turned(Symbols):
    """Sends the next value."""

    def memo_index(self, key: Any, v: int) -> int:
        return (v + 1) % self.k

    def support(self, counts: Any) -> Any:
        return np.roll(counts, -1)


@dataclass(frozen=True, kw_only=True)
class TurnedLGRR(loloha.LGRR):
    """L-GRR over them."""

    name: ClassVar[str] = "turned"
    encoded = staticmethod(lambda protocol: Turned(protocol.k))


@for_encoding("population.samplers:counts", Turned)
def sample(encoding: Turned, *given: Any) -> tuple[Any, Iterator[Any]]:
    """As symbols are, a place on."""
    answers, counts = samplers.sample_symbols(Symbols(encoding.k), *given)
    return answers, (np.roll(one, 1) for one in counts)


@for_encoding("population.samplers:reports", Turned)
def report(encoding: Turned, *given: Any) -> Iterator[Any]:
    """As symbols are, a place on."""
    for one in samplers.report_symbols(Symbols(encoding.k), *given):
        yield one._replace(ys=(one.ys + 1) % encoding.k)


@for_encoding("privacy.loss:repeated", Turned)
def repeated(encoding: Turned, ones: Any, zeros: Any) -> Any:
    """One symbol shows it."""
    return ones


for_encoding("planning.prospect:work", Turned)(lambda protocol, encoding, n: ("one addition", n))
# A report is one cell of the counts, as a symbol is.
for_encoding("engines.sql:view", Turned)(PARTS["engines.sql:view"].known[sql.Symbols])
