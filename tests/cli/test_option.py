"""One meaning per option: a name means the same in every command, a meaning has one name."""

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import typer
from typer.main import get_command

import loloha
from loloha import errors
from loloha.cli import main
from loloha.cli.application import app
from loloha.cli.command import Commands
from loloha.cli.option import GROUPS, OLD, OLD_COMMANDS, OPTIONS, option
from loloha.cli.parameter import flag


def leaves(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield path.strip(), command
        return
    for name, one in below.items():
        yield from leaves(one, f"{path} {name}")


def meanings() -> dict[str, dict[tuple[Any, ...], list[str]]]:
    """Every option of the tree: what it means, and in which commands."""
    found: dict[str, dict[tuple[Any, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for path, command in leaves(get_command(app)):
        for one in command.params:
            if "--help" in one.opts or one.param_type_name != "option":
                continue
            said = one.help.removesuffix(" Repeat it for more.")
            kind = one.type_descriptor.annotation
            kind = get_args(kind)[0] if get_origin(kind) is list else kind
            found[" ".join(one.opts)][(kind, one.metavar, said, one.rich_help_panel)].append(path)
    return found


def test_a_name_has_one_meaning_and_a_meaning_one_name() -> None:
    found = meanings()
    assert len(found) > 80
    assert {name: kinds for name, kinds in found.items() if len(kinds) > 1} == {}
    said = [next(iter(kinds))[2] for kinds in found.values()]
    assert all(said)
    assert sorted(one for one in said if said.count(one) > 1) == []


PANELS = {
    "Parameters of the protocol": "--b --calibration --d --eps --eps-1 --eps-inf --g --hash --k "
    "--m0 --memo --target",
    "Planning backwards": "--all-values --error --visible",
    "Planning for any window": "--loss --window",
    "Rounds": "--every --seconds --start --until",
    "The collector's terms": "--assign-keys --early-seconds --keep-days --late-seconds "
    "--minimum-cohort --publish-every --token",
    "The table": "--data-dir --layout --on-unknown --round --user --value",
    "Values": "--bins --domain --number --other --range",
}


def test_help_groups_what_belongs_together_and_counts_have_a_least_value() -> None:
    panels, least = defaultdict(set), {}
    for _, command in leaves(get_command(app)):
        for one in command.params:
            panels[one.rich_help_panel].add(one.opts[0])
            if (bound := getattr(one, "min", None)) is not None:
                least[one.opts[0]] = bound
    del panels[None]
    assert {panel: " ".join(sorted(names)) for panel, names in panels.items()} == PANELS
    assert least == {"--batch": 1, "--first": 0, "--population": 1, "--rounds": 1, "--users": 1}


def test_a_command_that_offers_a_file_reads_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # `export` and `campaign pause` offered one, and asked for an address when they got it.
    line = [
        "campaign",
        "create",
        "c",
        "--protocol",
        "ololoha",
        "--domain",
        "a,b",
        "--eps-inf",
        "2",
        "--eps-1",
        "1",
    ]
    assert main(line) == 0
    file = tmp_path / "campaign.json"
    file.write_text(capsys.readouterr().out)
    offering = [
        path
        for path, command in leaves(get_command(app))
        for one in command.params
        if one.param_type_name == "argument" and "FILE" in str(one.metavar).split("|")[1:]
    ]
    assert "campaign show" in offering
    for path in offering:
        assert main([*path.split(), str(file)]) == 0
    capsys.readouterr()


def test_the_table_holds_what_commands_take_and_no_more() -> None:
    arguments = {
        one.name.removeprefix("as_").rstrip("_")
        for _, command in leaves(get_command(app))
        for one in command.params
    }
    assert OPTIONS.keys() - arguments == set()
    # What the registry describes is described there alone.
    assert not OPTIONS.keys() & {*GROUPS["parameters"](), "k"}


def test_a_command_cannot_mean_something_else() -> None:
    def unknown(*, sede: int | None = None) -> None: ...

    def another(*, seed: str | None = None) -> None: ...

    with pytest.raises(KeyError, match="sede"):
        Commands().command()(unknown)
    with pytest.raises(TypeError, match="option seed must be"):
        Commands().command()(another)


def test_no_text_of_the_library_names_an_option_of_the_command_line() -> None:
    """Except for commands that are printed whole: of ours, of createdb, of pip."""
    source = Path(loloha.__file__).parent
    complete = {"planning/creation.py", "collector/store/server.py", "collector/dashboard/asset.py"}
    wrong = [
        f"{name}: {node.value}"
        for path in source.rglob("*.py")
        if (name := path.relative_to(source).as_posix()).partition("/")[0] != "cli"
        and name not in complete
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and re.search(r"(?<![\w-])--[a-z]", str(node.value))
    ]
    assert wrong == []


def test_an_option_of_many_values_says_so() -> None:
    commands = dict(leaves(get_command(app)))
    several = {one.opts[0]: one for one in commands["compare"].params}["--eps-inf"]
    assert several.multiple
    assert several.help.endswith("Repeat it for more.")


@pytest.mark.parametrize("old", OLD)
def test_an_old_spelling_is_taken_with_a_warning(
    old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    new = OLD[old]
    having = [c for _, c in leaves(get_command(app)) if any(new in one.opts for one in c.params)]
    having = [c for c in having if not any(old in one.opts for one in c.params)]
    assert having
    for command in having:
        for line in ([old, "3"], [f"{old}=3"]):
            values, _, _ = command.make_parser(typer.Context(command)).parse_args(list(line))
            assert [one for one in values.values() if one is not None] == ["3"]
            assert f"warning: {old} is {new} since 0.3" in capsys.readouterr().err
        values, rest, _ = command.make_parser(typer.Context(command)).parse_args(["--", old])
        assert old in str(rest) + str(values)
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("old", OLD_COMMANDS)
def test_an_old_command_leads_on_with_a_warning(
    old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([old, "--help"]) == 0
    shown = capsys.readouterr()
    assert f"warning: {old} is {OLD_COMMANDS[old]} since 0.3" in shown.err
    assert main([OLD_COMMANDS[old], "--help"]) == 0
    usage, *rest = capsys.readouterr().out.strip().splitlines()
    assert OLD_COMMANDS[old] in usage
    assert rest == shown.out.strip().splitlines()[1:]


def test_an_old_and_a_new_spelling_are_two_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["campaign", "create", "x", "--protocol", "grr", "--eps", "1", "--domain", "a,b"]
    assert main([*line, "--labels", "a,c"]) == 2
    assert "--domain must be given once" in capsys.readouterr().err


def test_no_campaign_is_made_that_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["campaign", "create", "x", "--protocol", "grr", "--eps", "1", "--domain", "a,b"]
    assert main([*line, "--start", "2020-01-01T00:00:00Z", "--until", "2020-02-01"]) == 2
    assert "until must be in the future" in capsys.readouterr().err


def test_a_day_is_its_beginning_in_utc(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["campaign", "create", "x", "--protocol", "grr", "--eps", "1", "--domain", "a,b"]
    line += ["--accept-weak-privacy"]
    assert main([*line, "--start", "2026-01-05", "--until", "2126-01-07", "--json"]) == 0
    schedule = json.loads(capsys.readouterr().out)["campaign"]["round"]
    assert (schedule["start"], schedule["expires"]) == (
        "2026-01-05T00:00:00Z",
        "2126-01-07T00:00:00Z",
    )


def test_no_error_of_the_library_names_an_option_of_the_shell() -> None:
    """The command line translates; Python's users have no options."""
    named = {flag(name) for name in (*OPTIONS, *GROUPS["parameters"](), "k")} | {*OLD}
    source = Path(loloha.__file__).parent
    # The command that makes a campaign is a result of planning, and is typed into a shell.
    printed = {source / "planning" / "creation.py"}
    found = [
        f"{path.relative_to(source)}:{number}"
        for path in sorted(source.rglob("*.py"))
        if source / "cli" not in path.parents and path not in printed
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if any(word.strip("`'\"(),.;:") in named for word in line.split())
    ]
    assert found == []


@pytest.mark.parametrize(
    ("argument", "written"),
    [
        ("guard=True", "without --trust-log"),
        ("name it (source=...)", "name it by --source"),
        ("accept_clock=True", "--accept-clock"),
        ("delete it (AgreementFile.erase)", "delete it by `loloha report"),
    ],
)
def test_errors_name_options_instead_of_arguments(
    argument: str, written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from loloha.cli import console

    console.fail(str(errors.LolohaError(f"it must be so; {argument}")))
    assert written in capsys.readouterr().err


def test_help_cites_nothing_that_users_do_not_have() -> None:
    for path, command in leaves(get_command(app)):
        text = " ".join([command.help, *(one.help or "" for one in command.params)])
        assert "MATH" not in text, path


@pytest.mark.parametrize("columns", [None, "60"])
def test_piped_tables_fit(
    columns: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    survey = ["plan", "--k", "96", "--n", "50000", "--eps-inf", "2", "--eps-1", "1"]
    for line in (survey, [*survey, "--wide"], ["protocols"], ["data", "list"]):
        assert main(line) == 0
        table = capsys.readouterr().out.partition("\n- ")[0]
        assert max(map(len, table.splitlines())) <= int(columns or 80), line


def test_a_plan_shows_first_what_decides(capsys: pytest.CaptureFixture[str]) -> None:
    survey = ["plan", "--k", "96", "--n", "50000", "--eps-inf", "2", "--eps-1", "1"]
    assert main(survey) == 0
    few = capsys.readouterr().out.partition("\n- ")[0]
    assert main([*survey, "--wide"]) == 0
    wide = capsys.readouterr().out.partition("\n- ")[0]
    assert few.count("* ololoha") == 1
    assert "V*" not in few
    assert "V*" in wide


def test_every_entry_has_a_use() -> None:
    assert option("as_json") is OPTIONS["json"]
    assert option("range_") is OPTIONS["range"]
    with pytest.raises(KeyError):
        option("nothing")
