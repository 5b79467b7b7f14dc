"""`migrate`: bring the database's schema to this program's version."""

import typer

from api import runtime
from api.cli import console
from api.cli.commands import command
from core.errors import SettingsError
from core.settings import Settings, variable
from storage import migrations


def register(app: typer.Typer) -> None:
    command(app, "migrate")(migrate)


async def migrate(settings: Settings) -> None:
    """Bring the database schema to this program's version.

    Safe to repeat, and to run twice at once. The embedded database is migrated by itself.
    """
    async with runtime.postgres(settings, runtime.arm(settings)) as addresses:
        if addresses.owner is None:
            raise SettingsError(f"Migrations need the owner role of the database: set {variable('database_owner_url')}")
        applied = await migrations.migrate(addresses.owner)
    for name in applied:
        console.say(name)
    console.say(f"{console.counted(len(applied), 'migration')} applied" if applied else "the schema is up to date")
