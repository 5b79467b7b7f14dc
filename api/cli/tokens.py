"""`tokens`: keys for programs that ask on a user's behalf."""

from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

import typer

from api.cli import console
from api.cli.commands import command, identifier
from api.cli.opened import opened
from api.cli.users import find_user
from core.settings import Settings
from storage import users

app = typer.Typer(help="Create, list and revoke access tokens.", no_args_is_help=True)
User = Annotated[str, typer.Option("--user", "-u", help="The user whose rights the token has.")]


def register(root: typer.Typer) -> None:
    command(app, "create")(create)
    command(app, "list")(listing)
    command(app, "revoke")(revoke)
    root.add_typer(app, name="tokens")


async def create(
    settings: Settings,
    user: User,
    label: Annotated[str, typer.Option("--label", help="What it is for, to know it by in the list.")] = "",
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="Days until it expires.")] = 90,
) -> None:
    """Create an access token and print it: this once only, it cannot be shown again."""
    from api.auth import issue

    async with opened(settings) as at:
        principal = (await find_user(at, user)).principal
        token = await issue(at.runtime.db, principal, label, "api", timedelta(days=days))
    console.say(token)
    valid = console.counted(days, "day")
    console.note(f"Valid for {valid}. Send it as `Authorization: Bearer TOKEN`; it is not shown again")


async def listing(settings: Settings, user: User) -> None:
    """List the access tokens of a user (never the tokens themselves)."""
    async with opened(settings) as at:
        principal = (await find_user(at, user)).principal
        found = await users.list_tokens(at.runtime.db, principal)
    if not found:
        console.note(f"{user} has no tokens")
        return
    console.table(
        ("Label", "Kind", "Created", "Expires", "Id"),
        [(token.label, token.kind, _day(token.created_at), _day(token.expires_at), token.id) for token in found],
    )


async def revoke(
    settings: Settings,
    user: User,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `tokens list` shows it.")],
) -> None:
    """Revoke an access token: it stops working at once."""
    async with opened(settings) as at:
        principal = (await find_user(at, user)).principal
        await users.revoke_token(at.runtime.db, principal, _id(token_id))
    console.say(f"revoked {token_id}")


def _id(text: str) -> UUID:
    return identifier(text, "a token's id. `intramuros tokens list` shows the ids")


def _day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment else "never"
