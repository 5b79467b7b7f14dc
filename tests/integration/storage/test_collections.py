"""Collections and grants."""

from uuid import uuid4

import pytest

from core.errors import AlreadyExists, InvalidRequest, NotFound
from core.records import Principal, Tenant
from storage import collections
from storage.database import Database
from tests.integration.storage.filling import fill


async def names(db: Database, principal: Principal) -> list[str]:
    return [collection.name for collection in await collections.list_visible(db, principal)]


async def test_ensure_makes_once_and_grants_to_everyone(
    database: Database, tenant: Tenant, principal: Principal
) -> None:
    made = await collections.ensure(database, tenant.id, "handbook")
    assert await collections.ensure(database, tenant.id, "handbook") == made
    assert await collections.grants(database, tenant.id, made.id) == ["everyone"]
    await collections.revoke(database, tenant.id, made.id, "everyone")
    await collections.ensure(database, tenant.id, "handbook")
    assert await names(database, principal) == []


async def test_an_employee_sees_what_is_granted_an_admin_everything(
    database: Database, tenant: Tenant, principal: Principal, admin: Principal
) -> None:
    for name, grantee in (
        ("all", "everyone"),
        ("staff", "group:staff"),
        ("board", "group:board"),
        ("mine", f"user:{principal.user_id}"),
        ("yours", f"user:{admin.user_id}"),
    ):
        made = await collections.create(database, tenant.id, name)
        await collections.grant(database, tenant.id, made.id, grantee)
        await collections.grant(database, tenant.id, made.id, grantee)
    assert await names(database, principal) == ["all", "mine", "staff"]
    assert await names(database, admin) == ["all", "board", "mine", "staff", "yours"]


async def test_searchable_documents_are_counted(database: Database, tenant: Tenant, principal: Principal) -> None:
    document = await fill(database, tenant.id, "a.md", ["one"])
    [visible] = await collections.list_visible(database, principal)
    assert visible.documents == 1
    assert visible.updated_at == document.updated_at


async def test_wrong_names_and_grantees_are_refused(database: Database, tenant: Tenant) -> None:
    made = await collections.create(database, tenant.id, "handbook")
    with pytest.raises(AlreadyExists):
        await collections.create(database, tenant.id, "handbook")
    with pytest.raises(InvalidRequest):
        await collections.create(database, tenant.id, "half made", ["everyone", "nobody"])
    with pytest.raises(NotFound):
        await collections.by_name(database, tenant.id, "half made")
    for odd in ("", "all", "group:", "user:erin", "everyone "):
        with pytest.raises(InvalidRequest):
            await collections.grant(database, tenant.id, made.id, odd)
    with pytest.raises(NotFound):
        await collections.grant(database, tenant.id, uuid4(), "everyone")
    with pytest.raises(NotFound):
        await collections.revoke(database, tenant.id, made.id, "everyone")
    with pytest.raises(NotFound):
        await collections.by_name(database, tenant.id, "nothing")


async def test_the_collection_of_another_tenant_can_not_be_granted(
    database: Database, tenant: Tenant, other_tenant: Tenant
) -> None:
    theirs = await collections.ensure(database, other_tenant.id, "theirs")
    with pytest.raises(NotFound):
        await collections.grant(database, tenant.id, theirs.id, "everyone")
