"""What the service counts about itself; never a label for a value, a user or an address."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from loloha.collector.submission import DUPLICATE
from loloha.wire.refusal import REASONS

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
        for outcome in ("accepted", "duplicate", *REASONS):
            self.reports.labels(outcome)

    def count(self, codes: Mapping[int, int]) -> None:
        """Add what became of the reports of a commit: how often each code occurred."""
        for code, count in codes.items():
            self.reports.labels(_name(code)).inc(count)

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
