"""Anonymous channels: what one round reveals if reports arrive shuffled, without their senders.

Other users' reports hide a user's own as far as they could have come from either value; with a key,
those of the users who share it. Source: MATH section 17: the privacy blanket
(`loloha.privacy.blanket`), and a better bound for bits (`loloha.privacy.shuffled_bits`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from loloha import checks
from loloha.encodings import Hashed, OneHot, SampledBuckets, Symbols, for_encoding
from loloha.encodings.part import SHUFFLED
from loloha.errors import ParameterError
from loloha.privacy import blanket
from loloha.privacy.blanket import Classes, Divergence
from loloha.privacy.shuffled_bits import Others, composed
from loloha.privacy.transcript import eps_2
from loloha.protocols import Protocol
from loloha.protocols.base import speakable
from loloha.protocols.realised import as_asked

MOST_USERS = 10_000_000
# Others look like a user with less than e^-40 then: so many of them hide nothing.
_HOPELESS = 40.0


class Amplified(NamedTuple):
    """Loss of a shuffled report at a delta.

    Attributes
    ----------
    eps : float
        At most, rounding included; never above the loss without a shuffler, and that loss where
        rounding leaves no gain to prove.
    lower : float
        At least: attained where all others hold one value, and under some key where there are keys;
        0 where nothing is known.
    local : float
        Without a shuffler, at delta = 0.
    closed : float or None
        The closed form of Feldman, McMillan and Talwar (2021), None outside its range,
        local <= ln(n / (16 ln(2/delta))), and where reports carry keys.
    """

    eps: float
    lower: float
    local: float
    closed: float | None

    def asked(self, eps: float) -> Amplified:
        """With the loss that was asked for, where it was computed but for rounding."""
        return self._replace(eps=as_asked(self.eps, eps), local=as_asked(self.local, eps))


@dataclass(frozen=True)
class Shuffled:
    """What one round reveals through an anonymous channel.

    Attributes
    ----------
    n : int
        Users in the round.
    delta : float
    group : float
        Users, on average, among whom a report is shuffled: those who share its key.
    first : Amplified
        The first report of every user.
    round : Amplified
        One round among others that are all known, memos included.
    """

    n: int
    delta: float
    group: float
    first: Amplified
    round: Amplified

    @property
    def text(self) -> str:
        """In plain words."""
        shared = f", {self.group:.4g} to a key" if self.group < self.n else ""
        lines = [f"Shuffled among {self.n} users{shared}, delta = {self.delta:g}:"]
        for what, amplified in (("First report", self.first), ("Any one round", self.round)):
            attained = (
                f", and no less than {amplified.lower:.4g} at worst" if amplified.lower else ""
            )
            lines.append(
                f"- {what}: eps = {amplified.eps:.4g} instead of {amplified.local:.4g}{attained}."
                if amplified.eps < amplified.local
                else f"- {what}: no gain is proved, {_eps(amplified.local)}."
            )
        lines.append(
            "- Not covered: linking over rounds. A key or a fingerprint joins reports of one user "
            "behind the shuffler; then what holds is what holds without it. The shuffler itself "
            "must be trusted not to tell who sent what, and the other users to be honest: who does "
            "not randomise, or tells what was sent, hides nobody."
        )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data; None where nothing is bounded."""
        plain = {
            name: {key: checks.finite(number) for key, number in amplified._asdict().items()}
            for name, amplified in (("first", self.first), ("round", self.round))
        }
        return {"n": self.n, "delta": self.delta, "group": self.group, **plain, "text": self.text}


def _eps(eps: float) -> str:
    return "nothing bounds it" if math.isinf(eps) else f"eps = {eps:.4g}"


def shuffled(protocol: Protocol, n: int, delta: float = 1e-6) -> Shuffled:
    """Loss of the first report and of a round if the reports of n users arrive shuffled.

    Parameters
    ----------
    protocol : Protocol
    n : int
        Users who report in the round, 1..10^7.
    delta : float
        Chance, in [1e-12, 0.1], with which the bound need not hold.

    Returns
    -------
    Shuffled

    Raises
    ------
    ParameterError
        If a number is out of range, or the protocol's encoding is unknown here.

    Notes
    -----
    It holds for every key of the user, and over the random keys of the others. `Amplified.lower`
    says how far it may be off. It covers one round only. Source: MATH section 17.
    """
    speakable(protocol)
    n = checks.integer("n", n, 1, MOST_USERS, "count the users of a round")
    if not (isinstance(delta, int | float) and 1e-12 <= delta <= 0.1):
        raise ParameterError(f"delta must be in [1e-12, 0.1], got {delta!r}; try 1e-6")
    encoding = protocol.encoding
    keys = encoding.key_count
    first = _amplified(_first_report(protocol), n, keys, delta).asked(protocol.asked_first)
    if not protocol.longitudinal:
        later = first
    else:
        repeated = _later_report(protocol)
        once = eps_2(protocol)
        later = (
            Amplified(once, 0.0, once, None)
            if repeated is None
            else _amplified(repeated, n, keys, delta)
        )
    return Shuffled(n, float(delta), 1 + (n - 1) / keys, first, later)


class _Answers(NamedTuple):
    """How the answers of two values differ, beside those of others.

    ``hidden``: what all others send at least, whatever they hold; ``attained``: what they send if
    all hold one value; ``two``: p and q of two symbols, where all data sets can be gone through;
    ``others``: of bits, for each of ``hidden``, what others send who hold any values.
    """

    local: float
    hidden: list[Classes]
    attained: list[Classes]
    two: tuple[float, float] | None = None
    others: list[Others] | None = None


