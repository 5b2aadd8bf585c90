"""xxHash, the family of existing tools, by the package of that name."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from loloha.errors import ParameterError
from loloha.hashing.family import HashFamily

if TYPE_CHECKING:
    from loloha.arrays import Ints


class XXHash(HashFamily):
    """``xxh32(str(v), seed) mod g``: to read reports of existing tools, never a default (MATH 4.3).

    A key is the 32-bit seed. The collision probability is *taken as* 1/g, as those tools do.
    """

    name: ClassVar[str] = "xxhash"
    largest_k: ClassVar[int] = 1 << 24

    @property
    def collision(self) -> Fraction:
        return Fraction(1, self.g)

    @property
    def members(self) -> int:
        return 1 << 32

    def hash(self, key: int, v: int) -> int:
        return int(_xxh32()(str(v).encode(), seed=key)) % self.g

    def hash_many(self, keys: Ints, values: Ints) -> Ints:
        import numpy as np

        xxh32, g = _xxh32(), self.g
        pairs = np.broadcast(keys, values)
        hashed = (xxh32(str(int(v)).encode(), seed=int(key)) % g for key, v in pairs)
        return np.fromiter(hashed, np.int64, count=pairs.size).reshape(pairs.shape)


def _xxh32() -> Any:
    try:
        from xxhash import xxh32_intdigest
    except ImportError as error:
        raise ParameterError(
            "hash must be another family where the package xxhash is absent, got 'xxhash'; "
            "pip install 'loloha[xxhash]'"
        ) from error
    return xxh32_intdigest
