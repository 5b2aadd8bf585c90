"""The options of a protocol come from its fields and their documentation, whoever wrote it."""

import json
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import pytest
import typer
from typer.testing import CliRunner

from loloha import LGRR, OLOLOHA, DBitFlipPM, LolohaError
from loloha.cli import main, parameter
from loloha.cli.command import Commands
from loloha.protocols import REGISTRY


@dataclass(frozen=True, kw_only=True)
class Odd(LGRR):
    """A protocol that no command line has heard of.

    Parameters
    ----------
    oddness : int
        How odd
        it is.
    mood : {"calm", "wild"}, optional
        Its mood.
    """

    name: ClassVar[str] = "odd"
    oddness: int
    mood: str | None = None


def app_with() -> typer.Typer:
    app = Commands()

    @app.command()
    def show(name: str, *, force: bool = False, parameters: dict[str, Any]) -> None:
        """Print what was given."""
        typer.echo((name, force, parameters))

    return app


def test_every_parameter_of_every_protocol_is_an_option() -> None:
    names = parameter.names()
    assert len(names) == len(set(names))
    assert set(names) == {one.name for cls in REGISTRY.values() for one in fields(cls)}
    text = CliRunner().invoke(app_with(), ["--help"], env={"COLUMNS": "200"}).stdout
    for name in {*names} - {"k"}:
        assert parameter.flag(name) in text


def test_only_what_is_given_is_passed_on_with_its_type() -> None:
    run = CliRunner()
    line = ["x", "--eps-inf", "2", "--g", "3", "--hash", "affine", "--force"]
    assert run.invoke(app_with(), line).stdout == (
        "('x', True, {'eps_inf': 2.0, 'hash': 'affine', 'g': 3})\n"
    )
    assert run.invoke(app_with(), ["x"]).stdout == "('x', False, {})\n"
    assert run.invoke(app_with(), ["x", "--g", "3.5"]).exit_code == 2
    assert run.invoke(app_with(), ["x", "--k", "3"]).exit_code == 2


def test_a_new_protocol_needs_no_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY.own, "odd", Odd)
    run = CliRunner()
    line = ["x", "--oddness", "7", "--mood", "wild"]
    assert run.invoke(app_with(), line).stdout == "('x', False, {'oddness': 7, 'mood': 'wild'})\n"
    text = run.invoke(app_with(), ["--help"], env={"COLUMNS": "200"}).stdout
    assert "How odd it is. For odd." in text
    assert "calm|wild" in text
    with pytest.raises(LolohaError, match="must include --oddness, got none"):
        parameter.find_protocol("odd", {"eps_inf": 1.0, "eps_1": 0.5})


def test_documentation_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    # As under python -OO.
    for cls in {one for protocol in REGISTRY.values() for one in protocol.__mro__[:-1]}:
        if "__doc__" in vars(cls) and cls.__module__.startswith("loloha"):
            monkeypatch.setattr(cls, "__doc__", None)
    line = ["x", "--eps-1", "1"]
    assert CliRunner().invoke(app_with(), line).stdout == "('x', False, {'eps_1': 1.0})\n"


def test_the_right_class_is_found() -> None:
    given = {"eps_inf": 2.0, "eps_1": 1.0}
    assert parameter.find_protocol("OLOLOHA", given) is OLOLOHA
    assert parameter.required(DBitFlipPM) == ["k", "eps_inf"]


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("laplace", {}, "protocol must be one of grr, .*, got 'laplace'"),
        ("grr", {"eps": 1.0, "k": 3}, "among --eps, got --k"),
        ("grr", {"eps_inf": 1.0, "g": 2}, "among --eps, got --eps-inf, --g"),
        ("ololoha", {"eps_inf": 1.0}, "must include --eps-1"),
        ("ololoha", {}, "must include --eps-inf, --eps-1"),
    ],
)
def test_what_does_not_go_together_is_named(
    name: str, parameters: dict[str, Any], says: str
) -> None:
    with pytest.raises(LolohaError, match=says):
        parameter.find_protocol(name, parameters)


def test_numbers_are_asked_for_of_domains_that_have_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    create = ["campaign", "create", "Hours", "--eps-inf", "2", "--eps-1", "1"]
    number = [*create, "--number", "--range", "0", "24", "--bins", "96"]
    # With thresholds the variance is the least, range² · 1.004 / n; without them the worst is said.
    for more, target, error in (
        ([], "distribution", "1.39"),
        (["--target", "mean"], "mean", "1.5"),
    ):
        assert main([*number, *more, "--n", "20000"]) == 0
        out, err = capsys.readouterr()
        protocol = json.loads(out)["protocol"]
        assert (protocol["type"], protocol["target"]) == ("onebit", target)
        assert f"95 % error of the mean {error} % of the range" in err
    for wrong, said in (
        ([*create, "--number", "--domain", "a,b,c"], "--number must come with a --range"),
        ([*number, "--other", "else"], "--number must come with a --range"),
        ([*number, "--protocol", "grr"], "--protocol must be onebit with --number"),
        ([*create, "--domain", "1,2,3"], "--protocol must be given"),
    ):
        assert main(wrong) == 2
        assert said in capsys.readouterr().err


def test_an_option_says_what_it_means_for_every_protocol_that_has_it() -> None:
    """--calibration told of g alone, which is what it means for one protocol of five."""
    for name in parameter.names():
        text = parameter.described(name)[1]
        for cls in REGISTRY.values():
            if name in parameter.parameters_of(cls):
                entry = parameter._entry(parameter._described_by(cls, name), name)
                assert entry is not None
                assert entry[1] in text
    said = parameter.described("calibration")[1]
    assert "l-grr, biloloha, ololoha:" in said
    assert "dbitflippm:" in said
