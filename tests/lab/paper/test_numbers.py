"""Every number on the page is recomputed by a second way: from the kept cells, and from formulas
that the tests write once more."""

from __future__ import annotations

import math
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

import formulas
from loloha.population import archive
from loloha_lab.attacks import change
from loloha_lab.paper.method import METHODS
from loloha_lab.paper.reproduction import Reproduction

Small = tuple[Reproduction, Path]
Key = tuple[str, str, str, float, float | None]
LABELS = {method.label: method.key for method in METHODS.values()}


class Tables(HTMLParser):
    """Tables of a page by the stem of their CSV file, headers first; and what stands in tiles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: dict[str, list[list[str]]] = {}
        self.tiles: dict[str, str] = {}
        self._rows: list[list[str]] = []
        self._tag = ""
        self._term = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")
        target = str(dict(attrs).get("href"))
        if target.startswith("tables/"):
            self.found[Path(target).stem] = self._rows
        self._tag = tag

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""

    def handle_data(self, data: str) -> None:
        if self._tag in ("td", "th"):
            self._rows[-1][-1] += data
        elif self._tag == "dt":
            self._term = data
        elif self._tag == "dd":
            self.tiles[self._term] = data


@pytest.fixture(scope="module")
def page(small: Small) -> Tables:
    return Tables(small[0].report.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def runs(small: Small) -> dict[Key, list[dict[str, Any]]]:
    """The kept cells of each point."""
    found: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for row in pyarrow.parquet.read_table(small[1] / "cells.parquet").to_pylist():
        names = ("data_set", "protocol", "calibration", "eps_inf", "alpha")
        found[tuple(row[name] for name in names)].append(row)  # type: ignore[index]
    return found


class Population:
    """A data set from the file that was laid down, counted anew."""

    def __init__(self, out: Path, name: str) -> None:
        self.values = np.load(out / "data" / f"{name}.npy")

    def truth(self, k: int, bins: int) -> Any:
        """float64[tau, bins], bucket by bucket."""
        buckets = self.values.astype(np.int64) * bins // k
        return np.stack([(buckets == one).mean(axis=0) for one in range(bins)], axis=1)


@pytest.fixture(scope="module")
def expected(small: Small, runs: dict[Key, list[dict[str, Any]]]) -> dict[Key, float]:
    """MSE_avg of each point by the tests' own formulas."""
    facts = small[0].facts
    truths: dict[tuple[str, int], Any] = {}
    found = {}
    for key, rows in runs.items():
        workload, k, bins = key[0], facts[key[0]].k, rows[0]["bins"]
        if (workload, bins) not in truths:
            truths[workload, bins] = Population(small[1], workload).truth(k, bins)
        found[key] = formulas.mean_variance(rows[0], k, truths[workload, bins])
    return found


def means(rows: list[dict[str, Any]], column: str) -> float:
    return sum(row[column] for row in rows) / len(rows)


def shown(number: float) -> str:
    return "–" if math.isnan(number) else f"{number:.4g}"


def key_of(workload: str, label: str, calibration: str, eps_inf: str, alpha: str) -> Key:
    return workload, LABELS[label], calibration, float(eps_inf), _number(alpha)


def _number(text: str) -> float | None:
    return None if text == "–" else float(text)


def test_all_points(
    page: Tables, small: Small, runs: dict[Key, list[dict[str, Any]]], expected: dict[Key, float]
) -> None:
    from scipy.stats import norm, t

    head, *rows = page.found["points"]
    assert len(rows) == len(runs)
    for row in rows:
        key = key_of(*row[:5])
        own = runs[key]
        k, n = small[0].facts[key[0]].k, small[0].facts[key[0]].n
        squares = [cell["mse"] for cell in own]
        mean = sum(squares) / len(squares)
        spread = math.sqrt(sum((one - mean) ** 2 for one in squares) / (len(squares) - 1))
        students = (mean - expected[key]) / (spread / math.sqrt(len(squares)))
        z = math.copysign(norm.isf(t.sf(abs(students), len(squares) - 1)), students)
        p, q = formulas.support(own[0], k)
        eligible = n / own[0]["bins"] if key[1] == "1bitflippm" else n
        told = dict(zip(head, row, strict=True))
        assert (told["g"], told["hash"]) == (str(own[0]["g"] or "–"), own[0]["hash"] or "–")
        assert told["runs"] == str(len(own))
        assert told["mse"] == shown(mean)
        assert float(told["expected_mse"]) == pytest.approx(expected[key], rel=6e-4), row
        assert float(told["ratio"]) == pytest.approx(mean / expected[key], rel=6e-4)
        assert float(told["z"]) == pytest.approx(z, rel=2e-3, abs=2e-3)
        # The mean over the users of one bucket of many is nearly that at their mean number.
        rel = 0.5 if key[1] == "1bitflippm" else 6e-4
        assert float(told["v_star"]) == pytest.approx(
            q * (1 - q) / eligible / (p - q) ** 2, rel=rel
        ), row
        for name in ("mse_clipped", "eps_avg", "eps_max"):
            assert told[name] == shown(means(own, name))


