"""One table for life: every bound on histories, against everything that could be sent."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import loloha
from laws import oracle
from loloha.privacy import transcript
from loloha.privacy.change import change_auc

TABLES = [
    loloha.BiLOLOHA(k=4, eps_inf=2.0, eps_1=1.0, memo="joint"),
    loloha.BiLOLOHA(k=4, eps_inf=1.0, eps_1=0.5, memo="joint", m0=0.0),
    loloha.OLOLOHA(k=9, g=3, eps_inf=2.0, eps_1=1.0, memo="joint"),
    loloha.OLOLOHA(k=9, g=3, eps_inf=2.0, eps_1=1.9, memo="joint", m0=0.0),
]


def transcripts(protocol: Any, cells: tuple[int, ...]) -> dict[Any, float]:
    """Law of all that is sent from these memo cells, from the table's law and the second round."""
    second = [oracle.second_round(protocol, kept) for kept in range(protocol.g)]
    law: dict[Any, float] = {}
    for table, chance in oracle.tables_law(protocol).items():
        for sent in itertools.product(range(protocol.g), repeat=len(cells)):
            shown = math.prod(float(second[table[c]][y]) for c, y in zip(cells, sent, strict=True))
            law[sent] = law.get(sent, 0.0) + float(chance) * shown
    return law


def pattern(cells: tuple[int, ...]) -> tuple[int, ...]:
    """Which rounds are alike."""
    return tuple(cells.index(cell) for cell in cells)


@pytest.mark.parametrize("protocol", TABLES, ids=repr)
def test_tables_keep_every_bound_of_histories(protocol: Any) -> None:
    """All pairs of histories: the shipped exact loss is the enumerated one, within all bounds."""
    t = 4 if protocol.g == 2 else 3
    histories = list(itertools.product(range(protocol.g), repeat=t))
    laws = {cells: transcripts(protocol, cells) for cells in histories}
    once, key = transcript.eps_2(protocol), 1
    # Under this key the values 0..g-1 are the cells themselves.
    assert [protocol.memo_index(key, v) for v in range(protocol.g)] == list(range(protocol.g))
    for one, two in itertools.combinations(histories, 2):
        exact = max(abs(math.log(laws[one][y] / laws[two][y])) for y in laws[one])
        found = transcript.loss_between(protocol, one, two, key=key)
        assert found.exact == pytest.approx(exact, abs=1e-9)
        assert exact <= found.bound + 1e-9
        differing = sum(a != b for a, b in zip(one, two, strict=True))
        assert exact <= differing * once + 1e-9
        if pattern(one) == pattern(two):
            assert exact <= protocol.spent(len(set(one))) + 1e-9
    changing = transcript.worst_loss(protocol, t, t)
    assert changing.lower <= changing.upper


def test_the_price_of_a_table_is_attained() -> None:
    """One of two cells exchanged for another one costs more than eps_inf, and up to B_2."""
    rounds = 12
    one, two = [0] * rounds + [1] * rounds, [0] * rounds + [2] * rounds
    joint = loloha.OLOLOHA(k=9, g=3, eps_inf=2.0, eps_1=1.9, memo="joint")
    apart = loloha.OLOLOHA(k=9, g=3, eps_inf=2.0, eps_1=1.9)
    price = transcript.loss_between(joint, one, two, key=1)
    usual = transcript.loss_between(apart, one, two, key=1)
    assert usual.exact is not None
    assert usual.exact <= 2.0 + 1e-9
    assert price.exact == pytest.approx(joint.spent(2), abs=1e-3)
    assert price.exact > 1.5 * usual.exact


def test_changes_show_as_they_did_and_more_without_one_symbol_for_all() -> None:
    budgets = {"k": 96, "eps_inf": 2.0, "eps_1": 1.0, "g": 4, "hash": "prime"}
    apart = loloha.OLOLOHA(**budgets)
    for reports in (1, 10):
        usual = change_auc(apart, reports)
        joint = change_auc(loloha.OLOLOHA(**budgets, memo="joint"), reports)
        bare = change_auc(loloha.OLOLOHA(**budgets, memo="joint", m0=0.0), reports)
        assert usual is not None
        assert joint is not None
        assert bare is not None
        # Cells of 24 and of 25 values; what is drawn has four errors added.
        room = 8 * (joint.error + usual.error) + 2e-4
        assert joint.auc == pytest.approx(usual.auc, abs=room)
        assert bare.auc > usual.auc


def test_the_price_stands_beside_the_gain() -> None:
    """What is printed of a joint protocol: never the cap without its price."""
    joint = loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0, g=4, memo="joint")
    said = str(loloha.privacy.explain(joint))
    assert "cap = 4.179" in said
    assert "2, 3.501, 4.179, 4.179 where 1, 2, ... distinct ones are visited" in said
    assert "can be 3.501 where two are visited, and up to 4.179" in said
    assert "exchanged = 4.179: price of that cap" in said
    assert "times the number of distinct" not in said
    apart = str(loloha.privacy.explain(loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0, g=4)))
    assert "ointly" not in apart


