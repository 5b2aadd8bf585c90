"""Counts of a log in the store of a dashboard: when they are shown, and whose they replace."""

from collections.abc import Iterator

import pytest

from collecting import HOUR, START, batch, campaign, clients, expected, messages
from loloha.collector.store import Store, log_counts
from loloha.collector.submission import Submission
from loloha.collector.terms import Terms
from loloha.engines import RoundTally
from loloha.errors import StoreError
from loloha.server.tally import Tally

ONE = campaign()


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    opened = Store(sqlite_url)
    yield opened
    opened.close()


def tally(n: int, seed: int = 0) -> Tally:
    return expected(ONE, clients(ONE, n, seed=seed), 0)


def test_what_is_published_at_the_end_is_published_once_and_with_more(store: Store) -> None:
    terms = Terms(late_seconds=60, early_seconds=60, minimum_cohort=10, publish_every=0)
    stored, _ = store.create(ONE, terms, token=None, now=START)
    closes = START + HOUR + 60

    def shown(counted: Tally, now: float) -> Tally:
        log_counts.put(store, stored, RoundTally(0, counted, 0, 0, 0), now)
        return store.tally(stored, 0)

    assert shown(tally(20), closes - 1).n == 0
    assert shown(tally(9), closes).n == 0
    assert shown(tally(10), closes) == tally(10)
    # Other reports in the place of these, or fewer, would show what single ones say.
    for other in (tally(10, seed=99), tally(9)):
        assert shown(other, closes) == tally(10)
    assert shown(tally(11), closes) == tally(11)


def test_a_round_that_the_store_has_counted_itself_is_not_replaced(store: Store) -> None:
    stored, _ = store.create(ONE, Terms(minimum_cohort=1), token=None, now=START)
    counted = RoundTally(0, tally(3), 0, 0, 0)
    for _ in range(2):
        log_counts.put(store, stored, counted, START)
    sent = batch(ONE, messages(ONE, clients(ONE, 1), 1))
    store.record([Submission.of(stored, sent)], START + HOUR)
    with pytest.raises(StoreError, match="reports of round 1 itself"):
        log_counts.put(store, stored, RoundTally(1, tally(3), 0, 0, 0), START + HOUR)
