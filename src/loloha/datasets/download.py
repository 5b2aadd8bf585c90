"""Explicit downloads of the public data sets into a cache, verified by hash."""

from __future__ import annotations

import hashlib
import logging
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loloha.checks import choice, real
from loloha.datasets.dataset import DataError, extra
from loloha.datasets.uci import SHA256 as ADULT_SHA256
from loloha.datasets.us_state import find_state
from loloha.errors import ParameterError

URLS = {
    "adult": "https://archive.ics.uci.edu/ml/machine-learning-databases/adult",
    "acs": "https://www2.census.gov/programs-surveys/acs/data/pums/2018/1-Year",
}
PURPOSE = "download data sets"
SLOWEST = 3600.0


def fetch(
    name: str,
    state: str | None = None,
    cache: str | Path | None = None,
    *,
    url: str | None = None,
    timeout: float = 60.0,
    progress: Any = False,
) -> Path:
    """Download a public data set once, and verify what is there already.

    Parameters
    ----------
    name : {"adult", "acs"}
        UCI Adult (6 MB), or the ACS PUMS person file of a state (2 to 60 MB), 1-year, 2018.
    state : str, optional
        Postal code or full name; for "acs" only, and needed there.
    cache : str or Path, optional
        Folder for downloads; else the environment variable LOLOHA_CACHE, else the user's cache.
    url : str, optional
        Another folder that the files are downloaded from, for mirrors.
    timeout : float
        Seconds in (0, 3600] to wait for a connection, and for each next piece.
    progress : bool or progress bar
        As for ``progressbar`` of pooch.

    Returns
    -------
    Path
        What `adult` or `acs_weights` takes as ``path``: a folder or a zip file.

    Raises
    ------
    DataError
        If the download fails or the file is not the expected one; nothing is left behind, and a
        good file that was there before stays.
    ExtraError
        If pooch is not installed.
    ParameterError
        If an argument is unusable.

    Notes
    -----
    The hashes of Adult are known. The Census Bureau publishes none: the hash of the
    first download is recorded beside the file, ``csv_pmt.zip.sha256``, and every later use is
    verified by it; delete both files to start anew.
    """
    choice("name", name, URLS)
    timeout = real("timeout", timeout, 1e-3, SLOWEST, "60 seconds suit most connections")
    source = (url or URLS[name]).rstrip("/")
    folder = cache_folder(cache) / name
    if name == "adult":
        if state is not None:
            raise ParameterError(f"state must be given for 'acs' only, got {state!r}; leave it out")
        for file, sha256 in ADULT_SHA256.items():
            _download(f"{source}/{file}", folder / file, sha256, timeout, progress)
        return folder
    file = f"csv_p{find_state(state).code.lower()}.zip"
    _must_be_zip(folder / file)
    _download(f"{source}/{file}", folder / file, _recorded(folder / file), timeout, progress)
    _record(folder / file)
    return folder / file


def cache_folder(cache: str | Path | None = None) -> Path:
    """Return the folder for downloads.

    Parameters
    ----------
    cache : str or Path, optional
        This folder; else the environment variable LOLOHA_CACHE, else the user's cache.
    """
    chosen = cache or os.environ.get("LOLOHA_CACHE")
    return Path(chosen) if chosen else Path(extra("pooch", PURPOSE).os_cache("loloha"))


def find_cached(state: str) -> Path:
    """Return the file of the census that `fetch` downloaded for a state before, verified."""
    file = cache_folder() / "acs" / f"csv_p{state.lower()}.zip"
    if not file.is_file():
        raise DataError(
            "path must be given until the data are fetched, got None; run `loloha data fetch acs "
            f"{state}`, or use loloha.datasets.acs_standin()"
        )
    if _recorded(file) not in (None, _sha256(file)):
        raise DataError(
            f"{file} must be as it was fetched, its hash differs; delete it and run "
            f"`loloha data fetch acs {state}`"
        )
    return file


def _download(url: str, file: Path, sha256: str | None, timeout: float, progress: Any) -> None:
    """Download a file unless it is there and has its hash."""
    pooch = extra("pooch", PURPOSE)
    try:
        with _quiet(pooch.get_logger()):
            pooch.retrieve(
                url,
                known_hash=sha256,
                path=file.parent,
                fname=file.name,
                downloader=pooch.HTTPDownloader(progressbar=progress, timeout=timeout),
            )
    except OSError as error:
        # What pooch raises for a bad connection or address is one of these too.
        raise DataError(
            f"{url} must be reachable, got {type(error).__name__}; check the connection, or "
            "download the file by hand and pass its path"
        ) from error
    except ValueError as error:
        raise DataError(
            f"{file.name} must have the SHA-256 {sha256}, the file at {url} has another; it was "
            "discarded: try again, or download the file by hand and pass its path"
        ) from error


def _must_be_zip(file: Path) -> None:
    """Refuse a file that is there and that no download has left: it may be anything."""
    if file.exists() and _recorded(file) is None and not zipfile.is_zipfile(file):
        raise DataError(
            f"{file} must be a zip file, the file there is not; it was left alone: move "
            "it away and try again"
        )


def _record(file: Path) -> None:
    """Keep the hash of a first download beside it, once it is known to be a zip file."""
    sidecar = _sidecar(file)
    if sidecar.exists():
        return
    if not zipfile.is_zipfile(file):
        file.unlink()
        raise DataError(
            f"{file.name} must be a zip file, the server sent something else; it was discarded: "
            "try again later"
        )
    draft = sidecar.with_name(sidecar.name + ".part")
    draft.write_text(f"{_sha256(file)}  {file.name}\n", encoding="ascii")
    draft.replace(sidecar)


def _recorded(file: Path) -> str | None:
    """Return the hash recorded at the first download, if there was one."""
    sidecar = _sidecar(file)
    return sidecar.read_text(encoding="ascii").split()[0] if sidecar.exists() else None


def _sidecar(file: Path) -> Path:
    return file.with_name(file.name + ".sha256")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep pooch's advice to its own callers out of ours."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
