"""What a plan recommends is what everything else takes: the printed command and Python make it."""

import json
import random
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loloha
from loloha.cli import main
from loloha.planning.prospect import prospect
from loloha.planning.recommendation import Plan
from loloha.protocols import REGISTRY

CASES = 25
WEAK = ["plan", "--k", "5", "--n", "40", "--eps-inf", "6", "--eps-1", "5"]
SMALL, LARGEST_SIMULATED = {2, 3, 5, 50}, 300


def surveys() -> list[dict[str, Any]]:
    """Random ones (seed 19): any two of the three losses, any level of privacy, any size."""
    rng = random.Random(19)
    found = []
    for case in range(CASES):
        first = round(10 ** rng.uniform(-2, 1), rng.choice((1, 3, 15))) or 0.1
        more = first * rng.uniform(1.05, 4)
        held = (("eps_1", "eps_inf"), ("eps_1", "eps_2"), ("eps_2", "eps_inf"))[case % 4 % 3]
        budgets = dict(zip(held, (first, more), strict=True))
        k = rng.choice((2, 3, 5, 12, 50, 96, 257, 1412, 30_000, 1 << 20))
        n = int(10 ** rng.uniform(0, 7))
        extra: dict[str, Any] = {"objective": rng.choice(("cap", "cap", "round"))}
        if rng.random() < 0.3:
            extra["hash"] = rng.choice(("linear", "prime", "affine"))
        if rng.random() < 0.3:
            extra["protocols"] = rng.sample(sorted(REGISTRY), 6)
        if held == ("eps_1", "eps_inf") and rng.random() < 0.2:
            extra["calibration"] = "published"
        found.append({"k": k, "n": n, **budgets, **extra})
    return found


@pytest.mark.parametrize("survey", [
    pytest.param(one, marks=[pytest.mark.long] * (one["k"] not in SMALL)) for one in surveys()
], ids=lambda one: f"k{one['k']}-n{one['n']}")  # fmt: skip
def test_what_is_printed_makes_what_is_recommended(
    survey: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        plan = loloha.plan(**survey)
    except loloha.ParameterError:
        pytest.skip("no protocol can hold these")
    made = plan.to_dict()
    best = plan.recommendation
    if best is None:
        assert made["command"] is None
        return
    protocol: Any = best.protocol
    program, *arguments = shlex.split(made["command"])
    assert program == "loloha"
    assert main([*arguments, "--json"]) == 0
    campaign = json.loads(capsys.readouterr().out)["campaign"]
    assert campaign["protocol"] == protocol.to_dict()
    # Names and literals alone: the Python that was printed.
    assert eval(made["python"], {"loloha": loloha}) == protocol
    assert best.report_bytes <= 64_000 or "protocols" in survey
    options = made["command"].partition(f"--protocol {protocol.name} ")[2].partition(" --range")[0]
    asked = ["explain", protocol.name, "--k", str(protocol.k), *shlex.split(options)]
    if protocol.k <= LARGEST_SIMULATED:
        assert main([*asked, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["protocol"] == protocol.to_dict()
        values = np.arange(20).reshape(10, 2) % protocol.k
        assert loloha.simulate(protocol, values, rng=1).n.tolist() == [10, 10]


def test_weak_privacy_is_accepted_in_the_command_and_warned_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*WEAK, "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert "--accept-weak-privacy" in plain["command"]
    assert main(WEAK) == 0
    shown = capsys.readouterr()
    assert plain["command"] in shown.out
    assert "eps_inf = 6 is above the limit of 5" in shown.err


def test_a_recommended_protocol_is_compared_at_its_own_budgets() -> None:
    protocol: Any = loloha.plan(5, 40, 6.0, 5.0).recommendation.protocol  # type: ignore[union-attr]
    data = loloha.datasets.table(np.arange(80).reshape(40, 2) % 5, domain=range(5))
    rows = loloha.compare(data, ["l-grr", protocol], [1.0, 2.0], runs=1).rows
    assert [(row["protocol"], row["eps_inf"]) for row in rows] == [
        ("l-grr", 1.0), ("l-grr", 2.0), (repr(protocol), 6.0),
    ]  # fmt: skip


@pytest.mark.long
def test_the_whole_way_from_a_plan_to_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*WEAK, "--json"]) == 0
    words = shlex.split(json.loads(capsys.readouterr().out)["command"])
    table = tmp_path / "table.csv"
    table.write_text("user,r0,r1\n" + "\n".join(f"{u},{u % 5},{u % 5}" for u in range(40)))
    options = words[words.index("--protocol") : words.index("--range")]
    where = ["--domain", "0,1,2,3,4", "--out", str(tmp_path / "out")]
    assert main(["run", str(table), *options, *where, "--json"]) == 0


def test_parameters_that_follow_only_from_the_default_g_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The family that the default g has may not be the one that another g has by default."""
    for own in (
        loloha.OLOLOHA(k=20, eps_inf=4.0, eps_1=2.0, g=7, hash="affine"),
        loloha.OLOLOHA(k=20, eps_inf=5.0, eps_1=3.0, calibration="published", g=13, hash="prime"),
        loloha.OLOLOHA(k=20, eps_inf=4.0, eps_1=2.0, g=4, memo="joint", m0=0.0),
        loloha.DBitFlipPM(k=20, eps_inf=2.0, b=10, d=1, calibration="published"),
    ):
        plan = loloha.plan(20, 1000, 5.0, 4.0, protocols=[own])
        row = prospect(own, 1000)
        alone = Plan(20, 1000, 5.0, 4.0, 0.95, "tight", "cap", (replace(row, eligible=True),))
        made = alone.to_dict()
        assert plan.rows[0].protocol == own
        assert eval(made["python"], {"loloha": loloha}) == own
        assert main([*shlex.split(made["command"])[1:], "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["campaign"]["protocol"] == own.to_dict()
