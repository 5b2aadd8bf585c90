"""Attacks see what an observer of the reports sees, no more and no less."""

import numpy as np
import pytest

import loloha
from loloha.errors import ParameterError
from loloha.population.distinct import (
    Detection,
    count_distinct,
    detect_changes,
    record_answers,
)


def test_changes_and_alarms_are_counted() -> None:
    values = np.array([[0, 0, 1, 1, 0], [2, 2, 2, 2, 2], [3, 4, 5, 3, 4]])
    answers = np.array([[0, 0, 1, 1, 0], [0, 1, 0, 0, 0], [0, 1, 1, 0, 2]])
    found = detect_changes(answers, values)
    # Users 0 and 2 show as many answers as values; user 1 shows two answers to one value.
    assert (found.users, found.exposed) == (3, 2)
    assert (found.changes, found.seen) == (6, 5)
    assert (found.stays, found.alarms) == (6, 2)
    assert (found.share, found.hit_rate, found.alarm_rate) == (2 / 3, 5 / 6, 1 / 3)


def test_nobody_who_never_changes_has_a_hit_rate() -> None:
    found = detect_changes(np.zeros((2, 3), int), np.zeros((2, 3), int))
    assert found.share == 1
    assert np.isnan(found.hit_rate)
    assert np.isnan(detect_changes(np.array([[0, 1]]), np.array([[0, 1]])).alarm_rate)


def test_detections_add_up() -> None:
    assert Detection(1, 1, 2, 2, 3, 0) + Detection(4, 0, 1, 0, 1, 1) == Detection(5, 1, 3, 2, 4, 1)


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (0, 3)])
def test_shapes_must_fit(shape: tuple[int, int]) -> None:
    other = (3, 2) if shape == (2, 3) else (2, 3) if shape == (3, 2) else shape
    with pytest.raises(ParameterError, match="users, rounds"):
        detect_changes(np.zeros(shape, int), np.zeros(other, int))


def test_distinct_values_are_counted() -> None:
    values = np.array([[3, 1, 3], [2, 2, 2]])
    assert count_distinct(values).tolist() == [2, 1]


def test_answers_are_those_of_their_seed() -> None:
    protocol, values = loloha.LGRR(k=3, eps_inf=1.0, eps_1=0.5), np.zeros((20, 5), dtype=int)
    first, again, other = (record_answers(protocol, values, seed).tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_memoised_answers_repeat_and_fresh_ones_do_not() -> None:
    values = np.array([[0, 7, 0, 7, 0, 7]] * 5)
    memoised = detect_changes(
        record_answers(loloha.DBitFlipPM(k=64, eps_inf=1.0), values, seed=1), values
    )
    assert (memoised.exposed, memoised.seen) == (5, memoised.changes)
    fresh = detect_changes(
        record_answers(loloha.RAPPOR(k=64, eps_inf=1.0, eps_1=0.5), values, seed=1), values
    )
    assert fresh.exposed == 0
