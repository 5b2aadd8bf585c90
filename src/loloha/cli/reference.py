"""The reference page of the command line, made by ``python -m loloha.cli.reference``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

HEAD = """# Command line

<!-- Made by `python -m loloha.cli.reference > docs/cli.md`; a test compares. -->

Data goes to stdout, progress and warnings to stderr. Commands that print a table print JSON with
`--json`, under keys that stay. Colours are left out when `NO_COLOR` is set or the output is no
terminal.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed: one line on stderr says why |
| 2 | the command line cannot be used |
| 130 | interrupted; no file was left half-written |
"""


def page() -> str:
    """The page as Markdown."""
    from typer.main import get_command

    from loloha.cli.application import app

    return HEAD + "".join(_sections(get_command(app), "loloha"))


def _sections(command: Any, path: str) -> Iterator[str]:
    """A section for each command, groups recursively."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield _section(command, path)
        return
    for name, leaf in inner.items():
        yield from _sections(leaf, f"{path} {name}")


def _section(command: Any, path: str) -> str:
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    arguments = [param for param in shown if param.param_type_name == "argument"]
    options = [param for param in shown if param.param_type_name == "option"]
    usage = " ".join([path, *map(_in_usage, arguments), *(["[OPTIONS]"] if options else [])])
    rows = "".join(map(_row, arguments + options))
    return (
        f"\n## `{path}`\n\n```text\n{usage}\n```\n\n{command.help}\n\n"
        f"| option | default | meaning |\n|---|---|---|\n{rows}"
    )


def _in_usage(argument: Any) -> str:
    name = str(argument.metavar or argument.name.upper()).strip("[]")
    return name if argument.required else f"[{name}]"


def _row(param: Any) -> str:
    is_option = param.param_type_name == "option"
    is_flag = bool(getattr(param, "is_flag", False))
    names = ", ".join(f"`{name}`" for name in param.opts) if is_option else f"`{_in_usage(param)}`"
    if is_option and not is_flag and param.metavar:
        names += f" *{param.metavar}*".replace("|", "\\|")
    if param.required:
        default = "required"
    else:
        default = "" if is_flag or param.default is None else f"`{param.default}`"
    meaning = (getattr(param, "help", None) or "").replace("|", "\\|")
    return f"| {names} | {default} | {meaning} |\n"


if __name__ == "__main__":
    print(page(), end="")
