"""One user's client: what it remembers, what a saved state survives, what never leaves it."""

import contextlib
import json
import math
import os
import stat
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loloha
from laws.variants import FLAGSHIPS, Variant
from loloha.client.client import STORED_ROUNDS, Client
from loloha.client.file import sync_folder
from loloha.client.limit import agreed, cost_of_reset, covers, upward
from loloha.client.seal import checksum
from loloha.client.state import Record, State
from loloha.errors import BudgetError, LolohaError, ParameterError, StateError
from loloha.protocols import OLOLOHA, Protocol, protocol_from_dict
from loloha.report import LARGEST_ROUND, Report
from loloha.rng import SimulationRng

PROTOCOL = loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0)
OTHER = loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=0.9)
VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "limits.json").read_text())
every_protocol = pytest.mark.parametrize("variant", FLAGSHIPS, ids=str)


def experienced(protocol: Protocol, seed: int = 4, **options: Any) -> Client:
    """A client with several rounds, memo cells and one reset behind it."""
    client = protocol.client(rng=SimulationRng(seed), **options)
    client.report(0, round=0)
    client.reset(wait=False)
    for round in range(6):
        client.report(round % 3, round=round)
    return client


def signed(state: dict[str, Any]) -> dict[str, Any]:
    """The state with a checksum that fits it."""
    body = {name: part for name, part in state.items() if name != "checksum"}
    return {**body, "checksum": checksum(body)}


# -- rounds


def test_rounds_may_come_in_any_order() -> None:
    client = PROTOCOL.client()
    reports = {round: client.report(3, round=round) for round in (9, 2, 2**53 - 1, 0)}
    assert {round: client.report(5, round=round) for round in reports} == reports


def test_old_rounds_are_forgotten_and_not_answered_again() -> None:
    """A second answer for one round would be one report more (MATH section 8)."""
    client = PROTOCOL.client()
    reports = [client.report(1, round=round) for round in range(STORED_ROUNDS + 2)]
    assert [client.report(1, round=round) for round in range(2, STORED_ROUNDS + 2)] == reports[2:]
    for round in (0, 1):
        with pytest.raises(StateError, match=r"round must be one that was not answered, got [01]"):
            client.report(1, round=round)
    restored = Client.from_dict(client.to_dict())
    with pytest.raises(StateError, match="round must be one that was not answered"):
        restored.report(1, round=0)


def test_a_client_at_work_remembers_what_one_restored_after_each_report_does() -> None:
    """Rounds in a row are set down together, later: neither order nor number must differ."""
    rounds = [*range(70), 75, 76, 74, *range(77, 130), 128, 500, *range(501, 570), 90, 73]
    rng, other = SimulationRng(5), SimulationRng(5)
    client = PROTOCOL.client(rng=rng)
    restored = Client.from_dict(client.to_dict(), rng=other)
    # What a report draws must not depend on what enrolment drew.
    rng._random.setstate(other._random.getstate())
    for round in rounds:
        value = round % PROTOCOL.k
        for one in (client, restored):
            with contextlib.suppress(StateError):
                one.report(value, round=round)
        written = restored.to_dict()
        restored = Client.from_dict(written, rng=other)
        assert client.sent_rounds == restored.sent_rounds
    assert client.to_dict() == written
    with pytest.raises(StateError, match="its report is forgotten"):
        client.report(1, round=76)


@pytest.mark.parametrize("first", [0, 1, 63, 64, 200])
def test_rounds_in_a_row_are_set_down_before_every_64th(first: int) -> None:
    """So that the run never holds more than the reports that a record keeps."""
    empty = Record(None, None, 0.0, 0.0, b"", ())
    state = State({}, empty, -1)
    sent = [Report(None, number % 3) for number in range(200)]
    for number, report in enumerate(sent):
        round = first + number
        state = state.answering(round, report, {})
        assert state.last == round
        assert (state.run is None) == (number == 0 < first or (round + 1) % 64 == 0)
        assert state.record.answered == ((first, round),)
        assert state.record.reports == number + 1
    assert state.record.sent == tuple(zip(range(first, first + 200), sent, strict=True))[-64:]


