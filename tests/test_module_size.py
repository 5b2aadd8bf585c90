"""Modules that fit in the head: few lines each."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = "src/**/*.py", "src/**/*.js", "clients/js/src/*.js"
MOST = 350
"""Lines of a module."""


def test_modules_are_short() -> None:
    sources = [path for kind in KINDS for path in ROOT.glob(kind)]
    lines = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in sources
        if "vendor" not in path.parts
    }
    assert len(lines) > 300
    assert {name: n for name, n in lines.items() if n > MOST} == {}
