"""Privacy loss: of repeated reports of one value, and the budget that changing values spend."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loloha.encodings import Encoding, Hashed, OneHot, SampledBuckets, Symbols, for_encoding
from loloha.encodings.part import REPEATED
from loloha.errors import ParameterError
from loloha.privacy.rounded import product
from loloha.protocols import Protocol
from loloha.protocols.realised import NEAR
from loloha.report import MOST_REPORTS

if TYPE_CHECKING:
    from loloha.arrays import Floats, Ints


Number = float | Fraction


def growth(protocol: Protocol, reports: Any, *, realised: bool = False) -> Any:
    """Loss eps_t of t reports of one value: how far apart two values set them.

    Parameters
    ----------
    protocol : Protocol
    reports : int or int64[...]
        Number t of reports, 1..2^53 - 1.
    realised : bool
        Whether to use the exact probabilities that a device draws with, in place of the formulas
        they are rounded from.

    Returns
    -------
    float or float64[...]
        In nats. Where answers are memoised it rises from eps_1 to eps_inf and never beyond; for
        one-round protocols it is t times the loss of one report.

    Raises
    ------
    ParameterError
        If reports are not integers in that range.

    Notes
    -----
    Of an encoding that is not one of this package only the bounds are known: eps_1, then eps_inf.
    The worst case over the two values, the user's key and what was sent, with equality. It says
    nothing about values that change. Source: MATH section 8.
    """
    t = counts("reports", reports, 1, MOST_REPORTS)
    once = protocol.realised.eps_memo if realised else protocol.asked_memo
    if not protocol.longitudinal:
        loss: Any = t * once if realised else _as_printed(t, once)
    else:
        # The sum of two rounded logarithms may pass the limit by its last bit.
        loss = np.minimum(_memoised_loss(protocol, t.astype(np.float64), realised), once)
    if not realised:
        # What was asked for, where only rounding parts it from what was computed.
        first = protocol.asked_first
        loss = np.where((t == 1) & (np.abs(loss - first) <= NEAR * first), first, loss)
        if protocol.longitudinal:
            loss = np.where(loss >= once * (1 - 1e-14), once, loss)
    return loss if loss.ndim else float(loss)


_as_printed = np.vectorize(product, otypes=[np.float64])


def loss_of(protocol: Protocol, distinct: Any) -> Any:
    """Budget a user has spent (the paper's metric).

    Parameters
    ----------
    protocol : Protocol
    distinct : int or int64[...]
        Distinct memoised answers so far, at most the memo cells of one user; for one-round ones
        the number of reports.

    Returns
    -------
    float or float64[...]
        eps_inf for each memoised answer, eps for each one-round report; where all answers were
        drawn in one table, what so many of them spend together. See
        `loloha.privacy.explanation.explain` for what this does and does not bound.

    Raises
    ------
    ParameterError
        If distinct are not integers in that range.
    """
    most = protocol.encoding.memo_cells if protocol.longitudinal else MOST_REPORTS
    number = counts("distinct", distinct, 0, most)
    if protocol.longitudinal:
        spent = [protocol.spent(m) for m in range(int(number.max(initial=0)) + 1)]
        loss: Any = np.array(spent)[number]
    else:
        loss = number * protocol.asked_memo
    return loss if loss.ndim else float(loss)


def cap(protocol: Protocol) -> float:
    """Most that `loss_of` can become; ``inf`` for one-round protocols, which spend every round."""
    return protocol.cap


class _Question(NamedTuple):
    """One yes-or-no property of a memoised answer, and how fast repeated reports reveal it.

    The memo has it with probability ``low`` or ``low + contrast``; a report shows it
    ``e^log_ratio`` times as often if the memo has it as if not.
    """

    contrast: float
    low: float
    log_ratio: float

    def loss(self, t: Floats) -> Floats:
        """ln (p + (1-p) r)/(q + (1-q) r), where all t reports show it; r = e^(-t log_ratio)."""
        # With p = q + contrast it is log1p(contrast (1-r) / (q + (1-q) r)): nothing cancels.
        ratio = np.exp(-t * self.log_ratio)
        excess: Floats = self.contrast * -np.expm1(-t * self.log_ratio)
        loss: Floats = np.log1p(excess / (self.low + (1 - self.low) * ratio))
        return loss


_Shown = Callable[[Any, Any, Any], Any]
"""What differs between two values, of the losses shown by ones and by zeros."""


def _memoised_loss(protocol: Protocol, t: Floats, realised: bool) -> Floats:
    """eps_t where answers are memoised."""
    # Symbols: the likeliest sign of x is t reports of x, and p1 + (g-2) q1 = 1 - q1 makes MATH's
    # formula that of one bit. Bits: two of them differ between two values, are randomised
    # independently, and each shows most when all t reports agree, so the two losses add up.
    p1, q1, p2, q2 = _channels(protocol, realised)
    ones = _Question(float(p1 - q1), float(q1), _log_ratio(p2, q2))
    encoding = protocol.encoding
    shown: _Shown | None = REPEATED.of(encoding)
    if shown is None:
        # All that is known of other encodings: the bounds asked for.
        losses = protocol.realised
        return np.where(t > 1, losses.eps_memo, losses.eps_first)
    unset, still_unset = _complement(p1, q1), _complement(p2, q2)
    zeros = _Question(float(p1 - q1), float(unset), _log_ratio(1 - q2, still_unset))
    loss: Floats = shown(encoding, ones.loss(t), zeros.loss(t))
    return loss


@for_encoding(REPEATED.name, Symbols, Hashed)
def _one_symbol(encoding: Encoding, ones: Floats, zeros: Floats) -> Floats:
    return ones


@for_encoding(REPEATED.name, OneHot)
def _two_bits(encoding: Encoding, ones: Floats, zeros: Floats) -> Floats:
    return ones + zeros


@for_encoding(REPEATED.name, SampledBuckets)
def _sampled_bits(encoding: SampledBuckets, ones: Floats, zeros: Floats) -> Floats:
    # The one sampled bucket holds the value or does not: a single bit differs.
    return np.maximum(ones, zeros) if encoding.d == 1 else ones + zeros


def _channels(protocol: Protocol, realised: bool) -> tuple[Number, Number, Number, Number]:
    """p1, q1, p2, q2; a missing second round sends the memo as it is."""
    source: Any = protocol.realised if realised else protocol
    p2, q2 = source.p2, source.q2
    return source.p1, source.q1, 1 if p2 is None else p2, 0 if q2 is None else q2


def _complement(p: Number, q: Number) -> Number:
    """1 - p; a symmetric bit knows it as q, where the subtraction of floats would lose it."""
    symmetric = isinstance(p, float) and abs(p + q - 1) <= 2**-52
    return q if symmetric else 1 - p


def _log_ratio(p: Number, q: Number) -> float:
    """ln(p/q) of p >= q, accurate near 0; inf where q is 0."""
    if not q:
        return math.inf
    return math.log1p(float((p - q) / q)) if p < 2 * q else math.log(p) - math.log(q)


def counts(name: str, values: Any, low: int, high: int) -> Ints:
    """``values`` as int64[...] in low..high; floats, bools and strings are refused."""
    array: Any = np.asarray(values)
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    if array.dtype.kind not in "iu" or array.min() < low or array.max() > high:
        raise ParameterError(
            f"{name} must be integers in {low}..{high}, got {values!r}; count them one by one"
        )
    whole: Ints = array.astype(np.int64)
    return whole
