"""Loss against every transcript of the shipped client, and what may be claimed about it."""

import csv
import itertools
import json
import math
import re
from dataclasses import FrozenInstanceError
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loloha
from laws import variants
from loloha import privacy
from loloha.client import Client
from loloha.distribution import exact_distribution, loss_between
from loloha.encodings.part import REPEATED
from loloha.errors import ParameterError
from loloha.privacy.explanation import USUAL_REPORTS
from loloha.privacy.loss import MOST_REPORTS
from loloha.protocols import REGISTRY, Protocol
from loloha.rng import SimulationRng

BUDGETS = {"eps": 0.5, "eps_inf": 1.0, "eps_1": 0.4}
example = partial(variants.example, budgets=BUDGETS)


def law(protocol: Protocol, history: tuple[int, ...], key: Any = None) -> dict[Any, Any]:
    """Exact law of all that a client sends over a history of values."""

    def run(rng: Any) -> tuple[Any, ...]:
        client = protocol.client(key=key, rng=rng)
        reports = [client.report(v, round=t) for t, v in enumerate(history)]
        return tuple((report.key, report.y) for report in reports)

    return exact_distribution(run)


def pattern(cells: tuple[int, ...]) -> tuple[int, ...]:
    """Which rounds are alike: each cell replaced by the round in which it was first visited."""
    return tuple(cells.index(cell) for cell in cells)


def test_what_is_no_protocol_is_not_explained() -> None:
    with pytest.raises(ParameterError, match=r"protocol must be a loloha\.Protocol, got str"):
        privacy.explain("ololoha")  # type: ignore[call-overload]


# -- growth


