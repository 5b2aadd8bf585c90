"""Query parameters: known ones only, each once."""

# No postponed annotations: some versions of the framework cannot read them.
import re
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request
from pydantic import BeforeValidator

from loloha.collector.problem import Problem
from loloha.report import LARGEST_ROUND

_MANY = {"value"}
_DIGITS = re.compile(r"0|-?[1-9][0-9]{0,18}")


def _digits(text: Any) -> Any:
    # Otherwise "1_0", "00" and " 0" would be numbers: several addresses of one resource.
    if isinstance(text, str) and not _DIGITS.fullmatch(text):
        raise ValueError("must be an integer, in digits without zeros in front")
    return text


Whole = Annotated[int, BeforeValidator(_digits)]
"""An integer of a path or query, written in the one way that it has."""

Number = Annotated[Whole, Path(ge=0, le=LARGEST_ROUND)]
Bound = Annotated[Whole | None, Query(ge=0, le=LARGEST_ROUND)]
Level = Annotated[float, Query(ge=0.5, le=0.9999, description="Of the intervals")]
Top = Annotated[Whole | None, Query(ge=1, le=100_000, description="Only the most frequent")]
Newest = Annotated[Whole, Query(ge=1, le=1000, description="How many rounds, the newest ones")]


@dataclass
class RoundsQuery:
    """A query about several rounds."""

    first: Bound = None
    last: Bound = None
    newest: Newest = 100
    value: Annotated[
        list[Whole] | None, Query(max_length=1000, description="Indices of values")
    ] = None
    top: Top = None
    level: Level = 0.95
    format: Literal["json", "csv", "parquet"] = "json"

    @property
    def form(self) -> tuple[Any, ...]:
        """Parameters that the answer depends on besides the rounds."""
        return self.value, self.top, self.level, self.format

    def require_values(self, bins: int) -> None:
        """Refuse values outside of a domain of so many."""
        if self.value is not None and not all(0 <= v < bins for v in self.value):
            raise Problem(422, f"value must lie in 0..{bins - 1}; correct it")


def known_parameters(request: Request) -> None:
    """Refuse unknown parameters: a misspelt bound would silently show other rounds."""
    route = request.scope["route"].dependant
    known = {field.alias for part in (route, *route.dependencies) for field in part.query_params}
    counts = Counter(name for name, _ in request.query_params.multi_items())
    if set(counts) <= known and all(n == 1 or name in _MANY for name, n in counts.items()):
        return
    some = ", ".join(sorted(known)) or "none"
    raise Problem(422, f"query must hold each of {some} at most once; correct it", kind="invalid")
