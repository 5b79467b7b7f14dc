"""`tenants`: the walls that nothing crosses."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from api.cli import console
from api.cli.commands import command
from api.cli.opened import owner
from api.runtime import Runtime
from core.errors import InvalidRequest, StorageError
from core.records import Receipt
from core.settings import Settings
from storage import tenants

app = typer.Typer(help="Create, list and remove tenants.", no_args_is_help=True)
Slug = Annotated[str, typer.Argument(help="Short name: lower-case letters, digits and hyphens.")]


def register(root: typer.Typer) -> None:
    command(app, "create", common=("home",))(create)
    command(app, "list", common=("home",))(listing)
    command(app, "remove", common=("home",))(remove)
    root.add_typer(app, name="tenants")


async def create(
    settings: Settings,
    slug: Slug,
    name: Annotated[str | None, typer.Option("--name", help="Name for people; the short name when absent.")] = None,
) -> None:
    """Create a tenant."""
    async with Runtime.open(settings) as runtime:
        tenant = await tenants.create(owner(runtime), slug, name or slug)
    console.say(f"created tenant {tenant.slug}")
    console.note(f"Next: intramuros users create NAME --tenant {tenant.slug} --admin")


async def listing(settings: Settings) -> None:
    """List the tenants."""
    async with Runtime.open(settings) as runtime:
        found = await tenants.list_all(owner(runtime))
    if not found:
        console.note("No tenants yet. `intramuros tenants create NAME` makes one")
        return
    console.table(("Tenant", "Name", "Id"), [(tenant.slug, tenant.name, tenant.id) for tenant in found])


async def remove(
    settings: Settings,
    slug: Slug,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove a tenant with everything in it. This cannot be undone.

    Users, documents, sessions, queued work and files go, and so does its audit log; the receipt counts what went by
    table. Where something would be left nothing is removed.
    """
    if not yes:
        _confirm(slug)
    async with Runtime.open(settings) as runtime:
        tenant = await tenants.get(runtime.db, slug)
        gone = await tenants.remove(owner(runtime), slug)
        files = await runtime.files.forget(tenant.id)
        left = await runtime.files.left(tenant.id)
    console.receipt(Receipt(gone.what, {**gone.counts, "files": files}))
    if left:
        raise StorageError(f"Nothing is left of tenant {slug} in the database, but on disk: remove {_listed(left)}")
    console.note(
        f"Every table and the whole home folder were looked through: nothing is left of {tenant.id}, whose removal the "
        f"installation's audit log notes as {tenants.fingerprint(tenant.id)}. Backups are not known here: remove it "
        "from yours"
    )


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths[:10])) + (f" and {len(paths) - 10} more" if len(paths) > 10 else "")


def _confirm(slug: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidRequest(f"Removing tenant {slug} cannot be undone. Add --yes to do it without being asked")
    if typer.prompt(f"This removes everything of tenant {slug}. Type its name to go on", err=True) != slug:
        raise InvalidRequest("That is not its name: nothing was removed")
