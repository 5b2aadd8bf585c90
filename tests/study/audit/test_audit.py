"""The audit catches clients that are wrong, and passes honest ones as often as it says."""

import dataclasses
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loloha.protocols import REGISTRY, Protocol
from loloha.rng import SimulationRng
from scipy.stats import beta

import loloha
from loloha.cli import main
from loloha.errors import AuditError, ParameterError
from loloha.study.audit import Audit, ClientDevice, CommandDevice, audit, clopper_pearson
from loloha.study.audit.audit import BOUNDS, LOOKS, _Asked

PROTOCOL = loloha.BiLOLOHA(k=8, eps_inf=2.0, eps_1=1.0)


def simulated(protocol: Protocol, seed: int = 1) -> ClientDevice:
    rng = SimulationRng(seed)
    return ClientDevice(protocol, lambda: protocol.client(rng=rng))


# -- bounds


@pytest.mark.parametrize("alpha", [0.05, 1e-3, 1e-9])
@pytest.mark.parametrize(("x", "n"), [(0, 5), (5, 5), (1, 5), (3, 10), (700, 1000), (3, 100_000)])
def test_bounds_are_those_of_the_beta_law(x: int, n: int, alpha: float) -> None:
    low, high = clopper_pearson(x, n, alpha)
    assert low == pytest.approx(beta.ppf(alpha, x, n - x + 1) if x else 0, rel=1e-6)
    assert high == pytest.approx(beta.ppf(1 - alpha, x + 1, n - x) if x < n else 1, rel=1e-6)


def test_nothing_asked_bounds_nothing() -> None:
    assert clopper_pearson(0, 0, 0.1) == (0, 1)


# -- honest clients


@pytest.mark.parametrize("name", REGISTRY)
def test_honest_clients_pass(name: str) -> None:
    budgets: Any = {"eps": 1.0, "eps_inf": 2.0, "eps_1": 1.0}
    known = {field.name for field in dataclasses.fields(REGISTRY[name])}
    protocol = REGISTRY[name](k=6, **{key: budgets[key] for key in budgets.keys() & known})
    found = audit(protocol, simulated(protocol), users=1500)
    assert found.passed
    shown = {finding.name: finding for finding in found.findings}
    # What is proven is most of what is true already at 1 500 users.
    for quantity in ("eps_1", "eps_inf") if protocol.longitudinal else ("eps_1",):
        assert 0.3 * shown[quantity].claimed < shown[quantity].lower <= shown[quantity].claimed


def test_honest_counts_pass_a_thousand_times() -> None:
    """At 90 % each of 1000 audits may fail with 0.1; the bounds are shared out, so fewer do.

    Counts of the events as their exact law gives them: 1000 real audits would take an hour.
    """
    rng, asked = np.random.default_rng(1), _Asked(PROTOCOL, simulated(PROTOCOL))
    r = PROTOCOL.realised
    p, q = float(r.p_star), 1 - float(r.p_star)
    for confidence, audits, most in ((1 - 1e-5, 1000, 0), (0.9, 100, 20)):
        alpha, failed = (1 - confidence) / (BOUNDS * len(asked.claims) * len(LOOKS)), 0
        for _ in range(audits):
            # 4/7 of the keys tell the two values apart.
            for side, chances in enumerate(((p, q), (q, p))):
                drawn = rng.multinomial(2_000, [chances[0] * 4 / 7, chances[1] * 4 / 7, 3 / 7])
                asked.counts["eps_1"][side] = drawn[:2]
            asked.users["eps_1"] = 2_000
            findings = {finding.name: finding for finding in asked.losses(alpha)}
            failed += findings["eps_1"].violated
        assert failed <= most


# -- planted clients


class Wrapped:
    """A client around the shipped one, wrong in one way."""

    def __init__(self, protocol: Protocol, rng: Any) -> None:
        self.protocol, self.rng = protocol, rng
        self.client = protocol.client(rng=rng)
        self.key = self.client.report(0, round=10**6).key

        self.sent: dict[int, Any] = {}

    def report(self, value: int, *, round: int) -> Any:
        if round not in self.sent:
            self.sent[round] = self.draw(value, round=round)
        return self.sent[round]

    def draw(self, value: int, *, round: int) -> Any:
        raise NotImplementedError


class ForgetsItsMemo(Wrapped):
    def draw(self, value: int, *, round: int) -> Any:
        return self.protocol.client(key=self.key, rng=self.rng).report(value, round=round)


class AnswersTwice(Wrapped):
    def report(self, value: int, *, round: int) -> Any:
        self.asked = getattr(self, "asked", 0) + 1
        return self.client.report(value, round=2 * self.asked)


