import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import BootRefused
from policy import boot
from tests.paths import UVLOOP

ROOT = Path(__file__).resolve().parents[3]
TRACING = ["LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING", "LANGCHAIN_TRACING"]


def start(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", **environment},
        timeout=60,
        check=False,
    )


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment of its own for the test, put back afterwards."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    for name in list(os.environ):
        if name.lower() in boot.PROXIES:
            del os.environ[name]
    return monkeypatch


@pytest.mark.threat(7, 9, 12)
def test_every_switch_is_thrown_and_everything_unwanted_is_gone(surroundings: pytest.MonkeyPatch) -> None:
    for name in TRACING:
        os.environ[name] = "true"
    unwanted = ["OLLAMA_HOST", "OLLAMA_API_KEY", "LANGSMITH_ENDPOINT", "LANGCHAIN_API_KEY", "LANGSMITH_PROFILE"]
    unwanted += ["OPENAI_BASE_URL", "OPENAI_API_KEY", "PGSERVICEFILE", "PGHOST", "PYTHONPATH", "HF_TOKEN"]
    unwanted += ["UNSTRUCTURED_ALLOW_PRIVATE_URL", "SSLKEYLOGFILE"]
    os.environ.update(dict.fromkeys(unwanted, "x"))
    boot.seal()
    boot.seal()
    assert {name: os.environ[name] for name in boot.SWITCHES} == boot.SWITCHES
    assert [name for name in unwanted if name in os.environ] == []
    assert [os.environ[name] for name in TRACING] == ["false"] * 4
    boot.verify()


@pytest.mark.threat(10)
@pytest.mark.parametrize("name", ["HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "Http_Proxy"])
def test_a_proxy_is_refused_by_name(name: str, surroundings: pytest.MonkeyPatch) -> None:
    os.environ[name] = "http://user:hunter2@127.0.0.1:3128"
    with pytest.raises(BootRefused, match=name) as caught:
        boot.seal()
    assert "hunter2" not in caught.value.message
    os.environ[name] = ""
    boot.seal()


@pytest.mark.threat(1)
@pytest.mark.parametrize("name", boot.BLIND_LOOPS)
def test_an_event_loop_that_the_hook_cannot_see_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("")
    done = start("from api.main import main; main()", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert name in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.threat(1)
@pytest.mark.skipif(not UVLOOP.is_dir(), reason="run `make test`: it puts uvloop beside the environment")
def test_uvloop_itself_is_refused_installed_or_running() -> None:
    done = start("from api.main import main; main()", PYTHONPATH=str(UVLOOP))
    assert done.returncode == 1
    assert "uvloop is installed" in done.stderr
    running = "import uvloop\nasync def main():\n    from policy import boot\n    boot.seal()\nuvloop.run(main())"
    done = start(running, PYTHONPATH=str(UVLOOP))
    assert "BootRefused: uvloop is installed" in done.stderr


@pytest.mark.threat(1)
def test_a_loop_policy_from_elsewhere_is_refused(surroundings: pytest.MonkeyPatch) -> None:
    class Elsewhere:
        __module__ = "uvloop.loop"

    surroundings.setattr("asyncio.get_event_loop_policy", Elsewhere)
    with pytest.raises(BootRefused, match="uvloop"):
        boot.seal()


@pytest.mark.parametrize("name", boot.SWITCHES)
def test_a_switch_that_no_longer_holds_is_found(name: str, surroundings: pytest.MonkeyPatch) -> None:
    boot.seal()
    os.environ[name] = "something else"
    with pytest.raises(BootRefused, match=name):
        boot.verify()


@pytest.mark.parametrize("name", ["OLLAMA_HOST", "LANGSMITH_API_KEY", "PGSERVICE", "HTTPS_PROXY"])
def test_a_variable_that_came_back_is_found(name: str, surroundings: pytest.MonkeyPatch) -> None:
    boot.seal()
    os.environ[name] = "x"
    with pytest.raises(BootRefused, match=name):
        boot.verify()


@pytest.mark.threat(9)
@pytest.mark.parametrize("name", TRACING)
def test_the_libraries_see_the_switches(name: str) -> None:
    code = """
from policy import boot
from tests.paths import UVLOOP
boot.seal()
import langsmith.utils, langsmith.run_trees, langgraph.checkpoint.serde.jsonplus, pydantic, langchain_core.tracers
boot.verify()
import langgraph.checkpoint.serde._msgpack as msgpack
from pydantic.plugin._loader import get_plugins
print(langsmith.utils.tracing_is_enabled(), msgpack.STRICT_MSGPACK_ENABLED, list(get_plugins()))
"""
    done = start(code, **{name: "true", "LANGSMITH_ENDPOINT": "http://127.0.0.1:9", "LANGSMITH_API_KEY": "k"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False True []"


@pytest.mark.parametrize(
    ("early", "named"),
    [
        ("import langgraph.checkpoint.serde.jsonplus", "langgraph.checkpoint.serde._msgpack"),
        ("import langsmith.utils as u; u.tracing_is_enabled()", "langsmith.utils"),
        ("import langsmith.run_trees as r; r.get_cached_client()", "langsmith.run_trees"),
    ],
)
def test_a_library_that_was_imported_too_early_is_found(early: str, named: str) -> None:
    code = f"{early}\nfrom policy import boot\nboot.seal()\nboot.verify()"
    environment = {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": "http://127.0.0.1:9", "LANGSMITH_API_KEY": "k"}
    done = start(code, **environment)
    assert done.returncode == 1
    assert f"BootRefused: {named} was imported before" in done.stderr


def test_the_boot_module_needs_nothing_but_the_standard_library() -> None:
    names = set()
    for path in (
        ROOT / "policy/boot.py",
        ROOT / "core/errors.py",
        ROOT / "policy/__init__.py",
        ROOT / "core/__init__.py",
    ):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module or ".")
    assert {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names} == {"core.errors"}