@pytest.mark.parametrize("round", [-1, LARGEST_ROUND + 1, 1.0, "1", None, True])
def test_a_round_is_a_natural_number(round: Any) -> None:
    client = PROTOCOL.client()
    for ask in (lambda: client.report(1, round=round), lambda: client.reporter(round)):
        with pytest.raises(ParameterError, match=r"round must be an integer in 0\.\..* got "):
            ask()
    assert client.loss == 0


def test_pseudonyms_of_rounds_and_clients_cannot_be_joined() -> None:
    clients = [PROTOCOL.client() for _ in range(3)]
    names = [client.reporter(round) for client in clients for round in range(50)]
    assert len(set(names)) == len(names)
    assert {(len(name), int(name, 16) >= 0) for name in names} == {(32, True)}
    assert clients[0].reporter(np.int64(7)) == clients[0].reporter(7)


def test_two_metrics_do_not_meet() -> None:
    """PAINS 20: one device, two campaigns: a key, a memo, a loss and a pseudonym for each."""
    one, other = PROTOCOL.client(), OTHER.client()
    for round in range(20):
        one.report(7, round=round)
    assert (one.loss, other.loss) == (2.0, 0.0)
    assert other.to_dict()["memo"] == []
    assert one.to_dict()["secret"] != other.to_dict()["secret"]
    assert one.reporter(0) != other.reporter(0)
    with pytest.raises(StateError, match="it is for another one"):
        Client.from_dict(one.to_dict(), protocol=OTHER)


# -- limit


@pytest.mark.parametrize(
    "limit",
    [0.0, -1, 1.999, 5.999, -math.inf, math.nan, "6", True, np.bool_(True), [6.0], 6j, np.array(6)],
)
def test_a_limit_below_the_cap_is_refused(limit: Any) -> None:
    with pytest.raises(ParameterError, match=r"limit must be a number in \[6, inf\], got "):
        PROTOCOL.client(limit=limit)


@pytest.mark.parametrize(
    "limit", [6, 6.0, np.float32(6), np.int8(6), Fraction(6), 6.0 - 1e-12, math.inf, None]
)
def test_a_limit_that_covers_the_cap_is_taken(limit: Any) -> None:
    client = PROTOCOL.client(limit=limit)
    for round in range(200):
        client.report(round % PROTOCOL.k, round=round)
    assert client.loss <= client.committed == 6.0


def test_a_refusal_says_what_would_fit() -> None:
    with pytest.raises(ParameterError, match=r"keeps up to 3 answers, and spends 6 with all") as no:
        PROTOCOL.client(limit=4.0)
    joint = OLOLOHA.from_params({**PROTOCOL.get_params(), "memo": "joint"})
    assert f"ololoha with memo='joint' {upward(joint.cap)}, biloloha 4)" in str(no.value)
    # Of fewest cells, drawn jointly, where that is less: no smaller cap goes unsaid.
    caps = {g: OLOLOHA(k=20, eps_inf=4.0, eps_1=2.0, g=g, memo="joint").cap for g in (2, 3, 5, 7)}
    for g, cap in caps.items():
        protocol = OLOLOHA(k=20, eps_inf=4.0, eps_1=2.0, g=g, memo="joint")
        with pytest.raises(ParameterError, match="ololoha keeps up to") as no:
            protocol.client(limit=1.0)
        less = f"ololoha with g=3 and memo='joint' {upward(caps[3])}"
        assert (less in str(no.value)) == (cap > min(caps.values())), g
    # Each of the numbers fits, as it stands there.
    joint.client(limit=float(upward(joint.cap)))
    loloha.BiLOLOHA(k=20, eps_inf=2.0, eps_1=1.0).client(limit=4)
    wide = loloha.DBitFlipPM(k=1000, eps_inf=2.0, b=500, d=499)
    for protocol in (wide, loloha.LGRR(k=500, eps_inf=2.0, eps_1=1.0)):
        with pytest.raises(ParameterError, match=r"500 answers, too many for any small limit"):
            protocol.client(limit=999.0)
    with pytest.raises(ParameterError, match=r"in \[0.7, inf\].*spends 0.7 with each report"):
        loloha.GRR(k=4, eps=0.7).client(limit=0.6)
    with pytest.raises(ParameterError, match="with the 6 of earlier enrolments"):
        Client(PROTOCOL, limit=11.0, account=PROTOCOL.client().account)


