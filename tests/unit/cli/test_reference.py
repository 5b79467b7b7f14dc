"""docs/reference/cli.md names every command and every option, and nothing that is not there."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from api.cli.app import app
from core.settings import Settings, variable
from tests.paths import PROJECT

REFERENCE = PROJECT / "docs" / "reference" / "cli.md"
COMMON = {"--home", "--tenant", "--verbose", "-v", "--help"}


def _walk(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    group = getattr(command, "commands", None)
    if group is None or command.invoke_without_command:
        yield path, command
    for name, child in (group or {}).items():
        yield from _walk(child, f"{path} {name}")


COMMANDS = dict(_walk(typer.main.get_command(app), "intramuros"))
COMMANDS.pop("intramuros", None)


def _sections() -> dict[str, str]:
    text = REFERENCE.read_text(encoding="utf-8")
    parts = re.split(r"^## `(intramuros [a-z ]*[a-z])[^`]*`$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _options(command: Any) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts if name.startswith("-")} - COMMON


def test_every_command_is_documented_and_no_other() -> None:
    assert set(_sections()) == set(COMMANDS)


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_every_option_is_documented(path: str) -> None:
    section = _sections()[path]
    missing = [option for option in sorted(_options(COMMANDS[path])) if f"`{option}`" not in section]
    assert missing == []


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_help_and_reference_name_the_variable_of_every_setting(path: str) -> None:
    for parameter in COMMANDS[path].params:
        if parameter.name in Settings.model_fields:
            assert variable(parameter.name) in parameter.help
            if parameter.name not in ("home", "tenant"):
                assert variable(parameter.name) in _sections()[path]


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_every_command_and_option_says_what_it_is_for(path: str) -> None:
    command = COMMANDS[path]
    assert command.help
    assert [parameter.name for parameter in command.params if not getattr(parameter, "help", None)] == []


def test_what_prints_json_is_what_programs_read() -> None:
    speaking = {path for path, command in COMMANDS.items() if "--json" in _options(command)}
    tended = {f"documents {name}" for name in ("show", "revisions", "diff", "quarantine")}
    expected = {
        "ask",
        "search",
        "sync",
        "documents",
        "certify",
        "doctor",
        "evaluate",
        "reembed",
        "synonyms list",
        "collections list",
        "policy show",
        "policy prove",
        "audit list",
        "trace",
        "approvals list",
        "approvals show",
    } | tended
    assert speaking == {f"intramuros {name}" for name in expected}
