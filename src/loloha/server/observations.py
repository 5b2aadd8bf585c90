"""Estimates of rounds as a filter takes them, from what the server side of loloha returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loloha import checks
from loloha.arrays import Floats, Ints
from loloha.campaign.schedule import RAREST
from loloha.encodings import Threshold
from loloha.errors import MergeError, ParameterError
from loloha.protocols import Protocol, protocol_from_dict
from loloha.server.estimate import Estimate
from loloha.server.estimate_table import EstimateTable
from loloha.server.mean import Mean
from loloha.server.number import Numbers
from loloha.server.projection import decreasing, project_simplex
from loloha.server.statespace import Observed
from loloha.server.tally import Tally
from loloha.server.variance import Channel, drawn_from, eligible_of, spread

_ADVICE = (
    "give a result of loloha.simulate, or a loloha.Tally or loloha.Estimate of each round, "
    "as a list or by its number"
)


@dataclass(frozen=True, eq=False)
class Observations:
    """Unbiased estimates of the rounds of one protocol.

    Attributes
    ----------
    protocol : Protocol
    rounds : list of int
        Ascending; numbers left out are rounds of which nothing is asked.
    estimates : float64[tau, bins]
        NaN where nothing was seen.
    eligible : int64[tau, bins]
        Reports that could support each bin.
    n : int64[tau]
        Reports of each round; 0 of a missing one.
    labels : sequence or None
        What each bin stands for.
    start : list of str or None
        What each round is called.
    campaign : str or None
        Its fingerprint.
    every : int
        In how many rounds a user reports once: more than 1 of panels.
    population : int or None
        Users of whom the reports of each round are a random sample; by default nobody is missing.
    """

    protocol: Protocol
    rounds: list[int]
    estimates: Floats
    eligible: Ints
    n: Ints
    labels: Sequence[Any] | None = None
    start: list[str] | None = None
    campaign: str | None = None
    every: int = 1
    population: int | None = None

    def __post_init__(self) -> None:
        drawn_from(self.population, int(self.n.max(initial=0)))

    @classmethod
    def of(cls, source: Any) -> Observations:
        """Of a simulation, a table, or a sequence or mapping of tallies or estimates by round."""
        if isinstance(source, cls):
            return source
        if hasattr(source, "observations"):
            observations: Observations = source.observations()
            return observations
        if isinstance(source, EstimateTable):
            return cls.of_table(source)
        if isinstance(source, Mapping):
            by_round = dict(
                sorted((checks.round_number(t), counts) for t, counts in source.items())
            )
        elif isinstance(source, Sequence) and not isinstance(source, str | bytes):
            by_round = dict(enumerate(source))
        else:
            raise ParameterError(f"source must hold rounds, got {type(source).__name__}; {_ADVICE}")
        seen = {
            t: estimate
            for t, estimate in ((t, _estimate(counts)) for t, counts in by_round.items())
            if estimate
        }
        if not seen:
            raise ParameterError("source must hold reports, got none; give at least one round")
        protocol = next(iter(seen.values())).protocol
        if any(estimate.protocol != protocol for estimate in seen.values()):
            raise MergeError(
                "rounds must follow one protocol, got several; take the series of each separately"
            )
        shape = len(by_round), protocol.bins
        estimates, eligible = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
        n = np.zeros(shape[0], dtype=np.int64)
        for row, t in enumerate(by_round):
            if t in seen:
                estimates[row], eligible[row], n[row] = (
                    seen[t].frequencies,
                    seen[t].eligible,
                    seen[t].n,
                )
        return cls(protocol, list(by_round), estimates, eligible, n)._known()

    @classmethod
    def of_table(
        cls, table: EstimateTable, protocol: Protocol | None = None, scale: Any = None
    ) -> Observations:
        """Of a table of all values; the protocol is the one that it names, if it does.

        Of numbers whose single thresholds are suppressed, their mean, in units of ``scale``.
        """
        named = (table.about.get("parameters") or {}).get("protocol")
        if named is not None:
            of_table = protocol_from_dict(named)
            if protocol not in (None, of_table):
                raise MergeError("protocol must be that of the estimates, got another; give theirs")
            protocol = of_table
        if protocol is None:
            raise ParameterError(
                "protocol must be known, these estimates do not name it; give their campaign"
            )
        if [*table.value] != [*range(protocol.bins)]:
            raise ParameterError(
                f"estimates must have all {protocol.bins} values, got {len(table.value)}; "
                "take the series of tallies"
            )
        rounds = [t for t in table.round or [] if t is not None]
        if len(rounds) != len(table.estimate):
            raise ParameterError("estimates must be of single rounds, got a mean; leave it out")
        unknown = np.full(protocol.bins, np.nan)
        estimates, errors = (
            np.array([unknown if row is None else np.asarray(row, dtype=float) for row in rows])
            for rows in (table.estimate, table.standard_error)
        )
        if isinstance(protocol.encoding, Threshold) and _suppressed(table):
            protocol, estimates = _means(table, protocol, scale)
        n = np.where(np.isfinite(estimates).any(axis=-1), np.array(table.n, dtype=np.int64), 0)
        whole = estimates.shape[1] == len(table.value)
        eligible = eligible_of(protocol, n[:, None], estimates, errors) if whole else n[:, None]
        start, labels = None if table.start is None else [*table.start], table.label
        return cls(
            protocol, rounds, estimates, eligible, n, labels if whole else None, start,
            table.campaign,
        )._known()  # fmt: skip

    def since(self, first: int) -> Observations:
        """Without the rounds before this one."""
        rows = [row for row, t in enumerate(self.rounds) if t >= first]
        if not rows:
            raise ParameterError(f"rounds must reach {first}, they end before; take an earlier one")
        return self._cut(slice(rows[0], None))

    def seen(self) -> Observations:
        """From the first to the last round with estimates: no forecast lies outside."""
        rows = np.flatnonzero(np.isfinite(self._known().estimates).any(axis=-1))
        return self._cut(slice(int(rows[0]), int(rows[-1]) + 1))

    def _known(self) -> Observations:
        """These, refused where no round has an estimate."""
        if not np.isfinite(self.estimates).any():
            raise ParameterError(
                "source must hold estimates, got none: no round has reports, or all of its values "
                "are suppressed; wait for more"
            )
        return self

    def _cut(self, rows: slice) -> Observations:
        arrays = {name: getattr(self, name)[rows] for name in ("estimates", "eligible", "n")}
        start = None if self.start is None else self.start[rows]
        return replace(self, rounds=self.rounds[rows], start=start, **arrays)

    def of_panels(self, every: int | None) -> Observations:
        """With rounds in each of which one panel of so many reports, if a number is given."""
        if (
            every is None
            or checks.integer("every", every, 1, RAREST, "see the schedule") == self.every
        ):
            return self
        if self.every > 1 or self.population is not None:
            raise ParameterError(
                f"every must be {self.every}, as the source says, got {every}; leave it out"
            )
        # Whoever had a report in each round was one panel.
        return replace(self, every=every)

    def of_users(self, population: int | None) -> Observations:
        """With so many users of whom each round has a sample, if a number is given."""
        if population is None:
            return self
        return replace(self, population=population)

    def labelled(self, labels: Sequence[Any] | None) -> Observations:
        """With these labels, if any are given."""
        if labels is None:
            return self
        if len(labels) != self.protocol.bins:
            raise ParameterError(
                f"labels must be {self.protocol.bins}, one per bin, got {len(labels)}; "
                "give them in the order of the domain"
            )
        return replace(self, labels=labels)

    def places(self, values: Sequence[Any] | None) -> list[int] | None:
        """Bins of values that are given by bins, as integers, or by their labels."""
        if values is None:
            return None
        labels = {str(label): at for at, label in enumerate(self.labels or ())}
        bins = {at: at for at in range(self.protocol.bins)}
        whose = "labels of the series, or bins" if labels else "bins of a series without labels"
        return checks.places("values", values, bins | labels, whose)

    @property
    def numbers(self) -> Numbers:
        """Mean and quantiles of each round by itself, where numbers are asked for."""
        return Numbers.of(self.protocol, self.estimates, self.eligible, self.sampled_from)

    @property
    def sampled_from(self) -> Ints:
        """Of whom the reports of each round are a sample, int64[tau, 1]."""
        n = np.maximum(self.n, 1)[:, None]
        if self.population is not None:
            return np.full_like(n, self.population)
        # The users of a panel are drawn from all of them, who would take so many panels.
        return n if self.every == 1 else np.full_like(n, n.max() * self.every)

    @property
    def returning(self) -> Any:
        """Share of a round's memo noise that it has in common with others, float64[tau, 1].

        Where a share p of all users reports, p^2 of them report in two rounds: p for each of these.
        """
        if self.population is not None:
            return np.maximum(self.n, 1)[:, None] / self.population
        # Rounds share memos where they are a multiple of `every` apart: means over windows, in the
        # long run, share an `every`-th. In shorter ones it is a bound.
        return 1 / self.every

    def plausible(self, means: Floats, variances: Any = 1.0) -> Floats:
        """Frequencies that these could be, float64[..., bins]; shares where bins are values."""
        encoding = self.protocol.encoding
        if encoding.values == encoding.bins:
            return project_simplex(means)
        # Of users whose number reaches a threshold, or their mean.
        return decreasing(means, 1 / np.asarray(variances))

    def observed(self) -> Observed:
        """With variances at the mean frequency of each value."""
        seen = np.isfinite(self.estimates)
        reached = np.where(seen, self.eligible, 0).sum(axis=0)
        mean = np.where(seen, self.eligible * self.estimates, 0.0).sum(axis=0) / np.maximum(
            reached, 1
        )
        f = np.clip(mean, 0.0, 1.0)
        n, eligible = np.maximum(self.n, 1)[:, None], np.where(seen, self.eligible, 1)
        variance = spread(Channel.realised(self.protocol), self.sampled_from, eligible, f)
        memo = np.zeros_like(variance)
        if self.protocol.longitudinal:
            memo = np.minimum(spread(Channel.memoised(self.protocol), n, eligible, f), variance)
        memo = memo * self.returning
        elapsed = np.diff(self.rounds, prepend=self.rounds[0] - 1)
        plausible = self.plausible(mean, 1 / np.maximum(reached, 0.5))
        protocol = self.protocol
        lasting = protocol.encoding.lasting_share(plausible, protocol.p1 - protocol.q1)
        users = float(self.sampled_from.max())
        turnover = plausible * (1 - plausible) / users
        return Observed(self.estimates, memo, variance - memo, f, turnover, lasting, elapsed, users)


def _estimate(source: Any) -> Estimate | None:
    """The estimate of a round; None of one without reports."""
    if isinstance(source, Tally):
        return source.estimate() if source.n else None
    if source is None or (isinstance(source, Estimate) and not isinstance(source, Mean)):
        return source
    raise ParameterError(
        f"a round must be a Tally or an Estimate, got {type(source).__name__}; {_ADVICE}"
    )


def _suppressed(table: EstimateTable) -> bool:
    """Whether a round that is shown lacks a value."""
    shown = [np.asarray(row, dtype=np.float64) for row in table.estimate if row is not None]
    return not all(np.isfinite(row).all() for row in shown)


def _means(table: EstimateTable, protocol: Protocol, scale: Any) -> tuple[Protocol, Floats]:
    """Means of rounds as shares of the range, and the protocol that asks for nothing else."""
    if "mean" not in table.more or scale is None:
        raise ParameterError(
            "estimates must have every threshold, or the mean and a campaign that says its units, "
            "some are suppressed; take the address of the campaign, or tallies"
        )
    start, step, _ = scale
    alone: Any = protocol
    share = [np.nan if row is None else (row[0] - start) / step for row in table.more["mean"]]
    return replace(alone, target="mean"), np.array(share)[:, None] / (protocol.k - 1)
