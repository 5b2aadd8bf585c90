"""What `explain`, `plan` and `audit` print, computed once more from the formulas of the maths."""

import math
import re
from typing import Any

import pytest

import formulas
import loloha
from loloha import privacy
from loloha.cli import main

K, EPS_INF, EPS_1 = 96, 2.0, 1.0
SYMBOLS = {"biloloha": 2, "ololoha": 3, "l-grr": K}
BITS = ("rappor", "l-osue")


def numbers(text: str, pattern: str) -> list[float]:
    return [float(one) for one in re.findall(pattern, text)]


def loss_after(name: str, t: int) -> float:
    """eps_t of section 8."""
    if name in SYMBOLS:
        g = SYMBOLS[name]
        (p1, q1), (p2, q2) = formulas.symbol_rounds(EPS_INF, EPS_1, g, published=False)
        likely = p1 * p2**t + (g - 1) * q1 * q2**t
        return math.log(likely / (q1 * p2**t + p1 * q2**t + (g - 2) * q1 * q2**t))
    (p1, q1), (p2, q2) = formulas.bit_rounds(name, EPS_INF, EPS_1)

    def chance(is_set: float, sent: float, unsent: float) -> float:
        return is_set * sent**t + (1 - is_set) * unsent**t

    ones = chance(p1, p2, q2) / chance(q1, p2, q2)
    return math.log(ones * chance(q1, 1 - p2, 1 - q2) / chance(p1, 1 - p2, 1 - q2))


def row_of(name: str) -> dict[str, Any]:
    """The cell of a measured page that these parameters would be."""
    return {
        "contender": name,
        "g": SYMBOLS.get(name),
        "eps_inf": EPS_INF,
        "alpha": EPS_1 / EPS_INF,
        "calibration": "tight",
        "hash": None if name == "l-grr" else "linear",
    }


@pytest.mark.parametrize("name", [*SYMBOLS, *BITS])
def test_explain(name: str) -> None:
    text = privacy.explain(loloha.protocol(name, k=K, eps_inf=EPS_INF, eps_1=EPS_1)).text
    shown = {int(t): float(eps) for eps, t in re.findall(r"(\d+(?:\.\d+)?) after (\d+)", text)}
    assert shown == {t: pytest.approx(loss_after(name, t), rel=6e-4) for t in (1, 2, 5, 10, 100)}
    once = formulas.round_loss(row_of(name), K)
    (windows,) = re.findall(r"Any w rounds, all others known: (.*)\.", text)
    assert numbers(windows, r"(\d+(?:\.\d+)?) for") == pytest.approx(
        [once, 2 * once, 10 * once], rel=6e-4
    )
    odds = re.findall(r"e\^(\d+(?:\.\d+)?) = (\d+(?:\.\d+)?)", text)
    for eps, factor in odds:
        assert float(factor) == pytest.approx(math.exp(float(eps)), rel=2e-3)
    promised = [EPS_1, EPS_INF, *([once] if name in SYMBOLS else [])]
    assert [float(eps) for eps, _ in odds] == pytest.approx(promised, rel=6e-4)
    cells = SYMBOLS.get(name, K)
    assert numbers(text, r"cap = (\d+(?:\.\d+)?)") == [cells * EPS_INF]
    if name in SYMBOLS:
        area = formulas.area_of_one_report(row_of(name), K)
        shown = numbers(text, r"(\d\.\d+) at T = 1[,;]")
        assert shown == pytest.approx([area, area], abs=1e-3)


def test_plan() -> None:
    names = [*SYMBOLS, *BITS]
    rows = loloha.plan(K, 50_000, eps_inf=EPS_INF, eps_1=EPS_1, protocols=names).rows
    seen = {row.protocol.name: row for row in rows}
    for name in names:
        row = seen[name]
        if name == "ololoha":
            continue  # of another family here, with another g
        assert row.eps_round == pytest.approx(formulas.round_loss(row_of(name), K), rel=1e-6)
        assert row.cap == SYMBOLS.get(name, K) * EPS_INF


def test_audit(capsys: Any) -> None:
    line = ["audit", "biloloha", "--k", "8", "--eps-inf", "2", "--eps-1", "1", "--users", "100"]
    assert main(line) == 0
    shown = dict(
        re.findall(r"^ +(eps_\w+|eps_t, t = 2) +(\d+(?:\.\d+)?)", capsys.readouterr().out, re.M)
    )
    wanted = {
        "eps_1": EPS_1,
        "eps_t, t = 2": loss_after("biloloha", 2),
        "eps_inf": EPS_INF,
        "eps_2": formulas.round_loss(row_of("biloloha"), K),
    }
    assert {name: float(number) for name, number in shown.items()} == pytest.approx(
        wanted, rel=1e-3
    )
