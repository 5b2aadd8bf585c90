"""Encodings: from a value to a memo symbol and an answer, and from answers to counts.

An encoding and one or two channels make a protocol. Scalar methods run on the device and draw only
through an `Rng`; array methods run on the server, on n reports at a time.

===============  ================================  =====================  ==========================
encoding         memo symbol                       answer                 counts
===============  ================================  =====================  ==========================
Symbols          the value                         a symbol               one cell a value
Hashed           its hash under the user's key     key, symbol            N[key, symbol], or support
OneHot           the value                         k bits                 ones a value
SampledBuckets   position of its bucket            d buckets, d bits      ones and samples a bucket
Threshold        its side of the user's threshold  threshold, bit         N[threshold, bit]
HiddenThreshold  the same                          bit                    N[bit]
===============  ================================  =====================  ==========================
"""

from loloha.encodings.base import Channel, Encoding, Kind, Number
from loloha.encodings.bit import OneHot, SampledBuckets
from loloha.encodings.ordered import HiddenThreshold, Threshold
from loloha.encodings.part import PARTS, Part, for_encoding, like_encoding
from loloha.encodings.symbol import Hashed, Symbols

__all__ = [
    "PARTS",
    "Channel",
    "Encoding",
    "Hashed",
    "HiddenThreshold",
    "Kind",
    "Number",
    "OneHot",
    "Part",
    "SampledBuckets",
    "Symbols",
    "Threshold",
    "for_encoding",
    "like_encoding",
]
