"""The command line: ``loloha``, or ``python -m loloha``."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Any

# Libraries of the extra "cli" that can be missing.
EXTRA = frozenset({"typer", "click", "rich", "pyarrow", "narwhals", "matplotlib", "pooch"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that is not UTF-8 shows an escape instead of raising after the work is done.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Pictures go to files only, so no display backend is needed.
    os.environ.pop("MPLBACKEND", None)
    try:
        from loloha.cli.application import app

        app(args=arguments, prog_name="loloha")
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRA:
            raise
        print(
            f"error: {library} must be installed for this command; pip install 'loloha[cli]'",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        # While libraries load; a running command says it itself.
        print("interrupted; nothing was left half-written", file=sys.stderr)
        return 130
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def __getattr__(name: str) -> Any:
    # Lazy, so that `main` can say what to install if typer is missing.
    if name == "app":
        from loloha.cli.application import app

        return app
    raise AttributeError(f"module 'loloha.cli' has no attribute {name!r}")
