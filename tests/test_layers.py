"""Imports run one way, and each outside library stays where it belongs."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from loloha.encodings import PARTS

SOURCE = Path(__file__).resolve().parents[1] / "src"

ARCHITECTURE = (SOURCE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
# The layers of the package, from the lowest up. A module may import from its own layer and from
# those below; the longest name that it begins with places it. "loloha" is what the package itself
# offers: lazy, so it may name nearly everything.
LAYERS = [
    set(line.partition("|")[0].split())
    for line in reversed(ARCHITECTURE.split("```layers\n")[1].split("```")[0].splitlines())
]
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}

# Runs on a user's device, where only Python can be counted on.
DEVICE = {
    "errors", "_moved", "checks", "hashing", "distribution", "report", "rng", "channels",
    "encodings", "protocols", "campaign", "client", "sender", "sender.connection", "wire.message",
    "wire.refusal",
}  # fmt: skip
# The two objects that a protocol hands out lie above it: imported where they are made.
FACTORIES = {
    ("loloha.protocols.base", "client"),
    ("loloha.protocols.base", "server"),
    # A name that is documented here and lives above.
    ("loloha.reportlog", "population"),
    ("loloha_lab.dyadic.protocol", "loloha_lab"),
}
STRANGERS = {("population", "collector"), ("collector", "population")}

SQL = {"sqlalchemy", "alembic", "sqlite3", "psycopg", "duckdb", "pyspark"}
SQL_HOMES = ("loloha.engines", "loloha.collector.store", "loloha.collector.migrations")
HTTP = {
    "http", "urllib", "socket", "socketserver", "ssl",
    "aiohttp", "fastapi", "httpx", "httpx2", "requests", "starlette", "urllib3", "uvicorn",
}  # fmt: skip
HTTP_HOMES = {"collector", "cli", "__main__", "sender", "sender.connection", "loloha_lab"}
CLOCKS = {"time", "datetime"}
# What waits and retries.
CLOCK_HOMES = {"sender", "sender.connection"}
# Hold and parse dates, but never ask for today's.
DATES = ("loloha.campaign", "loloha.datasets")
READING_THE_CLOCK = {"now", "utcnow", "today"}


# A table by exact class, or the encoding itself, knows what becomes of each.
CLASSES = {
    "kind", "Symbols", "Hashed", "OneHot", "SampledBuckets",
    "SymbolChannel", "TableChannel", "BitChannel",
}  # fmt: skip

FOR_TYPES = {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


class Import(NamedTuple):
    """One imported name and where the statement stands: "module", "function" or "typing"."""

    target: str
    place: str
    line: int


def imports(tree: ast.AST, place: str = "module") -> Iterator[Import]:
    """Every import below ``tree``, at any level."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, place, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            dots = "." * node.level + (node.module or "")
            for alias in node.names:
                yield Import(f"{dots}.{alias.name}", place, node.lineno)
        elif isinstance(node, ast.Call):
            yield from dynamic_import(node, place)
            yield from imports(node, place)
        elif isinstance(node, ast.If) and ast.unparse(node.test) in FOR_TYPES:
            yield from imports(ast.Module(node.body, []), "typing")
            yield from imports(ast.Module(node.orelse, []), place)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from imports(node, "function" if place == "module" else place)
        else:
            yield from imports(node, place)


def dynamic_import(call: ast.Call, place: str) -> Iterator[Import]:
    """The import that ``import_module("name")`` makes."""
    if ast.unparse(call.func).split(".")[-1] in ("import_module", "__import__") and call.args:
        match call.args[0]:
            case ast.Constant(str() as target):
                yield Import(target, place, call.lineno)


def part_of(target: str) -> str | None:
    """Which part of loloha a dotted name belongs to, None if to none."""
    root, _, rest = target.partition(".")
    if root == "loloha_lab":
        return root
    if root != "loloha":
        return None
    while rest and rest not in RANK:
        rest = rest.rpartition(".")[0]
    return rest or "loloha"


def misplaced(module: str, tree: ast.Module, protocols: frozenset[str]) -> list[str]:
    """What the source of ``module`` does that it must not, one line each."""
    own = part_of(module) or ""
    if own == "loloha" != module:
        return [f"{module} must have a place in LAYERS, got none; add it where it belongs"]
    found: list[tuple[int, str]] = []
    for one in imports(tree):
        found += [(one.line, problem) for problem in misplaced_import(module, own, one)]
    found += reads_the_clock(module, tree)
    if own != "protocols":
        found += asks_for_a_name(tree, protocols)
    found += asks_for_a_class(module, tree)
    return [f"{module}:{line}: {problem}" for line, problem in sorted(set(found))]


