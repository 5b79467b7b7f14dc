-- How often what can be read in a collection was changed, told by every statement that changes it: of that a kept answer
-- depends, and no longer of the rows of all documents.
--
-- A transaction adds a row of its own for each collection, so that no writer waits for another; it counts from when the
-- transaction is committed. Of many rows one is made now and then: their sum is what is asked for.
CREATE TABLE stamps (
    tenant_id uuid NOT NULL,
    collection_id uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    by xid8 NOT NULL DEFAULT pg_current_xact_id(),
    changes bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant_id, collection_id, at, by)
);
COMMENT ON TABLE stamps IS 'The nil collection: who may read what.';
COMMENT ON COLUMN stamps.by IS 'The transaction, with the time at which it began: after a restore numbers begin anew.';

SELECT protect('stamps'::regclass);
GRANT SELECT, INSERT, UPDATE, DELETE ON stamps TO intramuros_app;

-- Makes one row of those that others committed, for each collection. Rows that somebody else is at are left to them.
CREATE FUNCTION fold_stamps() RETURNS void LANGUAGE plpgsql SET search_path = intramuros, pg_temp AS $$
DECLARE
    tenant CONSTANT uuid := nullif(current_setting('intramuros.tenant', true), '')::uuid;
    -- Not 64: transactions that write may come at even distances.
    every CONSTANT integer := 61;
BEGIN
    IF pg_current_xact_id()::text::bigint % every <> 0 THEN
        RETURN;
    END IF;
    WITH gone AS (
        DELETE FROM stamps WHERE tenant_id = tenant AND ctid = ANY(ARRAY(
            SELECT s.ctid FROM stamps s WHERE s.tenant_id = tenant AND s.by <> pg_current_xact_id()
            FOR UPDATE SKIP LOCKED))
        RETURNING collection_id, changes
    )
    INSERT INTO stamps (tenant_id, collection_id, at, changes)
    SELECT tenant, g.collection_id, clock_timestamp(), sum(g.changes) FROM gone g GROUP BY g.collection_id;
END $$;
REVOKE ALL ON FUNCTION fold_stamps() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fold_stamps() TO intramuros_app;

-- `changed` are the rows that a statement wrote or removed, `before` what they were. A collection that goes takes its
-- documents along: nobody asks for its stamps again.
CREATE FUNCTION stamp_documents() RETURNS trigger LANGUAGE plpgsql SET search_path = intramuros, pg_temp AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        INSERT INTO stamps (tenant_id, collection_id)
        SELECT c.tenant_id, c.collection_id FROM changed c UNION SELECT b.tenant_id, b.collection_id FROM before b
        ON CONFLICT DO NOTHING;
    ELSE
        INSERT INTO stamps (tenant_id, collection_id)
        SELECT o.tenant_id, o.id FROM (SELECT DISTINCT c.tenant_id, c.collection_id FROM changed c) c
        JOIN collections o ON o.tenant_id = c.tenant_id AND o.id = c.collection_id
        ON CONFLICT DO NOTHING;
    END IF;
    IF FOUND THEN
        PERFORM fold_stamps();
    END IF;
    RETURN NULL;
END $$;

-- What is made of documents. That goes with a whole document is told by its own row.
CREATE FUNCTION stamp_parts() RETURNS trigger LANGUAGE plpgsql SET search_path = intramuros, pg_temp AS $$
BEGIN
    INSERT INTO stamps (tenant_id, collection_id)
    SELECT DISTINCT d.tenant_id, d.collection_id
    FROM (SELECT DISTINCT c.tenant_id, c.document_id FROM changed c) c
    JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
        PERFORM fold_stamps();
    END IF;
    RETURN NULL;
END $$;

-- Where a collection goes with its grants, what may be read is another list.
CREATE FUNCTION stamp_rights() RETURNS trigger LANGUAGE plpgsql SET search_path = intramuros, pg_temp AS $$
BEGIN
    INSERT INTO stamps (tenant_id, collection_id)
    SELECT DISTINCT o.tenant_id, '00000000-0000-0000-0000-000000000000'::uuid
    FROM changed c JOIN collections o ON o.tenant_id = c.tenant_id AND o.id = c.collection_id
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
        PERFORM fold_stamps();
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION stamp_documents(), stamp_parts(), stamp_rights() FROM PUBLIC;

-- Rows that a statement changes are known to a trigger by its name for them, of one event each.
DO $$
DECLARE
    watched text;
    teller text;
    also text;
BEGIN
    FOR watched, teller, also IN VALUES
        ('documents', 'stamp_documents', 'OLD TABLE AS before'), ('grants', 'stamp_rights', ''),
        ('revisions', 'stamp_parts', ''), ('placements', 'stamp_parts', ''), ('chunks', 'stamp_parts', ''),
        ('embeddings', 'stamp_parts', '')
    LOOP
        EXECUTE format('CREATE TRIGGER stamp_added AFTER INSERT ON %I REFERENCING NEW TABLE AS changed '
                       'FOR EACH STATEMENT EXECUTE FUNCTION %I()', watched, teller);
        EXECUTE format('CREATE TRIGGER stamp_changed AFTER UPDATE ON %I REFERENCING NEW TABLE AS changed %s '
                       'FOR EACH STATEMENT EXECUTE FUNCTION %I()', watched, also, teller);
        EXECUTE format('CREATE TRIGGER stamp_removed AFTER DELETE ON %I REFERENCING OLD TABLE AS changed '
                       'FOR EACH STATEMENT EXECUTE FUNCTION %I()', watched, teller);
    END LOOP;
END $$;
