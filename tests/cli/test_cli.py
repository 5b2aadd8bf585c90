"""What holds for every command: help, exit codes, streams, JSON, and the reference page."""

import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from loloha import __version__, errors
from loloha.cli import console, main, reference
from loloha.cli.application import COMMANDS, CommandLine, app
from loloha.cli.command import Commands
from loloha.protocols import REGISTRY

MAIN = "from loloha.cli import main; raise SystemExit(main())"
# The one runs until it is stopped and has no result, the other's is JSON anyway.
WITHOUT_CHOICE = {"loloha serve", "loloha campaign export"}
SURVEY = ["--k", "96", "--n", "45222", "--eps-inf", "4", "--eps-1", "2"]
PARAMETERS = ["--k", "16", "--eps-inf", "2", "--eps-1", "1"]


def run(
    *arguments: str, code: str = "from loloha.cli import main; raise SystemExit(main())"
) -> Any:
    """The command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"loloha {__version__}\n"


def test_the_package_runs_as_a_module(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["loloha", "--version"])
    with pytest.raises(SystemExit, match=r"^0$"):
        runpy.run_module("loloha", run_name="__main__")
    assert capsys.readouterr().out == f"loloha {__version__}\n"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from loloha.cli import main; code = main(['run', '--help'])\n"
        "heavy = {'numpy', 'matplotlib', 'pyarrow', 'numba', 'narwhals', 'pooch', 'scipy'}\n"
        "sys.exit(code or ' '.join(heavy & set(sys.modules)) or 0)"
    )
    done = run(code=code)
    assert done.returncode == 0, done.stderr


def test_every_module_is_listed_and_every_command_has_help_and_json() -> None:
    folder = Path(console.__file__).parent
    # A module of a command begins with how it is called.
    modules = {
        path.stem for path in folder.glob("*.py") if path.read_text().startswith('"""``loloha ')
    }
    functions = [
        one.registered_commands[0].callback if isinstance(one, Commands) else one
        for one in COMMANDS
    ]
    assert {one.__module__.rpartition(".")[2] for one in functions} == modules
    for path, command in commands(typer.main.get_command(app), "loloha"):
        assert command.help, path
        if path not in WITHOUT_CHOICE:
            assert "--json" in {name for one in command.params for name in one.opts}, path


def commands(command: Any, path: str) -> list[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        return [(path, command)]
    return [leaf for name, one in inner.items() for leaf in commands(one, f"{path} {name}")]


def test_the_reference_page_is_up_to_date(root: Path) -> None:
    page = (root / "docs" / "cli.md").read_text(encoding="utf-8")
    assert page == reference.page(), "run: python -m loloha.cli.reference > docs/cli.md"
    for path, _ in commands(typer.main.get_command(app), "loloha"):
        assert f"## `{path}`" in page


def test_without_the_extra_it_says_what_to_install() -> None:
    for library in ("typer", "rich"):
        code = f"import sys; sys.modules[{library!r}] = None\n{MAIN}"
        done = run("protocols", code=code)
        assert done.returncode == 1
        assert done.stderr.endswith(
            f"{library} must be installed for this command; pip install 'loloha[cli]'\n"
        )
        assert len(done.stderr.splitlines()) == 1


def test_a_bug_is_not_taken_for_a_missing_library() -> None:
    code = f"import sys; sys.modules['loloha.cli.application'] = None\n{MAIN}"
    assert "Traceback" in run("protocols", code=code).stderr


def test_the_program_has_no_other_lazy_names() -> None:
    import loloha.cli

    assert loloha.cli.app is app
    with pytest.raises(AttributeError, match="has no attribute 'ap'"):
        _ = loloha.cli.ap  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["rnu"],
        ["protocols", "--jsno"],
        ["protocols", "extra"],
        ["explain"],
        ["explain", "laplace"],
        ["explain", "ololoha", "--k", "16"],
        ["explain", "ololoha", *PARAMETERS, "--eps", "1"],
        ["explain", "ololoha", "--k", "1", "--eps-inf", "2", "--eps-1", "1"],
        ["explain", "ololoha", "--k", "many", "--eps-inf", "2", "--eps-1", "1"],
        ["explain", "ololoha", "--k", "16", "--eps-inf", "1", "--eps-1", "2"],
        ["explain", "ololoha", "--k", "16", "--eps-inf", "nan", "--eps-1", "2"],
        ["explain", "ololoha", *PARAMETERS, "--hash", "md5"],
        ["plan", "--k", "96", "--n", "1000", "--eps-inf", "2"],
        ["plan", "--k", "1", "--n", "1000", "--eps-inf", "2", "--eps-1", "1"],
        ["plan", "--k", "96", "--n", "0", "--eps-inf", "2", "--eps-1", "1"],
        ["plan", "--k", "96", "--n", "1e3", "--eps-inf", "2", "--eps-1", "1"],
        ["plan", "--k", "96", "--n", "1000", "--eps-inf", "1", "--eps-1", "1"],
        ["plan", *SURVEY, "--level", "1"],
        ["plan", *SURVEY, "--calibration", "loose"],
        ["plan", *SURVEY, "--protocol", "laplace"],
        ["data"],
        ["data", "fetch"],
        ["data", "fetch", "acs"],
        ["data", "fetch", "acs", "Atlantis"],
        ["data", "fetch", "mnist"],
    ],
    ids=" ".join,
)
def test_a_command_line_that_cannot_be_used_ends_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(arguments)
    told = capsys.readouterr()
    assert code == 2, told
    assert "Traceback" not in told.err
    if arguments not in ([], ["data"]):  # which print the help
        assert told.out == ""
        assert told.err