def misplaced_import(module: str, own: str, one: Import) -> Iterator[str]:
    """What is wrong with one import."""
    if one.target.startswith("."):
        yield f"imports are written in full, got {one.target}"
        return
    root = one.target.partition(".")[0]
    part = part_of(one.target)
    if part is not None:
        factory = (module, part) in FACTORIES and one.place != "module"
        if RANK[part] > RANK[own] and not factory and one.target != "loloha.__version__":
            yield f"{own} must not import from a layer above, got {one.target}"
        if (own.partition(".")[0], part.partition(".")[0]) in STRANGERS:
            yield f"{own} must not know {part}, got {one.target}"
    if own in DEVICE and one.place == "module":
        at_home = part in DEVICE if part else root in sys.stdlib_module_names
        if not at_home:
            yield f"device code must load only Python's library, got {one.target}"
    if root in SQL and not module.startswith(SQL_HOMES):
        yield f"SQL must stay in {', '.join(SQL_HOMES)}, got {one.target}"
    if root in HTTP and own not in HTTP_HOMES:
        yield f"HTTP must stay in {', '.join(sorted(HTTP_HOMES))}, got {one.target}"
    if root in CLOCKS and RANK[own] < RANK["collector"]:
        parses = module.startswith(DATES) and root == "datetime"
        if own not in CLOCK_HOMES and not parses:
            yield f"nothing below collector must know clocks, got {one.target}"


