"""What the service counts about itself; never a label for a value, a user or an address."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from loloha.collector.submission import DUPLICATE
from loloha.wire.refusal import REASONS

if TYPE_CHECKING:
    from loloha.collector.store.overview import Glance

MOST_CAMPAIGNS = 200
"""The newest campaigns have metrics of their own; all others together are `OTHERS`."""
OTHERS = "others"
OUTCOMES = ("accepted", "duplicate", *map(str, REASONS))
_STOPPED = ("paused", "ended")
"""Reports of a campaign that takes none are not looked at any further."""
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class Metrics:
    """The metrics of one application."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.registry = CollectorRegistry()
        self.reports = Counter(
            "loloha_reports", "Reports by what became of them", ["outcome"], registry=self.registry
        )
        self.requests = Counter(
            "loloha_requests", "Requests", ["route", "method", "status"], registry=self.registry
        )
        self.request_seconds = Histogram(
            "loloha_request_seconds",
            "Time to answer",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.commit_seconds = Histogram(
            "loloha_commit_seconds", "Time of a commit", buckets=_SECONDS, registry=self.registry
        )
        self.ready = Gauge(
            "loloha_ready",
            "1 if reports can be counted, as /readyz says, else 0",
            registry=self.registry,
        )
        self.waiting = Gauge(
            "loloha_waiting_reports", "Reports that wait for a commit", registry=self.registry
        )
        self.failures = Counter(
            "loloha_store_failures", "Commits that failed", registry=self.registry
        )
        self.alarms = Gauge(
            "loloha_alarms",
            "Values that alarmed in the newest closed round, over all rules of the campaign",
            ["campaign"],
            registry=self.registry,
        )
        self.alarms_waiting = Gauge(
            "loloha_waiting_alarms",
            "Alarms still to be sent to the webhook",
            registry=self.registry,
        )
        self.of_campaign = Counter(
            "loloha_campaign_reports",
            "Reports of a campaign by what became of them",
            ["campaign", "outcome"],
            registry=self.registry,
        )
        self.opt_outs = Counter(
            "loloha_campaign_opt_outs",
            "Users who want no part, as anybody can say: no bound on how many there are",
            ["campaign"],
            registry=self.registry,
        )
        self.newest = Gauge(
            "loloha_campaign_newest_report_timestamp_seconds",
            "When the newest report that was counted came, in whole minutes; 0 before the first",
            ["campaign"],
            registry=self.registry,
        )
        self.campaigns = Gauge(
            "loloha_campaign_info",
            "1 for each campaign, with its name and state",
            ["campaign", "name", "state"],
            registry=self.registry,
        )
        self._glances: dict[str, Glance] = {}
        self._showing = threading.Lock()
        for outcome in OUTCOMES:
            self.reports.labels(outcome)

    def count(self, fingerprint: str, codes: Mapping[int, int]) -> None:
        """Add what became of reports of a campaign: how often each code occurred."""
        for code, count in codes.items():
            self.reports.labels(_name(code)).inc(count)
            self._of(fingerprint, _name(code)).inc(count)

    def count_stopped(self, fingerprint: str, campaign: str, size: int) -> None:
        """Add reports of a campaign that is paused or has ended."""
        self._of(fingerprint, campaign).inc(size)

    def count_opt_out(self, fingerprint: str) -> None:
        """Add a user who wants no part."""
        self.opt_outs.labels(fingerprint if fingerprint in self._glances else OTHERS).inc()

    def _of(self, fingerprint: str, outcome: str) -> Counter:
        known = fingerprint in self._glances
        return self.of_campaign.labels(fingerprint if known else OTHERS, outcome)

    def show(self, glances: Iterable[Glance], *, counts: bool = True) -> None:
        """Have metrics of these campaigns, and no longer of those that are missing."""
        shown = {glance.fingerprint: glance for glance in glances}
        with self._showing:
            before, self._glances = self._glances, shown
            for sample in before.values():
                now = shown.get(sample.fingerprint)
                if now is None:
                    if counts:
                        self.newest.remove(sample.fingerprint)
                    self.opt_outs.remove(sample.fingerprint)
                    for outcome in OUTCOMES + _STOPPED:
                        self.of_campaign.remove(sample.fingerprint, outcome)
                if now is None or now.labels != sample.labels:
                    self.campaigns.remove(*sample.labels)
            for sample in shown.values():
                self.campaigns.labels(*sample.labels).set(1)
                if counts:
                    self.newest.labels(sample.fingerprint).set(sample.newest_report)
                self.opt_outs.labels(sample.fingerprint)
                for outcome in OUTCOMES + _STOPPED:
                    # From 0 on: a rate knows a first report only by the number before it.
                    self.of_campaign.labels(sample.fingerprint, outcome)

    def note(self, route: str, method: str, status: int, seconds: float) -> None:
        """Add an answered request."""
        place = (route, method, status)
        if place not in self._requests:
            # Looking a label up costs more than counting.
            self._requests[place] = (
                self.requests.labels(route, method, str(status)),
                self.request_seconds.labels(route),
            )
        requests, times = self._requests[place]
        requests.inc()
        times.observe(seconds)

    def text(self) -> bytes:
        """In the format that Prometheus reads."""
        return generate_latest(self.registry)


def _name(code: int) -> str:
    return {0: "accepted", DUPLICATE: "duplicate"}.get(code) or str(REASONS[code - 1])
