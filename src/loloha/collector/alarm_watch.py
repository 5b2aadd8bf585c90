"""Alarms: each closed round is tested by the rules, and its alarms are sent."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import logging
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from loloha.campaign.schedule import to_text
from loloha.collector.life import SHOWN
from loloha.collector.metric import Metrics
from loloha.collector.smoothed import of_alarms
from loloha.collector.smoothed_cache import rounds_together
from loloha.collector.store.alarms import AlarmStore, Event
from loloha.errors import ParameterError
from loloha.sender.connection import TimedResponse
from loloha.server.alarm_rule import MEAN

if TYPE_CHECKING:
    from loloha.collector.process import Process
    from loloha.collector.settings import Settings
    from loloha.collector.store import Store
    from loloha.collector.stored_campaign import StoredCampaign
    from loloha.server.alarm_rule import AlarmRule

PATIENCE = 10.0
MOST_TRIES = 24
FIRST_PAUSE, LONGEST_PAUSE = 30, 6 * 3600
_log = logging.getLogger(__name__)


class _Straight(urllib.request.HTTPRedirectHandler):
    """Follows no redirects."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _InTime(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Bounds the time for the head of an answer, so that a slow receiver delays no other alarm."""

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_connection, http.client.HTTPConnection), request)

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_connection, http.client.HTTPSConnection), request)


def _connection(
    kind: type[http.client.HTTPConnection], host: str, **options: Any
) -> http.client.HTTPConnection:
    opened = kind(host, **options)
    until = monotonic() + 2 * PATIENCE
    opened.response_class = partial(TimedResponse, until, PATIENCE)  # type: ignore[assignment]
    return opened


def signature(secret: str, moment: int, body: str) -> str:
    """The signature: HMAC-SHA256 of the moment, a full stop and the body."""
    digest = hmac.new(secret.encode(), f"{moment}.{body}".encode(), hashlib.sha256)
    return f"t={moment},v1={digest.hexdigest()}"


def send(url: str, secret: str | None, event: str, body: str, now: float) -> str | None:
    """Send an event once; why it did not arrive, None if it did (any status from 200 to 299)."""
    headers = {"Content-Type": "application/json", "Loloha-Event": event}
    if secret is not None:
        headers["Loloha-Signature"] = signature(secret, int(now), body)
    try:
        request = urllib.request.Request(url, body.encode(), headers)
        opener = urllib.request.build_opener(_Straight, _InTime)
        with opener.open(request, timeout=PATIENCE) as answer:
            answer.read(1)
    except urllib.error.HTTPError as error:
        return f"it answered {error.code}"
    except (OSError, ValueError, http.client.HTTPException) as error:
        # The address may hold a password: only the kind of failure is returned.
        return type(getattr(error, "reason", error)).__name__
    return None


def next_try(now: float, tries: int) -> int | None:
    """When to retry an event after so many attempts: after twice the pause; None to give up."""
    if tries >= MOST_TRIES:
        return None
    return int(now) + min(LONGEST_PAUSE, FIRST_PAUSE << min(tries - 1, 20))


