-- Documents and what is read of them. `readable` is the one access check, used by name below: an admin reads every
-- collection, others those granted to one of their grantees.

-- name: by_bytes
SELECT id FROM documents
WHERE tenant_id = %(tenant)s AND collection_id = %(collection)s AND sha256 = %(sha256)s AND parent_id IS NULL
FOR NO KEY UPDATE

-- name: by_path
SELECT id, parent_id FROM documents
WHERE tenant_id = %(tenant)s AND collection_id = %(collection)s AND path = %(path)s FOR NO KEY UPDATE

-- name: insert
INSERT INTO documents (tenant_id, collection_id, path, sha256, media_type, size, title, source, parent_id)
VALUES (%(tenant)s, %(collection)s, %(path)s, %(sha256)s, %(media_type)s, %(size)s, %(title)s, %(source)s, %(parent)s)
RETURNING id

-- name: new_bytes
UPDATE documents SET sha256 = %(sha256)s, media_type = %(media_type)s, size = %(size)s, title = %(title)s,
    state = 'queued', reason_code = NULL, reason = NULL, attempts = 0, next_attempt_at = NULL, warnings = '[]',
    updated_at = now()
WHERE tenant_id = %(tenant)s AND id = %(id)s

-- name: adopt
UPDATE documents SET source = coalesce(%(source)s, source), parent_id = coalesce(%(parent)s, parent_id)
WHERE tenant_id = %(tenant)s AND id = %(id)s

-- name: requeue
UPDATE documents SET state = 'queued', reason_code = NULL, reason = NULL, attempts = 0, next_attempt_at = NULL,
    updated_at = now()
WHERE tenant_id = %(tenant)s AND id = %(id)s AND (state = 'failed' OR next_attempt_at IS NOT NULL)

-- name: move
WITH RECURSIVE family AS (
    SELECT d.id, d.path FROM documents d WHERE d.tenant_id = %(tenant)s AND d.id = %(id)s
    UNION
    SELECT d.id, d.path FROM documents d JOIN family f ON d.parent_id = f.id WHERE d.tenant_id = %(tenant)s
)
UPDATE documents d SET path = %(path)s || substr(d.path, length(%(old)s) + 1), updated_at = now()
FROM family f WHERE d.tenant_id = %(tenant)s AND d.id = f.id AND (d.id = %(id)s OR starts_with(d.path, %(old)s || '/'))

-- name: processing
UPDATE documents SET state = 'processing', reason_code = NULL, reason = NULL, attempts = attempts + 1,
    next_attempt_at = NULL, updated_at = now()
WHERE tenant_id = %(tenant)s AND id = %(id)s AND state <> 'ready'

-- name: read
UPDATE documents SET state = 'processing', reason_code = NULL, reason = NULL, revision = %(revision)s,
    read_sha256 = sha256, title = %(title)s, pages = %(pages)s, chunks = %(chunks)s, language = %(language)s,
    warnings = %(warnings)s::jsonb, updated_at = now()
WHERE tenant_id = %(tenant)s AND id = %(id)s

-- name: weigh
UPDATE documents d SET quarantined = q.n, updated_at = now(),
    searchable = CASE WHEN d.chunks > q.n THEN 'words' ELSE 'nothing' END
FROM (SELECT count(*) AS n FROM documents d
      JOIN placements p ON p.tenant_id = %(tenant)s AND p.document_id = d.id AND p.revision = d.revision
      JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = p.chunk_id AND c.quarantined
      WHERE d.tenant_id = %(tenant)s AND d.id = %(id)s) q
WHERE d.tenant_id = %(tenant)s AND d.id = %(id)s

-- name: ready
UPDATE documents SET state = 'ready', reason_code = NULL, reason = NULL, attempts = 0, next_attempt_at = NULL,
    searchable = CASE WHEN chunks > quarantined THEN 'meaning' ELSE 'nothing' END, updated_at = now()
WHERE tenant_id = %(tenant)s AND id = %(id)s AND sha256 = %(sha256)s AND read_sha256 = sha256

-- name: fail
UPDATE documents SET state = 'failed', reason_code = %(code)s, reason = %(reason)s, next_attempt_at = NULL,
    updated_at = now()
WHERE tenant_id = %(tenant)s AND id = %(id)s AND sha256 = coalesce(%(sha256)s, sha256)

-- name: retry_later
UPDATE documents SET state = 'queued', reason_code = %(code)s, reason = %(reason)s,
    next_attempt_at = now() + make_interval(secs => %(delay)s), updated_at = now()
WHERE tenant_id = %(tenant)s AND id = %(id)s AND state <> 'ready'

-- name: warn
UPDATE documents SET warnings = %(warnings)s::jsonb, updated_at = now() WHERE tenant_id = %(tenant)s AND id = %(id)s

-- name: sidecar
SELECT sidecar FROM documents WHERE tenant_id = %(tenant)s AND id = %(id)s

-- name: sidecars
SELECT id, sidecar ->> 'sha256' AS sha256 FROM documents
WHERE tenant_id = %(tenant)s AND collection_id = %(collection)s AND sidecar IS NOT NULL

