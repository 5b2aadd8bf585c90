"""Hours worked per week from the UCI Adult census extract, in rounds that permute its column."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np

from loloha.checks import integer
from loloha.datasets.dataset import DataError, Dataset, generator, narrowest, shipped

SHA256 = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "72567b94f5c1a6f8501377dd80f93892c3848ff071cf91ba47e00b0785a28074",
}
FIELDS, HOURS = 15, 12
LONGEST = 100_000


def adult(
    path: str | Path | None = None,
    tau: int = 260,
    rng: int | np.random.SeedSequence | np.random.Generator = 0,
) -> Dataset:
    """Hours per week of the UCI Adult data: n = 45 222 persons, k = 96 values.

    Parameters
    ----------
    path : str or Path, optional
        A folder with ``adult.data`` and ``adult.test`` as UCI distributes them (a lone
        ``adult.data`` will do), or one such file. Without it, the histogram that ships with
        loloha, which is all that the rounds depend on: both give the same data for one seed.
    tau : int
        Rounds, tau >= 1 (five years of weeks by default).
    rng : int, SeedSequence or Generator
        Equal seeds give equal data.

    Returns
    -------
    Dataset
        ``source`` is "real" with a path and "histogram" without; the labels are the hours. Every
        round is a fresh permutation of the column, so each has the same histogram.

    Raises
    ------
    DataError
        If there is no such file, or a row does not have the form of the Adult data.
    ParameterError
        If ``tau`` or ``rng`` is unusable.

    Notes
    -----
    Rows with a "?" in any field are dropped. Data: UCI Adult, B. Becker and R. Kohavi, CC BY 4.0.
    Source: MATH section 10.
    """
    tau = integer("tau", tau, 1, LONGEST, "give the number of rounds")
    random = generator(rng)
    if path is None:
        rows = shipped("adult_hours.csv")[1:]
        histogram = Counter({int(hours): int(persons) for hours, persons in rows})
        source, origin = "histogram", "the shipped histogram of UCI Adult"
    else:
        present = _locate(Path(path))
        histogram, source, origin = _read(present), "real", _describe(present)
    labels = tuple(sorted(histogram))
    column = np.repeat(
        np.arange(len(labels), dtype=narrowest(len(labels))), [histogram[hours] for hours in labels]
    )
    rounds = np.empty((tau, column.size), dtype=column.dtype)
    for t in range(tau):
        rounds[t] = random.permutation(column)
    provenance = (
        f"Hours per week from {origin} (Becker and Kohavi, CC BY 4.0), each round a fresh "
        f"permutation of the column (n = {column.size}, k = {len(labels)}, tau = {tau})."
    )
    return Dataset(np.ascontiguousarray(rounds.T), labels, "Adult", source, provenance)


def _locate(path: Path) -> list[Path]:
    """Return the files to read: the one named, or those of a folder."""
    if path.is_file():
        return [path]
    present = [path / name for name in SHA256 if (path / name).is_file()]
    if not present:
        raise DataError(
            f"path must be a file or a folder with {' and '.join(SHA256)}, got {str(path)!r}; "
            "run `loloha data fetch adult`, or leave path out to use the shipped histogram"
        )
    return present


def _read(present: list[Path]) -> Counter[int]:
    """Return persons by hours over all complete rows of the files."""
    histogram: Counter[int] = Counter()
    for file in present:
        for number, line in enumerate(
            file.read_text(encoding="utf-8", errors="replace").splitlines(), start=1
        ):
            # adult.test opens with a remark, both files end in an empty line.
            if not line.strip() or line.startswith("|"):
                continue
            row = [cell.strip() for cell in line.split(",")]
            if len(row) != FIELDS or not (row[HOURS].isdecimal() or row[HOURS] == "?"):
                raise DataError(
                    f"each row must have {FIELDS} fields with the hours in field {HOURS + 1}, "
                    f"got another in line {number} of {file.name}; fetch the file anew"
                )
            if "?" not in row:
                histogram[int(row[HOURS])] += 1
    if len(histogram) < 2:
        raise DataError(
            f"path must hold rows with at least two different hours, got {len(histogram)}; "
            "fetch the file anew"
        )
    return histogram


def _describe(present: list[Path]) -> str:
    """Name the files, and say so if one differs from what UCI distributes."""
    distributed = SHA256.values()
    differs = [
        file.name
        for file in present
        if hashlib.sha256(file.read_bytes()).hexdigest() not in distributed
    ]
    origin = "UCI Adult, " + " and ".join(file.name for file in present)
    return f"{origin} ({', '.join(differs)} not as UCI distributes it)" if differs else origin