def test_uniform_errors(page: Tables, small: Small, runs: dict[Key, list[dict[str, Any]]]) -> None:
    head, *rows = page.found["points"]
    uniform = {}
    for row in rows:
        key = key_of(*row[:5])
        k, bins = small[0].facts[key[0]].k, runs[key][0]["bins"]
        truth = Population(small[1], key[0]).truth(k, bins)
        # sum (f - 1/m)^2 = sum f^2 - 1/m
        uniform[key] = float(np.mean((truth**2).sum(axis=1) - 1 / bins) / bins)
        assert float(row[head.index("mse_uniform")]) == pytest.approx(uniform[key], rel=6e-4)
    together = rounds_together(small)
    columns = {
        "α = 0.5": lambda key: means(runs[key], "mse_clipped"),
        "α = 0.5, projected": lambda key: together[key]["mse_projected"],
        "α = 0.5, filter": lambda key: together[key]["mse_filtered"],
        "α = 0.5, smoother": lambda key: together[key]["mse_smoothed"],
    }
    assert page.found["uniform"][0] == ["data_set", "protocol", *columns]
    for workload, label, *least in page.found["uniform"][1:]:
        curve = sorted(key for key in runs if key[:2] == (workload, LABELS[label]))
        if any(key[2] == "published" for key in curve):
            curve = [key for key in curve if key[2] == "published"]
        for told, error in zip(least, columns.values(), strict=True):
            good = [error(key) < uniform[key] for key in curve]
            since = [key[3] for place, key in enumerate(curve) if all(good[place:])]
            assert told == (f"{since[0]:g}" if since else "never")


def rounds_together(small: Small) -> dict[Key, dict[str, Any]]:
    """The kept cells whose rounds were estimated together."""
    kept = archive.Archive(small[1] / archive.FILE)
    names = ("data_set", "protocol", "calibration", "eps_inf", "alpha")
    return {
        tuple(row[name] for name in names): row  # type: ignore[misc]
        for _, row in kept._lines.values()
        if "mse_smoothed" in row
    }


def test_rounds_together(page: Tables, small: Small) -> None:
    head, *rows = page.found["series"]
    together = rounds_together(small)
    assert len(rows) == len(together)
    for row in rows:
        own = together[key_of(*row[:5])]
        told = dict(zip(head, row, strict=True))
        single = own["mse_projected"]
        assert told["mse_projected"] == shown(single)
        for name in ("filter", "smoother"):
            error = own["mse_smoothed" if name == "smoother" else "mse_filtered"]
            assert told[f"gain of the {name}"] == shown(single / error)
        assert told["coverage"] == shown(own["coverage"])
        assert 0.5 < own["coverage"] <= 1


