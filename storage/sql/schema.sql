-- Statements of the migration step, run by the owner. `bootstrap` may need more rights than the owner role has.

-- name: bootstrap
DO $$
BEGIN
    -- Roles belong to the whole server: another of its databases may be migrating at this moment.
    BEGIN
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'intramuros_owner') THEN
            CREATE ROLE intramuros_owner NOLOGIN NOSUPERUSER NOBYPASSRLS;
        END IF;
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'intramuros_app') THEN
            CREATE ROLE intramuros_app LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOINHERIT;
        END IF;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END;
    IF NOT pg_has_role(current_user, 'intramuros_owner', 'SET') THEN
        EXECUTE format('GRANT intramuros_owner TO %I', current_user);
    END IF;
    IF NOT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'vector') THEN
        CREATE EXTENSION vector WITH SCHEMA public;
    END IF;
    CREATE SCHEMA IF NOT EXISTS intramuros AUTHORIZATION intramuros_owner;
    CREATE SCHEMA IF NOT EXISTS checkpoints AUTHORIZATION intramuros_owner;
    CREATE SCHEMA IF NOT EXISTS procrastinate AUTHORIZATION intramuros_owner;
    GRANT USAGE ON SCHEMA intramuros, checkpoints, procrastinate TO intramuros_app;
    -- Rights on a database are not copied by CREATE DATABASE ... TEMPLATE nor by a restore: set them every time.
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO intramuros_app', current_database());
END $$

-- name: become_owner
SET ROLE intramuros_owner

-- name: try_lock
SELECT pg_try_advisory_lock(%(key)s) AS locked

-- name: create_log
CREATE TABLE IF NOT EXISTS intramuros.schema_migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)

-- name: applied
SELECT number, name, sha256 FROM intramuros.schema_migrations ORDER BY number

-- name: record
INSERT INTO intramuros.schema_migrations (number, name, sha256) VALUES (%(number)s, %(name)s, %(sha256)s)

-- name: made_by
SELECT obj_description(%(schema)s::regnamespace, 'pg_namespace') AS made_by

-- name: secure_checkpoints
DO $$
DECLARE
    target regclass;
    tenant CONSTANT text := '(SELECT nullif(current_setting(''intramuros.tenant'', true), ''''))';
    owner CONSTANT text := '(SELECT nullif(current_setting(''intramuros.user'', true), ''''))';
    wall text;
BEGIN
    FOR target IN SELECT c.oid FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'checkpoints'::regnamespace AND c.relkind = 'r' AND a.attname = 'thread_id'
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
        EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
        EXECUTE format('DROP POLICY IF EXISTS known_roles ON %s', target);
        EXECUTE format('DROP POLICY IF EXISTS tenant_wall ON %s', target);
        EXECUTE format('DROP POLICY IF EXISTS user_wall ON %s', target);
        EXECUTE format('CREATE POLICY known_roles ON %s TO intramuros_owner, intramuros_app '
                       'USING (true) WITH CHECK (true)', target);
        wall := format('(split_part(thread_id, '':'', 1) = %s)', tenant);
        EXECUTE format('CREATE POLICY tenant_wall ON %s AS RESTRICTIVE USING %s WITH CHECK %s', target, wall, wall);
        wall := format('(split_part(thread_id, '':'', 2) = %s)', owner);
        EXECUTE format('CREATE POLICY user_wall ON %s AS RESTRICTIVE TO intramuros_app USING %s WITH CHECK %s',
                       target, wall, wall);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO intramuros_app', target);
    END LOOP;
END $$

-- name: empty_queue
DO $$
DECLARE
    target text;
BEGIN
    FOREACH target IN ARRAY ARRAY(
        SELECT format('TABLE IF EXISTS %s', c.oid::regclass) FROM pg_class c
        WHERE c.relnamespace = 'procrastinate'::regnamespace AND c.relkind = 'r'
        UNION ALL
        SELECT format('FUNCTION IF EXISTS %s', p.oid::regprocedure) FROM pg_proc p
        WHERE p.pronamespace = 'procrastinate'::regnamespace
        UNION ALL
        SELECT format('TYPE IF EXISTS %s', t.oid::regtype) FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
        WHERE t.typnamespace = 'procrastinate'::regnamespace AND (t.typtype = 'e' OR c.relkind = 'c')
    ) LOOP
        EXECUTE format('DROP %s CASCADE', target);
    END LOOP;
END $$

-- name: secure_queue
DO $$
BEGIN
    -- A job names a tenant and a document and holds nothing of them, so no wall stands between tenants here: a worker
    -- takes whichever job is due.
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA procrastinate FROM PUBLIC;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA procrastinate TO intramuros_app;
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA procrastinate TO intramuros_app;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA procrastinate TO intramuros_app;
END $$
