"""The formulas of the maths in plain floats, written once more, to recompute what a page prints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

PLAIN = ("l-grr", "biloloha", "ololoha", "ololoha-prime", "ololoha-joint")
BITS = ("rappor", "l-osue")


def contrast(eps: float, g: int) -> float:
    """lambda(eps) = p - q of randomised response over g symbols (section 3)."""
    return math.expm1(eps) / (math.expm1(eps) + g)


def over_symbols(lam: float, g: int) -> tuple[float, float]:
    """p and q of a channel over g symbols that has that contrast."""
    return (1 + (g - 1) * lam) / g, (1 - lam) / g


def symbol_rounds(eps_inf: float, eps_1: float, g: int, published: bool) -> Any:
    """(p1, q1), (p2, q2) of two rounds over g symbols (section 3)."""
    a, b = math.exp(eps_inf), math.exp(eps_1)
    second = contrast(eps_1, g) / contrast(eps_inf, g)
    if published:
        second = contrast(math.log((a * b - 1) / (a - b)), g)
    return over_symbols(contrast(eps_inf, g), g), over_symbols(second, g)


def bit_rounds(key: str, eps_inf: float, eps_1: float) -> Any:
    """(p1, q1), (p2, q2) of RAPPOR and L-OSUE (section 5)."""
    a, b = math.exp(eps_inf), math.exp(eps_1)
    if key == "rappor":
        p1 = math.sqrt(a) / (math.sqrt(a) + 1)
        q1 = 1 - p1
        p2 = (math.sqrt(b) / (math.sqrt(b) + 1) - q1) / (p1 - q1)
    else:
        p1, q1 = 0.5, 1 / (a + 1)
        p2 = (a * b - 1) / (a - b + a * b - 1)
    return (p1, q1), (p2, 1 - p2)


def chained(first: Any, second: Any) -> tuple[float, float]:
    """Pr[1 | set] and Pr[1 | unset] of two rounds of a bit."""
    (p1, q1), (p2, q2) = first, second
    return p1 * p2 + (1 - p1) * q2, q1 * p2 + (1 - q1) * q2


def is_prime(number: int) -> bool:
    return number > 1 and all(number % d for d in range(2, math.isqrt(number) + 1))


def collision(family: str | None, k: int, g: int) -> float:
    """c0 of a hash family (sections 4.1, 4.2 and 14); 0 where nothing is hashed."""
    if family is None:
        return 0.0
    if family == "linear":
        m = next(m for m in range(1, 64) if g**m >= k)
        return (g ** (m - 1) - 1) / (g**m - 1)
    prime = 2**31 - 1
    if family == "prime":
        prime = next(p for p in range(max(k, g), 4 * k + 4 * g) if is_prime(p))
    sizes = [(prime - i + g - 1) // g for i in range(g)]
    return sum(size * (size - 1) for size in sizes) / (prime * (prime - 1))


def best_g(family: str, k: int, eps_1: float) -> int:
    """The g of least V* among the primes (linear), or among all (least prime)."""

    def noise(g: int) -> float:
        p, q = over_symbols(contrast(eps_1, g), g)
        q = q + collision(family, k, g) * (p - q)
        return q * (1 - q) / (p - q) ** 2

    tried = [g for g in range(2, 128) if family == "prime" or is_prime(g)]
    return min(tried, key=noise)


def support(row: dict[str, Any], k: int) -> tuple[float, float]:
    """p_star and q_star of the rules of one measured cell."""
    key, eps_inf, published = row["protocol"], row["eps_inf"], row["calibration"] == "published"
    if key in PLAIN:
        g = row["g"]
        (p1, q1), (p2, q2) = symbol_rounds(eps_inf, row["alpha"] * eps_inf, g, published)
        p, q = p1 * p2 + (g - 1) * q1 * q2, p1 * q2 + q1 * p2 + (g - 2) * q1 * q2
        c0 = collision(row["hash"], k, g)
        return p, c0 * p + (1 - c0) * q
    if key in BITS:
        return chained(*bit_rounds(key, eps_inf, row["alpha"] * eps_inf))
    a = math.exp(eps_inf)
    half = a if key == "1bitflippm" and not published else math.sqrt(a)
    return half / (half + 1), 1 / (half + 1)


def mean_variance(row: dict[str, Any], k: int, truth: Any) -> float:
    """Mean over rounds and bins of the variance of a fixed population's estimates (section 1)."""
    from scipy.stats import binom

    p, q = support(row, k)
    n = row["n"]
    noise = truth * p * (1 - p) + (1 - truth) * q * (1 - q)
    if row["protocol"] != "1bitflippm":
        return float(noise.mean() / (n * (p - q) ** 2))
    # m of the n users sample a bucket, m > 0: their noise, and who they are (section 7).
    m = np.arange(1, n + 1)
    law = binom.pmf(m, n, 1 / row["bins"])
    law /= law.sum()
    sampling = (truth * (1 - truth)).mean() * (law * (n - m) / ((n - 1) * m)).sum()
    return float(noise.mean() / (p - q) ** 2 * (law / m).sum() + sampling)


