"""The runtime opened for a command: the tenant it acts on, and the operator on whose behalf it reads."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from api.runtime import Runtime
from core.errors import NotFound, SettingsError
from core.records import Principal, Tenant
from core.settings import Settings, variable
from storage import collections, tenants, users


@dataclass(frozen=True, slots=True)
class Opened:
    """`principal` is the tenant's operator: whoever may run commands on this machine may see its documents."""

    runtime: Runtime
    tenant: Tenant
    principal: Principal


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Opened]:
    """Open everything for the tenant of the settings. Errors: those of Runtime.open; NotFound."""
    async with Runtime.open(settings) as runtime:
        tenant = await tenants.get(runtime.db, settings.tenant)
        yield Opened(runtime, tenant, users.operator(tenant.id))


async def chosen_collections(at: Opened, names: Sequence[str] | None) -> list[str] | None:
    """The collections named, None for all. Raises NotFound for one that does not exist, with those that do."""
    if not names:
        return None
    known = [collection.name for collection in await collections.list_visible(at.runtime.db, at.principal)]
    for name in names:
        if name not in known:
            there = f"There are: {', '.join(known)}" if known else "There is none yet: `intramuros ingest` makes one"
            raise NotFound(f"There is no collection '{name}'. {there}")
    return list(names)


def owner(runtime: Runtime) -> str:
    """The owner role's address, which tenants are made with. Raises SettingsError where it is not configured."""
    if runtime.owner_dsn is None:
        raise SettingsError(f"This needs the owner role of the database: set {variable('database_owner_url')}")
    return runtime.owner_dsn
