"""The audit catches clients that are wrong, and passes honest ones as often as it says."""

import dataclasses
import json
import math
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, binom

import loloha
import wrong_clients
from loloha.audit import Audit, ClientDevice, CommandDevice, audit, clopper_pearson
from loloha.audit.audit import BOUNDS, LOOKS, _Asked
from loloha.audit.device import Device
from loloha.audit.event import EVENTS
from loloha.cli import main
from loloha.errors import AuditError, ParameterError
from loloha.protocols import REGISTRY, Protocol
from loloha.rng import SimulationRng
from wrong_clients import WRONG

BUDGETS: Any = {"eps_inf": 2.0, "eps_1": 1.0}
PROTOCOL = loloha.BiLOLOHA(k=8, eps_inf=2.0, eps_1=1.0)


def simulated(protocol: Protocol, seed: int = 1) -> ClientDevice:
    rng = SimulationRng(seed)
    return ClientDevice(protocol, lambda: protocol.client(rng=rng))


# -- bounds


@pytest.mark.parametrize("alpha", [0.05, 1e-3, 1e-9])
@pytest.mark.parametrize(("x", "n"), [(0, 5), (5, 5), (1, 5), (3, 10), (700, 1000), (3, 100_000)])
def test_bounds_are_those_of_the_beta_distribution(x: int, n: int, alpha: float) -> None:
    low, high = clopper_pearson(x, n, alpha)
    assert low == pytest.approx(beta.ppf(alpha, x, n - x + 1) if x else 0, rel=1e-6)
    assert high == pytest.approx(beta.ppf(1 - alpha, x + 1, n - x) if x < n else 1, rel=1e-6)


def test_nothing_asked_bounds_nothing() -> None:
    assert clopper_pearson(0, 0, 0.1) == (0, 1)


# -- honest clients


# One memoised round over symbols, hashes and bits, and one round without a memo.
FLAGSHIPS = ("l-grr", "biloloha", "rappor", "olh")


@pytest.mark.parametrize("name", [
    *FLAGSHIPS,
    *(pytest.param(name, marks=pytest.mark.long) for name in REGISTRY if name not in FLAGSHIPS),
])  # fmt: skip
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


HONEST = [
    ("biloloha", {"k": 8, **BUDGETS}, 1000),
    ("ololoha", {"k": 9, **BUDGETS}, 250),
    ("l-grr", {"k": 5, **BUDGETS}, 250),
    ("rappor", {"k": 6, **BUDGETS}, 250),
    ("dbitflippm", {"k": 6, "d": 2, "eps_inf": 2.0}, 250),
    ("olh", {"k": 8, "eps": 1.0}, 250),
]


