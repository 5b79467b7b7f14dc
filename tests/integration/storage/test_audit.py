"""The audit log: written with what it tells of, never changed unnoticed; where it cannot be written nothing happens."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import psycopg
import pytest
from psycopg import errors, sql

from core.errors import InvalidRequest, StorageError
from core.records import Answer, Outcome, Principal, Role, Tenant
from storage import (
    approvals,
    audit,
    collections,
    documents,
    embedding_sets,
    runs,
    sessions,
    synonyms,
    tenants,
    tending,
    traces,
    users,
)
from storage.audit import INSTALLATION, Head
from storage.database import Database
from storage.users import OPERATOR
from tests.conftest import DatabaseUnderTest
from tests.integration.storage.filling import EMBEDDER, fill, register
from tests.integration.storage.test_embedding_sets import NEW, WIDTH, candidate

TOKEN = "b" * 64


def as_owner(dsn: str, tenant_id: UUID, *statements: str) -> None:
    """What somebody with the owner's rights can do."""
    with psycopg.connect(dsn, options="-c search_path=intramuros,public") as connection:
        connection.execute("SET ROLE intramuros_owner")
        connection.execute("SELECT set_config('intramuros.tenant', %s, true)", (str(tenant_id),))
        for statement in statements:
            connection.execute(sql.SQL(statement))


async def write(database: Database, tenant_id: UUID, count: int) -> None:
    for number in range(count):
        await audit.record(database, tenant_id, None, "login.failed", number)


async def test_a_chain_begins_with_its_tenant_and_is_whole(database: Database, tenant: Tenant) -> None:
    await write(database, tenant.id, 2)
    entries = await audit.listing(database, tenant.id, 10)
    assert [(entry.number, entry.action) for entry in entries] == [
        (3, "login.failed"),
        (2, "login.failed"),
        (1, "tenant.created"),
    ]
    assert (entries[-1].actor, entries[-1].name) == (OPERATOR, "operator")
    verdict = await audit.verify(database, tenant.id)
    assert (verdict.bad, verdict.fault, verdict.head.number) == (None, None, 3)
    assert (await audit.verify(database, INSTALLATION)).fault is None


@pytest.mark.threat(103)
@pytest.mark.parametrize(
    ("statements", "bad", "fault"),
    [
        (["UPDATE audit SET subject = '7' WHERE number = 3"], 3, "altered"),
        (["UPDATE audit SET actor = gen_random_uuid() WHERE number = 3"], 3, "altered"),
        (["UPDATE audit SET at = at - interval '1 microsecond' WHERE number = 3"], 3, "altered"),
        (["DELETE FROM audit WHERE number = 3"], 3, "missing"),
        (["DELETE FROM audit WHERE number = 1"], 1, "missing"),
        (
            [
                "UPDATE audit SET number = 100 WHERE number = 3",
                "UPDATE audit SET number = 3 WHERE number = 4",
                "UPDATE audit SET number = 4 WHERE number = 100",
            ],
            3,
            "moved",
        ),
        (["DELETE FROM audit WHERE number > 3"], 4, "cut_off"),
        (["DELETE FROM audit"], 1, "cut_off"),
        (["DELETE FROM audit_heads"], 6, "cut_off"),
        (["UPDATE audit_heads SET number = 3"], 6, "cut_off"),
        (
            [
                "INSERT INTO audit SELECT tenant_id, 6, at, actor, action, subject, trace, hash, hash "
                "FROM audit WHERE number = 5"
            ],
            6,
            "altered",
        ),
    ],
)  # fmt: skip
async def test_a_change_names_the_first_entry_that_is_wrong(
    database: Database, tenant: Tenant, fresh: DatabaseUnderTest, statements: list[str], bad: int, fault: str
) -> None:
    await write(database, tenant.id, 4)
    as_owner(fresh.owner_dsn, tenant.id, *statements)
    verdict = await audit.verify(database, tenant.id)
    assert (verdict.bad, verdict.fault) == (bad, fault)


