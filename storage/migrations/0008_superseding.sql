-- Documents that take the place of others: which one is meant, and from which day on the other is not found any more.
--
-- What is said (`documents.supersedes`) is resolved when it is written, so that a search compares one more date and no
-- more. A document keeps to its collection: whoever may read the older one may read the newer one as well.

ALTER TABLE documents
    ADD supersedes_id uuid,
    ADD supersedes_fault text CHECK (supersedes_fault IN ('unknown', 'ambiguous', 'circular')),
    ADD superseded_by uuid,
    ADD superseded_from date;
COMMENT ON COLUMN documents.supersedes_id IS 'The document that `supersedes` names; null: none, or supersedes_fault says why.';
COMMENT ON COLUMN documents.superseded_from IS 'From this day on it is not found: superseded_by is in force instead.';
CREATE INDEX documents_superseding ON documents (tenant_id, collection_id, supersedes) WHERE supersedes IS NOT NULL;
CREATE INDEX documents_supersedes_id ON documents (tenant_id, supersedes_id) WHERE supersedes_id IS NOT NULL;

-- How well a document is what another one, at the path `from_path`, calls `said`: 1 is best, null not at all.
CREATE FUNCTION named_by(said text, from_path text, id uuid, path text, title text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN id::text = said THEN 1
                WHEN path = said OR right(path, length(said) + 1) = '/' || said THEN
                    CASE WHEN path = regexp_replace(from_path, '[^/]*$', '') || said THEN 2 WHEN path = said THEN 3 ELSE 4 END
                WHEN title = said THEN 5 END
$$;

-- All that a document is called by one or another.
CREATE FUNCTION names_of(id uuid, path text, title text) RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY[id::text, title] || ARRAY(
        SELECT array_to_string(parts[first:], '/')
        FROM string_to_array(path, '/') parts, generate_series(1, cardinality(parts)) first)
$$;
REVOKE ALL ON FUNCTION named_by(text, text, uuid, text, text), names_of(uuid, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION named_by(text, text, uuid, text, text), names_of(uuid, text, text) TO intramuros_app;

CREATE OR REPLACE VIEW shelf WITH (security_invoker = true) AS
SELECT d.tenant_id, d.id, d.collection_id, c.name AS collection, d.path, d.title, d.media_type, d.sha256, d.size, d.state,
       d.reason_code, d.reason, d.pages, d.chunks, d.language, d.effective_from, d.effective_to, d.supersedes,
       d.created_at, d.updated_at, d.searchable, d.revision, d.read_sha256, d.warnings, d.quarantined, d.source,
       d.parent_id, d.attempts, d.next_attempt_at,
       d.supersedes_fault, o.id AS older_id, o.title AS older_title,
       CASE WHEN o.superseded_by = d.id THEN o.superseded_from END AS older_until,
       n.id AS newer_id, n.title AS newer_title, d.superseded_from
FROM documents d
JOIN collections c ON c.tenant_id = d.tenant_id AND c.id = d.collection_id
LEFT JOIN documents o ON o.tenant_id = d.tenant_id AND o.id = d.supersedes_id
LEFT JOIN documents n ON n.tenant_id = d.tenant_id AND n.id = d.superseded_by;

-- What was said before is resolved when its documents are next finished: that is at once, as nothing of them is missing.
DO $$
DECLARE
    one uuid;
BEGIN
    FOREACH one IN ARRAY ARRAY(SELECT id FROM tenants) LOOP
        PERFORM set_config('intramuros.tenant', one::text, true);
        UPDATE documents SET state = 'queued', attempts = 0, next_attempt_at = NULL
        WHERE tenant_id = one AND state = 'ready' AND supersedes IS NOT NULL;
    END LOOP;
    PERFORM set_config('intramuros.tenant', '', true);
END $$;