def test_agreement(
    page: Tables, runs: dict[Key, list[dict[str, Any]]], expected: dict[Key, float]
) -> None:
    head, *rows = page.found["points"]
    far = 0
    for workload, label, calibration, *told in page.found["agreement"][1:]:
        own = [row for row in rows if row[:3] == [workload, label, calibration]]
        ratios = sorted(
            means(runs[key], "mse") / expected[key] for key in (key_of(*row[:5]) for row in own)
        )
        zs = [abs(float(row[head.index("z")])) for row in own]
        count, least, median, largest, root, farthest, beyond = map(float, told)
        assert count == len(own)
        assert (least, largest) == pytest.approx((ratios[0], ratios[-1]), rel=6e-4)
        assert median == pytest.approx(sum(ratios[(len(own) - 1) // 2 : len(own) // 2 + 1])
                                       / (2 - len(own) % 2), rel=6e-4)  # fmt: skip
        assert root == pytest.approx(math.sqrt(sum(z * z for z in zs) / len(zs)), rel=2e-3)
        assert farthest == pytest.approx(max(zs), rel=2e-3)
        assert beyond == sum(z > 3 for z in zs)
        far += int(beyond)
    assert page.tiles["points with |z| > 3"] == f"{far} of {len(rows)}"
    # The binomial tail, summed from its own terms.
    p, n = math.erfc(3 / math.sqrt(2)), len(rows)
    below = sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(far))
    assert page.tiles["probability of as many by chance"] == f"{1 - below:.2f}"


def test_gains(
    page: Tables, runs: dict[Key, list[dict[str, Any]]], expected: dict[Key, float]
) -> None:
    for workload, label, *told in page.found["gains"][1:]:
        tight = [key for key in runs if key[:3] == (workload, LABELS[label], "tight")]
        pairs = [((*key[:2], "published", *key[3:]), key) for key in tight]
        gains = [means(runs[a], "mse") / means(runs[b], "mse") for a, b in pairs]
        theory = [expected[a] / expected[b] for a, b in pairs]
        assert [float(one) for one in told] == pytest.approx(
            [
                len(pairs), min(gains), np.median(gains), max(gains), np.median(theory),
                max(theory),
            ],
            rel=6e-4,
        )  # fmt: skip


def test_beyond_the_paper(
    page: Tables,
    small: Small,
    runs: dict[Key, list[dict[str, Any]]],
    expected: dict[Key, float],
) -> None:
    for workload, label, *told in page.found["beyond"][1:]:
        facts = small[0].facts[workload]
        ratios, relative, theory, budgets, caps, sharing = [], [], [], [], [], []
        for better in (key for key in runs if key[:2] == (workload, LABELS[label])):
            usual = (workload, "ololoha", "tight", *better[3:])
            if usual not in runs:
                # Where both calibrations are alike it was measured as the published one.
                usual = (workload, "ololoha", "published", *better[3:])
            columns = [np.array([row["mse"] for row in runs[one]])
                       for one in (usual, better)]  # fmt: skip
            ratios.append(math.log(columns[0].mean() / columns[1].mean()))
            relative += [one.var(ddof=1) / len(one) / one.mean() ** 2 for one in columns]
            theory.append(math.log(expected[usual] / expected[better]))
            budgets.append(means(runs[usual], "eps_avg") / means(runs[better], "eps_avg"))
            caps.append(_cap(runs[usual][0]) / _cap(runs[better][0]))
            sharing.append(facts.n / _members(runs[better][0], facts.k))
        mean = sum(ratios) / len(ratios)
        error = math.sqrt(sum(relative)) / len(ratios)
        expectation = sum(theory) / len(theory)
        assert [float(one) for one in told] == pytest.approx(
            [
                len(ratios), 100 * math.expm1(mean), 100 * math.exp(mean) * error,
                100 * math.expm1(expectation),
                (mean - expectation) / error, math.prod(budgets) ** (1 / len(budgets)),
                max(budgets), max(caps), min(sharing),
            ],
            rel=2e-3,
            abs=1e-6,
        )  # fmt: skip


def _cap(row: dict[str, Any]) -> float:
    """g eps_inf, and B_g of section 15 for one table."""
    g, eps_inf = row["g"], row["eps_inf"]
    if row["protocol"] != "ololoha-joint":
        return float(g * eps_inf)
    p, q = formulas.over_symbols(formulas.contrast(eps_inf, g), g)
    agree = 2 * p * q + (g - 2) * q * q
    permuted = 1 - (p - q) - agree
    return math.log1p((p - q) * math.factorial(g) / permuted)


def _members(row: dict[str, Any], k: int) -> int:
    g = row["g"]
    if row["hash"] == "linear":
        return next(g**m for m in range(1, 64) if g**m >= k) - 1
    prime = next(p for p in range(max(k, g), 4 * k) if formulas.is_prime(p))
    return prime * (prime - 1)


def test_the_g_in_force(page: Tables, small: Small) -> None:
    head, *rows = page.found["symbols"]
    assert head[3:] == ["alpha", "ε∞ = 1", "ε∞ = 5"]
    for workload, label, calibration, alpha, *chosen in rows:
        k = small[0].facts[workload].k
        for eps_inf, told in zip((1.0, 5.0), chosen, strict=True):
            eps_1 = float(alpha) * eps_inf
            if calibration == "published":
                g = formulas.published_g(eps_inf, eps_1)
                assert told == f"{g}" + ("" if formulas.is_prime(g) else "*")
            else:
                family = "prime" if LABELS[label] == "ololoha-prime" else "linear"
                assert told == str(formulas.best_g(family, k, eps_1)), (workload, label, eps_inf)


def test_the_printed_test_of_changes(
    page: Tables, small: Small, runs: dict[Key, list[dict[str, Any]]]
) -> None:
    head, *rows = page.found["table2"]
    names = {"d = 1": "1bitflippm", "d = b": "bbitflippm"}
    for eps_inf, *shares in rows:
        for column, told in zip(head[1:], shares, strict=True):
            workload, d = column.split(", ")
            own = runs[workload, names[d], "published", float(eps_inf), None]
            assert told == shown(100 * means(own, "exposed"))
    kept = archive.Archive(small[1] / archive.FILE)
    attacks = {name: row for name, (_, row) in kept._lines.items() if "attack-on" in name}
    assert len(page.found["table2-attack"]) == 1 + len(attacks)
    told = {tuple(row[:3]): row[4:] for row in page.found["table2-attack"][1:]}
    for row in attacks.values():
        label = METHODS[row["protocol"]].label
        share, hits, alarms = told[row["data_set"], label, f"{row['eps_inf']:g}"]
        assert share == shown(100 * row["exposed"] / row["users"])
        for rate, (some, whole) in {hits: ("seen", "changes"), alarms: ("alarms", "stays")}.items():
            assert rate == (shown(100 * row[some] / row[whole]) if row[whole] else "–")


def test_the_best_test_of_changes(
    page: Tables, small: Small, runs: dict[Key, list[dict[str, Any]]]
) -> None:
    head, *rows = page.found["table2-grid"]
    assert head[5:] == ["printed test, % of all users", *BEST, "ε₂"]
    assert len(rows) == len(runs)
    for row in rows:
        key, (exposed, once, often, loss) = key_of(*row[:5]), row[5:]
        own = runs[key][0]
        k = small[0].facts[key[0]].k
        wanted = formulas.round_loss(own, k)
        assert loss == "∞" if math.isinf(wanted) else float(loss) == pytest.approx(wanted, rel=6e-4)
        assert exposed == shown(
            math.nan if own["exposed"] is None else 100 * means(runs[key], "exposed")
        )
        assert 0.5 <= float(once) <= float(often) <= 1
        if key[1] in formulas.PLAIN:
            area = formulas.area_of_one_report(own, k)
            # Of large families both go through some of the keys, and the page adds what these miss.
            all_keys = own["hash"] in (None, "linear")
            assert area - 5e-4 <= float(once) <= area + (2e-4 if all_keys else 4e-3), row


BEST = ["best test, T = 1", "best test, T = 10"]


@pytest.mark.parametrize(
    ("label", "reports"),
    [
        ("RAPPOR", 1),
        ("L-OSUE", 1),
        ("L-GRR", 10),
        ("BiLOLOHA", 10),
        ("OLOLOHA", 10),
        ("bBitFlipPM", 1),
        ("1BitFlipPM", 1),
        ("OLOLOHA, one table", 10),
    ],
)
def test_aucs_are_those_of_an_attacked_population(
    label: str, reports: int, page: Tables, small: Small
) -> None:
    # 500 users a side, seeded; an area has an error below 0.02: six of them see the wrong T,
    # protocol or budget.
    head, *rows = page.found["table2-grid"]
    row = next(one for one in rows if one[:2] == ["Adult", label] and one[3] == "5")
    calibration, eps_inf, alpha = row[2], float(row[3]), _number(row[4])
    facts = small[0].facts["Adult"]
    protocol = METHODS[LABELS[label]].build(
        facts.k, eps_inf, alpha, calibration, buckets=facts.buckets
    )
    found = change(protocol, reports, n=500, rng=3).auc_with_error
    told = float(row[head.index(f"best test, T = {reports}")])
    assert abs(told - found.auc) < 6 * max(found.error, 0.004), (told, found)


def test_the_short_table_repeats_the_long_one(page: Tables) -> None:
    long = {
        (*row[:2], row[3]): row[6:8] for row in page.found["table2-grid"][1:] if row[2] != "tight"
    } | {
        (*row[:2], row[3]): row[6:8]
        for row in page.found["table2-grid"][1:]
        if METHODS[LABELS[row[1]]].ours
    }
    printed = {tuple(row[:3]): row[4] for row in page.found["table2-attack"][1:]}
    _, *rows = page.found["table2-best"]
    assert len(rows) == 3 * len(METHODS)
    for workload, label, *told in rows:
        for eps_inf, of_eps in (("1", told[:3]), ("5", told[3:])):
            assert of_eps[0] == printed[workload, label, eps_inf]
            assert of_eps[1:] == long[workload, label, eps_inf]


def test_costs(page: Tables) -> None:
    head, *rows = page.found["table1"]
    k, eps_inf, eps_1 = 360, 2.0, 1.0
    published, tight = formulas.published_g(eps_inf, eps_1), formulas.best_g("linear", k, eps_1)
    prime = formulas.best_g("prime", k, eps_1)
    joint = {"protocol": "ololoha-joint", "g": tight, "eps_inf": eps_inf}
    whole = -(-k // 8)
    # Bytes of a report, of the key, and the cap.
    wanted = {
        "RAPPOR": (whole, 0, k * eps_inf),
        "L-OSUE": (whole, 0, k * eps_inf),
        "L-GRR": (2, 0, k * eps_inf),
        "BiLOLOHA": (1, 2, 2 * eps_inf),
        "OLOLOHA": (1, 2, published * eps_inf),
        "1BitFlipPM": (1, 2, 2 * eps_inf),
        "bBitFlipPM": (whole, -(-9 * k // 8), k * eps_inf),
        "OLOLOHA, least prime": (1, 3, prime * eps_inf),
        "OLOLOHA, one table": (1, 2, _cap(joint)),
    }
    for row in rows:
        told = dict(zip(head, row, strict=True))
        size, key, cap = wanted.pop(told["protocol"])
        assert float(told["bytes, measured"]) == size
        assert float(told["cap in numbers"]) == pytest.approx(cap, rel=6e-4)
        assert float(told["bytes of the key, once"]) == key, row
        # Times are of this machine, now.
        assert float(told["ms a round, measured"]) > 0
        assert float(told["µs a report on a device, measured"]) > 0
    assert not wanted


def test_printed_numbers(page: Tables, small: Small, runs: dict[Key, list[dict[str, Any]]]) -> None:
    ours: dict[str, float] = {}
    for what, theirs, here, difference, why in (row[1:] for row in page.found["printed"][1:]):
        ours[what] = float(here)
        assert float(difference) == pytest.approx(
            float(here) - float(theirs), rel=2e-3, abs=1e-3 * abs(float(theirs))
        )
        assert bool(why) == (float(difference) != 0), what
    assert ours["g of least variance at ε∞ = 5, α = 0.6, published"] == 17
    assert ours["g of least variance at ε∞ = 5, α = 0.6, tight"] == round(math.exp(3.0) + 1)
    for name, facts in small[0].facts.items():
        values = np.load(small[1] / "data" / f"{name}.npy")
        assert (ours[f"n of {name}"], ours[f"τ of {name}"]) == values.shape
        assert ours[f"k of {name}"] == facts.k > values.max()
        at_5 = {
            key: means(runs[name, key, "published", 5.0, 0.5], "eps_avg")
            for key in ("rappor", "biloloha")
        }
        # RAPPOR spends eps_inf for each value that a user visits.
        visited = np.mean([len(set(row)) for row in values.tolist()])
        assert at_5["rappor"] == pytest.approx(5 * visited)
        ratio = ours[f"budget of RAPPOR over BiLOLOHA on {name}, up to k/g"]
        assert ratio == pytest.approx(5 * visited / at_5["biloloha"], rel=6e-4)
        for d, key in (("d = b", "bbitflippm"), ("d = 1", "1bitflippm")):
            what = f"users exposed on {name}, {d}, ε∞ = 5, in %"
            share = 100 * means(runs[name, key, "published", 5.0, None], "exposed")
            assert ours[what] == pytest.approx(share, abs=1e-2)


def test_every_table_of_the_page_is_looked_at(page: Tables) -> None:
    assert set(page.found) == {
        "agreement", "beyond", "gains", "points", "printed", "series", "symbols", "table1",
        "table2", "table2-attack", "table2-best", "table2-grid", "uniform",
    }  # fmt: skip
    assert page.tiles.keys() >= {"points with |z| > 3", "probability of as many by chance"}
