-- Blocks of chunks and lists of rare terms, from the words of the tail. All of it runs under the tenant's row in lex_stat.

-- name: due
SELECT s.n, s.next_chunk, s.merged_to, s.block_size, s.strays, (
    SELECT min(p.block) FROM lex_span p
    WHERE p.tenant_id = s.tenant_id
      AND (p.gone > p.chunks * %(worn)s OR p.block IN (SELECT x / s.block_size FROM unnest(s.strays) x))) AS worn
FROM lex_stat s WHERE s.tenant_id = %(tenant)s FOR UPDATE OF s

-- name: words
SELECT l.chunk_id, l.retired, l.w, d.collection_id FROM lex_doc l
JOIN documents d ON d.tenant_id = %(tenant)s AND d.id = l.document_id
WHERE l.tenant_id = %(tenant)s AND l.chunk_id >= %(first)s AND l.chunk_id < %(last)s ORDER BY l.chunk_id

-- name: dense
SELECT term FROM lex_posting WHERE tenant_id = %(tenant)s AND chunks IS NULL

-- name: extend
-- The chunks of each term are a part of one long array.
WITH extended AS (
    INSERT INTO lex_posting AS p (tenant_id, term, chunks)
    SELECT %(tenant)s, u.term, (SELECT %(chunk_id)b::int[])[u.first:u.last]
    FROM unnest(%(term)b::int[], %(first)b::int[], %(last)b::int[]) AS u (term, first, last)
    ON CONFLICT (tenant_id, term) DO UPDATE SET chunks = p.chunks || excluded.chunks
    RETURNING p.term, cardinality(p.chunks) AS chunks
)
SELECT term FROM extended WHERE chunks > %(rare)s ORDER BY term

-- name: weights
-- What terms weigh in chunks of blocks built before; those chunks that went are left out.
SELECT u.term, l.chunk_id, l.weight::real AS weight
FROM unnest(%(term)b::int[], %(unit)b::sparsevec[]) AS u (term, unit)
JOIN lex_posting p ON p.tenant_id = %(tenant)s AND p.term = u.term
CROSS JOIN LATERAL unnest(p.chunks) AS c (chunk_id)
CROSS JOIN LATERAL (
    SELECT l.chunk_id, -(l.w <#> u.unit) AS weight FROM lex_doc l
    WHERE l.tenant_id = %(tenant)s AND l.chunk_id = c.chunk_id OFFSET 0) l
WHERE l.chunk_id NOT BETWEEN %(first)s AND %(last)s - 1

-- name: make_dense
UPDATE lex_posting SET chunks = NULL WHERE tenant_id = %(tenant)s AND term = ANY(%(term)b::int[])

-- name: clear_block
DELETE FROM lex_block WHERE tenant_id = %(tenant)s AND block = %(block)s

-- name: put_block
INSERT INTO lex_block (tenant_id, block, term, weights)
SELECT %(tenant)s, u.block, u.term, u.weights
FROM unnest(%(block)b::int[], %(term)b::int[], %(weights)b::sparsevec[]) AS u (block, term, weights)

-- name: clear_masks
DELETE FROM lex_mask WHERE tenant_id = %(tenant)s AND block = %(block)s

-- name: put_masks
INSERT INTO lex_mask (tenant_id, block, collection_id, live)
SELECT %(tenant)s, %(block)s, u.collection_id, u.live::bit varying
FROM unnest(%(collection_id)s::uuid[], %(live)s::text[]) AS u (collection_id, live)

-- name: put_span
INSERT INTO lex_span (tenant_id, block, chunks) VALUES (%(tenant)s, %(block)s, %(chunks)s)
ON CONFLICT (tenant_id, block) DO UPDATE SET chunks = excluded.chunks, gone = 0

-- name: advance
UPDATE lex_stat SET merged_to = greatest(merged_to, %(last)s),
    strays = ARRAY(SELECT x FROM unnest(strays) x WHERE x NOT BETWEEN %(first)s AND %(last)s - 1)
WHERE tenant_id = %(tenant)s