class RedrawsItsKey(Wrapped):
    def draw(self, value: int, *, round: int) -> Any:
        return self.protocol.client(rng=self.rng).report(value, round=round)


class SkipsTheSecondRound(Wrapped):
    def draw(self, value: int, *, round: int) -> Any:
        self.memo = getattr(self, "memo", {})
        x = self.protocol.memo_index(self.key, value)
        if x not in self.memo:
            self.memo[x] = self.protocol.permanent(self.rng, x)
        return loloha.Report(self.key, self.memo[x])


class SendsTheTruth(Wrapped):
    def draw(self, value: int, *, round: int) -> Any:
        return loloha.Report(self.key, self.protocol.memo_index(self.key, value))


class SameSeedForAll(Wrapped):
    def __init__(self, protocol: Protocol, rng: Any) -> None:
        super().__init__(protocol, SimulationRng(3))

    def draw(self, value: int, *, round: int) -> Any:
        return self.client.report(value, round=round)


class ReusesTheNoise(Wrapped):
    """Draws the noise of the second round once, and uses it in every round."""

    def draw(self, value: int, *, round: int) -> Any:
        self.memo = getattr(self, "memo", {})
        if not hasattr(self, "lie"):
            self.lie = self.protocol.instant(self.rng, 0)
        x = self.protocol.memo_index(self.key, value)
        if x not in self.memo:
            self.memo[x] = self.protocol.permanent(self.rng, x)
        return loloha.Report(self.key, (self.memo[x] + self.lie) % 2)


@pytest.mark.parametrize(("bug", "users", "caught"), [
    (ForgetsItsMemo, 800, "eps_inf"),
    (AnswersTwice, 200, "a round asked again"),
    (RedrawsItsKey, 200, "a key that is kept"),
    (SkipsTheSecondRound, 5000, "eps_1"),
    (SendsTheTruth, 1000, "eps_1"),
    (SameSeedForAll, 1000, "eps_1"),
    (ReusesTheNoise, 3000, "eps_2"),
])  # fmt: skip
def test_planted_bugs_are_caught(bug: Any, users: int, caught: str) -> None:
    rng = SimulationRng(5)
    start = time.process_time()
    found = audit(PROTOCOL, ClientDevice(PROTOCOL, lambda: bug(PROTOCOL, rng)), users=users)
    assert not found.passed
    assert caught in {finding.name for finding in found.findings if finding.violated}
    assert time.process_time() - start < 120


def test_a_chance_that_is_too_large_by_one_percent_is_caught() -> None:
    """p1 x 1.01: by the counts' exact law at the default number of users, in 36 of 40 audits.

    The audit itself of such a client takes a minute.
    """
    wrong = float(PROTOCOL.realised.p1) * 1.01
    p2, q2 = PROTOCOL.p2 or 0.0, PROTOCOL.q2 or 0.0
    # 6 of 8 reports or more show the memo.
    clear = sum(math.comb(8, m) * p2**m * q2 ** (8 - m) for m in (6, 7, 8))
    false = sum(math.comb(8, m) * q2**m * p2 ** (8 - m) for m in (6, 7, 8))
    hit = wrong * clear + (1 - wrong) * false
    miss = (1 - wrong) * clear + wrong * false
    rng, asked = np.random.default_rng(2), _Asked(PROTOCOL, simulated(PROTOCOL))
    alpha, caught = 1e-5 / (BOUNDS * len(asked.claims) * len(LOOKS)), 0
    for _ in range(40):
        for side, chances in enumerate(((hit, miss), (miss, hit))):
            other = 1 - (hit + miss) * 4 / 7
            drawn = rng.multinomial(150_000, [chances[0] * 4 / 7, chances[1] * 4 / 7, other])
            asked.counts["eps_inf"][side] = drawn[:2]
        asked.users["eps_inf"] = 150_000
        caught += {one.name: one for one in asked.losses(alpha)}["eps_inf"].violated
    assert caught >= 36


# -- foreign programs

HONEST = """
import sys, loloha
protocol = loloha.protocol({name!r}, **{params!r})
user, client = None, None
for line in sys.stdin:
    asked, round, value = map(int, line.split())
    if asked != user:
        user, client = asked, protocol.client()
    report = client.report(value, round=round)
    key = report.key
    key = "-" if key is None else ",".join(map(str, key)) if isinstance(key, tuple) else key
    y = report.y.hex() if isinstance(report.y, bytes) else report.y
    print(key, y, flush={flush})
"""


