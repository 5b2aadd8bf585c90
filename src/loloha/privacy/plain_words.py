"""The guarantee of a protocol in plain words: what is protected, and what leaks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from loloha.checks import counted
from loloha.encodings import (
    Encoding,
    Hashed,
    OneHot,
    SampledBuckets,
    Symbols,
    Threshold,
    for_encoding,
)
from loloha.encodings.part import CELL_WORDS, LINK_WORDS
from loloha.hashing import AffineHash, XXHash
from loloha.privacy.change import keys_alike
from loloha.privacy.roc import AUC
from loloha.privacy.transcript import eps_2
from loloha.protocols import Protocol

OVER_KEYS = (
    "over users who draw their keys at random; under a single key it can be larger or smaller"
)
"""Beside an AUC if keys differ. Pooled over them it can be above that of every single one."""
MOST_SHOWN = 8
"""Numbers of cells whose loss is listed."""


def protected(protocol: Protocol) -> tuple[str, ...]:
    """What holds whatever is sent, a statement each."""
    first, memo = protocol.asked_first, protocol.asked_memo
    single = (
        "One report, seen alone: its likelihood ratio between any two values is at most "
        f"e^{first:.4g} = {math.exp(first):.4g}."
    )
    if not protocol.longitudinal:
        return (single, _one_round(protocol))
    constant = (
        "A value that never changes: the likelihood ratio of all its reports together, for ever, "
        f"between any two values is at most e^{memo:.4g} = {math.exp(memo):.4g}."
    )
    up_to = f"{memo:.4g} for each distinct one visited"
    if protocol.joint:
        spent = [protocol.spent(m) for m in range(1, protocol.encoding.memo_cells + 1)]
        up_to = ", ".join(f"{loss:.4g}" for loss in spent[:MOST_SHOWN])
        up_to += ", ..." if len(spent) > MOST_SHOWN else ""
        up_to += " where 1, 2, ... distinct ones are visited"
    pattern = (
        f"Values that change: if two histories return to earlier {_cells(protocol)} in the same "
        "rounds (round 3 equal to round 1, say), the loss between them is at most "
        f"{up_to}."
    )
    if protocol.encoding.keyed:
        pattern += " Moves between values of one cell do not show."
    rounds = () if _in_name_only(protocol) else (_one_round(protocol),)
    return single, constant, *rounds, pattern


for_encoding(CELL_WORDS.name, Symbols, OneHot)("values")
for_encoding(CELL_WORDS.name, Hashed)("cells of the user's own hash")
for_encoding(CELL_WORDS.name, SampledBuckets)(
    "cells (one of the user's own sampled buckets, or none of them)"
)


def _cells(protocol: Protocol) -> str:
    """What one memoised answer belongs to."""
    words: str | None = CELL_WORDS.of(protocol.encoding)
    return words or "memo symbols of the protocol's own encoding"


def _one_round(protocol: Protocol) -> str:
    """What any one round is protected by."""
    once = eps_2(protocol)
    return (
        "Any one round, however often values change: the likelihood ratio of two histories that "
        f"differ in one round, all others known, is at most e^{once:.4g} = {math.exp(once):.4g}; "
        f"if they differ in w rounds, e^({once:.4g} w). It does not grow with time."
    )


def panels(protocol: Protocol, every: int) -> tuple[str, ...]:
    """What one report in ``every`` rounds protects, if it is fewer than one a round."""
    once = eps_2(protocol)
    if every == 1 or math.isinf(once):
        return ()
    text = (
        f"Any {every} rounds that follow each other, however often values change in them, hold one "
        "report of a device: the likelihood ratio of two histories that differ in them alone is at "
        f"most e^{once:.4g} = {math.exp(once):.4g}; in L rounds, e^({once:.4g} m) with m = "
        f"L / {every}, rounded up. A device that is installed anew can report once more."
    )
    return (text,)


def residue(every: int) -> tuple[str, ...]:
    """What it shows that a device always reports in the same one of ``every`` rounds."""
    if every == 1:
        return ()
    text = (
        f"Panel: in which one of {every} rounds a device reports never changes. It says nothing of "
        f"values, but joins the pseudonyms of a device by at most {math.log2(every):.3g} bits."
    )
    return (text,)


def _in_name_only(protocol: Protocol) -> bool:
    """Whether what bounds one round grows with the number of bits, or nothing bounds it."""
    return (protocol.longitudinal and protocol.g is None) or math.isinf(eps_2(protocol))


def leaks(
    protocol: Protocol, change: Sequence[tuple[int, AUC | None]], link: AUC | None
) -> tuple[str, ...]:
    """What the reports of a user show, a statement each."""
    sentences = [_changes(protocol, change)]
    if protocol.joint:
        sentences.append(_price(protocol))
    if _in_name_only(protocol):
        sentences.append(_any_round(protocol))
    sentences.append(_link(protocol, link))
    sentences.append(
        "Absence: in which rounds a user reports, and from where, is visible to whoever receives "
        "the reports. Whether a client reports does not depend on which value of the domain it "
        "has: a limit is compared with the cap at enrolment, and ends one-round protocols after a "
        "fixed number of reports."
    )
    if protocol.longitudinal:
        sentences.append(
            "Reset: no budget is ever renewed. A client that is reset, or installed again, is a "
            "new user: what was spent stays spent, and up to "
            f"{protocol.cap:.4g} more can be spent."
        )
    sentences.append("Other collections about the same user: their losses add to these.")
    return tuple(sentences)


def shares(change: Sequence[tuple[int, AUC | None]]) -> str:
    """How surely a change shows, in one line."""
    known = [f"{share(auc)} at T = {t}" for t, auc in change if auc is not None]
    return ", ".join(known) or "not computed here"


def share(auc: AUC) -> str:
    """An AUC in words: a bound is rounded up and called one."""
    if not auc.bound:
        return f"{auc.auc:.3f}"
    return f"at most {min(1.0, math.ceil(1000 * auc.auc - 1e-6) / 1000):.3f}"


def over_keys(protocol: Protocol) -> str:
    """Beside an AUC of the protocol: whose keys it is over, unless all are alike."""
    return "" if keys_alike(protocol) else OVER_KEYS


def server(protocol: Protocol) -> str:
    """Who makes the best test of a change; MATH section 12."""
    key = " and the user's key" if protocol.encoding.keyed else ""
    return f"a server that knows the protocol{key} and takes all values as equally likely"


def _told_apart(protocol: Protocol, change: Sequence[tuple[int, AUC | None]]) -> str:
    text = (
        "AUC of the best test for one change, from T reports before it and T after (how often it "
        f"ranks a user whose value changed above one whose value did not): {shares(change)} (0.5 "
        f"is chance). This is {server(protocol)}; one that knows more about the values sees more."
    )
    keys = over_keys(protocol)
    return f"{text} It is {keys}." if keys else text


def worst(auc: AUC, drawn: bool) -> str:
    """What shows under the key that shows most, where keys are assigned."""
    which = "of those that were drawn to find it" if drawn else "of all"
    return (
        f"Assigned keys: under the key that shows a change most clearly, {which}, the AUC of the "
        f"best test of any number of reports is {share(auc._replace(bound=True))}. Whoever assigns "
        "the keys knows who has it."
    )


def exchanged(protocol: Protocol) -> float:
    """What tells two histories apart, at most, that differ in one cell and not in their pattern."""
    # eps_inf where answers are drawn independently, ``inf`` for one-round protocols. With joint
    # ones B_m, m the cells that are visited; one more is left to exchange one for. MATH 15.
    if not protocol.longitudinal:
        return math.inf
    if not protocol.joint:
        return protocol.asked_memo
    return protocol.spent(max(1, protocol.encoding.memo_cells - 1))


def _price(protocol: Protocol) -> str:
    """What jointly drawn responses cost."""
    text = (
        "Jointly drawn permanent responses: all responses of a user are drawn together, so knowing "
        "some of them reveals something about the others."
    )
    # Of two cells none is left to exchange one for.
    if protocol.encoding.memo_cells == 2:
        return text
    both, most = protocol.spent(2), exchanged(protocol)
    more = f", and up to {most:.4g} where more are" if most > both else ""
    return (
        f"{text} That is the price of the smaller cap: the loss between two histories that differ "
        f"in a single one of several {_cells(protocol)}, in all rounds spent there, can be "
        f"{both:.4g} where two are visited{more}. With responses drawn independently it is at most "
        f"{protocol.asked_memo:.4g}, however many are visited. So an observer who knows all of a "
        "user's values but one can learn more about that one than eps_inf allows."
    )


def _any_round(protocol: Protocol) -> str:
    """Why one round of bits is hardly bounded."""
    once = eps_2(protocol)
    if CELL_WORDS.of(protocol.encoding) is None:
        return (
            "Any one round: no bound is known for the protocol's own encoding; assume that there "
            "is none."
        )
    if math.isinf(once):
        return (
            "Any one round: the loss of a single changed round is unbounded, because the "
            "permanent response is sent as it is."
        )
    return (
        "Any one round: with all others known, the only bound on the likelihood ratio of a single "
        f"changed round is e^{once:.4g}, no protection in practice: the permanent responses to two "
        "values may differ in every bit, and the bound grows with the number of values."
    )


def _changes(protocol: Protocol, change: Sequence[tuple[int, AUC | None]]) -> str:
    """What more and more reports of one user show."""
    if not protocol.longitudinal:
        return (
            f"Repetition: every report spends {protocol.asked_first:.4g} again. Repeated reports "
            "of one value average the noise away, and the total is unbounded. They also show when "
            f"the value changes. {_told_apart(protocol, change)}"
        )
    if protocol.second is None:
        why = (
            "There is no instantaneous response: a report is repeated bit for bit while the value "
            "stays in one cell, so a report that differs from an earlier one proves a change. "
        )
    elif protocol.encoding.keyed:
        why = _unseen(protocol)
    elif CELL_WORDS.of(protocol.encoding) is not None:
        why = (
            "Each value has its own permanent response, so in time every change shows, unless "
            "both values happened to draw the same response. "
        )
    else:
        why = "Assume that in time every change shows. "
    return (
        f"The times of changes: the reports show when a user moves between {_cells(protocol)}, and "
        "when back, more clearly the longer they run. Neither eps_inf nor the cap bounds "
        f"this: the cap is a budget spent, not a bound on what any history reveals. {why}"
        f"{_told_apart(protocol, change)}"
    )


def _unseen(protocol: Protocol) -> str:
    """Which moves of a value never show, and so keep the share below 1."""
    encoding = protocol.encoding
    shared = encoding.collision or encoding.memo_cells < encoding.values
    hidden = ["within one cell"] if shared else []
    channel: Any = protocol.first_channel
    # Without one symbol for all, a table gives every cell an answer of its own.
    if not channel.joint or channel.constant:
        hidden.append("between cells with the same permanent response")
    if not hidden:
        return "Every value has its own permanent response, so in time every change shows. "
    others = "".join(f", nor one {move}" for move in hidden[1:])
    return f"A move {hidden[0]} never shows{others}, which keeps the AUC below 1 for ever. "


def _link(protocol: Protocol, link: AUC | None) -> str:
    """How the reports of one user can be joined: by a key, or by the answers themselves."""
    encoding = protocol.encoding
    from_two = (
        "" if link is None else f" AUC from two single reports: {share(link)} (0.5 is chance)."
    )
    if not protocol.longitudinal:
        return (
            "Linking: nothing is memoised and keys are drawn anew, so only the value itself, while "
            f"it stays, links the reports of one user.{from_two}"
        )
    words: Callable[[Any], str] | None = LINK_WORDS.of(encoding)
    if type(encoding) in (Hashed, Threshold) and encoding.key_count == 1:
        words = _by_answer
    if words is None:
        return (
            "Linking: it is not known what the protocol's own encoding repeats in the reports of "
            "one user; assume that they can be linked."
        )
    return f"Linking: {words(encoding)}{from_two if words is _by_answer else ''}"


@for_encoding(LINK_WORDS.name, Hashed)
def _by_key(encoding: Hashed) -> str:
    family = encoding.family
    if type(family) in (AffineHash, XXHash):
        return (
            f"by key. A user's reports carry the same {family.key_bits}-bit key, a pseudonym that "
            "links all reports of one user."
        )
    return (
        f"by key. A user's reports carry the same key, one of {family.members}. About "
        f"n/{family.members} of n users share it; where there are fewer users than keys it can "
        "single one out."
    )


@for_encoding(LINK_WORDS.name, SampledBuckets)
def _by_buckets(encoding: SampledBuckets) -> str:
    carried = "repeat the memoised bits unchanged"
    if encoding.d < encoding.b:
        carried = f"carry the same {counted(encoding.d, 'sampled bucket')} and {carried}"
    return f"by fingerprint. A user's reports {carried}, which can single a user out and link them."


@for_encoding(LINK_WORDS.name, Symbols, OneHot)
def _by_answer(encoding: Encoding) -> str:
    return (
        "by fingerprint. No key distinguishes users, but the permanent response shows through the "
        "reports: while the value stays, two reports of one user look more alike than reports of "
        "two users with different values, so a pseudonym that changes every round does not prevent "
        "linking."
    )
