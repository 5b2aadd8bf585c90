"""What an observer of the reports learns beyond frequencies, by the best tests there are."""

from loloha.study.attacks.alarm import Alarm, key_alarm, sum_alarm
from loloha.study.attacks.averaging import Averaging, averaging
from loloha.study.attacks.change import change
from loloha.study.attacks.distinct import (
    Detection,
    Distinct,
    count_distinct,
    detect_changes,
    detect_memoised,
    record_answers,
    visited,
)
from loloha.study.attacks.linking import Linking, linking
from loloha.study.attacks.poisoning import (
    Poisoning,
    adaptive_gain,
    poisoning,
    poisoning_gain,
    rounds_until_seen,
)
from loloha.study.attacks.value import Guessing, guess_values

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
