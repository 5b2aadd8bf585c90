"""``loloha store``: copy a collector's store."""

from __future__ import annotations

from loloha.checks import counted
from loloha.cli import console
from loloha.cli.command import Commands

group = Commands(name="store", no_args_is_help=True, help="Copy a collector's store.")


@group.command()
def copy(store: str, copy: str, *, accept_losses: bool = False, as_json: bool = False) -> None:
    """Copy a whole store into another database, of the same kind or the other.

    Stop the collector first. An interrupted copy continues when the command is run again; at the
    end every row is compared, and only then can a collector start on the copy. Sessions of the
    admin page are not copied.
    """
    from loloha import checks

    checks.library("loloha.collector.settings", "store copy", "collector")
    from loloha.collector.store.copy import copy as copied

    with console.working("copying") as progress:
        rows = copied(store, copy, accept_losses=accept_losses, progress=progress)
    if as_json:
        console.show_json({"rows": rows})
        return
    campaigns, total = counted(rows["campaign"], "campaign"), counted(sum(rows.values()), "row")
    console.say(
        f"copied {campaigns} and {total} in all, each compared; "
        "start the collector on the copy, and put the old store away: one that is started on it "
        "counts apart"
    )
