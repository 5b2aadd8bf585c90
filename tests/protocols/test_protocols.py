"""Numbers of the protocols over the whole range of budgets, and the choice of g."""

import hashlib
import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest

import loloha
from laws.device import exceeds, reporting
from laws.variants import options
from loloha import hashing
from loloha.channels import table_loss
from loloha.distribution import exact_distribution, log_of
from loloha.errors import ParameterError
from loloha.hashing import modular
from loloha.protocols import REGISTRY, Protocol, protocol_from_dict
from loloha.protocols.choice import LARGEST_G, least_variance_g, published_g

EPS = [1e-6, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 36.0, 37.0, 100.0, 700.0]
LOW_SHARE = [1e-6, 0.01, 0.4, 0.6, 0.999]
SIZES = [2, 3, 96, 1412, 1 << 24]


def whole_range(cls: type[Protocol], k: int) -> Iterator[Any]:
    """The protocol at every budget that it can reach, with its other defaults."""
    two_rounds = "eps_1" in cls.__dataclass_fields__
    for eps in EPS:
        for share in LOW_SHARE if two_rounds else [1.0]:
            budget = {"eps": eps, "eps_inf": eps, "eps_1": max(1e-6, share * eps)}
            params = {name: budget[name] for name in cls.__dataclass_fields__ if name in budget}
            if two_rounds and params["eps_1"] >= eps:
                continue
            made = accepted(cls, {"k": k, **params})
            if made is not None:
                yield made


def accepted(cls: type[Protocol], params: dict[str, Any]) -> Any:
    """The protocol, None where these parameters are refused."""
    try:
        return cls(**params)
    except ParameterError as refusal:
        error = refusal
    # Of these, only some pairs of budgets are out of reach where a set bit is kept half the time.
    assert "that keeps a set bit half the time" in str(error) or "hash" in params or "b" in params
    return None


def complements(p: float, q: float) -> tuple[float, float]:
    """1 - p and 1 - q, exactly as meant: in a symmetric round each is the other number."""
    return (q, p) if abs(p + q - 1) < 1e-12 else (1 - p, 1 - q)


def eps_of_formulas(protocol: Any) -> Decimal:
    """Loss of the first report from the stated floats, in exact arithmetic."""
    p1, q1 = map(Fraction, (protocol.p1, protocol.q1))
    p2, q2 = map(Fraction, (protocol.p2, protocol.q2)) if protocol.second else (Fraction(1), 0)
    if protocol.g is not None:
        ratio = (p1 * p2 + (protocol.g - 1) * q1 * q2) / (
            p1 * q2 + q1 * p2 + (protocol.g - 2) * q1 * q2
        )
    else:
        not_p1, not_q1 = map(Fraction, complements(protocol.p1, protocol.q1))
        not_p2, not_q2 = (
            map(Fraction, complements(protocol.p2, protocol.q2)) if protocol.second else (0, 1)
        )
        one = (p1 * p2 + not_p1 * q2) / (q1 * p2 + not_q1 * q2)
        zero = (q1 * not_p2 + not_q1 * not_q2) / (p1 * not_p2 + not_p1 * not_q2)
        alone = getattr(protocol, "d", None) == 1
        ratio = max(one, zero) if alone else one * zero
    with localcontext() as context:
        context.prec = 60
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("name", REGISTRY)
def test_every_number_is_valid_for_every_budget(name: str, k: int) -> None:
    tried = 0
    for protocol in whole_range(REGISTRY[name], k):
        tried += 1
        said = repr(protocol)
        numbers = [protocol.p1, protocol.q1, protocol.p_star, protocol.q_star]
        numbers += [protocol.p2, protocol.q2] if protocol.second else []
        assert all(0 <= number <= 1 for number in numbers), (said, numbers)
        assert protocol.contrast > 0, said
        for f in (0.0, 0.5):
            assert 0 < loloha.variance(protocol, n=1, f=f) < math.inf, said
        assert 0 <= loloha.variance(protocol, n=1, f=1.0) < math.inf, said
        spent = eps_of_formulas(protocol)
        asked = protocol.asked_first
        assert abs(spent - Decimal(asked)) <= Decimal("1e-9") * max(1, Decimal(asked)), said

        r = protocol.realised
        assert all(0 <= p <= 1 for p in (r.p1, r.q1, r.p_star, r.q_star)), said
        assert 0 < r.contrast == r.p_star - r.q_star, said
        first = protocol.encoding.likelihood_ratio(r.p1, r.q1)
        assert not exceeds(first, protocol.asked_memo), said
        chain = first
        if r.p2 is not None:
            chain = protocol.encoding.likelihood_ratio(
                *protocol.encoding.chain(r.p1, r.q1, r.p2, r.q2)
            )
        assert not exceeds(chain, asked), said
        # What is published as a float is not above what was asked either.
        assert r.eps_first <= asked, said
        assert r.eps_memo <= protocol.asked_memo, said
        if asked >= 0.01 and protocol.asked_memo <= 10 and k <= 1412:
            assert r.eps_first == pytest.approx(asked, abs=1e-9), said
            assert r.eps_memo == pytest.approx(protocol.asked_memo, abs=1e-9), said
            assert float(r.p_star) == pytest.approx(protocol.p_star, abs=1e-9), said
            assert float(r.q_star) == pytest.approx(protocol.q_star, abs=1e-9), said
            assert float(r.contrast) == pytest.approx(protocol.contrast, rel=1e-6), said
    assert tried >= 10


