"""What may import what, and who may touch network and environment: from the syntax tree, functions included."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# core <- policy, storage <- inference <- ingest, agent <- api
MAY_IMPORT = {
    "core": set(),
    "policy": {"core"},
    "storage": {"core"},
    "inference": {"core", "policy"},
    "ingest": {"core", "storage", "inference"},
    "agent": {"core", "storage", "inference", "policy"},
    "api": {"core", "policy", "storage", "inference", "ingest", "agent"},
}
# Within the agent, the lowest first: each imports itself and those before it, the modules beside them import all.
AGENT = ("language", "models", "questions", "grounding", "sources", "kept", "workflow")
# (file, module): the exceptions, each with its reason.
EXCEPTIONS = {
    # The document library reads its switches when it is imported, whoever imports it: a worker, a test, a notebook.
    ("ingest/office.py", "policy.boot"),
    # The process that reads documents seals itself: no other part of the program runs in it.
    ("ingest/reader.py", "policy.boot"),
    ("ingest/reader.py", "policy.egress"),
    ("ingest/reader.py", "policy.hook"),
    # What was denied in that process is kept in the one that writes the audit log.
    ("ingest/reading.py", "policy.ledger"),
}
BOOT = {"policy/boot.py", "policy/__init__.py", "core/errors.py", "core/__init__.py"}
ENVIRONMENT = {"core/settings.py", "policy/boot.py"}
RAW_NETWORK = {
    "socket",
    "http.client",
    "urllib.request",
    "urllib3",
    "requests",
    "aiohttp",
    "httpx2",
    "httpcore",
    "websockets",
}
RAW_NETWORK |= {
    "ftplib",
    "smtplib",
    "imaplib",
    "poplib",
    "xmlrpc.client",
    "socketserver",
    "http.server",
    "grpc",
    "pycurl",
}
# Where sockets and raw transports are named: the judge's look-ups, the transport, the tripwire and the proofs of both.
BELOW_CLIENTS = {
    "policy/attempts.py",
    "policy/egress.py",
    "policy/hook.py",
    "policy/transport.py",
    "policy/unseen.py",
    "policy/walls.py",
}
# The queue brings connections of its own, the proof tries to get out through one, the agent knows the errors' names.
DRIVING = {"ingest/queue.py", "policy/unseen.py", "agent/ask.py"}
DRIVERS = {"psycopg", "psycopg_pool", "asyncpg", "sqlalchemy"}
HTTPX_SHORTCUTS = {"get", "post", "put", "patch", "delete", "head", "options", "request", "stream"}
HTTPX_SHORTCUTS |= {"HTTPTransport", "AsyncHTTPTransport"}

SOURCES = sorted(path for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(tree: ast.AST, package: str = "") -> Iterator[str]:
    """Every module that a source may import, at any depth; names imported from a module count as its submodules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = ".".join(filter(None, (package if node.level else "", node.module)))
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and called(node).rpartition(".")[2] in {"import_module", "__import__"}:
            yield from (str(arg.value) for arg in node.args[:1] if isinstance(arg, ast.Constant))


def roots(tree: ast.AST) -> set[str]:
    return {module.partition(".")[0] for module in imported(tree)}


def called(node: ast.Call) -> str:
    return ast.unparse(node.func)


def wrong_imports(name: str, tree: ast.AST) -> list[str]:
    package = name.partition("/")[0]
    parent = name.rpartition("/")[0].replace("/", ".")
    wrong = []
    for module in imported(tree, parent):
        target = module.partition(".")[0]
        inner = module.split(".")[1:2] if target == package == "agent" else []
        if inner and name.count("/") > 1 and inner[0] not in AGENT[: AGENT.index(name.split("/")[1]) + 1]:
            wrong.append(module)
        excepted = any(name == file and module.startswith(allowed) for file, allowed in EXCEPTIONS) or (
            module in {allowed.partition(".")[0] for file, allowed in EXCEPTIONS if name == file}
        )
        if target in MAY_IMPORT and target != package and target not in MAY_IMPORT[package] and not excepted:
            wrong.append(module)
    return wrong