@pytest.mark.threat(103)
async def test_a_chain_written_anew_differs_from_a_head_that_was_noted_down(
    database: Database, tenant: Tenant, fresh: DatabaseUnderTest
) -> None:
    await write(database, tenant.id, 4)
    noted = (await audit.verify(database, tenant.id)).head
    await write(database, tenant.id, 1)
    assert (await audit.verify(database, tenant.id, noted)).fault is None
    as_owner(fresh.owner_dsn, tenant.id, "DELETE FROM audit", "DELETE FROM audit_heads")
    await write(database, tenant.id, 3)
    assert (await audit.verify(database, tenant.id)).fault is None
    assert (await audit.verify(database, tenant.id, noted)).fault == "cut_off"
    await write(database, tenant.id, 5)
    verdict = await audit.verify(database, tenant.id, noted)
    assert (verdict.bad, verdict.fault) == (5, "unknown_head")
    assert Head(5, noted.hash) == noted


@pytest.mark.threat(103)
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO intramuros.audit (tenant_id, number) VALUES (gen_random_uuid(), 1)",
        "UPDATE intramuros.audit SET subject = ''",
        "DELETE FROM intramuros.audit",
        "TRUNCATE intramuros.audit",
        "UPDATE intramuros.audit_heads SET number = 0",
        "DELETE FROM intramuros.audit_heads",
        "INSERT INTO intramuros.audit_heads VALUES (gen_random_uuid(), 0, '')",
    ],
)
def test_the_app_role_may_read_and_add_only(fresh: DatabaseUnderTest, statement: str) -> None:
    with psycopg.connect(fresh.app_dsn, autocommit=True) as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute(sql.SQL(statement))


async def test_there_is_no_users_text_in_an_entry(database: Database, tenant: Tenant) -> None:
    for odd in ("What is the cap?", "a\nb", "年假", "x" * 201, "<b>", "a'b"):
        with pytest.raises(InvalidRequest):
            await audit.record(database, tenant.id, None, "login.failed", odd)
    with pytest.raises(InvalidRequest):
        await audit.record(database, tenant.id, None, "Free text")
    assert len(await audit.listing(database, tenant.id, 10)) == 1


async def test_tenants_see_their_own_chain_only(database: Database, tenant: Tenant, other_tenant: Tenant) -> None:
    await write(database, tenant.id, 2)
    assert [entry.action for entry in await audit.listing(database, other_tenant.id, 10)] == ["tenant.created"]
    async with database.transaction(other_tenant.id) as tx:
        cursor = await tx.connection.execute(
            "SELECT count(*) AS n FROM audit WHERE tenant_id <> %s", (other_tenant.id,)
        )
        assert await cursor.fetchone() == {"n": 0}


async def test_a_change_is_recorded_once(database: Database) -> None:
    for digest in ("aa", "aa", "bb", "aa"):
        await audit.record_change(database, "policy.in_force", digest)
    entries = await audit.listing(database, INSTALLATION, 10)
    assert [entry.subject for entry in reversed(entries) if entry.action == "policy.in_force"] == ["aa", "bb", "aa"]


# --- what is recorded -----------------------------------------------------------------------------------------------

Act = Callable[[Database, Principal], Awaitable[object]]


async def _user(db: Database, admin: Principal) -> object:
    return await users.create(db, admin.tenant_id, "new", "$hash", Role.EMPLOYEE)


async def _disable(db: Database, admin: Principal) -> object:
    return await users.set_disabled(db, admin.tenant_id, admin.user_id, True)


async def _password(db: Database, admin: Principal) -> object:
    return await users.set_password(db, admin.tenant_id, admin.user_id, "$other")


async def _token(db: Database, admin: Principal) -> object:
    return await users.add_token(db, admin, "c" * 64, "label", "api", None)


async def _log_in(db: Database, admin: Principal) -> object:
    return await users.add_token(db, admin, "d" * 64, "log-in", "cookie", None)


async def _revoke_token(db: Database, admin: Principal) -> object:
    token = (await users.list_tokens(db, admin))[0]
    return await users.revoke_token(db, admin, token.id)


async def _collection(db: Database, admin: Principal) -> object:
    return await collections.create(db, admin.tenant_id, "new", by=admin.user_id)


async def _collection_of_a_file(db: Database, admin: Principal) -> object:
    return await collections.ensure(db, admin.tenant_id, "new")


async def _owner(db: Database, admin: Principal) -> object:
    home = await collections.by_name(db, admin.tenant_id, "handbook")
    return await collections.set_owner(db, admin.tenant_id, home.id, "HR, ext. 12", by=admin.user_id)


