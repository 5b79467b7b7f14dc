-- The whole first schema. Runs as intramuros_owner with search_path = intramuros, public.
--
-- Rules that a catalogue test holds: every table but `tenants` has tenant_id first in each key, forced row security and
-- a restrictive policy; nothing is granted to PUBLIC; the app role has no right on a partition itself.

CREATE FUNCTION protect(target regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- A sub-select is evaluated once per statement, a bare current_setting() once per row. An empty setting is what
    -- remains after a transaction-local one ends, hence nullif.
    here CONSTANT text := '(tenant_id = (SELECT nullif(current_setting(''intramuros.tenant'', true), '''')::uuid))';
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
    EXECUTE format('CREATE POLICY known_roles ON %s TO intramuros_owner, intramuros_app USING (true) WITH CHECK (true)',
                   target);
    EXECUTE format('CREATE POLICY tenant_wall ON %s AS RESTRICTIVE USING %s WITH CHECK %s', target, here, here);
END $$;
REVOKE ALL ON FUNCTION protect(regclass) FROM PUBLIC;

CREATE TABLE tenants (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    slug text NOT NULL UNIQUE CHECK (slug ~ '^[a-z][a-z0-9-]{0,39}$'),
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE users (
    tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    name text NOT NULL,
    password_hash text,
    role text NOT NULL CHECK (role IN ('admin', 'employee')),
    groups text[] NOT NULL DEFAULT '{}',
    disabled boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX users_name ON users (tenant_id, lower(name));

CREATE TABLE tokens (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    user_id uuid NOT NULL,
    sha256 text NOT NULL,
    label text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('api', 'cookie')),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, sha256),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX tokens_user ON tokens (tenant_id, user_id);

CREATE TABLE collections (
    tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name)
);

CREATE TABLE grants (
    tenant_id uuid NOT NULL,
    collection_id uuid NOT NULL,
    grantee text NOT NULL CHECK (grantee ~ '^(everyone|group:.+|user:[0-9a-f-]{36})$'),
    PRIMARY KEY (tenant_id, collection_id, grantee),
    FOREIGN KEY (tenant_id, collection_id) REFERENCES collections ON DELETE CASCADE
);

-- sha256: the bytes last registered. The stored chunks are made from them only when the state is ready.
CREATE TABLE documents (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    collection_id uuid NOT NULL,
    path text NOT NULL,
    sha256 text NOT NULL,
    media_type text NOT NULL,
    size bigint NOT NULL,
    title text NOT NULL,
    state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'processing', 'ready', 'failed')),
    reason_code text,
    reason text,
    pages integer,
    chunks integer NOT NULL DEFAULT 0,
    language text,
    effective_from date,
    effective_to date,
    supersedes text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, collection_id, path),
    UNIQUE (tenant_id, collection_id, sha256),
    FOREIGN KEY (tenant_id, collection_id) REFERENCES collections ON DELETE CASCADE
);
-- The queue is asked for every minute and on every upload, and holds next to nothing of a large tenant's documents.
CREATE INDEX documents_pending ON documents (tenant_id, updated_at, id) WHERE state IN ('queued', 'processing');

-- chunk_id is dense per tenant, given under the tenant's row in lex_stat, never reused.
CREATE TABLE chunks (
    tenant_id uuid NOT NULL,
    chunk_id integer NOT NULL,
    document_id uuid NOT NULL,
    ordinal integer NOT NULL,
    section integer NOT NULL,
    kind text NOT NULL,
    language text NOT NULL,
    heading_path text[] NOT NULL,
    text text NOT NULL,
    page integer,
    boxes jsonb NOT NULL DEFAULT '[]',
    start_at integer NOT NULL,
    end_at integer NOT NULL,
    PRIMARY KEY (tenant_id, chunk_id),
    UNIQUE (tenant_id, document_id, ordinal),
    FOREIGN KEY (tenant_id, document_id) REFERENCES documents ON DELETE CASCADE
) PARTITION BY LIST (tenant_id);

CREATE TABLE embedding_sets (
    tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    embedder_id text NOT NULL,
    dimension integer NOT NULL CHECK (dimension BETWEEN 1 AND 4000),
    active boolean NOT NULL,
    indexed boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant_id, embedder_id)
);
CREATE UNIQUE INDEX embedding_sets_active ON embedding_sets (tenant_id) WHERE active;

-- Unit vectors. PLAIN: a compressed or toasted vector scans four times slower. The chunk comes before the embedder in
-- the key because a chunk that goes looks here for its vectors; the embedder is told by the partition.
CREATE TABLE embeddings (
    tenant_id uuid NOT NULL,
    embedder_id text NOT NULL,
    chunk_id integer NOT NULL,
    document_id uuid NOT NULL,
    v halfvec NOT NULL,
    PRIMARY KEY (tenant_id, chunk_id, embedder_id),
    FOREIGN KEY (tenant_id, chunk_id) REFERENCES chunks ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, embedder_id) REFERENCES embedding_sets ON DELETE CASCADE
) PARTITION BY LIST (tenant_id);
ALTER TABLE embeddings ALTER v SET STORAGE PLAIN;

-- One row per chunk. w: term -> saturated BM25 weight without idf, dimension 10^9, terms from 1; the lengths of the
-- three fields are kept so that a deletion can take them out of the averages.
CREATE TABLE lex_doc (
    tenant_id uuid NOT NULL,
    chunk_id integer NOT NULL,
    document_id uuid NOT NULL,
    text_length integer NOT NULL,
    title_length integer NOT NULL,
    headings_length integer NOT NULL,
    w sparsevec NOT NULL,
    PRIMARY KEY (tenant_id, chunk_id),
    FOREIGN KEY (tenant_id, chunk_id) REFERENCES chunks ON DELETE CASCADE
) PARTITION BY LIST (tenant_id);
ALTER TABLE lex_doc ALTER w SET STORAGE PLAIN;
CREATE INDEX lex_doc_document ON lex_doc (tenant_id, document_id);
CREATE INDEX embeddings_document ON embeddings (tenant_id, document_id);

-- df: chunks that hold the term, the idf of the moment of asking comes from it. maxw: an upper bound of its weights.
-- docs: those chunks while they are at most 2,000; then the term is dense and docs is null.
CREATE TABLE lex_term (
    tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    term integer NOT NULL,
    df integer NOT NULL,
    maxw real NOT NULL,
    dense boolean NOT NULL DEFAULT false,
    docs integer[],
    PRIMARY KEY (tenant_id, term)
) WITH (fillfactor = 85);
ALTER TABLE lex_term ALTER docs SET STORAGE EXTERNAL;

-- n: live chunks; the sums are of live field lengths; the averages are those that every stored weight was made with.
CREATE TABLE lex_stat (
    tenant_id uuid PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    n integer NOT NULL DEFAULT 0,
    next_chunk integer NOT NULL DEFAULT 1,
    text_sum bigint NOT NULL DEFAULT 0,
    title_sum bigint NOT NULL DEFAULT 0,
    headings_sum bigint NOT NULL DEFAULT 0,
    text_average real NOT NULL,
    title_average real NOT NULL,
    headings_average real NOT NULL
);

CREATE TABLE sessions (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    user_id uuid NOT NULL,
    title text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX sessions_user ON sessions (tenant_id, user_id, updated_at);

CREATE TABLE turns (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    session_id uuid NOT NULL,
    question text NOT NULL,
    standalone_question text NOT NULL,
    answer text NOT NULL,
    outcome text NOT NULL,
    language text NOT NULL,
    citations jsonb NOT NULL,
    timings jsonb NOT NULL,
    model_calls integer NOT NULL,
    notice text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX turns_session ON turns (tenant_id, session_id, created_at);

CREATE TABLE feedback (
    tenant_id uuid NOT NULL,
    turn_id uuid NOT NULL,
    user_id uuid NOT NULL,
    value smallint NOT NULL CHECK (value IN (-1, 1)),
    reason text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, turn_id, user_id),
    FOREIGN KEY (tenant_id, turn_id) REFERENCES turns ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX feedback_user ON feedback (tenant_id, user_id);

SELECT protect(t::regclass) FROM unnest(ARRAY[
    'users', 'tokens', 'collections', 'grants', 'documents', 'chunks', 'embedding_sets', 'embeddings', 'lex_doc',
    'lex_term', 'lex_stat', 'sessions', 'turns', 'feedback']) t;

GRANT SELECT, INSERT, UPDATE, DELETE ON users, tokens, collections, grants, documents, chunks, embedding_sets,
    embeddings, lex_doc, lex_term, lex_stat, sessions, turns, feedback TO intramuros_app;
GRANT SELECT ON schema_migrations TO intramuros_app;

-- The app role may not list tenants: it can only ask for one whose short name it knows.
CREATE FUNCTION find_tenant(wanted text) RETURNS TABLE (id uuid, slug text, name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = intramuros, pg_temp AS $$
    SELECT t.id, t.slug, t.name FROM tenants t WHERE t.slug = wanted;
$$;
REVOKE ALL ON FUNCTION find_tenant(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_tenant(text) TO intramuros_app;

-- Attaching takes a weaker lock on the parent than CREATE TABLE ... PARTITION OF, so that a new tenant does not wait
-- for, nor hold up, the running queries of others.
CREATE FUNCTION add_partition(parent text, child text, key text, sub_key text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = intramuros, public, pg_temp AS $$
BEGIN
    EXECUTE format('CREATE TABLE intramuros.%I (LIKE intramuros.%I INCLUDING ALL)', child, parent)
        || CASE WHEN sub_key IS NULL THEN '' ELSE format(' PARTITION BY LIST (%I)', sub_key) END;
    EXECUTE format('ALTER TABLE intramuros.%I ATTACH PARTITION intramuros.%I FOR VALUES IN (%L)', parent, child, key);
    PERFORM protect(format('intramuros.%I', child)::regclass);
END $$;
REVOKE ALL ON FUNCTION add_partition(text, text, text, text) FROM PUBLIC;

-- Called by the app role before the first vector of a set: makes the set's partition inside the caller's own tenant.
-- Sets that have no vector left go, so that a tenant that was emptied may begin anew with another model.
CREATE FUNCTION add_embedding_set(embedder text, dimensions integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = intramuros, public, pg_temp AS $$
DECLARE
    tenant CONSTANT uuid := nullif(current_setting('intramuros.tenant', true), '')::uuid;
    parent CONSTANT text := 'embeddings_' || replace(tenant::text, '-', '');
    emptied text[];
    old text;
BEGIN
    IF tenant IS NULL THEN
        RAISE EXCEPTION 'no tenant is set';
    END IF;
    SELECT coalesce(array_agg(s.embedder_id), '{}') INTO emptied FROM embedding_sets s
    WHERE s.tenant_id = tenant AND NOT EXISTS (
        SELECT 1 FROM embeddings e WHERE e.tenant_id = tenant AND e.embedder_id = s.embedder_id);
    FOREACH old IN ARRAY emptied LOOP
        EXECUTE format('DROP TABLE intramuros.%I', parent || '_' || left(md5(old), 8));
        DELETE FROM embedding_sets WHERE tenant_id = tenant AND embedder_id = old;
    END LOOP;
    INSERT INTO embedding_sets (tenant_id, embedder_id, dimension, active)
    VALUES (tenant, embedder, dimensions,
            NOT EXISTS (SELECT 1 FROM embedding_sets s WHERE s.tenant_id = tenant AND s.active));
    PERFORM add_partition(parent, parent || '_' || left(md5(embedder), 8), embedder);
END $$;
REVOKE ALL ON FUNCTION add_embedding_set(text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION add_embedding_set(text, integer) TO intramuros_app;

-- One HNSW index per set, over the inner product of unit vectors; made once the set has outgrown exact scans.
CREATE FUNCTION index_embedding_set(embedder text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = intramuros, public, pg_temp AS $$
DECLARE
    tenant CONSTANT uuid := nullif(current_setting('intramuros.tenant', true), '')::uuid;
    child CONSTANT text := 'embeddings_' || replace(tenant::text, '-', '') || '_' || left(md5(embedder), 8);
    dimensions integer;
BEGIN
    UPDATE embedding_sets SET indexed = true
    WHERE tenant_id = tenant AND embedder_id = embedder AND NOT indexed RETURNING dimension INTO dimensions;
    IF FOUND THEN
        EXECUTE format('CREATE INDEX ON intramuros.%I USING hnsw ((v::halfvec(%s)) halfvec_ip_ops)', child, dimensions);
    END IF;
END $$;
REVOKE ALL ON FUNCTION index_embedding_set(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION index_embedding_set(text) TO intramuros_app;
