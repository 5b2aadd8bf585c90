"""Did one user send both? Pairs of reports, and one user among many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha import checks
from loloha.privacy.roc import Roc
from loloha.protocols import Protocol
from loloha_lab.attacks.change import LONGEST_STRETCH, score_changes
from loloha_lab.attacks.stretch import Stretch, observe

TARGETS = 200


@dataclass(frozen=True, eq=False)
class Linking:
    """How well reports of one user can be joined.

    Attributes
    ----------
    roc : Roc
        Of pairs of stretches from one user, against pairs from two.
    top_one : float
        Share of targets for whom, among all n users, the likeliest sender is the right one; equal
        ones are drawn from.
    error : float
        Standard error of that share.
    users, targets : int
        Among how many, and of how many it was measured.
    """

    roc: Roc
    top_one: float
    error: float
    users: int
    targets: int


def linking(protocol: Protocol, reports: int, *, n: int, rng: int) -> Linking:
    """Join two stretches of reports of n users whose values, uniformly drawn, stay.

    Parameters
    ----------
    protocol : Protocol
    reports : int
        In each of the two stretches, 1..1000.
    n : int
        Users, at least 2.
    rng : int
        Seed.

    Returns
    -------
    Linking

    Raises
    ------
    ParameterError
        If a number is out of range, or the protocol's encoding is unknown here.

    Notes
    -----
    The score is that of a change of value, the other way round: where users carry a key, other keys
    are other users, and otherwise the memo itself is the fingerprint. MATH section 12.
    """
    reports = checks.integer("reports", reports, 1, LONGEST_STRETCH, "count those of one stretch")
    n = checks.integer("n", n, 2, 1 << 24, "join the reports of some users")
    values = np.random.default_rng(rng).integers(0, protocol.k, size=n)
    repeated = np.repeat(values[:, None], 2 * reports, axis=1)
    first, second = observe(protocol, repeated, [reports, reports], rng)
    others = second.of(np.roll(np.arange(n), 1))
    pairs = [likeness(protocol, first, sent) for sent in (others, second)]
    targets = min(n, TARGETS)
    right = np.array([_found(protocol, first, second, user) for user in range(targets)])
    error = math.sqrt(float(right.var()) / targets)
    return Linking(Roc(*pairs), float(right.mean()), error, n, targets)


def likeness(protocol: Protocol, first: Stretch, second: Stretch) -> Any:
    """A score that rises with the likelihood that one user sent both; -inf for other keys."""
    scores = -score_changes(protocol, first, second)
    if first.keys is None:
        return scores
    same = np.asarray(first.keys) == np.asarray(second.keys)
    return np.where(same.all(axis=-1) if same.ndim > 1 else same, scores, -np.inf)


def _found(protocol: Protocol, first: Stretch, second: Stretch, user: int) -> float:
    """Chance to pick the user's second stretch out of all, from the first."""
    scores = likeness(protocol, first.of(np.array([user])), second)
    likeliest = np.isclose(scores, scores.max(), rtol=1e-12, atol=1e-9)
    return float(likeliest[user] / likeliest.sum()) if scores.max() > -np.inf else 0.0
