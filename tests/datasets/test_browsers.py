"""Browser versions in use: the shipped shares, and users who reproduce them by moving least."""

import csv
from collections import defaultdict
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from loloha import datasets
from loloha.arrays import Floats, Ints
from loloha.cli.input_table import load
from loloha.datasets.browser import LONGEST, MONTHS, PER_MONTH
from loloha.errors import ParameterError

NAMES = {
    "android": "Android Browser", "and_chr": "Chrome Android", "chrome": "Chrome", "edge": "Edge",
    "firefox": "Firefox", "ios_saf": "Safari iOS", "op_mob": "Opera Mobile", "safari": "Safari",
    "samsung": "Samsung Internet",
}  # fmt: skip
ONE_LABEL = {"android", "and_chr", "op_mob"}
USERS = 20_000


@pytest.fixture(scope="module")
def data() -> datasets.Dataset:
    return datasets.browsers(USERS, rng=1)


def browser(label: str) -> str:
    """The name without a version."""
    words = label.split()
    versioned = len(words) > 1 and (words[-1] == "other" or words[-1][0].isdigit())
    return " ".join(words[:-1]) if versioned else label


def shipped() -> tuple[list[str], Floats]:
    """Labels and percent of each month, read without the loader: float64[month, label]."""
    text = (Path(datasets.__file__).parent / "browser_shares.csv").read_text(encoding="utf-8")
    rows = [row.split(",") for row in text.splitlines() if not row.startswith("#")][1:]
    labels = [" ".join(filter(None, row[:2])) for row in rows]
    return labels, np.array([row[2:] for row in rows], dtype=float).T


