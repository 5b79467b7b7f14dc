"""What every command shares: options made from settings, one way to run, one way to fail."""

import asyncio
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import date
from typing import Annotated, Any, TypeVar
from uuid import UUID

import typer

from api.cli import console
from core import logs
from core.errors import IntramurosError, InvalidRequest
from core.settings import Settings, variable

# Settings that every command takes as options; a command names further ones with `settings=`.
COMMON = ("home", "tenant")
VERBOSE_HELP = f"On failure show the traceback, and log more ({variable('log_level')} says how much is logged)."

Body = TypeVar("Body", bound=Callable[..., Any])
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help=VERBOSE_HELP)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def command(
    app: typer.Typer,
    name: str,
    *,
    settings: Sequence[str] = (),
    common: Sequence[str] = COMMON,
) -> Callable[[Body], Body]:
    """Register a function `body(settings: Settings, ...)`, sync or async, as a command.

    It gets `--home`, `--tenant` and `-v`, and an option for each further setting named. Settings judges the values,
    so a bad option and a bad variable fail alike.
    """

    def register(body: Body) -> Body:
        app.command(name, help=_help(body))(_runner(body, (*settings, *common)))
        return body

    return register


def group(app: typer.Typer) -> Callable[[Body], Body]:
    """Register what a group of commands does when none of them is named. Its options hold for the commands too."""

    def register(body: Body) -> Body:
        app.callback(invoke_without_command=True, help=_help(body))(_runner(body, COMMON))
        return body

    return register


def _help(body: Callable[..., Any]) -> str:
    """The docstring with each paragraph on one line: the terminal's width breaks it, not the source's."""
    paragraphs = (inspect.getdoc(body) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def setting_option(field: str) -> Any:
    """The option of a setting: named after it, explained by it, with its variable and default."""
    info = Settings.model_fields[field]
    default = info.get_default()
    shown = "" if default is None else f", default {default}"
    words = f"{info.description} ({variable(field)}{shown})"
    return typer.Option("--" + field.replace("_", "-"), help=words, show_default=False, metavar="VALUE")


def _runner(body: Callable[..., Any], fields: Sequence[str]) -> Callable[..., None]:
    def run(context: typer.Context, **values: Any) -> None:
        if context.invoked_subcommand is not None:
            return
        own = {name: value for name, value in values.items() if name not in fields and name != "verbose"}
        verbose = bool(_given(context, "verbose"))
        with _failing_well(verbose):
            chosen = {field: _given(context, field) for field in fields}
            settings = Settings.load(**{field: value for field, value in chosen.items() if value is not None})
            logs.configure(settings.log_format, "info" if verbose else settings.log_level)
            with logs.traced():
                result = body(settings, **own)
                if inspect.iscoroutine(result):
                    asyncio.run(result)

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("context", keyword, annotation=typer.Context),
        *(
            parameter.replace(kind=keyword)
            for parameter in list(inspect.signature(body, eval_str=True).parameters.values())[1:]
        ),
        *(
            inspect.Parameter(field, keyword, default=None, annotation=Annotated[str | None, setting_option(field)])
            for field in fields
        ),
        inspect.Parameter("verbose", keyword, default=False, annotation=Verbose),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _given(context: typer.Context, name: str) -> Any:
    """An option's value, given to the command or to a group before it (`intramuros -v documents --home X delete Y`)."""
    at: Any = context  # typer names the type of a parent nowhere public
    while at is not None:
        if at.params.get(name) not in (None, False):
            return at.params[name]
        at = at.parent
    return None


def identifier(text: str, otherwise: str) -> UUID:
    """The id that a text is; where it is none, the error says that it is not what `otherwise` names."""
    try:
        return UUID(text)
    except ValueError as error:
        raise InvalidRequest(f"'{text}' is not {otherwise}") from error


def day(text: str | None) -> date | None:
    """A day given as an option; None for none and for an empty text. Raises InvalidRequest."""
    if text is None or not text.strip():
        return None
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise InvalidRequest(f"'{text}' is not a date. Write it as 2026-01-31") from None


class _failing_well:
    """Turns every failure into one line on standard error and exit code 1, with a traceback when asked for."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None or isinstance(error, (typer.Exit, typer.TyperException)):
            return
        if isinstance(error, KeyboardInterrupt):
            console.fail("stopped. What was finished is kept; run the command again to go on")
            raise typer.Exit(130) from None
        if isinstance(error, BrokenPipeError):
            # The reader (`head`, a pager) went away: nobody is left to tell, and flushing at exit must not complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        if not isinstance(error, Exception):
            return
        if self._verbose:
            traceback.print_exception(error)
        console.fail(explain(error))
        raise typer.Exit(1) from None


def explain(error: Exception) -> str:
    """One line for a person: what happened and what to do."""
    if isinstance(error, IntramurosError):
        return error.message
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"unexpected {what}. Run the command again with -v to see where; `intramuros doctor` checks each part"
