-- Blocks of chunks from the words of the tail. All of it runs under the tenant's row in lex_stat.

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

-- name: frequencies
-- A term that only older revisions hold is in no count.
SELECT coalesce(t.df, 0) AS df FROM unnest(%(term)b::int[]) WITH ORDINALITY AS u (term, place)
LEFT JOIN lex_term t ON t.tenant_id = %(tenant)s AND t.term = u.term ORDER BY u.place

-- name: clear
WITH lists AS (
    DELETE FROM lex_list WHERE tenant_id = %(tenant)s AND block = %(block)s
)
DELETE FROM lex_block WHERE tenant_id = %(tenant)s AND block = %(block)s

-- name: put_vectors
INSERT INTO lex_block (tenant_id, block, term, factor, weights)
SELECT %(tenant)s, %(block)s, u.term, u.factor, u.weights
FROM unnest(%(term)b::int[], %(factor)b::real[], %(weights)b::sparsevec[]) AS u (term, factor, weights)

-- name: put_lists
INSERT INTO lex_list (tenant_id, remainder, block, terms, chunks)
SELECT %(tenant)s, u.remainder, %(block)s, (SELECT %(terms)b::int[])[u.first:u.last],
       (SELECT %(chunks)b::int[])[u.first:u.last]
FROM unnest(%(remainder)b::int[], %(first)b::int[], %(last)b::int[]) AS u (remainder, first, last)

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
