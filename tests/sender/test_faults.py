"""Memory never runs ahead of the disk: a fault at every point of every step, then a restart."""

import json
import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import loloha
from collecting import campaign
from faulty import Collector, Disk, Interrupting, Killed, device, no_space
from loloha.client import Client
from loloha.errors import StateError
from loloha.sender.agreement import Agreement
from loloha.sender.sender import Sender

# A process that is gone closes nothing.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

# The memo symbol is the value: what a step does to the loss does not depend on a key.
PROTOCOL = loloha.LGRR(k=5, eps_inf=2.0, eps_1=1.0)
HOURS = campaign("hours", protocol=PROTOCOL)
PAGES = campaign("pages", protocol=PROTOCOL)
ADDRESSES = [f"http://c/v1/campaigns/{one.fingerprint}" for one in (HOURS, PAGES)]

Step = Callable[[Sender], Any]
STEPS: dict[str, Step] = {
    "agree": lambda one: one.agree(*ADDRESSES, limit=100.0),
    "report": lambda one: one.report_all({"hours": "a", "pages": "b"}),
    "deliver": lambda one: one.deliver_all(),
    "report another": lambda one: one.report_all({"hours": "c"}, round=1),
    "set the limit": lambda one: one.agree(*ADDRESSES, limit=80.0),
    "reset": lambda one: one.reset(wait=False),
    "report anew": lambda one: one.report_all({"hours": "a", "pages": "b"}),
    "withdraw": lambda one: one.withdraw(),
    "agree again": lambda one: one.agree(*ADDRESSES, limit=100.0),
    "report at last": lambda one: one.report_all({"hours": "d", "pages": "d"}, round=9),
    "deliver at last": lambda one: one.deliver_all(),
}
NAMES = list(STEPS)
EPOCHS = ("agree", "reset", "agree again")


class Summary(NamedTuple):
    """What of a state does not depend on what was drawn."""

    consent: bool
    loss: float
    limit: float | None
    queued: tuple[int, ...]


def summary(one: Sender) -> Summary:
    agreement = one._state.now()
    enrolments = agreement.enrolments if agreement else ()
    queued = tuple(round for each in enrolments for round in each.queue)
    return Summary(one.consent, one.loss, one.limit, queued)


def on_disk(folder: Path) -> dict[str, Any] | None:
    path = folder / "state"
    return json.loads(path.read_bytes()) if path.exists() else None


