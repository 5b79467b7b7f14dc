-- What every transaction and every connection of the pool does.

-- name: enter
BEGIN;
SELECT set_config('intramuros.tenant', %(tenant)s, true), set_config('intramuros.user', %(user)s, true),
       set_config('application_name', %(application)s, true)

-- name: enter_connection
SELECT set_config('intramuros.tenant', %(tenant)s, false), set_config('intramuros.user', %(user)s, false)

-- name: commit
COMMIT

-- name: reset
RESET ALL

-- name: leftover
SELECT coalesce(current_setting('intramuros.tenant', true), '') || coalesce(current_setting('intramuros.user', true), '')
    AS leftover

-- name: ping
SELECT 1 AS one

-- name: unsafe_role
SELECT r.rolsuper OR r.rolbypassrls OR EXISTS (
        SELECT 1 FROM pg_class c
        WHERE c.relnamespace IN (SELECT n.oid FROM pg_namespace n WHERE n.nspname IN ('intramuros', 'checkpoints', 'procrastinate'))
          AND pg_has_role(r.oid, c.relowner, 'MEMBER')
    ) OR has_database_privilege(current_database(), 'CREATE') OR has_database_privilege(current_database(), 'TEMP')
    AS unsafe, r.rolname AS name
FROM pg_roles r WHERE r.rolname = session_user

-- name: take
SELECT pg_try_advisory_lock(%(key)s) AS taken

-- name: release
SELECT pg_advisory_unlock(%(key)s) AS released

-- name: share
SELECT pg_advisory_lock_shared(%(key)s)

-- name: unshare
SELECT pg_advisory_unlock_shared(%(key)s)

-- name: unshared
SELECT pg_try_advisory_xact_lock(%(key)s) AS free

-- name: ingest_lock
SELECT pg_advisory_xact_lock(%(key)s)