async def _approvers(db: Database, admin: Principal) -> object:
    home = await collections.by_name(db, admin.tenant_id, "handbook")
    return await collections.set_approvers(db, admin.tenant_id, home.id, ["group:legal"], by=admin.user_id)


async def hold(db: Database, tenant_id: UUID) -> None:
    """An answer to the operator that waits to be approved."""
    asker = users.operator(tenant_id)
    session = await sessions.create(db, asker, "s")
    run = await runs.begin(db, asker, session.id, "q", "auto", checkpointed=False)
    answer = Answer(Outcome.WAITING, "q", "q", "a", "en", (), {}, 0)
    await runs.answered(db, asker, run, session.id, answer, (), pending=(answer, ["handbook"]))


async def _approve(db: Database, admin: Principal) -> object:
    held = (await approvals.pending(db, admin))[0]
    return await approvals.decide(db, admin, held.turn_id, approved=True, reason=None)


async def _reject(db: Database, admin: Principal) -> object:
    held = (await approvals.pending(db, admin))[0]
    return await approvals.decide(db, admin, held.turn_id, approved=False, reason="old")


async def _read_trace(db: Database, admin: Principal) -> object:
    run = (await traces.listing(db, admin))[0]
    return await traces.read(db, admin, run.id, "a complaint")


async def _grant(db: Database, admin: Principal) -> object:
    home = await collections.by_name(db, admin.tenant_id, "handbook")
    return await collections.grant(db, admin.tenant_id, home.id, "group:board")


async def _revoke(db: Database, admin: Principal) -> object:
    home = await collections.by_name(db, admin.tenant_id, "handbook")
    return await collections.revoke(db, admin.tenant_id, home.id, "everyone")


async def _date(db: Database, admin: Principal) -> object:
    (document,) = await documents.listing(db, admin)
    return await tending.set_dates(db, admin, document.id, effective_from=None, effective_to=None, supersedes="HR-1")


async def _release(db: Database, admin: Principal) -> object:
    (document,) = await documents.listing(db, admin)
    return await tending.release(db, admin, document.id)


async def _change(db: Database, admin: Principal) -> object:
    home = await collections.by_name(db, admin.tenant_id, "handbook")
    return await register(db, admin.tenant_id, home.id, "a.md", "other words")


async def _add(db: Database, admin: Principal) -> object:
    home = await collections.by_name(db, admin.tenant_id, "handbook")
    return await register(db, admin.tenant_id, home.id, "b.md", "new words")


async def _synonyms(db: Database, admin: Principal) -> object:
    return await synonyms.add(db, admin.tenant_id, ["hotel", "lodging"], by=admin.user_id)


async def _many_synonyms(db: Database, admin: Principal) -> object:
    return await synonyms.add_all(db, admin.tenant_id, [["trip", "journey"], ["fee", "charge"]])


async def _no_synonyms(db: Database, admin: Principal) -> object:
    group = await synonyms.group_of(db, admin.tenant_id, "leave")
    return await synonyms.remove(db, admin.tenant_id, group.id if group else INSTALLATION, "leave")


async def _begin(db: Database, admin: Principal) -> object:
    return await embedding_sets.begin(db, admin.tenant_id, NEW, WIDTH)


async def _delete(db: Database, admin: Principal) -> object:
    (document,) = await documents.listing(db, admin)
    return await tending.delete(db, admin, document.id)


ACTS: dict[str, list[Act]] = {
    "user.created": [_user],
    "user.disabled": [_disable],
    "user.password_set": [_password],
    "token.created": [_token],
    "login.succeeded": [_log_in],
    "token.revoked": [_revoke_token],
    "collection.created": [_collection, _collection_of_a_file],
    "collection.owner_set": [_owner],
    "collection.approval_set": [_approvers],
    "answer.approved": [_approve],
    "answer.rejected": [_reject],
    "trace.read": [_read_trace],
    "grant.given": [_grant],
    "grant.taken": [_revoke],
    "document.changed": [_change],
    "document.dated": [_date],
    "quarantine.released": [_release],
    "vectors.begun": [_begin],
    "document.deleted": [_delete],
    "document.added": [_add],
    "synonym.added": [_synonyms, _many_synonyms],
    "synonym.removed": [_no_synonyms],
}


