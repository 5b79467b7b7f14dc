"""The rules that the schema must keep, read from PostgreSQL's own catalogue, and shown to notice a breach."""

import psycopg
import pytest
from psycopg import errors, sql

from core.records import Tenant
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.integration.storage.filling import fill

OURS = "('intramuros', 'checkpoints')"
# The register of tenants and the logs of migrations hold nothing of a tenant's.
GLOBAL = {"tenants", "schema_migrations", "checkpoint_migrations"}

TABLES = f"""
SELECT c.oid, c.relname, n.nspname, c.relispartition, c.relrowsecurity, c.relforcerowsecurity,
       (SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid AND NOT p.polpermissive) AS walls,
       EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id') AS has_tenant,
       r.rolname AS owner
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_roles r ON r.oid = c.relowner
WHERE n.nspname IN {OURS} AND c.relkind IN ('r', 'p')
"""
KEYS = f"""
SELECT c.relname, i.indexrelid::regclass::text AS key, a.attname
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
WHERE c.relnamespace::regnamespace::text IN {OURS} AND i.indisunique
"""
FOREIGN_KEYS = f"""
SELECT c.conname, a.attname FROM pg_constraint c
JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
WHERE c.contype = 'f' AND c.connamespace::regnamespace::text IN {OURS}
"""
PUBLIC_GRANTS = f"""
SELECT c.relname AS name FROM pg_class c, aclexplode(c.relacl) a
WHERE c.relnamespace::regnamespace::text IN {OURS} AND a.grantee = 0
UNION ALL
SELECT p.proname FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
WHERE p.pronamespace::regnamespace::text IN {OURS} AND a.grantee = 0
UNION ALL
SELECT n.nspname FROM pg_namespace n, aclexplode(n.nspacl) a WHERE n.nspname IN {OURS} AND a.grantee = 0
UNION ALL
SELECT d.datname FROM pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
WHERE d.datname = current_database() AND a.grantee = 0
"""
CHILD_GRANTS = f"""
SELECT c.relname FROM pg_class c, aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee
WHERE c.relispartition AND c.relnamespace::regnamespace::text IN {OURS} AND r.rolname = 'intramuros_app'
"""
LOOSE_FUNCTIONS = f"""
SELECT p.proname FROM pg_proc p WHERE p.pronamespace::regnamespace::text IN {OURS} AND p.prosecdef
  AND NOT coalesce(array_to_string(p.proconfig, ',') LIKE '%search_path=%pg_temp%', false)
"""
DEFINERS = f"""
SELECT p.proname, p.proconfig FROM pg_proc p WHERE p.pronamespace::regnamespace::text IN {OURS} AND p.prosecdef
"""
APP_RIGHTS = f"""
SELECT c.relname, string_agg(a.privilege_type, ' ' ORDER BY a.privilege_type) AS rights
FROM pg_class c, aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee
WHERE c.relnamespace::regnamespace::text IN {OURS} AND r.rolname = 'intramuros_app' GROUP BY c.relname
"""
LOOSE_VIEWS = f"""
SELECT c.relname FROM pg_class c WHERE c.relnamespace::regnamespace::text IN {OURS} AND c.relkind IN ('v', 'm')
  AND NOT coalesce('security_invoker=true' = ANY(c.reloptions), false)
"""


@pytest.fixture
async def furnished(database: Database, tenant: Tenant, other_tenant: Tenant, fresh: DatabaseUnderTest) -> str:
    """The owner's address of a database with two tenants and a document in each, so that all partitions are there."""
    await fill(database, tenant.id, "a.md", ["one"])
    await fill(database, other_tenant.id, "a.md", ["one"])
    return fresh.owner_dsn


def ask(dsn: str, query: str) -> list[dict[str, object]]:
    with psycopg.connect(dsn, row_factory=psycopg.rows.dict_row) as connection:
        return connection.execute(sql.SQL(query)).fetchall()


def breaches(dsn: str) -> set[str]:
    """Everything in the schema that breaks a rule, by name."""
    found = set()
    for table in ask(dsn, TABLES):
        name = str(table["relname"])
        walled = table["relrowsecurity"] and table["relforcerowsecurity"] and table["walls"]
        if name not in GLOBAL and not walled:
            found.add(f"no wall: {name}")
        if table["nspname"] == "intramuros" and name not in GLOBAL and not table["has_tenant"]:
            found.add(f"no tenant: {name}")
        if table["owner"] != "intramuros_owner":
            found.add(f"owner: {name}")
    ours = {str(table["relname"]) for table in ask(dsn, TABLES) if table["has_tenant"]}
    found |= {f"key: {r['key']}" for r in ask(dsn, KEYS) if r["relname"] in ours and r["attname"] != "tenant_id"}
    found |= {f"foreign key: {r['conname']}" for r in ask(dsn, FOREIGN_KEYS) if r["attname"] != "tenant_id"}
    found |= {f"public: {r['name']}" for r in ask(dsn, PUBLIC_GRANTS)}
    found |= {f"child: {r['relname']}" for r in ask(dsn, CHILD_GRANTS)}
    found |= {f"definer: {r['proname']}" for r in ask(dsn, LOOSE_FUNCTIONS)}
    found |= {f"view: {r['relname']}" for r in ask(dsn, LOOSE_VIEWS)}
    return found


