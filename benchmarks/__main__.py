"""Run the benchmarks: all sections, or those that are named."""

import argparse
import importlib
import sys
from collections.abc import Iterator
from itertools import chain

from benchmarks import against, table
from benchmarks.measure import Row

SECTIONS = {
    "server": "server",
    "population": "populations",
    "engines": "engines",
    "collector": "collector",
    "collectors": "collectors",
    "dashboard": "dashboard",
    "paper": "paper",
}
"""Name -> module of this package, loaded when its turn comes; each has a ``rows`` of its own."""


def rows(section: str) -> Iterator[Row]:
    measured: Iterator[Row] = importlib.import_module(f"benchmarks.{SECTIONS[section]}").rows()
    return measured


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("section", nargs="*", help=f"any of {', '.join(SECTIONS)}; by default all")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--against", metavar="REV", help="the hot paths beside another commit's")
    arguments = parser.parse_args()
    if arguments.against:
        for line in against.lines(arguments.against):
            print(line, flush=True)
        return 0
    unknown = set(arguments.section) - set(SECTIONS)
    if unknown:
        parser.error(f"section must be one of {sorted(SECTIONS)}, got {sorted(unknown)}")
    measured = chain.from_iterable(rows(name) for name in arguments.section or SECTIONS)
    if arguments.json:
        print(table.as_json(measured))
        return 0
    print("; ".join(f"{name} {value}" for name, value in table.machine().items()))
    for line in table.text(measured):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