def _first_report(protocol: Protocol) -> _Answers:
    encoding: Any = protocol.encoding
    first: Any = protocol.first_channel
    second: Any = protocol.second_channel
    p, q = first.p, first.q
    if second is not None:
        p, q = encoding.chain(first.p, first.q, second.p, second.q)
    p, q = float(p), float(q)
    answers: _Answers = SHUFFLED.required(encoding)(encoding, p, q)
    return answers


@for_encoding(SHUFFLED.name, Symbols, Hashed)
def _symbols(encoding: Symbols | Hashed, p: float, q: float) -> _Answers:
    return _of_symbols(p, q, encoding.symbols, encoding.bins)


@for_encoding(SHUFFLED.name, OneHot, SampledBuckets)
def _bits(encoding: OneHot | SampledBuckets, p: float, q: float) -> _Answers:
    if encoding.size == 1:
        return _of_symbols(p, q, 2, 2)
    return _of_bits(p, q, encoding.size, nowhere=encoding.size < encoding.bins)


def _later_report(protocol: Protocol) -> _Answers | None:
    """The fresh round alone, between two memos; None for bits, of which all may differ."""
    second: Any = protocol.second_channel
    if second is None or not second.q or protocol.g is None:
        return None
    return _of_symbols(float(second.p), float(second.q), protocol.g, protocol.g)


def _of_symbols(p: float, q: float, g: int, values: int) -> _Answers:
    """Answers: the symbol of one value, of the other, and a third; all else is like a fourth."""
    local = math.log(p / q)
    if g == 2:
        classes = Classes((p, q), (q, p), (p, q))
        return _Answers(local, [], [classes, classes.swapped], (p, q))
    user = (p, q, q, (g - 3) * q), (q, p, q, (g - 3) * q)
    columns = slice(0, 4 if g > 3 else 3)
    hidden, same, third = (
        Classes(*(part[columns] for part in (*user, others)))
        for others in ((q, q, q, (g - 3) * q), (p, q, q, (g - 3) * q), (q, q, p, (g - 3) * q))
    )
    return _Answers(local, [hidden], [third] if values > 2 else [same, same.swapped])


def _of_bits(p: float, q: float, bits: int, *, nowhere: bool) -> _Answers:
    """Answers: the bits of one value, of the other, and of a third; and all bits at once."""
    # Of all values the least likely to send an answer has a 0 for its own bit; if there is none, a
    # 1, or, ``nowhere``, no bit at all.
    likelier, rarer, named = p / q, (1 - p) / (1 - q), min(bits, 3)
    rows = [(*row, False) for row in itertools.product((True, False), repeat=named)]
    full = (True,) * (named + 1)
    rest = q ** (bits - named)
    chances = {row: math.prod(q if bit else 1 - q for bit in row[:named]) for row in rows}
    chances[full] = chances[rows[0]] * rest
    chances[rows[0]] *= 1 - rest
    chances = {row: chance for row, chance in chances.items() if chance > 1e-200}

    def holding(place: int) -> list[float]:
        return [chance * (likelier if row[place] else rarer) for row, chance in chances.items()]

    base = list(chances.values())
    last = 1.0 if nowhere else likelier
    hidden = [chance * (last if row == full else rarer) for row, chance in chances.items()]
    pairs = [(holding(0), holding(1))]
    if nowhere:
        pairs += [(holding(0), base), (base, holding(0))]
    values = [holding(place) for place in range(named)] + [base] * nowhere
    others = None
    if named == 3:
        marked = [values[:2], values[:1], values[:1]]
        others = [
            Others(Classes(*pair, values[2]), base, own)
            for pair, own in zip(pairs, marked, strict=False)
        ]
    return _Answers(
        math.log(likelier / rarer),
        [Classes(*pair, hidden) for pair in pairs],
        [Classes(*pair, value) for pair in pairs for value in values],
        others=others,
    )


def _divergences(
    answers: _Answers, n: int, keys: float
) -> tuple[list[Divergence], list[Divergence]]:
    """Of which the largest bounds all data sets, and of which each is attained by one."""
    most = [blanket.hidden(classes, n, keys) for classes in answers.hidden]
    if answers.others is not None:
        most = [
            composed(others, n, keys, other)
            for others, other in zip(answers.others, most, strict=True)
        ]
    if answers.two is not None:
        most.append(blanket.of_two_symbols(*answers.two, n, keys))
    return most, [blanket.attained(classes, n, keys) for classes in answers.attained]


def _amplified(answers: _Answers, n: int, keys: int, delta: float) -> Amplified:
    """Of one round; if hardly anybody shares a key, as if nobody did."""
    local, alone = answers.local, (n - 1) / keys
    if local > _HOPELESS:
        return Amplified(local, 0.0, local, None)
    most, some = _divergences(answers, *((n, keys) if alone > 1e-3 else (1, 1)))
    eps = min(local, blanket.meeting(most, local, delta, above=True))
    # With that chance, at least, nobody shares the key.
    nobody = 1.0 if alone > 1e-3 else 1 - alone
    lower = blanket.meeting(some, local, delta / nobody, above=False)
    closed = None
    if keys == 1 and n > 1 and local <= math.log(n / (16 * math.log(2 / delta))):
        b = math.exp(local)
        root = 8 * math.sqrt(b * math.log(4 / delta) / n)
        closed = math.log1p((b - 1) / (b + 1) * (root + 8 * b / n))
    return Amplified(eps, min(lower, eps), local, closed)
