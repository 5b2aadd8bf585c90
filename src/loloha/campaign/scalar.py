"""One value of Python, NumPy, pandas or Arrow as a text or number; labels that look alike.

Standard library only, so foreign scalars are known by what they can do and not by their class.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
import uuid
from collections.abc import Hashable, Iterable
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

from loloha.errors import DomainError

LONGEST_NUMBER = 400
"""Limits on digits and exponent: no float needs more, and 1e999999999 would fill the memory."""
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_NOTHING = frozenset({"NAType", "NaTType"})
# Control characters, and Unicode's Default_Ignorable_Code_Point: joiners, variation selectors, ...
_IGNORED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Cyrillic and Greek letters that look like Latin ones; dashes and apostrophes.
_DRAWN = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0458\u0455\u04bb\u0501\u051b\u051d"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0423\u0406\u0408\u0405"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03bd"
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2018\u2019\u02bc",
    "aeopcxyijshdqwABEKMHOPCTXYIJSABEZHIKMNOPTYXov-------'''",
)


def clean(text: str) -> str:
    """Text as it is compared everywhere: composed (Unicode NFC), without blanks around it."""
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).strip()


def identity(value: Any) -> Hashable:
    """A key that is equal for two spellings of one label, user or round, and only then."""
    # Text is cleaned, numbers compare as `exact` reads them, True is not 1, and times with a zone
    # compare as instants. Text comes first because most values are text.
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
    """Whether a value is missing: None, nan, NaT, NA, null, blank text."""
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
    """An Arrow or NumPy scalar as a Python one if nothing is lost, else unchanged."""
    if hasattr(value, "as_py"):
        try:
            value = value.as_py()
        except (ValueError, OverflowError, LookupError, ImportError):
            # A date beyond Python's range, or in an unknown zone.
            return value
    if getattr(value, "ndim", None) != 0:
        return value
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind in ("m", "M"):
        # Nanoseconds, and years beyond Python's range, would become bare integers.
        plain = value.astype(f"{kind}8[us]").item()
        return value if isinstance(plain, int) else plain
    if kind in ("b", "i", "u", "S", "U"):
        return value.item()
    # A zero-dimensional array holds a scalar of its own precision.
    return value[()] if kind in ("f", "O") and not isinstance(value, Real) else value


def exact(value: Any) -> Fraction | None:
    """The number that a value represents, else None."""
    # A float stands for its shortest decimal, in its own precision: 0.3 for three tenths. Text is a
    # decimal in ASCII digits. True and False are no numbers.
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
    # NumPy's other floats: their text is the shortest decimal that identifies them.
    return _parsed(str(value)) if isinstance(value, Real) else None


def spellings(value: Any) -> tuple[str, ...]:
    """Texts that may match a label, the most literal first."""
    if is_missing(value):
        raise DomainError("value must not be missing or blank; send nothing for such a round")
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
        "convert it to a label of the campaign"
    )


def whole(text: str) -> int | None:
    """The integer of a text in the usual form: 7 or, as a float, 7.0."""
    digits = text.removesuffix(".0")
    if len(digits) > 18 or not digits.removeprefix("-").isdecimal() or not digits.isascii():
        return None
    return int(digits) if str(int(digits)) == digits else None


def _numerals(value: Any) -> tuple[str, ...]:
    """A number as text, and as the integer that it equals."""
    number = exact(value)
    if number == 0:
        # Without a sign of zero, as JavaScript writes it.
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


def skeleton(text: str) -> str:
    """The visual form of a text: equal for texts that look alike."""
    seen = unicodedata.normalize("NFKC", _IGNORED.sub("", text)).translate(_DRAWN)
    return " ".join(unicodedata.normalize("NFC", seen).split())


def alike(labels: Iterable[str]) -> int:
    """Number of labels that look like an earlier one, or are invisible."""
    listed = list(labels)
    if all(label.isascii() and label.isprintable() for label in listed):
        return 0
    seen = [skeleton(label) for label in listed]
    return len(seen) - len(set(seen) - {""})
