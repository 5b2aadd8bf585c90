"""Attacks: what an observer of the reports learns beyond frequencies, by the best tests."""

from loloha.population.distinct import Detection, count_distinct, detect_changes, record_answers
from loloha_lab.attacks.alarm import Alarm, key_alarm, sum_alarm
from loloha_lab.attacks.averaging import Averaging, averaging
from loloha_lab.attacks.change import change
from loloha_lab.attacks.linking import Linking, linking
from loloha_lab.attacks.memoised import Distinct, detect_memoised, visited
from loloha_lab.attacks.poisoning import (
    Poisoning,
    adaptive_gain,
    poisoning,
    poisoning_gain,
    rounds_until_seen,
)
from loloha_lab.attacks.value import Guessing, guess_values

__all__ = [
    "Alarm",
    "Averaging",
    "Detection",
    "Distinct",
    "Guessing",
    "Linking",
    "Poisoning",
    "adaptive_gain",
    "averaging",
    "change",
    "count_distinct",
    "detect_changes",
    "detect_memoised",
    "guess_values",
    "key_alarm",
    "linking",
    "poisoning",
    "poisoning_gain",
    "record_answers",
    "rounds_until_seen",
    "sum_alarm",
    "visited",
]
