"""Which values each user ever holds, against a plain account of it."""

from typing import Any

import numpy as np
import pytest

from loloha.errors import DomainError, ParameterError
from loloha.population.samplers import History, Visits, visits
from population import WAYS, wandering


@pytest.fixture(params=WAYS, autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    WAYS[request.param](monkeypatch)
    return str(request.param)


def account(values: Any) -> list[dict[int, list[int]]]:
    """Of each user, the rounds of each value, in the order of the first visit."""
    users = []
    for held in values.tolist():
        rounds: dict[int, list[int]] = {}
        for t, v in enumerate(held):
            if v >= 0:
                rounds.setdefault(v, []).append(t)
        users.append(rounds)
    return users


@pytest.mark.parametrize(("n", "tau", "k"), [(1, 1, 2), (40, 9, 4), (7, 30, 50), (1300, 100, 3)])
def test_visits_are_what_a_plain_account_says(n: int, tau: int, k: int) -> None:
    values = wandering(n, tau, k)
    found = Visits(values, k)
    plain = account(values)
    assert found.per_user.tolist() == [len(rounds) for rounds in plain]
    assert found.present.tolist() == (values >= 0).sum(axis=0).tolist()
    single = np.zeros((tau, k), dtype=int)
    pairs = []
    for u, rounds in enumerate(plain):
        for v, when in rounds.items():
            pairs.append((u, v, len(when)))
            if len(when) == 1:
                single[when[0], v] += 1
    np.testing.assert_array_equal(found.single, single)
    listed = []
    for block in found.blocks:
        first = block.part.start
        listed += list(
            zip((block.users + first).tolist(), block.values.tolist(), block.visits.tolist(),
                strict=True)
        )  # fmt: skip
        sent = block.slots >= 0
        held = np.where(sent, block.values[block.slots], -1)
        np.testing.assert_array_equal(held.T, values[block.part])
        user = np.where(sent, block.users[block.slots], -1)
        np.testing.assert_array_equal(user[sent], np.nonzero(sent)[1])
    assert listed == pairs


def test_users_come_in_blocks_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits, "USERS_AT_ONCE", 4)
    monkeypatch.setattr(visits, "FEWEST_AT_ONCE", 20)
    monkeypatch.setattr(visits, "MOST_AT_ONCE", 30)

    def sizes(n: int, tau: int) -> list[int]:
        blocks = Visits(np.zeros((n, tau), dtype=int), 2).blocks
        return [block.part.stop - block.part.start for block in blocks]

    assert sizes(9, 5) == [4, 4, 1]
    assert sizes(25, 1) == [20, 5]
    assert sizes(4, 10) == [3, 1]
    assert sizes(2, 100) == [1, 1]


def test_merging_numbers_in_the_order_of_the_first_visit() -> None:
    users = np.array([0, 0, 0, 2, 2, 5], dtype=np.int32)
    symbols = np.array([1, 0, 1, 1, 1, 0], dtype=np.int32)
    merged, firsts = visits.merge(users, symbols, 2)
    assert merged.tolist() == [0, 1, 0, 2, 2, 3]
    assert firsts.tolist() == [0, 1, 3, 5]


def test_one_round_is_numbered_without_looking() -> None:
    held = np.array([3, 1, 3], dtype=np.int64)
    quick, slow = Visits.of_round(held, 4), Visits(held[:, None], 4)
    for one, other in zip(quick.blocks[0][1:], slow.blocks[0][1:], strict=True):
        np.testing.assert_array_equal(one, other)
    assert Visits.of_round(held[:0], 4).blocks == []


def test_a_history_is_cut_into_the_bins_of_the_devices() -> None:
    """MATH section 7: floating-point division puts some values in the wrong bucket."""
    for k in (*range(2, 50), 1412):
        history = History(np.append(np.arange(k), -1)[:, None], k)
        for b in range(2, k + 1) if k < 50 else (353, 999):
            expected = [v * b // k for v in range(k)] + [-1]
            assert next(history.rounds(b)).tolist() == expected
    assert history.visits(b) is history.visits(b)
    assert history.visits(b).blocks[0].values.tolist() == expected[:-1]


def test_rounds_are_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loloha.population.samplers.history.REPORTS_AT_ONCE", 25)
    values = wandering(10, 7, 5)
    history = History(values, 5)
    np.testing.assert_array_equal(np.stack(list(history.rounds(5))), values.T)
    np.testing.assert_array_equal(history.reports, (values >= 0).sum(axis=1))


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u4", "u8"])
def test_all_integer_types_are_taken(kind: str) -> None:
    values = np.array([[0, 1], [2, 2]]).astype(kind)
    assert History(values, 3).visits(3).per_user.tolist() == [2, 1]
    hidden = np.ma.array(values, mask=[[False, True], [False, False]])
    assert History(hidden, 3).values.tolist() == [[0, -1], [2, 2]]


def test_bad_values_are_refused_and_not_shown() -> None:
    for values in (
        [0, 1], [[0.0]], [["a"]], [[True]], np.zeros((1, 2, 3), dtype=int), 3, [[None]],
        np.ma.array([[0.5]]),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match="one row per user and one column per round"):
            History(values, 4)
    for values in ([[0, 4]], [[-2]], [[777]]):
        with pytest.raises(DomainError, match=r"values must be in 0\.\.3, or -1") as raised:
            History(values, 4)
        assert "777" not in str(raised.value)
    with pytest.raises(ParameterError, match="k must be an integer"):
        History([[0]], 1)


def test_its_text_shows_no_value() -> None:
    assert repr(History([[3, 3]], 4)) == "History(1 user, 2 rounds, k=4)"


def test_nobody_and_no_round() -> None:
    nobody = Visits(np.zeros((0, 3), dtype=int), 2)
    assert nobody.per_user.tolist() == []
    assert nobody.present.tolist() == [0, 0, 0]
    assert Visits(np.zeros((2, 0), dtype=int), 2).per_user.tolist() == [0, 0]
