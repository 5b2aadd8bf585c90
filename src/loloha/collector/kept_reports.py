"""The opt-in log of reports: Parquet files, each report in exactly one of them.

Reports wait in the store until they are delivered, and are marked before they are. Whatever fails
between writing a file and forgetting its reports, the same file is written again, under the same
name.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from loloha import reportlog
from loloha.address import PARTIAL, Address, Location
from loloha.campaign import Campaign
from loloha.collector.stored_campaign import StoredCampaign
from loloha.errors import StorageError, StoreError
from loloha.reportlog.folder import readable

if TYPE_CHECKING:
    from loloha.arrays import Array

PROBE = ".loloha"
"""Hidden object that a start writes, to see that reports can be."""


class KeptReports:
    """Packs reports for the store and writes them to a log."""

    def __init__(self, folder: Location) -> None:
        self.folder = folder

    def must_be_ours(self) -> None:
        """Refuse a folder of other things: it would become the owner's alone."""
        if isinstance(self.folder, Address):
            # Nothing becomes anybody's there, and nobody else's objects are touched.
            return
        readable(self.folder)
        with suppress(OSError):
            entries = [one for one in self.folder.iterdir() if one.name[0] != "."]
            if entries and not any(one.name.startswith("campaign=") for one in entries):
                raise StoreError(
                    f"keep_reports must be a new or empty folder, or a log of reports, got "
                    f"{str(self.folder)!r} with other things in it; nothing was touched: name "
                    "another"
                )

    def prepare(self) -> None:
        """Make the folder, see that files can be written there, delete what a killed one left."""
        self.must_be_ours()
        if isinstance(self.folder, Address):
            _prepare(self.folder)
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Nobody but the owner, also where it was there before.
            self.folder.chmod(0o700)
            with TemporaryFile(dir=self.folder):
                pass
            for partial in self.folder.glob(f"campaign=*/round=*/.*{PARTIAL}"):
                partial.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(
                f"keep_reports must be a folder to write to, got {str(self.folder)!r}: "
                f"{error.strerror}; name another"
            ) from None

    def pack(
        self, campaign: Campaign, round: int, reporters: Array, keys: Array | None, ys: Array
    ) -> bytes:
        """n reports of one round as bytes."""
        import numpy as np

        names = np.ascontiguousarray(reporters).view(np.uint8).reshape(-1, reportlog.REPORTER_BYTES)
        batch = reportlog.to_arrow(campaign, names, keys, ys, rounds=round)
        packed: bytes = batch.serialize().to_pybytes()
        return packed

    def deliver(self, stored: StoredCampaign, round: int, packed: Sequence[bytes]) -> None:
        """Write one file with the reports of ``packed``, durable when this returns.

        They are in the order of their pseudonyms, which are random: not in that of their arrival.
        """
        import pyarrow as pa

        form = reportlog.schema(stored.campaign, round=round)
        batches = [pa.ipc.read_record_batch(pa.py_buffer(one), form) for one in packed]
        table = pa.Table.from_batches(batches, form).sort_by("reporter").combine_chunks()
        with reportlog.ReportLog(self.folder, stored.campaign).writer() as writer:
            writer.write(round, *reportlog.from_arrow(stored.campaign, table))


def _prepare(folder: Address) -> None:
    """As for a folder of this machine; who may write where is the service's to say."""
    try:
        # It stays: who may write a log need not have the right to delete from it.
        (folder / PROBE).write_bytes(b"loloha")
        if folder.mount.kind.renames:
            for partial in list(folder.walk()):
                if partial.name.startswith(".") and partial.name.endswith(PARTIAL):
                    partial.unlink(missing_ok=True)
    except StorageError as error:
        raise StoreError(f"keep_reports must be an address to write to: {error}") from None
