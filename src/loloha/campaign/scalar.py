"""What a value from anywhere says: the one door for scalars of Python, NumPy, pandas and Arrow.

Standard library only, so foreign scalars are known by what they can do and not by their class.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
import uuid
from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

from loloha.errors import DomainError

LONGEST_NUMBER = 400
"""Digits, and size of the exponent: no float needs more, and 1e999999999 would fill the memory."""
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_NOTHING = frozenset({"NAType", "NaTType"})


def clean(text: str) -> str:
    """Text as it is compared everywhere: composed (Unicode NFC), without blanks around it."""
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).strip()


def identity(value: Any) -> Hashable:
    """What is equal for two spellings of one label, user or round, and for nothing else.

    Text is cleaned; numbers are equal as `exact` reads them, and True is not 1; moments with a zone
    are instants: an hour that the clock shows twice is two.
    """
    # Text first: most values are, and many.
    if isinstance(value, str):
        return clean(str.__str__(value)) or None
    value = unboxed(value)
    if is_missing(value):
        return None
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, (Real, Decimal)):
        number = exact(value)
        return ("beyond", str(value)) if number is None else number
    if isinstance(value, datetime.datetime) and value.utcoffset() is not None:
        try:
            return value.astimezone(datetime.UTC)
        except OverflowError:
            return value
    plain: Hashable = str(value) if isinstance(value, uuid.UUID) else value
    return plain


def is_missing(value: Any) -> bool:
    """Whether a value says that there is none: None, nan, NaT, NA, null, blank text."""
    if not isinstance(value, str):
        value = unboxed(value)
    if isinstance(value, str):
        return not value.strip()
    if value is None or type(value).__name__ in _NOTHING:
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    # Only nan differs from itself.
    return isinstance(value, Real) and bool(value != value)


def unboxed(value: Any) -> Any:
    """A scalar of Arrow or NumPy as Python's, where that loses nothing; others as they are."""
    if hasattr(value, "as_py"):
        try:
            value = value.as_py()
        except (ValueError, OverflowError, LookupError, ImportError):
            # A date that Python does not have, or in a zone that is not known here.
            return value
    if getattr(value, "ndim", None) != 0:
        return value
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind in ("m", "M"):
        # Nanoseconds, and years that Python does not have, would come as bare integers.
        plain = value.astype(f"{kind}8[us]").item()
        return value if isinstance(plain, int) else plain
    if kind in ("b", "i", "u", "S", "U"):
        return value.item()
    # An array of no dimension holds a scalar, which knows its own precision.
    return value[()] if kind in ("f", "O") and not isinstance(value, Real) else value


def exact(value: Any) -> Fraction | None:
    """The number that a value stands for, None if it stands for none.

    A float stands for its shortest decimal, in its own precision: 0.3 for three tenths. Text is a
    decimal in ASCII digits. True and False are no numbers.
    """
    value = unboxed(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _parsed(value.strip())
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Decimal):
        return _parsed(str(value))
    if isinstance(value, float):
        return _parsed(float.__repr__(value))
    # NumPy's other floats: their text is the shortest decimal that is theirs alone.
    return _parsed(str(value)) if isinstance(value, Real) else None


def spellings(value: Any) -> tuple[str, ...]:
    """The texts by which a label may be known that ``value`` is, the most literal first."""
    if is_missing(value):
        raise DomainError(
            "value must be there, got a missing or blank one; send nothing for such a round"
        )
    value = unboxed(value)
    if isinstance(value, bool):
        return str(value), str(value).lower()
    if isinstance(value, str):
        return (clean(str.__str__(value)),)
    if isinstance(value, bytes):
        try:
            return (clean(value.decode()),)
        except UnicodeDecodeError:
            return ()
    if isinstance(value, (Real, Decimal)):
        return _numerals(value)
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time() and value.tzinfo is None
        day = (value.date().isoformat(),) if midnight else ()
        return str(value), value.isoformat(), *day
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta, uuid.UUID)):
        return (str(value),)
    raise DomainError(
        f"value must be text, a number, a date or true/false, got {type(value).__name__}; "
        "convert it to what the campaign's labels say"
    )


def whole(text: str) -> int | None:
    """The integer that a text is written for as every program writes it: 7 or, as a float, 7.0."""
    digits = text.removesuffix(".0")
    if len(digits) > 18 or not digits.removeprefix("-").isdecimal() or not digits.isascii():
        return None
    return int(digits) if str(int(digits)) == digits else None


def _numerals(value: Any) -> tuple[str, ...]:
    """A number as it is written, and the integer that it is."""
    number = exact(value)
    if number == 0:
        # There is one zero, as JavaScript writes it.
        value = abs(value)
    literal = float.__repr__(value) if isinstance(value, float) else str(value)
    if number is not None and number.denominator == 1:
        return literal, str(number.numerator)
    if isinstance(value, Decimal) and number is not None:
        return literal, format(value.normalize(), "f")
    return (literal,)


def _parsed(text: str) -> Fraction | None:
    match = _DECIMAL.fullmatch(text)
    if match is None or len(text) > LONGEST_NUMBER:
        return None
    if match[2] is not None and abs(int(match[2][1:])) > LONGEST_NUMBER:
        return None
    return Fraction(text)
