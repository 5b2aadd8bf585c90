"""Keys that a collector assigns: families that tell values apart, and what the worst key shows."""

import itertools
from typing import Any

import numpy as np
import pytest

import loloha
from loloha import privacy
from loloha.campaign import Campaign, Labels, Schedule
from loloha.errors import CampaignError, ParameterError
from loloha.hashing import FAMILIES, PrimeHash, hash_family
from loloha.planning.accuracy_check import require_fit_keys
from loloha.privacy.change import change_auc, worst_key
from loloha.privacy.plain_words import MEAN_OVER_KEYS

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


@pytest.mark.parametrize(
    "protocol",
    [
        loloha.BiLOLOHA(k=5, **BUDGETS),
        loloha.OLOLOHA(k=10, g=3, hash="linear", **BUDGETS),
        loloha.OLOLOHA(k=7, g=4, hash="prime", **BUDGETS),
        loloha.OLOLOHA(k=7, g=4, hash="prime", memo="joint", **BUDGETS),
        loloha.DBitFlipPM(k=6, eps_inf=2.0, d=2),
    ],
    ids=lambda one: one.name,
)
def test_an_auc_is_called_an_average_beside_that_of_the_worst_key(protocol: Any) -> None:
    drawn = str(privacy.explain(protocol))
    assert drawn.count(MEAN_OVER_KEYS) == 2
    assert "Assigned keys" not in drawn
    assigned = str(privacy.explain(protocol, keys="assigned"))
    shown = worst_key(protocol)
    assert ("Assigned keys" in assigned) is (shown is not None)
    if shown is not None:
        worst, by_chance = shown
        average: Any = change_auc(protocol, 1000)
        assert not by_chance
        assert worst.auc >= average.auc - 1e-9


def test_the_worst_key_shows_more_than_the_average() -> None:
    """Five values in cells of 1 and 4, or 2 and 3: their keys differ."""
    protocol = loloha.BiLOLOHA(k=5, **BUDGETS)
    worst, average = worst_key(protocol), change_auc(protocol, 1000)
    assert worst is not None
    assert average is not None
    assert worst[0].auc > average.auc + 0.001


def test_without_keys_there_is_no_sentence_about_them() -> None:
    for protocol in (loloha.LGRR(k=5, **BUDGETS), loloha.RAPPOR(k=5, **BUDGETS)):
        assert MEAN_OVER_KEYS not in str(privacy.explain(protocol))
        assert worst_key(protocol) is None
    with pytest.raises(ParameterError, match="keys must be one of"):
        privacy.explain(loloha.LGRR(k=5, **BUDGETS), keys="given")
