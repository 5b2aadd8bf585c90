"""Devices that are killed, with everything around them failing: a short run of `make torture`."""

import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")

from torture_device import torture


@pytest.mark.long
def test_devices_are_killed_and_lose_nothing() -> None:
    assert "one answer a round" in torture(kills=12, seed=7)
