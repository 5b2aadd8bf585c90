"""``loloha serve``: run a collector."""

from __future__ import annotations

import errno
import gc
import os
import socket
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from loloha.address import Location
from loloha.cli import console
from loloha.errors import LolohaError, ParameterError

if TYPE_CHECKING:
    import uvicorn

    from loloha.collector.settings import Settings

BACKLOG = 2048
SECONDS_TO_FINISH = 10


def serve(
    *,
    store: str | None = None,
    host: str | None = None,
    port: int | None = None,
    config: Path | None = None,
    keep_reports: Location | None = None,
    append_only: Location | None = None,
    new_admin_key: bool = False,
    accept_clock: bool = False,
    accept_losses: bool = False,
    until_eof: bool = False,
    log_format: str | None = None,
    log_level: str | None = None,
) -> None:
    """Collect reports over HTTP and show estimates, until stopped.

    Flags outrank LOLOHA_* variables, which outrank the file. The first start draws an admin key and
    shows it once, unless LOLOHA_ADMIN_KEY holds one, which is valid while it is set. Several can
    serve one PostgreSQL database, behind a load balancer. With
    --append-only, reports are only appended to a log, which `loloha tally --follow` counts: any
    number of such collectors run side by side, and read campaigns of --store.
    """
    from loloha import checks

    checks.library("loloha.collector.settings", "serve", "collector")
    from loloha.collector.settings import Settings
    from loloha.collector.store.database import parsed

    flags = {
        "store": store,
        "host": host,
        "port": port,
        "keep_reports": keep_reports,
        "append_only": append_only,
        "accept_clock": accept_clock or None,
        "accept_losses": accept_losses or None,
        "log_format": log_format,
        "log_level": log_level,
    }
    settings = Settings.read(config, **flags)
    for name in Settings.unknown_variables(os.environ):
        console.warn(f"unknown setting {name} ignored; docs/collector.md lists all")
    parsed(settings.store)
    # Files written from here on are private to the owner: store, its side files, log of reports.
    before = os.umask(0o077)
    try:
        # First, so that no key, shown only once, is drawn for a start that fails.
        with _listen(settings) as listening:
            if settings.append_only is None:
                _prepare_store(settings, new_admin_key)
            elif new_admin_key:
                raise ParameterError(
                    "--new-admin-key must be left out with --append-only: keys are drawn by the "
                    "collector with the dashboard, or by `loloha admin add`"
                )
            _run(settings, listening, until_eof)
    finally:
        os.umask(before)


def _prepare_store(settings: Settings, new_admin_key: bool) -> None:
    """Bring the store up to date, and make sure that somebody can create campaigns."""
    # A running collector is not disturbed: an SQLite file is taken over last, and PostgreSQL is
    # shared.
    from loloha.collector.open_collector import report_archive
    from loloha.collector.store import Store
    from loloha.collector.store.admin_key import AdminKeys

    archive = report_archive(settings)
    if archive is not None:
        archive.must_be_ours()
    losses = settings.accept_losses
    with closing(Store(settings.store, take_over=False, accept_losses=losses)) as opened:
        if archive is not None:
            archive.prepare()
        keys, now = AdminKeys(opened), time.time()
        valid = any(key.is_valid(now) for key in keys.all())
        if new_admin_key or not (valid or settings.admin_key is not None):
            key, _ = keys.draw("drawn by loloha serve", now=now)
            console.say(f"admin key, shown this once: {key}")


def _run(settings: Settings, listening: socket.socket, until_eof: bool) -> None:
    import uvicorn

    from loloha.collector.connections import bounded
    from loloha.collector.log_format import set_up
    from loloha.collector.service import create_app

    set_up(settings.log_format, settings.log_level)
    address, port = listening.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    app = create_app(settings)
    # Here an error of the store is one line; within the server it would be a traceback.
    app.state.context.open()
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            # uvicorn's access log would show addresses; ours has routes and times only.
            access_log=False,
            log_config=None,
            # It warns about each malformed request.
            log_level="error",
            server_header=False,
            http=bounded(settings),
            ws="none",
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=settings.trusted_proxies,
            timeout_graceful_shutdown=SECONDS_TO_FINISH,
        )
    )
    # Two threads share the interpreter: the one that answers must not wait long for the one that
    # commits.
    sys.setswitchinterval(0.0005)
    # Imported modules stay: exclude them from garbage collection.
    gc.collect()
    gc.freeze()
    console.say(f"collector at http://{shown}:{port}/ (Ctrl-C stops it)")
    if until_eof:
        Thread(target=_stop_at_eof, args=(server,), daemon=True).start()
    # Ctrl-C is the documented way to stop it, not a failure.
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listening])


def _stop_at_eof(server: uvicorn.Server) -> None:
    """Wait for the end of standard input, by which a killed parent stops this process."""
    with suppress(OSError, ValueError):
        while sys.stdin.buffer.read(4096):
            pass
    server.should_exit = True


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise LolohaError(
                f"host must be an address of this machine, got {settings.host!r}; take 127.0.0.1, "
                "or 0.0.0.0 for all of them"
            ) from None
        raise LolohaError(
            f"port {settings.port} of {settings.host} must be free to listen on, got "
            f"{error.strerror}; a collector may run there already, perhaps on this SQLite file, "
            "which a second one would take over: stop it first, or choose another by --port or "
            "--host"
        ) from None
    listening.listen(BACKLOG)
    return listening
