"""A disk and a process that fail where they are told to, and a collector that sees what leaves."""

from __future__ import annotations

import errno
import fcntl
import json
import linecache
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, Self

import pytest

from collecting import START
from loloha.campaign import Campaign
from loloha.sender import Sender
from loloha.sender.connection import Answer, Begin, Unreachable

JSON = {"content-type": "application/json"}


class Killed(BaseException):
    """The process is gone: nothing of it runs any more, not even what tidies up."""


class Disk:
    """Stands for `os`, `fcntl` and `FileIO` in the device's file module.

    Every call that changes something is a point at which a fault may strike: before it ("before"),
    in the middle of a write, or after it ("after"). The model knows what a power cut would leave:
    content that was synced, under names whose folder was synced.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.points: list[str] = []
        self.target: tuple[int, str, BaseException] | None = None
        self.dead = False
        self.durable: dict[str, bytes] = {}
        self.synced = {path.stat().st_ino: path.read_bytes() for path in folder.iterdir()}
        self.remember()
        disk = self

        class File(FileIO):
            def write(self, content: Any) -> int:
                size = len(content)
                half = content[: (size + 1) // 2]
                return disk.step("write", super().write, half, fault=size // 4)

        self.os = SimpleNamespace(
            **{name: getattr(os, name) for name in dir(os) if not name.startswith("_")}
        )
        self.os.fsync = self.fsync
        for name in ("open", "replace", "unlink"):
            setattr(self.os, name, self.wrapped(name))
        self.fcntl = SimpleNamespace(
            LOCK_EX=fcntl.LOCK_EX, LOCK_NB=fcntl.LOCK_NB, LOCK_UN=fcntl.LOCK_UN
        )
        self.fcntl.flock = lambda *args: self.step("flock", fcntl.flock, *args)
        self.file = File

    def wrapped(self, name: str) -> Callable[..., Any]:
        call = getattr(os, name)
        return lambda *args: self.step(name, call, *args)

    def step(self, name: str, call: Callable[..., Any], *args: Any, fault: int = 0) -> Any:
        if self.dead:
            raise Killed
        here = len(self.points)
        self.points.append(name)
        place, moment, error = self.target or (-1, "", Killed())
        if here == place and moment == "before":
            if fault:
                call(args[0][:fault])
            self.fail(error)
        done = call(*args)
        if here == place and moment == "after":
            if name == "open":
                os.close(done)
            self.fail(error)
        return done

    def fail(self, error: BaseException) -> None:
        self.dead = isinstance(error, Killed)
        raise error

    def fsync(self, handle: int) -> None:
        self.step("fsync", self.mark, handle)

    def mark(self, handle: int) -> None:
        found = os.fstat(handle)
        if found.st_ino == self.folder.stat().st_ino:
            self.remember()
        else:
            self.synced[found.st_ino] = Path(f"/proc/self/fd/{handle}").read_bytes()

    def remember(self) -> None:
        """The names as they are now are durable, with the content that was synced."""
        self.durable = {
            path.name: self.synced.get(path.stat().st_ino, b"") for path in self.folder.iterdir()
        }

    def cut_power(self) -> None:
        """Leave what a power cut leaves."""
        for path in self.folder.iterdir():
            path.unlink()
        for name, content in self.durable.items():
            (self.folder / name).write_bytes(content)

    @contextmanager
    def installed(self) -> Iterator[Disk]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("loloha.client.file.os", self.os)
            patch.setattr("loloha.client.file.fcntl", self.fcntl)
            patch.setattr("loloha.client.file.FileIO", self.file)
            yield self


class Collector:
    """Answers devices in their own process, and checks that what it gets is on their disk."""

    def __init__(self, campaigns: list[Campaign], disk: Disk) -> None:
        self.campaigns = {one.fingerprint: one for one in campaigns}
        self.disk = disk
        self.left: list[tuple[int, str]] = []
        self.up = True

    def __call__(self, *_: Any, **__: Any) -> Collector:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def get(self, path: str) -> Answer:
        return Answer(200, JSON, self.campaigns[path.split("/")[3]].to_json())

    def post(self, path: str, body: bytes, _: str, begin: Begin) -> Answer:
        if not self.up:
            raise Unreachable("collector must answer")
        is_one = not path.endswith("/v1/reports")
        parts = [] if is_one else json.loads(body)
        # Byte for byte, or as one of several.
        texts = [json.dumps(part, separators=(",", ":")) for part in parts] or [body.decode()]
        taken: list[dict[str, Any]] = []
        begin(lambda: taken.extend(map(self.take, texts)))
        answers = {"answers": [{"status": 200, "body": one} for one in taken]}
        return Answer(200, JSON, json.dumps(taken[0] if is_one else answers).encode())

    def take(self, body: str) -> dict[str, Any]:
        message = json.loads(body)
        kept = json.loads(self.disk.durable["state"])
        queued = [queued for one in kept["enrolments"] for _, queued in one["queue"]]
        assert body in queued, "a report left that a power cut would have lost"
        self.left.append((message["round"], body))
        return {"accepted": 1, "duplicates": 0, "refused": [], "reporter": message["reporter"]}


def device(folder: Path) -> Sender:
    return Sender(folder / "state", clock=lambda: START + 60.0)


def no_space() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


class Interrupting:
    """Raises an interrupt at the n-th place, by line or by opcode, of the device's code."""

    def __init__(self, n: int | None, *, opcodes: bool = False, files: tuple[str, ...]) -> None:
        self.n, self.opcodes, self.files = n, opcodes, files
        self.places: list[tuple[str, int]] = []
        self.entered: set[tuple[int, int]] = set()

    def __enter__(self) -> Self:
        self.before = sys.gettrace()
        sys.settrace(self.called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)

    def leaves_a_block(self, frame: FrameType) -> bool:
        """Whether nothing but a block begins, or a `with` lets go: no signal is looked at there."""
        place = (id(frame), frame.f_lineno)
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if text.strip() == "try:":
            return not self.opcodes
        if self.opcodes or not text.lstrip().startswith("with "):
            return False
        seen = place in self.entered
        self.entered.add(place)
        return seen

    def called(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(self.files) or frame.f_code.co_name == "__del__":
            return None
        if self.opcodes:
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.stepped

    def stepped(self, frame: FrameType, event: str, _: Any) -> Any:
        if event in ("line", "opcode") and not self.leaves_a_block(frame):
            here = len(self.places)
            self.places.append((frame.f_code.co_filename, frame.f_lineno))
            if here == self.n:
                sys.settrace(self.before)
                frame.f_trace = None
                raise KeyboardInterrupt
        return self.stepped