@pytest.mark.parametrize("name", REGISTRY)
def test_stated_numbers_are_those_of_the_formulas(name: str) -> None:
    """p_star, q_star and contrast are derived once, and say the same thing."""
    for params in options(REGISTRY[name], {"eps": 0.9, "eps_inf": 1.9, "eps_1": 0.9}):
        protocol = accepted(REGISTRY[name], params)
        if protocol is None:
            continue
        assert protocol.p_star - protocol.q_star == pytest.approx(protocol.contrast, rel=1e-9)
        r = protocol.realised
        for number in ("p1", "q1", "p2", "q2", "p_star", "q_star"):
            stated, real = getattr(protocol, number), getattr(r, number)
            assert (stated is None) == (real is None)
            if stated is not None:
                assert stated == pytest.approx(float(real), abs=1e-12)
        assert r.to_dict() == {
            field: None if getattr(r, field) is None else float(getattr(r, field))
            for field in ("p1", "q1", "p2", "q2", "p_star", "q_star", "eps_first", "eps_memo")
        }


@pytest.mark.parametrize(
    ("name", "eps"),
    [("grr", 0.4220415691678215), ("sue", 0.8861991069142612), ("oue", 0.7341438546014207)],
)
def test_a_published_loss_is_not_rounded_beyond_what_was_asked(name: str, eps: float) -> None:
    protocol = loloha.protocol(name, k=3, eps=eps)
    odds = protocol.encoding.likelihood_ratio(protocol.realised.p1, protocol.realised.q1)
    assert log_of(odds) > eps
    assert protocol.realised.eps_first <= eps
    assert protocol.realised.eps_memo <= eps
    assert not exceeds(odds, eps)


# -- small enough to enumerate every member of the affine family


