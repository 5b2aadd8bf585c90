"""A server's folders and programs in a folder of its own: what docs/production.md types runs there.

Paths are put into the folder, ports are free ones, and what needs root or another machine does the
part of its work that does not.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from ports import free_port

ROOT = Path(__file__).parents[1]
_ELSEWHERE = ("LOLOHA_", "VIRTUAL_", "CURL_", "SSL_")
_IN_PLACE = re.compile(r"(?<![\w.}])/(opt|etc|var|root)/")
_STAND_INS = {
    **dict.fromkeys(("apt-get", "useradd", "certbot", "createuser"), "exit 0"),
    "scp": 'cp -r dist deploy "$SERVER/root/"',
    "runuser": 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
    "nginx": 'exec "$PROXY" -e stderr -p "$SERVER" -c "$SERVER/etc/nginx/nginx.conf" "$@"',
    # What it starts, it starts as a unit says; what it reloads it starts the first time.
    "systemctl": """
        for unit; do :; done
        unit=${unit%.timer}
        case $1 in daemon-reload) exit ;; esac
        case $* in *.timer) exit ;; *prometheus*) unit=prometheus ;; *nginx) unit=nginx ;; esac
        pid=$SERVER/$unit.pid
        case $unit in nginx)
            test -s "$pid" || exec nginx
            nginx -s reload; sleep 1; exit
        esac
        case $1 in stop | restart)
            test ! -f "$pid" || { kill "$(cat "$pid")" 2>/dev/null || :
            while kill -0 "$(cat "$pid")" 2>/dev/null; do sleep 0.1; done; rm "$pid"; }
        esac
        case $1 in stop) exit ;; esac
        file=$SERVER/etc/systemd/system/$unit.service
        set -a; . "$SERVER/etc/loloha.env"; set +a; unset LOLOHA_ADMIN_KEY
        cd "$SERVER/var/lib/loloha"
        run=$(sed -n 's/^ExecStart=//p' "$file")
        if grep -q '^Type=oneshot' "$file"; then exec $run; fi
        $run >>"$SERVER/$unit.log" 2>&1 & echo $! >"$pid"
    """,
}
_NGINX = """
daemon on; pid {server}/nginx.pid; error_log {server}/log;
events {{}}
http {{ {places} include {server}/etc/nginx/sites-enabled/*; }}
"""
_PROMETHEUS = """
[Service]
ExecStart=prometheus --config.file={server}/etc/prometheus/prometheus.yml \
--storage.tsdb.path={server}/tsdb --web.listen-address=127.0.0.1:{port}
"""


class Server:
    """Where the page is typed."""

    def __init__(self, folder: Path, store: str | None) -> None:
        self.folder = folder
        self._store = store
        self._ports = {port: free_port() for port in ("8770", "443", "9090", "9093")}
        for name in ("bin", "root", "build", "var/lib", "var/backups", "etc/systemd/system"):
            (folder / name).mkdir(parents=True)
        for name in ("etc/nginx/sites-enabled", "etc/prometheus", "var/log/nginx"):
            (folder / name).mkdir(parents=True)
        for name, script in _STAND_INS.items():
            self._add_program(name, script)
        if shutil.which("amtool") is None:
            self._add_program("amtool", "exit 0")
        for name in ("deploy", "src", "clients/js/src"):
            shutil.copytree(ROOT / name, folder / "build" / name)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, folder / "build")
        for file in (folder / "build" / "deploy").iterdir():
            file.write_text(self._here(file.read_text()))
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        places = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        nginx = _NGINX.format(server=folder, places=places)
        (folder / "etc/nginx/nginx.conf").write_text(nginx)
        unit = _PROMETHEUS.format(server=folder, port=self._ports["9090"])
        (folder / "etc/systemd/system/prometheus.service").write_text(unit)

    def type(self, commands: str, where: str) -> None:
        """Run one block; its variables are there for the next."""
        variables = self.folder / "variables"
        variables.touch()
        script = f". {variables}; set -e; cd {self.folder}/{where}\n{self._here(commands)}\n"
        script += f"export -p > {variables}\n"
        ran = subprocess.run(
            ["bash", "-c", script],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert ran.returncode == 0, f"{commands}\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}"

    def end(self) -> None:
        """Stop what was started."""
        for unit in ("loloha", "prometheus"):
            self.type(f"systemctl stop {unit}", "root")
        self.type('test ! -s "$SERVER/nginx.pid" || nginx -s stop', "root")

    def _environment(self) -> dict[str, str]:
        kept = {n: v for n, v in os.environ.items() if not n.startswith(_ELSEWHERE)}
        found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin") or "true"
        path = f"{self.folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin"
        own = {"SERVER": str(self.folder), "PROXY": found, "PATH": path}
        own["LOLOHA_PORT"] = str(self._ports["8770"])
        if self._store is not None:
            where = urlsplit(self._store)
            own |= {"PGHOST": where.hostname or "", "PGPORT": str(where.port or 5432)}
            own |= {"PGUSER": where.username or "", "PGPASSWORD": where.password or ""}
        return {**kept, **own, "HOME": str(self.folder / "root")}

    def _here(self, text: str) -> str:
        if self._store is not None:
            name = self._store.rpartition("/")[2]
            text = text.replace("postgresql:///loloha?host=/var/run/postgresql", self._store)
            text = text.replace("template0 loloha", f"template0 {name}").replace(
                "--owner loloha", ""
            )
            text = re.sub(r"(?<=DATABASE )loloha|(?<=TO )loloha(?=_)", name, text)
        text = text.replace(" -o loloha -g loloha", "")
        text = text.replace("https://reports.example", f"https://localhost:{self._ports['443']}")
        text = text.replace("root@reports.example", "root").replace("reports.example", "localhost")
        for port, free in self._ports.items():
            text = re.sub(rf"\b{port}\b", str(free), text)
        return _IN_PLACE.sub(rf"{self.folder}/\1/", text)

    def _add_program(self, name: str, script: str) -> None:
        program = self.folder / "bin" / name
        program.write_text("#!/bin/sh\nset -e\n" + textwrap.dedent(script) + "\n")
        program.chmod(0o755)


@contextmanager
def server(folder: Path, store: str | None) -> Iterator[Server]:
    """One, until its programs are stopped."""
    opened = Server(folder, store)
    try:
        yield opened
    finally:
        opened.end()