def test_hidden_moves_are_mentioned_only_where_they_exist() -> None:
    """Without one symbol for all no two cells share an answer; where P = g no two values a cell."""
    budgets = {"eps_inf": 2.0, "eps_1": 1.0, "memo": "joint"}
    usual = str(loloha.privacy.explain(loloha.OLOLOHA(k=96, g=4, **budgets)))
    bare = str(loloha.privacy.explain(loloha.OLOLOHA(k=96, g=4, m0=0.0, **budgets)))
    whole = loloha.OLOLOHA(k=5, g=5, hash="prime", m0=0.0, **budgets)
    assert not whole.encoding.collision
    answer = "between cells with the same permanent response"
    assert answer in usual
    assert answer not in bare
    assert "A move within one cell never shows, which" in bare
    said = str(loloha.privacy.explain(whole))
    assert "never shows" not in said
    assert "in time every change shows" in said


@pytest.mark.parametrize("g", [3, pytest.param(4, marks=pytest.mark.long)])
@pytest.mark.parametrize("m0", [None, 0.0])
def test_what_is_exchanged_is_the_most_over_all_pairs_of_one_cell(g: int, m0: Any) -> None:
    """The law of the answers themselves, the limit of many rounds: every m, every single cell."""
    protocol = loloha.OLOLOHA(k=g * g, g=g, eps_inf=2.0, eps_1=1.9, memo="joint", m0=m0)
    tables = oracle.tables_law(protocol)
    worst = 0.0
    for m in range(1, g):
        most = 0.0
        for cells in itertools.permutations(range(g), m):
            for place, other in itertools.product(range(m), set(range(g)) - set(cells)):
                moved = (*cells[:place], other, *cells[place + 1 :])
                one, two = (answers(tables, seen) for seen in (cells, moved))
                most = max(most, *(math.log(one[z] / two[z]) for z in one))
        # Realised probabilities lie within 2^-52 of those asked for.
        assert most == pytest.approx(protocol.spent(m), rel=1e-9)
        worst = max(worst, most)
    assert loloha.privacy.explain(protocol).exchanged == pytest.approx(worst, rel=1e-9)
    apart = loloha.OLOLOHA(k=g * g, g=g, eps_inf=2.0, eps_1=1.9)
    assert loloha.privacy.explain(apart).exchanged == 2.0


def answers(tables: Any, cells: tuple[int, ...]) -> dict[Any, float]:
    """Law of the memoised answers of these cells."""
    law: dict[Any, float] = {}
    for table, chance in tables.items():
        seen = tuple(table[cell] for cell in cells)
        law[seen] = law.get(seen, 0.0) + float(chance)
    return law


@pytest.mark.parametrize("m0", [None, 0.0])
@pytest.mark.parametrize(("eps_inf", "eps_1"), [(2.0, 1.0), (5.0, 4.0), (5.0, 4.9)])
def test_swaps_under_joint_memos_differ_by_more_than_two_rounds_do(
    eps_inf: float, eps_1: float, m0: float | None
) -> None:
    """Half of the users swap values with the others: over every table, against MATH section 13."""
    g = 3
    joint = loloha.OLOLOHA(k=g, g=g, eps_inf=eps_inf, eps_1=eps_1, memo="joint", m0=m0)
    p1, q1, p2, q2 = (joint.numbers[name] for name in ("p1", "q1", "p2", "q2"))
    same = 2 * p1 * q1 + (g - 2) * q1**2 if m0 is None else m0
    ways = {
        table: same / g * (len(set(table)) == 1) for table in itertools.product(range(g), repeat=g)
    }
    ways |= {
        table: (1 - p1 + q1 - same) / math.factorial(g)
        for table in itertools.permutations(range(g))
    }
    ways[tuple(range(g))] += p1 - q1
    assert sum(ways.values()) == pytest.approx(1)
    # Whether the reports of two rounds support value 0, of who goes from 0 to 1 or comes back.
    law = [[p2 if table[cell] == 0 else q2 for cell in (0, 1)] for table in ways]
    chances = np.array(list(ways.values()))
    first, second = chances @ np.array(law)
    covariance = chances @ np.prod(law, axis=1) - first * second
    contrast = joint.numbers["p_star"] - joint.numbers["q_star"]
    single = (first * (1 - first) + second * (1 - second)) / 2 / contrast**2
    difference = 2 * single - 2 * covariance / contrast**2
    more = 2 * max(0.0, p1 * q1 - same / g) * ((p2 - q2) / contrast) ** 2
    assert 2 * single * 1.01 < difference == pytest.approx(2 * single + more, rel=1e-3)
    assert single == pytest.approx(loloha.variance(joint, 1, 0.5), rel=1e-3)