def in_memory(one: Sender) -> dict[str, Any] | None:
    agreement = one._state.now()
    return None if agreement is None else json.loads(agreement.to_bytes())


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The folder before each step, the summary after it, and how many points it has."""
    home = tmp_path_factory.mktemp("history")
    folder = home / "now"
    folder.mkdir()
    found = {}
    for name, step in STEPS.items():
        shutil.copytree(folder, home / name)
        disk = Disk(folder)
        with disk.installed(), pytest.MonkeyPatch.context() as patch:
            collector = Collector([HOURS, PAGES], disk)
            for module in ("sender", "collector"):
                patch.setattr(f"loloha.sender.{module}.Connection", collector)
            with device(folder) as one:
                before = summary(one)
                start = len(disk.points)
                step(one)
                found[name] = (home / name, before, summary(one), start, len(disk.points))
    return found


class World:
    """A copy of a folder, with its disk and collector."""

    def __init__(self, folder: Path, target: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = Path(shutil.copytree(folder, target))
        self.patch = patch
        self.left: dict[tuple[int, str, int], set[str]] = {}
        self.start()

    def start(self) -> None:
        """The process begins, or begins again."""
        self.disk = Disk(self.folder)
        self.collector = Collector([HOURS, PAGES], self.disk)
        self.patch.setattr("loloha.client.file.os", self.disk.os)
        self.patch.setattr("loloha.client.file.fcntl", self.disk.fcntl)
        self.patch.setattr("loloha.client.file.FileIO", self.disk.file)
        for module in ("sender", "collector"):
            self.patch.setattr(f"loloha.sender.{module}.Connection", self.collector)

    def collect(self, epoch: int) -> None:
        for round, body in self.collector.left:
            where = (epoch, json.loads(body)["campaign"], round)
            self.left.setdefault(where, set()).add(body)
        self.collector.left.clear()


def after_a_fault(world: World, one: Sender, name: str, before: Summary, after: Summary) -> None:
    """What holds whatever happened: memory is what the disk holds, and no step is half done."""
    assert in_memory(one) == on_disk(world.folder)
    found = summary(one)
    if name.startswith("deliver"):
        assert set(after.queued) <= set(found.queued) <= set(before.queued)
    elif name != "withdraw" or found.consent:
        assert found in (before, after), name
    assert found.loss >= before.loss


def finish(world: World, one: Sender, name: str, after: Summary) -> None:
    """The user tries again, what is queued goes out: one answer a round, nothing left behind."""
    epoch = sum(NAMES.index(each) <= NAMES.index(name) for each in EPOCHS)
    world.collect(epoch)
    STEPS[name](one)
    # A step that had succeeded before it was interrupted is not done twice, but for a reset.
    assert summary(one) == after or name == "reset"
    if one.consent:
        one.deliver_all()
    assert in_memory(one) == on_disk(world.folder)
    world.collect(epoch)
    for where, bodies in world.left.items():
        assert len(bodies) == 1, f"two answers left for {where}"
    left = {path.name for path in world.folder.iterdir()}
    assert left <= {"state", "state.lock", "state.spent"}


KINDS = {
    "full": (no_space, "before"),
    "failed": (lambda: OSError(5, "Input/output error"), "after"),
    "interrupted": (KeyboardInterrupt, "before"),
    "killed": (Killed, "before"),
    "power cut": (Killed, "before"),
}


# Each step sees each second kind of fault, each kind each second step.
CASES = [
    pytest.param(name, kind, id=f"{name}-{kind}", marks=[pytest.mark.long] * ((number + i + 1) % 2))
    for number, name in enumerate(NAMES)
    for i, kind in enumerate(KINDS)
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_fault_at_every_point_of_a_step(
    history: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    folder, before, after, start, end = history[name]
    make, moment = KINDS[kind]
    for point in range(start, end):
        world = World(folder, tmp_path / str(point), monkeypatch)
        world.disk.target = (point, moment, make())
        one = device(world.folder)
        try:
            STEPS[name](one)
        except (StateError, KeyboardInterrupt, Killed) as error:
            # Its traceback holds the frames it passed, and the open files in them.
            traceback.clear_frames(error.__traceback__)
        world.disk.target = None
        if make is Killed:
            epoch = sum(NAMES.index(each) <= NAMES.index(name) for each in EPOCHS)
            world.collect(epoch)
            # The system closes what a process leaves open.
            for file in (one._state.file._state, one._state.file._beside):
                if file is not None:
                    file.close()
            one._state.file._state = one._state.file._beside = None
            if "power" in kind:
                world.disk.cut_power()
            world.start()
            one = device(world.folder)
        after_a_fault(world, one, name, before, after)
        finish(world, one, name, after)
        one.close()


@pytest.mark.parametrize(
    "name",
    ["agree", "deliver", "withdraw"]
    + [pytest.param(name, marks=pytest.mark.long) for name in ("report", "reset")],
)
def test_an_interrupt_at_every_line_of_a_step(
    history: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Ctrl-C at each line of the device's code, the first time that it runs."""
    folder, before, after, _, _ = history[name]
    files = (
        "sender/sender.py", "sender/participant.py", "sender/agreement_file.py",
        "sender/agreement.py", "sender/delivery.py", "client/file.py", "client/client.py",
        "client/spending.py",
    )  # fmt: skip
    world = World(folder, tmp_path / "all", monkeypatch)
    with device(world.folder) as one, Interrupting(None, files=files) as traced:
        STEPS[name](one)
    first = {place: n for n, place in reversed(list(enumerate(traced.places)))}
    for n in sorted(first.values()):
        world = World(folder, tmp_path / str(n), monkeypatch)
        one = device(world.folder)
        try:
            with Interrupting(n, files=files):
                STEPS[name](one)
        except KeyboardInterrupt as error:
            traceback.clear_frames(error.__traceback__)
        after_a_fault(world, one, name, before, after)
        finish(world, one, name, after)
        one.close()
        shutil.rmtree(world.folder)


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize(
    "step",
    [
        lambda one: one.report(1, round=5),
        lambda one: one.report(1, round=7),
        lambda one: one.report(0, round=3),
        lambda one: one.reset(),
        lambda one: one.reset(wait=True),
        lambda one: one.set_limit(11.0),
    ],
)
def test_an_interrupted_client_is_before_or_after(
    step: Callable[[Client], Any], restored: bool
) -> None:
    def fresh() -> Client:
        return Client.from_dict(start) if restored else begun._copy()

    def seen(one: Client) -> Any:
        return one.loss, one.limit, len(one._state.memo), one._state.record.reports, one.account

    begun = PROTOCOL.client()
    for round in range(5):
        begun.report(0, round=round)
    start = begun.to_dict()
    files = ("client/client.py", "client/spending.py", "client/state.py", "client/answered.py")
    one = fresh()
    with Interrupting(None, opcodes=True, files=files) as traced:
        step(one)
    after = seen(one)
    for n in range(len(traced.places)):
        one = fresh()
        try:
            with Interrupting(n, opcodes=True, files=files):
                step(one)
        except KeyboardInterrupt:
            pass
        if seen(one) != after:
            assert one.to_dict() == start
        step(one)


# -- real disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of a few pages."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this system does not let its root mount a disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_full(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(small_disk)
    for module in ("sender", "collector"):
        monkeypatch.setattr(f"loloha.sender.{module}.Connection", Collector([HOURS, PAGES], disk))
    filler = small_disk / "filler"
    with device(small_disk) as one:
        one.agree(*ADDRESSES)
        one.report_all({"hours": "a"})
        kept = on_disk(small_disk)
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1024))
            except OSError:
                pass
        for step in ("report another", "set the limit", "reset"):
            with pytest.raises(StateError, match="No space left"):
                STEPS[step](one)
            assert in_memory(one) == on_disk(small_disk) == kept
        filler.unlink()
        STEPS["report another"](one)
        assert in_memory(one) == on_disk(small_disk) != kept


def test_a_disk_that_is_read_only(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(small_disk)
    for module in ("sender", "collector"):
        monkeypatch.setattr(f"loloha.sender.{module}.Connection", Collector([HOURS, PAGES], disk))
    remount = ["mount", "-o", "remount,{}", str(small_disk)]
    with device(small_disk) as one:
        one.agree(*ADDRESSES)
        kept = on_disk(small_disk)
    subprocess.run([word.format("ro") for word in remount], check=True)
    try:
        with pytest.raises(StateError, match="Read-only"):
            device(small_disk)
        with pytest.raises(StateError, match="Read-only"):
            PROTOCOL.client().save(small_disk / "client")
    finally:
        subprocess.run([word.format("rw") for word in remount], check=True)
    with device(small_disk) as one:
        assert in_memory(one) == kept
        assert isinstance(one._state.now(), Agreement)
