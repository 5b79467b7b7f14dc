-- Documents and what is made of them: chunks, vectors, words. `readable` is the one access check, used by name below:
-- an admin reads every collection, others those granted to one of their grantees.

-- name: by_bytes
SELECT id FROM documents WHERE tenant_id = %(tenant)s AND collection_id = %(collection)s AND sha256 = %(sha256)s FOR UPDATE

-- name: by_path
SELECT id FROM documents WHERE tenant_id = %(tenant)s AND collection_id = %(collection)s AND path = %(path)s FOR UPDATE

-- name: insert
INSERT INTO documents (tenant_id, collection_id, path, sha256, media_type, size, title)
VALUES (%(tenant)s, %(collection)s, %(path)s, %(sha256)s, %(media_type)s, %(size)s, %(title)s)
RETURNING id

-- name: new_bytes
UPDATE documents SET sha256 = %(sha256)s, media_type = %(media_type)s, size = %(size)s, title = %(title)s,
    state = 'queued', reason_code = NULL, reason = NULL, updated_at = now()
WHERE tenant_id = %(tenant)s AND id = %(id)s

-- name: queue_again
UPDATE documents SET state = 'queued', reason_code = NULL, reason = NULL, updated_at = now()
WHERE tenant_id = %(tenant)s AND id = %(id)s AND state <> 'ready'

-- name: processing
UPDATE documents SET state = 'processing', reason_code = NULL, reason = NULL, updated_at = now()
WHERE tenant_id = %(tenant)s AND id = %(id)s AND state <> 'ready'

-- name: fail
UPDATE documents SET state = 'failed', reason_code = %(code)s, reason = %(reason)s, updated_at = now()
WHERE tenant_id = %(tenant)s AND id = %(id)s

-- name: ready
UPDATE documents SET state = 'ready', reason_code = NULL, reason = NULL, title = %(title)s,
    pages = %(pages)s, chunks = %(chunks)s, language = %(language)s, effective_from = %(effective_from)s,
    effective_to = %(effective_to)s, supersedes = %(supersedes)s, updated_at = now()
WHERE tenant_id = %(tenant)s AND id = %(id)s AND sha256 = %(sha256)s

-- name: lock
SELECT id FROM documents WHERE tenant_id = %(tenant)s AND id = %(id)s FOR UPDATE

-- name: one
SELECT d.*, c.name AS collection FROM documents d
JOIN collections c ON c.tenant_id = d.tenant_id AND c.id = d.collection_id
WHERE d.tenant_id = %(tenant)s AND d.id = %(id)s

-- name: pending
SELECT d.*, c.name AS collection FROM documents d
JOIN collections c ON c.tenant_id = d.tenant_id AND c.id = d.collection_id
WHERE d.tenant_id = %(tenant)s AND d.state IN ('queued', 'processing') ORDER BY d.updated_at, d.id

-- name: readable
SELECT d.*, c.name AS collection FROM documents d
JOIN collections c ON c.tenant_id = d.tenant_id AND c.id = d.collection_id
WHERE d.tenant_id = %(tenant)s AND (%(admin)s OR EXISTS (
    SELECT 1 FROM grants g
    WHERE g.tenant_id = d.tenant_id AND g.collection_id = d.collection_id AND g.grantee = ANY(%(grantees)s)))
  AND (%(ids)s::uuid[] IS NULL OR d.id = ANY(%(ids)s)) AND (%(collection)s::text IS NULL OR c.name = %(collection)s)
ORDER BY c.name, d.path

-- name: chunks
SELECT chunk_id, ordinal, text, heading_path, section, start_at, end_at, kind, page, boxes FROM chunks
WHERE tenant_id = %(tenant)s AND document_id = %(document)s ORDER BY ordinal

-- name: around
SELECT c.chunk_id, c.ordinal, c.text, c.heading_path, c.page, c.boxes FROM chunks c
JOIN chunks m ON m.tenant_id = c.tenant_id AND m.document_id = c.document_id
WHERE c.tenant_id = %(tenant)s AND m.tenant_id = %(tenant)s AND m.document_id = %(document)s AND m.chunk_id = %(chunk)s
  AND c.ordinal BETWEEN m.ordinal - %(reach)s AND m.ordinal + %(reach)s
ORDER BY c.ordinal

-- name: delete
DELETE FROM documents WHERE tenant_id = %(tenant)s AND id = %(id)s