@pytest.mark.parametrize("g", [2, 3, 4, 6])
@pytest.mark.parametrize("name", ["ololoha", "olh"])
def test_affine_estimates_are_unbiased(name: str, g: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over Z_7 in place of Z_(2^31 - 1): every key, every draw of the client, exactly.

    A hash that is only universal shifts the estimate by (1-f)(c0 - 1/g) g/(g-1); MATH section 4.2.
    """
    monkeypatch.setattr(modular, "MERSENNE_31", 7)
    budget = {"eps": 1.0} if name == "olh" else {"eps_inf": 2.0, "eps_1": 1.0}
    protocol: Any = loloha.protocol(name, k=5, g=g, hash="affine", **budget)
    family = protocol.encoding.family
    assert family.collision != Fraction(1, g)
    for held in (0, 4):
        law = exact_distribution(reporting(protocol, held))
        assert len({key for ((key, _),) in law}) == 42
        for v in range(protocol.k):
            support = sum(p for ((key, y),), p in law.items() if family.hash(key, v) == y)
            expected = protocol.realised.p_star if v == held else protocol.realised.q_star
            assert support == expected


# -- the choice of g


def exact_noise(k: int, g: int, eps: float, family: str) -> Decimal:
    """n V* of MATH section 1 with the exact collision probability, in 50 digits."""
    with localcontext() as context:
        context.prec = 50
        c0 = hashing.hash_family(family, k, g).collision
        c = Decimal(c0.numerator) / Decimal(c0.denominator)
        b = Decimal(eps).exp()
        p_s, q_s = b / (b + g - 1), 1 / (b + g - 1)
        q_star = c * p_s + (1 - c) * q_s
        return q_star * (1 - q_star) / (p_s - q_star) ** 2


@pytest.mark.parametrize("family", [None, "linear", "affine", "xxhash"])
@pytest.mark.parametrize("k", [2, 3, 10, 96, 1412, 1 << 20])
@pytest.mark.parametrize("eps", [0.05, 0.5, 1.0, 1.7, 3.0, 5.0])
def test_g_is_the_exact_argmin(eps: float, k: int, family: str | None) -> None:
    best = least_variance_g(k, eps, family)
    searched = family or "linear"
    candidates = hashing.admissible_primes(k) if searched == "linear" else range(2, 400)
    noise = {g: exact_noise(k, g, eps, searched) for g in candidates if g <= 400}
    assert best == min(noise, key=lambda g: (noise[g], g))


def test_the_best_g_is_the_one_that_protocols_take() -> None:
    for eps_1 in (0.3, 1.0, 2.4):
        best = least_variance_g(96, eps_1, None)
        assert loloha.OLOLOHA(k=96, eps_inf=3.0, eps_1=eps_1).g == best
        assert loloha.OLH(k=96, eps=eps_1).g == best
        affine = least_variance_g(96, eps_1, "affine")
        assert loloha.OLOLOHA(k=96, eps_inf=3.0, eps_1=eps_1, hash="affine").g == affine
        assert loloha.OLH(k=96, eps=eps_1, hash="affine").g == affine


def test_g_does_not_pass_the_bijection() -> None:
    """Beyond the first prime >= k more symbols only add noise."""
    for k in (2, 3, 4, 5, 6, 8, 14):
        prime = next(g for g in range(k, 30) if hashing.is_prime(g))
        assert loloha.OLOLOHA(k=k, eps_inf=9.0, eps_1=8.0).g == prime


def naive_published_g(eps_inf: float, eps_1: float) -> int:
    """The rule as the paper prints it, in 700 digits."""
    with localcontext() as context:
        context.prec = 700
        a, b = Decimal(eps_inf).exp(), Decimal(eps_1).exp()
        root = (a**4 - 14 * a**2 + 12 * a * b * (1 - a * b) + 12 * a**3 * b + 1).sqrt()
        rule = (1 - a**2 + root) / (6 * (a - b))
        return 1 + max(1, min(int(rule.to_integral_value()), LARGEST_G - 1))


@pytest.mark.parametrize("share", [1e-6, 0.1, 0.3, 0.5, 0.6, 0.9])
@pytest.mark.parametrize("eps_inf", [1e-3, 0.5, 1.0, 2.0, 3.5, 5.0, 20.0, 100.0, 700.0])
def test_the_papers_rule_without_its_overflow(eps_inf: float, share: float) -> None:
    assert published_g(eps_inf, share * eps_inf) == naive_published_g(eps_inf, share * eps_inf)


@pytest.mark.parametrize(("eps", "g"), [(0.5, 3), (1.0, 4), (3.0, 21), (700.0, LARGEST_G)])
def test_the_published_g_of_olh(eps: float, g: int) -> None:
    """MATH section 2: g = round(e^eps + 1)."""
    assert loloha.OLH(k=10, eps=eps, calibration="published").g == g


def test_the_tight_chain_is_worth_what_the_maths_says() -> None:
    """MATH section 3."""
    tight, published = (
        loloha.variance(loloha.LGRR(k=96, eps_inf=2.0, eps_1=1.0, calibration=calibration), n=1)
        for calibration in ("tight", "published")
    )
    assert round(published / tight) == 83
    losue = loloha.variance(loloha.LOSUE(k=96, eps_inf=2.0, eps_1=1.0), n=1)
    assert losue == pytest.approx(4 * math.e / (math.e - 1) ** 2)
    wide = loloha.OLOLOHA(k=1412, eps_inf=5.0, eps_1=3.0, calibration="published", hash="xxhash")
    assert wide.g == 17
    narrow = loloha.OLOLOHA(k=1412, eps_inf=5.0, eps_1=3.0, g=12, hash="xxhash")
    assert narrow.cap < wide.cap
    assert loloha.variance(narrow, n=1) == pytest.approx(loloha.variance(wide, n=1), rel=0.02)


def test_one_sampled_bucket_spends_half_when_published() -> None:
    """MATH section 7: the tight p has 5 times less variance at eps_inf = 2."""
    tight, published = (
        loloha.DBitFlipPM(k=96, eps_inf=2.0, d=1, calibration=calibration)
        for calibration in ("tight", "published")
    )
    assert published.realised.eps_memo == pytest.approx(1.0, abs=1e-9)
    assert tight.realised.eps_memo == pytest.approx(2.0, abs=1e-9)
    gain = loloha.variance(published, n=1) / loloha.variance(tight, n=1)
    assert gain == pytest.approx(5.086, abs=1e-3)
    assert loloha.DBitFlipPM(k=96, eps_inf=2.0, d=2).p1 == published.p1


# -- what a user writes


def test_defaults_are_resolved_and_shown() -> None:
    protocol = loloha.OLOLOHA(k=96, eps_inf=2, eps_1=1)
    assert repr(protocol) == (
        f"OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0, calibration='tight', hash='linear', "
        f"memo='independent', m0=None, g={protocol.g})"
    )
    assert protocol == loloha.protocol("OLOLOHA", k=96, eps_inf=2.0, eps_1=1.0)
    assert loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0, g=4).hash == "affine"
    assert loloha.BiLOLOHA(k=1 << 24, eps_inf=2.0, eps_1=1.0).hash == "linear"
    buckets = loloha.DBitFlipPM(k=96, eps_inf=2.0)
    assert (buckets.b, buckets.d) == (96, 96)


@pytest.mark.parametrize("name", ["", "lol", "rappor ", None, 3, ["grr"]])
def test_an_unknown_protocol_is_refused_by_name(name: Any) -> None:
    with pytest.raises(ParameterError, match=r"protocol must be one of \['biloloha', .*\], got "):
        loloha.protocol(name, k=3, eps=1.0)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("ololoha", {"k": 96, "g": 4, "hash": "linear"}, "g must be prime"),
        ("biloloha", {"k": 1 << 23, "hash": "affine"}, "k must be at most 4194304 for hash"),
        (
            "l-oue",
            {"k": 9, "eps_1": 1.99},
            r"eps_1 must be below 1\.66001 for eps_inf = 2, got 1\.99",
        ),
        (
            "l-soue",
            {"k": 9, "eps_1": 1.99},
            r"eps_1 must be below 1\.31055 for eps_inf = 2, got 1\.99",
        ),
        ("dbitflippm", {"k": 9, "b": 10}, r"b must be an integer in 2\.\.9, got 10"),
        ("dbitflippm", {"k": 9, "b": 4, "d": 5}, r"d must be an integer in 1\.\.4, got 5"),
    ],
)
def test_what_cannot_be_is_refused_at_once(name: str, params: dict[str, Any], message: str) -> None:
    budget = {"eps_inf": 2.0} | ({} if name == "dbitflippm" else {"eps_1": 1.0})
    with pytest.raises(ParameterError, match=message):
        loloha.protocol(name, **budget | params)


def test_protocols_differ_by_every_parameter() -> None:
    made = {
        protocol.fingerprint: protocol
        for cls in REGISTRY.values()
        for params in options(cls, {"eps": 1.0, "eps_inf": 2.0, "eps_1": 1.0})
        for protocol in [accepted(cls, params)]
        if protocol is not None
    }
    assert len(set(made.values())) == len(made) > 100


def test_a_fingerprint_is_the_hash_of_the_parameters_in_the_order_of_their_names() -> None:
    named = b'{"calibration":"tight","eps_1":1.0,"eps_inf":2.0,"k":3,"type":"l-grr","version":1}'
    protocol = loloha.LGRR(k=3, eps_inf=2.0, eps_1=1.0)
    assert protocol.fingerprint == hashlib.sha256(named).hexdigest()


def least_of_all(k: int, eps: float) -> tuple[float, int]:
    """n V* of least-prime hashing and its g, over every g there is; MATH section 14."""

    def noise(g: int) -> float:
        prime = next(n for n in range(k, 2 * k + 2) if n > 1 and all(n % d for d in range(2, n)))
        sizes = [len(range(i, prime, g)) for i in range(g)]
        c0 = sum(n * (n - 1) for n in sizes) / (prime * (prime - 1))
        b = math.exp(eps)
        p, q = b / (b + g - 1), 1 / (b + g - 1)
        q_star = c0 * p + (1 - c0) * q
        return q_star * (1 - q_star) / (p - q_star) ** 2

    last = next(n for n in range(k, 2 * k + 2) if n > 1 and all(n % d for d in range(2, n)))
    return min((noise(g), g) for g in range(2, last + 1))


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0, 1.7, 2.8, 5.0])
@pytest.mark.parametrize("k", [2, 3, 8, 16, 50, 96, 360])
def test_the_g_of_least_prime_hashing_is_the_exact_argmin(k: int, eps: float) -> None:
    noise, g = least_of_all(k, eps)
    protocol = loloha.OLOLOHA(k=k, eps_inf=2 * eps, eps_1=eps, hash="prime")
    assert loloha.variance(protocol, n=1) == pytest.approx(noise, rel=1e-9)
    assert protocol.g == g


def test_users_who_share_keys_get_the_family_of_least_variance() -> None:
    budgets = {"k": 96, "eps_inf": 2.0, "eps_1": 1.0}
    usual, better = loloha.OLOLOHA(**budgets), loloha.OLOLOHA(**budgets, hash="prime")
    keys = 97 * 96
    for n in (1, keys, 5 * keys - 1):
        assert loloha.OLOLOHA(**budgets, n=n) == usual
    for n in (5 * keys, 10**9):
        chosen = loloha.OLOLOHA(**budgets, n=n)
        assert chosen == better
        assert loloha.variance(chosen, n=1) < loloha.variance(usual, n=1)
        assert "n" not in chosen.to_dict()
        assert loloha.protocol("ololoha", **budgets, n=n) == better
    # What is asked for, and what reproduces the paper, stays.
    for asked in ({"hash": "linear"}, {"hash": "affine"}, {"calibration": "published"}):
        assert loloha.OLOLOHA(**budgets, **asked, n=10**9) == loloha.OLOLOHA(**budgets, **asked)
    assert loloha.OLOLOHA(**budgets, g=6, n=10**9).hash == "prime"
    # Where every value is a symbol of its own, no family is better than the linear one.
    assert loloha.OLOLOHA(**budgets | {"k": 3}, n=10**9).hash == "linear"


@pytest.mark.parametrize("n", [0, -1, 1.5, "5", True, math.nan])
def test_users_must_be_a_number(n: Any) -> None:
    with pytest.raises(ParameterError, match="n must be an integer in 1"):
        loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0, n=n)


def test_a_document_has_a_type_and_a_version_of_this_release() -> None:
    spec = loloha.GRR(k=3, eps=1.0).to_dict()
    for bad in ({}, {"type": "grr"}, {"version": 1}, [], None):
        with pytest.raises(ParameterError, match="spec must be an object with 'type', 'version'"):
            protocol_from_dict(bad)  # type: ignore[arg-type]
    for version in (0, 2, True, "1", 1.0, None):
        with pytest.raises(ParameterError, match="version must be 1, got"):
            protocol_from_dict(spec | {"version": version})
    with pytest.raises(ParameterError, match="missing eps, k"):
        protocol_from_dict({"type": "grr", "version": 1})


def test_a_document_says_what_was_chosen_and_not_for_whom() -> None:
    spec = loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0, n=10**9).to_dict()
    assert (spec["hash"], spec["g"]) == ("prime", 4)
    with pytest.raises(ParameterError, match=r"parameters of ololoha only, got \['n'\]"):
        protocol_from_dict(spec | {"n": 10**9})


@pytest.mark.parametrize(
    ("eps_inf", "g", "independent", "usual", "lowest"),
    [
        (2.0, 2, 4.0, 4.0, 2.0),
        (2.0, 3, 6.0, 3.40, 2.62),
        (2.0, 4, 8.0, 4.18, 3.67),
        (4.0, 8, 32.0, 12.8, 12.5),
        (5.0, 13, 65.0, 25.1, 25.0),
    ],
)
def test_the_cap_of_one_table_for_life(
    eps_inf: float, g: int, independent: float, usual: float, lowest: float
) -> None:
    """MATH section 15, and everything else is as it was."""
    budgets = {"k": 96, "eps_inf": eps_inf, "eps_1": eps_inf / 2, "g": g, "hash": "prime"}
    apart = loloha.OLOLOHA(**budgets)
    assert apart.cap == pytest.approx(independent)
    for m0, cap in ((None, usual), (0.0, lowest)):
        joint = loloha.OLOLOHA(**budgets, memo="joint", m0=m0)
        assert joint.cap == pytest.approx(cap, rel=3e-3)
        assert loloha.variance(joint, n=1) == loloha.variance(apart, n=1)
        assert (joint.asked_first, joint.asked_memo) == (apart.asked_first, apart.asked_memo)
        assert joint.realised.eps_memo == pytest.approx(apart.realised.eps_memo, abs=1e-12)


@pytest.mark.parametrize("eps_inf", [1e-6, 1e-5, 0.01, 0.3, 1.1, 4.0, 37.0, 300.0, 700.0])
@pytest.mark.parametrize("g", [2, 3, 4, 37, 500])
def test_what_a_table_spends_is_rounded_up_and_hardly(eps_inf: float, g: int) -> None:
    """B_m of MATH section 15 in sixty digits, also where e^eps is nearly 1."""
    with localcontext(prec=60):
        odds = Decimal(eps_inf).exp()
        q = 1 / (odds + g - 1)
        for shared in (None, 0.0, 0.5, 1 - 1e-6):
            m0 = None if shared is None else float(g * q) * shared
            rest = q * (g - 2 + g * q) if m0 is None else g * q - Decimal(m0)
            for answers in {2, min(3, g), g}:
                exact = (1 + (odds - 1) * q * math.perm(g, answers) / rest).ln()
                above = Decimal(table_loss(eps_inf, g, m0, answers)) / exact - 1
                assert -Decimal("1e-50") <= above <= Decimal("1e-8" if shared else "1e-13")
    assert table_loss(eps_inf, 2, None, 2) == 2 * eps_inf


@pytest.mark.parametrize("eps_inf", [1.3, 5.0, 40.0, 300.0, 700.0])
def test_the_odometer_of_a_table_never_falls(eps_inf: float) -> None:
    for g in (2, 3, 8):
        for m0 in (None, 0.0):
            joint = loloha.OLOLOHA(k=96, eps_inf=eps_inf, eps_1=1.0, g=g, memo="joint", m0=m0)
            spent = [joint.spent(m) for m in range(g + 1)]
            assert spent == sorted(spent)
            assert spent[1] == eps_inf
            assert spent[g] <= g * eps_inf * (1 + 1e-9)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"memo": "joint", "g": 40, "eps_inf": 0.5}, "memo must be 'independent' where one table"),
        ({"memo": "joint", "m0": 0.9}, "m0 must be below 0.238406, all but the identity, got 0.9"),
        ({"m0": 0.1}, "m0 must be left out for memo='independent', got 0.1"),
        ({"memo": "both"}, r"memo must be one of .*, got 'both'"),
    ],
)
def test_a_table_that_does_not_exist_or_does_not_pay_is_refused(
    params: dict[str, Any], says: str
) -> None:
    with pytest.raises(ParameterError, match=says):
        loloha.OLOLOHA(**{"k": 96, "eps_inf": 2.0, "eps_1": 0.4, "g": 2} | params)


def test_parameters_with_a_default_meaning_are_left_out_of_documents() -> None:
    spec = loloha.BiLOLOHA(k=96, eps_inf=2.0, eps_1=1.0).to_dict()
    assert "memo" not in spec
    assert "m0" not in spec
    joint = loloha.BiLOLOHA(k=96, eps_inf=2.0, eps_1=1.0, memo="joint")
    assert joint.to_dict() == spec | {"memo": "joint"}
    assert protocol_from_dict(joint.to_dict() | {"m0": 0.0}).cap < joint.cap
