"""`audit`: what was done and refused, and whether that record is whole."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Final
from uuid import UUID

import typer

from api.cli import console
from api.cli.commands import Json, command
from api.cli.opened import opened
from api.runtime import Runtime
from core.errors import InvalidRequest
from core.settings import Settings
from storage import audit
from storage.database import Database
from storage.users import OPERATOR

app = typer.Typer(help="Show the audit log, verify that it was not changed.", no_args_is_help=True)

Installation = Annotated[
    bool, typer.Option("--installation", help="The chain of what concerns no single tenant, not the tenant's.")
]
FAULTS: Final = {
    "missing": "is missing",
    "altered": "was altered",
    "moved": "does not follow the one before it",
    "cut_off": "should be there or should not: the chain does not end as its head says",
    "unknown_head": "is not the one that was noted down",
}
_HEAD: Final = re.compile(r"([1-9][0-9]{0,17}):([0-9a-f]{64})")


def register(root: typer.Typer) -> None:
    command(app, "list")(listing)
    command(app, "verify")(verify)
    root.add_typer(app, name="audit")


async def listing(
    settings: Settings,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many, the newest first.")] = 50,
    installation: Installation = False,
    as_json: Json = False,
) -> None:
    """List the last entries of the audit log, newest first."""
    async with _chain(settings, installation) as (db, chain):
        entries = await audit.listing(db, chain, limit)
    rows = [
        (entry.number, f"{entry.at:%Y-%m-%d %H:%M:%S}", _who(entry), entry.action, entry.subject, entry.trace)
        for entry in entries
    ]
    if as_json:
        columns = ("number", "at", "actor", "action", "subject", "trace")
        console.print_json({"entries": [dict(zip(columns, row, strict=True)) for row in rows]})
        return
    console.table(("Entry", "At (UTC)", "By", "What", "About", "Trace"), rows, right=("Entry",))


async def verify(
    settings: Settings,
    installation: Installation = False,
    head: Annotated[
        str, typer.Option("--head", help="A head that was noted down earlier; the chain must still contain it.")
    ] = "",
) -> None:
    """Check that no entry of the audit log was altered, removed or put elsewhere.

    Prints the head, `NUMBER:HASH`. Keep it somewhere else: against it a chain is known that somebody with the owner's
    rights wrote anew.
    """
    known = _head(head) if head else None
    async with _chain(settings, installation) as (db, chain):
        verdict = await audit.verify(db, chain, known)
    if verdict.fault:
        raise InvalidRequest(f"The audit log is not whole: entry {verdict.bad} {FAULTS[verdict.fault]}")
    number = verdict.head.number
    console.say(f"{number} {'entry' if number == 1 else 'entries'}, whole; head {verdict.head}")


@asynccontextmanager
async def _chain(settings: Settings, installation: bool) -> AsyncIterator[tuple[Database, UUID]]:
    """The database and whose chain it is; that of the installation is there before any tenant is."""
    if installation:
        async with Runtime.open(settings) as runtime:
            yield runtime.db, audit.INSTALLATION
    else:
        async with opened(settings) as at:
            yield at.runtime.db, at.tenant.id


def _head(text: str) -> audit.Head:
    match = _HEAD.fullmatch(text)
    if match is None:
        raise InvalidRequest(f"'{text}' is not a head. `intramuros audit verify` prints it: NUMBER:HASH")
    return audit.Head(int(match[1]), match[2])


def _who(entry: audit.Entry) -> str:
    if entry.actor is None:
        return "-"
    return "operator" if entry.actor == OPERATOR else entry.name or str(entry.actor)
