"""The opt-in log of reports: Parquet files, each report in exactly one of them.

Reports wait in the store until they are delivered, and are marked before they are. Whatever fails
between writing a file and forgetting its reports, the same file is written again, under the same
name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from time import time
from typing import TYPE_CHECKING, Any

from loloha import reportlog
from loloha.address import PARTIAL, Address, Location, written
from loloha.campaign import Campaign
from loloha.collector.store import disk
from loloha.collector.stored_campaign import StoredCampaign
from loloha.errors import StorageError, StoreError
from loloha.reportlog.folder import readable

if TYPE_CHECKING:
    from loloha.arrays import Array

PROBE = ".loloha"
"""Hidden object that a start writes as a test."""
SECONDS_TO_WRITE = 3600.0


class ReportArchive:
    """Packs reports for the store and writes them to the log that ``setting`` names."""

    def __init__(
        self, folder: Location, *, setting: str = "keep_reports", shared: bool = False
    ) -> None:
        self.folder = folder
        self._setting = setting
        self._shared = shared

    def must_be_ours(self) -> None:
        """Refuse a folder of other things: it would become the owner's alone."""
        if isinstance(self.folder, Address):
            # Addresses have no owner to change, and other objects are not touched.
            return
        readable(self.folder)
        with suppress(OSError):
            entries = [entry for entry in self.folder.iterdir() if entry.name[0] != "."]
            if entries and not any(entry.name.startswith("campaign=") for entry in entries):
                raise StoreError(
                    f"{self._setting} must be a new or empty folder, or a log of reports, got "
                    f"{str(self.folder)!r} with other things in it; nothing was touched: name "
                    "another"
                )

    def prepare(self) -> None:
        """Make the folder, see that files can be written there, delete what a killed one left."""
        self.must_be_ours()
        if isinstance(self.folder, Address):
            self._prepare_address(self.folder)
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Private to the owner, even if it existed.
            self.folder.chmod(0o700)
            # On a full disk as well: reports wait in the store until there is space.
            with TemporaryFile(dir=self.folder):
                pass
            # Earlier releases wrote them in the folders of rounds.
            for place in ("campaign=*", "campaign=*/round=*"):
                self._tidy(self.folder.glob(f"{place}/.*{PARTIAL}"))
        except OSError as error:
            raise StoreError(
                f"{self._setting} must be a folder to write to, got {str(self.folder)!r}: "
                f"{error.strerror}; name another"
            ) from None

    def _prepare_address(self, folder: Address) -> None:
        """As for a local folder; permissions are the service's."""
        try:
            _write_probe(folder)
            if folder.mount.kind.renames:
                names = (file for file in list(folder.walk()) if file.name.startswith("."))
                self._tidy(name for name in names if name.name.endswith(PARTIAL))
        except StorageError as error:
            raise StoreError(f"{self._setting} must be an address to write to: {error}") from None

    def _tidy(self, partials: Iterable[Location]) -> None:
        """Delete abandoned partial files."""
        for partial in partials:
            with suppress(FileNotFoundError):
                # Others may be writing; nobody takes so long for one file.
                if not self._shared or time() - written(partial) > SECONDS_TO_WRITE:
                    partial.unlink(missing_ok=True)

    def probe(self) -> None:
        """See that reports can be written."""
        if isinstance(self.folder, Address):
            # Files for a store grow here first.
            disk.probe(Path(gettempdir()))
            _write_probe(self.folder)
        else:
            disk.probe(self.folder)

    def pack(
        self, campaign: Campaign, round: int, reporters: Array, keys: Array | None, ys: Array
    ) -> bytes:
        """n reports of one round as bytes."""
        packed: bytes = _to_arrow(campaign, round, reporters, keys, ys).serialize().to_pybytes()
        return packed

    def append(
        self, campaign: Campaign, round: int, reporters: Array, keys: Array | None, ys: Array
    ) -> None:
        """Write one file with n reports of one round, as `deliver` does."""
        import pyarrow as pa

        batch = _to_arrow(campaign, round, reporters, keys, ys)
        self._write(campaign, round, pa.Table.from_batches([batch]))

    def deliver(self, stored: StoredCampaign, round: int, packed: Sequence[bytes]) -> None:
        """Write one file with the reports of ``packed``, durable when this returns."""
        # Sorted by random pseudonyms, which hides the order of arrival.
        import pyarrow as pa

        form = reportlog.schema(stored.campaign, round=round)
        batches = [pa.ipc.read_record_batch(pa.py_buffer(body), form) for body in packed]
        self._write(stored.campaign, round, pa.Table.from_batches(batches, form))

    def _write(self, campaign: Campaign, round: int, table: Any) -> None:
        ordered = table.sort_by("reporter").combine_chunks()
        with reportlog.ReportLog(self.folder, campaign).writer() as writer:
            for batch in ordered.to_batches():
                writer.write_batch(round, batch)


def _write_probe(folder: Address) -> None:
    # It stays: a writer need not have the right to delete.
    (folder / PROBE).write_bytes(b"loloha")


def _to_arrow(
    campaign: Campaign, round: int, reporters: Array, keys: Array | None, ys: Array
) -> Any:
    import numpy as np

    names = np.ascontiguousarray(reporters).view(np.uint8).reshape(-1, reportlog.REPORTER_BYTES)
    return reportlog.to_arrow(campaign, names, keys, ys, rounds=round)
