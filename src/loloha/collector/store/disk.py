"""A look whether a disk takes what an upload might write."""

import os
from pathlib import Path
from tempfile import TemporaryFile

PROBE_BYTES = 1 << 20


def probe(folder: Path) -> None:
    """Write a file of so many bytes to a folder, and delete it; OSError where that fails."""
    # An empty file, or one that is not synced, fits on a full disk.
    with TemporaryFile(dir=folder, buffering=0) as file:
        left = memoryview(bytes(PROBE_BYTES))
        while left:
            left = left[file.write(left) :]
        os.fsync(file.fileno())
