-- A second set of vectors beside the active one: filled while the first is searched, swapped with it, kept to go back to.

-- filled: it had a vector of every chunk once; before, nothing is searched by it. replaced_at: when the other took its
-- place; null where it never was the active one since it was filled, or is the active one.
ALTER TABLE embedding_sets
    ADD filled boolean NOT NULL DEFAULT false,
    ADD replaced_at timestamptz,
    ADD CHECK (NOT active OR replaced_at IS NULL);

-- At most one active set and one other. Looked at when a statement ends: one statement swaps them.
DROP INDEX embedding_sets_active;
ALTER TABLE embedding_sets
    ADD CONSTRAINT embedding_sets_active EXCLUDE USING btree (tenant_id WITH =) WHERE (active) DEFERRABLE,
    ADD CONSTRAINT embedding_sets_other EXCLUDE USING btree (tenant_id WITH =) WHERE (NOT active) DEFERRABLE;

-- Removes a set that is not the active one, with its partition; how many vectors it had. Searches of the tenant wait for
-- it, so it gives up where others do not make way.
CREATE FUNCTION drop_embedding_set(embedder text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = intramuros, public, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    tenant CONSTANT uuid := nullif(current_setting('intramuros.tenant', true), '')::uuid;
    child CONSTANT text := 'embeddings_' || replace(tenant::text, '-', '') || '_' || left(md5(embedder), 8);
    vectors bigint;
BEGIN
    PERFORM 1 FROM embedding_sets s
    WHERE s.tenant_id = tenant AND s.embedder_id = embedder AND NOT s.active FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT count(*) INTO vectors FROM embeddings e WHERE e.tenant_id = tenant AND e.embedder_id = embedder;
    EXECUTE format('DROP TABLE intramuros.%I', child);
    DELETE FROM embedding_sets s WHERE s.tenant_id = tenant AND s.embedder_id = embedder;
    RETURN vectors;
END $$;
REVOKE ALL ON FUNCTION drop_embedding_set(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION drop_embedding_set(text) TO intramuros_app;
