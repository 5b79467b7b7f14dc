-- The sets of a tenant's vectors: the active one, and at most one other, which waits to take its place or had it before.
-- A set lacks the vectors of those chunks that have words (in lex_doc, retired ones too) and no vector in it.

-- name: active
-- One that was emptied makes way for whatever comes next, unless another set stands beside it.
SELECT s.embedder_id FROM embedding_sets s WHERE s.tenant_id = %(tenant)s AND s.active AND (
    coalesce((SELECT true FROM embeddings e
              WHERE e.tenant_id = %(tenant)s AND e.embedder_id = s.embedder_id LIMIT 1), false)
    OR EXISTS (SELECT 1 FROM embedding_sets o WHERE o.tenant_id = %(tenant)s AND NOT o.active))

-- name: all
SELECT s.embedder_id, s.dimension, s.active, s.filled, s.indexed, s.replaced_at,
       (SELECT count(*) FROM embeddings e
        WHERE e.tenant_id = %(tenant)s AND e.embedder_id = s.embedder_id) AS vectors,
       (SELECT count(*) FROM lex_doc l WHERE l.tenant_id = %(tenant)s AND NOT EXISTS (
            SELECT 1 FROM embeddings e WHERE e.tenant_id = %(tenant)s AND e.embedder_id = s.embedder_id
              AND e.chunk_id = l.chunk_id)) AS missing
FROM embedding_sets s WHERE s.tenant_id = %(tenant)s ORDER BY s.active DESC

-- name: lacking
SELECT l.chunk_id, l.document_id, c.title, c.heading_path, c.text FROM (
    -- Not EXISTS, which the planner may answer by reading them all.
    SELECT l.chunk_id, l.document_id FROM lex_doc l
    WHERE l.tenant_id = %(tenant)s AND l.chunk_id > %(after)s AND (
        SELECT true FROM embeddings e WHERE e.tenant_id = %(tenant)s AND e.embedder_id = %(embedder)s
          AND e.chunk_id = l.chunk_id LIMIT 1) IS NULL
    ORDER BY l.chunk_id LIMIT %(limit)s) l
JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = l.chunk_id
ORDER BY l.chunk_id

-- name: take_over
-- An empty digest says that it is not known what the chunk was made from: those are alike in nothing.
INSERT INTO embeddings (tenant_id, embedder_id, chunk_id, document_id, v, retired)
SELECT %(tenant)s, %(embedder)s, l.chunk_id, l.document_id, twin.v, l.retired
FROM lex_doc l JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = l.chunk_id AND c.digest <> ''
CROSS JOIN LATERAL (
    SELECT e.v FROM chunks t
    JOIN embeddings e ON e.tenant_id = %(tenant)s AND e.embedder_id = %(embedder)s AND e.chunk_id = t.chunk_id
    WHERE t.tenant_id = %(tenant)s AND t.digest = c.digest LIMIT 1) twin
WHERE l.tenant_id = %(tenant)s AND l.chunk_id = ANY(%(chunk_id)b::int[])
ON CONFLICT DO NOTHING
RETURNING chunk_id

-- name: insert
INSERT INTO embeddings (tenant_id, embedder_id, chunk_id, document_id, v, retired)
SELECT %(tenant)s, %(embedder)s, l.chunk_id, l.document_id, u.v, l.retired
FROM unnest(%(chunk_id)b::int[], %(v)b::halfvec[]) AS u (chunk_id, v)
JOIN lex_doc l ON l.tenant_id = %(tenant)s AND l.chunk_id = u.chunk_id
ON CONFLICT DO NOTHING

-- name: hold
-- Nobody begins, swaps or drops a set, or calls a document ready, until this transaction ends.
SELECT embedder_id, dimension, active FROM embedding_sets WHERE tenant_id = %(tenant)s FOR NO KEY UPDATE

-- name: dimension
SELECT dimension FROM embedding_sets WHERE tenant_id = %(tenant)s AND embedder_id = %(embedder)s

-- name: large
SELECT n >= %(threshold)s AS large FROM lex_stat WHERE tenant_id = %(tenant)s

-- name: fill
UPDATE embedding_sets s SET filled = true
WHERE s.tenant_id = %(tenant)s AND s.embedder_id = %(embedder)s AND NOT EXISTS (
    SELECT 1 FROM lex_doc l WHERE l.tenant_id = %(tenant)s AND NOT EXISTS (
        SELECT 1 FROM embeddings e WHERE e.tenant_id = %(tenant)s AND e.embedder_id = %(embedder)s
          AND e.chunk_id = l.chunk_id))

-- name: swap
UPDATE embedding_sets s SET active = NOT s.active, filled = true,
    replaced_at = CASE WHEN s.active AND NOT %(back)s THEN now() END
FROM embedding_sets o
WHERE s.tenant_id = %(tenant)s AND o.tenant_id = %(tenant)s AND NOT o.active AND (o.replaced_at IS NOT NULL) = %(back)s
  AND NOT EXISTS (
    SELECT 1 FROM lex_doc l WHERE l.tenant_id = %(tenant)s AND NOT EXISTS (
        SELECT 1 FROM embeddings e WHERE e.tenant_id = %(tenant)s AND e.embedder_id = o.embedder_id
          AND e.chunk_id = l.chunk_id))

-- name: drop
SELECT drop_embedding_set(%(embedder)s) AS vectors