def reads_the_clock(module: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where a module that may handle dates asks for today's."""
    if module.startswith(DATES):
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in READING_THE_CLOCK:
                yield node.lineno, f"{module} must not read the clock, got {ast.unparse(node)}"


def asks_for_a_name(tree: ast.AST, protocols: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Where the code branches on the name of a protocol instead of asking the protocol."""
    for node in ast.walk(tree):
        asked: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.match_case):
            asked = [node.pattern]
        for side in asked:
            for leaf in ast.walk(side):
                if isinstance(leaf, ast.Constant) and leaf.value in protocols:
                    yield leaf.lineno, f"no protocol must be asked for its name, got {leaf.value!r}"


def asks_for_a_class(module: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where the code asks what an encoding or a channel is, instead of a table or the thing."""
    if module.startswith(("loloha.encodings", "loloha.channels")):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                named = {leaf.id for leaf in ast.walk(kinds) if isinstance(leaf, ast.Name)}
            case ast.Compare(left=ast.Attribute(attr="kind", value=ast.Name(id="encoding"))):
                named = {"kind"} & CLASSES
            case ast.Compare(left=ast.Attribute(attr="kind", value=ast.Attribute(attr="encoding"))):
                named = {"kind"} & CLASSES
            case ast.match_case(pattern=ast.MatchClass(cls=ast.Name(id=name))):
                named = {name}
            case _:
                continue
        for one in sorted(named & CLASSES):
            yield (
                node.lineno if hasattr(node, "lineno") else 1,
                f"no {one} must be asked for: a table or the encoding knows",
            )


@cache
def registered() -> frozenset[str]:
    """Names of all protocols, read from the classes that define them."""
    return frozenset(
        statement.value.value
        for path in sorted((SOURCE / "loloha" / "protocols").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
        and ast.unparse(statement.target) == "name"
        and isinstance(statement.value, ast.Constant)
    )


def module_name(path: Path) -> str:
    """Dotted name of a source file; a package goes by its own name."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = sorted(SOURCE.rglob("*.py"))
MODULES = {module_name(path): path for path in FILES}


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text()) for name, path in MODULES.items()}


def test_every_module_keeps_to_its_layer(trees: dict[str, ast.Module]) -> None:
    problems = [problem for name in trees for problem in misplaced(name, trees[name], registered())]
    assert not problems, "\n".join(problems)


def test_all_protocols_are_known_by_name() -> None:
    assert {"grr", "olh", "rappor", "l-grr", "biloloha", "ololoha", "dbitflippm"} <= registered()


def test_the_picture_shows_every_package_and_none_that_is_not_there() -> None:
    modules = {part_of(name) or "" for name in map(module_name, FILES)} - {""}
    assert {part.partition(".")[0] for part in modules | {"loloha"}} == {
        part.partition(".")[0] for part in RANK
    }
    assert set(RANK) - {"loloha"} <= modules, "the picture names what does not exist"
    assert sum(map(len, LAYERS)) == len(RANK), "the picture names a part twice"


def test_the_page_is_one_page_and_says_of_every_layer_what_it_is() -> None:
    assert len(ARCHITECTURE.split()) <= 700
    picture = ARCHITECTURE.split("```layers\n")[1].split("```")[0].splitlines()
    assert [line for line in picture if not line.partition("|")[2].strip()] == []


def test_the_page_names_places_that_are_there() -> None:
    places = re.findall(r"`([\w.]+/[\w./]*|\w+\.\w+)`", ARCHITECTURE.split("```")[2])
    assert len(places) > 20
    names = {name.removeprefix("loloha.") for name in MODULES}
    assert [
        place
        for place in places
        if place.replace("/", ".").removesuffix(".py").strip(".") not in names
        and not (SOURCE / "loloha" / place).exists()
        and not (SOURCE.parent / place).exists()
    ] == []


def test_no_table_of_encodings_stands_beside_their_parts() -> None:
    assert not [
        module_name(path)
        for path in FILES
        if re.search(r"dict\[(tuple\[)?type\[Encoding\]", path.read_text())
    ]


def test_every_part_is_asked_for_in_the_module_that_it_names() -> None:
    assert len(PARTS) >= 14
    for name in PARTS:
        module, _, _ = name.partition(":")
        place = module if module.startswith("loloha_lab.") else f"loloha.{module}"
        asking = MODULES[place].read_text()
        assert re.search(r"\b[A-Z_]+\.(of|required)\(|part\.(of|required)\(", asking), name


def test_no_modules_import_each_other_in_a_circle(trees: dict[str, ast.Module]) -> None:
    graph = {module: dependencies(module, tree) for module, tree in trees.items()}
    assert circles(graph) == []


def dependencies(module: str, tree: ast.Module) -> set[str]:
    """What a module needs, at any place but the two factories; not the packages that it lies in."""
    known, found = MODULES.keys(), set()
    for one in imports(tree):
        target = one.target if one.target in known else one.target.rpartition(".")[0]
        factory = (module, part_of(target)) in FACTORIES and one.place != "module"
        if target in known and not factory and not f"{module}.".startswith(f"{target}."):
            found.add(target)
    return found


def circles(graph: dict[str, set[str]]) -> list[tuple[str, ...]]:
    """Groups of modules that reach each other, sorted."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = [start]
        while ahead:
            new = graph.get(ahead.pop(), set()) - seen
            seen |= new
            ahead += new
        return seen

    reach = {module: reached(module) for module in graph}
    tied = {module: {m for m in reach[module] if module in reach[m]} for module in graph}
    return sorted({tuple(sorted(group)) for group in tied.values() if group})


def test_a_circle_is_seen() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}
    assert circles(graph) == [("b", "c"), ("d",)]


def planted(name: str, module: str, source: str, says: str) -> object:
    return pytest.param(module, source, says, id=name)


FAULTS = [
    planted("a layer up", "loloha.rng", "from loloha.channels import Pair",
            "layer above"),
    planted("up, in a function", "loloha.server.tally", "def f():\n import loloha.wire",
            "layer above"),
    planted("up, as a module", "loloha.channels", "from loloha import encodings",
            "layer above"),
    planted("up, for types", "loloha.hashing",
            "if TYPE_CHECKING:\n from loloha.server.tally import Tally", "layer above"),
    planted("up, by name", "loloha.wire", "import_module('loloha_lab.paper.grid')",
            "layer above"),
    planted("the lazy package", "loloha.wire", "from loloha import OLOLOHA", "layer above"),
    planted("the command line", "loloha", "from loloha.cli import main", "layer above"),
    planted("a factory at the top", "loloha.protocols.base",
            "from loloha.client import Client", "layer above"),
    planted("a factory elsewhere", "loloha.protocols.table",
            "def f():\n from loloha.client import Client", "layer above"),
    planted("relative", "loloha.datasets.uci", "from . import dataset", "written in full"),
    planted("no place", "loloha.utils", "", "place in LAYERS"),
    planted("up, inside a package", "loloha.server.tally", "from loloha.wire import text",
            "layer above"),
    planted("up, by a documented name", "loloha.rng", "import loloha.client", "layer above"),
    planted("population knows collector", "loloha.population.load_generator",
            "from loloha.collector import store", "must not know"),
    planted("collector knows the laboratory", "loloha.collector.service",
            "import loloha_lab.paper", "layer above"),
    planted("collector knows populations", "loloha.collector.service",
            "import loloha.population", "must not know"),
    planted("numpy on the device", "loloha.encodings", "import numpy as np", "device code"),
    planted("numpy through us", "loloha.hashing",
            "from loloha.arrays import Ints", "device code"),
    planted("numpy in a class", "loloha.client", "class A:\n import numpy", "device code"),
    planted("numpy if present", "loloha.distribution",
            "try:\n import numpy\nexcept ImportError:\n pass", "device code"),
    planted("numpy where types are not checked", "loloha.rng",
            "if TYPE_CHECKING:\n pass\nelse:\n import numpy", "device code"),
    planted("SQL in the service", "loloha.collector.service", "import sqlalchemy", "SQL"),
    planted("SQL in a command", "loloha.cli.tally", "def f():\n import duckdb", "SQL"),
    planted("HTTP in a campaign", "loloha.campaign",
            "from urllib.request import urlopen", "HTTP"),
    planted("HTTP in an engine", "loloha.engines.spark", "import http.client", "HTTP"),
    planted("a clock in the client", "loloha.client", "import time", "clocks"),
    planted("a clock in the wire", "loloha.wire", "from datetime import datetime", "clocks"),
    planted("today in a campaign", "loloha.campaign",
            "from datetime import datetime\nx = datetime.now()", "read the clock"),
    planted("today as a label", "loloha.datasets.table",
            "import datetime\nx = datetime.date.today()", "read the clock"),
    planted("asks for a name", "loloha.server.tally", "if p.name == 'rappor': pass", "'rappor'"),
    planted("asks for one of them", "loloha.cli.run",
            "b = name in ('grr', 'ololoha')", "'ololoha'"),
    planted("asks for a class", "loloha.population",
            "b = isinstance(p.encoding, Hashed | Symbols)", "no Hashed must"),
    planted("asks for one of two", "loloha.privacy.change",
            "if isinstance(channel, (int, BitChannel)): pass", "no BitChannel must"),
    planted("asks for a kind", "loloha.wire.batch", "b = encoding.kind == 'bits'", "no kind must"),
    planted("asks for its kind", "loloha.wire.batch",
            "b = self.encoding.kind in ('bits',)", "no kind must"),
    planted("matches a class", "loloha.engines.sql",
            "match e:\n case Hashed(): pass", "no Hashed must"),
    planted("matches a name", "loloha.engines.duckdb",
            "match name:\n case 'l-grr': pass", "'l-grr'"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "source", "says"), FAULTS)
def test_a_planted_fault_is_seen(module: str, source: str, says: str) -> None:
    problems = misplaced(module, ast.parse(source), registered())
    assert any(says in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "loloha.channels",
            "from fractions import Fraction\nfrom loloha.rng import Rng",
        ),
        (
            "loloha.encodings",
            "def f():\n import numpy as np\n from loloha.counting import kernels",
        ),
        (
            "loloha.encodings",
            "if TYPE_CHECKING:\n from loloha.arrays import Ints",
        ),
        ("loloha.protocols.base", "def f():\n from loloha.client import Client"),
        ("loloha.protocols.table", "from loloha.protocols.base import Protocol"),
        ("loloha.protocols.table", "if name == 'grr': pass"),
        ("loloha.campaign", "from datetime import datetime\nx = datetime.fromisoformat(s)"),
        ("loloha.datasets.label", "from datetime import date"),
        ("loloha.sender.sender", "import time, http.client"),
        ("loloha.wire", "from loloha import __version__"),
        ("loloha.collector.store", "import sqlalchemy, time"),
        ("loloha.cli.run", "import loloha\nfrom loloha import collector, study\nimport time"),
        ("loloha", "def f():\n import_module('loloha.server.tally')"),
        ("loloha.server.tally", "x = table['rappor']"),
    ],
)
def test_what_is_allowed_passes(module: str, source: str) -> None:
    assert misplaced(module, ast.parse(source), registered()) == []
