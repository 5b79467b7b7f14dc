-- Documents that change: dated revisions, chunks that outlive a revision, words before vectors, passages held back.
--
-- A chunk is content and keeps its number, words and vectors for as long as a kept revision holds it; where it stands in
-- a revision is a placement. What a document had before becomes its revision 1, under the numbers it had.

ALTER TABLE documents
    DROP CONSTRAINT documents_tenant_id_collection_id_sha256_key,
    ADD revision integer NOT NULL DEFAULT 0,
    ADD read_sha256 text,
    ADD searchable text NOT NULL DEFAULT 'nothing' CHECK (searchable IN ('nothing', 'words', 'meaning')),
    ADD quarantined integer NOT NULL DEFAULT 0,
    ADD newest_from date,
    ADD warnings jsonb NOT NULL DEFAULT '[]',
    ADD source text,
    ADD parent_id uuid,
    ADD attempts integer NOT NULL DEFAULT 0,
    ADD next_attempt_at timestamptz,
    ADD sidecar jsonb,
    ADD FOREIGN KEY (tenant_id, parent_id) REFERENCES documents ON DELETE CASCADE;
COMMENT ON COLUMN documents.revision IS 'The newest that was read; 0 before the first. Title, pages, chunks, language '
    'and dates are its own.';
COMMENT ON COLUMN documents.read_sha256 IS 'The bytes that the newest revision was read from; null when not known.';
COMMENT ON COLUMN documents.newest_from IS 'From this day on the newest revision is the one in force; null: always; '
    'infinity: never, because an older one begins later.';
COMMENT ON COLUMN documents.sidecar IS 'What a file beside its own says of it, over what that one says.';

-- The same bytes are one document. Not so a file that came inside others: each of them owns a copy and takes it along.
CREATE UNIQUE INDEX documents_bytes ON documents (tenant_id, collection_id, sha256) WHERE parent_id IS NULL;
CREATE INDEX documents_parent ON documents (tenant_id, parent_id) WHERE parent_id IS NOT NULL;

-- dates_set: an admin gave the dates, not the file. said: what the file alone says. in_force_from: null is always.
CREATE TABLE revisions (
    tenant_id uuid NOT NULL,
    document_id uuid NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    sha256 text NOT NULL,
    title text NOT NULL,
    size bigint NOT NULL,
    pages integer,
    chunks integer NOT NULL,
    language text,
    effective_from date,
    effective_to date,
    supersedes text,
    dates_set boolean NOT NULL DEFAULT false,
    said jsonb NOT NULL DEFAULT '{}',
    in_force_from date,
    warnings jsonb NOT NULL DEFAULT '[]',
    confidence jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, document_id, number),
    FOREIGN KEY (tenant_id, document_id) REFERENCES documents ON DELETE CASCADE
);

CREATE TABLE placements (
    tenant_id uuid NOT NULL,
    document_id uuid NOT NULL,
    revision integer NOT NULL,
    ordinal integer NOT NULL,
    chunk_id integer NOT NULL,
    section integer NOT NULL,
    page integer,
    boxes jsonb NOT NULL DEFAULT '[]',
    start_at integer NOT NULL,
    end_at integer NOT NULL,
    PRIMARY KEY (tenant_id, document_id, revision, ordinal),
    FOREIGN KEY (tenant_id, document_id, revision) REFERENCES revisions ON DELETE CASCADE
) PARTITION BY LIST (tenant_id);
CREATE INDEX placements_chunk ON placements (tenant_id, chunk_id);

SELECT protect(t::regclass) FROM unnest(ARRAY['revisions', 'placements']) t;
GRANT SELECT, INSERT, UPDATE, DELETE ON revisions, placements TO intramuros_app;

-- digest: of all that is embedded or indexed of a chunk; '' where that is not known any more. A quarantined chunk has
-- neither words nor vectors.
ALTER TABLE chunks
    ADD title text NOT NULL DEFAULT '',
    ADD digest bytea NOT NULL DEFAULT '',
    ADD suspicion text,
    ADD released boolean NOT NULL DEFAULT false,
    ADD quarantined boolean NOT NULL GENERATED ALWAYS AS (suspicion IS NOT NULL AND NOT released) STORED;
