"""The kit passes the JavaScript client, and catches each fault that is planted in it."""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from collecting import ADMIN_KEY, START, Clock, campaign
from javascript import CLIENT, node
from loloha.campaign import Campaign
from loloha.cli import main
from loloha.collector.settings import Settings
from loloha.conform import PortError, case, conform, connect, document_case, suite
from loloha.conform.suite import GROUPS
from loloha.errors import CampaignError, ParameterError
from loloha.protocols import GRR, REGISTRY
from loloha.rng import SimulationRng
from loloha.sender import Sender
from serving import Served, create


def command(folder: Path = CLIENT) -> list[str]:
    return [node(), str(folder / "conform.js")]


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(group, marks=[pytest.mark.long] * (group in ("draws", "distributions")))
        for group in GROUPS
    ],
)
def test_the_javascript_client_conforms(group: str) -> None:
    (result,) = conform(command(), only=[group], patience=120)
    assert result.differences == ()
    assert result.checked > 20


def test_this_library_agrees_with_the_cases() -> None:
    """What must be refused is refused here too; what must be read is what was written."""
    for one in document_case.good_documents():
        assert Campaign.from_json(case.text(one), fingerprint=one.fingerprint) == one
    for wrong, document in document_case.bad_documents():
        with pytest.raises(CampaignError):
            pytest.fail(f"{wrong}: {Campaign.from_json(document, fingerprint='0' * 64)}")
    assert {one.name for one in case.variants()} == set(REGISTRY)
    assert {one.name for one in case.small()} == set(REGISTRY)


class Fault(NamedTuple):
    bug: str
    file: str
    old: str
    new: str
    group: str


FAULTS = [
    Fault(
        "the last bit is not randomised",
        "encoding.js",
        "i < size; i++",
        "i < size - 1; i++",
        "distributions",
    ),
    Fault(
        "a lie may equal the truth", "encoding.js", "rng.below(g - 1)", "rng.below(g)", "histories"
    ),
    Fault("lies leave out a symbol", "encoding.js", "other >= x ?", "other > x ?", "distributions"),
    Fault("the memo is not kept", "client.js", "memo.push([x, answer]);", "", "histories"),
    Fault(
        "the memo is that of the value",
        "client.js",
        "let x = longitudinal && encoding.memoIndex(key, value);",
        "let x = longitudinal && value;",
        "histories",
    ),
    Fault(
        "the fresh round is skipped",
        "client.js",
        "second ? draw(encoding.answerFrom(answer), second) : answer",
        "answer",
        "distributions",
    ),
    Fault(
        "eps for eps/2",
        "protocol.js",
        "sue: bits(ONE_ROUND, symmetricHalf)",
        "sue: bits(ONE_ROUND, symmetric)",
        "thresholds",
    ),
    Fault(
        "thresholds in floating point",
        "exact.js",
        "return Number((S * a) / (a + BigInt(g - 1) * ONE));",
        "return Math.floor(SCALE / (1 + (g - 1) * Math.exp(-eps)));",
        "thresholds",
    ),
    Fault(
        "eps_1 may be passed by a unit",
        "exact.js",
        "Math.floor(p2 * SCALE), Number(tightest)",
        "Math.floor(p2 * SCALE)",
        "thresholds",
    ),
    Fault(
        "a published calibration is taken for a tight one",
        "exact.js",
        'calibration === "published"',
        "false",
        "thresholds",
    ),
    Fault(
        "the last bucket is never sampled",
        "encoding.js",
        "rng.below(newest + 1)",
        "rng.below(newest)",
        "histories",
    ),
    Fault(
        "the loss counts rounds",
        "client.js",
        "this.protocol.longitudinal ? memo.length :",
        "",
        "histories",
    ),
    Fault(
        "a round is answered again",
        "client.js",
        "let sent = state.sent.find(([one]) => one === round);",
        "let sent;",
        "histories",
    ),
    Fault(
        "a forgotten round is answered again",
        "client.js",
        "must(!this.hasAnswered(round)",
        "must(true",
        "histories",
    ),
    Fault(
        "the limit is not kept",
        "limit.js",
        "if (covers(limit, amount)) return;",
        "return;",
        "histories",
    ),
    Fault(
        "a limit is not held against the cap",
        "limit.js",
        "if (covers(limit, least)) return;",
        "return;",
        "histories",
    ),
    Fault("a rounding error spends the limit", "limit.js", "* (1 + 1e-12)", "", "histories"),
    Fault("a key of 31 bits", "hashing.js", "BigInt(key) & BigInt(MERSENNE)", "0", "histories"),
    Fault(
        "little-endian keys",
        "number.js",
        'padStart(2 * bytes, "0")',
        'padEnd(2 * bytes, "0")',
        "histories",
    ),
    Fault("one pseudonym for all rounds", "client.js", "`round ${round}`", "`round`", "states"),
    Fault(
        "what is not known of a state is dropped",
        "client.js",
        "must((await client.save()) === canonical(plain), UNKNOWN, StateError);",
        "",
        "states",
    ),
    Fault(
        "the pin is not checked",
        "campaign.js",
        "[undefined, digest].includes(fingerprint)",
        "true",
        "documents",
    ),
    Fault("exponents as JavaScript has them", "json.js", '"$&0"', '"$&"', "documents"),
    Fault(
        "the source gives zeros",
        "rng.js",
        "crypto.getRandomValues(this.#pool);",
        "",
        "draws",
    ),
    Fault("draws of 64 bits", "rng.js", "(pool[at] >>> 11)", "pool[at]", "draws"),
    Fault("what was drawn is drawn again", "rng.js", "this.#used = at + 2;", "", "draws"),
    Fault("the last number is never drawn", "rng.js", "drawn % n", "drawn % (n - 1 || 1)", "draws"),
    Fault(
        "a new client for each round",
        "../audit.js",
        "if (who !== user)",
        "if (true)",
        "draws",
    ),
    Fault(
        "decimal edges in binary",
        "domain.js",
        "decimal(String(end))",
        "decimal(end.toFixed(20))",
        "values",
    ),
]

