"""A column of ids is no round and no value, whatever it is called; a column of values is both."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from loloha import datasets
from loloha.campaign import Labels, Range
from loloha.cli import main
from loloha.datasets import DataError

N = 300
RNG = np.random.default_rng(1)
VALUES = {f"r{t}": RNG.integers(3, size=N).tolist() for t in range(3)}
IDS: dict[str, Callable[[int], Any]] = {
    "text": lambda n: [f"C{i:05d}" for i in range(n)],
    "integers from 0 on, some of which are values": lambda n: list(range(n)),
    "integers in no order": lambda n: RNG.permutation(n).tolist(),
    "floats": lambda n: (np.arange(n) + 0.5).tolist(),
    "bytes": lambda n: [i.to_bytes(4) for i in range(n)],
    "moments": lambda n: pa.array(range(n), pa.timestamp("s")),
    "categories": lambda n: pa.array([f"u{i}" for i in range(n)]).dictionary_encode(),
    "with gaps": lambda n: [None if i % 9 == 4 else f"C{i}" for i in range(n)],
    "a few come again": lambda n: [f"C{i // 2 if i < n // 20 else i}" for i in range(n)],
}
USER = "looks like a user id"


def refused(table: dict[str, Any], says: str = USER, **options: Any) -> str:
    with pytest.raises(DataError, match=says) as caught:
        datasets.table(pa.table(table), **options)
    return str(caught.value)


def taken(table: dict[str, Any], **options: Any) -> datasets.Dataset:
    return datasets.table(pa.table(table), **options)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [12, 30, N])
@pytest.mark.parametrize("kind", IDS)
def test_ids_beside_values_are_refused_by_name(kind: str, n: int) -> None:
    values = {name: held[:n] for name, held in VALUES.items()}
    table = {**values, "customer": IDS[kind](n)}
    assert "pass user='customer'" in refused(table)
    if kind not in ("with gaps", "a few come again"):
        assert taken(table, user="customer").k == 3


@pytest.mark.filterwarnings("ignore")
def test_two_rows_for_each_user_are_refused() -> None:
    refused({"customer": [f"C{i // 2}" for i in range(N)], **VALUES})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ids", [[f"C{i % 40}" for i in range(N)], [i % 40 for i in range(N)]])
def test_ids_that_come_again_are_refused_unless_a_domain_lists_them(ids: list[Any]) -> None:
    """A row is a report: two columns would be rounds, and 40 ids labels."""
    table = {"customer": ids, **VALUES}
    assert "user id or another attribute" in refused(table, "value= if .* or drop the column")
    assert taken(table, domain=sorted({*ids, 0, 1, 2}, key=str)).tau == 4
    # A round may bring new values, of few kinds or after a round of few users.
    assert taken({"r0": ["a"] * 40, "r1": [*"abcde"] * 8}).k == 5
    assert taken({"r0": ["v1", *[None] * 39], "r1": [f"v{i % 20}" for i in range(40)]}).k == 20


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stays", [0, 3, 6, 11])
def test_a_release_of_new_versions_is_a_round(stays: int) -> None:
    """Each day's users run one of 12 builds, of which so many were there the day before."""
    builds = {
        f"day {t}": [f"build {t * (12 - stays) + i}" for i in RNG.integers(12, size=N)]
        for t in range(8)
    }
    assert taken(builds).tau == 8
    last = {**dict.fromkeys(("w1", "w2", "w3"), builds["day 0"]), "w4": builds["day 7"]}
    assert taken(last).tau == 4
    assert taken({"w4": builds["day 7"], **last}).tau == 4
    assert taken({"jan": builds["day 0"], "feb": builds["day 0"], "mar": builds["day 7"]}).tau == 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["customer_id", "customerId", "Customer ID", "e-mail", "uuid"])
def test_of_few_users_the_name_tells(name: str) -> None:
    table = {"r0": ["a", "b", "a"], "r1": ["a", "a", "b"]}
    refused({name: ["x", "y", "z"], **table})
    assert taken({"grid": ["x", "y", "z"], **table}).tau == 3
    refused({"grid": [*"wxyz"], "r0": [*"abab"], "r1": [*"baba"]})
    assert taken({name: ["a", "b", "a"], **table}).tau == 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n", "k"), [(N, 2 * N), (N, N), (60, 60), (12, 12)])
def test_ids_beside_values_that_seldom_come_again_are_refused(n: int, k: int) -> None:
    """Ids 1..n share their labels with the values; that all differ is what chance hardly does."""
    weeks = {f"w{t}": RNG.integers(k, size=n).tolist() for t in range(4)}
    assert "pass user='account'" in refused({"account": range(n), **weeks})
    assert "pass user='customer_id'" in refused({"customer_id": range(n), **weeks})
    assert taken({"account": range(n), **weeks}, user="account").tau == 4
    # Of values out of very many all may differ in a round, and not in another one.
    many = RNG.choice(100 * n * n, n, replace=False).tolist()
    assert taken({"r0": many, "r1": [*many[1:], many[-1]]}, domain=many).tau == 2


