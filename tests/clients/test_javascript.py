"""The JavaScript client passes its own tests."""

import subprocess

import pytest

from javascript import CLIENT, node

FILES = sorted((CLIENT / "test").glob("*.test.js"))


def test_there_are_tests() -> None:
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_its_own_tests_pass(file: object) -> None:
    ran = subprocess.run(
        [node(), "--test-reporter=dot", str(file)],
        cwd=CLIENT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
