"""The data set itself, the made-up populations, Adult and the ACS person weights."""

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loloha import datasets
from loloha.datasets import DataError, Dataset, ExtraError
from loloha.errors import LolohaError, ParameterError

WEIGHTS = [f"PWGTP{t}" for t in range(1, 81)]


def small(**changes: Any) -> Dataset:
    given = {
        "values": np.array([[0, 1, -1], [2, 1, -1]]),
        "labels": ("a", "b", "c"),
        "name": "small",
        "source": "user",
        "provenance": "Made for a test.",
    }
    return Dataset(**(given | changes))


def test_a_data_set_says_what_it_holds() -> None:
    data = small(rounds=["Mon", "Tue", "Wed"])
    assert (data.n, data.k, data.tau) == (2, 3, 3)
    assert data.rounds == ("Mon", "Tue", "Wed")
    assert data.reports.tolist() == [2, 2, 0]
    assert data.counts().tolist() == [[1, 0, 1], [0, 2, 0], [0, 0, 0]]


def test_frequencies_are_shares_of_the_reports_of_the_round() -> None:
    frequencies = small(values=[[0, 1, -1], [2, -1, -1]]).frequencies()
    assert frequencies.dtype == np.float64
    assert frequencies[:2].tolist() == [[0.5, 0, 0.5], [0, 1, 0]]
    assert np.isnan(frequencies[2]).all()


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
def test_counts_do_not_depend_on_the_integer_type(dtype: type) -> None:
    values = np.array([[0, 2], [32_766, -1]], dtype=dtype)
    counts = small(values=values, labels=range(32_767)).counts()
    assert counts.dtype == np.int64
    assert np.flatnonzero(counts[0]).tolist() == [0, 32_766]
    assert counts.sum(axis=1).tolist() == [2, 1]


def test_labels_become_python_scalars_and_rounds_count_from_0() -> None:
    data = small(labels=np.array([5, 7, 9]))
    assert data.labels == (5, 7, 9)
    assert all(type(label) is int for label in data.labels)
    assert data.rounds == (0, 1, 2)


def test_values_cannot_be_written_through_the_data_set_but_stay_the_users_own() -> None:
    values = np.array([[0, 1]])
    data = small(values=values)
    with pytest.raises(ValueError, match="read-only"):
        data.values[0, 0] = 1
    values[0, 0] = 2


