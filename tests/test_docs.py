"""What the documentation tells people to run, runs."""

import doctest
import re
import shlex
import textwrap
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = [path for path in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in path.parts]
# Their Python is run ...
RUN = [ROOT / "README.md", *DOCS]
# ... and their command lines are looked up.
LOOKED_UP = [*sorted(ROOT.glob("*.md")), *DOCS]

FENCE = re.compile(r"^\s*(?P<ticks>`{3,}|~{3,})\s*(?P<info>.*?)\s*$")
# ```python no-run: REASON
NO_RUN = re.compile(r"\bno-run\b:?\s*(?P<reason>.*)$")
PYTHON = {
    "python",
    "py",
    "pycon",
    "{code-cell} ipython3",
    "{code-block} python",
    "{code-block} pycon",
}
SHELL = {"console", "bash", "sh", "shell", "{code-block} console", "{code-block} bash"}
OPERATORS = {"|", "||", "&&", "&", ";", "(", ")"}


class Block(NamedTuple):
    """One fenced block: its info string, its text and the number of its first line."""

    info: str
    text: str
    line: int

    @property
    def language(self) -> str:
        words = self.info.split()
        return " ".join(words[:2] if words and words[0].startswith("{") else words[:1])

    @property
    def reason_not_to_run(self) -> str | None:
        """Why the block is not run; None for one that is."""
        marker = NO_RUN.search(self.info)
        if marker is None:
            return None
        reason = marker["reason"]
        assert reason, f"line {self.line}: a block that is not run must say why: no-run: REASON"
        return reason


def blocks(markdown: str) -> Iterator[Block]:
    """All fenced blocks, outermost first."""
    info, fence, start, inside = "", "", 0, []
    for number, line in enumerate(markdown.splitlines(), 1):
        found = FENCE.match(line)
        if not fence:
            if found:
                info, fence, start, inside = found["info"], found["ticks"], number + 1, []
        elif found and not found["info"] and found["ticks"].startswith(fence):
            yield Block(info, textwrap.dedent("\n".join(inside)) + "\n", start)
            fence = ""
        else:
            inside.append(line)
    assert not fence, f"line {start - 1}: this block is never closed"


def run_python(markdown: str, name: str, **given: Any) -> int:
    """Run every Python block in one namespace; the number of blocks that ran."""
    namespace: dict[str, Any] = {"__name__": "__main__", **given}
    ran = 0
    for block in blocks(markdown):
        if block.language not in PYTHON or block.reason_not_to_run is not None:
            continue
        ran += 1
        if block.text.lstrip().startswith(">>>"):
            run_session(block, name, namespace)
        else:
            # Blank lines put the error's line number where the block stands in the file.
            shifted = "\n" * (block.line - 1) + block.text
            exec(compile(shifted, name, "exec"), namespace)
    return ran


def run_session(block: Block, name: str, namespace: dict[str, Any]) -> None:
    """Compare an interactive session with what it prints."""
    session = doctest.DocTestParser().get_doctest(block.text, namespace, name, name, block.line - 1)
    session.globs = namespace
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    outcome = runner.run(session, out=report.append, clear_globs=False)
    assert outcome.failed == 0, "".join(report)


def commands(markdown: str) -> Iterator[tuple[int, list[str]]]:
    """Every call of ``loloha`` in a shell block: its line and its arguments."""
    for block in blocks(markdown):
        if block.language not in SHELL:
            continue
        for number, line in shell_lines(block):
            words = list(shlex.shlex(line, posix=True, punctuation_chars=True))
            for call in split(words):
                arguments = arguments_of_loloha(call)
                if arguments is not None:
                    yield number, arguments


def shell_lines(block: Block) -> Iterator[tuple[int, str]]:
    """What is typed, with continued lines joined; in a console only what follows the prompt."""
    start, typed = 0, ""
    for number, line in enumerate(block.text.splitlines(), block.line):
        if not typed:
            start = number
            if "console" in block.language:
                if not line.startswith("$ "):
                    continue
                line = line[2:]
        if line.endswith("\\"):
            typed += line[:-1] + " "
            continue
        yield start, typed + line
        typed = ""


