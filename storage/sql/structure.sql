-- What may be read beside a search: which documents there are, how one is built, where a text stands. {readable} is the
-- fragment of search.sql: nothing is seen here that a search would not see.

-- name: shelf
SELECT r.id AS document_id, v.title, d.path, d.collection, v.pages, v.effective_from, v.effective_to,
       count(*) OVER () AS total
FROM ({readable}) r
JOIN shelf d ON d.tenant_id = %(tenant)s AND d.id = r.id
JOIN revisions v ON v.tenant_id = %(tenant)s AND v.document_id = r.id AND v.number = r.revision
WHERE %(about)s::text IS NULL OR v.title ILIKE %(about)s OR d.path ILIKE %(about)s
ORDER BY d.collection, d.path LIMIT %(most)s

-- name: outline
SELECT x.chunk_id, x.revision FROM (
    SELECT DISTINCT ON (c.heading_path) p.chunk_id, p.revision, p.ordinal
    FROM ({readable}) r
    JOIN placements p ON p.tenant_id = %(tenant)s AND p.document_id = r.id AND p.revision = r.revision
    JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = p.chunk_id AND NOT c.quarantined
    WHERE r.id = %(document)s
    ORDER BY c.heading_path, p.ordinal) x
ORDER BY x.ordinal LIMIT %(most)s

-- name: around
SELECT n.chunk_id, n.revision
FROM ({readable}) r
JOIN placements p ON p.tenant_id = %(tenant)s AND p.document_id = r.id AND p.revision = r.revision
JOIN placements n ON n.tenant_id = %(tenant)s AND n.document_id = r.id AND n.revision = r.revision
  AND n.ordinal BETWEEN p.ordinal - 1 AND p.ordinal + 1
JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = n.chunk_id AND NOT c.quarantined
WHERE r.id = %(document)s AND p.chunk_id = %(chunk)s
ORDER BY n.chunk_id <> %(chunk)s, n.ordinal DESC

-- name: patience
SELECT set_config('statement_timeout', %(milliseconds)s, true)

-- name: holding
SELECT p.chunk_id, p.revision
FROM ({readable}) r
JOIN documents d ON d.tenant_id = %(tenant)s AND d.id = r.id
JOIN placements p ON p.tenant_id = %(tenant)s AND p.document_id = r.id AND p.revision = r.revision
JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = p.chunk_id AND NOT c.quarantined
WHERE c.text ILIKE %(holding)s
ORDER BY d.path, p.ordinal LIMIT %(most)s
