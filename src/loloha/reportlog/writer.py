"""Adding files to a report log, each whole or not at all."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from loloha.address import PARTIAL, Address, Location
from loloha.campaign import Campaign
from loloha.client.file import sync_folder
from loloha.encodings import Encoding
from loloha.protocols import Protocol
from loloha.reportlog import column
from loloha.reportlog.arrow import DIGEST_DIGITS, rules, to_arrow

ROWS_PER_GROUP = 1 << 20
# A dictionary pays while it is much shorter than a row group, and for integers only.
LARGEST_DICTIONARY = 1 << 15


class Writer:
    """Adds one file a round to a log; nothing is visible before `close`, or if an error ends it.

    Use as a context manager. Calls hand over any number of rows; each makes row groups of its own,
    so hand over many at once.

    Parameters
    ----------
    campaign : Campaign or Protocol
    round_folder : callable
        Where the reports of a round lie.
    """

    def __init__(
        self, campaign: Campaign | Protocol, round_folder: Callable[[int], Location]
    ) -> None:
        self.campaign = campaign
        self._round_folder = round_folder
        self._open: dict[int, _OpenFile] = {}

    def write(self, round: int, reporters: Any, keys: Any, ys: Any) -> None:
        """Append the reports of one round; parameters and errors as `to_arrow`."""
        self.write_batch(round, to_arrow(self.campaign, reporters, keys, ys, rounds=round))

    def write_batch(self, round: int, batch: Any) -> None:
        """Append a record batch of one round, as `to_arrow` makes it."""
        if round not in self._open:
            folder, encoding = self._round_folder(round), rules(self.campaign).encoding
            self._open[round] = _OpenFile(folder, batch.schema, encoding)
        self._open[round].append(batch)

    def close(self) -> list[Location]:
        """Finish all files and give them their names.

        Returns
        -------
        list of paths or addresses
            Writing the same reports twice gives the same name: it replaces, it does not add. The
            files and their names are durable.
        """
        try:
            # None gets its name before all are whole and have their folders.
            for file in self._open.values():
                file.finish()
            for file in self._open.values():
                file.place()
            return [file.publish() for file in self._open.values()]
        finally:
            self.discard()

    def discard(self) -> None:
        """Drop everything not yet closed."""
        for file in self._open.values():
            file.discard()
        self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


class _OpenFile:
    """A Parquet file under a hidden name until its digest is known.

    A store has no hidden names and renames nothing: its files grow here, and are sent whole.
    """

    def __init__(self, folder: Location, form: Any, encoding: Encoding) -> None:
        import pyarrow.parquet as pq

        self.folder = folder
        self.made: Path | None = None
        self.spool: Any = None
        if isinstance(folder, Address):
            # Nobody but the owner, whatever the machine's temporary folder allows.
            self.spool = tempfile.TemporaryDirectory(prefix="loloha-")
            near = Path(self.spool.name)
        else:
            # The folder of a round says that there is one: it is made when its file is whole.
            _make_durably(near := folder.parent)
        self.path = near / f".{secrets.token_hex(8)}{PARTIAL}"
        self.file = _HashingFile(self.path)
        try:
            # Pseudonyms and bits do not compress, and symbols need one dictionary bit or a few.
            self.writer = pq.ParquetWriter(
                self.file,
                form,
                compression="none",
                use_dictionary=_dictionaries(encoding),
                write_statistics=["key", "y"] if "key" in form.names else False,
            )
        except BaseException:
            self.delete()
            raise

    def append(self, batch: Any) -> None:
        self.writer.write_batch(batch, row_group_size=ROWS_PER_GROUP)

    def finish(self) -> None:
        """Write what is left, durably."""
        self.writer.close()
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()

    def place(self) -> None:
        """Make the folder that the file goes to."""
        if isinstance(self.folder, Path):
            self.made = None if self.folder.exists() else self.folder
            _make_durably(self.folder)

    def publish(self) -> Location:
        """Give the file its name, durably."""
        target = self.folder / f"{self.file.digest()}.parquet"
        if isinstance(target, Address):
            target.put(self.path)
        else:
            self.path.replace(target)
            sync_folder(str(target.parent))
        return target

    def discard(self) -> None:
        """Leave nothing of it, unless it has its name; a full disk must not keep what filled it."""
        with suppress(OSError):
            self.writer.close()
        self.delete()
        if self.made is not None:
            with suppress(OSError):
                # The folder of a file that has its name is not empty, and stays.
                self.made.rmdir()

    def delete(self) -> None:
        """Close the file and delete it."""
        with suppress(OSError):
            self.file.close()
        self.path.unlink(missing_ok=True)
        if self.spool is not None:
            self.spool.cleanup()


def _make_durably(folder: Path) -> None:
    """Make a folder and those above it; their names outlive a loss of power."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for place in missing:
        sync_folder(str(place.parent))


class _HashingFile(io.BufferedWriter):
    """A new file that digests what is written to it."""

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path, "xb"))
        self._digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        self._digest.update(data)
        return super().write(data)

    def digest(self) -> str:
        return self._digest.hexdigest()[:DIGEST_DIGITS]


def _dictionaries(encoding: Encoding) -> list[str]:
    """Columns of numbers from so short a range that a dictionary of them pays."""
    bits = {"key": encoding.key_bits, "y": encoding.report_bits - encoding.key_bits}
    return [
        name
        for name in column.types(encoding)
        if not encoding.packed and 1 << bits[name] <= LARGEST_DICTIONARY
    ]