def state(dsn: str, tenant_id: UUID) -> list[object]:
    """All that the acts change, as text."""
    tables = (
        "users",
        "tokens",
        "collections",
        "grants",
        "documents",
        "chunks",
        "revisions",
        "synonyms",
        "embedding_sets",
        "approvals",
        "readings",
    )
    with psycopg.connect(dsn, options="-c search_path=intramuros,public") as connection:
        connection.execute("SELECT set_config('intramuros.tenant', %s, true)", (str(tenant_id),))
        return [connection.execute(f"SELECT t::text FROM {name} t ORDER BY 1").fetchall() for name in tables]  # type: ignore[arg-type]


@pytest.mark.threat(103)
async def test_every_act_leaves_one_entry_and_none_happens_without(
    database: Database, tenant: Tenant, admin: Principal, fresh: DatabaseUnderTest
) -> None:
    await users.add_token(database, admin, TOKEN, "old", "api", None)
    await fill(database, tenant.id, "a.md", ["obey me", "text"], suspicious=["obey me"])
    await synonyms.add(database, tenant.id, ["leave", "vacation"])
    for _ in range(2):
        await hold(database, tenant.id)
    before, dsn = len(await audit.listing(database, tenant.id, 100)), fresh.owner_dsn
    as_owner(dsn, tenant.id, "REVOKE EXECUTE ON FUNCTION add_audit FROM intramuros_app")
    whole = state(dsn, tenant.id)
    for action, acts in ACTS.items():
        for act in acts:
            with pytest.raises(StorageError):
                await act(database, admin)
            assert state(dsn, tenant.id) == whole, action
    as_owner(dsn, tenant.id, "GRANT EXECUTE ON FUNCTION add_audit TO intramuros_app")
    assert len(await audit.listing(database, tenant.id, 100)) == before
    for action, acts in ACTS.items():
        if action == "collection.created":
            continue
        for act in acts:
            await act(database, admin)
            newest, *others = await audit.listing(database, tenant.id, 100)
            before += 1
            assert (newest.action, len(others) + 1) == (action, before)
    assert (await audit.verify(database, tenant.id)).fault is None


@pytest.mark.threat(103)
async def test_vectors_are_swapped_and_dropped_on_the_record(
    database: Database, tenant: Tenant, fresh: DatabaseUnderTest
) -> None:
    await fill(database, tenant.id, "a.md", ["text"])
    await candidate(database, tenant)

    async def swap(back: bool) -> object:
        return await embedding_sets.swap(database, tenant.id, back=back)

    acts = (
        ("vectors.swapped", NEW, lambda: swap(False)),
        ("vectors.swapped_back", EMBEDDER, lambda: swap(True)),
        ("vectors.dropped", NEW, lambda: embedding_sets.drop(database, tenant.id, NEW)),
    )
    for action, subject, act in acts:
        whole = state(fresh.owner_dsn, tenant.id)
        as_owner(fresh.owner_dsn, tenant.id, "REVOKE EXECUTE ON FUNCTION add_audit FROM intramuros_app")
        with pytest.raises(StorageError):
            await act()
        assert state(fresh.owner_dsn, tenant.id) == whole, action
        as_owner(fresh.owner_dsn, tenant.id, "GRANT EXECUTE ON FUNCTION add_audit TO intramuros_app")
        await act()
        (entry,) = await audit.listing(database, tenant.id, 1)
        assert (entry.actor, entry.action, entry.subject) == (OPERATOR, action, subject)


def test_a_name_of_a_model_is_spelled_in_letters_that_an_entry_may_hold() -> None:
    assert audit.spelled("openai:模型@v1+q4\nx" + "y" * 300)[:20] == "openai:___v1_q4_xyyy"
    assert len(audit.spelled("y" * 300)) == 200


async def test_a_collection_is_recorded_once(database: Database, admin: Principal) -> None:
    for act in (_collection_of_a_file, _collection_of_a_file):
        await act(database, admin)
    entries = await audit.listing(database, admin.tenant_id, 10)
    assert [entry.action for entry in entries].count("collection.created") == 1


@pytest.mark.threat(103)
async def test_what_the_owner_does_is_recorded_too(
    database: Database, tenant: Tenant, fresh: DatabaseUnderTest
) -> None:
    await tenants.remove(fresh.owner_dsn, "demo")
    newest = (await audit.listing(database, INSTALLATION, 1))[0]
    assert (newest.action, newest.subject) == ("tenant.removed", tenants.fingerprint(tenant.id))
    assert await audit.listing(database, tenant.id, 10) == []