def test_the_shipped_shares_are_those_of_the_source(real_data: Path) -> None:
    months: list[str] = []
    full: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    named = defaultdict(set)
    with (real_data / "browser_usage.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            month, source = row["month"], row["browser"]
            months += [month] if month not in months else []
            version = "" if source in ONE_LABEL else row["version"].split("-")[0]
            key = (NAMES[source], version) if source in NAMES else ("other", "")
            full[key][month] += float(row["percent"])
            if float(row["percent"]):
                named[source, month].add(row["version"])
    # The trap of the source: one version of Chrome on Android a month, whoever uses which.
    assert {len(named["and_chr", month]) for month in months} == {1}
    expected: dict[str, Floats] = defaultdict(lambda: np.zeros(len(months)))
    for (name, version), percent in full.items():
        row = np.array([percent[month] for month in months])
        kept = version if row.max() >= 1 or not version else "other"
        expected[f"{name} {kept}".strip()] += row
    labels, shares = shipped()
    assert set(labels) == set(expected)
    assert len(months) == len(shares) == MONTHS
    for label, column in zip(labels, shares.T, strict=True):
        assert np.abs(column - expected[label]).max() < 0.0005 + 1e-9, label


def test_versions_are_ordered_from_a_browsers_oldest_to_its_newest() -> None:
    labels, _ = shipped()
    assert len(labels) == len(set(labels)) == 97
    names = [browser(label) for label in labels]
    assert names == sorted(names, key=lambda name: (name == "other", name))
    for name in set(names) - {"other"}:
        versions = [label.removeprefix(name).strip() for label in labels if browser(label) == name]
        numbers = [[int(part) for part in v.split(".")] for v in versions if v not in ("", "other")]
        assert numbers == sorted(numbers)
        assert "other" not in versions[1:]


@pytest.mark.parametrize("users", [1, 777, USERS])
def test_each_rounds_shares_are_the_rounded_truth(users: int) -> None:
    data = datasets.browsers(users, rng=1)
    labels, percent = shipped()
    truth = percent / percent.sum(axis=1, keepdims=True)
    assert data.labels == tuple(labels)
    for t, shares in enumerate(data.frequencies()):
        month, step = divmod(t, PER_MONTH)
        part = step / PER_MONTH
        after = truth[min(month + 1, MONTHS - 1)]
        error = np.cumsum(shares - (1 - part) * truth[month] - part * after)
        assert np.abs(error).max() <= 0.5 / users + 1e-12
        assert np.abs(np.diff(error, prepend=0)).max() <= 1 / users + 1e-12


def test_rounds_are_eight_dates_a_month(data: datasets.Dataset) -> None:
    assert (data.tau, data.rounds[0], data.rounds[-1]) == (
        169, date(2025, 1, 1), date(2026, 10, 1),
    )  # fmt: skip
    days = np.diff([day.toordinal() for day in data.rounds])
    assert set(days.tolist()) == {3, 4}


def test_one_to_four_percent_move_in_a_round_and_none_without_need(data: datasets.Dataset) -> None:
    moved = np.count_nonzero(data.values[:, 1:] != data.values[:, :-1], axis=0)
    assert moved.min() / USERS > 0.0095
    assert moved.max() / USERS < 0.04
    assert np.array_equal(moved, np.maximum(np.diff(data.counts(), axis=0), 0).sum(axis=1))


def forced(gains: Ints, losses: Ints) -> tuple[int, int]:
    """Upgrades that are possible in one browser, and older versions that must be taken up."""
    # Hall: users who leave a version or a newer one can only go to what is newer still.
    leaving = np.cumsum(losses[::-1])[::-1]
    room = np.cumsum(gains[::-1])[::-1] - gains
    upgrades = losses.sum() - max(0, int((leaving - room).max()))
    return upgrades, min(gains.sum(), losses.sum()) - upgrades


def test_users_upgrade_as_far_as_the_shares_allow(data: datasets.Dataset) -> None:
    names = np.array([browser(label) for label in data.labels])
    counts = data.counts()
    upgrades = downgrades = 0
    for t in range(1, data.tau):
        pairs = data.values[:, t - 1].astype(int) * data.k + data.values[:, t]
        moves = np.bincount(pairs, minlength=data.k**2).reshape(data.k, data.k)
        for name in set(names):
            mine = np.flatnonzero(names == name)
            change = np.diff(counts[t - 1 : t + 1, mine], axis=0)[0]
            possible = forced(np.maximum(change, 0), np.maximum(-change, 0))
            inside = moves[np.ix_(mine, mine)]
            seen = (np.triu(inside, 1).sum(), np.tril(inside, -1).sum())
            assert seen == possible, f"{name} in round {t}: {seen}, possible {possible}"
            upgrades, downgrades = upgrades + seen[0], downgrades + seen[1]
    assert downgrades < 0.05 * upgrades


def test_users_change_browsers_only_as_totals_force_it(data: datasets.Dataset) -> None:
    names, where = np.unique([browser(label) for label in data.labels], return_inverse=True)
    held = where[data.values]
    totals = np.stack([np.bincount(column, minlength=len(names)) for column in held.T])
    forced = np.maximum(np.diff(totals, axis=0), 0).sum(axis=1)
    assert np.array_equal(np.count_nonzero(held[:, 1:] != held[:, :-1], axis=0), forced)


def test_who_moves_is_drawn_among_all_users_of_a_version() -> None:
    """Who leaves does not depend on the place among the users."""
    starts, leavers = [], []
    for seed in range(20):
        data = datasets.browsers(2000, tau=13, rng=seed)
        falling = data.labels.index("Chrome 131")
        place = np.flatnonzero(data.values[:, 0] == falling)
        starts.append(len(place))
        leavers.append(place[data.values[place, -1] != falling])
    # Places are uniform: seeded, |z| < 6 (alpha 2e-9); would see the first ones moved first.
    joined = np.concatenate(leavers)
    z = (joined.mean() - 999.5) / (2000 / np.sqrt(12 * len(joined)))
    assert len(joined) > 500
    assert len(set(starts)) == 1
    assert abs(z) < 6, f"seeds 0..19, {len(joined)} leavers, mean {joined.mean()}, z = {z:.2f}"


def test_fewer_rounds_are_the_first_ones_and_seeds_decide() -> None:
    long, short = datasets.browsers(500, rng=3), datasets.browsers(500, tau=5, rng=3)
    assert np.array_equal(long.values[:, :5], short.values)
    assert short.rounds == long.rounds[:5]
    assert np.array_equal(datasets.browsers(500, rng=np.random.default_rng(3)).values, long.values)
    assert not np.array_equal(datasets.browsers(500, rng=4).values, long.values)
    assert "CC BY 4.0" in long.provenance
    assert "simulated" in long.provenance


@pytest.mark.parametrize("given", [{"users": 0}, {"tau": 0}, {"tau": LONGEST + 1}, {"rng": None}])
def test_sizes_out_of_range_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(ParameterError, match=f"{next(iter(given))} must be"):
        datasets.browsers(**given)


def test_commands_take_them_by_name(tmp_path: Path) -> None:
    assert np.array_equal(load("browsers", {}).values, datasets.browsers().values)
    with pytest.raises(ParameterError, match="--data-dir must be left out for browsers"):
        load("browsers", {"data_dir": tmp_path})