@given(st.floats(1e-6, 1e12))
def test_what_is_shown_of_an_amount_covers_it(amount: float) -> None:
    shown = float(upward(amount))
    assert covers(shown, amount)
    assert shown <= amount * (1 + 1.1e-5)


def test_a_reset_commits_another_cap() -> None:
    """The caps of all enrolments count: what was spent depends on values."""
    client = PROTOCOL.client(limit=12.0)
    client.report(0, round=0)
    client.reset()
    client = Client.from_dict(client.to_dict())
    assert (client.limit, client.loss, client.committed) == (12.0, 2.0, 12.0)
    with pytest.raises(StateError, match="answering it again"):
        client.report(0, round=0)
    for round in range(1, 101):
        client.report(round % PROTOCOL.k, round=round)
    state = client.to_dict()
    with pytest.raises(BudgetError, match=r"limit must cover 18 for a new user, with the 12 "):
        client.reset()
    assert client.to_dict() == state
    with pytest.raises(ParameterError, match=r"limit must be a number in \[12, inf\]"):
        client.set_limit(11.0)
    client.set_limit(18.0)
    client.reset()
    assert client.committed == 18.0


def test_one_round_rules_report_until_their_limit() -> None:
    client = loloha.GRR(k=4, eps=0.5).client(limit=1.7)
    for round in range(3):
        client.report(round, round=round)
    with pytest.raises(BudgetError, match=r"loss must stay within limit = 1\.7"):
        client.report(0, round=3)
    assert client.report(0, round=1) is client.report(3, round=1)
    with pytest.raises(BudgetError, match="limit must cover 2 for a new user"):
        client.reset()
    with pytest.raises(ParameterError, match=r"number in \[1.5, inf\]"):
        client.set_limit(1.0)
    client.set_limit(2.0)
    client.report(0, round=3)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: next(iter(vector)))
def test_limits_are_those_of_the_vectors(vector: dict[str, Any]) -> None:
    if "fits" in vector:
        protocols = [protocol_from_dict(plain) for plain in vector["protocols"]]
        asked = partial(agreed, vector["limit"], vector["committed_before"], protocols)
        assert (refusal(asked) is None) == vector["fits"]
    elif "protocol" in vector:
        client = protocol_from_dict(vector["protocol"]).client(limit=vector["limit"])
        rounds = range(vector["reports"])
        assert all(client.report(round % 2, round=round) for round in rounds)
        assert len(rounds) == 100 or refusal(partial(client.report, 0, round=100)) is BudgetError
    else:
        client = Client.from_dict(vector["state"])
        assert client.to_dict() == vector["state"]
        taken = refusal(partial(client.report, 0, round=0))
        assert taken is (None if vector["reports"] else BudgetError)
        client = Client.from_dict(vector["state"])
        assert refusal(client.reset) is (None if vector["resets"] else BudgetError)
        assert vector["resets"] or client.to_dict() == vector["state"]


def refusal(step: Callable[[], Any]) -> type[Exception] | None:
    """The type of the error that a step raises."""
    try:
        step()
    except LolohaError as error:
        return type(error)
    return None


@pytest.mark.parametrize("limit", [2.0, 4.0, 5.999])
@pytest.mark.parametrize("spent_before", [0.0, 2.0])
def test_a_state_of_0_2_0_under_a_smaller_limit_asks_for_consent(
    limit: float, spent_before: float
) -> None:
    """It reports no more, whatever the value; with a new limit it goes on, and nothing is lost."""
    old = PROTOCOL.client()
    sent = [old.report(v, round=v) for v in range(2)]
    state = signed({**old.to_dict(), "limit": limit, "spent_before": spent_before})
    client = Client.from_dict(state)
    for v in range(PROTOCOL.k):
        with pytest.raises(BudgetError, match="ask the user for consent anew"):
            client.report(v, round=2)
    assert [client.report(v, round=v) for v in range(2)] == sent
    assert client.to_dict() == state
    with pytest.raises(ParameterError, match="limit must be"):
        client.set_limit(limit)
    client.set_limit(None if limit == 2.0 else 6.0 + spent_before)
    restored = Client.from_dict(client.to_dict())
    for one in (client, restored):
        assert one.committed == spent_before + 6.0
        for v in range(PROTOCOL.k):
            one.report(v, round=2 + v)
    assert dict(restored.to_dict()["memo"]).items() >= dict(state["memo"]).items()


