"""Addresses of files: a path of this machine, or one on a filesystem of pyarrow or fsspec."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from loloha import checks
from loloha.errors import LolohaError, ParameterError
from loloha.mount import KINDS, Mount

AT_ONCE = 1 << 23
"""Bytes of a remote file that one request asks for."""
PART = 1 << 26
"""Bytes of a large file that are on the way at a time."""
PARTIAL = ".partial"
"""How hidden names of unfinished files end."""


class _Tree(NamedTuple):
    """All that is below a folder."""

    kinds: dict[PurePosixPath, str]
    below: dict[PurePosixPath, dict[PurePosixPath, None]]


@dataclass(frozen=True)
class Address:
    """A file or folder on another filesystem, with the methods of `pathlib.Path`."""

    mount: Mount
    path: PurePosixPath
    _tree: _Tree | None = field(default=None, compare=False, repr=False)
    """All that is below, where it was listed at once."""

    def __str__(self) -> str:
        return f"{self.mount.scheme}://{self.mount.host}/{self._key}"

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"

    def __lt__(self, other: Address) -> bool:
        return str(self) < str(other)

    def __truediv__(self, name: str) -> Address:
        return replace(self, path=self.path / name)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.name

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return self.path.stem

    @property
    def suffix(self) -> str:
        """The suffix, with its dot."""
        return self.path.suffix

    @property
    def parent(self) -> Address:
        """The folder that it is in."""
        return replace(self, path=self.path.parent)

    @property
    def parents(self) -> list[Address]:
        """All parent folders, innermost first."""
        return [replace(self, path=path) for path in self.path.parents]

    @property
    def for_spark(self) -> str:
        """The same file as a cluster knows it: s3a, gs, abfss, hdfs."""
        return f"{self.mount.kind.spark}://{self.mount.host}/{self._key}"

    @property
    def _key(self) -> str:
        return "" if str(self.path) == "." else str(self.path)

    @property
    def within(self) -> tuple[str, Any]:
        """The path as pyarrow knows it, and the filesystem."""
        with self._typed():
            filesystem, base = self.mount.opened
        return (f"{base}/{self._key}" if base else self._key).rstrip("/") or "/", filesystem

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return self._type() == "Directory"

    def is_file(self) -> bool:
        """Whether it is an object with content."""
        return self._type() == "File"

    def exists(self) -> bool:
        """Whether there is anything."""
        return self._type() != "NotFound"

    def _type(self) -> str:
        if self._tree is not None:
            return self._tree.kinds.get(self.path, "NotFound")
        path, filesystem = self.within
        with self._typed():
            return str(filesystem.get_file_info(path).type.name)

    def modified(self) -> float:
        """When it was written, in Unix seconds; 0 if the store does not say."""
        path, filesystem = self.within
        with self._typed():
            when = filesystem.get_file_info(path).mtime
        return 0.0 if when is None else float(when.timestamp())

    def snapshot(self) -> Address:
        """The folder with all that is below it, which is listed at once: a request a thousand."""
        tree = _Tree({}, {})
        for path, kind in self._infos(recursive=True):
            tree.kinds[path] = kind
            while path != self.path and path not in tree.below.setdefault(path.parent, {}):
                tree.below[path.parent][path] = None
                path = path.parent
                # Not every store lists folders, and some list them last.
                tree.kinds.setdefault(path, "Directory")
        return replace(self, _tree=tree)

    def iterdir(self) -> Iterator[Address]:
        """Direct children."""
        if self._tree is None:
            paths = [path for path, _ in self._infos(recursive=False)]
        else:
            paths = list(self._tree.below.get(self.path, {}))
        for path in paths:
            yield replace(self, path=path)

    def _infos(self, *, recursive: bool) -> Iterator[tuple[PurePosixPath, str]]:
        """Paths below, and whether each is a File or a Directory."""
        path, filesystem = self.within
        fs = checks.library("pyarrow.fs", "list addresses", "engines")
        try:
            with self._typed():
                infos = filesystem.get_file_info(fs.FileSelector(path, recursive=recursive))
        except FileNotFoundError:
            # Without a bucket the error says so.
            return
        for info in infos:
            if not (info.size == 0 and self.mount.kind.starts_empty):
                # Some filesystems write a leading slash.
                below = PurePosixPath(info.path.lstrip("/")).relative_to(path.lstrip("/"))
                yield self.path / below, info.type.name

    def walk(self) -> Iterator[Address]:
        """All files below."""
        for path, kind in self._infos(recursive=True):
            if kind == "File":
                yield replace(self, path=path)

    def glob(self, pattern: str) -> list[Address]:
        """Direct children whose names match a pattern."""
        return [place for place in self.iterdir() if PurePosixPath(place.name).match(pattern)]

    @contextmanager
    def open(self, mode: str = "rb") -> Iterator[Any]:
        """Read it from its beginning, a few MiB a request."""
        path, filesystem = self.within
        with self._typed(), filesystem.open_input_stream(path, buffer_size=AT_ONCE) as stream:
            yield stream

    def read_bytes(self) -> bytes:
        """All of it."""
        with self.open() as stream:
            return bytes(stream.read())

    def write_bytes(self, content: bytes) -> None:
        """Write it, whole or not at all."""
        self._put(content)

    def put(self, file: Path) -> None:
        """Write what a file of this machine holds, whole or not at all."""
        arrow = checks.library("pyarrow", "write to addresses", "engines")
        with arrow.memory_map(str(file)) as mapped:
            self._put(mapped.read_buffer())

    def _put(self, content: Any) -> None:
        path, filesystem = self.within
        seen = path
        with self._typed():
            if self.mount.kind.renames:
                folder = path.rpartition("/")[0]
                filesystem.create_dir(folder or "/", recursive=True)
                path = f"{folder}/.{secrets.token_hex(8)}{PARTIAL}"
            try:
                # In a thread, where no interrupt arrives: a stream closed half-way would publish
                # its content.
                with ThreadPoolExecutor(1) as thread:
                    parts = PART if self.mount.kind.in_parts else None
                    thread.submit(_stream, filesystem, path, content, parts).result()
                if path != seen:
                    with suppress(FileNotFoundError):
                        filesystem.delete_file(seen)
                    filesystem.move(path, seen)
            except BaseException:
                if path != seen:
                    with suppress(Exception):
                        filesystem.delete_file(path)
                raise

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete it."""
        path, filesystem = self.within
        try:
            with self._typed():
                filesystem.delete_file(path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    @contextmanager
    def _typed(self) -> Iterator[None]:
        try:
            yield
        except LolohaError:
            raise
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self)) from None
        except Exception as error:  # noqa: BLE001 - each library has errors of its own
            raise self.mount.failure(error, str(self)) from None