def round_loss(row: dict[str, Any], k: int) -> float:
    """eps_2: the loss of one round with all others known (section 11)."""
    key, eps_inf = row["protocol"], row["eps_inf"]
    if row["alpha"] is None:
        return math.inf
    eps_1 = row["alpha"] * eps_inf
    if key in BITS:
        p2, q2 = bit_rounds(key, eps_inf, eps_1)[1]
        return k * max(math.log(p2 / q2), math.log((1 - q2) / (1 - p2)))
    p2, q2 = symbol_rounds(eps_inf, eps_1, row["g"], row["calibration"] == "published")[1]
    return math.log(p2 / q2)


def cell_sizes(family: str | None, k: int, g: int) -> Any:
    """Values in each cell under the keys of a hash family: sizes[keys, g], and their weights.

    All keys where they are few, else 2 000 of them. Of plain symbols each is a cell.
    """
    if family is None:
        return np.ones((1, k)), np.ones(1)
    rng, values = np.random.default_rng(8), np.arange(k)
    if family == "linear":
        m = next(m for m in range(1, 64) if g**m >= k)
        keys = np.arange(1, g**m) if g**m < 5000 else rng.integers(1, g**m, 2000)
        places = g ** np.arange(m)
        cells = (keys[:, None] // places % g) @ (values[:, None] // places % g).T % g
    else:
        prime = 2**31 - 1
        if family == "prime":
            prime = next(p for p in range(max(k, g), 4 * k + 4 * g) if is_prime(p))
        if prime < 150:
            pairs = np.array([(a + 1, b) for a, b in np.ndindex(prime - 1, prime)])
        else:
            pairs = np.stack([rng.integers(1, prime, 2000), rng.integers(0, prime, 2000)], axis=1)
        cells = (pairs[:, :1] * values + pairs[:, 1:]) % prime % g
    sizes = (cells[:, :, None] == np.arange(g)).sum(axis=1)
    kinds, times = np.unique(np.sort(sizes, axis=1), axis=0, return_counts=True)
    return kinds, times / len(cells)


def memo_laws(row: dict[str, Any], k: int, *, users: bool = False) -> Any:
    """Of each kind of key: its weight, and the laws of the two memos, kept and moved (section 12).

    ``users``: the second law is that of two users who hold different values.
    """
    g = row["g"]
    published = row["calibration"] == "published"
    (p1, q1), _ = symbol_rounds(row["eps_inf"], row["alpha"] * row["eps_inf"], g, published)
    kept, same = np.full((g, g), q1) + (p1 - q1) * np.eye(g), np.eye(g)
    for sizes, weight in zip(*cell_sizes(row["hash"], k, g), strict=True):
        pairs = (np.outer(sizes, sizes) - np.diag(sizes)) / (k * (k - 1))
        within, across = np.diag(pairs), pairs * (1 - same)
        if users:
            moved = kept.T @ pairs @ kept
        elif row["protocol"] == "ololoha-joint":
            # One symbol answers for all as often as two independent memos agree (section 15).
            agree = 2 * p1 * q1 + (g - 2) * q1**2
            other = (1 - agree - (p1 - q1)) / (g * (g - 1))
            moved = (p1 - q1) * across + across.sum() * (agree / g * same + other * (1 - same))
            moved = moved + np.diag(within @ kept)
        else:
            moved = kept.T @ across @ kept + np.diag(within @ kept)
        yield weight, np.diag(sizes / k @ kept), moved


def area_of_one_report(row: dict[str, Any], k: int, *, users: bool = False) -> float:
    """Area under the ROC curve of the best test of a change of a symbol, T = 1, by summing all."""
    g = row["g"]
    published = row["calibration"] == "published"
    _, (p2, q2) = symbol_rounds(row["eps_inf"], row["alpha"] * row["eps_inf"], g, published)
    return _area_of_memos(row, k, np.full((g, g), q2) + (p2 - q2) * np.eye(g), users=users)


def _area_of_memos(row: dict[str, Any], k: int, shown: Any, *, users: bool = False) -> float:
    """Where a memo x shows as y with probability shown[y, x]."""
    laws: tuple[list[Any], list[Any]] = [], []
    for weight, *memos in memo_laws(row, k, users=users):
        for law, memo in zip(laws, memos, strict=True):
            law.append(weight * (shown @ memo @ shown.T))
    return area(*laws)


def published_g(eps_inf: float, eps_1: float) -> int:
    """The paper's closed form (section 3)."""
    a, b = math.exp(eps_inf), math.exp(eps_1)
    root = math.sqrt(a**4 - 14 * a**2 + 12 * a * b * (1 - a * b) + 12 * a**3 * b + 1)
    return 1 + max(1, round((1 - a**2 + root) / (6 * (a - b))))


def loss_after(key: str, eps_inf: float, eps_1: float, t: int, g: int | None = None) -> float:
    """eps_t: the loss of t reports of one value (section 8)."""
    if g is not None:
        (p1, q1), (p2, q2) = symbol_rounds(eps_inf, eps_1, g, published=False)
        # Over e^(t ln q2), lest it underflow.
        odds = math.exp(t * math.log(p2 / q2))
        return math.log((p1 * odds + (g - 1) * q1) / (q1 * odds + p1 + (g - 2) * q1))
    (p1, q1), (p2, q2) = bit_rounds(key, eps_inf, eps_1)

    def chance(is_set: float, sent: float, unsent: float) -> float:
        return is_set * sent**t + (1 - is_set) * unsent**t

    ones = chance(p1, p2, q2) / chance(q1, p2, q2)
    return math.log(ones * chance(q1, 1 - p2, 1 - q2) / chance(p1, 1 - p2, 1 - q2))


def joint_loss(eps_inf: float, g: int, m: int) -> float:
    """B_m: the loss of m cells of one memo table for life, m0 as if independent (section 15)."""
    (p1, q1) = over_symbols(contrast(eps_inf, g), g)
    whole = contrast(eps_inf, g)
    constant = 2 * p1 * q1 + (g - 2) * q1**2
    permuted = 1 - whole - constant
    ways = math.factorial(g) / math.factorial(g - m)
    return math.log1p(whole * ways / permuted) if m > 1 else eps_inf


def area(stayed: Any, moved: Any) -> float:
    """Area under the ROC curve of the likelihood-ratio test of two laws of the same outcomes."""
    stayed, moved = np.ravel(stayed), np.ravel(moved)
    ratio = np.round(np.log(moved) - np.log(stayed), 9)
    order = np.argsort(ratio)
    firsts = np.flatnonzero(np.diff(ratio[order], prepend=-np.inf))
    low, high = (np.add.reduceat(law[order], firsts) for law in (stayed, moved))
    return float(high @ (np.cumsum(low) - low / 2) / (low.sum() * high.sum()))


def area_of_reports(row: dict[str, Any], k: int, reports: int) -> float:
    """AUC of the best test of a change of a symbol, by summing over all counts (section 12)."""
    g = row["g"]
    _, (p2, q2) = symbol_rounds(row["eps_inf"], row["alpha"] * row["eps_inf"], g, False)
    counts = np.array([
        (*first, reports - sum(first))
        for first in np.ndindex(*(reports + 1,) * (g - 1))
        if sum(first) <= reports
    ])  # fmt: skip
    ways = np.array([
        math.lgamma(reports + 1) - sum(math.lgamma(times + 1) for times in one) for one in counts
    ])  # fmt: skip
    # L(x') of each count.
    shown = np.exp(ways[:, None] + reports * math.log(q2) + counts * math.log(p2 / q2))
    return _area_of_memos(row, k, shown)


def area_in_the_limit(row: dict[str, Any], k: int) -> float:
    """The same after ever so many reports: both memos known, which may coincide."""
    kept, moved = [], []
    for weight, *memos in memo_laws(row, k):
        for law, memo in zip((kept, moved), memos, strict=True):
            law.append(weight * np.diag(memo))
    # Unlike memos prove a move: nothing else is as likely.
    low, high = np.ravel(kept), np.ravel(moved)
    return float(1 - high.sum() + high.sum() * area(low, high))
