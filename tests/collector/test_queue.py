"""Uploads that wait: their turns, what a commit takes of them, and what that costs."""

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from collecting import campaign
from loloha.collector import commit_cost
from loloha.collector.commit import Committer, Pace
from loloha.collector.metric import Metrics
from loloha.collector.problem import Problem
from loloha.collector.queue import Job, Line, Taken
from loloha.collector.quota import Quota
from loloha.collector.rate import parsed
from loloha.collector.submission import MOST_LISTED, UploadOutcome, count_codes
from loloha.wire import Refusal


def job(name: str, size: int = 1, work: int = 1, address: str | None = None) -> Any:
    upload: Any = SimpleNamespace(name=name, size=size, work=work)
    return Job(upload, Future(), None, address)


def names(jobs: Any) -> list[str]:
    return [each.upload.name for each in jobs]


def test_an_upload_of_no_report_takes_a_place_and_one_of_much_work_is_large() -> None:
    assert [job("", size).size for size in (0, 1, 7)] == [1, 1, 7]
    assert [job("", work=work).is_small for work in (1_000, 1_001)] == [True, False]


def test_addresses_take_turns() -> None:
    line = Line(100)
    assert not line
    assert line.first() is None
    jobs = {name: job(name, address=name[0]) for name in ("a1", "a2", "a3", "b1", "c1")}
    for each in jobs.values():
        line.append(each)
        assert each.line is line
    assert line.reports.taken == 5
    order = []
    while (first := line.first()) is not None:
        order.append(first.upload.name)
        line.remove(first)
        line.pass_turn(first)
        assert not first.waits
    assert order == ["a1", "b1", "c1", "a2", "a3"]
    assert not line
    # A large upload keeps its place in the line, and loses its turn with a piece.
    for name in ("a1", "b1"):
        line.append(jobs[name])
    line.pass_turn(jobs["a1"])
    assert names(line) == ["b1", "a1"]


def test_a_commit_takes_what_fits_and_pays_for_each_round_once() -> None:
    """A report costs 3 here, a round 250: of 1000 the first takes 506, the second 262."""
    protocol = campaign().protocol

    def upload(size: int, rounds: list[int], id: int = 1) -> Any:
        stored = SimpleNamespace(id=id, report_work=3, campaign=SimpleNamespace(protocol=protocol))
        return SimpleNamespace(stored=stored, size=size, rounds=rounds)

    taken = Taken(1_000)
    first, second, third = upload(2, [0, 1]), upload(4, [1, 2]), upload(78, [0, 2])
    assert taken.put(job("first"), first, "places")
    assert taken.capacity == 494
    assert taken.put(job("second"), second, None)
    assert taken.capacity == 232
    assert not taken.put(job("third"), third, None)
    assert not taken.put(job("another's"), upload(1, [1], id=2), None)
    assert taken.capacity == 232
    third.size, third.stored.report_work = 116, 2
    assert taken.put(job("third"), third, None)
    assert taken.capacity == 0
    assert [slice_.upload for slice_ in taken.slices] == [first, second, third]
    assert (taken.slices[0].job.upload.name, taken.slices[0].places) == ("first", "places")  # type: ignore[attr-defined]
    least = Taken(1)
    assert least.put(job("whatever it costs"), upload(9, [0]), None)
    assert least.capacity == 1 - 27 - 250


def test_small_and_large_uploads_are_taken_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    committer = Committer(
        None,  # type: ignore[arg-type]
        clock=float, metrics=Metrics(), largest_queue=9, tidy=bool, pace=Pace(7, 0.0),
    )  # fmt: skip
    took: list[Any] = []

    def takes(kind: str) -> Callable[[Taken], None]:
        return lambda taken: took.append((kind, taken.capacity))

    monkeypatch.setattr(committer, "_take_small", takes("small"))
    monkeypatch.setattr(committer, "_take_pieces", takes("large"))
    small, large = job("small"), job("large", work=1_001)
    committer._small.append(small)
    committer._large.append(large)
    for _ in range(3):
        assert committer._take(wait=True) == []
    committer._small.remove(small)
    for _ in range(2):
        committer._take(wait=True)
    committer._small.append(small)
    committer._take(wait=True)
    assert took == [(kind, 7) for kind in ("small", "large", "small", "large", "large", "small")]