-- name: describe
UPDATE documents SET sidecar = %(sidecar)s::jsonb, updated_at = now() WHERE tenant_id = %(tenant)s AND id = %(id)s

-- name: lock
-- Not so strong that who writes a document found inside this one would wait: it looks whether its parent is there.
SELECT id FROM documents WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE

-- name: some
SELECT * FROM shelf WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s) ORDER BY collection, path

-- name: pending
SELECT * FROM shelf
WHERE tenant_id = %(tenant)s AND state IN ('queued', 'processing') AND coalesce(next_attempt_at <= now(), true)
ORDER BY updated_at, id

-- name: digests
SELECT sha256 FROM documents WHERE tenant_id = %(tenant)s
UNION SELECT sha256 FROM revisions WHERE tenant_id = %(tenant)s

-- name: children
SELECT * FROM shelf WHERE tenant_id = %(tenant)s AND parent_id = %(id)s ORDER BY path

-- name: readable
SELECT d.* FROM shelf d
WHERE d.tenant_id = %(tenant)s AND (%(admin)s OR EXISTS (
    SELECT 1 FROM grants g
    WHERE g.tenant_id = %(tenant)s AND g.collection_id = d.collection_id AND g.grantee = ANY(%(grantees)s)))
  AND (%(ids)s::uuid[] IS NULL OR d.id = ANY(%(ids)s)) AND (%(collection)s::text IS NULL OR d.collection = %(collection)s)
  AND (%(called)s::text IS NULL OR d.path = %(called)s OR right(d.path, length(%(called)s) + 1) = '/' || %(called)s)
ORDER BY d.collection, d.path

-- name: wanted
-- What a list is narrowed to, of the collections that one may read, and what each document is looked for as. {wanted}
-- below stands for it.
SELECT d.id, c.name COLLATE "C" AS collection, d.path COLLATE "C" AS path, d.quarantined, array_remove(ARRAY[
           CASE WHEN d.state IN ('queued', 'processing') THEN 'working' END,
           CASE WHEN d.state = 'failed' THEN 'failed' END,
           CASE WHEN d.quarantined > 0 THEN 'held' END,
           CASE WHEN d.state = 'ready' AND (d.warnings <> '[]' OR d.supersedes_fault IS NOT NULL) THEN 'warned' END,
           CASE WHEN d.superseded_by IS NOT NULL THEN 'superseded' END,
           CASE WHEN d.state = 'ready' THEN 'ready' END], NULL) AS standings
FROM documents d JOIN collections c ON c.tenant_id = %(tenant)s AND c.id = d.collection_id
WHERE d.tenant_id = %(tenant)s AND d.collection_id = ANY(%(collections)s::uuid[])
  AND (%(collection)s::text IS NULL OR c.name = %(collection)s)
  AND (%(parent)s::uuid IS NULL OR d.parent_id = %(parent)s)
  AND NOT EXISTS (
      SELECT 1 FROM unnest(%(terms)s::text[]) t
      WHERE strpos(lower(concat_ws(' ', d.title, d.path, CASE WHEN %(admin)s THEN d.source END)), lower(t)) = 0)

-- name: page
SELECT s.* FROM (
    SELECT w.id, w.collection, w.path FROM ({wanted}) w
    WHERE (%(standing)s::text IS NULL OR %(standing)s = ANY(w.standings))
      AND (%(after_path)s::text IS NULL OR (w.collection, w.path) > (%(after_collection)s, %(after_path)s))
    ORDER BY w.collection, w.path LIMIT %(limit)s) k
JOIN shelf s ON s.tenant_id = %(tenant)s AND s.id = k.id
ORDER BY k.collection, k.path

-- name: tally
SELECT s.standing, count(*) AS documents, sum(w.quarantined)::integer AS passages
FROM ({wanted}) w CROSS JOIN LATERAL unnest(w.standings || 'all'::text) AS s (standing) GROUP BY s.standing

-- name: latest
SELECT s.* FROM (
    SELECT d.id, d.updated_at, d.path FROM documents d
    WHERE d.tenant_id = %(tenant)s AND d.collection_id = ANY(%(collections)s::uuid[]) AND d.state = 'ready'
      AND d.language = %(language)s AND d.chunks BETWEEN 1 AND %(chunks)s
      AND coalesce(d.effective_from <= %(day)s, true) AND coalesce(d.effective_to >= %(day)s, true)
      AND coalesce(d.superseded_from > %(day)s, true)
    ORDER BY d.updated_at DESC, d.path DESC LIMIT %(limit)s) k
JOIN shelf s ON s.tenant_id = %(tenant)s AND s.id = k.id
ORDER BY k.updated_at DESC, k.path DESC

-- name: paths
SELECT d.path FROM documents d JOIN collections c ON c.tenant_id = %(tenant)s AND c.id = d.collection_id
WHERE d.tenant_id = %(tenant)s AND (%(collection)s::text IS NULL OR c.name = %(collection)s)
  AND d.collection_id = ANY(%(collections)s::uuid[])
ORDER BY c.name, d.path