def test_a_limit_forgives_rounding_only() -> None:
    protocol = loloha.GRR(k=4, eps=0.1)
    client = protocol.client(limit=0.3)
    for round in range(3):
        client.report(0, round=round)
    with pytest.raises(BudgetError):
        client.report(0, round=3)


# -- saving


@every_protocol
def test_a_saved_client_goes_on(variant: Variant, tmp_path: Path) -> None:
    client = experienced(variant.build(), limit=1e6)
    path = tmp_path / "state.json"
    client.save(path)
    restored = Client.load(path, protocol=variant.build(), rng=SimulationRng(1))
    assert restored.to_dict() == client.to_dict()
    assert [restored.report(0, round=round) for round in range(6)] == [
        client.report(0, round=round) for round in range(6)
    ]
    assert (restored.loss, restored.cap, restored.limit) == (client.loss, client.cap, 1e6)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_only_its_owner_reads_a_saved_client(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("older state, readable by all")
    path.chmod(0o644)
    PROTOCOL.client().save(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_failed_save_leaves_the_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.json"
    client = PROTOCOL.client()
    client.save(path)
    before = path.read_bytes()
    client.report(5, round=0)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StateError, match=r"state must be writable at .*: No space left"):
        client.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_or_read_is_named(tmp_path: Path) -> None:
    nowhere = tmp_path / "absent" / "state.json"
    with pytest.raises(StateError, match=f"state must be writable at '{nowhere}'"):
        PROTOCOL.client().save(nowhere)
    with pytest.raises(StateError, match=f"state must be readable at '{nowhere}'"):
        Client.load(nowhere)


def test_a_folder_need_not_be_synced_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    monkeypatch.setattr("loloha.client.file.os.name", "nt")
    monkeypatch.setattr("loloha.client.file.os.open", lambda *args: opened.append(args))
    sync_folder(str(tmp_path))
    assert opened == []


@every_protocol
def test_every_changed_bit_of_a_saved_state_is_seen(variant: Variant) -> None:
    text = json.dumps(experienced(variant.build()).to_dict()).encode()
    for place in range(len(text)):
        bit = 1 << (place * 5 % 8)
        flipped = text[:place] + bytes([text[place] ^ bit]) + text[place + 1 :]
        with pytest.raises((StateError, ValueError)):
            Client.from_dict(json.loads(flipped))


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-1],
        lambda text: text[: len(text) // 2],
        lambda text: b"",
        lambda text: text + b"{}",
        lambda text: b"[" * 100_000,
        lambda text: b"null",
        lambda text: b"[1, 2]",
        lambda text: b'"loloha-client"',
        lambda text: b"{}",
        lambda text: b"\xff\xfe\x00",
        lambda text: text.replace(b'"version": 3', b'"version": 4'),
        lambda text: text.replace(b"loloha-client", b"loloha-server"),
        lambda text: text.replace(b'"checksum"', b'"checksun"'),
        lambda text: text[:-1] + b', "more": 1}',
    ],
)
def test_a_damaged_or_foreign_file_is_refused(
    damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "state.json"
    experienced(PROTOCOL).save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StateError, match=r"^state must "):
        Client.load(path)


JUNK = [
    None, True, -1, 0, 3, 10**30, 1.5, float("inf"), float("nan"), "", "x", "é", [], {}, [[]],
    [[0]], [[0, 0, 0]], [[0, "zz"]], [["a", 1]], [[-5, 0]], [[5, None, 0]], [[2, 3, "00"]], [1, 2],
]  # fmt: skip


