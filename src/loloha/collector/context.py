"""What the routes share: store, committer, settings, clock, and campaigns read before."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from loloha.collector.body import Bodies
from loloha.collector.commit import Committer
from loloha.collector.desk import Desk
from loloha.collector.metric import Metrics
from loloha.collector.problem import Problem
from loloha.collector.process import Parts
from loloha.collector.rate import RateLimit, group_of
from loloha.collector.secret import bearer, hashed, is_one_of
from loloha.collector.settings import Settings
from loloha.collector.share import Shares
from loloha.collector.store import Store
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.timekeeper import Timekeeper
from loloha.collector.upkeep import Upkeep, UpkeepThread
from loloha.collector.workers import Workers, WorkersApart
from loloha.errors import StoreError

if TYPE_CHECKING:
    from starlette.requests import Request

Result = TypeVar("Result")

_log = logging.getLogger(__name__)
# Threads, and pieces of work that may run and wait. Readers are apart from the committer, which has
# a thread of its own, and there are fewer of them than connections to the store.
_WORKERS = {"reading": (3, 300), "checking": (1, 100)}
# Processes: whatever they do, answers are given and reports committed meanwhile.
_WORKERS_APART = {"computing": (1, 8), "decoding": (1, 64)}
RECENTLY = 60
"""Seconds: a running collector notes the time in its store twice as often."""
NUMBERS_A_REQUEST = 1 << 18
"""Numbers of an answer that cost as much as one more request."""

_CHALLENGE = {"WWW-Authenticate": "Bearer"}


class _Opened(NamedTuple):
    store: Store
    committer: Committer
    timekeeper: Timekeeper
    log: UpkeepThread | None


class Context:
    """One running collector.

    Parameters
    ----------
    settings : Settings
    clock : callable
        Unix seconds.
    metrics : Metrics
    steady : callable
        Seconds that no setting of the clock moves.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float],
        metrics: Metrics,
        steady: Callable[[], float],
    ) -> None:
        self._steady = steady
        self.settings = settings
        self.clock = clock
        self.metrics = metrics
        self.desk = Desk(lambda: self.store)
        self.rate = RateLimit(settings.rate_limit)
        self._workers = {name: Workers(name, *size) for name, size in _WORKERS.items()}
        self._workers |= {
            name: WorkersApart(name, *size, settings.store) for name, size in _WORKERS_APART.items()
        }
        self.bodies = Bodies(settings.largest_held)
        self.answers = Shares(
            settings.largest_held, "answers must be read by who asked, too many wait; come back"
        )
        self._opened: _Opened | None = None

    @property
    def store(self) -> Store:
        """The open store."""
        return self._must_be_open().store

    @property
    def committer(self) -> Committer:
        """The thread that writes."""
        return self._must_be_open().committer

    @property
    def timekeeper(self) -> Timekeeper:
        """Tells the time by which rounds are closed."""
        return self._must_be_open().timekeeper

    def _must_be_open(self) -> _Opened:
        if self._opened is None:
            raise StoreError("store must be open, the service is stopped; start it")
        return self._opened

    def open(self) -> None:
        """Open the store, check everything, then take it over and begin to write."""
        kept = self._kept_reports()
        store = Store(self.settings.store, keeps=kept.pack if kept else None, take_over=False)
        try:
            seen = store.seen()
            timekeeper = Timekeeper(
                self.clock, self._steady, seen=seen, accepted=self.settings.accept_clock
            )
            committer = Committer(
                store,
                clock=timekeeper.now,
                metrics=self.metrics,
                largest_queue=self.settings.largest_queue,
                tidy=lambda: self._tidy(store, timekeeper.now()),
            )
            log = None
            if kept is not None:
                upkeep = Upkeep(
                    lambda: store.take_kept(kept.deliver), "reports are logged", self.metrics
                )
                log = UpkeepThread(upkeep)
            store.take_over()
            self._warn_of_another(seen)
            self._drop_kept(store, kept)
        except BaseException:
            # Nothing was counted here yet: whoever wrote before may go on.
            with suppress(StoreError):
                store.give_back()
            store.close()
            raise
        self._opened = _Opened(store, committer, timekeeper, log)
        committer.start()
        if log is not None:
            log.start()

    def _warn_of_another(self, seen: int) -> None:
        """Tell of a collector that used the store a moment ago: it may run still."""
        ago = int(self.clock()) - seen
        if 0 <= ago <= RECENTLY:
            _log.warning(
                "took the store over from a collector that used it %d s ago: if that one still "
                "runs, it counts nothing any more; stop one of the two",
                ago,
            )

    @staticmethod
    def _drop_kept(store: Store, kept: Any) -> None:
        if kept is None and (dropped := store.drop_kept()):
            _log.warning(
                "reports of %d commits waited for a log that is no longer kept: deleted", dropped
            )

    def close(self) -> None:
        """Write what waits, then close the store."""
        # The first: who closes the store last tidies its files.
        for workers in self._workers.values():
            workers.close()
        if self._opened is not None:
            self._opened.committer.stop()
            if self._opened.log is not None:
                self._opened.log.stop()
            # Where it fails, or the clock is not believed, the next one is warned of us, in vain.
            with suppress(StoreError):
                self._opened.store.leave(self._opened.timekeeper.now() - RECENTLY - 1)
            self._opened.store.close()
        self._opened = None

    @staticmethod
    def _tidy(store: Store, now: float) -> bool:
        """Close rounds on time; whether more are due."""
        store.see(now)
        return store.close_rounds(now)

    def _kept_reports(self) -> Any:
        if self.settings.keep_reports is None:
            return None
        from loloha.collector.kept_reports import KeptReports

        kept = KeptReports(self.settings.keep_reports)
        kept.prepare()
        return kept

    async def read(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Read a little from the store."""
        return await self._workers["reading"].run(work, *arguments)

    async def decode(
        self, request: Request, work: Callable[..., Result], *arguments: Any
    ) -> Result:
        """Unpack and decode a large upload: a function of a module, which gets a desk first."""
        address = group_of(request.scope)
        return await self._workers["decoding"].run(work, *arguments, address=address)

    async def check(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Look whether the store answers: not behind anything else."""
        return await self._workers["checking"].run(work, *arguments)

    async def compute(
        self, request: Request, numbers: int, work: Callable[..., Parts], *arguments: Any
    ) -> tuple[Any, list[bytes]]:
        """Compute an answer from so many numbers: charged for, and apart where there are many.

        Parameters
        ----------
        work : callable
            A function of a module, which gets a desk before its arguments.

        Returns
        -------
        told, parts
            As the function gave them.
        """
        self.rate.charge(request.scope, numbers / NUMBERS_A_REQUEST)
        if numbers <= NUMBERS_A_REQUEST:
            return await self.read(_whole, work, self.desk, *arguments)
        address = group_of(request.scope)
        told, parts = await self._workers["computing"].run(work, *arguments, address=address)
        return told, list(parts)

    async def known(self, fingerprint: str) -> StoredCampaign:
        """The campaign of a fingerprint.

        Raises
        ------
        Problem
            404 if there is none.
        """
        found = self.desk.remembered(fingerprint)
        return found if found is not None else await self.read(self.desk.known, fingerprint)

    async def require_admin(self, request: Request) -> None:
        """Refuse a request without an admin key.

        Raises
        ------
        Problem
            401 without a key, 403 with a wrong one.
        """
        hashes = await self.read(self.store.admin_keys)
        if self.settings.admin_key is not None:
            hashes.append(hashed(self.settings.admin_key.get_secret_value()))
        self._require(request, hashes, "an admin key")

    def require_token(self, request: Request, stored: StoredCampaign) -> None:
        """Refuse a submission without the campaign's token, where it has one; as above."""
        if stored.token is not None:
            self._require(request, [stored.token], "the campaign's submit token")

    @staticmethod
    def _require(request: Request, hashes: list[bytes], what: str) -> None:
        given = bearer(request.headers.get("authorization"))
        if is_one_of(given, hashes):
            return
        detail = f"authorization must be 'Bearer' and {what}; ask whoever runs the collector"
        if given is None:
            raise Problem(401, detail, kind="unauthorized", headers=_CHALLENGE)
        raise Problem(403, detail, kind="forbidden")


def _whole(work: Callable[..., Parts], *arguments: Any) -> tuple[Any, list[bytes]]:
    told, parts = work(*arguments)
    return told, list(parts)
