"""What waits to be sent is what the client made, or nothing is sent."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import loloha
from collecting import Clock, campaign
from devices import HOURS, sender, url
from faulty import Collector
from loloha.campaign import Campaign
from loloha.client.client import STORED_ROUNDS
from loloha.errors import StateError
from loloha.sender.agreement import Agreement

PROTOCOLS = [
    loloha.LGRR(k=5, eps_inf=2.0, eps_1=1.0),
    loloha.BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0),
    loloha.OLOLOHA(k=5, eps_inf=2.0, eps_1=1.0, g=3, memo="joint"),
    loloha.RAPPOR(k=5, eps_inf=2.0, eps_1=1.0),
    loloha.DBitFlipPM(k=5, eps_inf=2.0, b=4, d=3),
    loloha.OLH(k=5, eps=1.0),
    loloha.OUE(k=5, eps=1.0),
]


def state_of(path: Path, clock: Clock, one: Campaign, rounds: int) -> dict[str, Any]:
    """As release 0.2.0 wrote it, without a checksum."""
    with sender(path, clock) as device:
        device.agree(url(one))
        for round in range(rounds):
            device.report("abcde"[round % 5], round=round)
    plain: dict[str, Any] = json.loads(path.read_bytes())
    del plain["checksum"]
    return plain


def changed(message: str, one: Campaign) -> dict[str, str]:
    """The same message with something else in it, by what was changed."""
    plain = json.loads(message)
    found = {
        "version": {**plain, "version": 2}, "a true version": {**plain, "version": True},
        "version 1.0": {**plain, "version": 1.0},
        "another campaign": {**plain, "campaign": "0" * 64},
        "another round": {**plain, "round": plain["round"] + 1},
        "a round as text": {**plain, "round": str(plain["round"])},
        "another reporter": {**plain, "reporter": "0" * 32}, "more": {**plain, "more": 1},
        "capitals": {**plain, "reporter": plain["reporter"].upper()},
        "a longer answer": {**plain, "y": plain["y"] + "00"}, "no answer": {**plain, "y": ""},
        "an answer that is none": {**plain, "y": "f" * len(plain["y"])},
        "a ticket": {**plain, "ticket": "0" * 32}, "a list": [plain],
        **{f"no {name}": {each: plain[each] for each in plain if each != name} for name in plain},
    }  # fmt: skip
    if "key" in plain:
        found["a key that is none"] = {**plain, "key": "f" * len(plain["key"])}
        found["a longer key"] = {**plain, "key": "00" + plain["key"]}
    else:
        found["a key"] = {**plain, "key": "01"}
    texts = {what: json.dumps(each, separators=(",", ":")) for what, each in found.items()}
    texts["a round twice"] = message[:-1] + f',"round":{plain["round"]}}}'
    texts |= {"two": message + message, "half": message[:9]}
    assert message not in texts.values()
    return texts


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_a_changed_message_is_not_sent(
    tmp_path: Path, clock: Clock, collector: Collector, protocol: Any
) -> None:
    """The newest, which the client keeps, and one that it keeps no longer."""
    one = campaign(protocol=protocol)
    collector.campaigns[one.fingerprint] = one
    good = state_of(tmp_path / "state", clock, one, STORED_ROUNDS + 3)
    assert Agreement.from_plain(json.loads(json.dumps(good)))
    (enrolment,) = good["enrolments"]
    queue = enrolment["queue"]
    for place in (0, -1):
        for text in changed(queue[place][1], one).values():
            others = [each for each in queue if each is not queue[place]]
            bad = {**enrolment, "queue": sorted([*others, [queue[place][0], text]])}
            with pytest.raises(StateError) as caught:
                Agreement.from_plain({**good, "enrolments": [bad]})
            assert text not in str(caught.value)
    swapped = [[queue[0][0], queue[1][1]], [queue[1][0], queue[0][1]], *queue[2:]]
    with pytest.raises(StateError, match="queue of its own reports"):
        Agreement.from_plain({**good, "enrolments": [{**enrolment, "queue": swapped}]})
    # Another answer, of those that there are.
    for y in {f"{bits:02x}" for bits in range(32)} - {json.loads(queue[-1][1])["y"]}:
        text = json.dumps({**json.loads(queue[-1][1]), "y": y}, separators=(",", ":"))
        bad = {**enrolment, "queue": [*queue[:-1], [queue[-1][0], text]]}
        with pytest.raises(StateError):
            Agreement.from_plain({**good, "enrolments": [bad]})


@pytest.mark.usefixtures("collector")
def test_the_order_of_members_is_free(tmp_path: Path, clock: Clock) -> None:
    good = state_of(tmp_path / "state", clock, HOURS, 2)
    (enrolment,) = good["enrolments"]
    turned = [
        [round, json.dumps(dict(reversed(json.loads(text).items())))]
        for round, text in enrolment["queue"]
    ]
    found = Agreement.from_plain({**good, "enrolments": [{**enrolment, "queue": turned}]})
    assert list(map(list, found.enrolments[0].queue.items())) == turned


@pytest.mark.usefixtures("collector")
def test_a_state_that_rots_anywhere_sends_nothing_else(tmp_path: Path, clock: Clock) -> None:
    """Every byte: the state is refused, or its queue is what it was."""
    state_of(tmp_path / "state", clock, HOURS, 2)
    path = tmp_path / "state"
    good = path.read_bytes()
    whole = Agreement.from_plain(json.loads(good)).enrolments[0]
    refused = 0
    for place in range(0, len(good), 3):
        rotten = bytearray(good)
        rotten[place] ^= 1 << place % 7
        try:
            found = Agreement.from_plain(json.loads(bytes(rotten)))
        except (StateError, ValueError):
            refused += 1
            continue
        (one,) = found.enrolments
        assert (dict(one.queue), one.url, one.token) == (dict(whole.queue), whole.url, whole.token)
    assert refused > len(good) / 3 - 9


def test_the_checksum_is_of_the_canonical_form(
    tmp_path: Path, clock: Clock, collector: Collector
) -> None:
    """In UTF-8, as both languages write it."""
    one = campaign(name="Gr\u00f6\u00dfe \U0001f600")
    collector.campaigns[one.fingerprint] = one
    plain = state_of(tmp_path / "state", clock, one, 1)
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    checksum = json.loads((tmp_path / "state").read_bytes())["checksum"]
    assert checksum == hashlib.sha256(text.encode()).hexdigest()
