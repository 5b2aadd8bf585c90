"""The AUC of the best test of a change of value, by the reports before and after it.

The value stayed, or moved to another one; T reports before and T after are seen. The server knows
the rules, the user's key, and which reports are of which stretch; of the values it knows that all
are equally likely beforehand. Every AUC is that of the best test of such a server, or an upper
bound of it: where cases are drawn, four standard errors are added, and where a domain is large the
server is given some values that include the user's. A server that knows more sees more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from loloha import _moved, checks
from loloha.encodings import Encoding, Hashed, OneHot, SampledBuckets, Symbols, for_encoding
from loloha.encodings.part import CHANGE, FRESH_CHANGE
from loloha.privacy.change import bits, buckets, symbols, unmemoised
from loloha.privacy.change.known_key import CellChannels, CellSizes
from loloha.privacy.roc import AUC
from loloha.protocols import Protocol

LONGEST_STRETCH = 1_000_000

# Reports of a stretch beyond which a bound stands for them.
_LIMIT = 1000
# More keys than these tell users apart, however alike two of one key are.
_KEYS_AT_MOST = 1 << 20


@lru_cache(maxsize=256)
def change_auc(protocol: Protocol, reports: int) -> AUC | None:
    """How surely the best test sees whether a value changed between two stretches of reports.

    Parameters
    ----------
    protocol : Protocol
    reports : int
        Reports in each of the two stretches, 1..1 000 000.

    Returns
    -------
    AUC or None
        Of the best test of a server that knows the key and takes all values as equally likely;
        where ``bound`` is set, at least that. The same for the same arguments: what is drawn has a
        fixed seed. None for encodings from elsewhere.

    Raises
    ------
    ParameterError
        If reports is not an integer in that range.
    """
    reports = checks.integer("reports", reports, 1, LONGEST_STRETCH, "count those of one stretch")
    part = CHANGE if protocol.longitudinal else FRESH_CHANGE
    find: Callable[[Protocol, int], AUC | None] | None = part.of(protocol.encoding)
    return None if find is None else find(protocol, reports)


@lru_cache(maxsize=256)
def worst_key(protocol: Protocol) -> tuple[AUC, bool] | None:
    """How surely ever more reports show a change under the hash key that shows it most."""
    if not protocol.encoding.keyed or not protocol.g or not protocol.longitudinal:
        return None
    chain, cells = CellChannels.of(protocol), CellSizes.of(protocol)
    if cells.unseen == 1:
        return symbols.limit(chain, cells), True
    rows = np.unique(np.sort(cells.sizes, axis=1), axis=0)
    aucs = [symbols.limit(chain, CellSizes(row[None], cells.values, np.ones(1))) for row in rows]
    return max(aucs, key=lambda auc: auc.auc), cells.drawn


def keys_alike(protocol: Protocol) -> bool:
    """Whether a change shows as surely under each key that users may have, so far as is known."""
    encoding = protocol.encoding
    if not encoding.keyed:
        return True
    if type(encoding) is SampledBuckets:
        return encoding.k % encoding.b == 0 or encoding.d == encoding.b
    if not protocol.longitudinal or not protocol.g:
        return encoding.key_count == 1
    cells = CellSizes.of(protocol)
    return not cells.drawn and len(np.unique(np.sort(cells.sizes, axis=1), axis=0)) == 1


@lru_cache(maxsize=256)
def link_auc(protocol: Protocol, reports: int) -> AUC | None:
    """How surely the best test sees that two stretches of reports come from one user.

    Against two users who hold different values; the value of one user stays. (Users who may have
    the same value are distinguished less surely.) Parameters, returns and errors are those of
    `change_auc`; None also where keys are not sent.
    """
    apart = change_auc(protocol, reports)
    encoding = protocol.encoding
    if encoding.keyed and not encoding.key_bits:
        # The key stays on the device, and no server knows two of them.
        return None
    if apart is None or not protocol.longitudinal or not encoding.keyed:
        # Two users' memos are as independent as those of two values.
        return apart
    alike, keys = AUC(1.0, 0.0), _keys(encoding)
    if keys <= _KEYS_AT_MOST:
        if protocol.g:
            alike = _symbols(protocol, reports, users=True)
        else:
            alike = buckets.auc(protocol, users=True)
    # Users of different keys are distinguished for certain.
    return AUC(1 - (1 - alike.auc) / keys, alike.error / keys, alike.bound)


def _keys(encoding: Encoding) -> float:
    """How many keys there are; ``inf`` where that is no number to write down."""
    if type(encoding) is SampledBuckets and min(encoding.d, encoding.b - encoding.d) > 1 << 6:
        return math.inf
    return encoding.key_count


@for_encoding(CHANGE.name, Symbols, Hashed)
def _symbols(protocol: Protocol, reports: int, *, users: bool = False) -> AUC:
    chain, cells = CellChannels.of(protocol), CellSizes.of(protocol)
    # Of a large domain the server is given some values: what that shows is a bound.
    some = cells.values < protocol.k
    most = symbols.limit(chain, cells, users=users)
    if not (chain.certain or cells.unseen == 1):
        most = _below(most, reports, lambda: symbols.auc(chain, cells, reports, users=users))
    return most._replace(bound=most.bound or some)


@for_encoding(CHANGE.name, OneHot)
def _memoised_bits(protocol: Protocol, reports: int) -> AUC:
    most = buckets.auc(protocol)
    if protocol.second_channel is None or not protocol.second_channel.q:
        return most
    return _below(most, reports, lambda: bits.auc(protocol, reports))


@for_encoding(CHANGE.name, SampledBuckets)
def _buckets(protocol: Protocol, reports: int) -> AUC:
    return buckets.auc(protocol)


@for_encoding(FRESH_CHANGE.name, Symbols)
def _plain_symbols(protocol: Protocol, reports: int) -> AUC:
    most = unmemoised.bound(protocol, reports)
    return _below(most, reports, lambda: _symbols(protocol, reports))


@for_encoding(FRESH_CHANGE.name, OneHot)
def _one_round_bits(protocol: Protocol, reports: int) -> AUC:
    most = unmemoised.bound(protocol, reports)
    return _below(most, reports, lambda: bits.auc(protocol, reports))


@for_encoding(FRESH_CHANGE.name, Hashed)
def _one_round_hashes(protocol: Protocol, reports: int) -> AUC:
    most = unmemoised.bound(protocol, reports)
    return _below(most, reports, lambda: unmemoised.hashes(protocol, reports))


def _below(most: AUC, reports: int, find: Callable[[], AUC]) -> AUC:
    """The result for so many reports, at most that for infinitely many."""
    if reports > _LIMIT:
        return most._replace(bound=True)
    result = find()
    # What is exact is below it, but for rounding.
    return result._replace(auc=min(result.auc, most.auc)) if result.bound else result


if not TYPE_CHECKING:
    __getattr__ = _moved.getter(__name__)
