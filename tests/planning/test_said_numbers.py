"""What `explain`, `plan` and `audit` print, computed once more from the formulas of the maths."""

import math
import re
from typing import Any

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

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
    return formulas.loss_after(name, EPS_INF, EPS_1, t, SYMBOLS.get(name))


def row_of(name: str) -> dict[str, Any]:
    """The cell of a measured page that these parameters would be."""
    return {
        "protocol": name,
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


def shown_areas(name: str) -> dict[int, float]:
    text = privacy.explain(loloha.protocol(name, k=K, eps_inf=EPS_INF, eps_1=EPS_1)).text
    (line,) = re.findall(r"T after: ((?:at most )?\d\.\d+ at T.*); 0\.5 is chance", text)
    found = {int(t): float(one) for one, t in re.findall(r"(\d\.\d+) at T = (\d+)", line)}
    assert found.keys() == {1, 10, 100}
    return found


def drawn(name: str, reports: int, cases: int) -> tuple[float, float]:
    """AUC of a drawn population, and its standard error, each likelihood summed over all memos."""
    rng = np.random.default_rng(5)
    g = SYMBOLS[name]
    (p1, q1), (p2, q2) = formulas.symbol_rounds(EPS_INF, EPS_1, g, published=False)
    first, second = (np.full((g, g), q) + (p - q) * np.eye(g) for p, q in ((p1, q1), (p2, q2)))
    scores = []
    for moved in (False, True):
        value = rng.integers(g, size=cases)
        memo = [np.array([rng.choice(g, p=first[x]) for x in value])]
        other = (value + rng.integers(1, g, size=cases)) % g
        memo.append(np.array([rng.choice(g, p=first[x]) for x in other]) if moved else memo[0])
        shown = [
            (p2 / q2) ** np.array([rng.multinomial(reports, second[x]) for x in part])
            for part in memo
        ]
        told = [part @ first for part in shown]
        apart = told[0].sum(axis=1) * told[1].sum(axis=1) - (told[0] * told[1]).sum(axis=1)
        scores.append(apart / (g - 1) / (shown[0] * shown[1]).sum(axis=1))
    stayed, changed = scores
    found = mannwhitneyu(changed, stayed).statistic / cases**2
    return found, math.sqrt(found * (1 - found) / cases)


@pytest.mark.parametrize("name", SYMBOLS)
def test_a_change_of_symbols_shows_after_many_reports(name: str) -> None:
    """Over all counts where they are few; in the limit, and how far that is, where they are not."""
    g, row, shown = SYMBOLS[name], row_of(name), shown_areas(name)
    _, (p2, q2) = formulas.symbol_rounds(EPS_INF, EPS_1, g, published=False)
    limit = formulas.area_in_the_limit(row, K)
    for t in (10, 100):
        # The most frequent symbol is not the memo, of one stretch or the other, by Chernoff.
        misread = 2 * (g - 1) * (1 - (math.sqrt(p2) - math.sqrt(q2)) ** 2) ** t
        if math.comb(t + g - 1, g - 1) < 200:
            exact = formulas.area_of_reports(row, K, t)
            assert shown[t] == pytest.approx(exact, abs=1e-3 + 8 * 3e-4 * (g > 2))
            assert limit - misread <= exact <= limit
        elif misread < 1e-4:
            # What is a bound is rounded up.
            assert limit - misread - 5e-4 <= shown[t] <= limit + 1e-3
        else:
            found, error = drawn(name, t, 4000)
            assert shown[t] == pytest.approx(found, abs=1e-3 + 4 * (error + 2.4e-3))


@pytest.mark.parametrize("name", BITS)
def test_a_change_of_bits_shows_after_many_reports(name: str) -> None:
    """By a test that is not the best: what it sees the best one does."""
    rng, cases, shown = np.random.default_rng(6), 2000, shown_areas(name)
    (_, q1), (p2, q2) = formulas.bit_rounds(name, EPS_INF, EPS_1)
    for t in (1, 10, 100):
        ones = [np.arange(t + 1) * math.log(p) for p in (p2, q2)]
        both = [
            one + np.arange(t, -1, -1) * math.log1p(-p)
            for one, p in zip(ones, (p2, q2), strict=True)
        ]
        set_, unset = (np.exp(one) for one in both)
        scores = []
        for moved in (False, True):
            memo = rng.random((cases, K)) < q1
            before = rng.binomial(t, np.where(memo, p2, q2))
            memo = rng.random((cases, K)) < q1 if moved else memo
            after = rng.binomial(t, np.where(memo, p2, q2))
            apart = [q1 * set_[part] + (1 - q1) * unset[part] for part in (before, after)]
            joint = q1 * set_[before] * set_[after] + (1 - q1) * unset[before] * unset[after]
            scores.append(np.log(apart[0] * apart[1] / joint).sum(axis=1))
        found = mannwhitneyu(scores[1], scores[0]).statistic / cases**2
        error = math.sqrt(found * (1 - found) / cases)
        assert shown[t] == pytest.approx(found, abs=1e-3 + 8 * error)


def test_one_table_for_life() -> None:
    protocol = loloha.OLOLOHA(k=K, g=4, eps_inf=EPS_INF, eps_1=EPS_1, memo="joint", hash="prime")
    text = privacy.explain(protocol).text
    losses = [formulas.joint_loss(EPS_INF, 4, m) for m in (1, 2, 3, 4)]
    (listed,) = re.findall(r"them is at most (.*) where 1, 2, \.\.\. distinct", text)
    assert numbers(listed, r"(\d+(?:\.\d+)?)") == pytest.approx(losses, rel=6e-4)
    assert numbers(text, r"cap = (\d+\.\d+)") == pytest.approx(losses[3:], rel=6e-4)
    assert numbers(text, r"exchanged = (\d+\.\d+)") == pytest.approx(losses[2:3], rel=6e-4)
    assert numbers(text, r"can be (\d+\.\d+) where two") == pytest.approx(losses[1:2], rel=6e-4)
    row = row_of("ololoha") | {"g": 4, "protocol": "ololoha-joint", "hash": "prime"}
    once = formulas.area_of_one_report(row, K)
    change = privacy.change_auc(protocol, 1)
    assert change is not None
    assert change.auc == pytest.approx(once, abs=1e-9)


def test_plan() -> None:
    names = [*SYMBOLS, *BITS]
    rows = loloha.plan(K, 50_000, eps_inf=EPS_INF, eps_1=EPS_1, protocols=names).rows
    seen = {row.protocol.name: row for row in rows}
    for name in names:
        row = seen[name]
        if name == "ololoha":
            continue  # of another family here, with another g
        assert row.eps_2 == pytest.approx(formulas.round_loss(row_of(name), K), rel=1e-6)
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