@pytest.mark.filterwarnings("ignore")
def test_a_second_column_of_ids_is_to_be_dropped() -> None:
    said = refused({"user": range(N), "customer": IDS["text"](N), **VALUES})
    assert "the user is 'user': drop the column" in said


@pytest.mark.filterwarnings("ignore")
def test_values_that_never_come_again_say_what_to_do() -> None:
    prices = {f"r{t}": RNG.random(N).tolist() for t in range(2)}
    assert "loloha.campaign.Range" in refused(prices, "must hold values that come again")
    refused({"r0": prices["r0"]}, "must hold values that come again")
    long = {"user": [i % 9 for i in range(N)], "round": [i // 9 for i in range(N)]}
    refused({**long, "value": prices["r0"]}, "value must be a column whose labels come again")
    assert taken(prices, domain=Range(0, 1, 8)).k == 8
    assert taken({**long, "value": prices["r0"]}, domain=Range(0, 1, 8)).k == 8


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("agreed", [Labels((0, 1, 2), "other"), Range(0, 1000, 10), [0, 1, 2]])
def test_a_domain_takes_no_ids_either(agreed: Any) -> None:
    """Neither as "other", nor as not reported, nor as numbers of a range."""
    refused({"customer": range(N), **VALUES}, domain=agreed, on_unknown="missing")
    refused({"customer": range(N), **VALUES}, domain=agreed)


def test_what_the_domain_lists_is_a_value() -> None:
    assert taken({"r0": range(40), **{n: v[:40] for n, v in VALUES.items()}}, domain=range(40)).k


@pytest.mark.filterwarnings("ignore")
def test_values_are_hardly_ever_taken_for_ids() -> None:
    """No refusal where users hold a few values each, or the same ones in other rounds."""
    for n in (10, 20, 50, 200):
        for k in (2, 10, 24, 50):
            for skew in (0.1, 1, 100):
                for _ in range(5):
                    share = RNG.dirichlet(np.full(k, skew))
                    values = RNG.choice(k, size=(n, 4), p=share)
                    if len(np.unique(values)) > 1:
                        datasets.table(values)


def test_the_command_names_its_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"C{i},{'abc'[i % 3]},{'abc'[i % 2]}" for i in range(50)]
    for name, option in (("customer_id", "customer_id"), ("Customer ID", "'Customer ID'")):
        file = tmp_path / "t.csv"
        file.write_text("\n".join([f"{name},r0,r1", *rows]))
        line = ["run", str(file), "--protocol", "grr", "--eps", "1", "--out", str(tmp_path / "o")]
        assert main(line) == 1
        said = capsys.readouterr().err
        assert f"{name} looks like a user id; pass --user {option} (" in said
        assert "user=" not in said
        assert "domain=" not in said


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("write", [str, int], ids=["text", "integers"])
def test_a_long_table_is_no_wide_one_whatever_its_columns_are_called(write: Any) -> None:
    """Ids that come again in each round, beside rounds and values, in any order of the columns."""
    days, users = 6, 100
    long = {
        "client_no": [write(user) for user in range(users) for _ in range(days)],
        "day": [write(day) for _ in range(users) for day in range(days)],
        "hours": [write(hour) for hour in RNG.integers(20, size=users * days).tolist()],
    }
    for names in (list(long), list(long)[::-1]):
        said = refused({name: long[name] for name in names})
        assert "pass user='client_no', and round= and value= if each row is a report" in said
    roles = {"user": "client_no", "round": "day", "value": "hours"}
    assert taken(long, **roles).tau == days
    assert taken(long, domain=[write(i) for i in range(users)]).tau == 3
    weekdays = {"day": [*"abc"] * 20, "browser": [*"uvwxyz"] * 10}
    assert "share no label" in refused(weekdays, "if each row is a report, pass user=, round=")
    assert taken(weekdays, layout="wide").tau == 2
    assert taken({"day 1": weekdays["day"], "day 2": weekdays["browser"]}).tau == 2


def test_kinds_of_cells_say_that_the_table_may_be_long() -> None:
    refused({"r0": [1, 2], "r1": ["a", "b"]}, "if each row is a report, pass user=, round=")


def test_numbers_with_a_decimal_comma_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.csv"
    file.write_text("user;r1;r2\n" + "".join(f"u{i};{i % 4},5;{i % 3},25\n" for i in range(40)))
    line = ["run", str(file), "--protocol", "onebit", "--eps-inf", "2", "--eps-1", "1", "--out"]
    line += [str(tmp_path / "o")]
    assert main(line) == 2
    assert (
        "got numbers with a decimal comma; write a point, give --range" in capsys.readouterr().err
    )
    assert main([*line, "--range", "0", "4", "--bins", "4"]) == 1
    assert "from 0 to 4, with a decimal point and no comma)" in capsys.readouterr().err
