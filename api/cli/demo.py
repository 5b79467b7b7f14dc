"""`demo`: from nothing to four answered questions about the sample handbook."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer
from rich.text import Text

from api.cli import console, ingest, models, printing
from api.cli.ask import show
from api.cli.commands import command
from api.cli.opened import owner
from api.passwords import hash_password
from api.runtime import Runtime
from core.errors import IntramurosError, NotFound
from core.records import Answer, Outcome, Principal, Role, Tenant
from core.settings import Settings
from storage import collections, sessions, tenants, users

FOLDER: Final = Path(__file__).resolve().parents[2] / "deploy" / "demo"
COLLECTION: Final = "handbook"
ADMIN: Final = "admin"
SESSION: Final = "Demo"
LOGIN_FILE: Final = "demo-login.txt"


@dataclass(frozen=True, slots=True)
class Planned:
    """A question of the demo and how it must end. `follows`: it only makes sense after the one before."""

    question: str
    follows: bool
    expect: Outcome
    must_include: tuple[str, ...] = ()

    def met_by(self, answer: Answer) -> bool:
        """Whether it ended so: an answer has sources and says what it must."""
        if answer.outcome is not self.expect or not all(words in answer.answer for words in self.must_include):
            return False
        return bool(answer.citations) or self.expect is not Outcome.ANSWERED


def register(app: typer.Typer) -> None:
    command(app, "demo", settings=("cache", "chat_provider", "embed_provider"))(demo)


async def demo(settings: Settings) -> None:
    """Answer four questions about a sample handbook, from nothing.

    Fetches the models, starts the database, reads the handbook, asks. Safe to run again: nothing is read twice.
    """
    planned = plan(FOLDER / "questions.json")
    await models.ensure(settings)
    async with Runtime.open(settings) as runtime:
        tenant, admin = await furnish(runtime)
        summary = ingest.Summary()
        await ingest.read(runtime, tenant.id, COLLECTION, FOLDER / "handbook", summary)
        step("handbook", summary.line())
        for path, reason in summary.failed:
            step("", f"{path}: {reason}")
        opened = await runtime.models(tenant.id)
        step("models", f"{opened.chat.name} ({opened.chat.provider}), embedder {opened.embedder.id}")
        unmet = await converse(runtime, admin, planned)
    if unmet:
        names = "; ".join(f"'{question}'" for question in unmet)
        raise IntramurosError(f"{len(unmet)} of {len(planned)} questions did not end as expected: {names}")
    farewell(settings, planned)


def plan(path: Path) -> list[Planned]:
    """The questions of a file. Raises NotFound where the sample handbook was not installed."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NotFound("The sample handbook is not part of this installation. Run the demo in a clone") from error
    return [
        Planned(row["question"], row["follows_previous"], Outcome(row["expect"]), tuple(row["must_include"]))
        for row in rows
    ]


async def furnish(runtime: Runtime) -> tuple[Tenant, Principal]:
    """The demo's tenant with its collection and administrator, made where they are missing."""
    slug = runtime.settings.tenant
    try:
        tenant = await tenants.get(runtime.db, slug)
    except NotFound:
        tenant = await tenants.create(owner(runtime), slug, slug)
    await collections.ensure(runtime.db, tenant.id, COLLECTION)
    step("database", f"ready in {near(runtime.settings.home)}" if runtime.settings.database_url is None else "ready")
    known = await users.by_name(runtime.db, tenant.id, ADMIN)
    if known is not None:
        step("tenant", f"{slug}, with user {ADMIN}, password in {near(runtime.settings.home / LOGIN_FILE)}")
        return tenant, known[0]
    password = secrets.token_urlsafe(12)
    admin = await users.create(runtime.db, tenant.id, ADMIN, hash_password(password), Role.ADMIN)
    where = keep_login(runtime.settings, slug, password)
    step("tenant", f"{slug}, with user {ADMIN}, password {password} (kept in {near(where)})")
    return tenant, admin


def keep_login(settings: Settings, slug: str, password: str) -> Path:
    """Write how to log in to a file that only this user can read."""
    path = settings.home / LOGIN_FILE
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(f"address  {address(settings)}\ntenant   {slug}\nname     {ADMIN}\npassword {password}\n")
    return path


async def converse(runtime: Runtime, admin: Principal, planned: Sequence[Planned]) -> list[str]:
    """Ask every question and show what comes; the questions that did not end as expected."""
    for session in await sessions.listing(runtime.db, admin):
        if session.title == SESSION:
            await sessions.delete(runtime.db, admin, session.id)
    thread = await sessions.create(runtime.db, admin, SESSION)
    agent, out, unmet = await runtime.agent(admin.tenant_id), console.out(), []
    for position, item in enumerate(planned):
        followed = position + 1 < len(planned) and planned[position + 1].follows
        session_id = thread.id if item.follows or followed else None
        out.print()
        printing.show_question(out, item.question)
        events = agent.ask(admin, item.question, session_id=session_id, collections=[COLLECTION], mode="auto")
        if not item.met_by(await show(events)):
            unmet.append(item.question)
    return unmet


def step(what: str, result: str) -> None:
    """One line of the setting up."""
    console.out().print(Text.assemble((f"{what:<10}", "bold"), console.one_line(result)), soft_wrap=True)


def farewell(settings: Settings, planned: Sequence[Planned]) -> None:
    """Say that it worked, and how to go on."""
    answered = sum(item.expect is Outcome.ANSWERED for item in planned)
    out = console.out()
    out.print()
    out.print(
        f"As it should be: {console.counted(answered, 'question')} answered with sources, "
        f"{len(planned) - answered} refused because the handbook does not say."
    )
    out.print()
    out.print(Text.assemble("Now open the page:  ", ("make serve", "bold"), f",  then  {address(settings)}"))
    out.print(f"Log in as {ADMIN}; the password is in {near(settings.home / LOGIN_FILE)}.")


def near(path: Path) -> str:
    """A path as short as it can be typed here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def address(settings: Settings) -> str:
    """Where the page will be."""
    return f"http://{settings.host}:{settings.port}/"