def split(words: list[str]) -> Iterator[list[str]]:
    """The single commands of a line."""
    call: list[str] = []
    for word in [*words, ";"]:
        if word in OPERATORS:
            yield call
            call = []
        else:
            call.append(word)


def arguments_of_loloha(call: list[str]) -> list[str] | None:
    """What is given to ``loloha``, None for a call of something else."""
    while call and re.match(r"^[A-Z_]+=", call[0]):
        call = call[1:]
    if call[1:3] == ["-m", "loloha"]:
        return call[3:]
    if call and call[0].rpartition("/")[2] == "loloha":
        return call[1:]
    return None


def misspelt(arguments: list[str], command: Any) -> str | None:
    """The first word of a call that the command line does not know, None if it knows all."""
    rest = iter(arguments)
    for word in rest:
        subcommands = getattr(command, "commands", None)
        if word.startswith("-") and word != "-":
            option = word.partition("=")[0]
            if option == "--help":
                continue
            known = {name: one for one in command.params for name in one.opts + one.secondary_opts}
            if option not in known:
                return option
            takes_value = not (known[option].is_flag or known[option].count)
            if takes_value and "=" not in word:
                next(rest, None)
        elif subcommands is not None:
            if word not in subcommands:
                return word
            command = subcommands[word]
    return None


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


SERVED = "client.md", "recipes.md"
"""Pages whose Python needs a collector."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.long] * (path.name == "which-protocol.md"))
        for path in RUN
        if path.name not in SERVED
    ],
    ids=name_of,
)
def test_python_blocks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_python(path.read_text(encoding="utf-8"), name_of(path))


def test_what_an_application_does_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/client.md against a collector, with a user who agrees."""
    pytest.importorskip("fastapi", reason="the collector's extra is not installed")
    from collecting import ADMIN_KEY, HOUR, campaign
    from loloha.campaign import Labels, Schedule
    from loloha.collector.settings import Settings
    from serving import Served, create, get

    monkeypatch.setenv("HOME", str(tmp_path))
    schedule = Schedule(int(time.time()) - HOUR, 3 * HOUR)
    hours = campaign("hours", domain=Labels(tuple(range(36, 41))), schedule=schedule)
    pages = campaign(
        "pages", domain=Labels(("home", "news", "map", "mail", "more")), schedule=schedule
    )
    shown: list[Any] = []
    store = f"sqlite:///{tmp_path}/c.db"
    settings = Settings(store=store, admin_key=ADMIN_KEY, rate_limit="")
    with Served(settings, time.time) as url:
        run_python(
            (ROOT / "docs" / "client.md").read_text(encoding="utf-8"),
            "docs/client.md",
            ADDRESS=url + create(url, hours),
            ANOTHER=url + create(url, pages),
            user_agreed=lambda *said: shown.append(said) or True,
            hours_of_use=lambda: 40,
            tell_user=shown.append,
        )
        counted = get(url, f"/v1/campaigns/{hours.fingerprint}/rounds").json()["rounds"]
    assert counted[0]["n"] == 2
    ((name, labels, text),) = shown
    assert (name, labels[0]) == ("hours", "36")
    assert "at most 4 can be spent" in text
    assert "All 2 together" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} >= {"hours.json", "both.json"}


