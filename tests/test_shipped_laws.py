"""Laws that ship with the package see what they are for."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import loloha
from loloha.channels import symbol_channel
from loloha.client import Client
from loloha.conform import laws
from loloha.encodings import Symbols
from loloha.errors import BudgetError, LawError, LolohaError, ParameterError
from loloha.report import Report
from loloha.rng import SimulationRng


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


class Keyless(loloha.BiLOLOHA):
    """Gives every user the one seed that is none."""

    def enroll(self, rng: Any) -> int:
        return 0


class Loud(loloha.LGRR):
    """Sends what no symbol is."""

    def instant(self, rng: Any, kept: Any) -> Any:
        return kept + self.k


class Empty(loloha.LGRR):
    """Estimates from nothing."""

    def tally(self) -> Any:
        return SimpleNamespace(estimate=lambda: 0.0)


class Truthful(Client):
    """Says what it is told each time, whatever that is."""

    def report(self, value: Any, *, round: int) -> Report:
        return Report(None, value)


class Withholding(Client):
    """Sends no report of one value."""

    def report(self, value: Any, *, round: int) -> Report:
        if value == 2:
            raise BudgetError("not this one")
        return super().report(value, round=round)


class Amnesic(Client):
    """Keeps the state that it began with."""

    def to_dict(self) -> dict[str, Any]:
        return Client(self.protocol, limit=self.limit, rng=SimulationRng(1)).to_dict()


class Lenient(Client):
    """Takes whatever has an integer in it."""

    def report(self, value: Any, *, round: int) -> Report:
        return super().report(int(value) % self.protocol.k, round=round)


class Copied(Client):
    def __reduce__(self) -> Any:
        return dict, ()


def with_clients(kind: type[Client]) -> type[loloha.LGRR]:
    return type(
        kind.__name__, (loloha.LGRR,), {"client": lambda self, **given: kind(self, **given)}
    )


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (Keyless, "reports_look_alike"),
        (Loud, "reports_look_alike"),
        (Empty, "no_reports_are_a_clear_error"),
        (with_clients(Truthful), "a_round_is_answered_once"),
        (with_clients(Withholding), "who_reports_does_not_depend_on_values"),
        (with_clients(Lenient), "other_values_are_refused_and_cost_nothing"),
        (with_clients(Copied), "a_client_cannot_be_copied"),
        (Spending, "all_reports_of_a_value_lose_what_its_memo_loses"),
        (Telling, "the_first_report_loses_what_is_realised"),
        (Telling, "support_has_the_stated_chances"),
        (Supported, "support_has_the_stated_chances"),
        (Understating, "memo_and_key_stay"),
        (Counted, "counts_do_not_depend_on_how_they_are_added"),
        (Spending, "a_protocol_is_a_value"),
    ],
)
def test_a_broken_law_is_seen_and_named(broken: Any, law: str) -> None:
    protocol = broken(k=3, eps_inf=2.0, eps_1=1.0)
    with pytest.raises(LawError, match=f"^{law}: .*; protocol {broken.__name__}"):
        laws.check(protocol, law)


def test_a_population_that_skips_a_round_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "loloha.population.samplers.symbol._answers_in_place", lambda chain, kept, draws: kept
    )
    with pytest.raises(LawError, match="distribution of its clients"):
        laws.check(loloha.LGRR(k=3, eps_inf=2.0, eps_1=1.0))


def test_a_client_that_forgets_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loloha.LGRR, "client", lambda self, **given: Amnesic(self, **given))
    with pytest.raises(LawError, match=r"restored client must go on|report must be the same"):
        laws.check(
            loloha.LGRR(k=3, eps_inf=2.0, eps_1=1.0), "a_restored_client_goes_on_identically"
        )


def test_a_law_is_chosen_by_name() -> None:
    protocol = loloha.LGRR(k=3, eps_inf=2.0, eps_1=1.0)
    laws.check(protocol)
    with pytest.raises(ParameterError, match="law must be one of"):
        laws.check(protocol, "nope")
    assert issubclass(LawError, LolohaError)
    assert issubclass(LawError, AssertionError)


def test_every_law_is_seen_to_be_broken() -> None:
    (marked,) = test_a_broken_law_is_seen_and_named.pytestmark  # type: ignore[attr-defined]
    seen = {law for _, law in marked.args[1]}
    assert laws.LAWS.keys() - seen == {
        "a_population_is_simulated_as_its_clients_are", "a_restored_client_goes_on_identically",
    }  # fmt: skip
