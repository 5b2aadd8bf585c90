"""Keys that a collector assigns: families that tell values apart, and what the worst key shows."""

import itertools
from collections import defaultdict
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import loloha
from laws import oracle
from loloha import privacy
from loloha.campaign import Campaign, Labels, Schedule
from loloha.errors import CampaignError, ParameterError
from loloha.hashing import FAMILIES, PrimeHash, hash_family
from loloha.planning.accuracy_check import require_fit_keys
from loloha.privacy.change import change_auc, worst_key
from loloha.privacy.plain_words import OVER_KEYS

BUDGETS: dict[str, Any] = {"eps_inf": 2.0, "eps_1": 1.0}


def campaign(protocol: Any, keys: str = "assigned") -> Campaign:
    labels = Labels(tuple(range(protocol.k)))
    return Campaign(
        name="one", protocol=protocol, domain=labels, schedule=Schedule(0, 60), keys=keys
    )


@pytest.mark.parametrize("name", ["linear", "prime"])
def test_no_key_puts_all_values_in_one_cell(name: str) -> None:
    """Every key of every small family."""
    for k, g in itertools.product(range(2, 15), range(2, 15)):
        try:
            family = hash_family(name, k, g)
        except ParameterError:
            continue
        assert family.separates or g > k
        keys = np.arange(family.least_key, family.least_key + family.members)
        cells = family.hash_many(keys[:, None], np.arange(k)[None])
        # Exactly those: what is said of the family is true, and no more is refused than must be.
        assert family.separates is bool((cells.min(axis=1) < cells.max(axis=1)).all()), (k, g)


def test_affine_keys_do_both() -> None:
    family = hash_family("affine", 12, 4)
    assert {family.hash(family.join(4, 0), v) for v in range(12)} == {0}
    # One wrap before the last value: it is alone.
    cells = [family.hash(family.join(4, family.modulus - 42), v) for v in range(12)]
    assert sorted({cells.count(cell) for cell in cells}) == [1, 11]


def test_leaving_such_keys_out_would_bias_the_estimates() -> None:
    """Of a small modulus, by enumeration: what is left collides more for some pairs than others."""

    class Wide(PrimeHash):
        modulus = 101

    k, g = 6, 2
    family = Wide(k, g)
    keys = np.arange(family.members)
    cells = family.hash_many(keys[:, None], np.arange(k)[None])
    sizes = np.stack([(cells == cell).sum(axis=1) for cell in range(g)])
    fit = (sizes != 1).all(axis=0) & (sizes != k).all(axis=0)
    for kept, uniform in ((np.ones(len(keys), dtype=bool), True), (fit, False)):
        together = {
            round(float((cells[kept, u] == cells[kept, v]).mean()), 9)
            for u, v in itertools.combinations(range(k), 2)
        }
        assert (len(together) == 1) is uniform


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_only_families_that_tell_values_apart_are_assigned(name: str) -> None:
    protocol = loloha.OLOLOHA(k=12, g=3, hash=name, **BUDGETS)
    require_fit_keys(campaign(protocol, "drawn"))
    # The document of 0.2.0 is read all the same.
    assert Campaign.from_json(campaign(protocol).to_json()) == campaign(protocol)
    if name in ("linear", "prime"):
        require_fit_keys(campaign(protocol))
    else:
        with pytest.raises(CampaignError, match="Take hash='prime' or 'linear', and g at most k"):
            require_fit_keys(campaign(protocol))


def of_each_key(protocol: Any) -> set[float]:
    """The AUC of ever more reports under each key: both memos are known, if they are told apart."""
    k, pairs, found = protocol.k, list(permutations(range(protocol.k), 2)), set()
    for key in oracle.keys(protocol):
        cells = [oracle.symbol(protocol, key, v) for v in range(k)]
        law = {pair: oracle.pair_law(protocol, *pair) for pair in product(set(cells), repeat=2)}
        stayed: dict[Any, float] = defaultdict(float)
        moved: dict[Any, float] = defaultdict(float)
        for c in cells:
            for memos, chance in law[c, c].items():
                stayed[memos] += float(chance) / k
        for v, w in pairs:
            for memos, chance in law[cells[v], cells[w]].items():
                moved[memos] += float(chance) / len(pairs)
        seen = stayed.keys() | moved.keys()
        apart = sum(abs(stayed[a] * moved[b] - stayed[b] * moved[a])
                    for a, b in product(seen, seen))  # fmt: skip
        found.add(round(0.5 + apart / 4, 9))
    return found