def test_the_recipes_give_the_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/recipes.md from its command lines on, with 30 installs of which 4 do not come back."""
    pytest.importorskip("fastapi", reason="the collector's extra is not installed")
    from collecting import ADMIN_KEY, START, Clock
    from loloha.cli import main
    from loloha.collector.settings import Settings
    from serving import Served

    page = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    monkeypatch.setenv("LOLOHA_ADMIN_KEY", ADMIN_KEY)
    clock, week, texts = Clock(START + 60), 7 * 86_400, []
    settings = Settings(store=f"sqlite:///{tmp_path}/c.db", admin_key=ADMIN_KEY, rate_limit="")
    with Served(settings, clock) as url:
        for _, line in commands(page):
            if line[:2] == ["campaign", "create"]:
                start = ["--start", "2026-01-01T00:00:00Z", "--publish-every", "1"]
                assert main([*line[: line.index("--to") + 1], url, *start]) == 0
        addresses = capsys.readouterr().out.split()
        assert len(addresses) == 3
        known: dict[str, Any] = {"__name__": "__main__", "ADDRESSES": addresses}
        for block in blocks(page):
            if block.language in PYTHON:
                exec(compile(block.text, "docs/recipes.md", "exec"), known)
        for round in (0, 1):
            clock.now = START + 60 + round * week
            for install in range(30 - 4 * round):
                folder = tmp_path / f"{install}"
                folder.mkdir(exist_ok=True)
                agreed = install % 5 > 0
                known["telemetry"](
                    folder,
                    "1.1",
                    lambda text, agreed=agreed: texts.append(text) or agreed,
                    clock.now,
                )
        version, used, age = addresses
        assert known["active"](version) == {0: 24, 1: 20}
        # Everybody is asked once; who declines is counted nowhere.
        assert len(texts) == 30
        assert known["shares"](version, 2) == {}
        # Standard errors of about 0.3: a blunder shows, and chance fails in one of 10^6.
        for address, round, name in ((version, 1, "1.1"), (used, 0, "today"), (age, 0, "new")):
            estimate, lower, upper = known["shares"](address, round)[name]
            assert abs(estimate - 1) < 1.75
            assert 0 <= lower <= upper <= 1
        assert isinstance(known["retained"](age, 1), float)


@pytest.mark.parametrize("path", LOOKED_UP, ids=name_of)
def test_command_lines_exist(path: Path) -> None:
    calls = list(commands(path.read_text(encoding="utf-8")))
    if not calls:
        return
    from typer.main import get_command

    from loloha.cli import app

    program = get_command(app)
    wrong = {number: misspelt(arguments, program) for number, arguments in calls}
    assert not any(wrong.values()), {line: word for line, word in wrong.items() if word}


OF_A_PROTOCOL = ("--eps-inf", "--eps-1", "--eps", "--memo", "--g", "--hash", "--target", "--every")
PROMISED = re.compile(r"\(here ([^)]+)\)|\bis ([0-9.]+) here\b")


def protocol_of(arguments: list[str]) -> tuple[str, ...] | None:
    """Protocol, parameters and panels that a call names; None for one that names none."""
    given = dict(pairwise(arguments))
    name = arguments[1] if arguments[0] == "explain" else given.get("--protocol")
    if not name or name.startswith("-"):
        return None
    return name, *(given.get(option, "") for option in OF_A_PROTOCOL)


def another_protocol(markdown: str) -> dict[int, tuple[str, ...]]:
    """Calls of a block that follow another protocol than the one campaign that it creates."""
    calls, wrong = dict(commands(markdown)), {}
    for block in blocks(markdown):
        lines = range(block.line, block.line + block.text.count("\n"))
        named = {at: protocol_of(calls[at]) for at in lines if at in calls}
        created = {named[at] for at in named if calls[at][:2] == ["campaign", "create"]}
        if len(created) == 1:
            wrong |= {at: one for at, one in named.items() if one and one not in created}
    return wrong


@pytest.mark.parametrize("path", LOOKED_UP, ids=name_of)
def test_calls_beside_a_campaign_follow_its_protocol(path: Path) -> None:
    assert not another_protocol(path.read_text(encoding="utf-8"))


def test_a_call_that_leaves_out_a_parameter_of_the_campaign_is_seen() -> None:
    page = (
        "```console\n$ loloha campaign create x --protocol onebit --eps-inf 4 --target mean\n"
        "$ loloha explain onebit --eps-inf 4\n```\n"
    )
    assert [*another_protocol(page)] == [3]
    assert not another_protocol(page.replace("explain onebit", "explain onebit --target mean"))


def broken_promises(markdown: str, printed: str) -> list[str]:
    """Numbers that a page promises "here", and that no number printed rounds to."""
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", printed)]
    promised = [
        number
        for found in PROMISED.findall(markdown)
        for number in re.findall(r"\d+(?:\.\d+)?", "".join(found))
    ]
    assert promised, "the page promises no number"
    return [
        number
        for number in promised
        if float(number) not in {round(one, len(number.partition(".")[2])) for one in numbers}
    ]


def test_the_numbers_that_panels_guarantee_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    from loloha.cli import main

    page = (ROOT / "docs" / "panels.md").read_text(encoding="utf-8")
    (line,) = [line for _, line in commands(page) if line[0] == "explain"]
    assert main(line) == 0
    told = capsys.readouterr().out
    assert not broken_promises(page, told)
    assert broken_promises(page, told.replace("7.643", "28")) == ["7.643"]


def test_blocks_share_a_namespace_and_a_session_is_compared() -> None:
    good = "```python\nx = 2\n```\ntext\n  ```pycon\n  >>> x + 1\n  3\n  ```\n"
    assert run_python(good, "good.md") == 2
    with pytest.raises(AssertionError, match=r"Expected:\n +4\n"):
        run_python(good.replace("3", "4"), "wrong.md")


def test_an_error_names_the_line_of_the_file() -> None:
    with pytest.raises(ZeroDivisionError) as failure:
        run_python("# Title\n\n```python\n\n1 / 0\n```\n", "bad.md")
    last = failure.traceback[-1]
    assert last.lineno + 1 == 5


def test_a_block_is_left_out_only_for_a_reason() -> None:
    assert run_python("```python no-run: needs a server\n1 / 0\n```\n", "a.md") == 0
    with pytest.raises(AssertionError, match="must say why"):
        run_python("```python no-run\n1 / 0\n```\n", "b.md")


def test_an_open_block_is_refused() -> None:
    with pytest.raises(AssertionError, match="never closed"):
        run_python("```python\nx = 1\n", "c.md")


def test_calls_are_found() -> None:
    page = (
        "```console\n$ loloha run t.csv \\\n    --out d  # why\nloloha printed this\n```\n"
        "```bash\nA=1 .venv/bin/loloha plan | jq .x && python -m loloha demo; echo loloha\n```\n"
        "```python\nloloha = 1\n```\n"
    )
    assert list(commands(page)) == [
        (2, ["run", "t.csv", "--out", "d"]),
        (7, ["plan"]),
        (7, ["demo"]),
    ]


def test_misspelt_calls_are_seen() -> None:
    import typer
    from typer.main import get_command

    app = typer.Typer()
    campaign = typer.Typer()

    @app.command()
    def run(table: str, out: str = "", force: bool = False) -> None: ...

    @campaign.command()
    def show(name: str) -> None: ...

    app.add_typer(campaign, name="campaign")
    program = get_command(app)
    for line, wrong in {
        "run t --out rnu --force": None,
        "run t --out=x --no-force --help": None,
        "campaign show x": None,
        "--help": None,
        "rnu t": "rnu",
        "run t --uot x": "--uot",
        "campaign shwo x": "shwo",
    }.items():
        assert misspelt(line.split(), program) == wrong, line


CITED = re.compile(r"MATH,? sections? (\d+(?:(?:, | and )\d+)*)")


def test_sections_of_the_maths_that_code_cites_are_on_the_page() -> None:
    page = (ROOT / "docs" / "maths.md").read_text(encoding="utf-8")
    numbers = re.findall(r"^## (\d+)\. ", page, re.M)
    assert numbers == sorted(set(numbers), key=int)
    cited = {
        number: path
        for path in sorted((ROOT / "src").rglob("*.py"))
        for group in CITED.findall(" ".join(path.read_text(encoding="utf-8").split()))
        for number in re.findall(r"\d+", group)
    }
    assert {"1", "8", "9"} <= set(cited)
    lacking = {number: path.name for number, path in cited.items() if number not in numbers}
    assert not lacking


def test_every_section_that_is_cited_has_its_number_on_the_page() -> None:
    maths = (ROOT / "docs" / "maths.md").read_text(encoding="utf-8")
    numbered = set(re.findall(r"^##+ ([0-9.]+)\. ", maths, re.MULTILINE))
    assert len(numbered) > 10
    places = [*(ROOT / "src").rglob("*.py"), *DOCS]
    cited = {
        (name_of(path), number)
        for path in places
        for words in re.findall(
            r"MATH\s+sections?\s+([0-9., and\n]+)", path.read_text(encoding="utf-8")
        )
        for number in re.findall(r"[0-9]+(?:\.[0-9]+)?", words)
    }
    assert len(cited) > 30
    assert sorted((path, number) for path, number in cited if number not in numbered) == []
