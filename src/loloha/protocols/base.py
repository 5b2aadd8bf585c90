"""A protocol: frozen, public rules that device and server share, with every number derived once."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from loloha import checks, distribution
from loloha.channels import Pair
from loloha.encodings import Channel, Encoding
from loloha.errors import ParameterError
from loloha.protocols.parameter_check import PARAMETERS
from loloha.protocols.realised import Realised, as_asked
from loloha.protocols.rounds import Rounds
from loloha.report import Answer, Key
from loloha.rng import Rng

if TYPE_CHECKING:
    from loloha.client import Client
    from loloha.server.tally import Tally

SPEC_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Rules of one protocol for one domain and one privacy budget.

    A subclass is a row: its name and summary, its parameters as dataclass fields, how values are
    encoded, and the rounds that randomise; every step of the device, every number and every step
    of the server follows. Objects are immutable, hashable, picklable and compare by their
    parameters; their repr evaluates back.

    Parameters
    ----------
    k : int
        Domain size, 2..2^24; values are the integers 0..k-1.
    """

    k: int

    name: ClassVar[str]
    """Name in the registry."""
    summary: ClassVar[str]
    """One line for tables."""
    encoded: ClassVar[Callable[[Any], Encoding]]
    """From a protocol to how its values become answers, and answers counts."""
    rounds: ClassVar[Rounds]
    """Formulas and exact channels."""
    longitudinal: ClassVar[bool] = True
    """Whether answers are memoised, so that repeating a value does not spend for ever."""
    histogram: ClassVar[bool] = True
    """Whether it estimates a frequency for each value, or bucket, and competes for that."""
    later: ClassVar[Mapping[str, Any]] = {}
    """Parameters that a document need not have, with what their absence means."""
    hints: ClassVar[frozenset[str]] = frozenset()
    """Arguments that only help to choose the parameters left out: no part of a specification."""

    def __post_init__(self) -> None:
        self._settle()

    def _settle(self) -> None:
        """Check the parameters that `PARAMETERS` knows, and choose those left out."""
        own = {field.name for field in fields(self)}
        for name, settled in PARAMETERS.items():
            if name in own:
                self._set(name, settled(self, getattr(self, name)))

    def _set(self, field: str, value: Any) -> None:
        object.__setattr__(self, field, value)

    def best_g(self) -> int:
        """The g to take where it is left out."""
        raise ParameterError(f"g must be given for {self.name}, got None; choose a number")

    # -- the row

    @cached_property
    def encoding(self) -> Encoding:
        """How values become answers, and answers counts."""
        return type(self).encoded(self)

    @cached_property
    def first(self) -> Pair:
        """Formula of the first round."""
        return self.rounds.first(self)

    @cached_property
    def second(self) -> Pair | None:
        """Formula of the second round, None where there is none."""
        return self.rounds.second(self)

    @cached_property
    def first_channel(self) -> Channel:
        """Exact first round."""
        return self.rounds.first_channel(self)

    @cached_property
    def second_channel(self) -> Channel | None:
        """Exact second round, None where there is none."""
        return self.rounds.second_channel(self)

    @property
    def asked_first(self) -> float:
        """Bound asked for on the loss of the first report."""
        return self._asked("eps_1", "eps", "eps_inf")

    @property
    def asked_memo(self) -> float:
        """Bound asked for on all reports of one value (one-round protocols: on one report)."""
        return self._asked("eps_inf", "eps")

    def _asked(self, *names: str) -> float:
        eps: float = next(getattr(self, name) for name in names if hasattr(self, name))
        return eps

    # -- numbers

    @property
    def p1(self) -> float:
        """Pr[the memoised answer is the truth]; for bits, Pr[1 | set]."""
        return self.first.p

    @property
    def q1(self) -> float:
        """Pr[the memoised answer is one given other symbol]; for bits, Pr[1 | unset]."""
        return self.first.q

    @property
    def p2(self) -> float | None:
        """As `p1`, for the fresh round; None where there is none."""
        return self.second.p if self.second else None

    @property
    def q2(self) -> float | None:
        """As `q1`, for the fresh round; None where there is none."""
        return self.second.q if self.second else None

    @cached_property
    def p_star(self) -> float:
        """Pr[report supports v | the user holds v]."""
        return float(self.encoding.supporting(*self.chained(self.first, self.second))[0])

    @cached_property
    def q_star(self) -> float:
        """Pr[report supports v | the user holds another value]."""
        return float(self.encoding.supporting(*self.chained(self.first, self.second))[1])

    @cached_property
    def contrast(self) -> float:
        """p_star - q_star, as the product of the rounds' contrasts: no cancellation."""
        rounds = (self.first.p - self.first.q) * (
            self.second.p - self.second.q if self.second else 1
        )
        return rounds * float(1 - self.encoding.collision)

    def chained(self, first: Any, second: Any) -> tuple[Any, Any]:
        """p and q of both rounds, before any hashing: of formulas, or of what devices draw with."""
        if second is None:
            return first.p, first.q
        return self.encoding.chain(first.p, first.q, second.p, second.q)

    @property
    def g(self) -> int | None:
        """Number of symbols that are randomised over; None for protocols that send bits."""
        return self.encoding.symbols

    @property
    def bins(self) -> int:
        """How many frequencies are estimated: k, or the number of buckets."""
        return self.encoding.bins

    @property
    def joint(self) -> bool:
        """Whether the answers to all memo symbols are drawn together, at enrolment."""
        return self.longitudinal and self.first_channel.joint

    @property
    def cap(self) -> float:
        """Most that a user can ever spend; ``inf`` for one-round ones."""
        return self.spent(self.encoding.memo_cells) if self.longitudinal else math.inf

    def spent(self, answers: int) -> float:
        """Budget that so many memoised answers spend; for one-round protocols, so many reports."""
        return answers * self.asked_memo

    @cached_property
    def realised(self) -> Realised:
        """What the device does, in exact arithmetic; losses never exceed those asked for."""
        encoding, first, second = self.encoding, self.first_channel, self.second_channel
        p, q = self.chained(first, second)
        p_star, q_star = encoding.supporting(p, q)
        return Realised(
            p1=first.p,
            q1=first.q,
            p2=second.p if second else None,
            q2=second.q if second else None,
            p_star=p_star,
            q_star=q_star,
            # The exact losses are within the bounds; their logarithms, rounded, could pass them.
            eps_first=min(distribution.log_of(encoding.likelihood_ratio(p, q)), self.asked_first),
            eps_memo=min(
                distribution.log_of(encoding.likelihood_ratio(first.p, first.q)), self.asked_memo
            ),
        )

    @property
    def numbers(self) -> dict[str, float | None]:
        """g and what devices really draw with and lose, to be published with every estimate."""
        exact = self.realised
        losses = {
            "eps_first": as_asked(exact.eps_first, self.asked_first),
            "eps_memo": as_asked(exact.eps_memo, self.asked_memo),
        }
        return {"g": self.g, **exact.to_dict(), **losses}

    # -- the device's steps

    def check_value(self, value: Any) -> int:
        """``value`` as an int in 0..k-1.

        Raises
        ------
        DomainError
            For a value outside the domain or of another type; the value is never shown.
        """
        return checks.value(value, self.k)

    def enroll(self, rng: Rng) -> Key:
        """Draw what a user keeps for ever."""
        return self.encoding.draw_key(rng)

    def memo_index(self, key: Key, v: int) -> int:
        """Memo symbol x of the value ``v``."""
        return self.encoding.memo_index(key, v)

    def remember(self, rng: Rng) -> tuple[Answer, ...] | None:
        """Draw the answers to all memo symbols at enrolment; None where each waits for its use."""
        channel: Any = self.first_channel
        return channel.table(rng) if channel.joint else None

    def permanent(self, rng: Rng, x: int) -> Answer:
        """Permanent randomised response x' to the memo symbol ``x``, to be memoised."""
        return self.encoding.randomise(rng, x, self.first_channel)

    def instant(self, rng: Rng, answer: Answer) -> Answer:
        """Report y for this round, drawn afresh from the permanent answer."""
        second = self.second_channel
        return answer if second is None else self.encoding.rerandomise(rng, answer, second)

    # -- factory methods of the objects that hold state

    def client(
        self, *, key: Key = None, limit: float | None = None, rng: Rng | None = None
    ) -> Client:
        """A new user's `Client`; see there for the parameters."""
        from loloha.client import Client

        return Client(self, key=key, limit=limit, rng=rng)

    def tally(self) -> Tally:
        """The empty `Tally` of one round."""
        from loloha.server.tally import Tally

        return Tally(self)

    # -- specification

    def get_params(self) -> dict[str, Any]:
        """The constructor's arguments, with defaults resolved."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}

    def to_dict(self) -> dict[str, Any]:
        """Full specification as plain JSON data: type, version and every parameter."""
        params = self.get_params()
        absent = [name for name, value in self.later.items() if params[name] == value]
        given = {name: value for name, value in params.items() if name not in absent}
        return {"type": self.name, "version": SPEC_VERSION, **given}

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """The protocol with exactly these parameters.

        Raises
        ------
        ParameterError
            For a missing or an unknown parameter.
        """
        known = cls.hints.union(field.name for field in fields(cls) if field.init)
        required = {
            field.name
            for field in fields(cls)
            if field.init and field.default is field.default_factory is MISSING
        }
        faults = {"unknown": params.keys() - known, "missing": required - params.keys()}
        wrong = [f"{kind} {', '.join(sorted(map(str, of)))}" for kind, of in faults.items() if of]
        if wrong:
            raise ParameterError(
                f"parameters of {cls.name} must be among {sorted(known)}, got "
                f"{' and '.join(wrong)}; correct them"
            )
        return cls(**params)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical specification, hexadecimal."""
        canonical = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self.get_params()), ()


def speakable(protocol: Any) -> Protocol:
    """``protocol``, if it is one that devices and servers speak."""
    if not isinstance(protocol, Protocol):
        raise ParameterError(
            f"protocol must be a loloha.Protocol, got {type(protocol).__name__}; make one by its "
            "class; protocols for studies have no campaign, messages or engines: use their own "
            "client() and tally()"
        )
    return protocol
