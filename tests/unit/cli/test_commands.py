"""Options made from settings, and how commands fail."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner, Result

from api.cli.commands import command, explain, group
from core.errors import NotFound
from core.settings import Settings, variable


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()

    @made.callback()
    def main(verbose: Annotated[bool, typer.Option("--verbose", "-v")] = False) -> None: ...

    @command(made, "show", settings=("port",))
    async def show(settings: Settings, word: str, twice: bool = False) -> None:
        """Show what was understood."""
        print(settings.home, settings.tenant, settings.port, word * (2 if twice else 1))

    @command(made, "fail")
    def fail(settings: Settings, how: str) -> None:
        if how == "known":
            raise NotFound("There is no such\nthing")
        if how == "stop":
            raise KeyboardInterrupt
        raise ValueError("odd")

    things = typer.Typer()

    @group(things)
    def listing(settings: Settings) -> None:
        """List things."""
        print("listed", settings.tenant)

    @command(things, "drop")
    def drop(settings: Settings) -> None:
        print("dropped", settings.tenant)

    made.add_typer(things, name="things")
    return made


def call(app: typer.Typer, *arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, arguments, env=env)


def test_options_win_over_variables(app: typer.Typer, tmp_path: Path) -> None:
    env = {variable("home"): str(tmp_path), variable("tenant"): "acme", variable("port"): "8500"}
    assert call(app, "show", "x", env=env).stdout == f"{tmp_path} acme 8500 x\n"
    result = call(app, "show", "x", "--tenant", "beta", "--port", "8600", "--twice", env=env)
    assert result.stdout == f"{tmp_path} beta 8600 xx\n"


def test_a_bad_option_fails_as_a_bad_variable_does(app: typer.Typer) -> None:
    by_option = call(app, "show", "x", "--port", "0")
    by_variable = call(app, "show", "x", env={variable("port"): "0"})
    assert (by_option.exit_code, by_variable.exit_code) == (1, 1)
    assert by_option.stderr == by_variable.stderr
    assert by_option.stderr.startswith("error: INTRAMUROS_PORT: ")


def test_help_names_the_variable_of_every_setting(app: typer.Typer) -> None:
    shown = call(app, "show", "--help").stdout
    assert "Show what was understood." in shown
    for field in ("home", "tenant", "port"):
        assert variable(field) in shown


def test_a_known_error_is_one_line(app: typer.Typer) -> None:
    result = call(app, "fail", "known")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: There is no such thing\n"


def test_an_unexpected_error_is_one_line_with_a_remedy(app: typer.Typer) -> None:
    result = call(app, "fail", "other")
    assert result.exit_code == 1
    assert result.stderr == f"error: {explain(ValueError('odd'))}\n"
    assert "-v" in result.stderr


@pytest.mark.parametrize("arguments", [("fail", "known", "-v"), ("-v", "fail", "known")])
def test_verbose_adds_the_traceback(app: typer.Typer, arguments: tuple[str, ...]) -> None:
    result = call(app, *arguments)
    assert result.exit_code == 1
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.endswith("error: There is no such thing\n")


def test_stopping_is_not_a_crash(app: typer.Typer) -> None:
    result = call(app, "fail", "stop")
    assert result.exit_code == 130
    assert result.stderr.startswith("error: stopped")


def test_a_group_without_command_does_its_own_work(app: typer.Typer) -> None:
    assert call(app, "things", "--tenant", "acme").stdout == "listed acme\n"


def test_a_groups_options_hold_for_its_commands(app: typer.Typer) -> None:
    assert call(app, "things", "--tenant", "acme", "drop").stdout == "dropped acme\n"
    assert call(app, "things", "--tenant", "acme", "drop", "--tenant", "beta").stdout == "dropped beta\n"
