"""Output of the commands: data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import logging
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any

import typer

from loloha.errors import LolohaError, ParameterError

if TYPE_CHECKING:
    from rich.console import Console

OPTIONS = {
    "guard=True": "without --trust-log",
    "(source=...)": "by --source",
    "accept_clock=True": "--accept-clock",
    "accept_losses=True": "--accept-losses",
    "(AgreementFile.erase)": "by `loloha report --state FILE --withdraw`",
    "accept_weak_privacy=True": "--accept-weak-privacy",
    "skip=True": "--skip-bad",
}
"""Arguments that errors of the library name, and the options that commands have for them."""
LONG_ENOUGH_TO_TELL = 1.0
BETWEEN = 2
"""Characters between two columns of a table."""
FOLDED = 30
"""Characters from which on a column of text may be folded."""


def say(text: str) -> None:
    """Print a message of progress."""
    # A closed stderr must not lose the result.
    with suppress(OSError):
        typer.echo(text, err=True)


def warn(text: str) -> None:
    """Print a warning about the result."""
    _tell("warning", "yellow", text)


def fail(text: str) -> None:
    """Print why the command failed, with its options in place of Python's arguments."""
    for argument, option in OPTIONS.items():
        text = text.replace(argument, option)
    _tell("error", "red", text)


def ask(question: str) -> None:
    """Go on only if somebody at the terminal says yes."""
    if not typer.get_text_stream("stdin").isatty():
        raise ParameterError("--yes must be given without a terminal to ask at; add it")
    typer.confirm(question, abort=True, err=True)


def show(text: str | bytes = "", *, nl: bool = True) -> None:
    """Print a line of the result."""
    try:
        typer.echo(text, nl=nl)
    except BrokenPipeError:
        raise
    except OSError as error:
        # Redirect stdout: its buffer would fail again at exit.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise LolohaError(
            f"standard output must be writable, got {error.strerror}; files that the command "
            "wrote are complete"
        ) from None


