"""The list of labels that a domain is given by."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loloha.campaign.scalar import clean, identity, is_missing, unboxed
from loloha.datasets.csv import read_csv
from loloha.datasets.dataset import USER_NAMES, DataError, foreign
from loloha.errors import ParameterError


@dataclass(frozen=True)
class Domain:
    """Labels in the order of their index."""

    labels: tuple[Hashable, ...]
    is_text: bool = False
    is_certain: bool = True


def read_domain(domain: Any) -> Domain:
    """Take a list of labels, or read one from a file."""
    is_text = False
    if isinstance(domain, (str, Path)):
        listed, is_text = _read(Path(domain))
    elif isinstance(domain, (set, frozenset, dict, bytes)) or not isinstance(domain, Iterable):
        raise ParameterError(
            "domain must be a list of labels in a fixed order or the path of a file with one, "
            f"got {type(domain).__name__}; pass a list"
        )
    else:
        with foreign("domain must list labels", "pass a plain list"):
            listed = [unboxed(label) for label in getattr(domain, "to_pylist", lambda: domain)()]
    listed = [clean(label) if isinstance(label, str) else label for label in listed]
    try:
        different = len(set(map(identity, listed)))
    except TypeError:
        raise ParameterError(
            "domain must hold hashable labels, got one that is not; use text, numbers or dates"
        ) from None
    if different < max(2, len(listed)) or any(map(is_missing, listed)):
        raise ParameterError(
            "domain must list at least two labels, all different, none empty, "
            f"got {len(listed)}, {different} of them different; list each label once"
        )
    _refuse_surrogates(listed)
    return Domain(tuple(listed), is_text)


def _refuse_surrogates(labels: list[Any]) -> None:
    """Refuse text that is not encodable, as from a terminal's invalid UTF-8."""
    for label in labels:
        if isinstance(label, str) and any("\ud800" <= char <= "\udfff" for char in label):
            raise ParameterError(
                "domain must hold text that can be written as UTF-8, got a label that cannot; "
                "convert it to UTF-8"
            )


def _label_column(names: list[str]) -> str:
    """The column of labels only: any other may be private data."""
    columns = [name for name in names if name.strip().lower() == "label"]
    if len(columns) != 1:
        raise DataError(
            "domain must have its labels in a column named label, got a table without one (the "
            "data?); name the column so, or write one label per line in a .txt file"
        )
    return columns[0]


def _read(path: Path) -> tuple[list[Any], bool]:
    """Read the labels of a file, and say whether they are text without a type."""
    suffix = path.suffix.lower()
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = json.loads(text) if suffix == ".json" else None
    except (OSError, ValueError, RecursionError):
        raise DataError(
            f"domain must be a readable UTF-8 file with labels, got {str(path)!r}; check the file"
        ) from None
    if suffix == ".json":
        listed = content.get("labels") if isinstance(content, dict) else content
        if not isinstance(listed, list):
            raise DataError(
                f'domain must hold a JSON list or {{"labels": [...]}}, got neither in '
                f"{path.name!r}; write the labels as a list"
            )
        return listed, False
    if suffix == ".csv":
        table = read_csv(lambda: path.open("rb"))
        lines = table[_label_column(table.column_names)].to_pylist()
    else:
        lines = text.splitlines()
        names = [name.strip().lower() for name in re.split("[,;\t]", lines[0] if lines else "")]
        if len(names) > 1 and USER_NAMES & {*names}:
            # A table under another suffix.
            _label_column([])
    return [line.strip() for line in lines if line is not None and line.strip()], True