@pytest.mark.parametrize(
    ("failure", "code", "says"),
    [
        (errors.ParameterError("k must be 3"), 2, "error: k must be 3"),
        (errors.WireError("message must be whole"), 1, "error: message must be whole"),
        (FileNotFoundError(2, "No such file", "x.csv"), 1, "error: x.csv: No such file"),
        (OSError("odd"), 1, "error: OSError"),
        (MemoryError("of 9 GiB"), 1, "error: memory must"),
        (BrokenPipeError(32, "Broken pipe"), 1, ""),
        (KeyboardInterrupt(), 130, "interrupted; nothing was left half-written"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_how_commands_end(failure: BaseException, code: int, says: str) -> None:
    from typer.testing import CliRunner

    broken = typer.Typer(cls=CommandLine, pretty_exceptions_enable=False)

    @broken.command()
    def fail() -> None:
        raise failure

    @broken.command()
    def other() -> None: ...

    done = CliRunner().invoke(broken, ["fail"])
    assert (done.exit_code, done.stdout, done.stderr[: len(says)]) == (code, "", says)
    assert done.stderr.count("\n") == bool(says)


def test_compiling_is_announced_once_while_it_happens() -> None:
    # The first run of a table took 44 s "simulating", and 2 s ever after.
    pytest.importorskip("numba")
    code = (
        "from numba.core import event\n"
        "from loloha.cli import console\n"
        "with console.working('simulating'):\n"
        "    from loloha.counting.compiled import jit\n"
        "    for _ in range(2):\n"
        "        with event.trigger_event('numba:compile'):\n"
        "            console.say('at it')\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, *others = said.stderr.splitlines()
    assert "compiling" in first
    assert others[:2] == ["at it"] * 2
    assert "compiling" not in "".join(others)


def test_an_interrupt_before_the_command_starts_is_told_as_any_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(**_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("loloha.cli.application.app", interrupted)
    assert main(["protocols"]) == 130
    assert capsys.readouterr().err.startswith("interrupted;")


@pytest.mark.parametrize(("code", "wanted"), [(None, 0), (3, 3), ("text", 1)])
def test_exit_codes_are_numbers(code: Any, wanted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(**_: Any) -> None:
        raise SystemExit(code)

    monkeypatch.setattr("loloha.cli.application.app", leave)
    assert main([]) == wanted


def test_what_the_reader_of_a_pipe_no_longer_wants_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "loloha", "protocols"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        done.stdout.close()
        assert b"Traceback" not in done.stderr.read()


def test_protocols(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocols", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in told] == list(REGISTRY)
    keys = {"name", "report", "rounds", "memoised", "required", "parameters", "summary"}
    assert all(row.keys() == keys for row in told)
    rows = {row["name"]: row for row in told}
    assert rows["ololoha"]["report"] == "keyed symbol"
    assert rows["ololoha"]["required"] == ["k", "eps_inf", "eps_1"]
    assert [rows[name]["rounds"] for name in ("grr", "dbitflippm", "rappor")] == [1, 1, 2]
    assert [rows[name]["memoised"] for name in ("grr", "dbitflippm")] == [False, True]

    assert main(["protocols"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, cls in REGISTRY.items():
        # One line each, however long: nothing is cut where a pipe reads.
        assert any(line.split()[:1] == [name] and cls.summary in line for line in lines)


def test_a_protocol_of_other_parameters_is_listed_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import dataclass
    from typing import ClassVar

    @dataclass(frozen=True, kw_only=True)
    class Odd(REGISTRY["grr"]):  # type: ignore[misc]
        name: ClassVar[str] = "odd"
        oddness: int

    monkeypatch.setitem(REGISTRY.own, "odd", Odd)
    assert main(["protocols", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)[-1]
    assert (row["report"], row["rounds"]) == (None, None)
    assert main(["protocols"]) == 0
    assert "odd " in capsys.readouterr().out


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    from loloha import OLOLOHA, privacy

    found = privacy.explain(OLOLOHA(k=16, eps_inf=2.0, eps_1=1.0))
    assert main(["explain", "OLOLOHA", *PARAMETERS]) == 0
    assert capsys.readouterr().out == f"{found}\n"
    assert main(["explain", "ololoha", *PARAMETERS, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.to_dict()))


def test_plan_backwards(capsys: pytest.CaptureFixture[str]) -> None:
    import loloha

    asked = ["plan", "--k", "96", "--n", "10000", "--error", "0.01", "--protocol", "ololoha"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = loloha.plan_for(error=0.01, k=96, n=10_000, protocols=["ololoha"]).rows
    assert found["rows"][0]["found"] == row.solution
    assert found["unknown"] == "eps_inf"
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert "least eps_inf" in said
    assert str(row.solution) in said
    assert main(["plan", "--k", "96", "--eps-inf", "4", "--eps-1", "1", "--visible", "0.02"]) == 0
    assert "least n" in capsys.readouterr().out
    assert main(["plan", "--k", "96", "--n", "100", "--eps-1", "1", "--error", "0.1"]) == 2
    assert "--eps-1 must come with --eps-inf" in capsys.readouterr().err


def test_plan(capsys: pytest.CaptureFixture[str]) -> None:
    import loloha

    found = loloha.plan(96, 45_222, 4.0, 2.0)
    assert main(["plan", *SURVEY, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(console.to_json(found.to_dict()))

    assert main(["plan", *SURVEY]) == 0
    told = capsys.readouterr()
    for row in found.rows:
        assert any(row.label in line for line in told.out.splitlines())
    (recommended,) = [line for line in told.out.splitlines() if line.startswith(" * ")]
    assert found.recommendation is not None
    assert recommended.startswith(f" * {found.recommendation.label} ")
    assert f"Recommended: {found.reason}" in told.out
    assert found.warning is not None
    assert told.err == f"warning: {found.warning}\n"


def test_plan_of_some_protocols_and_of_none_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["plan", "--k", "96", "--n", "45222", "--eps-inf", "2", "--eps-1", "1.9"]
    assert main([*line, "--protocol", "l-oue", "--protocol", "grr", "--level", "0.5"]) == 0
    told = capsys.readouterr().out
    assert "rappor" not in told
    assert "- l-oue: eps_1 must be below" in told
    assert "Recommended: No protocol here keeps both budgets" in told
    assert "50 % error" in told


def test_few_reports_see_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--k", "96", "--n", "1", "--eps-inf", "0.2", "--eps-1", "0.1"]) == 0
    told = capsys.readouterr()
    assert " none" in told.out
    assert "Nothing can be seen" in told.err


def test_prose_and_tables_keep_to_the_width_of_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "50")
    assert main(["protocols"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60
    assert main(["explain", "ololoha", *PARAMETERS]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 50
    assert any(line.startswith("  ") for line in lines)


def test_colour_is_for_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    console.fail("no")
    assert capsys.readouterr().err == "error: no\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    console.fail("no")
    assert "\x1b[1;31m" in capsys.readouterr().err
    monkeypatch.setenv("NO_COLOR", "1")
    console.fail("no")
    assert "31m" not in capsys.readouterr().err


def test_labels_are_shown_as_given_and_obeyed_by_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console.show_table(("value", "share"), [("[red]:smile:", 0.5), ("\x1b[31m\r\n", None)])
    out = capsys.readouterr().out
    assert "[red]:smile:" in out
    assert r"\x1b[31m\r\n" in out
    assert "\x1b" not in out
    console.show_table(("nothing",), [])


def test_json_has_no_numbers_that_json_lacks() -> None:
    from datetime import date

    content = {1: [float("nan"), float("inf"), -0.5], "d": (date(2024, 1, 2), None, True, "é")}
    assert json.loads(console.to_json(content)) == {
        "1": [None, None, -0.5],
        "d": ["2024-01-02", None, True, "é"],
    }


def test_only_long_work_shows_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at = iter([0.0, 0.3, 10.0, 13.26])
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: next(at)))
    monkeypatch.setattr(console, "LONG_ENOUGH_TO_TELL", 1.0)
    for task in ("blinking", "thinking"):
        with console.working(task):
            pass
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "thinking: 3.3 s\n")


def test_in_a_terminal_a_bar_shows_the_share(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    with console.working("counting") as share:
        for part in (0.0, 0.5, 1.0):
            share(part)
    told = capsys.readouterr()
    assert told.out == ""
    assert "counting" in told.err
    # Cleared at the end: what follows starts on a clean line.
    assert told.err.endswith("\x1b[2K")


def test_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from loloha import datasets

    assert main(["data", "list"]) == 0
    table = capsys.readouterr().out
    assert main(["data", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in told] == [entry.name for entry in datasets.CATALOGUE]
    assert all(row["name"] in table for row in told)

    asked: list[Any] = []

    def fetch(name: str, state: str | None, cache: Any, **options: Any) -> Path:
        asked.append((name, state, cache, options))
        return tmp_path

    monkeypatch.setattr(datasets, "fetch", fetch)
    assert main(["data", "fetch", "acs", "MT", "--cache", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"name": "acs", "state": "MT", "path": str(tmp_path)}
    assert main(["data", "fetch", "adult", "--url", "http://mirror", "--timeout", "3"]) == 0
    assert capsys.readouterr().out == f"{tmp_path}\n"
    assert asked == [
        ("acs", "MT", tmp_path, {"url": None, "timeout": 60.0}),
        ("adult", None, None, {"url": "http://mirror", "timeout": 3.0}),
    ]


def test_a_download_that_fails_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = ["data", "fetch", "adult", "--cache", str(tmp_path), "--url", "http://127.0.0.1:9"]
    assert main(line) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: http://127.0.0.1:9/adult.data must be reachable")
