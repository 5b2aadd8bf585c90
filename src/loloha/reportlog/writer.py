"""Adding files to a report log, each whole or not at all."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Self

from loloha.reportlog import column
from loloha.reportlog.arrow import DIGEST_DIGITS, rules, to_arrow
from loloha.rules.campaign import Campaign
from loloha.rules.encodings import Encoding
from loloha.rules.protocols import Protocol

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

    def __init__(self, campaign: Campaign | Protocol, round_folder: Callable[[int], Path]) -> None:
        self.campaign = campaign
        self._round_folder = round_folder
        self._open: dict[int, _OpenFile] = {}

    def write(self, round: int, reporters: Any, keys: Any, ys: Any) -> None:
        """Append the reports of one round; parameters and errors as `to_arrow`."""
        batch = to_arrow(self.campaign, reporters, keys, ys, rounds=round)
        if round not in self._open:
            folder, encoding = self._round_folder(round), rules(self.campaign).encoding
            self._open[round] = _OpenFile(folder, batch.schema, encoding)
        self._open[round].append(batch)

    def close(self) -> list[Path]:
        """Finish all files and give them their names.

        Returns
        -------
        list of Path
            Writing the same reports twice gives the same name: it replaces, it does not add.
        """
        paths = [file.finish() for file in self._open.values()]
        self._open.clear()
        return paths

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
    """A Parquet file under a hidden name until its digest is known."""

    def __init__(self, folder: Path, form: Any, encoding: Encoding) -> None:
        import pyarrow.parquet as pq

        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f".{secrets.token_hex(8)}.partial"
        self.file = _HashingFile(self.path.open("xb"))
        # Pseudonyms and bits do not compress, and symbols need one dictionary bit or a few.
        self.writer = pq.ParquetWriter(
            self.file,
            form,
            compression="none",
            use_dictionary=_dictionaries(encoding),
            write_statistics=["key", "y"] if "key" in form.names else False,
        )

    def append(self, batch: Any) -> None:
        self.writer.write_batch(batch, row_group_size=ROWS_PER_GROUP)

    def finish(self) -> Path:
        self.writer.close()
        self.file.flush()
        os.fsync(self.file.raw.fileno())
        self.file.close()
        target = self.path.with_name(self.file.digest() + ".parquet")
        self.path.replace(target)
        return target

    def discard(self) -> None:
        self.writer.close()
        self.file.close()
        self.path.unlink(missing_ok=True)


class _HashingFile:
    """A file that digests what is written to it; what pyarrow needs of a file, and no more."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.raw = raw
        self._digest = hashlib.sha256()

    @property
    def closed(self) -> bool:
        return self.raw.closed

    def write(self, data: Any) -> int:
        self._digest.update(data)
        return self.raw.write(data)

    def tell(self) -> int:
        return self.raw.tell()

    def flush(self) -> None:
        self.raw.flush()

    def close(self) -> None:
        self.raw.close()

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
