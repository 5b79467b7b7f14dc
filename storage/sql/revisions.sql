-- Revisions of a document and where its chunks stand in them. Every write runs under the document's lock.

-- name: all
SELECT * FROM revisions WHERE tenant_id = %(tenant)s AND document_id = %(document)s ORDER BY number

-- name: one
-- 0 is the newest.
SELECT r.* FROM revisions r JOIN documents d ON d.tenant_id = %(tenant)s AND d.id = r.document_id
WHERE r.tenant_id = %(tenant)s AND r.document_id = %(document)s
  AND r.number = CASE WHEN %(number)s::int = 0 THEN d.revision ELSE %(number)s END

-- name: put
INSERT INTO revisions (tenant_id, document_id, number, sha256, title, size, pages, chunks, language, warnings, confidence,
                       said)
VALUES (%(tenant)s, %(document)s, %(number)s, %(sha256)s, %(title)s, %(size)s, %(pages)s, %(chunks)s, %(language)s,
        %(warnings)s::jsonb, %(confidence)s::jsonb, %(said)s::jsonb)
ON CONFLICT (tenant_id, document_id, number) DO UPDATE SET title = excluded.title, pages = excluded.pages,
    chunks = excluded.chunks, language = excluded.language, warnings = excluded.warnings,
    confidence = excluded.confidence, said = excluded.said

-- name: date
UPDATE revisions SET effective_from = %(effective_from)s, effective_to = %(effective_to)s, supersedes = %(supersedes)s,
    dates_set = %(dates_set)s,
    in_force_from = CASE WHEN %(inherited)s AND number > 1 THEN greatest(%(effective_from)s, created_at::date)
                         WHEN %(effective_from)s::date IS NULL AND number > 1 THEN created_at::date
                         ELSE %(effective_from)s END
WHERE tenant_id = %(tenant)s AND document_id = %(document)s AND number = %(number)s

-- name: settle
UPDATE documents d SET effective_from = n.effective_from, effective_to = n.effective_to, supersedes = n.supersedes,
    newest_from = CASE WHEN EXISTS (
        SELECT 1 FROM revisions r WHERE r.tenant_id = %(tenant)s AND r.document_id = d.id AND r.number < n.number
          AND r.in_force_from > coalesce(n.in_force_from, '-infinity')) THEN 'infinity' ELSE n.in_force_from END
FROM revisions n
WHERE d.tenant_id = %(tenant)s AND d.id = %(document)s
  AND n.tenant_id = %(tenant)s AND n.document_id = d.id AND n.number = d.revision

-- name: warn
UPDATE revisions SET warnings = %(warnings)s::jsonb
WHERE tenant_id = %(tenant)s AND document_id = %(document)s AND number = %(number)s

-- name: forget
DELETE FROM revisions WHERE tenant_id = %(tenant)s AND document_id = %(document)s AND number <= %(number)s

-- name: known
SELECT chunk_id, digest FROM chunks WHERE tenant_id = %(tenant)s AND document_id = %(document)s ORDER BY chunk_id

-- name: insert_chunks
INSERT INTO chunks (tenant_id, chunk_id, document_id, kind, language, title, heading_path, text, digest, suspicion)
SELECT %(tenant)s, u.chunk_id, %(document)s, u.kind, u.language, %(title)s,
       ARRAY(SELECT jsonb_array_elements_text(u.heading_path)), u.text, decode(u.digest, 'hex'), u.suspicion
FROM jsonb_to_recordset(%(chunks)s::jsonb)
  AS u (chunk_id int, kind text, language text, heading_path jsonb, text text, digest text, suspicion text)

-- name: unplace
DELETE FROM placements WHERE tenant_id = %(tenant)s AND document_id = %(document)s AND revision = %(number)s

-- name: place
INSERT INTO placements (tenant_id, document_id, revision, ordinal, chunk_id, section, page, boxes, start_at, end_at)
SELECT %(tenant)s, %(document)s, %(number)s, u.ordinal, u.chunk_id, u.section, u.page, u.boxes, u.start_at, u.end_at
FROM jsonb_to_recordset(%(places)s::jsonb)
  AS u (ordinal int, chunk_id int, section int, page int, boxes jsonb, start_at int, end_at int)