def test_growth_is_the_reference(reference: Path) -> None:
    with (reference / "privacy_growth.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 300
    for row in rows:
        eps_inf = float(row["eps_inf"])
        protocol = loloha.LGRR(
            k=int(row["g"]),
            eps_inf=eps_inf,
            eps_1=float(row["alpha"]) * eps_inf,
            calibration=row["calibration"],
        )
        seen = privacy.growth(protocol, int(row["reports"]))
        assert seen == pytest.approx(float(row["eps_t"]), rel=1e-12), row


# RAPPOR and L-OUE have both kinds of bits; the two others would take seconds for three of them.
CASES = [
    (name, k, t)
    for name, k, t in itertools.product(REGISTRY, (2, 3), (1, 2, 3))
    if (k, t) != (3, 3) or name not in ("l-osue", "l-soue")
]


@pytest.mark.parametrize(("name", "k", "t"), CASES)
def test_growth_is_the_worst_of_all_transcripts(name: str, k: int, t: int) -> None:
    protocol = example(name, k=k)
    worst = loss_between(law(protocol, (0,) * t), law(protocol, (k - 1,) * t))
    assert privacy.growth(protocol, t, realised=True) == pytest.approx(worst, rel=1e-12)
    assert privacy.growth(protocol, t) == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize(("b", "d"), [(3, 1), (3, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize("calibration", ["tight", "published"])
def test_growth_of_sampled_buckets(b: int, d: int, calibration: str) -> None:
    protocol = loloha.DBitFlipPM(k=4, b=b, d=d, eps_inf=1.0, calibration=calibration)
    constant = [law(protocol, (v, v)) for v in range(4)]
    worst = max(loss_between(one, other) for one in constant for other in constant)
    assert privacy.growth(protocol, 2, realised=True) == pytest.approx(worst, rel=1e-12)
    spent = 0.5 if d == 1 and calibration == "published" else 1.0
    assert privacy.growth(protocol, [1, 7]) == pytest.approx([spent, spent], rel=1e-12)


def test_growth_of_an_asymmetric_second_round() -> None:
    """With p2 = 1/2 ones and zeros reveal at different speed; MATH section 8 adds the two."""
    protocol = loloha.LOUE(k=3, eps_inf=3.0, eps_1=1.0)
    worst = loss_between(law(protocol, (0, 0)), law(protocol, (1, 1)))
    assert privacy.growth(protocol, 2) == pytest.approx(worst, rel=1e-12)


def test_growth_of_the_example_of_the_specification() -> None:
    protocol = loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0, g=4)
    seen = privacy.growth(protocol, [1, 2, 3, 4])
    assert seen == pytest.approx([1.0, 1.678, 1.923, 1.984], abs=5e-4)


@pytest.mark.parametrize("name", [name for name in REGISTRY if REGISTRY[name].longitudinal])
@pytest.mark.parametrize(
    ("eps_inf", "eps_1"),
    [(2e-6, 1e-6), (1.0, 1e-6), (30.0, 0.1), (700.0, 1e-6), (700.0, 100.0), (0.9, 0.1)],
)
@pytest.mark.parametrize("k", [2, 1000])
def test_growth_rises_from_eps_1_to_eps_inf(
    name: str, eps_inf: float, eps_1: float, k: int
) -> None:
    if name == "l-oue":
        eps_1 = min(eps_1, eps_inf / 2)  # it cannot spend more on the first report
    protocol = variants.example(name, k, budgets=BUDGETS | {"eps_inf": eps_inf, "eps_1": eps_1})
    t = np.unique(np.geomspace(1, 1e9, 60).astype(np.int64))
    for realised in (False, True):
        losses = privacy.growth(protocol, t, realised=realised)
        assert np.isfinite(losses).all()
        assert (np.diff(losses) >= -1e-12 * losses[1:]).all()
        assert losses.max() <= protocol.asked_memo
    # 1e-16 of rounding in p2 is 1e-8 of a loss of 1e-6 at worst.
    formula = privacy.growth(protocol, t)
    assert formula[0] == pytest.approx(protocol.asked_first, rel=1e-8)
    beyond = privacy.growth(protocol, MOST_REPORTS)
    assert beyond == pytest.approx(protocol.asked_memo, rel=1e-9)


def test_growth_of_a_second_round_without_noise() -> None:
    """Where rounding leaves the second round no lie at all, the memo shows at once."""
    protocol = loloha.BiLOLOHA(k=2, eps_inf=60.0, eps_1=59.0)
    assert protocol.realised.q2 == 0
    assert privacy.growth(protocol, [1, 9], realised=True) == pytest.approx(
        [protocol.realised.eps_memo] * 2
    )


def test_what_an_encoding_shows_is_bounded_where_nobody_says_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    protocol = loloha.LGRR(k=4, eps_inf=2.0, eps_1=1.0)
    exact = privacy.growth(protocol, [1, 2, 9])
    monkeypatch.setattr(type(REPEATED), "of", lambda part, encoding: None)
    bound = privacy.growth(protocol, [1, 2, 9])
    assert bound == pytest.approx([1.0, 2.0, 2.0], rel=1e-12)
    assert (exact <= bound * (1 + 1e-12)).all()


def test_growth_of_one_round_rules_is_proportional() -> None:
    protocol = loloha.OLH(k=10, eps=0.5)
    assert privacy.growth(protocol, 10**9) == 5e8
    assert privacy.growth(protocol, [[1, 2], [3, 4]]).tolist() == [[0.5, 1.0], [1.5, 2.0]]


def test_growth_takes_what_numpy_gives() -> None:
    protocol = loloha.BiLOLOHA(k=4, eps_inf=2.0, eps_1=1.0)
    assert isinstance(privacy.growth(protocol, np.int64(3)), float)
    assert privacy.growth(protocol, np.arange(1, 4, dtype=np.uint8)).shape == (3,)
    assert privacy.growth(protocol, []).shape == (0,)


@pytest.mark.parametrize("reports", [0, -1, 1.5, "3", True, None, [1, 0], 1 << 60, [1, math.nan]])
def test_growth_refuses_what_is_no_count(reports: Any) -> None:
    with pytest.raises(ParameterError, match="reports must be integers in 1"):
        privacy.growth(loloha.BiLOLOHA(k=4, eps_inf=2.0, eps_1=1.0), reports)


# -- loss and cap


@pytest.mark.parametrize("name", REGISTRY)
def test_loss_and_cap_are_the_clients(name: str) -> None:
    protocol = example(name, k=5)
    client = protocol.client(rng=SimulationRng(3))
    cells = set()
    for t, v in enumerate([0, 1, 0, 4, 4, 2, 3]):
        report = client.report(v, round=t)
        cells.add(protocol.memo_index(report.key, v) if protocol.longitudinal else t)
        assert client.loss == privacy.loss_of(protocol, len(cells))
    assert privacy.cap(protocol) == client.cap == protocol.cap
    if protocol.longitudinal:
        most = protocol.encoding.memo_cells
        assert privacy.cap(protocol) == privacy.loss_of(protocol, most)
        with pytest.raises(ParameterError, match=f"distinct must be integers in 0..{most}"):
            privacy.loss_of(protocol, most + 1)
    else:
        assert privacy.cap(protocol) == math.inf
        assert privacy.loss_of(protocol, [0, 1000]).tolist() == [0.0, 500.0]


# -- PAINS 14: the budget of changing values, against all transcripts


def worst_in_one_pattern(protocol: Protocol, key: Any, histories: list[tuple[int, ...]]) -> None:
    """Two histories in one pattern of cells differ by at most their distinct cells x eps_inf."""
    laws = {history: law(protocol, history, key) for history in histories}
    compared = 0
    for one, other in itertools.combinations(histories, 2):
        cells = [tuple(protocol.memo_index(key, v) for v in history) for history in (one, other)]
        if pattern(cells[0]) == pattern(cells[1]):
            compared += 1
            bound = privacy.loss_of(protocol, len(set(cells[0])))
            seen = loss_between(laws[one], laws[other])
            assert seen <= bound, f"{protocol!r}, {one} against {other}: {seen} > {bound}"
    assert compared


def test_same_pattern_two_cells_six_rounds() -> None:
    protocol = loloha.BiLOLOHA(k=2, eps_inf=1.0, eps_1=0.5)
    worst_in_one_pattern(protocol, 1, list(itertools.product(range(2), repeat=6)))


def test_same_pattern_where_values_share_cells() -> None:
    protocol = loloha.BiLOLOHA(k=4, eps_inf=1.0, eps_1=0.5)
    for key in (1, 2, 3):
        worst_in_one_pattern(protocol, key, list(itertools.product(range(4), repeat=3)))


def test_same_pattern_three_cells() -> None:
    protocol = loloha.OLOLOHA(k=3, g=3, eps_inf=1.0, eps_1=0.5)
    worst_in_one_pattern(protocol, 2, list(itertools.product(range(3), repeat=3)))


@pytest.mark.long
def test_same_pattern_three_cells_and_more_rounds() -> None:
    protocol = loloha.OLOLOHA(k=3, g=3, eps_inf=1.0, eps_1=0.5)
    worst_in_one_pattern(protocol, 1, [(0, 1, 2, 0, 1), (1, 2, 0, 1, 2)])
    worst_in_one_pattern(protocol, 1, [(0, 1, 1, 0, 1, 0), (2, 0, 0, 2, 0, 2)])


@pytest.mark.parametrize("name", [name for name in REGISTRY if REGISTRY[name].longitudinal])
def test_same_pattern_whatever_the_protocol(name: str) -> None:
    protocol = example(name, k=2)
    key = next(iter(exact_distribution(protocol.enroll)))
    worst_in_one_pattern(protocol, key, list(itertools.product(range(2), repeat=3)))


def test_the_cap_does_not_bound_other_patterns() -> None:
    """MATH section 8: histories with different patterns of change pass g eps_inf."""
    protocol = loloha.BiLOLOHA(k=2, eps_inf=1.0, eps_1=0.5)
    assert privacy.cap(protocol) == 2.0
    alternating = (0, 1) * 5
    losses = {
        t: loss_between(law(protocol, (1,) * t, 1), law(protocol, alternating[:t], 1))
        for t in (4, 5, 10)
    }
    assert losses == pytest.approx({4: 1.8023, 5: 2.4849, 10: 5.2768}, abs=1e-4)
    # At four rounds another pair passes first.
    pair = loss_between(law(protocol, (1, 1, 1, 0), 1), law(protocol, (1, 0, 0, 1), 1))
    assert pair == pytest.approx(2.0344, abs=1e-4)


def test_without_a_second_round_a_change_can_be_proven() -> None:
    protocol = loloha.DBitFlipPM(k=3, eps_inf=1.0)
    key = (0, 1, 2)
    assert loss_between(law(protocol, (0, 0), key), law(protocol, (0, 1), key)) == math.inf


def test_nothing_renews_by_itself() -> None:
    """PAINS 15: neither time nor a restart lowers the loss; a reset adds to it."""
    protocol = loloha.BiLOLOHA(k=2, eps_inf=1.0, eps_1=0.5)
    client = protocol.client(key=1, rng=SimulationRng(1))
    for t in range(200):
        client.report(t % 2, round=t)
    assert client.loss == 2.0
    client = Client.from_dict(client.to_dict(), rng=SimulationRng(2))
    client.report(0, round=10**6)
    assert client.loss == 2.0
    client.reset(wait=False)
    client.report(0, round=0)
    assert (client.loss, client.cap) == (3.0, 4.0)


# -- plain words

SAMPLES = [example(name, k=6) for name in REGISTRY] + [
    loloha.OLOLOHA(k=6, eps_inf=1.0, eps_1=0.4, hash="affine"),
    loloha.OLOLOHA(k=6, eps_inf=5.0, eps_1=3.0, calibration="published"),
    loloha.BiLOLOHA(k=6, eps_inf=1.0, eps_1=0.4, hash="xxhash"),
    loloha.DBitFlipPM(k=6, b=5, d=1, eps_inf=1.0),
    loloha.DBitFlipPM(k=6, b=5, d=3, eps_inf=1.0, calibration="published"),
    loloha.LGRR(k=6, eps_inf=700.0, eps_1=1e-6),
]

FORBIDDEN = [
    r"anonym",
    r"cannot be (identified|linked|tracked|told apart|distinguished)",
    r"\bguarantee[sd]?\b",
    r"(completely|fully|perfectly|always) (private|protected|safe|secure)",
    r"never (learns?|sees?|leaks?|reveals?)",
    r"(any|all|every|arbitrary) (two )?(histor(y|ies)|sequences?) (are|is|differ)",
    r"(?<!not a )(?<!nor the cap )bound on what any history",
    r"(cap|eps_inf) (bounds|limits|protects) (any|all|every|arbitrary|the pattern)",
    r"whatever (the user|a user) does",
    r"changes? (is|are) (protected|hidden)",
]


def ids(protocol: Protocol) -> str:
    return repr(protocol)


@pytest.mark.parametrize("protocol", SAMPLES, ids=ids)
def test_explain_says_the_numbers(protocol: Protocol) -> None:
    found = privacy.explain(protocol, reports=3)
    assert str(found) == found.text
    assert found.eps_1 == protocol.asked_first
    assert found.growth == ((3, privacy.growth(protocol, 3)),)
    assert found.cap == protocol.cap
    assert found.eps_inf == (protocol.asked_memo if protocol.longitudinal else math.inf)
    for name, number in (("eps_1", found.eps_1), ("eps_inf", found.eps_inf), ("cap", found.cap)):
        shown = f"{number:.4g}" if math.isfinite(number) else "none"
        assert f"{name} = {shown}:" in found.text
    assert f"eps_t = {privacy.growth(protocol, 3):.4g} after 3:" in found.text
    assert found.parameters == protocol.numbers
    for name, number in protocol.numbers.items():
        assert number is None or f"{name} = {number:.6g}" in found.text


@pytest.mark.parametrize("g", [2, 3, 5])
def test_what_joint_responses_cost_grows_where_more_cells_can_be_visited(g: int) -> None:
    """All but one of three cells are two; of two cells none is left to exchange one for."""
    protocol = loloha.OLOLOHA(k=20, eps_inf=2.0, eps_1=1.0, g=g, memo="joint", m0=0.0)
    text = privacy.explain(protocol).text
    losses = [f"{protocol.spent(m):.4g} where" for m in (2, g - 1) if g > 2]
    assert [loss in text for loss in losses] == [True] * len(losses)
    assert ("where two are visited" in text, "where more are" in text) == (g > 2, g > 3)


@pytest.mark.parametrize("protocol", SAMPLES, ids=ids)
def test_explain_says_what_it_must(protocol: Protocol) -> None:
    found = privacy.explain(protocol)
    protected, leaks = " ".join(found.protected), " ".join(found.leaks)
    assert f"at most e^{protocol.asked_first:.4g} = " in protected
    for always in ("Absence: in which rounds", "does not depend on", "their losses add"):
        assert always in leaks
    if not protocol.longitudinal:
        assert "every report spends" in leaks
        assert "the total is unbounded" in leaks
        assert len(found.protected) == 2
        assert f"at most e^{protocol.realised.eps_first:.4g} = " in found.protected[1]
        assert "keys are drawn anew" in leaks
        return
    assert f"at most e^{protocol.asked_memo:.4g} = " in protected
    assert "A value that never changes" in protected
    assert "return to earlier" in protected
    assert "in the same rounds" in protected
    assert "The times of changes" in leaks
    assert "Neither eps_inf nor the cap bounds" in leaks
    assert "not a bound on what any history reveals" in leaks
    assert "Reset: no budget is ever renewed" in leaks
    assert f"up to {protocol.cap:.4g} more" in leaks
    assert "Linking" in leaks
    assert ("proves a change" in leaks) is (protocol.second is None)
    assert ("never shows" in leaks) is (protocol.encoding.kind == "keyed symbol")
    # What bounds one round is a promise where it does not grow with k, else a warning.
    once = privacy.eps_2(protocol)
    if protocol.second is None:
        assert "a single changed round is unbounded" in leaks
    else:
        said, other = (protected, leaks) if protocol.g else (leaks, protected)
        assert "Any one round" in said
        assert f"e^{once:.4g}" in said
        assert "Any one round" not in other
    for reports in (1, 10, 100):
        area = privacy.change_auc(protocol, reports)
        assert area is not None
        shown = rf"(at most )?(\d\.\d{{3}}) at T = {reports}\b"
        for text in (leaks, found.text):
            said = re.search(shown, text)
            assert said is not None
            # A bound is called one, and never rounded down.
            assert (said[1] is not None) is area.bound
            above = float(said[2]) - area.auc
            assert -1e-8 <= above < 1e-3 if area.bound else abs(above) <= 5e-4


@pytest.mark.parametrize("protocol", SAMPLES, ids=ids)
def test_explain_claims_no_more(protocol: Protocol) -> None:
    text = privacy.explain(protocol).text
    for claim in FORBIDDEN:
        found = re.search(claim, text, flags=re.IGNORECASE)
        assert found is None, f"{protocol.name} claims: {text[found.start() - 40 : found.end()]!r}"
    # The cap is named as a budget, never as what bounds histories of any kind.
    assert "bound on the budget spent" in text or not protocol.longitudinal


@pytest.mark.parametrize(
    "claim",
    [
        "The cap bounds any history.",
        "Any two histories are indistinguishable up to the cap.",
        "The cap is a bound on what any history reveals.",
        "Users stay anonymous.",
        "Every change is hidden.",
    ],
)
def test_forbidden_claims_are_detected(claim: str) -> None:
    assert any(re.search(pattern, claim, flags=re.IGNORECASE) for pattern in FORBIDDEN)


@pytest.mark.parametrize(
    ("protocol", "link"),
    [
        (loloha.BiLOLOHA(k=96, eps_inf=1.0, eps_1=0.5), "one of 127. About n/127 of n users"),
        (loloha.BiLOLOHA(k=96, eps_inf=1.0, eps_1=0.5, hash="affine"), "same 62-bit key"),
        (loloha.BiLOLOHA(k=96, eps_inf=1.0, eps_1=0.5, hash="xxhash"), "same 32-bit key"),
        (loloha.RAPPOR(k=96, eps_inf=1.0, eps_1=0.5), "by fingerprint. No key distinguishes users"),
        (loloha.DBitFlipPM(k=96, eps_inf=1.0, d=4), "the same 4 sampled buckets and repeat"),
        (loloha.DBitFlipPM(k=96, eps_inf=1.0), "reports repeat the memoised bits unchanged"),
    ],
    ids=lambda value: value.name if isinstance(value, Protocol) else "",
)
def test_explain_says_how_reports_can_be_joined(protocol: Protocol, link: str) -> None:
    assert link in " ".join(privacy.explain(protocol).leaks)


@pytest.mark.parametrize("protocol", SAMPLES, ids=ids)
def test_explanations_are_json(protocol: Protocol) -> None:
    found = privacy.explain(protocol, reports=[1, 4])
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["text"] == found.text
    assert plain["cap"] == (protocol.cap if protocol.longitudinal else None)
    for one, rounds in zip(plain["windows"], (1, 2, 10), strict=True):
        loss = privacy.window_loss(protocol, rounds)
        assert one == {"rounds": rounds, "eps": loss if math.isfinite(loss) else None}
    area = privacy.change_auc(protocol, 10)
    assert area is not None
    assert plain["change"][1] == {"reports": 10, **area._asdict()}
    link = privacy.link_auc(protocol, 1)
    assert link is not None
    assert plain["link"] == {"auc": link.auc, "error": link.error, "bound": link.bound}
    assert plain["growth"][1] == {"reports": 4, "eps": privacy.growth(protocol, 4)}
    assert loloha.protocols.protocol_from_dict(plain["protocol"]) == protocol


def test_explanations_are_frozen() -> None:
    found = loloha.privacy.explain(loloha.BiLOLOHA(k=4, eps_inf=2.0, eps_1=1.0))
    assert [t for t, _ in found.growth] == list(USUAL_REPORTS)
    with pytest.raises(FrozenInstanceError):
        found.cap = 1.0  # type: ignore[misc]
    for reports in (0, []):
        with pytest.raises(ParameterError, match="reports must"):
            privacy.explain(found.protocol, reports=reports)


@pytest.mark.parametrize("cls", [loloha.LGRR, loloha.RAPPOR, loloha.BiLOLOHA], ids=lambda c: c.name)
def test_the_first_report_loses_the_very_number_that_was_asked_for(cls: Any) -> None:
    """Computed from probabilities it would differ in its last digits."""
    for eps_1 in np.arange(1, 40) / 10:
        protocol = cls(k=8, eps_inf=2 * eps_1, eps_1=eps_1)
        assert privacy.growth(protocol, 1) == protocol.asked_first
