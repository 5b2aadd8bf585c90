"""Person weights of the American Community Survey: 80 replicate weights a person, one a round."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np

from loloha.checks import integer
from loloha.datasets.csv import PURPOSE, read_csv, read_header
from loloha.datasets.dataset import DataError, Dataset, extra, narrowest
from loloha.datasets.download import find_cached
from loloha.datasets.us_state import UsState, find_state

YEAR = 2018
REPLICATES = 80


def acs_weights(state: str, path: str | Path | None = None, tau: int = REPLICATES) -> Dataset:
    """Columns PWGTP1..PWGTP80 of the ACS PUMS person file of a state, 1-year, 2018.

    Parameters
    ----------
    state : str
        Two-letter postal code or full name of a state, of DC or of Puerto Rico.
    path : str or Path, optional
        The person file (``psam_p30.csv``, ``csv_pmt.zip``, or any CSV with these columns), or a
        folder with it; a file of several states is cut down to this one by its column ST. Without
        it, what `loloha.datasets.fetch` downloaded before.
    tau : int
        Rounds, 1..80: the first ``tau`` weights.

    Returns
    -------
    Dataset
        One user a person, ``source="real"``; the labels are the sorted distinct weights. Montana
        has n = 10 336, k = 1 412; Delaware n = 9 123, k = 1 234.

    Raises
    ------
    DataError
        If there is no such file, it lacks the columns or the state, or was not fetched yet.
    ParameterError
        If ``state`` or ``tau`` is unusable.
    ExtraError
        If pyarrow is not installed.

    Notes
    -----
    Data: US Census Bureau, public domain. Source: MATH section 10.
    """
    place = find_state(state)
    tau = integer("tau", tau, 1, REPLICATES, "the survey has 80 replicate weights")
    file = find_cached(place.code) if path is None else _locate(Path(path), place)
    weights = _read(_opener(file, place), file.name, place, tau)
    labels = np.unique(weights)
    if labels.size < 2:
        raise DataError(
            f"{file.name} must hold at least two persons with different weights, got "
            f"{labels.size} weights; fetch the file anew"
        )
    values = np.searchsorted(labels, weights).astype(narrowest(labels.size))
    provenance = (
        f"Person weights PWGTP1..{tau} of {place.name}, US Census Bureau ACS PUMS 1-year {YEAR}, "
        f"from {file.name} (n = {len(values)}, k = {labels.size}, tau = {tau})."
    )
    return Dataset(values, tuple(labels.tolist()), f"DB_{place.code}", "real", provenance)


def _locate(path: Path, place: UsState) -> Path:
    """Return the file named, or the one of this state in a folder."""
    if path.is_file():
        return path
    wanted = [name.lower() for name in _file_names(place)]
    present = {file.name.lower(): file for file in path.iterdir()} if path.is_dir() else {}
    for name in wanted:
        if name in present:
            return present[name]
    raise DataError(
        f"path must be a person file, or a folder with one of {', '.join(_file_names(place))}, "
        f"got {str(path)!r}; run `loloha data fetch acs {place.code}`"
    )


def _file_names(place: UsState) -> list[str]:
    """Return the names that a state's person file goes by."""
    return [
        f"PWGTP_{place.name}.csv",
        f"PWGTP_{place.name.replace(' ', '_')}.csv",
        f"PWGTP_{place.name.replace(' ', '')}.csv",
        f"PWGTP_{place.code}.csv",
        f"psam_p{place.fips}.csv",
        f"csv_p{place.code.lower()}.zip",
    ]


def _opener(file: Path, place: UsState) -> Callable[[], IO[bytes]]:
    """Return how to open the CSV, inside a zip or not."""
    if file.suffix.lower() != ".zip":
        return lambda: file.open("rb")
    try:
        with zipfile.ZipFile(file) as archive:
            members = [name for name in archive.namelist() if name.lower().endswith(".csv")]
    except (OSError, zipfile.BadZipFile):
        raise DataError(
            f"path must be an undamaged zip file, got {file.name!r}; "
            f"run `loloha data fetch acs {place.code}`"
        ) from None
    if len(members) != 1:
        raise DataError(
            f"{file.name} must hold one CSV file, got {len(members)}; extract it and pass the CSV"
        )
    return lambda: zipfile.ZipFile(file).open(members[0])


def _read(
    opener: Callable[[], IO[bytes]], name: str, place: UsState, tau: int
) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    """Read the weights of one state's persons, int32[n, tau]."""
    pyarrow, compute = extra("pyarrow", PURPOSE), extra("pyarrow.compute", PURPOSE)
    columns = {column.lower(): column for column in read_header(opener)[0]}
    weights = [f"pwgtp{t}" for t in range(1, tau + 1)]
    absent = [weight.upper() for weight in weights if weight not in columns]
    if absent:
        raise DataError(
            f"{name} must have the columns PWGTP1..PWGTP{tau}, got {len(absent)} of them missing; "
            "pass the person file (psam_p..), not the housing file"
        )
    wanted = [columns[column] for column in [*weights, "st"] if column in columns]
    table = read_csv(opener, dict.fromkeys(wanted, pyarrow.int32()))
    if "st" in columns:
        table = table.filter(compute.equal(table[columns["st"]], int(place.fips)))
    read = [table[columns[weight]] for weight in weights]
    gaps = sum(column.null_count for column in read)
    if not table.num_rows or gaps:
        raise DataError(
            f"{name} must hold persons of {place.name} with all their weights, got "
            f"{table.num_rows} persons and {gaps} gaps; pass the file of that state"
        )
    return np.stack([column.to_numpy() for column in read], axis=1)
