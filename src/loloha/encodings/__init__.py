"""How a value becomes a memo symbol and an answer, and how answers become additive counts.

An encoding and one or two channels make a protocol. Scalar methods run on the device and draw only
through an `Rng`; array methods run on the server, on n reports at a time.
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