-- name: embedded
SELECT e.document_id, count(*) AS embedded FROM embeddings e
JOIN embedding_sets s ON s.tenant_id = %(tenant)s AND s.embedder_id = e.embedder_id AND s.active
WHERE e.tenant_id = %(tenant)s AND e.document_id = ANY(%(ids)s) AND NOT e.retired GROUP BY e.document_id

-- name: chunks
SELECT p.chunk_id, p.ordinal, c.text, c.heading_path, p.section, p.start_at, p.end_at, c.kind, p.page, p.boxes,
       c.suspicion, c.released
FROM placements p JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = p.chunk_id
WHERE p.tenant_id = %(tenant)s AND p.document_id = %(document)s AND p.revision = %(revision)s
  AND (%(admin)s OR NOT c.quarantined)
ORDER BY p.ordinal

-- name: around
WITH cited AS MATERIALIZED (
    -- A citation opens in the revision that it was made from while that is kept, else in the last that held its chunk.
    SELECT p.revision, p.ordinal FROM placements p
    JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = p.chunk_id AND NOT c.quarantined
    WHERE p.tenant_id = %(tenant)s AND p.document_id = %(document)s AND p.chunk_id = %(chunk)s
    ORDER BY p.revision = %(revision)s DESC, p.revision DESC LIMIT 1
)
SELECT p.chunk_id, p.revision, p.start_at, c.text, c.heading_path, p.page, p.boxes FROM cited
JOIN placements p ON p.tenant_id = %(tenant)s AND p.document_id = %(document)s AND p.revision = cited.revision
  AND p.ordinal BETWEEN cited.ordinal - %(reach)s AND cited.ordinal + %(reach)s
JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = p.chunk_id AND NOT c.quarantined
ORDER BY p.ordinal

-- name: quarantined
SELECT p.document_id, p.chunk_id, p.ordinal, c.text, c.heading_path, p.section, p.start_at, p.end_at, c.kind, p.page,
       p.boxes, c.suspicion, c.released
FROM documents d
JOIN collections o ON o.tenant_id = %(tenant)s AND o.id = d.collection_id
JOIN placements p ON p.tenant_id = %(tenant)s AND p.document_id = d.id AND p.revision = d.revision
JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = p.chunk_id AND c.quarantined
WHERE d.tenant_id = %(tenant)s AND d.quarantined > 0 AND (%(collection)s::text IS NULL OR o.name = %(collection)s)
ORDER BY p.document_id, p.ordinal

-- name: release
UPDATE chunks c SET released = true FROM documents d
JOIN placements p ON p.tenant_id = %(tenant)s AND p.document_id = d.id AND p.revision = d.revision
WHERE d.tenant_id = %(tenant)s AND d.id = %(id)s AND c.tenant_id = %(tenant)s AND c.chunk_id = p.chunk_id
  AND c.quarantined AND (%(chunk_ids)s::int[] IS NULL OR c.chunk_id = ANY(%(chunk_ids)s))

-- name: embed_again
UPDATE documents SET state = 'queued', attempts = 0, next_attempt_at = NULL
WHERE tenant_id = %(tenant)s AND id = %(id)s AND state = 'ready'

-- name: family
WITH RECURSIVE family AS (
    SELECT d.id FROM documents d WHERE d.tenant_id = %(tenant)s AND d.id = %(id)s
    UNION
    SELECT d.id FROM documents d JOIN family f ON d.parent_id = f.id WHERE d.tenant_id = %(tenant)s
)
SELECT id FROM family

-- name: count
SELECT cardinality(%(ids)s::uuid[]) AS documents,
       (SELECT count(*) FROM revisions WHERE tenant_id = %(tenant)s AND document_id = ANY(%(ids)s)) AS revisions,
       (SELECT count(*) FROM chunks WHERE tenant_id = %(tenant)s AND document_id = ANY(%(ids)s)) AS chunks,
       (SELECT count(*) FROM placements WHERE tenant_id = %(tenant)s AND document_id = ANY(%(ids)s)) AS placements,
       (SELECT count(*) FROM embeddings WHERE tenant_id = %(tenant)s AND document_id = ANY(%(ids)s)) AS vectors,
       (SELECT count(*) FROM lex_doc WHERE tenant_id = %(tenant)s AND document_id = ANY(%(ids)s)) AS words,
       (SELECT count(*) FROM turns t WHERE t.tenant_id = %(tenant)s AND EXISTS (
            SELECT 1 FROM jsonb_array_elements(t.citations) c
            WHERE (c ->> 'document_id')::uuid = ANY(%(ids)s))) AS quoting

-- name: delete
DELETE FROM documents WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s)

-- name: depart
-- Whoever watches looks every second or so, and reads everything anew after a gap.
WITH told AS (DELETE FROM departures WHERE tenant_id = %(tenant)s AND at < now() - interval '1 hour')
INSERT INTO departures (tenant_id, document_id) SELECT %(tenant)s, unnest(%(ids)s::uuid[])

-- name: departed
SELECT document_id AS id FROM departures WHERE tenant_id = %(tenant)s AND at > %(since)s
