"""The command line: `app` gathers the commands, `run` is what the console entry calls."""

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from api.cli import (
    approvals,
    ask,
    audit,
    certify,
    collections,
    console,
    demo,
    doctor,
    documents,
    evaluate,
    ingest,
    migrate,
    models,
    policy,
    reembed,
    search,
    serve,
    sync,
    synonyms,
    tenants,
    tokens,
    trace,
    users,
    worker,
)
from api.cli.commands import Verbose

app = typer.Typer(
    name="intramuros",
    help="Cited answers from your own documents, by a local model. Nothing leaves your network.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for part in (
    demo,
    serve,
    worker,
    ask,
    search,
    synonyms,
    ingest,
    sync,
    documents,
    collections,
    tenants,
    users,
    tokens,
    models,
    certify,
    evaluate,
    reembed,
    doctor,
    policy,
    audit,
    trace,
    approvals,
    migrate,
):
    part.register(app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (the process's own when None); the exit code: 0, 1 when it failed, 130 when stopped."""
    try:
        return app(args=list(sys.argv[1:] if arguments is None else arguments), standalone_mode=False) or 0
    except typer.TyperException as error:
        console.fail(f"{error.format_message().rstrip('.')}. Run the command with --help to see how it is used")
    except typer.Abort:
        console.fail("stopped before anything was done")
    return 1


def _show_version(wanted: bool) -> None:
    if wanted:
        console.say(f"intramuros {version('intramuros')}")
        raise typer.Exit


@app.callback()
def main(
    verbose: Verbose = False,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Cited answers from your own documents, by a local model. Nothing leaves your network."""
