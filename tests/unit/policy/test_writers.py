"""Every way to write a setting that opens something meets the same guard; none is open while the program runs."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from api.app import ROUTERS
from core.errors import IntramurosError, SettingsError
from core.settings import Settings, variable
from policy.egress import Policy
from tests.paths import PROJECT

pytestmark = pytest.mark.threat(102)

# Settings that name somebody to talk to, each with what no guard may let pass.
OPENING = {
    "scope": "public",
    "private_peers": "198.51.100.1:443",
    "ollama_url": "http://198.51.100.1:11434",
    "openai_url": "https://198.51.100.1/v1",
    "rerank_url": "http://198.51.100.1/rerank",
    "search_peer_url": "http://198.51.100.1:9200/pages",
    "database_url": "postgresql://app@198.51.100.1/intramuros",
    "database_owner_url": "postgresql://owner@198.51.100.1/intramuros",
}


def by_variable(name: str, value: str, patch: pytest.MonkeyPatch) -> Settings:
    patch.setenv(variable(name), value)
    return Settings.load()


def by_option(name: str, value: str, _: pytest.MonkeyPatch) -> Settings:
    return Settings.load(**{name: value})


def by_option_over_a_variable(name: str, value: str, patch: pytest.MonkeyPatch) -> Settings:
    patch.setenv(variable("home"), "/tmp")
    return Settings.load(**{name: value})


@pytest.mark.parametrize("name", OPENING)
@pytest.mark.parametrize("write", [by_variable, by_option, by_option_over_a_variable], ids=lambda write: write.__name__)
def test_whoever_writes_it_a_way_out_is_refused(
    name: str, write: Callable[[str, str, pytest.MonkeyPatch], Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(IntramurosError) as refused:
        Policy.of(write(name, OPENING[name], monkeypatch))
    assert refused.value.code in ("boot_refused", SettingsError.code)
    assert variable(name) in refused.value.message


def test_every_setting_that_names_a_server_is_tried_here() -> None:
    naming = {name for name in Settings.model_fields if name.endswith(("_url", "_peers", "_peer")) or name == "scope"}
    assert naming == set(OPENING)


@pytest.mark.parametrize("name", OPENING)
def test_what_was_read_cannot_be_written_over(name: str) -> None:
    settings = Settings.load()
    with pytest.raises((ValidationError, AttributeError)):
        setattr(settings, name, OPENING[name])


def makers(name: str) -> set[str]:
    """Files that call a class of this name, or one of its constructors."""
    found = set()
    for package in ("core", "policy", "storage", "inference", "ingest", "agent", "api"):
        for path in (PROJECT / package).rglob("*.py"):
            calls = (
                ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
            )
            wanted = {name, f"egress.{name}", f"{name}.of", f"{name}.parse", f"{name}.load", f"{name}.model_construct"}
            if wanted & set(calls):
                found.add(path.relative_to(PROJECT).as_posix())
    return found


def test_settings_and_policies_are_made_in_few_places() -> None:
    assert makers("Settings") == {"api/cli/commands.py"}
    # Beside the one in force: those that are only looked at, one handed to a process, and those that deny everything.
    assert makers("Policy") == {
        "api/runtime.py",
        "api/cli/certify.py",
        "api/cli/models.py",
        "policy/attempts.py",
        "ingest/reader.py",
        "inference/llama_server.py",
    }


@pytest.mark.threat(101)
def test_no_route_writes_a_setting() -> None:
    words = {name.replace("_", "-") for name in OPENING} | set(OPENING) | {"settings", "policy"}
    paths = [route.path for router in ROUTERS for route in router.routes if hasattr(route, "path")]
    assert paths
    assert [path for path in paths if words & set(Path(path).parts)] == []