@pytest.mark.threat(39, 40, 46)
def test_the_schema_keeps_every_rule(furnished: str) -> None:
    assert len([table for table in ask(furnished, TABLES) if table["relispartition"]]) == 16
    assert breaches(furnished) == set()


@pytest.mark.threat(40)
def test_functions_with_their_owners_rights_are_few_and_find_their_tables_by_themselves(furnished: str) -> None:
    found = {str(row["proname"]): str(row["proconfig"]) for row in ask(furnished, DEFINERS)}
    assert set(found) == {
        "find_tenant",
        "add_embedding_set",
        "index_embedding_set",
        "drop_embedding_set",
        "add_audit",
    }
    assert all("search_path=intramuros, " in config and "pg_temp" in config for config in found.values())


@pytest.mark.threat(103)
def test_what_the_app_role_may_only_read(furnished: str) -> None:
    rights = {str(row["relname"]): str(row["rights"]) for row in ask(furnished, APP_RIGHTS)}
    only_read = {name for name, may in rights.items() if may == "SELECT"}
    assert only_read == {"audit", "audit_heads", "schema_migrations", "shelf"}
    assert {may for name, may in rights.items() if name not in only_read} == {"DELETE INSERT SELECT UPDATE"}


@pytest.mark.threat(39, 40)
@pytest.mark.parametrize(
    ("mutation", "breach"),
    [
        ("CREATE TABLE loot (tenant_id uuid PRIMARY KEY)", "no wall: loot"),
        ("CREATE TABLE loot (id uuid)", "no tenant: loot"),
        ("ALTER TABLE turns NO FORCE ROW LEVEL SECURITY", "no wall: turns"),
        ("DROP POLICY tenant_wall ON grants", "no wall: grants"),
        ("CREATE UNIQUE INDEX loot ON collections (id)", "key: intramuros.loot"),
        ("GRANT SELECT ON users TO PUBLIC", "public: users"),
        ("GRANT SELECT ON {child} TO intramuros_app", "child: {child}"),
        (
            "CREATE FUNCTION loot() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';"
            "REVOKE ALL ON FUNCTION loot() FROM PUBLIC",
            "definer: loot",
        ),
        ("CREATE VIEW loot AS SELECT * FROM users", "view: loot"),
    ],
)
def test_a_breach_is_noticed(furnished: str, tenant: Tenant, mutation: str, breach: str) -> None:
    child = f"chunks_{tenant.id.hex}"
    with psycopg.connect(furnished, autocommit=True) as connection:
        connection.execute(
            sql.SQL("SET ROLE intramuros_owner; SET search_path = intramuros; " + mutation.format(child=child))
        )
    assert breach.format(child=child) in breaches(furnished)


@pytest.mark.threat(47)
def test_the_app_role_reads_no_partition_itself(furnished: str, fresh: DatabaseUnderTest) -> None:
    children = [str(table["relname"]) for table in ask(furnished, TABLES) if table["relispartition"]]
    with psycopg.connect(fresh.app_dsn, autocommit=True) as connection:
        for child in children:
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier("intramuros", child)))


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE intramuros.loot (id int)",
        "CREATE TABLE public.loot (id int)",
        "CREATE TEMP TABLE loot (id int)",
        "CREATE SCHEMA loot",
        "SELECT * FROM intramuros.tenants",
        "SET ROLE intramuros_owner",
        "ALTER TABLE intramuros.users DISABLE ROW LEVEL SECURITY",
        "SELECT intramuros.add_partition('chunks', 'loot', 'x')",
        "SELECT intramuros.protect('intramuros.users')",
        "UPDATE intramuros.schema_migrations SET sha256 = ''",
        "INSERT INTO checkpoints.checkpoint_migrations VALUES (99)",
    ],
)
def test_the_app_role_may_not(fresh: DatabaseUnderTest, statement: str) -> None:
    with (
        psycopg.connect(fresh.app_dsn, autocommit=True) as connection,
        pytest.raises(errors.InsufficientPrivilege),
    ):
        connection.execute(sql.SQL(statement))
