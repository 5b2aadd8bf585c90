"""Laws that ship with the package see what they are for."""

from typing import Any

import numpy as np
import pytest

import loloha
from loloha.channels import symbol_channel
from loloha.conform import laws
from loloha.encodings import Symbols
from loloha.errors import LawError, LolohaError, ParameterError


class Rolled(Symbols):
    """Counts each answer for the next value."""

    def support(self, counts: Any) -> Any:
        return np.roll(counts, 1)


class Forgetful(Symbols):
    """Adds the last report of a batch only."""

    def count(self, counts: Any, keys: None, ys: Any) -> None:
        super().count(counts, keys, ys[-1:])


class Spending(loloha.LGRR):
    """Keeps twice what was asked for."""

    first_channel = property(lambda self: symbol_channel(2 * self.eps_inf, self.k))


class Telling(loloha.LGRR):
    """Sends the memo as it is, whatever its second round says."""

    def instant(self, rng: Any, kept: Any) -> Any:
        return kept


class Understating(loloha.LGRR):
    """Says that nothing costs more than the first answer."""

    cap = property(lambda self: self.asked_memo)


class Counted(loloha.LGRR):
    encoding = property(lambda self: Forgetful(self.k))


class Supported(loloha.LGRR):
    encoding = property(lambda self: Rolled(self.k))


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (Spending, "all_reports_of_a_value_lose_what_its_memo_loses"),
        (Telling, "the_first_report_loses_what_is_realised"),
        (Telling, "support_has_the_stated_chances"),
        (Supported, "support_has_the_stated_chances"),
        (Understating, "memo_and_key_stay"),
        (Counted, "counts_do_not_depend_on_how_they_are_added"),
        (Spending, "a_protocol_is_a_value"),
    ],
)
def test_a_broken_law_is_seen_and_named(broken: type[loloha.LGRR], law: str) -> None:
    protocol = broken(k=3, eps_inf=2.0, eps_1=1.0)
    with pytest.raises(LawError, match=f"^{law}: .*; protocol {broken.__name__}"):
        laws.check(protocol, law)


def test_a_population_that_skips_a_round_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "loloha.population.samplers.symbol._answers_in_place", lambda chain, kept, draws: kept
    )
    with pytest.raises(LawError, match="distribution of its clients"):
        laws.check(loloha.LGRR(k=3, eps_inf=2.0, eps_1=1.0))


def test_a_law_is_chosen_by_name() -> None:
    protocol = loloha.LGRR(k=3, eps_inf=2.0, eps_1=1.0)
    laws.check(protocol)
    with pytest.raises(ParameterError, match="law must be one of"):
        laws.check(protocol, "nope")
    assert issubclass(LawError, LolohaError)
    assert issubclass(LawError, AssertionError)
