"""What a user is shown before agreeing is the same text in both languages."""

import json
import subprocess
from dataclasses import replace
from typing import Any

from javascript import CLIENT, node
from loloha.campaign import Campaign, Schedule
from loloha.conform import case
from loloha.protocols import GRR, OLOLOHA, RAPPOR, DBitFlipPM
from loloha.report import LARGEST_ROUND
from loloha.sender.consent_text import explain_all
from loloha.sender.do_not_track import OPTED_OUT
from loloha.sender.preview import ANSWERED, QUEUED, Preview, example

SCRIPT = """
import { readFileSync } from "node:fs";
import { Campaign } from "%(folder)s/src/index.js";
import { explainAll } from "%(folder)s/src/explain.js";
const said = [];
for (const [documents, limit, before] of JSON.parse(readFileSync(0, "utf8"))) {
  const campaigns = await Promise.all(documents.map((one) => Campaign.read(one)));
  const after = await Promise.all(before.map((one) => Campaign.read(one)));
  said.push(explainAll(campaigns, { limit, after }));
}
console.log(JSON.stringify(said));
"""


def asked() -> list[tuple[list[Campaign], float | None]]:
    """Each protocol with and without a limit, spans of rounds, several at once."""
    alone = [case.campaign(one) for one in case.variants() if one.k == 3]
    spans = [
        case.campaign(alone[0].protocol, schedule=Schedule(0, seconds, every=every))
        for seconds in (1, 59, 60, 7200, 86400, 604800)
        for every in (1, 30)
    ]
    memoised = [
        case.campaign(OLOLOHA(k=3, eps_inf=2.5, eps_1=1 / 3)),
        case.campaign(DBitFlipPM(k=9, eps_inf=9.9996, b=5, d=2), name="Pages"),
        case.campaign(RAPPOR(k=2, eps_inf=12345.6e-2, eps_1=100.0), name="Colours"),
    ]
    limits = [None, 9.99996, 12345.6, 100_000_000.0]
    return [
        *(([one], None) for one in [*alone, *spans]),
        *((memoised[:size], limit) for size in (1, 2, 3) for limit in limits),
        ([*memoised, alone[0]], 30.0),
    ]


def run(script: str, questions: Any) -> list[str]:
    ran = subprocess.run(
        [node(), "--input-type=module", "-e", script % {"folder": CLIENT}],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    said: list[str] = json.loads(ran.stdout)
    return said


def test_both_languages_say_the_same() -> None:
    old = [some[0] for some, _ in asked()][:2]
    questions = [(some, limit, old[: place % 3]) for place, (some, limit) in enumerate(asked())]
    written = [
        ([case.text(one) for one in some], limit, [case.text(one) for one in after])
        for some, limit, after in questions
    ]
    for (some, limit, after), text in zip(questions, run(SCRIPT, written), strict=True):
        assert text == explain_all(some, limit=limit, after=after)


PREVIEWS = """
import { readFileSync } from "node:fs";
import { Campaign } from "%(folder)s/src/index.js";
import { explainPreview } from "%(folder)s/src/explain.js";
const said = [];
for (const [document, preview] of JSON.parse(readFileSync(0, "utf8"))) {
  said.push(explainPreview({ ...preview, campaign: await Campaign.read(document) }));
}
console.log(JSON.stringify(said));
"""


def previewed() -> list[tuple[Preview, str]]:
    """Reports of each protocol, short and long lists, each kind; and the code of why not."""
    drawn = [
        example(case.campaign(one, keys=keys), round)
        for one in case.variants()
        for keys in ("drawn", "assigned")
        if keys == "drawn" or (one.longitudinal and one.encoding.key_bits)
        for round in (0, 5, LARGEST_ROUND)
    ]
    large = [
        example(case.campaign(one), 1)
        for one in (
            OLOLOHA(k=96, eps_inf=2.5, eps_1=1 / 3),
            DBitFlipPM(k=90, eps_inf=9.9996, b=50, d=30),
            RAPPOR(k=60, eps_inf=12345.6e-2, eps_1=100.0),
        )
        for _ in range(5)
    ]
    kinds = [
        replace(one, kind=kind, url="https://h") for one in drawn[:3] for kind in (QUEUED, ANSWERED)
    ]
    return [(one, "") for one in [*drawn, *large, *kinds]] + [
        (replace(drawn[0], reason="The user has not agreed to this campaign."), "not-agreed"),
        (replace(drawn[0], reason=OPTED_OUT), "do-not-track"),
    ]


def test_both_languages_say_the_same_of_a_report() -> None:
    previews = previewed()
    questions = [
        [
            case.text(one.campaign),
            {"round": one.round, "kind": one.kind, "message": one.message.decode(), "url": one.url}
            | {"reason": code},
        ]
        for one, code in previews
    ]
    said = run(PREVIEWS, questions)
    for (one, _), text in zip(previews, said, strict=True):
        assert text == one.text


def test_a_panel_is_asked_once_in_all_its_rounds() -> None:
    protocol = GRR(k=3, eps=1.0)
    monthly = case.campaign(protocol, schedule=Schedule(0, 86400, every=30))
    assert "every 30 days." in explain_all([monthly])