# One of each group that is caught soon.
FEW = {
    "a lie may equal the truth",
    "lies leave out a symbol",
    "eps for eps/2",
    "the limit is not kept",
    "what is not known of a state is dropped",
    "the pin is not checked",
    "what was drawn is drawn again",
    "decimal edges in binary",
}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=fault.bug, marks=[pytest.mark.long] * (fault.bug not in FEW))
        for fault in FAULTS
    ],
)
def test_a_fault_is_caught(fault: Fault, tmp_path: Path) -> None:
    port = command(tmp_path)
    shutil.copytree(CLIENT / "src", tmp_path / "src")
    for name in ("audit.js", "conform.js", "package.json"):
        shutil.copy(CLIENT / name, tmp_path)
    file = tmp_path / "src" / fault.file
    sound = file.read_text()
    assert sound.count(fault.old) == 1, f"{fault.old!r} must be there once"
    file.write_text(sound.replace(fault.old, fault.new))
    try:
        (result,) = conform(port, only=[fault.group], until_first=True, patience=120)
    except PortError:
        # It broke down: that is seen too.
        return
    assert result.differences


def test_the_command_tells_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    port = shlex.join(command())
    assert main(["conform", "--command", port, "--only", "values", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert (result["name"], result["differences"]) == ("values", [])
    wrong = "while True: input(); print('{}', flush=True)"
    port = shlex.join([sys.executable, "-c", wrong])
    assert main(["conform", "--command", port, "--only", "values"]) == 1
    told = capsys.readouterr().out
    assert "expected" in told
    assert "more; --json shows all" in told


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("print('hello', flush=True); input(); input()", "JSON object"),
        ("print('[1]', flush=True); input(); input()", "JSON object"),
        ("raise SystemExit", "ended before"),
        ("input(); input()", "silent"),
        ('print(\'{"draw": "below", "n": 3}\', flush=True); input(); input()', "must not draw"),
    ],
)
def test_a_command_that_is_no_port(code: str, why: str) -> None:
    with (
        connect([sys.executable, "-c", code], patience=1.0) as port,
        pytest.raises(PortError, match=why),
    ):
        port.ask("document", document="")


# Answers lines in capitals, their end and questions as they come, after two draws.
CAPITALS = """
import json
for line in iter(input, None):
    if not line:
        print('{"end": 1}', flush=True)
    elif line[0] != '{':
        print(line.upper(), flush=True)
    else:
        drawn = []
        for asked in json.loads(line).get("draws", ()):
            print(json.dumps(asked), flush=True)
            drawn.append(json.loads(input())["drawn"])
        print(json.dumps({"asked": json.loads(line)["ask"], "drawn": drawn}), flush=True)
"""
EDGES = [{"draw": "bernoulli", "threshold": edge} for edge in (0, 1 << 53)]
EDGES += [{"draw": "below", "n": edge} for edge in (1, 1 << 53)]
OUTSIDE = [{"draw": "bernoulli", "threshold": edge} for edge in (-1, (1 << 53) + 1, 0.5)]
OUTSIDE += [{"draw": "below", "n": edge} for edge in (0, (1 << 53) + 1, "3")]


def test_a_port_draws_and_answers_questions_and_lines_in_turn() -> None:
    with connect([sys.executable, "-c", CAPITALS]) as port:
        assert port.ask("x") == {"asked": "x", "drawn": []}
        assert port.lines(["a b", "c"]) == ["A B", "C"]
        assert port.end_lines() == {"end": 1}
        drawn = port.ask("y", rng=SimulationRng(1), draws=EDGES)["drawn"]
        assert drawn[:3] == [False, True, 0]
        for asked in OUTSIDE:
            with pytest.raises(PortError, match="port must ask for a draw"):
                port.ask("z", rng=SimulationRng(1), draws=[asked])
            # It waits for its number.
            port._write('{"drawn": 0}')
            assert port._hear() == {"asked": "z", "drawn": [0]}


