"""Browser versions in use: real shares of 22 months, and made-up users who reproduce them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import groupby, pairwise

import numpy as np

from loloha.arrays import Floats, Ints
from loloha.checks import integer
from loloha.datasets.dataset import Dataset, generator, narrowest, shipped

MONTHS, PER_MONTH = 22, 8
LONGEST = (MONTHS - 1) * PER_MONTH + 1
LARGEST = 10**9
Flow = tuple[int, int, int]


def browsers(
    users: int = 20_000,
    *,
    tau: int = LONGEST,
    rng: int | np.random.SeedSequence | np.random.Generator = 0,
) -> Dataset:
    """Users who upgrade their browsers, so that the versions' shares are the real ones: k = 97.

    Parameters
    ----------
    users : int
        Users, at least 1.
    tau : int
        Rounds in 1..169, eight a month from January 2025 on.
    rng : int, SeedSequence or Generator
        Equal seeds give equal data.

    Returns
    -------
    Dataset
        ``source="histogram"``: the shares are real, the paths of single users are simulated. The
        labels are such as "Chrome 131", from a browser's oldest version to its newest; ``rounds``
        are dates.

    Raises
    ------
    ParameterError
        If an argument is outside its range.

    Notes
    -----
    A month's shares hold on its first day, and are interpolated linearly between. Counts are
    rounded so that cumulative shares, in the order of the labels, are within 1/(2 users) of these,
    and single ones within 1/users. From round to round as few users move as the counts allow, from
    5 000 users on 1 % to 4 % of them (rounding moves more of fewer users): in a browser to a newer
    version wherever one gains, then to an older one, and to another browser only as the browsers'
    totals force it: 82 %, 2 % and 16 % of the moves. Who of a version's users moves is drawn at
    random.

    Versions that never reach 1 % of a month are "other" of their browser, which counts as its
    oldest. Chrome on Android is one label: the source shows all its users at the newest version,
    so that six or seven of ten users would move in every month.

    Data: caniuse-lite (A. Deveria and contributors, CC BY 4.0), from StatCounter Global Stats (CC
    BY-SA 3.0); each month as its release shows it, which is the use of the month before.
    """
    users = integer("users", users, 1, LARGEST, "give the number of users")
    tau = integer("tau", tau, 1, LONGEST, "give the number of rounds")
    random = generator(rng)
    names, months, shares = _shipped()
    counts = _counts(_between(shares)[:tau], users)
    groups = [list(group) for _, group in groupby(range(len(names)), lambda v: names[v][0])]
    values = np.empty((tau, users), dtype=narrowest(len(names)))
    values[0] = random.permutation(np.repeat(np.arange(len(names)), counts[0]))
    for t in range(1, tau):
        values[t] = values[t - 1]
        _move(values[t], list(_flows(counts[t] - counts[t - 1], groups)), random)
    labels = tuple(" ".join(filter(None, name)) for name in names)
    provenance = (
        "Browser versions: real shares (caniuse-lite, CC BY 4.0, from StatCounter Global Stats), "
        f"simulated paths of users (n = {users}, k = {len(labels)}, tau = {tau})."
    )
    return Dataset(
        np.ascontiguousarray(values.T), labels, "Browsers", "histogram", provenance, months[:tau]
    )


def _shipped() -> tuple[list[tuple[str, str]], tuple[date, ...], Floats]:
    """Browser and version of each label, dates of the rounds, and shares [month, label]."""
    header, *rows = shipped("browser_shares.csv")
    firsts = [date.fromisoformat(f"{month}-01") for month in header[2:]]
    dates = tuple(
        first + timedelta(days=(after - first).days * step // PER_MONTH)
        for first, after in pairwise(firsts)
        for step in range(PER_MONTH)
    )
    shares = np.array([row[2:] for row in rows], dtype=np.float64).T
    names = [(browser, version) for browser, version, *_ in rows]
    return names, (*dates, firsts[-1]), shares / shares.sum(axis=1, keepdims=True)


def _between(shares: Floats) -> Floats:
    """Shares of each round, float64[LONGEST, k], on lines between those of the months."""
    month, step = np.divmod(np.arange(LONGEST), PER_MONTH)
    part = (step / PER_MONTH)[:, np.newaxis]
    after = np.minimum(month + 1, MONTHS - 1)
    between: Floats = (1 - part) * shares[month] + part * shares[after]
    return between


def _counts(shares: Floats, users: int) -> Ints:
    """Users with each value, int64[tau, k]: sums up to any value are rounded to the nearest."""
    upto = np.cumsum(shares, axis=1)
    rounded = np.rint(users * upto / upto[:, -1:]).astype(np.int64)
    counts: Ints = np.diff(rounded, axis=1, prepend=0)
    return counts


def _flows(change: Ints, groups: Sequence[Sequence[int]]) -> Iterator[Flow]:
    """The fewest moves (from, to, users) that change counts so: upgrades as far as they go."""
    left = change.tolist()

    def match(sources: Sequence[int], targets: Sequence[int]) -> Iterator[Flow]:
        gaining = [target for target in targets if left[target] > 0]
        for source in sources:
            for target in gaining:
                users = min(-left[source], left[target])
                if users > 0:
                    left[source] += users
                    left[target] -= users
                    yield source, target, users

    for versions in groups:
        newest_first = versions[::-1]
        # Newest first: what only an upgrade to the newest can use up is not left over.
        for place, version in enumerate(newest_first):
            yield from match([version], newest_first[:place])
        yield from match(versions, versions)
    everything = range(len(left))
    yield from match(everything, everything)


def _move(values: Ints, flows: Sequence[Flow], random: np.random.Generator) -> None:
    """Move users of each flow, drawn among those of its value, in place."""
    order = random.permutation(values.size)
    order = order[np.argsort(values[order], kind="stable")]
    first = np.searchsorted(values[order], np.arange(values.max() + 1))
    for source, target, users in flows:
        values[order[first[source] : first[source] + users]] = target
        first[source] += users