def test_repr_shows_sizes_and_no_value_or_label() -> None:
    shown = repr(small(labels=("secret", "b", "c")))
    assert shown == "Dataset(name='small', source='user', n=2, k=3, tau=3)"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"values": [0, 1]}, r"shape \[users, rounds\].*\(2,\)"),
        ({"values": np.zeros((0, 3), int)}, "neither empty"),
        ({"values": [[0.0, 1.0]]}, "signed integer.*float64"),
        ({"values": np.zeros((2, 3), np.uint8)}, "signed integer.*uint8"),
        ({"values": [[True, False]]}, "signed integer.*bool"),
        ({"values": [[0, 3]]}, r"-1\.\.2, got some outside"),
        ({"values": [[0, -2]]}, r"-1\.\.2, got some outside"),
        ({"labels": ("a",)}, "at least 2 labels"),
        ({"labels": ("a", "a", "b")}, "3, 2 of them different"),
        ({"labels": ("a", ["b"], "c")}, "hashable"),
        ({"source": "guess"}, "source must be one of"),
        ({"rounds": ("Mon", "Tue")}, "3 columns of values, got 2"),
        ({"rounds": ("Mon", "Mon", "Tue")}, "all different"),
    ],
)
def test_a_data_set_that_does_not_hold_together_is_refused(
    changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(ParameterError, match=says):
        small(**changes)


def test_importing_loads_no_heavy_library() -> None:
    code = (
        "import sys, loloha.datasets\n"
        "print({'pyarrow', 'narwhals', 'pooch', 'pandas'} & set(sys.modules))"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "set()"


def test_the_catalogue_tells_the_truth(real_data: Path) -> None:
    loaded = {
        "Syn": datasets.syn(),
        "Adult": datasets.adult(),
        "Browsers": datasets.browsers(),
        "DB_MT": datasets.acs_weights("MT", real_data),
        "DB_DE": datasets.acs_weights("DE", real_data),
        "ACS stand-in": datasets.acs_standin(),
    }
    for entry in datasets.CATALOGUE:
        if entry.name in loaded:
            data = loaded[entry.name]
            assert (data.name, data.source, data.tau) == (entry.name, entry.source, entry.tau)
            assert entry.n == data.n
            assert entry.k in (data.k, None)


def test_syn_has_the_papers_size() -> None:
    data = datasets.syn()
    assert (data.n, data.k, data.tau) == (10_000, 360, 120)
    assert data.labels == tuple(range(360))
    assert data.source == "synthetic"
    assert data.provenance.startswith("Synthetic:")
    assert (data.values >= 0).all()


def test_syn_moves_as_often_as_stated_and_stays_uniform() -> None:
    # Seeded; each bound is 6.1 sigma (alpha 1e-9): would see "change" taken for "stay", a change
    # that never returns the old value, and a start that is not uniform.
    n, k, tau, change = 20_000, 5, 20, 0.25
    values = datasets.syn(n, k, tau, change, rng=11).values
    moved = np.mean(values[:, 1:] != values[:, :-1])
    expected = change * (1 - 1 / k)
    sigma = np.sqrt(expected * (1 - expected) / (n * (tau - 1)))
    z = (moved - expected) / sigma
    assert abs(z) < 6.1, f"seed=11 n={n} seen={moved} expected={expected} z={z}"
    for t in (0, tau - 1):
        shares = np.bincount(values[:, t], minlength=k) / n
        z = np.abs(shares - 1 / k).max() / np.sqrt((1 - 1 / k) / k / n)
        assert z < 6.4, f"seed=11 t={t} n={n} shares={shares} z={z}"


def test_syn_without_change_is_constant() -> None:
    values = datasets.syn(50, 4, 6, change=0).values
    assert (values == values[:, :1]).all()


def test_values_take_the_narrowest_type() -> None:
    assert datasets.syn(5, 32_768, 1).values.dtype == np.int16
    assert datasets.syn(5, 32_769, 1).values.dtype == np.int32


def test_the_standin_says_that_it_is_one() -> None:
    data = datasets.acs_standin()
    assert data.source == "stand-in"
    assert data.provenance.startswith("Stand-in, not real data:")
    assert (data.n, data.tau) == (10_336, 80)
    assert min(data.labels) >= 1


def test_the_standin_has_the_shape_of_the_real_weights(real_data: Path) -> None:
    real, made = datasets.acs_weights("MT", real_data), datasets.acs_standin()
    assert made.k == pytest.approx(real.k, rel=0.1)

    def weights(data: Dataset) -> np.ndarray[Any, Any]:
        return np.asarray(data.labels)[data.values]

    assert weights(made).mean() == pytest.approx(weights(real).mean(), rel=0.1)
    assert np.median(weights(made)) == pytest.approx(np.median(weights(real)), rel=0.15)


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: datasets.syn(30, 7, 5, rng=rng),
        lambda rng: datasets.acs_standin(30, 5, rng=rng),
        lambda rng: datasets.adult(tau=2, rng=rng),
    ],
    ids=["syn", "standin", "adult"],
)
def test_equal_seeds_give_equal_data(make: Any) -> None:
    once = make(3).values
    for same in (np.int64(3), np.random.SeedSequence(3), np.random.default_rng(3)):
        assert np.array_equal(make(same).values, once)
    assert not np.array_equal(make(4).values, once)


