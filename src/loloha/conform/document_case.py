"""Documents of campaigns that a port must read, and those that it must refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loloha.campaign import Campaign, Labels, Range, Schedule
from loloha.conform.case import START, campaign, canonical, panels, text
from loloha.protocols import BLH, GRR, OLOLOHA, OUE, BiLOLOHA


def good_documents() -> Iterator[Campaign]:
    """Campaigns that must be read: each kind of domain, of text, of key."""
    two = GRR(k=2, eps=1.0)
    yield campaign(two, name='quotes " and \\ and ünïcode “—” 日本 😀')
    yield campaign(two, name="n" * 200, schedule=Schedule(0, 366 * 86400))
    yield panels(two)
    yield campaign(two, schedule=Schedule(START, 1, every=1 << 24))
    yield campaign(two, schedule=Schedule(START, 3600, 2, expires=START + 1))
    yield campaign(two, schedule=Schedule(0, 60, expires=221_845_392_000))
    yield campaign(two, domain=Labels(("a b", "é")), schedule=Schedule(221_845_392_000, 1))
    yield campaign(two, domain=Labels((-(1 << 53), 1 << 53)))
    yield campaign(GRR(k=3, eps=1e-6), domain=Labels(("1", 2), other="else"))
    yield campaign(GRR(k=3, eps=700.0), domain=Labels((1, -2, "😀")))
    yield campaign(BiLOLOHA(k=5, eps_inf=1e-4, eps_1=1e-5), domain=Range(0, 1, 5))
    yield campaign(OUE(k=4, eps=1 / 3), domain=Range(-0.5, 1e-5, 3, other="outside"))
    yield campaign(OUE(k=3, eps=16.0), domain=Range(-(1 << 53), 1 << 53, 3))
    yield campaign(OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0), keys="assigned")


def bad_documents() -> Iterator[tuple[str, str]]:
    """A fault, and a document with it that must be refused, whatever its fingerprint."""
    good = campaign(OLOLOHA(k=3, eps_inf=2.0, eps_1=1.0, g=2)).to_dict()
    rules = good["protocol"]
    labels = good["labels"]

    def changed(**members: Any) -> str:
        return canonical({**good, **members})

    def ruled(**members: Any) -> str:
        return canonical({**good, "protocol": {**rules, **members}})

    for name in ("type", "version", "name", "protocol", "labels", "round"):
        yield (
            f"without {name}",
            canonical({member: good[member] for member in good if member != name}),
        )
    for name in rules:
        fewer = {rule: rules[rule] for rule in rules if rule != name}
        if name not in ("g", "hash", "calibration"):
            yield f"protocol without {name}", changed(protocol=fewer)
    yield "another member", changed(more=1)
    yield "another parameter", ruled(more=1)
    yield "a parameter of another protocol", ruled(eps=1.0)
    yield "a later version", changed(version=2)
    yield "a version that is no integer", changed(version="1")
    yield "a version that is true", changed(version=True)
    yield "a later version of the protocol", ruled(version=2)
    yield "another type", changed(type="loloha-client")
    yield "an unknown protocol", ruled(type="m-grr")
    yield "a protocol that is inherited", ruled(type="constructor")
    yield "a protocol that is no object", changed(protocol=[])
    for k in (1, 0, -3, 4, 1 << 25, "3", None, True, 3.5):
        yield f"k = {k!r}", ruled(k=k)
    for eps_inf in (0, -1.0, 9e-7, 701.0, "2", None, True):
        yield f"eps_inf = {eps_inf!r}", ruled(eps_inf=eps_inf)
    yield "eps_1 = eps_inf", ruled(eps_1=2.0)
    yield "eps_1 > eps_inf", ruled(eps_1=3.0)
    for g in (1, 0, (1 << 20) + 1, "2", 4):
        yield f"g = {g!r}", ruled(g=g)
    for family in ("md5", "Linear", None, 1, "__proto__"):
        yield f"hash = {family!r}", ruled(hash=family)
    yield "an unknown calibration", ruled(calibration="loose")
    bad: tuple[Any, ...] = (
        "",
        " a",
        "a ",
        "a\nb",
        "a\u200bb",
        "a\u00a0b",
        "n" * 201,
        None,
        1,
        ["a"],
    )
    for value in bad:
        yield f"name = {value!r}", changed(name=value)
    bad = ("", " a", "a\tb", "l" * 201, None, True, 1.5, (1 << 53) + 2, ["a"], {})
    for label in bad:
        yield f"a label {label!r}", changed(labels=[label, *labels[1:]])
    yield "a label twice", changed(labels=[labels[0], *labels[:2]])
    yield "a label twice, as text and number", changed(labels=["1", 1, "2"])
    yield "too few labels", changed(labels=labels[:2])
    yield "too many labels", changed(labels=[*labels, "more"])
    yield "no labels", changed(labels=[])
    yield "labels in a text", changed(labels="abc")
    yield "other among the labels", changed(labels=labels[:2], other=labels[0])
    yield "other that is null", changed(other=None)
    yield "other that is not counted", changed(other="else")
    for domain in (
        {"range": [1, 0], "bins": 3},
        {"range": [0, 0], "bins": 3},
        {"range": [0, 1, 2], "bins": 3},
        {"range": [0], "bins": 3},
        {"range": ["0", "1"], "bins": 3},
        {"range": [0, True], "bins": 3},
        {"range": [0, 1e300], "bins": 3},
        {"range": [0, 1], "bins": 4},
        {"range": [0, 1], "bins": "3"},
        {"range": [0, 1]},
        {"range": [0, 1], "bins": 3, "more": 1},
    ):
        yield f"labels = {domain}", changed(labels=domain)
    for start in (
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00.5Z",
        "2026-02-30T00:00:00Z",
        "2026-01-01T24:00:01Z",
        "1969-12-31T23:59:59Z",
        "9999-01-01T00:00:00Z",
        "now",
        START,
        None,
    ):
        yield f"start = {start!r}", changed(round={"start": start, "seconds": 60})
    for seconds in (0, -1, 366 * 86400 + 1, "60", None, True, 0.5):
        yield f"seconds = {seconds!r}", changed(round={**good["round"], "seconds": seconds})
    for every in (1, 0, -1, (1 << 24) + 1, "2", None, True, 2.5):
        yield f"every = {every!r}", changed(round={**good["round"], "every": every})
    for expires in (
        None,
        START + 60,
        "2027-01-01",
        "2027-01-01T00:00:00",
        "2027-02-30T00:00:00Z",
        good["round"]["start"],
        "1970-01-01T00:00:00Z",
    ):
        yield f"expires = {expires!r}", changed(round={**good["round"], "expires": expires})
    yield "a round with more", changed(round={**good["round"], "more": 1})
    bad = ("both", "", None, True, [])
    for keys in bad:
        yield f"keys = {keys!r}", changed(keys=keys)
    for protocol in (GRR(k=3, eps=1.0), BLH(k=3, eps=1.0), OUE(k=3, eps=1.0)):
        yield (
            f"keys assigned for {protocol.name}",
            changed(protocol=protocol.to_dict(), keys="assigned"),
        )
    whole = text(campaign(GRR(k=3, eps=1.0)))
    for wrong in ("NaN", "Infinity", "1e400", '"1"', "1.00000000000000000001e"):
        yield f"eps = {wrong}", whole.replace('"eps":1.0', f'"eps":{wrong}')
    yield "1.0 for an integer", whole.replace('"k":3', '"k":3.0')
    yield "a member twice", whole.replace('"k":3', '"k":2,"k":3')
    yield "half of it", whole[: len(whole) // 2]
    yield "something behind it", whole + "{}"
    yield "nothing", ""
    for plain in ("null", "[]", "1", '"text"', "[" * 5000, '{"type":' * 5000):
        yield f"the text {plain[:8]}", plain
