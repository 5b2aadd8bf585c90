"""The load generator without a network: what goes in which batch, to whom, and its progress."""

from itertools import count
from threading import Event
from typing import Any, Self

import numpy as np
import pytest

from collecting import HOUR, START, campaign
from loloha.campaign import Schedule
from loloha.errors import CampaignError, ParameterError
from loloha.population import load_generator
from loloha.sender.collector import Receipt
from loloha.sender.connection import Patience
from loloha.wire.columns import CONTENT_TYPE, columns

URL = "http://c/v1/campaigns/x"


class Collector:
    """Takes what it is sent, and notes it."""

    def __init__(self) -> None:
        self.campaign = campaign(schedule=Schedule(START, HOUR))
        self.opened: list[Any] = []
        self.sent: list[Any] = []
        self.closed = 0
        self.patience = Patience()

    def __call__(self, url: str, *, token: str | None, patience: Patience) -> Self:
        self.opened.append((url, token))
        self.patience = patience
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed += 1

    def submit(self, body: bytes, media: str) -> Receipt:
        assert media == CONTENT_TYPE
        some = columns(body, self.campaign, 1_000)
        assert not some.codes.any()
        self.sent.append(some)
        return Receipt(len(some.rounds) - 1, 1, {})


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Collector:
    found = Collector()
    monkeypatch.setattr(load_generator, "Collector", found)
    monkeypatch.setattr(load_generator, "CONNECTIONS", 1)
    return found


def test_each_round_goes_out_in_batches_of_its_own(collector: Collector) -> None:
    values = np.array([[0, 1, -1], [1, -1, -1], [2, 2, 2], [4, 4, -1], [3, 0, -1]])
    begun, answered = list[Any](), list[int]()
    receipt = load_generator.generate_load(
        URL, collector.campaign, values, first=7, token="t", batch=2, rng=1,
        begins=lambda sizes: begun.append(sizes.tolist()), progress=answered.append,
    )  # fmt: skip
    assert collector.opened == [(URL, "t")]
    assert collector.closed == 1
    assert begun == [[5, 4, 1]]
    rounds = [some.rounds.tolist() for some in collector.sent]
    assert rounds == [[7, 7], [7, 7], [7], [8, 8], [8, 8], [9]]
    assert answered == [2, 2, 1, 2, 2, 1]
    assert (receipt.accepted, receipt.duplicates) == (4, 6)
    # A pseudonym a report, and a key a user: who reports in the last round was the third before.
    names = {bytes(row) for some in collector.sent for row in some.reporters}
    assert len(names) == 10
    keys = [key for some in collector.sent for key in some.keys.tolist()]
    assert keys[2] == keys[6] == keys[9]
    assert (keys[0], keys[3:5]) == (keys[5], keys[7:9])


@pytest.mark.parametrize("failure", [KeyboardInterrupt, CampaignError])
def test_a_failure_stops_what_waits_and_counts_what_is_under_way(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    monkeypatch.setattr(load_generator, "CONNECTIONS", 2)
    take, asked, retrying = collector.submit, count(1), Event()

    def submit(body: bytes, media: str) -> Receipt:
        number = next(asked)
        if number in (2, 3):
            retrying.wait()
            if number == 2:
                return take(body, media)
            raise failure
        retrying.set()
        collector.patience.wait(1, 3600.0)
        raise AssertionError("it must not be sent again")

    monkeypatch.setattr(collector, "submit", submit)
    answered = list[int]()
    values = np.zeros((500, 1), dtype=np.int64)
    with pytest.raises(failure):
        load_generator.generate_load(
            URL, collector.campaign, values, batch=10, rng=1, progress=answered.append
        )
    assert (len(collector.sent), answered) == (1, [10])
    assert next(asked) <= 5


def test_users_of_a_panel_send_in_their_own_rounds(collector: Collector) -> None:
    collector.campaign = campaign(schedule=Schedule(START, HOUR, every=3))
    values = np.zeros((90, 6), dtype=np.int64)
    load_generator.generate_load(URL, collector.campaign, values, rng=2)
    sizes = [len(some.rounds) for some in collector.sent]
    assert sizes[:3] == sizes[3:]
    assert sum(sizes) == 180


def test_what_cannot_be_sent_is_refused(collector: Collector) -> None:
    values = np.zeros((1, 1), dtype=np.int64)
    assigned = campaign(keys="assigned")
    with pytest.raises(ParameterError, match="campaign must let devices draw"):
        load_generator.generate_load(URL, assigned, values)
    for wrong in ({"first": -1}, {"batch": 0}):
        with pytest.raises(ParameterError):
            load_generator.generate_load(URL, collector.campaign, values, **wrong)  # type: ignore[arg-type]
    assert collector.opened == []
