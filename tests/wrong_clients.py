"""Clients that are wrong in one way each, for the audit in Python and as a program.

``python wrong_clients.py NAME``, with an empty name for the honest one, speaks the lines of
``loloha audit --command``.
"""

import json
import sys
from typing import Any

import loloha
from loloha.protocols import Protocol
from loloha.rng import SimulationRng


class Wrapped:
    """A client around the shipped one."""

    def __init__(self, protocol: Protocol, rng: Any) -> None:
        self.protocol, self.rng = protocol, rng
        self.client = protocol.client(rng=rng)
        self.key = self.client.report(0, round=10**6).key
        self.memo: dict[Any, Any] = {}
        self.sent: dict[int, Any] = {}

    def report(self, value: int, *, round: int) -> Any:
        if round not in self.sent:
            self.sent[round] = self.draw(value, round=round)
        return self.sent[round]

    def draw(self, value: int, *, round: int) -> Any:
        return loloha.Report(self.key, self.answer(self.remembered(value)))

    def remembered(self, value: int) -> Any:
        x = self.protocol.memo_index(self.key, value)
        if x not in self.memo:
            self.memo[x] = self.permanent(x)
        return self.memo[x]

    def permanent(self, x: int) -> Any:
        return self.protocol.permanent(self.rng, x)

    def answer(self, memo: Any) -> Any:
        return self.protocol.instant(self.rng, memo)


class ForgetsItsMemo(Wrapped):
    def remembered(self, value: int) -> Any:
        return self.permanent(self.protocol.memo_index(self.key, value))


class AnswersTwice(Wrapped):
    def report(self, value: int, *, round: int) -> Any:
        return self.draw(value, round=round)


class RedrawsItsKey(Wrapped):
    def draw(self, value: int, *, round: int) -> Any:
        return self.protocol.client(rng=self.rng).report(value, round=round)


class SkipsTheSecondRound(Wrapped):
    def answer(self, memo: Any) -> Any:
        return memo


class SendsTheTruth(Wrapped):
    def draw(self, value: int, *, round: int) -> Any:
        return loloha.Report(self.key, self.protocol.memo_index(self.key, value))


class SameSeedForAll(Wrapped):
    def __init__(self, protocol: Protocol, rng: Any) -> None:
        super().__init__(protocol, SimulationRng(3))


class ReusesTheNoise(Wrapped):
    """Draws the noise of the second round once, and uses it in every round."""

    def answer(self, memo: Any) -> Any:
        if not hasattr(self, "lie"):
            self.lie = self.protocol.instant(self.rng, 0)
        return (memo + self.lie) % 2


class TellsTheTruthTooOften(Wrapped):
    """Keeps the true symbol with a chance of 1.01 p1."""

    def permanent(self, x: int) -> Any:
        p = float(self.protocol.realised.p1) * 1.01
        return x if self.rng.bernoulli(round(p * 2**53)) else 1 - x


WRONG = {
    one.__name__: one
    for one in (
        ForgetsItsMemo,
        AnswersTwice,
        RedrawsItsKey,
        SkipsTheSecondRound,
        SendsTheTruth,
        SameSeedForAll,
        ReusesTheNoise,
        TellsTheTruthTooOften,
    )
}


def serve(protocol: Protocol, name: str, rng: Any) -> None:
    """Answer the lines of standard input."""
    user, client = None, None
    for line in sys.stdin:
        asked, round, value = map(int, line.split())
        if asked != user:
            user, client = asked, WRONG[name](protocol, rng) if name else protocol.client(rng=rng)
        report = client.report(value, round=round)
        key = "-" if report.key is None else report.key
        key = ",".join(map(str, key)) if isinstance(key, tuple) else key
        y = report.y.hex() if isinstance(report.y, bytes) else report.y
        sys.stdout.write(f"{key} {y}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    spec = json.loads(sys.argv[1])
    serve(loloha.protocol(spec.pop("name"), **spec), sys.argv[2], SimulationRng(int(sys.argv[3])))
