"""The program: its commands, and its exit codes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from loloha import __version__
from loloha.cli import (
    admin,
    audit,
    campaign_state,
    compare,
    conform,
    console,
    data,
    demo,
    estimate,
    explain,
    export,
    load_test,
    log,
    plan,
    protocols,
    report,
    run,
    series,
    serve,
    store,
    tally,
)
from loloha.cli.command import Commands
from loloha.cli.option import OLD_COMMANDS
from loloha.cli.results_folder import FULL
from loloha.errors import LolohaError, ParameterError

COMMANDS: tuple[Any, ...] = (
    run.run,
    compare.compare,
    plan.plan,
    explain.explain,
    audit.audit,
    demo.demo,
    protocols.protocols,
    data.group,
    serve.serve,
    admin.group,
    store.group,
    campaign_state.group,
    report.report,
    load_test.load_test,
    export.export,
    tally.tally,
    estimate.estimate,
    series.series,
    log.group,
    conform.conform,
)
"""Commands by the names of their functions, and groups of commands."""
GROUP = "loloha.commands"
"""The entry points by which a package adds commands: name = module:function."""

FAILED, MISUSED, INTERRUPTED = 1, 2, 130


class CommandLine(TyperGroup):
    """Ends every command with one line and an exit code, never with a traceback."""

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        try:
            return super().make_context(*arguments, **settings)
        except LolohaError as error:
            # Of the version, which is printed while the line is read.
            console.fail(str(error))
            raise SystemExit(FAILED) from None

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        new = OLD_COMMANDS.get(cmd_name, cmd_name)
        if new != cmd_name:
            console.warn(f"{cmd_name} is {new} since 0.3, and will go in 0.4")
        return super().get_command(ctx, new)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ParameterError as error:
            console.fail(str(error))
            raise typer.Exit(MISUSED) from None
        except LolohaError as error:
            asked = getattr(error, "address", "")
            console.fail(f"{error} (asked: {asked})" if asked else str(error))
            raise typer.Exit(FAILED) from None
        except BrokenPipeError:
            # The reader closed the pipe: typer ends this quietly.
            raise
        except MemoryError:
            console.fail(
                "memory must suffice for this command, it does not; give fewer --users or "
                "--rounds, or a smaller table, or take a larger machine"
            )
            raise typer.Exit(FAILED) from None
        except OSError as error:
            named = error.filename or ("output" if error.errno else "")
            where = f"{named}: " if named else ""
            advice = "; free some, or write elsewhere" if error.errno in FULL else ""
            console.fail(f"{where}{error.strerror or type(error).__name__}{advice}")
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt as error:
            console.say(f"interrupted; {str(error) or 'nothing was left half-written'}")
            raise typer.Exit(INTERRUPTED) from None


app = Commands(
    name="loloha",
    cls=CommandLine,
    no_args_is_help=True,
    help="Private monitoring of how often each value of an evolving attribute occurs in a "
    "population, under local differential privacy.",
    epilog="Data goes to stdout, progress to stderr. Exit codes: 0 done, 1 failed, 2 the command "
    "line cannot be used, 130 interrupted.",
    rich_markup_mode="markdown",
    # A traceback with the values of variables would show what users hold.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        console.show(f"loloha {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def _installed() -> Iterator[Any]:
    """Commands that installed packages add, each a function; what cannot be loaded is left out."""
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            yield point.load()
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything
            source = point.dist.name if point.dist else "an installed package"
            warnings.warn(
                f"command {point.name!r} of {source} is left out: it cannot be loaded "
                f"({type(error).__name__}: {error})",
                RuntimeWarning,
                stacklevel=2,
            )


for command in (*COMMANDS, *_installed()):
    if isinstance(command, Commands):
        app.add_typer(command)
    else:
        app.command()(command)