@pytest.mark.parametrize("rng", [None, -1, True, 1.0, "1", np.random.RandomState(0)])
def test_what_is_no_seed_is_refused(rng: Any) -> None:
    with pytest.raises(ParameterError, match="rng must be an integer seed"):
        datasets.syn(3, 2, 1, rng=rng)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: datasets.syn(n=0), "n must be"),
        (lambda: datasets.syn(k=1), "k must be"),
        (lambda: datasets.syn(tau=2.0), "tau must be"),
        (lambda: datasets.syn(change=1.1), "change must be"),
        (lambda: datasets.syn(change=float("nan")), "change must be"),
        (lambda: datasets.acs_standin(n=1), "n must be"),
        (lambda: datasets.acs_standin(tau=0), "tau must be"),
        (lambda: datasets.adult(tau=0), "tau must be"),
        (lambda: datasets.acs_weights("MT", tau=81), r"tau must be an integer in 1\.\.80"),
    ],
)
def test_sizes_out_of_range_are_refused(make: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        make()


def test_the_shipped_histogram_is_that_of_the_files(real_data: Path) -> None:
    shipped, real = datasets.adult(tau=3, rng=5), datasets.adult(real_data, tau=3, rng=5)
    assert (shipped.n, shipped.k) == (45_222, 96)
    assert shipped.labels == real.labels
    assert np.array_equal(shipped.values, real.values)
    assert (shipped.source, real.source) == ("histogram", "real")
    assert "not as UCI distributes it" not in real.provenance


def test_every_round_of_adult_is_another_permutation_of_one_column() -> None:
    data = datasets.adult(tau=4)
    counts = data.counts()
    assert (counts == counts[0]).all()
    assert counts[0][data.labels.index(40)] == counts[0].max()
    for t in range(3):
        assert not np.array_equal(data.values[:, t], data.values[:, t + 1])
    assert np.any(np.diff(data.values[:, 0]) < 0), "the first round is in the order of the file"
    assert datasets.adult().tau == 260


def row(hours: Any, occupation: str = "Sales") -> str:
    return (
        f"39, Private, 7, Bachelors, 13, Never-married, {occupation}, Wife, White, Male, 0, 0, "
        f"{hours}, United-States, <=50K"
    )


def test_adult_rows_with_a_gap_are_dropped(tmp_path: Path) -> None:
    file = tmp_path / "adult.test"
    file.write_text(
        "\n".join(
            ["|1x3 Cross validator", row(40), row(40), row(38), row(9, "?"), row("?"), "", ""]
        )
    )
    for path in (tmp_path, file, str(file)):
        data = datasets.adult(path, tau=1)
        assert data.labels == (38, 40)
        assert data.counts().tolist() == [[1, 2]]
        assert "adult.test not as UCI distributes it" in data.provenance


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "adult.data and adult.test"),
        ("", "at least two different hours, got 0"),
        (row(40), "at least two different hours, got 1"),
        (row(40) + "\n1, 2, 3", "line 2 of adult.data"),
        (row("forty"), "line 1 of adult.data"),
    ],
)
def test_adult_files_that_are_not_are_refused(
    tmp_path: Path, content: str | None, says: str
) -> None:
    if content is not None:
        (tmp_path / "adult.data").write_text(content)
    with pytest.raises(DataError, match=says):
        datasets.adult(tmp_path)


@pytest.mark.parametrize(
    ("state", "n", "k", "lowest"), [("MT", 10_336, 1412, 0), ("Delaware", 9_123, 1234, 0)]
)
def test_real_weights_have_the_papers_size(
    real_data: Path, state: str, n: int, k: int, lowest: int
) -> None:
    data = datasets.acs_weights(state, real_data)
    assert (data.n, data.k, data.tau) == (n, k, 80)
    assert data.labels[0] == lowest
    assert list(data.labels) == sorted(data.labels)
    assert data.source == "real"
    assert f"n = {n}, k = {k}, tau = 80" in data.provenance


def test_real_weights_are_those_of_the_file(real_data: Path) -> None:
    data = datasets.acs_weights("MT", real_data)
    plain = np.loadtxt(real_data / "PWGTP_Montana.csv", delimiter=",", skiprows=1, dtype=int)
    assert np.array_equal(np.asarray(data.labels)[data.values], plain)


