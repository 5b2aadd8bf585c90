"""Metrics of the service for Prometheus; no label is a value, a user or an address."""

from __future__ import annotations

import collections
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from loloha.collector.submission import DUPLICATE
from loloha.wire.refusal import REASONS

if TYPE_CHECKING:
    from loloha.collector.store.overview import Glance

MOST_CAMPAIGNS = 200
"""The newest campaigns have metrics of their own; all others together are `OTHERS`."""
OTHERS = "others"
_OUTCOME_OF = {0: "accepted", DUPLICATE: "duplicate"} | {each.code: str(each) for each in REASONS}
"""By code."""
OUTCOMES = tuple(_OUTCOME_OF.values())
_STOPPED = ("paused", "ended")
"""Outcome codes of campaigns that take no reports."""
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class Requests(Collector):
    """Number and duration of answered requests.

    The counters of the library lock for each number.
    """

    def __init__(self) -> None:
        self._counts: collections.Counter[tuple[str, str, int]] = collections.Counter()
        # By route: how many took so long at most, and longer; the sum of all.
        self._times: dict[str, tuple[list[int], list[float]]] = {}

    def note(self, route: str, method: str, status: int, seconds: float) -> None:
        """Add one; by the event loop alone."""
        self._counts[route, method, status] += 1
        times = self._times.get(route)
        if times is None:
            times = self._times[route] = [0] * (len(_SECONDS) + 1), [0.0]
        times[0][bisect_left(_SECONDS, seconds)] += 1
        times[1][0] += seconds

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        names = ["route", "method", "status"]
        requests = CounterMetricFamily("loloha_requests", "Requests", labels=names)
        for (route, method, status), count in list(self._counts.items()):
            requests.add_metric([route, method, str(status)], count)
        yield requests
        times = HistogramMetricFamily("loloha_request_seconds", "Time to answer", labels=["route"])
        for route, (counts, (total,)) in list(self._times.items()):
            ends = [*map(floatToGoString, _SECONDS), "+Inf"]
            buckets = list(zip(ends, map(float, accumulate(counts)), strict=True))
            times.add_metric([route], buckets, total)
        yield times


class Metrics:
    """The metrics of one application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reports = Counter(
            "loloha_reports", "Reports by what became of them", ["outcome"], registry=self.registry
        )
        self.requests = Requests()
        self.registry.register(self.requests)
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
            "Opt-outs received; anybody can send any number",
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
            outcome = _OUTCOME_OF[code]
            self.reports.labels(outcome).inc(count)
            self._of(fingerprint, outcome).inc(count)

    def count_stopped(self, fingerprint: str, campaign: str, size: int) -> None:
        """Add reports of a campaign that is paused or has ended."""
        self._of(fingerprint, campaign).inc(size)

    def count_opt_out(self, fingerprint: str) -> None:
        """Add a user who declined."""
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
                    # Start at 0: a rate needs a sample before the first report.
                    self.of_campaign.labels(sample.fingerprint, outcome)

    def text(self) -> bytes:
        """In the format that Prometheus reads."""
        return generate_latest(self.registry)
