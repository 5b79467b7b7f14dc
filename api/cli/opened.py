"""The runtime opened for a command: the tenant it acts on, and the operator on whose behalf it reads."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from api.runtime import Runtime
from core.errors import InvalidRequest, NotFound, SettingsError
from core.records import Document, Principal, Tenant
from core.settings import Settings, variable
from storage import collections, documents, listing, tenants, users


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


async def chosen_document(at: Opened, wanted: str) -> Document:
    """The one document of that id or path. Errors: NotFound, InvalidRequest where several end so."""
    try:
        matches = await documents.several(at.runtime.db, at.principal, [UUID(wanted)])
    except ValueError:
        matches = await listing.called(at.runtime.db, at.principal, wanted.strip("/"))
    if not matches:
        raise NotFound(f"There is no document '{wanted}'. `intramuros documents` lists them with their ids")
    if len(matches) > 1:
        names = ", ".join(f"{document.collection}: {document.path} ({document.id})" for document in matches[:5])
        raise InvalidRequest(f"{len(matches)} documents are called that: {names}. Give the id of one")
    return matches[0]


def owner(runtime: Runtime) -> str:
    """The owner role's address, which tenants are made with. Raises SettingsError where it is not configured."""
    if runtime.owner_dsn is None:
        raise SettingsError(f"This needs the owner role of the database: set {variable('database_owner_url')}")
    return runtime.owner_dsn
