"""Users, passwords and tokens."""

from datetime import timedelta
from uuid import uuid4

import pytest

from core.errors import AlreadyExists, NotFound
from core.records import Principal, Role, Tenant
from storage import users
from storage.database import Database

TOKEN = "a" * 64


async def test_a_user_is_found_by_name_in_any_case_and_by_id(database: Database, principal: Principal) -> None:
    found = await users.by_name(database, principal.tenant_id, "ERIN")
    assert found == (principal, "$hash")
    assert await users.by_id(database, principal.tenant_id, principal.user_id) == principal
    assert principal.groups == {"staff"}
    assert principal.role is Role.EMPLOYEE


async def test_names_are_taken_in_any_case(database: Database, principal: Principal) -> None:
    with pytest.raises(AlreadyExists):
        await users.create(database, principal.tenant_id, "Erin", "$hash", Role.EMPLOYEE)


async def test_the_operator_is_no_user_to_log_in_as(database: Database, tenant: Tenant, admin: Principal) -> None:
    assert users.operator(tenant.id).is_admin
    assert await users.by_name(database, tenant.id, "operator") is None
    assert await users.by_id(database, tenant.id, users.OPERATOR) is None
    assert [account.principal for account in await users.list_all(database, tenant.id)] == [admin]
    with pytest.raises(NotFound):
        await users.set_password(database, tenant.id, users.OPERATOR, "$hash")
    with pytest.raises(NotFound):
        await users.set_disabled(database, tenant.id, users.OPERATOR, False)


async def test_a_disabled_user_has_no_way_in(database: Database, principal: Principal) -> None:
    tenant_id, user_id = principal.tenant_id, principal.user_id
    await users.add_token(database, principal, TOKEN, "laptop", "api", None)
    await users.set_disabled(database, tenant_id, user_id, True)
    assert await users.by_name(database, tenant_id, "erin") is None
    assert await users.by_id(database, tenant_id, user_id) is None
    assert await users.by_token(database, tenant_id, TOKEN) is None
    assert [account.disabled for account in await users.list_all(database, tenant_id)] == [True]
    await users.set_disabled(database, tenant_id, user_id, False)
    assert await users.by_token(database, tenant_id, TOKEN) == principal


async def test_a_new_password_ends_log_ins_but_not_api_tokens(database: Database, principal: Principal) -> None:
    await users.add_token(database, principal, TOKEN, "laptop", "api", None)
    await users.add_token(database, principal, "b" * 64, "log-in", "cookie", None)
    await users.set_password(database, principal.tenant_id, principal.user_id, "$new")
    found = await users.by_name(database, principal.tenant_id, "erin")
    assert found is not None
    assert found[1] == "$new"
    assert await users.by_token(database, principal.tenant_id, TOKEN) == principal
    assert await users.by_token(database, principal.tenant_id, "b" * 64) is None


async def test_tokens_expire_and_can_be_taken_back(database: Database, principal: Principal) -> None:
    await users.add_token(database, principal, TOKEN, "old", "api", timedelta(seconds=-1))
    kept = await users.add_token(database, principal, "b" * 64, "new", "api", timedelta(hours=1))
    assert await users.by_token(database, principal.tenant_id, TOKEN) is None
    assert await users.by_token(database, principal.tenant_id, "b" * 64) == principal
    assert [token.label for token in await users.list_tokens(database, principal)] == ["old", "new"]
    await users.revoke_token(database, principal, kept)
    assert await users.by_token(database, principal.tenant_id, "b" * 64) is None


async def test_log_ins_that_have_expired_go_with_the_next(database: Database, principal: Principal) -> None:
    await users.add_token(database, principal, TOKEN, "old", "cookie", timedelta(seconds=-1))
    await users.add_token(database, principal, "b" * 64, "new", "cookie", timedelta(hours=1))
    await users.add_token(database, principal, "c" * 64, "newer", "cookie", timedelta(hours=1))
    assert [token.label for token in await users.list_tokens(database, principal)] == ["new", "newer"]


async def test_nobody_takes_back_the_token_of_another(
    database: Database, principal: Principal, admin: Principal
) -> None:
    token = await users.add_token(database, principal, TOKEN, "laptop", "api", None)
    for mine in (token, uuid4()):
        with pytest.raises(NotFound):
            await users.revoke_token(database, admin, mine)
    assert await users.list_tokens(database, admin) == []


async def test_logging_out_forgets_the_token(database: Database, principal: Principal) -> None:
    await users.add_token(database, principal, TOKEN, "log-in", "cookie", None)
    await users.forget_token(database, principal.tenant_id, TOKEN)
    await users.forget_token(database, principal.tenant_id, TOKEN)
    assert await users.by_token(database, principal.tenant_id, TOKEN) is None


async def test_a_token_is_good_in_its_own_tenant_only(
    database: Database, principal: Principal, other_tenant: Tenant
) -> None:
    await users.add_token(database, principal, TOKEN, "laptop", "api", None)
    assert await users.by_token(database, other_tenant.id, TOKEN) is None
    assert await users.by_id(database, other_tenant.id, principal.user_id) is None
