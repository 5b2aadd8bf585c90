"""Every registered protocol in small sizes, found by looking at its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from itertools import combinations, product
from typing import Any

from loloha.errors import ParameterError
from loloha.protocols import REGISTRY, Protocol

# What each parameter is tried with. A protocol with a parameter of another name is tried with its
# default; one without a default needs a row here.
SIZES: dict[str, tuple[Any, ...]] = {
    "k": (2, 3, 4),
    "calibration": ("tight", "published"),
    "hash": ("linear", "prime", "affine", "xxhash"),
    "memo": ("independent", "joint"),
    "target": ("distribution", "mean"),
    "g": (2, 3),
    "b": (2, 3, 4),
    "d": (1, 2, 4),
}
BUDGETS: tuple[dict[str, float], ...] = (
    {"eps": 1.0, "eps_inf": 2.0, "eps_1": 1.0},
    {"eps": 0.37, "eps_inf": 1.3, "eps_1": 0.45},
    {"eps": 4.1, "eps_inf": 5.0, "eps_1": 3.0},
)
TIGHT = {"calibration": "tight"}
FEW = {"k": 3, "g": 3, "hash": "linear", "b": 3, "d": 2}
# Bits that do not fill their last byte, buckets that hold unequal numbers of values.
FLAGSHIP = {"k": 11, "g": 3, "b": 10, "d": 9, **BUDGETS[0]}


@dataclass(frozen=True)
class Variant:
    """A protocol and parameters for it; its id reads ``protocol-parameters``."""

    cls: type[Protocol]
    params: tuple[tuple[str, Any], ...]

    def build(self) -> Any:
        """A new protocol object, with nothing cached in it."""
        return self.cls(**dict(self.params))

    def __str__(self) -> str:
        words = [
            value if isinstance(value, str) else _word(name, value)
            for name, value in self.params
            if BUDGETS[0].get(name) != value
        ]
        return "-".join([self.cls.name, *words])


def _word(name: str, value: Any) -> str:
    return f"{name}={value}" if isinstance(value, float) else f"{name}{value}"


def options(cls: type[Protocol], budget: dict[str, float]) -> Iterator[dict[str, Any]]:
    """All combinations of what the parameters of ``cls`` are tried with."""
    table = SIZES | {name: (value,) for name, value in budget.items()}
    own = [field for field in fields(cls) if field.init]
    unknown = [
        field.name
        for field in own
        if field.name not in table and field.default is MISSING and field.default_factory is MISSING
    ]
    if unknown:
        raise LookupError(f"variants.SIZES needs a row for {unknown} of {cls.name}")
    tried = [field.name for field in own if field.name in table]
    for values in product(*(table[name] for name in tried)):
        yield dict(zip(tried, values, strict=True))


def variants_of(cls: type[Protocol]) -> list[Variant]:
    """What ``cls`` accepts: everything at k = 3, less at the other sizes and budgets."""
    found: dict[Protocol, Variant] = {}
    for budget in BUDGETS:
        for params in options(cls, budget):
            fixed = FEW if budget is not BUDGETS[0] else {} if params["k"] == 3 else TIGHT
            if any(params.get(name, value) != value for name, value in fixed.items()):
                continue
            try:
                made = cls(**params)
            except ParameterError:
                continue
            found.setdefault(made, Variant(cls, tuple(params.items())))
    if not found:
        raise LookupError(f"no variant of {cls.name} could be made; extend variants.SIZES")
    return list(found.values())


def flagships_of(cls: type[Protocol]) -> Iterator[Variant]:
    """One variant a way of counting, for laws too slow to be tried on all."""
    own = {field.name for field in fields(cls) if field.init}
    params = tuple((name, size) for name, size in FLAGSHIP.items() if name in own)
    yield Variant(cls, params)
    if "hash" in own:
        for family in ("affine", "prime"):
            yield Variant(cls, (*params, ("hash", family)))
    if "target" in own:
        yield Variant(cls, (*params, ("target", "mean")))
    if "memo" in own:
        yield Variant(cls, (*params, ("hash", "prime"), ("memo", "joint")))


def pairwise(variants: list[Variant]) -> list[Variant]:
    """Few of these, among which each two parameters have all the pairs of values that all have."""
    pairs = {variant: {*combinations(variant.params, 2)} for variant in variants}
    chosen = variants[:1]
    missing = set().union(*pairs.values()) - set().union(*(pairs[one] for one in chosen))
    while missing:
        chosen.append(max(variants, key=lambda variant: len(pairs[variant] & missing)))
        missing -= pairs[chosen[-1]]
    return chosen


def example(
    protocol: str, k: int, *, budgets: Mapping[str, float] = BUDGETS[0], **params: Any
) -> Protocol:
    """The registered protocol at these budgets, whatever its parameters are called."""
    cls = REGISTRY[protocol]
    own = {field.name for field in fields(cls) if field.init}
    return cls(k=k, **{name: eps for name, eps in budgets.items() if name in own} | params)


VARIANTS = [variant for cls in REGISTRY.values() for variant in variants_of(cls)]
FLAGSHIPS = [variant for cls in REGISTRY.values() for variant in flagships_of(cls)]
PAIRWISE = [variant for cls in REGISTRY.values() for variant in pairwise(variants_of(cls))]
