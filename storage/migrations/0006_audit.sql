-- What was done and what was refused, in one chain a tenant and one for the installation (the nil tenant).
--
-- The hash of an entry is made of the one before it and of all that the entry says, so that a row that was altered,
-- removed or put elsewhere shows. The head says how many entries there are and how the last one ends, so that a chain
-- that was cut off shows too. There is no user's text in it: ids, and words of the program.

CREATE TABLE audit_heads (
    tenant_id uuid PRIMARY KEY,
    number bigint NOT NULL,
    hash bytea NOT NULL
);

CREATE TABLE audit (
    tenant_id uuid NOT NULL,
    number bigint NOT NULL CHECK (number > 0),
    at timestamptz NOT NULL,
    actor uuid,
    action text NOT NULL CHECK (action ~ '^[a-z_]+[.][a-z_]+$' AND length(action) <= 60),
    subject text NOT NULL CHECK (subject ~ '^[A-Za-z0-9 _./:{}-]*$' AND length(subject) <= 200),
    trace text NOT NULL CHECK (trace ~ '^[A-Za-z0-9_-]{1,64}$'),
    previous bytea NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (tenant_id, number)
);
COMMENT ON COLUMN audit.actor IS 'A user of the tenant; nil: the operator at the command line; null: nobody known.';

SELECT protect(t::regclass) FROM unnest(ARRAY['audit', 'audit_heads']) t;
GRANT SELECT ON audit, audit_heads TO intramuros_app;

-- The only way to write an entry. The head's row is locked until the caller's transaction ends: entries of one chain
-- come one after the other, and none without what it tells of.
CREATE FUNCTION add_audit(acting uuid, done text, about text, traced text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = intramuros, pg_temp AS $$
DECLARE
    tenant CONSTANT uuid := nullif(current_setting('intramuros.tenant', true), '')::uuid;
    head audit_heads;
    entry audit;
BEGIN
    IF tenant IS NULL THEN
        RAISE EXCEPTION 'no tenant is set';
    END IF;
    INSERT INTO audit_heads (tenant_id, number, hash) VALUES (tenant, 0, '') ON CONFLICT DO NOTHING;
    SELECT * INTO STRICT head FROM audit_heads h WHERE h.tenant_id = tenant FOR UPDATE;
    entry := (tenant, head.number + 1, clock_timestamp(), acting, done, about, traced, head.hash, '');
    entry.hash := sha256(entry.previous || convert_to(concat_ws(E'\n', tenant, entry.number,
        (extract(epoch FROM entry.at) * 1000000)::bigint, coalesce(acting::text, ''), done, about, traced), 'UTF8'));
    INSERT INTO audit SELECT entry.*;
    UPDATE audit_heads h SET number = entry.number, hash = entry.hash WHERE h.tenant_id = tenant;
END $$;
REVOKE ALL ON FUNCTION add_audit(uuid, text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION add_audit(uuid, text, text, text) TO intramuros_app;

-- A chain that has begun is never empty.
DO $$
DECLARE
    one uuid;
BEGIN
    FOR one IN SELECT id FROM tenants UNION ALL SELECT '00000000-0000-0000-0000-000000000000' LOOP
        PERFORM set_config('intramuros.tenant', one::text, true);
        PERFORM add_audit(NULL, 'audit.begun', '', 'migration');
    END LOOP;
    PERFORM set_config('intramuros.tenant', '', true);
END $$;