def program(tmp_path: Path, text: str) -> str:
    (tmp_path / "device.py").write_text(text)
    return f"{sys.executable} {tmp_path / 'device.py'}"


@pytest.mark.parametrize(("name", "params"), [
    ("biloloha", {"k": 8, "eps_inf": 2.0, "eps_1": 1.0}),
    ("rappor", {"k": 9, "eps_inf": 2.0, "eps_1": 1.0}),
    ("dbitflippm", {"k": 8, "d": 3, "eps_inf": 2.0}),
])  # fmt: skip
def test_a_foreign_program_is_audited(tmp_path: Path, name: str, params: Any) -> None:
    protocol = loloha.protocol(name, **params)
    text = HONEST.format(name=name, params=params, flush=True)
    with CommandDevice(protocol, program(tmp_path, text)) as device:
        found = audit(protocol, device, users=300)
        process = device.process
    assert found.passed
    assert {one.name for one in found.findings} >= {"eps_1", "eps_inf", "eps_2"}
    assert process.poll() is not None


ECHO = "import sys\nfor line in sys.stdin: print({}, flush=True)"
BYTES = """
import sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(bytes([255, 32, 49, 10]))
    sys.stdout.flush()
"""
BROKEN = {
    "hangs": ("import time\ntime.sleep(60)", "within 1 seconds"),
    "dies": ("raise SystemExit(3)", "ended before"),
    "answers rubbish": (ECHO.format("'hello'"), "'key y'"),
    "answers bytes": (BYTES, "'key y'"),
    "answers out of range": (ECHO.format("1, 7"), "'key y'"),
    "answers too many": (ECHO.format("1, '0 0'"), "'key y'"),
    "answers a tuple": (ECHO.format("'1,2', 0"), "'key y'"),
    "never ends a line": (
        "import sys\nwhile True: sys.stdout.write('x' * 65536)",
        "ended before|'key y'|within 1",
    ),
    "stops half-way": (
        "import sys\nfor n, line in zip(range(500), sys.stdin): print(1, 0, flush=True)",
        "ended before",
    ),
}
FLOOD = "while True: print(1, 0)"


@pytest.mark.parametrize("how", BROKEN)
def test_a_program_that_fails_is_one_typed_error_and_nothing_runs_on(
    tmp_path: Path, how: str
) -> None:
    text, says = BROKEN[how]
    device = CommandDevice(PROTOCOL, program(tmp_path, text), timeout=1)
    with pytest.raises(AuditError, match=says), device:
        audit(PROTOCOL, device, users=2000)
    assert device.process.poll() is not None
    assert not device.reader.is_alive()


def test_a_program_that_answers_unasked_is_audited_for_what_it_answers(tmp_path: Path) -> None:
    with CommandDevice(PROTOCOL, program(tmp_path, FLOOD), timeout=5) as device:
        found = audit(PROTOCOL, device, users=200)
    assert found.passed  # it says nothing about values
    assert not device.reader.is_alive()


@pytest.mark.parametrize("command", ["", "/no/such/program", "'unclosed"])
def test_what_cannot_be_started_is_refused(command: str) -> None:
    with pytest.raises((AuditError, ParameterError), match="command must"):
        CommandDevice(PROTOCOL, command)


def test_numbers_out_of_range_are_refused() -> None:
    for wrong in ({"users": 3}, {"confidence": 1.0}, {"confidence": math.nan}):
        with pytest.raises(ParameterError):
            audit(PROTOCOL, **wrong)  # type: ignore[arg-type]


def test_the_command_line(capsys: Any, tmp_path: Path) -> None:
    line = ["audit", "biloloha", "--k", "8", "--eps-inf", "2", "--eps-1", "1"]
    assert main([*line, "--users", "200"]) == 0
    assert "Nothing is violated" in capsys.readouterr().out
    truth = "import sys\nfor line in sys.stdin: print(1, int(line.split()[2]) % 2, flush=True)"
    assert main([*line, "--users", "400", "--command", program(tmp_path, truth)]) == 1
    assert "VIOLATED" in capsys.readouterr().out
    assert main([*line, "--users", "200", "--json"]) == 0
    assert '"passed": true' in capsys.readouterr().out
    assert main([*line, "--users", "200", "--command", "/no/such/program"]) == 1
    assert "command must be a program" in capsys.readouterr().err


def test_an_audit_is_json() -> None:
    found = audit(PROTOCOL, simulated(PROTOCOL), users=100)
    assert isinstance(found, Audit)
    plain = found.to_dict()
    assert plain["passed"] is True
    assert {one["name"] for one in plain["findings"]} >= {"eps_1", "eps_2"}