def person_file(states: list[int] | None, rows: int = 4, header: Any = str) -> str:
    names = (["SERIALNO"] if states else []) + (["ST"] if states else []) + WEIGHTS
    lines = [",".join(map(header, names))]
    for person in range(rows):
        front = ["2018GQ0001", f"{states[person % len(states)]:02}"] if states else []
        lines.append(",".join([*front, *(str(100 * person + t) for t in range(80))]))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "name", ["psam_p33.csv", "PSAM_P33.CSV", "PWGTP_New_Hampshire.csv", "PWGTP_NH.csv"]
)
@pytest.mark.parametrize("state", ["NH", "nh", "New Hampshire", " new hampshire "])
def test_a_folder_is_searched_for_the_states_file(tmp_path: Path, name: str, state: str) -> None:
    (tmp_path / name).write_text(person_file([33]))
    data = datasets.acs_weights(state, tmp_path, tau=2)
    assert data.name == "DB_NH"
    assert data.labels == (0, 1, 100, 101, 200, 201, 300, 301)


def test_the_zip_file_of_the_bureau_is_read_as_it_is(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "csv_ppr.zip", "w") as archive:
        archive.writestr("psam_p72.csv", person_file([72]))
        archive.writestr("ACS2018_PUMS_README.pdf", "a remark")
    for path in (tmp_path, tmp_path / "csv_ppr.zip"):
        assert datasets.acs_weights("Puerto Rico", path).n == 4


def test_a_file_of_several_states_is_cut_down_to_one(tmp_path: Path) -> None:
    file = tmp_path / "psam_pusa.csv"
    file.write_text(person_file([1, 2], rows=6, header=str.lower))
    data = datasets.acs_weights("AK", file, tau=1)
    assert data.labels == (100, 300, 500)
    with pytest.raises(DataError, match="must hold persons of Wyoming"):
        datasets.acs_weights("WY", file)


def test_all_states_are_known() -> None:
    assert len(datasets.STATES) == 52
    assert len({place.fips for place in datasets.STATES.values()}) == 52
    assert {"DC", "PR"} < set(datasets.STATES)
    assert [place.name for place in datasets.STATES.values()][:2] == ["Alabama", "Alaska"]


@pytest.mark.parametrize("state", ["XX", "", None, 30, "Mont"])
def test_an_unknown_state_is_refused(state: Any) -> None:
    with pytest.raises(ParameterError, match="state must be a US postal code"):
        datasets.acs_weights(state)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("SERIALNO,WGTP\n1,2\n", "80 of them missing"),
        (person_file(None).replace("PWGTP80", "other"), "1 of them missing"),
        (person_file(None, rows=0), "with all their weights, got 0 persons and 0 gaps"),
        (person_file(None).replace(",79\n", ",\n"), "got 4 persons and 1 gaps"),
        (person_file(None).replace("179", "secret"), "cell of its column's type"),
        (",".join(WEIGHTS) + 2 * ("\n" + ",".join(["7"] * 80)), "different weights, got 1"),
        ("", "header line"),
    ],
)
def test_person_files_that_are_not_are_refused(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "psam_p30.csv"
    file.write_text(content)
    with pytest.raises(DataError, match=says) as caught:
        datasets.acs_weights("MT", file)
    assert "secret" not in str(caught.value)


def test_a_missing_or_damaged_person_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "nowhere.csv"):
        with pytest.raises(DataError, match="loloha data fetch acs MT"):
            datasets.acs_weights("MT", path)
    damaged = tmp_path / "csv_pmt.zip"
    damaged.write_text("no zip")
    with pytest.raises(DataError, match="undamaged zip"):
        datasets.acs_weights("MT", tmp_path)
    with zipfile.ZipFile(damaged, "w") as archive:
        archive.writestr("a.csv", person_file(None))
        archive.writestr("b.csv", person_file(None))
    with pytest.raises(DataError, match="one CSV file, got 2"):
        datasets.acs_weights("MT", damaged)


def test_without_pyarrow_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "psam_p30.csv").write_text(person_file([30]))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ExtraError, match=r"pyarrow must be installed.*loloha\[cli\]") as caught:
        datasets.acs_weights("MT", tmp_path)
    assert isinstance(caught.value, LolohaError)
    assert isinstance(caught.value, ImportError)
