"""``loloha explain``: the guarantee of a protocol, or of campaigns, in plain words."""

from __future__ import annotations

from typing import Any

from loloha import checks
from loloha.address import Location
from loloha.cli import campaign_file, console
from loloha.cli.parameter import make_protocol
from loloha.cli.privacy_page import OFFICER, USER, privacy_page
from loloha.cli.table_file import check_new, new_file
from loloha.errors import ParameterError


def explain(
    protocol: str | None = None,
    *,
    campaign: list[str] | None = None,
    audience: str | None = None,
    as_html: bool = False,
    as_markdown: bool = False,
    k: int | None = None,
    every: int = 1,
    limit: float | None = None,
    shuffled: int | None = None,
    delta: float = 1e-6,
    out: Location | None = None,
    force: bool = False,
    as_json: bool = False,
    parameters: dict[str, Any],
) -> None:
    """Show what a protocol with these parameters protects, leaks and spends.

    With --campaign it is one page about campaigns, for a privacy officer or with --audience user
    for the users: Markdown, or with --html a page that loads nothing.
    """
    from loloha import privacy

    if campaign:
        if protocol is not None or k is not None or parameters or every != 1 or shuffled or as_json:
            raise ParameterError(
                "--campaign must be given without a protocol, its parameters, --shuffled and "
                "--json, got one; its document has them"
            )
        if as_html and as_markdown:
            raise ParameterError("--html and --markdown must not be given together; leave one out")
        readers = checks.choice("audience", audience or OFFICER, (OFFICER, USER))
        if out is not None:
            check_new(out, force)
        page = privacy_page([*map(campaign_file.load_campaign, campaign)], readers, limit=limit)
        text = page.html if as_html else page.markdown
        if out is None:
            console.show(text, nl=False)
            return
        with new_file(out) as draft:
            draft.write_text(text, encoding="utf-8")
        return
    if audience or as_html or as_markdown or out is not None or limit is not None:
        raise ParameterError(
            "--campaign must be given for a page, got none; add an address or a file"
        )
    if protocol is None or k is None:
        raise ParameterError("protocol and k must be given, got none; or --campaign")
    rules = make_protocol(protocol, parameters, k)
    explanation = privacy.explain(rules, every=every)
    hidden = None if shuffled is None else privacy.shuffled(rules, shuffled, delta)
    if as_json:
        beside = {} if hidden is None else {"shuffled": hidden.to_dict()}
        console.show_json(explanation.to_dict() | beside)
        return
    console.show_text(str(explanation))
    if hidden is not None:
        console.show()
        console.show_text(hidden.text)