CREATE INDEX chunks_document ON chunks (tenant_id, document_id);
CREATE INDEX chunks_digest ON chunks (tenant_id, digest);

-- Nothing reads what else was kept of a term, and lists of chunks cost more to keep, document by document, than all else.
ALTER TABLE lex_term DROP maxw, DROP dense, DROP docs, DROP CONSTRAINT lex_term_tenant_id_fkey;

-- A foreign key is looked up row by row, with a plan made for each: where there are many rows to a document it took longer
-- than the writing. Words, vectors and placements are written and removed under the lock of their document.
ALTER TABLE lex_doc DROP CONSTRAINT lex_doc_tenant_id_chunk_id_fkey;
ALTER TABLE embeddings DROP CONSTRAINT embeddings_tenant_id_chunk_id_fkey;

-- retired: not in the newest revision. The counts of words in lex_term and lex_stat are of those that are.
ALTER TABLE lex_doc ADD retired boolean NOT NULL DEFAULT false;
ALTER TABLE embeddings ADD retired boolean NOT NULL DEFAULT false;

DO $$
DECLARE
    one uuid;
BEGIN
    FOREACH one IN ARRAY ARRAY(SELECT id FROM tenants) LOOP
        PERFORM set_config('intramuros.tenant', one::text, true);
        PERFORM add_partition('placements', 'placements_' || replace(one::text, '-', ''), one::text);
        -- A document that was not ready had newer bytes registered: those that its chunks came from are not known.
        UPDATE documents SET revision = 1, searchable = CASE WHEN chunks > 0 THEN 'meaning' ELSE 'nothing' END,
            read_sha256 = CASE WHEN state = 'ready' THEN sha256 END, newest_from = effective_from
        WHERE tenant_id = one AND (state = 'ready' OR chunks > 0);
        INSERT INTO revisions (tenant_id, document_id, number, sha256, title, size, pages, chunks, language,
                               effective_from, effective_to, supersedes, said, in_force_from, created_at)
        SELECT tenant_id, id, 1, coalesce(read_sha256, ''), title, size, pages, chunks, language, effective_from,
               effective_to, supersedes, jsonb_strip_nulls(jsonb_build_object('title', title, 'effective_from',
               effective_from, 'effective_to', effective_to, 'supersedes', supersedes)), effective_from, updated_at
        FROM documents WHERE tenant_id = one AND revision = 1;
        INSERT INTO placements (tenant_id, document_id, revision, ordinal, chunk_id, section, page, boxes, start_at, end_at)
        SELECT tenant_id, document_id, 1, ordinal, chunk_id, section, page, boxes, start_at, end_at
        FROM chunks WHERE tenant_id = one;
        UPDATE chunks c SET title = d.title,
            digest = CASE WHEN d.read_sha256 IS NULL THEN ''::bytea ELSE sha256(convert_to(
                array_to_string(ARRAY[c.kind, '', d.title] || c.heading_path, E'\x1f') || E'\n' || c.text, 'UTF8')) END
        FROM documents d WHERE c.tenant_id = one AND d.tenant_id = one AND d.id = c.document_id;
    END LOOP;
    PERFORM set_config('intramuros.tenant', '', true);
END $$;

ALTER TABLE chunks
    DROP ordinal, DROP section, DROP page, DROP boxes, DROP start_at, DROP end_at,
    ALTER title DROP DEFAULT, ALTER digest DROP DEFAULT;

-- Documents as they are shown: without what only statements need, with the name of their collection.
CREATE VIEW shelf WITH (security_invoker = true) AS
SELECT d.tenant_id, d.id, d.collection_id, c.name AS collection, d.path, d.title, d.media_type, d.sha256, d.size, d.state,
       d.reason_code, d.reason, d.pages, d.chunks, d.language, d.effective_from, d.effective_to, d.supersedes,
       d.created_at, d.updated_at, d.searchable, d.revision, d.read_sha256, d.warnings, d.quarantined, d.source,
       d.parent_id, d.attempts, d.next_attempt_at
FROM documents d JOIN collections c ON c.tenant_id = d.tenant_id AND c.id = d.collection_id;
GRANT SELECT ON shelf TO intramuros_app;