@pytest.mark.parametrize(("name", "params", "audits"), [
    *((name, params, 3) for name, params, _ in HONEST[::3]),
    *(pytest.param(*honest, marks=pytest.mark.long) for honest in HONEST),
])  # fmt: skip
def test_honest_clients_pass_every_time(name: str, params: Any, audits: int) -> None:
    """Real reports of real clients: 1000 of 1000 at the default confidence.

    At 90 % one of ten might fail; the bounds are shared out over events and looks, so fewer do.
    """
    protocol, rng = loloha.protocol(name, **params), SimulationRng(audits)
    device = ClientDevice(protocol, lambda: protocol.client(rng=rng))
    for confidence, times, most in ((1 - 1e-5, audits, 0), (0.9, audits // 3, audits // 30)):
        runs = (audit(protocol, device, users=100, confidence=confidence) for _ in range(times))
        assert sum(not found.passed for found in runs) <= most


@pytest.mark.parametrize(
    ("sure", "likely", "most"), [(40, 10, 2), pytest.param(300, 60, 12, marks=pytest.mark.long)]
)
def test_honest_counts_pass_every_time(sure: int, likely: int, most: int) -> None:
    """The same at 2000 users, from the exact law of the counts."""
    rng, asked = np.random.default_rng(1), _Asked(PROTOCOL, simulated(PROTOCOL))
    r = PROTOCOL.realised
    p, q = float(r.p_star), 1 - float(r.p_star)
    for confidence, audits, allowed in ((1 - 1e-5, sure, 0), (0.9, likely, most)):
        alpha, failed = (1 - confidence) / (BOUNDS * len(asked.claims) * len(LOOKS)), 0
        for _ in range(audits):
            # 4/7 of the keys tell the two values apart.
            for side, chances in enumerate(((p, q), (q, p))):
                drawn = rng.multinomial(2_000, [chances[0] * 4 / 7, chances[1] * 4 / 7, 3 / 7])
                asked.counts["eps_1"][side] = drawn[:2]
            asked.users["eps_1"] = 2_000
            findings = {finding.name: finding for finding in asked.losses(alpha)}
            failed += findings["eps_1"].violated
        assert failed <= allowed


# -- planted clients


@pytest.fixture(params=["python", "command"])
def wrong(request: Any) -> Callable[[str], AbstractContextManager[Device]]:
    """A wrong client, in Python and as a program."""

    @contextmanager
    def through(name: str) -> Iterator[Device]:
        rng = SimulationRng(5)
        if request.param == "python":
            yield ClientDevice(PROTOCOL, lambda: WRONG[name](PROTOCOL, rng))
            return
        spec = json.dumps({"name": PROTOCOL.name, "k": 8, "eps_inf": 2.0, "eps_1": 1.0})
        words = [sys.executable, str(Path(wrong_clients.__file__)), spec, name, "5"]
        with CommandDevice(PROTOCOL, shlex.join(words), timeout=60) as device:
            yield device

    return through


@pytest.mark.parametrize(("bug", "users", "caught"), [
    ("ForgetsItsMemo", 800, "eps_inf"),
    ("AnswersTwice", 200, "a round asked again"),
    ("RedrawsItsKey", 200, "a permanent key"),
    ("SkipsTheSecondRound", 5000, "eps_1"),
    ("SendsTheTruth", 1000, "eps_1"),
    ("SameSeedForAll", 1000, "eps_1"),
    ("ReusesTheNoise", 3000, "eps_2"),
    # 36 million draws: half a minute of a processor, and a whole one through lines.
    pytest.param("TellsTheTruthTooOften", 150_000, "eps_inf", marks=pytest.mark.long),
])  # fmt: skip
def test_planted_bugs_are_caught(wrong: Any, bug: str, users: int, caught: str) -> None:
    with wrong(bug) as device:
        found = audit(PROTOCOL, device, users=users)
    assert not found.passed
    assert caught in {finding.name for finding in found.findings if finding.violated}


@pytest.mark.parametrize("name", ["rappor", "l-osue", "l-oue", "l-soue"])
def test_what_memoised_bits_prove_is_above_what_is_allowed(name: str) -> None:
    """Else no number of users would show it; of RAPPOR at 1.4 times eps_inf 1.96 of 2 was shown."""
    rules, device = (
        REGISTRY[name].from_params({"k": 2, "eps_inf": eps, "eps_1": 0.8}) for eps in (2.0, 2.8)
    )
    real, reports = device.realised, 8
    times = np.arange(reports + 1)
    shown = [binom.pmf(times, reports, float(p)) for p in (real.p2, real.q2)]
    own, other = (float(p) * shown[0] + float(1 - p) * shown[1] for p in (real.p1, real.q1))
    seen = np.zeros((2, 2))
    for first, second in product(times.tolist(), repeat=2):
        sent = [(None, bytes([(t < first) | (t < second) << 1])) for t in range(reports)]
        leaning = EVENTS["eps_inf"](rules, (0, 1), sent)
        if leaning is not None:
            seen[:, leaning] += own[first] * other[second], other[first] * own[second]
    assert math.log(seen[0, 0] / seen[1, 0]) > 1.1 * rules.asked_memo
    assert seen[0, 0] > 0.03


@pytest.mark.parametrize(("b", "d"), [(6, 1), (6, 3), (6, 6)])
def test_sampled_bits_prove_all_that_they_lose(b: int, d: int) -> None:
    """One bit of several loses half, and drowned the others: of three out of six 1.3 of 2.8."""
    rules = loloha.DBitFlipPM(k=6, eps_inf=2.8, b=b, d=d)
    real, seen = rules.realised, np.zeros((2, 2))
    for key, bits in product(combinations(range(b), d), product((0, 1), repeat=d)):
        y = sum(bit << place for place, bit in enumerate(bits)).to_bytes(1, "little")
        leaning = EVENTS["eps_inf"](rules, (0, 5), [(key, y)] * 8)
        if leaning is None:
            continue
        for side, value in enumerate((0, 5)):
            cell = rules.memo_index(key, value)
            ones = [float(real.p1 if place == cell else real.q1) for place in range(d)]
            chances = [p if bit else 1 - p for p, bit in zip(ones, bits, strict=True)]
            seen[side, leaning] += math.prod(chances)
    assert math.log(seen[0, 0] / seen[1, 0]) == pytest.approx(2.8, abs=1e-9)


def test_a_symbol_that_shows_less_than_another_is_no_memo() -> None:
    """Of 100 memos 98 are neither value's: each of their reports by chance drowned the two."""
    rules = loloha.LGRR(k=100, eps_inf=2.0, eps_1=1.8)

    def told(*symbols: int) -> int | None:
        return EVENTS["eps_inf"](rules, (0, 99), [(None, y) for y in symbols])

    assert told(5, 5, 5, 0, 5, 5, 5, 5) is None
    assert told(5, 5, 99, 99, 7, 99, 3, 2) == 1
    assert told(0, 0, 0, 99, 0, 0, 0, 0) == 0


def test_a_chance_that_is_too_large_by_one_percent_is_caught() -> None:
    """p1 x 1.01: by the counts' exact law at the default number of users, in 36 of 40 audits.

    A real client with it is audited above, among the long tests.
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


def program(tmp_path: Path, text: str) -> str:
    (tmp_path / "device.py").write_text(text)
    return f"{sys.executable} {tmp_path / 'device.py'}"


@pytest.mark.parametrize(("name", "params"), [
    ("biloloha", {"k": 8, "eps_inf": 2.0, "eps_1": 1.0}),
    ("rappor", {"k": 9, "eps_inf": 2.0, "eps_1": 1.0}),
    ("dbitflippm", {"k": 8, "d": 3, "eps_inf": 2.0}),
])  # fmt: skip
def test_a_foreign_program_is_audited(name: str, params: Any) -> None:
    protocol = loloha.protocol(name, **params)
    spec = json.dumps({"name": name, **params})
    words = [sys.executable, str(Path(wrong_clients.__file__)), spec, "", "1"]
    with CommandDevice(protocol, shlex.join(words)) as device:
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
    "hangs": ("import time\ntime.sleep(3000)", "within 1 seconds"),
    "dies": ("raise SystemExit(3)", "ended before"),
    "answers rubbish": (ECHO.format("'hello'"), "'key y'"),
    "answers bytes": (BYTES, "'key y'"),
    "answers out of range": (ECHO.format("1, 7"), "'key y'"),
    "answers too many": (ECHO.format("1, '0 0'"), "'key y'"),
    "answers a tuple": (ECHO.format("'1,2', 0"), "'key y'"),
    "never ends a line": (
        "import sys\nwhile True: sys.stdout.write('x' * 65536)",
        "ended before|'key y'|within 1 seconds",
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
    # What has to be given up, for what takes long, is; the others end in their own time.
    seconds = 1 if "within" in says else 300
    device = CommandDevice(PROTOCOL, program(tmp_path, text), timeout=seconds)
    with pytest.raises(AuditError, match=says), device:
        audit(PROTOCOL, device, users=2000)
    assert device.process.poll() is not None
    assert not device.reader.is_alive()


def test_a_program_that_answers_unasked_is_audited_for_what_it_answers(tmp_path: Path) -> None:
    with CommandDevice(PROTOCOL, program(tmp_path, FLOOD), timeout=300) as device:
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
    assert main([*line, "--users", "200", "--command", "/no/such/program"]) == 2
    assert "command must be a program" in capsys.readouterr().err


def test_an_audit_is_json() -> None:
    found = audit(PROTOCOL, simulated(PROTOCOL), users=100)
    assert isinstance(found, Audit)
    plain = found.to_dict()
    assert plain["passed"] is True
    assert {one["name"] for one in plain["findings"]} >= {"eps_1", "eps_2"}