@every_protocol
def test_a_forged_state_is_refused_or_is_a_client(variant: Variant) -> None:
    """Whatever a field holds, under a checksum that fits: a typed error or a working client."""
    state = experienced(variant.build()).to_dict()
    for field in state:
        for junk in JUNK:
            forged = signed({**state, field: junk})
            if field == "checksum":
                forged["checksum"] = junk
            client = restored(forged)
            if client is None:
                continue
            # A forged limit may refuse, as any limit.
            with contextlib.suppress(BudgetError):
                client.report(1, round=200)
            assert client.loss <= client.cap
            assert Client.from_dict(client.to_dict()).to_dict() == client.to_dict()


def restored(state: dict[str, Any]) -> Client | None:
    """The client, or None where the state is refused as it must be."""
    try:
        return Client.from_dict(state)
    except StateError as refusal:
        error = refusal
    assert str(error).startswith("state must ")
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    return None


@every_protocol
def test_a_state_without_its_key_is_refused(variant: Variant) -> None:
    """Drawing another key would let old and new answers be joined to different hashes."""
    protocol = variant.build()
    state = experienced(protocol).to_dict()
    if state["key"] is not None:
        with pytest.raises(StateError, match="must hold the key of its client"):
            Client.from_dict(signed({**state, "key": None}))
    for field in state:
        whole = {name: part for name, part in state.items() if name != field}
        with pytest.raises(StateError, match=r"^state must "):
            Client.from_dict(whole if field == "checksum" else signed(whole))


def test_a_state_beyond_what_a_client_can_be_is_refused() -> None:
    state = experienced(PROTOCOL).to_dict()
    many = [[x, 0] for x in range(PROTOCOL.g)]
    impossible = [
        {"memo": [*many, [PROTOCOL.g, 0]]},
        {"memo": [[0, PROTOCOL.g]]},
        {"memo": [[0, True]]},
        {"answered": [[1, 5]]},
        {"answered": [[0, 2], [3, 5]]},
        {"answered": [[0, 5.0]]},
        {"answered": [[-1, 5]]},
        {"reports": 2},
        {"sent": [[9, 0, 1]]},
        {"spent_before": -2.0},
        {"secret": "00" * 31},
        {"limit": 0.1},
        {"limit": math.nan},
        {"limit": "6"},
        {"limit": -6.0},
        {"version": 3, "committed_before": -1.0},
        {"version": 3, "committed_before": None},
    ]
    for change in impossible:
        with pytest.raises(StateError, match=r"^state must "):
            Client.from_dict(signed({**state, **change}))


@pytest.mark.parametrize("panel", [(2, 2), (1, 0), (0, 0), (3, -1), (3, 1.0)])
def test_a_state_of_a_panel_that_there_is_not_is_refused(panel: tuple[Any, Any]) -> None:
    state = PROTOCOL.client().to_dict()
    assert Client.from_dict(signed({**state, "panel": [3, 2]})).is_due(5)
    with pytest.raises(StateError, match=r"^state must hold "):
        Client.from_dict(signed({**state, "panel": [*panel]}))


def test_the_state_of_another_protocol_is_refused() -> None:
    state = PROTOCOL.client().to_dict()
    with pytest.raises(StateError, match="it is for another one; a changed protocol needs a new"):
        Client.from_dict(state, protocol=OTHER)
    assert Client.from_dict(state, protocol=PROTOCOL).protocol == PROTOCOL


def test_the_cost_of_a_reset_counts_its_campaigns() -> None:
    protocol = loloha.OLOLOHA(k=5, eps_inf=2.0, eps_1=1.0)
    alone, both = (cost_of_reset(1.0, [protocol] * n, wait=True) for n in (1, 2))
    assert "campaigns" not in alone
    assert "of 2 campaigns" in both
    assert f"up to {2 * protocol.cap:g}" in both


def test_a_state_too_large_to_be_one_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.state"
    with path.open("wb") as file:
        file.truncate((257 << 20) + 5)
    with pytest.raises(StateError, match=r"at most 256 MiB at .*, got 257; "):
        Client.load(path)
