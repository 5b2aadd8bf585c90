"""What the routes share: store, committer, settings, clock, and campaigns read before."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from loloha.collector.commit import Committer
from loloha.collector.metric import Metrics
from loloha.collector.problem import Problem, unavailable
from loloha.collector.secret import bearer, hashed, is_one_of
from loloha.collector.settings import Settings
from loloha.collector.store import Store
from loloha.collector.stored_campaign import StoredCampaign
from loloha.errors import StoreError

if TYPE_CHECKING:
    from starlette.requests import Request

Result = TypeVar("Result")

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_CHALLENGE = {"WWW-Authenticate": "Bearer"}


class Context:
    """One running collector.

    Parameters
    ----------
    settings : Settings
    clock : callable
        Unix seconds.
    metrics : Metrics
    """

    def __init__(self, settings: Settings, clock: Callable[[], float], metrics: Metrics) -> None:
        self.settings = settings
        self.clock = clock
        self.metrics = metrics
        self._known: dict[str, StoredCampaign] = {}
        self._store: Store | None = None
        self._committer: Committer | None = None
        self._admin_hashes: list[bytes] = []

    @property
    def store(self) -> Store:
        """The open store."""
        if self._store is None:
            raise StoreError("store must be open, the service is stopped; start it")
        return self._store

    @property
    def committer(self) -> Committer:
        """The thread that writes."""
        if self._committer is None:
            raise StoreError("store must be open, the service is stopped; start it")
        return self._committer

    def open(self) -> None:
        """Open the store and begin to write."""
        keep = self._keep()
        self._store = Store(self.settings.store, keeps=keep.pack if keep else None)
        self._admin_hashes = self._store.admin_keys()
        if self.settings.admin_key is not None:
            self._admin_hashes.append(hashed(self.settings.admin_key.get_secret_value()))
        store = self._store
        self._committer = Committer(
            store,
            clock=self.clock,
            metrics=self.metrics,
            largest_queue=self.settings.largest_queue,
            tidy=(lambda: store.take_kept(keep.deliver)) if keep else None,
        )
        self._committer.start()

    def close(self) -> None:
        """Write what waits, then close the store."""
        if self._committer is not None:
            self._committer.stop()
        if self._store is not None:
            self._store.close()
        self._committer = self._store = None

    def _keep(self) -> Any:
        if self.settings.keep_reports is None:
            return None
        from loloha.collector.kept_reports import KeptReports

        keep = KeptReports(self.settings.keep_reports)
        keep.prepare()
        return keep

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Do in a thread what would hold up the event loop; failures of the store become 503."""
        try:
            return await asyncio.to_thread(work, *arguments)
        except StoreError as error:
            raise unavailable(str(error)) from None

    async def known(self, fingerprint: str) -> StoredCampaign:
        """The campaign of a fingerprint.

        Raises
        ------
        Problem
            404 if there is none.
        """
        stored = self._known.get(fingerprint)
        if stored is None:
            if _FINGERPRINT.fullmatch(fingerprint):
                stored = await self.run(self.store.campaign, fingerprint)
            if stored is None:
                raise Problem(
                    404,
                    "campaign must be one of this collector's; see /v1/campaigns",
                    kind="campaign",
                )
            stored = self._known.setdefault(fingerprint, stored)
        return stored

    def require_admin(self, request: Request) -> None:
        """Refuse a request without an admin key.

        Raises
        ------
        Problem
            401 without a key, 403 with a wrong one.
        """
        self._require(request, self._admin_hashes, "an admin key")

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