def _stream(filesystem: Any, path: str, content: Any, part: int | None) -> None:
    with filesystem.open_output_stream(path) as stream:
        for start in range(0, len(content), part or max(1, len(content))):
            stream.write(content[start : start + part] if part else content)
            if part:
                stream.flush()


Location = Path | Address
"""A file or folder, local or remote."""


def located(given: str | os.PathLike[str] | Address) -> Location:
    """The file or folder of a path, or of an address that no message shows: ``scheme://...``."""
    if isinstance(given, Address):
        return given
    text = os.fspath(given)
    scheme, mark, rest = text.partition("://")
    plain = scheme.isascii() and scheme.replace("+", "").isalnum()
    if not (mark and plain and isinstance(given, str)):
        first = Path(text).parts[:1]
        if first and first[0].removesuffix(":") in KINDS and first[0].endswith(":"):
            raise ParameterError(
                f"an address must be text that begins with {first[0]}//, got a path; pass it as "
                "text"
            )
        return Path(text)
    scheme = scheme.lower()
    if scheme == "file":
        host, slash, path = rest.partition("/")
        if host not in ("", "localhost") or not slash:
            raise ParameterError("a file:// address must be file:///PATH; write the path alone")
        return Path("/" + path)
    where, _, query = rest.partition("?")
    host, _, key = where.partition("/")
    mount = Mount(scheme, _host(scheme, host), _options(scheme, query))
    parts = key.rstrip("/").split("/") if key.rstrip("/") else []
    if {"", ".", ".."} & set(parts) or "\0" in key:
        raise ParameterError(
            "an address must have names between single slashes, none of them . or ..; correct it"
        )
    return Address(mount, PurePosixPath(*parts))


def at(place: Location) -> tuple[str, Any]:
    """A file's path and its filesystem (None for this machine's), as Parquet readers take them."""
    # Absolute: of a relative path they take "~" for a home, and "file:" for a scheme.
    return place.within if isinstance(place, Address) else (str(place.absolute()), None)


def written(place: Location) -> float:
    """When a file was written, in Unix seconds, by the clock of the store that has it."""
    return place.modified() if isinstance(place, Address) else place.stat().st_mtime


def snapshot(place: Location) -> Location:
    """The folder; of an address also its listing, so that a walk needs no further requests."""
    return place.snapshot() if isinstance(place, Address) else place


def _host(scheme: str, host: str) -> str:
    """The bucket, container@account, or namenode; a password has no place in it."""
    user, mark, _ = host.rpartition("@")
    plain = {"gs": user == "anonymous", "s3": False}.get(KINDS[scheme].spark[:2], True) \
        if scheme in KINDS else True  # fmt: skip
    if mark and (":" in user or not plain):
        place = KINDS[scheme].credentials if scheme in KINDS else "its client library's settings"
        raise ParameterError(
            f"a {scheme}:// address must hold no credentials; they belong into {place}"
        )
    azure = scheme in ("abfs", "abfss")
    if (azure and not mark) or not (host or scheme not in KINDS or KINDS[scheme].renames):
        form = "CONTAINER@ACCOUNT.dfs.core.windows.net" if azure else "BUCKET"
        raise ParameterError(f"a {scheme}:// address must begin {scheme}://{form}; correct it")
    return host


def _options(scheme: str, query: str) -> tuple[tuple[str, str], ...]:
    known = KINDS[scheme].options if scheme in KINDS else frozenset()
    pairs = [pair.partition("=")[::2] for pair in query.split("&")] if query else []
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names) or not set(names) <= known or any("@" in v for _, v in pairs):
        listing = ", ".join(sorted(known)) or "none"
        raise ParameterError(
            f"options of a {scheme}:// address must be of {listing}, each once, without "
            "credentials; correct what follows the ?"
        )
    return tuple(sorted(pairs))
