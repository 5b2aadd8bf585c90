"""Tables of the documentation that are computed."""

from collections.abc import Iterable, Sequence

Section = tuple[str, Sequence[str], Iterable[Sequence[str]]]
"""Title, head and rows of a table."""


def titled(*sections: Section) -> str:
    """Tables in Markdown, each below its title."""
    return "\n".join(f"**{title}**\n\n{markdown(head, rows)}" for title, head, rows in sections)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, a line a row."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
