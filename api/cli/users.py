"""`users`: who may log in to a tenant."""

import sys
from typing import Annotated

import typer

from api.cli import console
from api.cli.commands import command
from api.cli.opened import Opened, opened
from api.passwords import hash_password
from core.errors import InvalidRequest, NotFound
from core.records import Role
from core.settings import Settings
from storage import users
from storage.users import Account

app = typer.Typer(help="Create, list and disable the users of a tenant.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="The user's log-in name.")]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input instead of asking for it.")
]


def register(root: typer.Typer) -> None:
    command(app, "create")(create)
    command(app, "list")(listing)
    command(app, "disable")(disable)
    command(app, "enable")(enable)
    command(app, "password")(password)
    root.add_typer(app, name="users")


async def create(
    settings: Settings,
    name: Name,
    admin: Annotated[bool, typer.Option("--admin", help="May also tend documents, collections and grants.")] = False,
    group: Annotated[
        list[str] | None, typer.Option("--group", help="A group that collections are granted to; repeatable.")
    ] = None,
    password_stdin: PasswordStdin = False,
) -> None:
    """Create a user. The password is asked for twice, or read from standard input."""
    hashed = hash_password(_ask_password(from_stdin=password_stdin))
    role = Role.ADMIN if admin else Role.EMPLOYEE
    async with opened(settings) as at:
        made = await users.create(at.runtime.db, at.tenant.id, name, hashed, role, frozenset(group or ()))
    console.say(f"created {made.role.value} {made.name} in tenant {at.tenant.slug}")


async def listing(settings: Settings) -> None:
    """List the users of the tenant."""
    async with opened(settings) as at:
        found = await users.list_all(at.runtime.db, at.tenant.id)
    if not found:
        console.note("No users yet. `intramuros users create NAME` makes one")
        return
    console.table(
        ("Name", "Role", "Groups", "State", "Since"),
        [
            (
                account.principal.name,
                account.principal.role.value,
                ", ".join(sorted(account.principal.groups)),
                "disabled" if account.disabled else "active",
                f"{account.created_at:%Y-%m-%d}",
            )
            for account in found
        ],
    )


async def disable(settings: Settings, name: Name) -> None:
    """Disable a user: no log-in, and every token and open page of theirs stops working at once."""
    await _set_disabled(settings, name, disabled=True)


async def enable(settings: Settings, name: Name) -> None:
    """Let a disabled user log in again."""
    await _set_disabled(settings, name, disabled=False)


async def password(settings: Settings, name: Name, password_stdin: PasswordStdin = False) -> None:
    """Set a new password for a user."""
    hashed = hash_password(_ask_password(from_stdin=password_stdin))
    async with opened(settings) as at:
        user = (await find_user(at, name)).principal
        await users.set_password(at.runtime.db, at.tenant.id, user.user_id, hashed)
    console.say(f"changed the password of {name}")


async def find_user(at: Opened, name: str) -> Account:
    """The user of that name, disabled or not. Raises NotFound that says where to look."""
    for account in await users.list_all(at.runtime.db, at.tenant.id):
        if account.principal.name.casefold() == name.casefold():
            return account
    raise NotFound(f"There is no user '{name}' in tenant {at.tenant.slug}. `intramuros users list` shows them")


async def _set_disabled(settings: Settings, name: str, *, disabled: bool) -> None:
    async with opened(settings) as at:
        user = (await find_user(at, name)).principal
        await users.set_disabled(at.runtime.db, at.tenant.id, user.user_id, disabled)
    console.say(f"{'disabled' if disabled else 'enabled'} {name}")


def _ask_password(*, from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise InvalidRequest("There is no terminal to ask for a password. Give it on standard input: --password-stdin")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
