"""Labels that people cannot tell apart: one of them would be chosen for the other, unseen."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

# Control characters, and Unicode's Default_Ignorable_Code_Point: joiners, variation selectors, ...
_IGNORED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Letters of Cyrillic and Greek that are drawn like Latin ones; dashes and apostrophes.
_DRAWN = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0458\u0455\u04bb\u0501\u051b\u051d"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0423\u0406\u0408\u0405"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03bd"
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2018\u2019\u02bc",
    "aeopcxyijshdqwABEKMHOPCTXYIJSABEZHIKMNOPTYXov-------'''",
)


def skeleton(text: str) -> str:
    """What people see of a text: equal for texts that look alike, in whatever characters."""
    seen = unicodedata.normalize("NFKC", _IGNORED.sub("", text)).translate(_DRAWN)
    return " ".join(unicodedata.normalize("NFC", seen).split())


def alike(labels: Iterable[str]) -> int:
    """How many labels look like an earlier one, or like nothing at all."""
    listed = list(labels)
    if all(label.isascii() and label.isprintable() for label in listed):
        return 0
    seen = [skeleton(label) for label in listed]
    return len(seen) - len(set(seen) - {""})