def raw_network(tree: ast.AST) -> list[str]:
    """Uses of a network library that do not go through policy.transport."""
    found = [module for module in imported(tree) if module in RAW_NETWORK or module.startswith("httpx.")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "httpx" and node.attr in HTTPX_SHORTCUTS:
            found.append(f"httpx.{node.attr}")
        if isinstance(node, ast.Call) and called(node) in {"httpx.Client", "httpx.AsyncClient"} and not guarded(node):
            found.append(called(node))
    return found


def guarded(client: ast.Call) -> bool:
    """Whether an httpx client gets the transport of the policy, and neither proxies nor redirects."""
    given = {keyword.arg: keyword.value for keyword in client.keywords}
    unpacked = given.get(None)
    if isinstance(unpacked, ast.Call) and called(unpacked) in {"client_options", "async_client_options"}:
        return True
    calls = {called(node) for node in ast.walk(given.get("transport", ast.Pass())) if isinstance(node, ast.Call)}
    off = [isinstance(v := given.get(k), ast.Constant) and v.value is False for k in ("trust_env", "follow_redirects")]
    return bool(calls & {"transport", "async_transport"}) and all(off)


def environment_uses(tree: ast.AST) -> list[str]:
    names = {"environ", "environb", "getenv", "putenv", "unsetenv"}
    found = [ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr in names]
    return found + [module for module in imported(tree) if module.startswith("os.") and module[3:] in names]


@pytest.mark.threat(114)
@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_the_rules_hold(path: Path) -> None:
    name, tree = relative(path), ast.parse(path.read_text())
    assert wrong_imports(name, tree) == []
    if not name.startswith("policy/"):
        assert raw_network(tree) == [], "network clients are built with policy.transport.client_options"
    if name not in ENVIRONMENT:
        assert environment_uses(tree) == [], "only core/settings.py reads the environment"
    if name in BOOT:
        outside = {module.partition(".")[0] for module in imported(tree)} - sys.stdlib_module_names
        assert outside <= {"core"}, "the boot block runs before any third-party import"


@pytest.mark.threat(114)
def test_what_is_below_the_clients_is_touched_in_few_places() -> None:
    touching = {name for name in map(relative, SOURCES) if raw_network(ast.parse((ROOT / name).read_text()))}
    assert touching == BELOW_CLIENTS
    drivers = {name for name in map(relative, SOURCES) if DRIVERS & roots(ast.parse((ROOT / name).read_text()))}
    assert {name for name in drivers if not name.startswith("storage/")} == DRIVING


def test_every_package_is_looked_at() -> None:
    assert {relative(path).partition("/")[0] for path in SOURCES} == set(MAY_IMPORT)


def test_every_exception_is_still_needed() -> None:
    for name, module in EXCEPTIONS:
        assert module in set(imported(ast.parse((ROOT / name).read_text())))


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("agent/language/x.py", "from agent.grounding.checking import check"),
        ("agent/grounding/x.py", "from agent import ask"),
        ("core/x.py", "import policy"),
        ("core/x.py", "def f():\n    from storage.database import Database"),
        ("policy/x.py", "from storage import tenants"),
        ("storage/x.py", "import policy.egress as e"),
        ("inference/x.py", "if True:\n    import agent.ask"),
        ("ingest/x.py", "from agent import ask"),
        ("ingest/x.py", "from policy import boot"),
        ("ingest/office.py", "from policy import egress"),
        ("agent/x.py", "import importlib\nimportlib.import_module('ingest.parse')"),
        ("agent/x.py", "class A:\n    def f(self):\n        __import__('api')"),
    ],
)
def test_an_import_against_the_direction_is_found(name: str, source: str) -> None:
    assert wrong_imports(name, ast.parse(source)) != []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("api/x.py", "from ingest import parse\nfrom agent import ask"),
        ("agent/x.py", "from . import words\nfrom agent.language.text import cut\nfrom policy import tools"),
        ("ingest/office.py", "def f():\n    from policy import boot"),
    ],
)
def test_an_import_along_the_direction_passes(name: str, source: str) -> None:
    assert wrong_imports(name, ast.parse(source)) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import socket", True),
        ("def f():\n    from urllib import request", True),
        ("import urllib.request", True),
        ("from urllib.parse import unquote", False),
        ("from httpx import Client", True),
        ("import httpx\nhttpx.get('x')", True),
        ("import httpx\nhttpx.Client()", True),
        ("import httpx\nhttpx.AsyncClient(trust_env=False, follow_redirects=False)", True),
        ("import httpx\nhttpx.Client(transport=transport(p, 'model'))", True),
        ("import httpx\nhttpx.Client(transport=httpx.HTTPTransport(), trust_env=False, follow_redirects=False)", True),
        ("import httpx\nhttpx.Client(transport=transport(p, 'm'), trust_env=False, follow_redirects=False)", False),
        ("import httpx\nhttpx.AsyncClient(**async_client_options(p, 'm'), timeout=3)", False),
    ],
)
def test_a_raw_network_client_is_found(source: str, found: bool) -> None:
    assert bool(raw_network(ast.parse(source))) is found


@pytest.mark.parametrize(
    "source", ["import os\nos.environ['A']", "import os\nos.getenv('A')", "from os import environ"]
)
def test_a_use_of_the_environment_is_found(source: str) -> None:
    assert environment_uses(ast.parse(source)) != []