class AlarmWatch:
    """The rules of a collector, over one store; `run` is what its thread does again and again.

    A rule begins with the first round that is closed after it was set: what was closed before is
    not tried. A round is tried once, so that false alarms do not add up as reports come in.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        process: Process,
        now: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._store = store
        self._alarms = AlarmStore(store)
        self._process = process
        self._now = now
        self._metrics = metrics
        self._known: dict[str, StoredCampaign] = {}
        self._unsuitable: set[tuple[str, str]] = set()
        self._closing = False

    def close(self) -> None:
        """Begin nothing more: untested rounds and unsent events wait in the store."""
        self._closing = True
        self._process.end()

    def run(self) -> bool:
        """Test newly closed rounds, then send due events."""
        if self._closing:
            return False
        now = self._now()
        there = self._store.fingerprints(states=SHOWN)
        for fingerprint in self._known.keys() - there:
            del self._known[fingerprint]
            # A campaign without tested rounds has no gauge.
            with suppress(KeyError):
                self._metrics.alarms.remove(fingerprint)
        for fingerprint in there:
            if not self._closing and any(
                alarm.watches(fingerprint) for alarm in self._settings.alarms
            ):
                self._try(fingerprint, now)
        self._send(now)
        return False

    def _try(self, fingerprint: str, now: float) -> None:
        stored = self._known.get(fingerprint) or self._store.campaign(fingerprint)
        if stored is None:
            return
        self._known[fingerprint] = stored
        last, marks = (
            self._store.life(stored).last_closed(stored, now),
            self._alarms.marks(stored.id),
        )
        rules = self._rules(stored)
        begun = {name: last for name in rules if name not in marks}
        behind = [name for name in rules if name not in begun and marks[name] < last]
        events: list[Event] = []
        if behind and rounds_together(stored) > 1:
            rounds = self._store.rounds(stored, first=0, last=last, newest=rounds_together(stored))
            rounds = [round for round in rounds if round.n > 0]
            by_rule = self._process.call(
                of_alarms, fingerprint, rounds, [rules[name] for name in behind]
            )
            newest = 0
            for name, by_round in zip(behind, by_rule, strict=True):
                events += [
                    _event(stored, name, rules[name], round, alarmed)
                    for round, alarmed in by_round.items()
                    if round > marks[name]
                ]
                newest += len(by_round.get(max((round.number for round in rounds), default=-1), ()))
            self._metrics.alarms.labels(fingerprint).set(newest)
        if begun or behind:
            due = None if self._settings.alarm_webhook is None else int(now)
            new = begun | dict.fromkeys(behind, last)
            self._alarms.add(stored.id, new, events, due)

    def _rules(self, stored: StoredCampaign) -> dict[str, AlarmRule]:
        """The rules of a campaign, by digests of what they say."""
        rules = {}
        for alarm in self._settings.alarms:
            if not alarm.watches(stored.campaign.fingerprint):
                continue
            try:
                rule = alarm.rule(stored.campaign)
            except ParameterError as error:
                name = stored.campaign.fingerprint, alarm.model_dump_json()
                if name not in self._unsuitable:
                    self._unsuitable.add(name)
                    _log.warning("a rule of alarms is not tried on %.12s: %s", name[0], error)
                continue
            text = json.dumps([rule.expected, rule.fdr, MEAN if rule.mean else rule.values])
            rules[hashlib.sha256(text.encode()).hexdigest()[:16]] = rule
        return rules

    def _send(self, now: float) -> None:
        """Send due events until one fails: then the others would too."""
        url, secret = self._settings.alarm_webhook, self._settings.alarm_secret
        if url is None:
            return
        key = None if secret is None else secret.get_secret_value()
        for event in self._alarms.due(now):
            if self._closing:
                return
            why = send(url.get_secret_value(), key, event.event, event.body, now)
            tries = event.tries + 1
            again = None if why is None else next_try(now, tries)
            self._alarms.tried(event.event, tries, again)
            if why is not None:
                what = "given up" if again is None else "sent again"
                _log.warning("alarm %s did not arrive: %s; it is %s", event.event, why, what)
                break
        self._metrics.alarms_waiting.set(self._alarms.waiting())


def _event(
    stored: StoredCampaign, name: str, rule: AlarmRule, round: int, alarmed: list[dict[str, Any]]
) -> Event:
    """One round under one rule."""
    campaign = stored.campaign
    place = f"{campaign.fingerprint} {name} {round}"
    event = hashlib.sha256(place.encode()).hexdigest()[:32]
    body = {
        "event": event,
        "campaign": campaign.fingerprint,
        "name": campaign.name,
        "round": round,
        "start": to_text(campaign.schedule.begins(round)),
        "rule": describe(rule),
        "alarms": alarmed,
    }
    return Event(event, stored.id, round, json.dumps(body, sort_keys=True))


def describe(rule: AlarmRule) -> dict[str, Any]:
    """A rule as JSON data, with what its rate means."""
    over = "of the mean" if rule.mean else "over all values watched"
    if rule.expected is not None:
        meaning = f"{rule.expected:g} false alarms expected a round, {over}"
    else:
        meaning = f"at most {rule.fdr:g} of the alarms of a round are false, on average"
    values = None if rule.values is None else list(rule.values)
    return {
        "expected": rule.expected, "fdr": rule.fdr, "values": values, "mean": rule.mean,
        "meaning": meaning,
    }  # fmt: skip
