"""The context that routes share: store, committer, settings, clock, cached campaigns."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import UNSET, UnsetType

from loloha.collector.body import Bodies
from loloha.collector.life import Life
from loloha.collector.metric import Metrics
from loloha.collector.open_appender import OpenAppender
from loloha.collector.open_collector import OpenCollector
from loloha.collector.prepared import Look, Once, Prepared
from loloha.collector.problem import Problem, ended
from loloha.collector.process import Parts
from loloha.collector.quota import Quota
from loloha.collector.rate import RateLimit, group_of
from loloha.collector.read_cache import ReadCache, unknown_campaign
from loloha.collector.secret import bearer, hashed, is_one_of
from loloha.collector.settings import Settings
from loloha.collector.store import Store
from loloha.collector.store.admin_key import AdminKey, AdminKeys
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.timekeeper import Timekeeper
from loloha.collector.workers import WorkerApart, Workers
from loloha.errors import StoreError

if TYPE_CHECKING:
    from starlette.requests import Request

Result = TypeVar("Result")

# Threads, and pieces of work that may run and wait. The committer has a thread of its own; there
# are fewer readers than connections to the store.
_WORKERS = {"reading": (3, 300), "checking": (1, 100)}
# A process each, so that heavy work delays neither answers nor commits.
_WORKERS_APART = {"computing": 64, "decoding": 64}
NUMBERS_A_REQUEST = 1 << 12
"""Numbers of an answer that count as one more request."""
FEW_NUMBERS = 1 << 13
"""Numbers computed in this process: calling another one takes about as long."""
SECONDS_TO_LOOK_AGAIN = 1.0
"""Seconds between looks in the store for unknown campaigns."""
SECONDS_AMONG_OTHERS = 0.1
"""The same with several collectors, which create campaigns: requests wait for the next look."""
MOST_PREPARED = 32 << 20
"""Bytes of cached answers."""

LOGINS = "10/minute"
"""Attempts of one address to log in."""
_CHALLENGE = {"WWW-Authenticate": "Bearer"}


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
        self.cache = ReadCache(lambda: self.store)
        self.rate = RateLimit(settings.rate_limit)
        self.logins = RateLimit(LOGINS)
        self._workers = {name: Workers(name, *size) for name, size in _WORKERS.items()}
        self._workers |= {
            name: WorkerApart(name, most, settings.store) for name, most in _WORKERS_APART.items()
        }
        self.bodies = Bodies(settings.largest_held)
        self.answers = Quota(settings.largest_held, "too many answers wait to be read; come back")
        self.once = Once()
        self.prepared = Prepared(MOST_PREPARED)
        self._fingerprints: set[str] = set()
        self._campaigns = Look(lambda: self.read(self._read_fingerprints))
        self._lives = Look(lambda: self.read(self._read_lives))
        self._open: OpenCollector | OpenAppender | None = None

    @property
    def store(self) -> Store:
        """The open store."""
        return self.running.store

    @property
    def timekeeper(self) -> Timekeeper:
        """The clock by which rounds close."""
        return self.running.timekeeper

    def require_sums(self) -> None:
        """Refuse requests that a collector without sums cannot answer."""
        if self.settings.append_only is not None:
            raise Problem(
                501,
                "collector must keep sums for this, it only appends reports to a log; ask the one "
                "with the dashboard",
                kind="append-only",
            )

    @property
    def running(self) -> OpenCollector | OpenAppender:
        """The open collector."""
        if self._open is None:
            raise StoreError("store must be open, the service is stopped; start it")
        return self._open

    def open(self) -> None:
        """Open the store, check everything, then take it over and begin to write, once."""
        if self._open is None:
            kind = OpenCollector if self.settings.append_only is None else OpenAppender
            self._open = kind(self.settings, self.clock, self.metrics, self._steady)

    def close(self) -> None:
        """Write what waits, then close the store."""
        # First, since the last one to close the store tidies its files.
        for workers in self._workers.values():
            workers.close()
        if self._open is not None:
            self._open.close()
        self._open = None

    async def read(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Read a little from the store."""
        return await self._workers["reading"].run(work, *arguments)

    async def decode(self, address: str, work: Callable[..., Result], *arguments: Any) -> Result:
        """Unpack and decode a large upload: a function of a module, which gets a cache first."""
        return await self._workers["decoding"].run(work, *arguments, address=address)

    async def check(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Look whether the store answers: not behind anything else."""
        return await self._workers["checking"].run(work, *arguments)

    async def compute(
        self, request: Request, numbers: int, work: Callable[..., Parts], *arguments: Any
    ) -> tuple[Any, list[bytes]]:
        """Compute an answer from so many numbers: rate-limited, and in another process if many."""
        self.rate.charge(request.scope, numbers / NUMBERS_A_REQUEST)
        if numbers <= FEW_NUMBERS:
            return await self.read(_whole, work, self.cache, *arguments)
        return await self.compute_apart(request, work, *arguments)

    async def compute_apart(
        self, request: Request, work: Callable[..., Parts], *arguments: Any
    ) -> tuple[Any, list[bytes]]:
        """The same, always in another process; the cost is charged elsewhere."""
        address = group_of(request.scope)
        head, parts = await self._workers["computing"].run(work, *arguments, address=address)
        return head, list(parts)

    async def known(self, fingerprint: str) -> StoredCampaign:
        """The campaign of a fingerprint."""
        stored = self.cache.campaigns.get(fingerprint)
        if stored is not None:
            return stored
        if not await self._exists(fingerprint):
            raise unknown_campaign()
        return await self.once.of(
            ("campaign", fingerprint), lambda: self.read(self.cache.known, fingerprint)
        )

    async def _exists(self, fingerprint: str) -> bool:
        """Whether the store has a fingerprint, from memory: unknown ones cost no read."""
        if fingerprint not in self._fingerprints:
            if self.store.is_shared:
                await self._campaigns.again(SECONDS_AMONG_OTHERS)
            elif self._campaigns.age > SECONDS_TO_LOOK_AGAIN:
                await self._campaigns.again()
        return fingerprint in self._fingerprints

    def _read_fingerprints(self) -> None:
        self._fingerprints |= set(self.store.fingerprints())

    def _read_lives(self) -> None:
        if self.settings.append_only is None:
            self.store.must_be_newest()
        if self.store.is_shared:
            self.store.read_lives()

    def life_of(self, stored: StoredCampaign, now: float | None = None) -> Life:
        """Where a campaign is in its life, by default at the time that the clock shows."""
        schedule = stored.campaign.schedule
        return self.store.life(stored).at(schedule, self.clock() if now is None else now)

    def look_over(self) -> None:
        """Have metrics of the campaigns that there are now."""
        self.running.look_over(self.clock())

    async def require_open(
        self, stored: StoredCampaign, reporter: str | UnsetType = UNSET, size: int = 0
    ) -> None:
        """Refuse reports of a paused or ended campaign: devices drop them and stop."""
        # The store refuses them in any case. Only a collector that writes to the store knows the
        # state: another may have resumed the campaign, and after a takeover devices are asked to
        # retry. Devices stop for ever, so a jumping clock must not cause it.
        believed = self.timekeeper.now() if stored.campaign.schedule.expires else None
        if self.life_of(stored, believed).state == "open":
            return
        await self._lives.again()
        state = self.life_of(stored, believed).state
        if state != "open":
            problem = ended(state, reporter)
            self.metrics.count_stopped(stored.campaign.fingerprint, problem.extra["campaign"], size)
            raise problem

    def add_known(self, fingerprint: str) -> None:
        """Note a new campaign."""
        self._fingerprints.add(fingerprint)

    async def admin_keys(self) -> list[AdminKey]:
        """The valid ones, that of the settings among them."""
        now, setting = self.clock(), self.settings.admin_key
        keys = await self.read(AdminKeys(self.store).all)
        if setting is not None:
            # The key of the settings counts as used now: its use is not stored.
            mine = hashed(setting.get_secret_value())
            keys.append(AdminKey(mine, "LOLOHA_ADMIN_KEY", None, int(now), None))
        return [key for key in keys if key.is_valid(now)]

    async def admin_key(self, secret: str | None) -> AdminKey | None:
        """The valid admin key that somebody gives, None where it is none."""
        keys = await self.admin_keys()
        if secret is None or not is_one_of(secret, [key.sha256 for key in keys]):
            return None
        key = next(key for key in keys if key.sha256 == hashed(secret))
        await self.note_use(key)
        return key

    async def note_use(self, key: AdminKey) -> None:
        """Store the use of a key; the request goes on if this fails."""
        with suppress(StoreError):
            await self.read(AdminKeys(self.store).note_use, key, self.clock())

    async def require_admin(self, authorization: str) -> None:
        """Refuse a request without an admin key in its header."""
        given = bearer(authorization)
        if await self.admin_key(given) is None:
            raise _refused(given, "an admin key")

    def require_token(self, authorization: str, stored: StoredCampaign) -> None:
        """Refuse a submission without the campaign's token, where it has one; as above."""
        if stored.token is None:
            return
        given = bearer(authorization)
        if not is_one_of(given, [stored.token]):
            raise _refused(given, "the campaign's submit token")


def _refused(given: str | None, what: str) -> Problem:
    detail = f"authorization must be 'Bearer' and {what}; ask its operator"
    if given is None:
        return Problem(401, detail, kind="unauthorized", headers=_CHALLENGE)
    return Problem(403, detail, kind="forbidden")


def _whole(work: Callable[..., Parts], *arguments: Any) -> tuple[Any, list[bytes]]:
    head, parts = work(*arguments)
    return head, list(parts)