@contextmanager
def drawing() -> Iterator[None]:
    """Draw a picture, whose failure loses no result."""
    try:
        yield
    except (LolohaError, OSError, ImportError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 (whatever a library of pictures raises)
        warn(f"the picture could not be drawn ({type(error).__name__}); all other files are there")


def show_text(text: str) -> None:
    """Print prose: wrapped in a terminal, one statement per line elsewhere."""
    import textwrap

    to = _console()
    for line in text.splitlines():
        wrapped = [line]
        if to.is_terminal:
            hanging = "  " if line.startswith("- ") else ""
            wrapped = textwrap.wrap(line, min(to.width, 100), subsequent_indent=hanging) or [""]
        show("\n".join(wrapped))


def show_json(content: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print the result as JSON; see `to_json`."""
    text = to_json(content)
    if not (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf"):
        # The same JSON in ASCII.
        text = json.dumps(json.loads(text), indent=2)
    show(text)


def to_json(content: Any) -> str:
    """JSON text with null for nan and infinity."""
    return json.dumps(_finite(content), indent=2, ensure_ascii=False, allow_nan=False)


def show_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "", keys: int = 1
) -> None:
    """Print rows below a header; numbers to the right, text to the left."""
    # Numbers are not broken: columns beyond the width (COLUMNS, the terminal, else 80) follow below
    # in another table of the same rows, which repeats the first ``keys`` columns.
    to = _console()
    made = [
        _PrintedColumn(name, [row[place] for row in rows]) for place, name in enumerate(columns)
    ]
    for part in _parts(made, keys, to.width):
        _show_part(to, part, title)
        title = ""


class _PrintedColumn:
    """One printed column, and its least width without breaking a number or word."""

    def __init__(self, name: str, cells: Sequence[Any]) -> None:
        self.name = name
        self.numeric = bool(cells) and all(map(_is_number, cells))
        self.cells = [shorten(cell) for cell in cells]
        longest = max(map(_width, self.cells), default=0)
        least = longest if self.numeric else min(longest, FOLDED)
        self.width = max([least, *map(_width, name.split())])


def _parts(
    columns: Sequence[_PrintedColumn], keys: int, width: int
) -> Iterator[Sequence[_PrintedColumn]]:
    """The columns in as few tables as the width allows, in their order."""
    leading = list(columns[:keys])
    part = list(leading)
    for column in columns[keys:]:
        wanted = sum(cell.width + BETWEEN for cell in (*part, column))
        if wanted > width and len(part) > keys:
            yield part
            part = list(leading)
        part.append(column)
    yield part


def _show_part(to: Console, columns: Sequence[_PrintedColumn], title: str) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title or None,
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    narrow = sum(max(column.width, _width(column.name)) + BETWEEN for column in columns) > to.width
    for column in columns:
        table.add_column(
            Text(_stacked(column.name, column.width) if narrow else column.name),
            justify="right" if column.numeric else "left",
            overflow="fold",
            no_wrap=column.numeric,
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        # As Text, so that labels are not parsed as markup.
        table.add_row(*map(Text, row))
    with to.capture() as printed:
        to.print(table)
    show("\n".join(line.rstrip() for line in printed.get().splitlines()))


def _width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def _stacked(name: str, width: int) -> str:
    """A name on as many lines as its column is wide enough for."""
    import textwrap

    return "\n".join(textwrap.wrap(name, max(width, 1), break_long_words=False)) or name


def shorten(cell: Any) -> str:
    """A cell of a table: numbers with five digits, text without control characters."""
    if cell is None:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float) and math.isinf(cell):
        return "no bound"
    if isinstance(cell, float):
        return f"{cell:.5g}"
    return visible(str(cell))


def visible(text: str) -> str:
    """Text from a user's file, with control characters spelt out."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


@contextmanager
def working(task: str) -> Iterator[Callable[[float], None]]:
    """Show progress on stderr."""
    # A bar in a terminal; elsewhere a line for work that took a second or more.
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    start = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    to = _console(stderr=True)
    shown = Progress(*columns, console=to, transient=True, disable=not to.is_terminal)
    with _told_of_compiling(), shown as progress:
        bar = progress.add_task(task, total=None)
        yield lambda share: progress.update(bar, total=1.0, completed=share)
    seconds = time.monotonic() - start
    if seconds >= LONG_ENOUGH_TO_TELL:
        say(f"{task}: {seconds:.1f} s")


@contextmanager
def _told_of_compiling() -> Iterator[None]:
    """Warn that the first run compiles and takes far longer."""
    log, handler = logging.getLogger("loloha.counting.compiled"), logging.StreamHandler()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


@contextmanager
def counting(task: str, total: int) -> Iterator[Callable[[int], None]]:
    """Progress by pieces of work, from several threads."""
    done, lock = 0, Lock()
    with working(task) as progress:

        def advance(more: int) -> None:
            nonlocal done
            with lock:
                done += more
                progress(done / total)

        yield advance


@contextmanager
def interrupted_once(text: str) -> Iterator[None]:
    """Say at once, at the first Ctrl-C, what is still done; others do not cut that short."""

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say(text)
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    # A shell may have this process ignore it.
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def cores() -> int:
    """Processes to start: one where the extra that starts them is not installed."""
    if not find_spec("joblib"):
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _is_number(cell: Any) -> bool:
    return cell is None or isinstance(cell, (int, float)) or str(cell).endswith(" %")


def _tell(kind: str, colour: str, text: str) -> None:
    from rich.text import Text

    message = Text.assemble((f"{kind}: ", f"bold {colour}"), visible(text))
    with suppress(OSError):
        _console(stderr=True).print(message, soft_wrap=True)


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def _finite(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {str(key): _finite(item) for key, item in content.items()}
    if isinstance(content, (list, tuple)):
        return [_finite(item) for item in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    if content is None or isinstance(content, (bool, int, float, str)):
        return content
    return str(content)
