"""A page on what campaigns ask and reveal, for a privacy officer or for users."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from loloha.campaign.schedule import to_text

if TYPE_CHECKING:
    from loloha.campaign import Campaign
    from loloha.privacy import Explanation

OFFICER, USER = "officer", "user"
MOST_LABELS = 20
"""Values that are listed."""


class Passage(NamedTuple):
    """A heading, sentences, and rows of (figure, number, meaning)."""

    title: str
    sentences: Sequence[str]
    figures: Sequence[tuple[str, str, str]] = ()


class PrivacyPage(NamedTuple):
    """One page."""

    title: str
    sections: Sequence[Passage]

    @property
    def markdown(self) -> str:
        """As Markdown; names and labels stand as they are written."""
        parts = [f"# {_marked(self.title)}"]
        for title, sentences, figures in self.sections:
            parts.append(f"## {_marked(title)}")
            if figures:
                rows = [f"| {' | '.join(map(_marked, row))} |" for row in figures]
                parts.append("\n".join(["| figure | value | meaning |", "|---|---|---|", *rows]))
            if sentences:
                parts.append("\n".join(f"- {_marked(sentence)}" for sentence in sentences))
        return "\n\n".join(parts) + "\n"

    @property
    def html(self) -> str:
        """As one HTML page that loads nothing."""
        body = [f"<h1>{html.escape(self.title)}</h1>"]
        for title, sentences, figures in self.sections:
            body.append(f"<section>\n<h2>{html.escape(title)}</h2>")
            if figures:
                body.append("<dl>")
                body += [
                    f"<div><dt>{html.escape(name)}</dt>"
                    f"<dd><strong>{html.escape(value)}</strong> {html.escape(meaning)}</dd></div>"
                    for name, value, meaning in figures
                ]
                body.append("</dl>")
            if sentences:
                items = (f"<li>{_lead(sentence)}</li>" for sentence in sentences)
                body.append("\n".join(["<ul>", *items, "</ul>"]))
            body.append("</section>")
        title = html.escape(self.title)
        return _PAGE.format(title=title, style=_STYLE, body="\n".join(body))


def privacy_page(
    campaigns: Sequence[Campaign], audience: str, *, limit: float | None = None
) -> PrivacyPage:
    """The page on these campaigns, which one user agrees to together."""
    from loloha import privacy
    from loloha.sender.consent_text import explain_all

    drawn, *lines = [line[2:] for line in explain_all(campaigns, limit=limit).splitlines()]
    names = ", ".join(campaign.name for campaign in campaigns)
    asked = Passage("What is asked", [*map(_asked, campaigns)])
    explained = [
        (
            campaign,
            privacy.explain(campaign.protocol, keys=campaign.keys, every=campaign.schedule.every),
        )
        for campaign in campaigns
    ]
    reveals = Passage("What the answers can reveal", lines)
    if audience == USER:
        short = Passage("In short", [drawn, *_USER_SHORT])
        leaks = Passage("What the noise does not hide", [_TIMES, *_links(campaigns), _ABSENCE])
        return PrivacyPage(
            f"What you are asked to share: {names}",
            (short, asked, reveals, leaks, Passage("Your choice", _CHOICE)),
        )
    short = Passage("In short", [drawn, *_OFFICER_SHORT])
    details = [
        part
        for explanation, text in explained
        for part in _details(explanation, text, len(campaigns) > 1)
    ]
    return PrivacyPage(
        f"Privacy statement: {names}",
        (short, asked, reveals, *details, Passage("What is received and stored", _STORED), _LIMITS),
    )


def _asked(campaign: Campaign) -> str:
    domain, schedule = campaign.domain, campaign.schedule
    from loloha.sender.consent_text import span

    some = ", ".join(domain.text(v) for v in range(min(domain.k, MOST_LABELS)))
    more = ", ..." if domain.k > MOST_LABELS else ""
    until = f" until {to_text(schedule.expires)}" if schedule.expires is not None else ""
    often = f"once every {span(schedule.seconds * schedule.every)}"
    return (
        f"{campaign.name}: which of {domain.k} values holds ({some}{more}), {often}, from "
        f"{to_text(schedule.start)}{until}. Its document has the fingerprint "
        f"{campaign.fingerprint}; other questions would be another campaign, and need consent anew."
    )


def _links(campaigns: Sequence[Campaign]) -> list[str]:
    keyed = [campaign.name for campaign in campaigns if campaign.protocol.longitudinal]
    if not keyed:
        return []
    return [
        (
            "Whether two reports come from the same person: reports of one person resemble each "
            "other or carry the same key, so who receives them can join some or all of them, "
            f"though no name goes with them ({', '.join(keyed)})."
        )
    ]


def _details(campaign: Campaign, explanation: Explanation, named: bool) -> list[Passage]:
    of = f": {campaign.name}" if named else ""
    return [
        Passage(f"Figures{of}", (), _figures(explanation)),
        Passage(f"What is protected{of}", explanation.protected),
        Passage(f"What leaks{of}", explanation.leaks),
    ]


def _figures(explanation: Explanation) -> list[tuple[str, str, str]]:
    from loloha.privacy import eps_2
    from loloha.privacy.plain_words import over_keys, server, shares

    curve = ", ".join(f"{eps:.4g} after {t}" for t, eps in explanation.growth)
    windows = ", ".join(
        f"{eps:.4g} for {w}" for w, eps in explanation.windows if math.isfinite(eps)
    )
    keys = over_keys(explanation.protocol)
    over = f"; {keys}" if keys else ""
    drawn = ", ".join(
        f"{name} {number:.6g}"
        for name, number in explanation.parameters.items()
        if number is not None
    )
    return [
        ("protocol", explanation.protocol.name, "the rules that devices and server share"),
        ("eps_1", f"{explanation.eps_1:.4g}", "loss of one report seen alone, at most"),
        ("eps_t", curve, "loss of t reports of a value that never changes"),
        ("eps_inf", _bound(explanation.eps_inf), "loss of all reports of such a value, for ever"),
        (
            "eps_2",
            _bound(eps_2(explanation.protocol)),
            "loss of any one round, however often values change, all other rounds known",
        ),
        ("any w rounds", windows or "no bound", "loss of w rounds, all others known"),
        (
            "cap",
            _bound(explanation.cap),
            (
                "most budget that one device can spend; no bound on what a history of changing "
                "values shows"
            ),
        ),
        (
            "change, AUC",
            shares(explanation.change),
            (
                "best test of one change, from T reports before it and T after, by "
                f"{server(explanation.protocol)}; 0.5 is chance{over}"
            ),
        ),
        ("drawn with", drawn, "exact numbers of the device; its losses are never above the bounds"),
    ]


def _bound(eps: float) -> str:
    return f"{eps:.4g}" if math.isfinite(eps) else "no bound"


_USER_SHORT = (
    "Nothing is sent before you agree, and nothing after you withdraw.",
    "The noise is added on your device: you need not trust whoever collects the answers.",
)
_OFFICER_SHORT = (
    (
        "Devices add the noise (local differential privacy): the bounds need no trust in whoever "
        "collects, and hold for an operator, and for a thief of everything that was received."
    ),
    "The bounds hold whatever else is known about a person, and however values are distributed.",
    (
        "Two bounds belong together: of one report, and of all reports of a value that never "
        "changes. Do not quote the first one for more than one report."
    ),
    (
        "Not bounded for ever: when values change, and when back. The figures say what bounds the "
        "loss of single rounds, if anything does."
    ),
)
_TIMES = (
    "When your value changes, and when back: it shows the more clearly the longer you report. No "
    "number above covers it."
)
_ABSENCE = "Whether and when your device reports, and from which address on the network."
_CHOICE = (
    (
        "You can withdraw at any time: what is stored on the device, and what waits there, is "
        "deleted. What was sent stays counted, and what was spent stays spent, also if you agree "
        "again."
    ),
    (
        "The variable DO_NOT_TRACK on a computer, Global Privacy Control or Do Not Track in a "
        "browser say that you want none of this: you are not asked."
    ),
    "You can ask the program to show the exact bytes of a report before it goes (preview).",
)
_STORED = (
    (
        "A report holds: the campaign's fingerprint, the number of the round, a pseudonym for "
        "this round alone, the randomised answer, and with some protocols a key; a ticket where "
        "keys are assigned. It holds no name, no account and no value."
    ),
    (
        "loloha's collector keeps sums of the answers, and pseudonyms so as to count a report "
        "once. It keeps reports only where its operator has asked for a log of them. Networks and "
        "proxies in front of it see addresses."
    ),
    "The bounds above hold even if everything that is received is stored for ever.",
)
_LIMITS = Passage(
    "What the statement rests on",
    (
        (
            "The device runs the published rules, draws from the randomness of its system, and "
            "nobody reads its state: key and permanent responses are stored there as they are."
        ),
        "Other collections about the same person add their losses to these.",
        "It is a statement of mathematics about what reports reveal, and no legal assessment.",
    ),
)


def _lead(sentence: str) -> str:
    """A sentence whose topic, up to an early colon, is emphasised."""
    topic, colon, rest = sentence.partition(": ")
    if not colon or len(topic) > 50:
        return html.escape(sentence)
    return f"<strong>{html.escape(topic)}:</strong> {html.escape(rest)}"


def _marked(text: str) -> str:
    """Foreign text escaped for Markdown."""
    return re.sub(r"([\\`*\[\]<>|#~]|\b_|_\b)", r"\\\1", text)


_STYLE = """
:root { color-scheme: light dark; --ground: light-dark(#f4f6f8, #0f1419);
  --panel: light-dark(#fff, #161c23); --ink: light-dark(#1b2430, #e8edf3);
  --soft: light-dark(#55606e, #a5b0bd); --line: light-dark(#d8dee5, #2c3642); }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 48rem; background: var(--ground);
  color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { font-size: 1.1rem; margin: 0 0 .5rem; }
section { margin: 1rem 0; padding: 1rem 1.2rem; background: var(--panel);
  border: 1px solid var(--line); border-radius: 10px; }
ul { margin: 0; padding-left: 1.2rem; }
li + li { margin-top: .45rem; }
dl { margin: 0; }
dl div { display: grid; grid-template-columns: 8rem 1fr; gap: 0 1rem; padding: .35rem 0; }
dl div + div { border-top: 1px solid var(--line); }
dt { color: var(--soft); }
dd { margin: 0; }
@media (max-width: 32rem) { dl div { grid-template-columns: 1fr; } }
@media print { body { max-width: none; } section { break-inside: avoid; } }
"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""