def test_work_is_counted_by_reports_rounds_and_parts() -> None:
    def encoding(span: int, cells: int) -> Any:
        return SimpleNamespace(span=span, cells=cells)

    spans = (1, 255, 256, 511, 512)
    assert [commit_cost.report_work(encoding(span, 9)) for span in spans] == [1, 1, 2, 2, 3]
    one, wide = encoding(1, 4_096), encoding(2, 4_097 * 4)
    assert commit_cost.round_work(one, np.array([0, 1, 9])).tolist() == [200, 250, 250]
    assert commit_cost.round_work(wide, np.array([1, 2, 3])).tolist() == [300, 400, 450]
    assert commit_cost.upload_work(one, []) == 0
    assert commit_cost.upload_work(one, [5, 7, 5]) == 3 + 250
    assert commit_cost.upload_work(encoding(300, 9), [5, 7, 5]) == 2 * 3 + 250
    assert commit_cost.upload_work(wide, [5, 7, 5]) == 3 + 400 + 300 - 250


def test_a_large_upload_is_cut_by_windows_of_rounds_and_by_work() -> None:
    """Windows of two rounds, as each costs 250 of 500, and 3 reports, as each costs 200 then."""
    rounds = np.array([5, 2, 4, 3, 5, 5, 4, 2, 9])
    encoding: Any = SimpleNamespace(span=1, cells=9)
    for span, step in ((1, 500), (256 * 165, 3)):
        encoding.span = span
        pieces = [(name, rows.tolist()) for name, rows in commit_cost.cut(encoding, rounds, 500)]
        of_4 = [0, 2, 4, 5, 6]
        cut = [((2, start), of_4[start : start + step]) for start in range(0, 5, step)]
        of_2 = [1, 3, 7]
        assert pieces == [((1, 0), of_2), *cut, ((4, 0), [8])]


def test_all_share_and_one_address_gets_a_quarter() -> None:
    quota = Quota(100, "come back")
    assert quota.fit("a", 1_000)
    with quota.reserve("a") as large:
        # Alone it may be larger than a quarter.
        large.grow(60)
        large.grow(15)
        assert quota.taken == large.size == 75
        assert quota.fit("b", 25)
        assert not quota.fit("b", 26)
        assert not quota.fit("c", 26)
        with quota.reserve("a") as more, pytest.raises(Problem):
            more.grow(1)
        assert quota.taken == 75
        with quota.reserve("b") as rest:
            rest.grow(25)
            assert not quota.fit(None, 1)
            with quota.reserve(None) as nobody, pytest.raises(Problem):
                nobody.grow(1)
    assert (quota.taken, len(quota._by_address)) == (0, 0)
    assert [quota.take("a", 3), quota.take("a", 2), quota.take(None, 2)] == [3, 5, 0]
    assert [quota.fit("a", n) for n in (20, 21)] == [True, False]
    assert quota.fit("b", 30)


@pytest.mark.parametrize(
    ("rate", "amount", "seconds"),
    [
        ("10/minute", 10, 60), ("1/second", 1, 1), (" 20 PER 3 hours ", 20, 10_800),
        ("7 / 2 days", 7, 172_800), ("100 per day", 100, 86_400),
    ],
)  # fmt: skip
def test_a_rate_is_an_amount_in_a_time(rate: str, amount: int, seconds: int) -> None:
    assert parsed(rate) == (amount, seconds)


@pytest.mark.parametrize(
    "rate", ["", "0/minute", "05/minute", "10", "1/0 days", "1/week", "-1/day"]
)
def test_what_is_no_rate_is_refused(rate: str) -> None:
    with pytest.raises(ValueError, match="rate must be"):
        parsed(rate)


def test_an_outcome_counts_codes_and_lists_the_first_refusals() -> None:
    early, late = Refusal.EARLY.code, Refusal.LATE.code
    outcome = UploadOutcome.of([0, -1, early, 0, late, late])
    assert (outcome.size, outcome.accepted, outcome.duplicates) == (6, 2, 1)
    assert outcome.refused == [(2, Refusal.EARLY), (4, Refusal.LATE), (5, Refusal.LATE)]
    assert outcome.reasons == {Refusal.EARLY: 1, Refusal.LATE: 2}
    assert UploadOutcome.of([0]) == UploadOutcome(1, 1, 0, [], {})
    assert UploadOutcome.of([-1]) == UploadOutcome(1, 0, 1, [], {})
    assert UploadOutcome.of([]) == UploadOutcome(0, 0, 0, [], {})
    many = UploadOutcome.of([late] * (MOST_LISTED + 1))
    assert len(many.refused) == MOST_LISTED == many.size - 1
    assert many.reasons == {Refusal.LATE: MOST_LISTED + 1}
    assert count_codes([[0, -1], [3, 0]]) == {-1: 1, 0: 2, 3: 1}
