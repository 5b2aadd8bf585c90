"""Names for the array types that the server side passes around (for annotations only)."""

from typing import Any, TypeAlias

import numpy as np

Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
"""Bits, 64 to a word."""
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
"""Arrays of varying type, such as symbols in the narrowest type that holds them."""
