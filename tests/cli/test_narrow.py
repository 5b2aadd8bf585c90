"""Tables in a narrow terminal, and what a plan says to type next."""

import re
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import loloha
from loloha.cli import console
from loloha.cli.application import app
from loloha.planning import planning


def narrow(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    def made(stderr: bool = False) -> Console:
        return Console(
            stderr=stderr, markup=False, highlight=False, emoji=False, force_terminal=True,
            width=width, color_system=None,
        )  # fmt: skip

    monkeypatch.setattr(console, "_console", made)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_plan_breaks_no_number_in_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    narrow(monkeypatch, width)
    asked = "plan --k 96 --n 50000 --eps-inf 2 --eps-1 1 --wide"
    done = CliRunner().invoke(app, asked.split())
    assert done.exit_code == 0, done.output
    table = done.stdout.partition("\n- ")[0].splitlines()
    assert all(len(line) <= width for line in table[2:])
    row = " ".join(line for line in table if "* ololoha" in line)
    best = planning.plan(96, 50000, 2.0, 1.0).recommendation
    assert best is not None
    for number in (best.variance, best.eps_2, best.cap, best.shared):
        assert re.search(rf"(?<!\S){re.escape(f'{number:.5g}')}|{number:.3g}(?!\S)", row), number


def test_each_part_of_a_table_names_its_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow(monkeypatch, 80)
    names = ("protocol", "eps_inf", *(f"number_{i}" for i in range(10)))
    rows = [(f"p{r}", 0.5 + r, *(r + 0.12345 * i for i in range(10))) for r in range(3)]
    console.show_table(names, rows, keys=2)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    for r, cells in enumerate(rows):
        mine = [line.split() for line in lines if line.split()[:1] == [f"p{r}"]]
        assert len(mine) == 2
        assert all(words[1] == console.shorten(cells[1]) for words in mine)
        found = [word for words in mine for word in words[2:]]
        assert found == [console.shorten(cell) for cell in cells[2:]]


def test_a_long_label_folds_and_leaves_numbers_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow(monkeypatch, 40)
    console.show_table(("value", "share"), [("label " * 20, 0.123456789)])
    out = capsys.readouterr().out
    assert "0.12346" in out
    assert max(map(len, out.splitlines())) <= 40
    assert out.count("label") == 20


@pytest.mark.parametrize("n", [5_000, 50_000])
def test_a_plan_says_what_makes_the_recommended_protocol(n: int) -> None:
    asked = f"plan --k 96 --n {n} --eps-inf 2 --eps-1 1".split()
    said = CliRunner().invoke(app, asked).stdout
    best = planning.plan(96, n, 2.0, 1.0).recommendation
    assert best is not None
    python = re.search(r"^In Python: (.*)$", said, re.M)
    assert python is not None
    assert eval(python[1], {"loloha": loloha}) == best.protocol
    shell = re.search(r"^As a campaign: loloha (.*)$", said, re.M)
    assert shell is not None
    made = CliRunner().invoke(app, [*shell[1].split(), "--json"])
    assert made.exit_code == 0, made.output
    document: dict[str, Any] = console.json.loads(made.stdout)["campaign"]
    assert best.protocol is not None
    assert document["protocol"] == best.protocol.to_dict()
