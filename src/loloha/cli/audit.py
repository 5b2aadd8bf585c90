"""``loloha audit``: what a client reveals at least, ours or any, beside what is allowed."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import typer

from loloha.cli import console
from loloha.cli.parameter import make_protocol

if TYPE_CHECKING:
    from loloha.audit import Audit


def audit(
    protocol: str,
    *,
    k: int,
    command: str | None = None,
    users: int = 150_000,
    confidence: float = 1 - 1e-5,
    timeout: float = 10.0,
    as_json: bool = False,
    parameters: dict[str, Any],
) -> None:
    """Bound from below what a client reveals, and compare it with what its protocol allows.

    Exit code 1 if more is revealed than is allowed. It proves violations, never their absence.
    Without --command the shipped client is audited, under each of two histories by as many users.
    A command reads lines 'user round value' and answers each with a line 'key y': key an integer,
    integers joined by commas, or -; y an integer, or the packed bits in hexadecimal.
    """
    from loloha.audit import ClientDevice, CommandDevice
    from loloha.audit import audit as run

    rules = make_protocol(protocol, parameters, k)
    with ExitStack() as stack:
        device: ClientDevice | CommandDevice = ClientDevice(rules)
        if command is not None:
            device = stack.enter_context(CommandDevice(rules, command, timeout=timeout))
        progress = stack.enter_context(console.working("auditing"))
        result = run(rules, device, users=users, confidence=confidence, progress=progress)
    if as_json:
        console.show_json(result.to_dict())
    else:
        _show(result, repr(rules), command or "the shipped client")
    if not result.passed:
        raise typer.Exit(1)


def _show(result: Audit, rules: str, audited: str) -> None:
    console.show_table(
        ("quantity", "allowed", "proven, at least", "users", ""),
        [
            (
                finding.name,
                finding.claimed if math.isfinite(finding.claimed) else "none",
                finding.lower,
                finding.users,
                "VIOLATED" if finding.violated else "",
            )
            for finding in result.findings
        ],
        title=f"{audited}, as {rules}",
    )
    console.show()
    # Five nines would be shown as 100 %.
    surely = f"{100 * result.confidence:.8g} %"
    if result.passed:
        console.show_text(f"Nothing is violated that this audit could prove at {surely}.")
    else:
        console.show_text(f"More is revealed than is allowed: proven at {surely}.")
