"""Plant known bugs one by one in a copy of the sources, and see the tests named for each fail.

``python tests/mutants.py [words]`` runs all, or those whose description holds the words.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import NamedTuple

from planted import PLANTED, Mutant

ROOT = Path(__file__).resolve().parents[1]
WORKERS = max(1, min(2, os.cpu_count() or 1))
PASSED, FAILED = 0, 1
SECONDS = 300


class Outcome(NamedTuple):
    """How the tests ended."""

    code: int
    seconds: float
    output: str


class Copy:
    """A private copy of all that tests read, in which one bug at a time may live."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in ("src", "tests", "deploy", "clients/js/src"):
            shutil.copytree(
                ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__")
            )
        shutil.copy(ROOT / "pyproject.toml", folder)
        self.clock = 1_000_000_000
        self.environment = os.environ | {
            "PYTHONPATH": str(folder / "src"),
            # Plugins of other tests take longer to load than these take to run.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "NUMBA_CACHE_DIR": str(folder / "numba"),
        }

    @contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        """The copy with the bug in it."""
        path, unsound = mutant.planted((self.folder / "src").resolve())
        sound = path.read_text()
        self.write(path, unsound)
        try:
            yield
        finally:
            self.write(path, sound)

    def write(self, path: Path, text: str) -> None:
        """Each text gets a time of its own, lest what was compiled from another be run."""
        path.write_text(text)
        self.clock += 10
        os.utime(path, (self.clock, self.clock))

    def test(self, selection: str) -> Outcome:
        """Run some tests against this copy."""
        arguments = [
            f"tests/{word}" if word.endswith(".py") else word for word in shlex.split(selection)
        ]
        began = time.monotonic()
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        return Outcome(run.returncode, time.monotonic() - began, run.stdout + run.stderr)

    def holds_what_is_imported(self) -> bool:
        """Whether the tests see this copy and not an installed library."""
        probe = [sys.executable, "-c", "import loloha; print(loloha.__file__)"]
        run = subprocess.run(
            probe, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=True
        )
        return Path(run.stdout.strip()).is_relative_to(self.folder)


def main(words: list[str]) -> int:
    """Exit code: 0 if every bug is caught."""
    chosen = [mutant for mutant in PLANTED if all(word in mutant.bug for word in words)]
    began = time.monotonic()
    with TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(WORKERS):
            copy = Copy(Path(folder).resolve() / str(number))
            if not copy.holds_what_is_imported():
                raise SystemExit("the tests must import the copy; unset what hides it")
            copies.put(copy)

        def borrowed(mutant: Mutant | None, selection: str) -> Outcome:
            copy = copies.get()
            try:
                if mutant is None:
                    return copy.test(selection)
                with copy.planted(mutant):
                    return copy.test(selection)
            finally:
                copies.put(copy)

        selections = sorted({mutant.caught_by for mutant in chosen})
        unsound = set()
        for selection, outcome in zip(
            selections, pool.map(lambda one: borrowed(None, one), selections), strict=True
        ):
            if outcome.code != PASSED:
                unsound.add(selection)
                print(outcome.output)
                print(f"without any bug these tests must pass: {selection}", flush=True)
        chosen = [mutant for mutant in chosen if mutant.caught_by not in unsound]
        outcomes = pool.map(lambda mutant: borrowed(mutant, mutant.caught_by), chosen)
        survivors = [
            mutant for mutant, outcome in zip(chosen, outcomes, strict=True)
            if not report(mutant, outcome)
        ]  # fmt: skip
    caught = len(chosen) - len(survivors)
    print(f"{caught} of {len(chosen)} bugs caught in {time.monotonic() - began:.0f} s")
    return 1 if unsound or survivors or not chosen else 0


def report(mutant: Mutant, outcome: Outcome) -> bool:
    """Print a line; whether the bug was caught by a failing test, and not by a crash."""
    caught = outcome.code == FAILED
    verdict = "caught" if caught else "SURVIVED" if outcome.code == PASSED else "BROKEN"
    print(f"{verdict:8} {outcome.seconds:5.1f} s  {mutant.file:24} {mutant.bug}", flush=True)
    if not caught:
        print(outcome.output)
    return caught


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
