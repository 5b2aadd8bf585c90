"""Specifications: protocols are values that survive every trip, and refuse what they cannot be."""

import inspect
import math
import re
from typing import Any

import numpy as np
import pytest

import loloha
from laws import law
from laws.variants import FLAGSHIPS
from loloha.errors import ParameterError
from loloha.protocols import protocol_from_dict


@law(FLAGSHIPS)
def a_spec_that_is_not_whole_is_refused(protocol: Any) -> None:
    spec = protocol.to_dict()
    broken: list[Any] = [spec | {"version": version} for version in (0, 2, "1", 1.0, True, None)]
    broken += [spec | {"type": name} for name in ("", "nope", None, 3, ["grr"], {})]
    broken += [spec | {extra: 1} for extra in ("extra", "name", "cls", "params", "self")]
    broken += [{key: spec[key] for key in spec if key != left} for left in ("type", "version", "k")]
    broken += [None, 3, "grr", [], ["type", "version"], {}]
    for one in broken:
        with pytest.raises(ParameterError):
            protocol_from_dict(one)


BAD = {
    "k": [1, 0, -3, (1 << 24) + 1, 2.5, 3.0, "3", None, True, math.nan, np.float64(3)],
    "eps": [0, -1.0, 1e-7, 701, math.nan, math.inf, "1", None, True, 1j, [1.0], np.bool_(True)],
    "count": [0, -1, 1 << 25, 2.5, 2.0, "2", True, math.nan, np.float64(2)],
    "choice": ["nope", "", "TIGHT", 3, True, 1.0, ["tight"], b"linear"],
}
BAD |= {"memo": BAD["choice"], "m0": [-1e-9, 1.5, math.nan, math.inf, "1", True, 1j, [1.0]]}
BAD |= {"eps_inf": BAD["eps"], "eps_1": BAD["eps"], "calibration": BAD["choice"]}
BAD |= {"target": BAD["choice"]}
BAD |= {"hash": BAD["choice"], "g": [1, *BAD["count"]], "b": [1, *BAD["count"]], "d": BAD["count"]}


@law(FLAGSHIPS)
def bad_parameters_are_refused_by_name_and_value(protocol: Any) -> None:
    params = protocol.get_params()
    unknown = params.keys() - BAD.keys()
    assert not unknown, f"BAD needs a row for {unknown}"
    for name in params:
        for value in BAD[name]:
            with pytest.raises(ParameterError) as caught:
                type(protocol)(**params | {name: value})
            said = str(caught.value)
            assert said.startswith(f"{name} must be "), said
            assert f"got {value!r}; " in said, said
    if "eps_1" in params:
        for value in (params["eps_inf"], params["eps_inf"] * 2):
            with pytest.raises(ParameterError, match=f"eps_1 must be below .*, got {value!r}; "):
                type(protocol)(**params | {"eps_1": value})


@law(FLAGSHIPS)
def missing_and_unknown_parameters_are_named(protocol: Any) -> None:
    params = protocol.get_params()
    with pytest.raises(ParameterError, match=r"unknown epsilon; correct"):
        loloha.protocol(protocol.name, **params, epsilon=1.0)
    del params["k"]
    with pytest.raises(ParameterError, match=r"got unknown epsilon and missing k; correct"):
        loloha.protocol(protocol.name, **params, epsilon=1.0)
    with pytest.raises(ParameterError, match=r"got missing k; correct"):
        loloha.protocol(protocol.name, **params)


@law(FLAGSHIPS)
def own_annotations_are_parameters(protocol: Any) -> None:
    """A subclass that states a parameter and forgets the dataclass decorator would ignore it."""
    for cls in type(protocol).__mro__[:-1]:
        for name, annotation in inspect.get_annotations(cls).items():
            if not re.search("ClassVar|InitVar", str(annotation)):
                assert name in protocol.get_params(), f"{name} of {cls.__name__}"
