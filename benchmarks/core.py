"""Work on the hot paths, some milliseconds each: what `benchmarks.against` measures on two trees.

Each piece is prepared and run by names that every release has; what a release lacks has no time.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import loloha

REPORTS = 200_000
REPEATS = 5
SINGLES, CONNECTIONS = 512, 64
LEAST_SECONDS = 0.02
"""Of a run: what takes less is done more often."""
BUDGET = {"eps_inf": 2.0, "eps_1": 1.0}
Work = Callable[[], object]


def protocols(k: int) -> dict[str, Any]:
    return {
        "biloloha": loloha.BiLOLOHA(k=k, **BUDGET),
        "ololoha": loloha.OLOLOHA(k=k, eps_inf=5.0, eps_1=3.0),
        "l-grr": loloha.LGRR(k=k, **BUDGET),
        "rappor": loloha.RAPPOR(k=k, **BUDGET),
    }


def works() -> Iterator[tuple[str, Callable[[], Work]]]:
    """Name and preparation of each piece of work."""
    for name, protocol in protocols(96).items():
        yield f"device: 500 reports, {name}, k = 96", lambda p=protocol: _device(p)
    for name, protocol in protocols(1000).items():
        yield f"tally: {name}, k = 1000", lambda p=protocol: _tally(p)
    for k in (96, 1000, 100_000):
        for g in (2, 5):
            hashed = {"g": g, "hash": "linear", **BUDGET}
            yield f"decode: k = {k}, g = {g}", lambda k=k, o=hashed: _decode(k, o)
    yield "estimate: l-grr, k = 100000", _estimate
    for name, protocol in protocols(1377).items():
        yield f"simulate: {name}, k = 1377", lambda p=protocol: _simulate(p)
    yield "plan: k = 1000, n = 100000", _plan
    for form in ("arrow", "ndjson"):
        yield f"collector: decode 20000 reports, {form}", lambda f=form: _upload(f)
    yield f"collector: {SINGLES} reports, one a request", _singles
    yield "collector: estimates as JSON, k = 100000", _json


def _device(protocol: Any) -> Work:
    def work() -> None:
        client = protocol.client()
        for round in range(500):
            client.report(round % 7, round=round)

    return work


def _reports(protocol: Any, rng: Any) -> tuple[Any, Any]:
    """Arrays of reports, uniform: counting does not depend on the truth."""
    encoding = protocol.encoding
    if encoding.kind == "bits":
        return None, rng.integers(256, size=(REPORTS // 10, protocol.k // 8), dtype=np.uint8)
    keys = None if encoding.kind == "symbol" else encoding.family.draw_many(REPORTS, rng)
    return keys, rng.integers(protocol.g or protocol.k, size=REPORTS)


def _tally(protocol: Any) -> Work:
    tally, arrays = protocol.tally(), _reports(protocol, np.random.default_rng(1))
    return lambda: tally.update(*arrays)


def _decode(k: int, options: dict[str, Any]) -> Work:
    tally = loloha.OLOLOHA(k=k, **options).tally()
    tally.counts[:] = np.random.default_rng(2).integers(9, size=tally.counts.shape)
    return tally.support


def _estimate() -> Work:
    tally = protocols(100_000)["l-grr"].tally()
    tally.update(*_reports(tally.protocol, np.random.default_rng(3)))
    return tally.estimate


def _simulate(protocol: Any) -> Work:
    simulation = _either("loloha.population", "loloha.study.population")

    values = np.random.default_rng(4).integers(protocol.k, size=(2000, 6)).repeat(4, axis=1)
    history = simulation.History(values, protocol.k)
    return lambda: simulation.simulate(protocol, history, keep_tallies=False, rng=1)


def _plan() -> Work:
    # A budget of its own each time: a plan may remember what it weighed.
    budgets = count(2)
    return lambda: loloha.plan(k=1000, n=100_000, eps_inf=2 + 1e-4 * next(budgets), eps_1=1.0)


def _campaign(k: int, start: int = 0) -> Any:
    parts = _either("loloha.campaign", "loloha.rules.campaign")
    return parts.Campaign(
        name="core", protocol=loloha.BiLOLOHA(k=k, **BUDGET), domain=parts.Range(0, k, k),
        schedule=parts.Schedule(start, 3600),
    )  # fmt: skip


def _upload(form: str) -> Work:
    from loloha.wire.batch import Reader
    from loloha.wire.columns import encode_many

    campaign, rng, n = _campaign(96), np.random.default_rng(5), 20_000
    names = np.frombuffer(rng.bytes(16 * n), dtype=np.uint8).reshape(n, 16)
    keys, ys = campaign.protocol.encoding.family.draw_many(n, rng), rng.integers(0, 2, n)
    reader = Reader(campaign)
    if form == "arrow":
        body = encode_many(campaign, names, keys, ys, rounds=0)
        return lambda: reader.read_arrow(body)
    start = f'{{"version":1,"campaign":"{campaign.fingerprint}","round":0,"reporter":"'
    lines = "\n".join(
        f'{start}{name.tobytes().hex()}","y":"{y:02x}","key":"{key:02x}"}}'
        for name, key, y in zip(names, keys, ys, strict=True)
    ).encode()
    return lambda: reader.read_lines(lines)


def _singles() -> Work:
    """From the bytes of a request to those of its answer, the commit with it; no socket between."""
    import uvicorn
    from uvicorn.server import ServerState

    from loloha.collector import service
    from loloha.collector.settings import Settings
    from loloha.collector.terms import Terms

    folder = tempfile.TemporaryDirectory()
    settings = Settings(store=f"sqlite:///{folder.name}/loloha.db", rate_limit="")
    app = service.create_app(settings)
    context = app.state.context
    context.open()
    campaign = _campaign(96, start=int(time.time()) - 1800)
    context.store.create(campaign, Terms(), token=None, now=time.time())
    if hasattr(context, "add_known"):
        context.add_known(campaign.fingerprint)
    http = "httptools"
    if find_spec("loloha.collector.connections"):
        http = import_module("loloha.collector.connections").bounded(settings)
    config = uvicorn.Config(
        app, http=http, access_log=False, log_level="error", ws="none", proxy_headers=False,
        timeout_keep_alive=3600,
    )  # fmt: skip
    config.load()
    loop, numbers = asyncio.new_event_loop(), count()
    head = f"POST /v1/campaigns/{campaign.fingerprint}/reports HTTP/1.1\r\nHost: localhost\r\n"
    start = f'{{"version":1,"campaign":"{campaign.fingerprint}","round":0,"reporter":"'

    def request() -> bytes:
        body = f'{start}{next(numbers):032x}","y":"01","key":"05"}}'
        return (
            f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        ).encode()

    async def connections() -> list["Peer"]:
        state = ServerState()
        return [
            Peer(config.http_protocol_class(config=config, server_state=state, app_state={}))
            for _ in range(CONNECTIONS)
        ]

    async def send(peer: "Peer") -> None:
        for _ in range(SINGLES // CONNECTIONS):
            answer = await peer.ask(request())
            assert answer.startswith(b"HTTP/1.1 200"), answer

    async def send_all() -> None:
        await asyncio.gather(*map(send, peers))

    peers = loop.run_until_complete(connections())
    # The folder goes with the work.
    return lambda: (loop.run_until_complete(send_all()), folder)


class Peer(asyncio.Transport):
    """The other end of a connection, and all between: what is written is there at once."""

    def __init__(self, protocol: Any) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.protocol = protocol
        self.answer = bytearray()
        self.whole: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        protocol.connection_made(self)

    async def ask(self, request: bytes) -> bytes:
        self.answer.clear()
        self.whole = asyncio.get_running_loop().create_future()
        self.protocol.data_received(request)
        return await self.whole

    def write(self, data: Any) -> None:
        self.answer += data
        head, ends, body = bytes(self.answer).partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
        if ends and len(body) == int(length) and not self.whole.done():
            self.whole.set_result(bytes(self.answer))

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol


def _json() -> Work:
    import msgspec

    from loloha.collector.answer import in_pieces

    rng, k = np.random.default_rng(6), 100_000
    numbers = {name: rng.normal(size=k) for name in ("frequencies", "lower", "upper")}
    labels = [f"[{v}, {v + 1})" for v in range(k)]
    shape = msgspec.defstruct("Shown", [(name, Any) for name in ("labels", *numbers)])
    document = shape(labels, *numbers.values())
    return lambda: list(in_pieces(document))


def _either(*names: str) -> Any:
    """The first module that the release has."""
    for name in names:
        if find_spec(name.rpartition(".")[0]) and find_spec(name):
            return import_module(name)
    raise ImportError(names[0])


def least_seconds(prepare: Callable[[], Work]) -> float | None:
    """Least processor time of some runs, after one that may compile; None if it cannot be run."""
    try:
        work = prepare()
        work()
    except (AttributeError, ImportError, TypeError, LookupError, ValueError):
        return None
    took = _seconds(work, 1)
    times = max(1, int(LEAST_SECONDS / max(took, 1e-6)))
    return min(_seconds(work, times) for _ in range(REPEATS))


def _seconds(work: Work, times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - began) / times


def main() -> None:
    # Never the installed one in place of the tree that was asked for.
    assert Path(loloha.__file__).is_relative_to(sys.argv[1]), loloha.__file__
    print(json.dumps({name: least_seconds(prepare) for name, prepare in works()}))


if __name__ == "__main__":
    main()