@pytest.mark.parametrize(
    "protocol",
    [
        *(loloha.BiLOLOHA(k=k, **BUDGETS) for k in (2, 3, 4, 5, 8)),
        *(loloha.OLOLOHA(k=k, g=3, hash="linear", **BUDGETS) for k in (2, 9, 10)),
        *(loloha.OLOLOHA(k=k, g=4, hash="prime", **BUDGETS) for k in (6, 7)),
        loloha.OLOLOHA(k=6, g=4, hash="prime", memo="joint", **BUDGETS),
        *(loloha.OneBit(k=k, **BUDGETS) for k in (2, 3, 5)),
        loloha.OneBit(k=5, target="mean", **BUDGETS),
        *(loloha.DBitFlipPM(k=k, eps_inf=2.0, b=3, d=d) for k, d in ((6, 2), (5, 2), (5, 3))),
        loloha.LGRR(k=4, **BUDGETS),
    ],
    ids=str,
)
def test_whose_keys_an_auc_is_over_is_said_where_they_differ(protocol: Any) -> None:
    """By an enumeration of what each key shows; and the worst key's is beside it."""
    each = of_each_key(protocol)
    drawn = str(privacy.explain(protocol))
    assert drawn.count(OVER_KEYS) == 2 * (len(each) > 1)
    assert "Assigned keys" not in drawn
    assigned = str(privacy.explain(protocol, keys="assigned"))
    shown = worst_key(protocol)
    assert ("Assigned keys" in assigned) is (shown is not None)
    if shown is not None:
        worst, by_chance = shown
        assert not by_chance
        assert worst.auc == pytest.approx(max(each), abs=1e-8)


def test_the_worst_key_shows_more_than_the_average() -> None:
    """Five values in cells of 1 and 4, or 2 and 3: their keys differ."""
    protocol = loloha.BiLOLOHA(k=5, **BUDGETS)
    worst, average = worst_key(protocol), change_auc(protocol, 1000)
    assert worst is not None
    assert average is not None
    assert worst[0].auc > average.auc + 0.001


def single_reports(protocol: Any, key: int) -> list[dict[Any, Fraction]]:
    """Law of a report before and one after under a key, if the value stayed and if it moved."""
    k, laws = protocol.k, []
    for pairs in ([(v, v) for v in range(k)], list(permutations(range(k), 2))):
        law: dict[Any, Fraction] = defaultdict(Fraction)
        for values in pairs:
            cells = (oracle.symbol(protocol, key, v) for v in values)
            for memos, chance in oracle.pair_law(protocol, *cells).items():
                first, second = (oracle.second_round(protocol, memo) for memo in memos)
                for a, b in product(first, second):
                    law[a, b] += chance * first[a] * second[b] / len(pairs)
        laws.append(law)
    return laws


def best_test(stayed: dict[Any, Fraction], moved: dict[Any, Fraction]) -> Fraction:
    """AUC of the likelihood ratio: 1/2, and more for each pair of outcomes that it ranks."""
    seen = stayed.keys() | moved.keys()
    pairs = product(seen, repeat=2)
    return (1 + sum(abs(stayed[a] * moved[b] - stayed[b] * moved[a]) for a, b in pairs) / 2) / 2


def test_over_all_keys_a_change_can_show_more_surely_than_under_each() -> None:
    """One AUC over two users, each with a key of their own: no average of the keys' AUCs."""
    for k, g, is_above in ((6, 3, True), (5, 2, False)):
        protocol = loloha.OLOLOHA(k=k, g=g, hash="linear", eps_inf=3.0, eps_1=2.0)
        keys = oracle.keys(protocol)
        each = {key: single_reports(protocol, key) for key in keys}
        pooled: Any = [
            {(key, y): law[y] / len(keys) for key in keys for law in [each[key][i]] for y in law}
            for i in range(2)
        ]
        over, under = best_test(*pooled), [best_test(*laws) for laws in each.values()]
        said = change_auc(protocol, 1)
        assert said is not None
        assert said.auc == pytest.approx(float(over), abs=1e-12)
        assert (over > max(under)) is is_above
        assert over > sum(under) / len(under) > min(under)


def test_without_keys_there_is_no_sentence_about_them() -> None:
    for protocol in (loloha.LGRR(k=5, **BUDGETS), loloha.RAPPOR(k=5, **BUDGETS)):
        assert OVER_KEYS not in str(privacy.explain(protocol))
        assert worst_key(protocol) is None
    with pytest.raises(ParameterError, match="keys must be one of"):
        privacy.explain(loloha.LGRR(k=5, **BUDGETS), keys="given")
