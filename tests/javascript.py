"""Node, for tests of what runs on devices without Python."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CLIENT = Path(__file__).resolve().parents[1] / "clients" / "js"
PAGE = CLIENT.parents[1] / "docs" / "javascript.md"
OLDEST = 20


def node() -> str:
    """The interpreter; without a new enough one the test is skipped."""
    path = shutil.which("node")
    if path is None:
        pytest.skip("no Node: the JavaScript client is not tested")
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.match(r"v(\d+)", said)
    if found is None or int(found[1]) < OLDEST:
        pytest.skip(f"Node must be {OLDEST} or newer, got {said.strip()}")
    return path


def examples(address: str) -> dict[str, str]:
    """The code of docs/javascript.md by its language, with the address of a campaign."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return {
        language: lines.replace("https://HOST/v1/campaigns/FINGERPRINT", address)
        for language, lines in blocks
    }