def test_good_documents_cover_the_ends_of_the_allowed_range() -> None:
    good = [*document_case.good_documents()]
    for at_once in (
        {one.schedule.expires - one.schedule.start for one in good if one.schedule.expires} >= {1},
        {one.schedule.every for one in good} >= {1, 3, 1 << 24},
        {one.schedule.seconds for one in good} >= {1, 366 * 86400},
        {len(one.name) for one in good} >= {200},
        {one.keys for one in good} == {"drawn", "assigned"},
    ):
        assert at_once


NO_AUDIT = """
import json
for line in iter(input, None):
    print({} if line[:1] in ('{', '') else 'perhaps', flush=True)
"""


def test_a_port_that_is_asked_to_be_audited_and_answers_something_else() -> None:
    with pytest.raises(PortError, match="user round value"):
        conform([sys.executable, "-c", NO_AUDIT], only=["draws"])


@pytest.mark.long
def test_the_shipped_audit_asks_the_javascript_client() -> None:
    """Its memo is kept, its rounds are answered once; one without a second round is told."""
    words = "k=3 eps_inf=2 eps_1=1 calibration=tight"
    audited = f"{node()} {CLIENT / 'audit.js'} type=l-grr {words}"
    given = ["--k", "3", "--eps-inf", "2", "--eps-1", "1", "--users", "1000"]
    assert main(["audit", "l-grr", *given, "--command", audited]) == 0
    bolder = audited.replace("eps_inf=2 eps_1=1", "eps_inf=4 eps_1=3.9")
    assert main(["audit", "l-grr", *given, "--command", bolder]) == 1


class Own:
    """A port in this process: this library's client, or one that tells each value as it is."""

    def __init__(self, protocol: Any, *, tells: bool = False, end: Any = ()) -> None:
        self.protocol, self.tells, self.end = protocol, tells, dict(end)
        self.users: dict[str, Any] = {}

    def ask(self, what: str, *, document: str) -> dict[str, Any]:
        return {}

    def lines(self, asked: Sequence[str]) -> Iterator[str]:
        for line in asked:
            user, round, value = line.split()
            client = self.users.setdefault(user, self.protocol.client(rng=SimulationRng(int(user))))
            y = client.report(int(value), round=int(round)).y
            yield f"- {value if self.tells else y}"

    def end_lines(self) -> dict[str, Any]:
        return self.end


@pytest.mark.parametrize(
    ("port", "off"),
    [
        ({}, set()),
        ({"end": {"more": 1}}, {"the end of lines"}),
        ({"tells": True}, {"eps_1", "first reports of 0", "first reports of 2"}),
    ],
    ids=["own", "goes on", "tells"],
)
def test_draws_of_a_port_are_audited_and_counted(
    monkeypatch: pytest.MonkeyPatch, port: dict[str, Any], off: set[str]
) -> None:
    protocol = GRR(k=3, eps=1.0)
    monkeypatch.setattr(case, "small", lambda: [protocol])
    differences = dict(suite.draws(Own(protocol, **port)))  # type: ignore[arg-type]
    assert len(differences) > 3
    found = {re.split(" (?:of|by) GRR", name)[0] for name, how in differences.items() if how}
    assert found == off


def test_no_such_program_or_group() -> None:
    with pytest.raises(ParameterError, match="command must be"):
        conform(["/no/such/program"])
    with pytest.raises(ParameterError, match="only must be"):
        conform([sys.executable], only=["everything"])


def test_an_agreement_moves_between_the_languages(tmp_path: Path) -> None:
    """Python agrees to two campaigns and reports; JavaScript reads and writes it; Python sends."""
    hours, pages = campaign("hours"), campaign("pages")
    state = tmp_path / "state"
    settings = Settings(store=f"sqlite:///{tmp_path}/loloha.db", admin_key=ADMIN_KEY)
    with Served(settings, Clock(START + 60)) as url:
        addresses = [url + create(url, one) for one in (hours, pages)]
        with Sender(state, clock=lambda: START + 60) as sender:
            sender.agree(*addresses, limit=8.0)
            sender.report_all({"hours": "a", "pages": "b"})
            loss = sender.loss
        before = json.loads(state.read_bytes())
        with connect(command()) as port:
            text = port.ask("sender", state=state.read_text())["state"]
        assert json.loads(text) == before
        state.write_text(text)
        with Sender(state, clock=lambda: START + 60) as sender:
            assert (sender.loss, sender.limit) == (loss, 8.0)
            found = sender.deliver_all()
    assert {name: one.sent for name, one in found.items()} == {"hours": (0,), "pages": (0,)}
