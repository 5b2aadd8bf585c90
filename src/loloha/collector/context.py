"""What the routes share: store, committer, settings, clock, and campaigns read before."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from loloha.collector.alarm_watch import AlarmWatch
from loloha.collector.body import Bodies
from loloha.collector.commit import Committer
from loloha.collector.deadline import Deadlines
from loloha.collector.desk import Desk, unknown_campaign
from loloha.collector.life import State
from loloha.collector.metric import Metrics
from loloha.collector.prepared import Once, Prepared
from loloha.collector.problem import Problem, ended
from loloha.collector.process import Parts, Process
from loloha.collector.rate import RateLimit, group_of
from loloha.collector.secret import bearer, hashed, is_one_of
from loloha.collector.settings import Settings
from loloha.collector.share import Shares
from loloha.collector.store import Store
from loloha.collector.store.kept_queue import KeptQueue
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.timekeeper import MOST_JUMP, Timekeeper
from loloha.collector.upkeep import Upkeep
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
_WORKERS_APART = {"computing": (1, 64), "decoding": (1, 64)}
NUMBERS_A_REQUEST = 1 << 12
"""Numbers of an answer that cost as much as one more request."""
FEW_NUMBERS = 1 << 13
"""So many are computed in this process: another one is asked in about as long."""
SECONDS_TO_LOOK_AGAIN = 1.0
"""What is not there is looked for in the store once in so long, whoever asks for it."""
SECONDS_TO_DROP = 3600.0
"""Sums that are no longer kept go once in so long, and not before so long after a start."""
MOST_PREPARED = 32 << 20
"""Bytes of answers that are kept for whoever asks next."""

_CHALLENGE = {"WWW-Authenticate": "Bearer"}


class _Opened(NamedTuple):
    store: Store
    committer: Committer
    timekeeper: Timekeeper
    log: Upkeep | None
    watch: Upkeep | None


class Context:
    """One running collector."""

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
        self.deadlines = Deadlines()
        self.bodies = Bodies(settings.largest_held, self.deadlines)
        self.answers = Shares(
            settings.largest_held, "answers must be read by who asked, too many wait; come back"
        )
        self.once = Once()
        self.prepared = Prepared(MOST_PREPARED)
        self._fingerprints: set[str] = set()
        self._looks_again = -math.inf
        self._watch: AlarmWatch | None = None
        self._opened: _Opened | None = None
        self._dropped = 0.0
        # Of the campaigns that are not open: only this process changes them.
        self.states: dict[str, State] = {}
        self._changing = threading.Lock()

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
        """Open the store, check everything, then take it over and begin to write, once."""
        if self._opened is not None:
            return
        kept = self._kept_reports()
        if kept is not None:
            kept.must_be_ours()
        store = Store(
            self.settings.store,
            keeps=kept.pack if kept else None,
            take_over=False,
            accept_losses=self.settings.accept_losses,
        )
        try:
            if kept is not None:
                kept.prepare()
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
                log = Upkeep(
                    lambda: KeptQueue(store).take(kept.deliver), "reports are logged", self.metrics
                )
            store.take_over()
            # Nobody else changes them any more.
            self.states = store.states()
            self._warn_of_another(store, seen)
            if self.settings.accept_clock:
                seen = min(seen, int(timekeeper.now()))
                store.see(seen, even_earlier=True)
            self._drop_kept(store, kept)
        except BaseException:
            # Nothing was counted here yet: whoever wrote before may go on.
            with suppress(StoreError):
                store.give_back()
            store.close()
            raise
        watch = None
        if self.settings.alarms:
            self._watch = AlarmWatch(
                self.settings,
                store,
                Process(self.settings.store),
                timekeeper.now,
                self.metrics,
            )
            watch = Upkeep(self._watch.run, "rounds are tried for alarms", self.metrics)
        self._opened = _Opened(store, committer, timekeeper, log, watch)
        committer.start()
        for upkeep in (log, watch):
            if upkeep is not None:
                upkeep.start()

    def must_log(self) -> None:
        """Refuse while kept reports cannot be written to their log."""
        log = self._must_be_open().log
        if log is not None and log.cause is not None:
            raise StoreError(f"log of reports must take what waits, it does not: {log.cause}")

    def _warn_of_another(self, store: Store, seen: int) -> None:
        """Tell of a collector that used the store a moment ago and may run still, or long ago."""
        ago = int(self.clock()) - seen
        if seen and ago > MOST_JUMP:
            _log.warning(
                "the store was used %.1f h ago for the last time, by the clock: rounds that have "
                "ended since are closed for good; if the clock is ahead, stop and set it right",
                ago / 3600,
            )
        if (moment := store.used(self.clock())) is not None:
            _log.warning(
                "took the store over from a collector that used it %d s ago: if that one still "
                "runs, it counts nothing any more; stop one of the two",
                moment,
            )

    @staticmethod
    def _drop_kept(store: Store, kept: Any) -> None:
        if kept is None and (dropped := KeptQueue(store).drop()):
            _log.warning(
                "reports of %d commits waited for a log that is no longer kept: deleted", dropped
            )

    def close(self) -> None:
        """Write what waits, then close the store."""
        # The first: who closes the store last tidies its files.
        for workers in self._workers.values():
            workers.close()
        if self._watch is not None:
            self._watch.close()
        if self._opened is not None:
            self._opened.committer.stop()
            for upkeep in (self._opened.log, self._opened.watch):
                if upkeep is not None:
                    upkeep.stop()
            # Where it fails the next one is warned of us, in vain.
            with suppress(StoreError):
                self._opened.store.leave()
            self._opened.store.close()
        self._opened = None

    def _tidy(self, store: Store, now: float) -> bool:
        """See that the store can be written, and close rounds on time; whether more are due."""
        store.see(now)
        store.probe()
        # A clock that was wrong at the start may be set right before anything is gone.
        self._dropped = min(now, self._dropped or now)
        if now - self._dropped >= SECONDS_TO_DROP:
            store.drop_old_sums(now)
            self._dropped = now
        return store.close_rounds(now)

    def _kept_reports(self) -> Any:
        if self.settings.keep_reports is None:
            return None
        from loloha.collector.kept_reports import KeptReports

        return KeptReports(self.settings.keep_reports)

    async def read(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Read a little from the store."""
        return await self._workers["reading"].run(work, *arguments)

    async def decode(self, address: str, work: Callable[..., Result], *arguments: Any) -> Result:
        """Unpack and decode a large upload: a function of a module, which gets a desk first."""
        return await self._workers["decoding"].run(work, *arguments, address=address)

    async def check(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Look whether the store answers: not behind anything else."""
        return await self._workers["checking"].run(work, *arguments)

    async def compute(
        self, request: Request, numbers: int, work: Callable[..., Parts], *arguments: Any
    ) -> tuple[Any, list[bytes]]:
        """Compute an answer from so many numbers: charged for, and apart where there are many."""
        self.rate.charge(request.scope, numbers / NUMBERS_A_REQUEST)
        if numbers <= FEW_NUMBERS:
            return await self.read(_whole, work, self.desk, *arguments)
        return await self.compute_apart(request, work, *arguments)

    async def compute_apart(
        self, request: Request, work: Callable[..., Parts], *arguments: Any
    ) -> tuple[Any, list[bytes]]:
        """The same, in another process whatever it takes; what it costs is charged elsewhere."""
        address = group_of(request.scope)
        head, parts = await self._workers["computing"].run(work, *arguments, address=address)
        return head, list(parts)

    async def known(self, fingerprint: str) -> StoredCampaign:
        """The campaign of a fingerprint."""
        stored = self.desk.remembered(fingerprint)
        if stored is not None:
            return stored
        if not await self._exists(fingerprint):
            raise unknown_campaign()
        return await self.once.of(
            ("campaign", fingerprint), lambda: self.read(self.desk.known, fingerprint)
        )

    async def _exists(self, fingerprint: str) -> bool:
        """Whether the store has it, from memory: strangers ask for what is not there at no cost."""
        loop = asyncio.get_running_loop()
        if fingerprint not in self._fingerprints and loop.time() >= self._looks_again:
            every = await self.once.of("fingerprints", lambda: self.read(self._every_fingerprint))
            self._fingerprints |= every
            self._looks_again = loop.time() + SECONDS_TO_LOOK_AGAIN
        return fingerprint in self._fingerprints

    def _every_fingerprint(self) -> set[str]:
        return set(self.store.fingerprints())

    async def set_state(self, stored: StoredCampaign, state: State) -> None:
        """Change the state of a campaign, durably.

        Raises
        ------
        CampaignError
            If it cannot follow the one it is in.
        """

        def change() -> None:
            # Together, even where nobody waits for it any more, and one after the other: what is
            # remembered is what was committed last.
            with self._changing:
                try:
                    self.store.set_state(stored, state)
                except StoreError:
                    # The commit may have taken place or not: only the database knows.
                    with suppress(StoreError):
                        self.states = self.store.states()
                    raise
                self.states[stored.campaign.fingerprint] = state

        await self.read(change)

    def state_of(self, stored: StoredCampaign) -> State:
        """In which state a campaign is."""
        return self.states.get(stored.campaign.fingerprint, "open")

    async def require_open(self, stored: StoredCampaign, whose: dict[str, str]) -> None:
        """Refuse reports of a campaign that takes none now, with why: devices stop, and drop them.

        The store refuses them in any case. Only the collector that writes it knows the state:
        where another has taken it over, devices are asked to come back.
        """
        state = self.state_of(stored)
        if state != "open":
            await self.once.of("newest", lambda: self.read(self.store.must_be_newest))
            raise ended(state, whose)

    def add_known(self, fingerprint: str) -> None:
        """There is a campaign more."""
        self._fingerprints.add(fingerprint)

    async def require_admin(self, authorization: str) -> None:
        """Refuse a request without an admin key in its header."""
        hashes = await self.read(self.store.admin_keys)
        if self.settings.admin_key is not None:
            hashes.append(hashed(self.settings.admin_key.get_secret_value()))
        self._require(authorization, hashes, "an admin key")

    def require_token(self, authorization: str, stored: StoredCampaign) -> None:
        """Refuse a submission without the campaign's token, where it has one; as above."""
        if stored.token is not None:
            self._require(authorization, [stored.token], "the campaign's submit token")

    @staticmethod
    def _require(authorization: str, hashes: list[bytes], what: str) -> None:
        given = bearer(authorization)
        if is_one_of(given, hashes):
            return
        detail = f"authorization must be 'Bearer' and {what}; ask whoever runs the collector"
        if given is None:
            raise Problem(401, detail, kind="unauthorized", headers=_CHALLENGE)
        raise Problem(403, detail, kind="forbidden")


def _whole(work: Callable[..., Parts], *arguments: Any) -> tuple[Any, list[bytes]]:
    head, parts = work(*arguments)
    return head, list(parts)
