"""One user's device: key, memo, what was sent for which round. Standard library only."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from typing import Any, NoReturn, Self

from loloha.errors import BudgetError, LolohaError, ParameterError, StateError
from loloha.rules import checks
from loloha.rules.protocols import Protocol, protocol_from_dict
from loloha.rules.report import LARGEST_ROUND, Answer, Key, Report
from loloha.rules.rng import Rng, SecureRng

STATE_TYPE, STATE_VERSION = "loloha-client", 1
KEPT_ROUNDS = 64


class Client:
    """The secret state of one user, and the only thing that ever sees the user's values.

    Parameters
    ----------
    protocol : Protocol
        The public rules.
    key : int or tuple of int, optional
        A key that the server assigned; by default drawn here. Only where answers are memoised.
    limit : float, optional
        Hard limit on `loss`: a report that would exceed it is refused with `BudgetError`.
    rng : Rng, optional
        Source of randomness, for simulations only; by default the operating system's.

    Raises
    ------
    ParameterError
        For a key that is not in the protocol's family, or a limit too small for a single report.

    Notes
    -----
    Not safe to share between threads without a lock. Cannot be pickled or copied: a second copy
    would draw its own answers and spend more than `loss` says.
    """

    __slots__ = (
        "_floor",
        "_key",
        "_memo",
        "_reports",
        "_rng",
        "_secret",
        "_sent",
        "_spent_before",
        "limit",
        "protocol",
    )

    def __init__(
        self,
        protocol: Protocol,
        *,
        key: Key = None,
        limit: float | None = None,
        rng: Rng | None = None,
    ) -> None:
        self.protocol = protocol
        self.limit = None if limit is None else _check_limit(limit, protocol)
        self._rng: Rng = SecureRng() if rng is None else rng
        self._spent_before = 0.0
        self._begin(_check_key(key, protocol))

    def _begin(self, key: Key) -> None:
        """Start with an empty memo and, unless one is given, a new key."""
        if key is None and self.protocol.longitudinal:
            key = self.protocol.enroll(self._rng)
        self._key = key
        self._memo: dict[int, Answer] = {}
        self._reports = 0
        self._sent: dict[int, Report] = {}
        self._floor = -1
        self._secret = secrets.token_bytes(32)

    # -- reporting

    def report(self, value: int, *, round: int) -> Report:
        """The sanitised report of ``value`` for one round.

        Parameters
        ----------
        value : int
            The user's value, 0..k-1; Python and NumPy integers are accepted.
        round : int
            Number of the round, >= 0. A round is answered once: asking again gives the same
            report, whatever the value. The newest 64 answered rounds are remembered.

        Returns
        -------
        Report

        Raises
        ------
        DomainError
            If the value is outside the domain or of another type.
        BudgetError
            If a new answer would take `loss` above `limit`.
        StateError
            If the round is older than the rounds remembered: whether it was answered is unknown,
            and a second answer would be one report more.
        """
        value = self.protocol.check_value(value)
        round = checks.integer("round", round, 0, LARGEST_ROUND, "count rounds from 0")
        if round in self._sent:
            return self._sent[round]
        if round <= self._floor:
            raise StateError(
                f"round must be above {self._floor}, got {round!r}; reports of older rounds are "
                "forgotten, and answering one again would spend more"
            )
        report = self._memoised(value) if self.protocol.longitudinal else self._fresh(value)
        self._remember(round, report)
        return report

    def _memoised(self, value: int) -> Report:
        protocol, rng = self.protocol, self._rng
        x = protocol.memo_index(self._key, value)
        kept = self._memo.get(x)
        if kept is None:
            self._afford()
            kept = protocol.permanent(rng, x)
        y = protocol.instant(rng, kept)
        self._memo[x] = kept
        return Report(self._key, y)

    def _fresh(self, value: int) -> Report:
        protocol, rng = self.protocol, self._rng
        self._afford()
        key = protocol.enroll(rng)
        return Report(key, protocol.permanent(rng, protocol.memo_index(key, value)))

    def _afford(self) -> None:
        """Refuse a new answer that would take the loss above the limit."""
        if self.limit is None:
            return
        after = self.loss + self.protocol.asked_memo
        # The tolerance only absorbs rounding: 3 x 0.1 is within a limit of 0.3.
        if after > self.limit * (1 + 1e-12):
            raise BudgetError(
                f"loss must stay within limit = {self.limit!r}, one more answer would exceed it; "
                "send nothing, or ask the user to accept a higher limit"
            )

    def _remember(self, round: int, report: Report) -> None:
        self._reports += 1
        self._sent[round] = report
        if len(self._sent) > KEPT_ROUNDS:
            oldest = min(self._sent)
            del self._sent[oldest]
            self._floor = max(self._floor, oldest)

    def reporter(self, round: int) -> str:
        """Pseudonym for one round, 32 hexadecimal digits: a retry is recognised by it.

        It is an HMAC of the round under a secret of this client, so two rounds cannot be joined
        through it.
        """
        round = checks.integer("round", round, 0, LARGEST_ROUND, "count rounds from 0")
        return hmac.new(self._secret, b"round %d" % round, hashlib.sha256).hexdigest()[:32]

    # -- what it costs

    @property
    def loss(self) -> float:
        """Budget spent so far: eps_inf for each memoised answer; one-round rules, eps a report."""
        units = len(self._memo) if self.protocol.longitudinal else self._reports
        return self._spent_before + units * self.protocol.asked_memo

    @property
    def cap(self) -> float:
        """Most that `loss` can become without another `reset`."""
        return self._spent_before + self.protocol.cap

    def reset(self) -> str:
        """Forget key, memo, secret and sent reports, and start as a new user.

        Never happens by itself. What was spent stays spent and stays in `loss`; whatever is
        reported from now on is spent on top of it. Queued reports should be deleted with it.

        Returns
        -------
        str
            The cost, in a sentence to show to whoever asked for it.
        """
        spent = self.loss
        self._spent_before = spent
        self._begin(None)
        return (
            f"Key, memo and sent reports are forgotten. The {spent:g} spent so far stays spent; "
            f"new reports can spend up to {self.protocol.cap:g} on top of it. The server keeps "
            "what it has already counted."
        )

    # -- persistence

    def set_limit(self, limit: float | None) -> None:
        """Replace the hard limit on `loss`, as the user asks; what is spent stays spent.

        Raises
        ------
        ParameterError
            If it is too small for a single report.
        """
        self.limit = None if limit is None else _check_limit(limit, self.protocol)

    def to_dict(self) -> dict[str, Any]:
        """The whole state, secrets included, as JSON data: keep it on the device only."""
        state = {
            "type": STATE_TYPE,
            "version": STATE_VERSION,
            "protocol": self.protocol.to_dict(),
            "key": list(self._key) if isinstance(self._key, tuple) else self._key,
            "memo": [[x, _plain(kept)] for x, kept in sorted(self._memo.items())],
            "sent": [
                [round, list(sent.key) if isinstance(sent.key, tuple) else sent.key, _plain(sent.y)]
                for round, sent in sorted(self._sent.items())
            ],
            "floor": self._floor,
            "reports": self._reports,
            "spent_before": self._spent_before,
            "limit": self.limit,
            "secret": self._secret.hex(),
        }
        return {**state, "checksum": _checksum(state)}

    @classmethod
    def from_dict(
        cls, state: Mapping[str, Any], *, protocol: Protocol | None = None, rng: Rng | None = None
    ) -> Self:
        """The client that `to_dict` described; it goes on exactly where that one was.

        Parameters
        ----------
        state : mapping
            What `to_dict` returned.
        protocol : Protocol, optional
            The rules that the state must be for; a state for others is refused.
        rng : Rng, optional
            As for `Client`.

        Raises
        ------
        StateError
            If the state is damaged, foreign, or of another version. Nothing of it is shown.
        """
        try:
            return cls._restore(state, protocol, rng)
        except StateError:
            raise
        except (LolohaError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            # The cause could quote the state, so it is cut off.
            raise StateError(
                "state must be what to_dict() gave; it is damaged, restore a backup"
            ) from None

    @classmethod
    def _restore(cls, state: Mapping[str, Any], protocol: Protocol | None, rng: Rng | None) -> Self:
        body = dict(state)
        if body.get("type") != STATE_TYPE or body.get("version") != STATE_VERSION:
            raise StateError(
                f"state must be of type {STATE_TYPE!r}, version {STATE_VERSION}; use the release "
                "of loloha that wrote it"
            )
        if not hmac.compare_digest(str(body.pop("checksum")), _checksum(body)):
            raise StateError("state must match its checksum; it is damaged, restore a backup")
        stored = protocol_from_dict(body["protocol"])
        if protocol is not None and protocol != stored:
            raise StateError(
                "state must be for the given protocol, it is for another one; "
                "a changed protocol needs a new client (see Client.reset)"
            )
        key = _key(body["key"])
        if stored.longitudinal and not stored.encoding.is_key(key):
            raise StateError("state must hold the key of its client; restore a backup")
        client = cls(stored, key=key, limit=body["limit"], rng=rng)
        client._memo = {int(x): _checked(stored, kept) for x, kept in body["memo"]}
        client._sent = {
            int(round): Report(_key(key), _checked(stored, y)) for round, key, y in body["sent"]
        }
        client._floor = int(body["floor"])
        client._reports = int(body["reports"])
        client._spent_before = float(body["spent_before"])
        client._secret = bytes.fromhex(body["secret"])
        client._must_be_possible()
        return client

    def _must_be_possible(self) -> None:
        """Refuse a state that no client can be in."""
        encoding = self.protocol.encoding
        possible = (
            all(0 <= x < encoding.memo_symbols for x in self._memo)
            and len(self._memo) <= encoding.memo_cells
            and all(round > self._floor for round in self._sent)
            and len(self._sent) <= min(KEPT_ROUNDS, self._reports)
            and all(encoding.is_key(sent.key) for sent in self._sent.values())
            and self._spent_before >= 0
            and len(self._secret) == 32
        )
        if not possible:
            raise StateError("state must be one that a client can be in; restore a backup")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file that only its owner can read; whole or not at all.

        Raises
        ------
        StateError
            If it cannot be written; a state that was there before is untouched.
        """
        import tempfile
        from pathlib import Path

        target = Path(path).absolute()
        try:
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=".loloha-")
            temporary = Path(name)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(self.to_dict(), file)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(target)
            except BaseException:
                temporary.unlink()
                raise
            _sync_folder(target.parent)
        except OSError as error:
            raise StateError(
                f"state must be writable at {str(path)!r}: {error.strerror}; nothing was changed"
            ) from error

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        protocol: Protocol | None = None,
        rng: Rng | None = None,
    ) -> Self:
        """Read what `save` wrote; see `from_dict`.

        Raises
        ------
        StateError
            If the file is missing, damaged, foreign, or of another version.
        """
        from pathlib import Path

        try:
            state = json.loads(Path(path).read_bytes())
        except OSError as error:
            raise StateError(
                f"state must be readable at {str(path)!r}: {error.strerror}; check the path"
            ) from error
        except (ValueError, RecursionError):
            raise StateError(
                f"state must be JSON at {str(path)!r}; it is damaged, restore a backup"
            ) from None
        return cls.from_dict(state, protocol=protocol, rng=rng)

    def __repr__(self) -> str:
        return f"Client({self.protocol!r}, state hidden)"

    def __reduce__(self) -> NoReturn:
        raise StateError("a client must not be pickled or copied; use save() and load()")


def _check_key(key: Key, protocol: Protocol) -> Key:
    if key is None:
        return None
    if not protocol.longitudinal or not protocol.encoding.is_key(key):
        raise ParameterError(
            f"key must be one of the family of {protocol.name}, got another (not shown); "
            "leave it out to draw one"
        )
    return key


def _check_limit(limit: float, protocol: Protocol) -> float:
    return checks.real(
        "limit",
        limit,
        protocol.asked_memo,
        float("inf"),
        "one answer already spends the lower bound",
    )


def _plain(answer: Answer) -> int | str:
    return answer.hex() if isinstance(answer, bytes) else answer


def _key(plain: Any) -> Key:
    return tuple(plain) if isinstance(plain, list) else plain


def _checked(protocol: Protocol, plain: Any) -> Answer:
    answer = bytes.fromhex(plain) if isinstance(plain, str) else plain
    if not protocol.encoding.is_answer(answer):
        raise StateError("state must hold answers of its protocol; it is damaged, restore a backup")
    return answer


def _checksum(state: Mapping[str, Any]) -> str:
    canonical = json.dumps(state, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _sync_folder(folder: os.PathLike[str]) -> None:
    """Make the rename durable where the platform lets a folder be synced."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
