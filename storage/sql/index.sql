-- Writing the searchable half of a document. Every statement on words runs under the tenant's row in lex_stat.
-- Vectors go in binary (%(name)b): as text they would cost more than the writing.

-- name: lock
SELECT n, text_sum, title_sum, headings_sum, text_average, title_average, headings_average
FROM lex_stat WHERE tenant_id = %(tenant)s FOR UPDATE

-- name: take_numbers
UPDATE lex_stat SET next_chunk = next_chunk + %(count)s WHERE tenant_id = %(tenant)s
RETURNING next_chunk - %(count)s AS first

-- name: sets
SELECT s.embedder_id, s.dimension, s.active, coalesce((
    SELECT true FROM embeddings e WHERE e.tenant_id = %(tenant)s AND e.embedder_id = s.embedder_id LIMIT 1), false) AS used
FROM embedding_sets s WHERE s.tenant_id = %(tenant)s

-- name: keep_active
-- It stays the active one until this transaction ends.
SELECT embedder_id FROM embedding_sets WHERE tenant_id = %(tenant)s AND active FOR SHARE

-- name: add_set
SELECT add_embedding_set(%(embedder)s, %(dimension)s)

-- name: index_set
SELECT index_embedding_set(%(embedder)s)

-- name: grown
SELECT s.embedder_id FROM embedding_sets s JOIN lex_stat l ON l.tenant_id = s.tenant_id
WHERE s.tenant_id = %(tenant)s AND s.active AND NOT s.indexed AND l.n >= %(threshold)s

-- name: standing
SELECT c.chunk_id, c.quarantined, l.retired, p.placed, coalesce(p.newest, false) AS newest
FROM chunks c
JOIN documents d ON d.tenant_id = %(tenant)s AND d.id = c.document_id
LEFT JOIN lex_doc l ON l.tenant_id = %(tenant)s AND l.chunk_id = c.chunk_id
CROSS JOIN LATERAL (
    SELECT count(*) > 0 AS placed, bool_or(p.revision = d.revision) AS newest FROM placements p
    WHERE p.tenant_id = %(tenant)s AND p.chunk_id = c.chunk_id) p
WHERE c.tenant_id = %(tenant)s AND c.document_id = %(document)s ORDER BY c.chunk_id

-- name: missing_vectors
WITH wanting AS MATERIALIZED (
    SELECT c.chunk_id, c.document_id, c.digest, c.title, c.heading_path, c.text, p.ordinal FROM documents d
    JOIN placements p ON p.tenant_id = %(tenant)s AND p.document_id = d.id AND p.revision = d.revision
    JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = p.chunk_id AND NOT c.quarantined
    WHERE d.tenant_id = %(tenant)s AND d.id = %(document)s AND NOT EXISTS (
        SELECT 1 FROM embeddings x WHERE x.tenant_id = %(tenant)s AND x.embedder_id = %(embedder)s
          AND x.document_id = %(document)s AND x.chunk_id = c.chunk_id)
), taken_over AS (
    INSERT INTO embeddings (tenant_id, embedder_id, chunk_id, document_id, v)
    SELECT %(tenant)s, %(embedder)s, w.chunk_id, w.document_id, twin.v FROM wanting w
    CROSS JOIN LATERAL (
        SELECT e.v FROM chunks t
        JOIN embeddings e ON e.tenant_id = %(tenant)s AND e.embedder_id = %(embedder)s AND e.chunk_id = t.chunk_id
        WHERE t.tenant_id = %(tenant)s AND t.digest = w.digest LIMIT 1) twin
    ON CONFLICT DO NOTHING RETURNING chunk_id
)
SELECT m.chunk_id, m.title, m.heading_path, m.text FROM (
    -- Of chunks that are alike the first is asked for; the others will take its vector over.
    SELECT DISTINCT ON (w.digest) w.* FROM wanting w
    WHERE NOT EXISTS (SELECT 1 FROM taken_over t WHERE t.chunk_id = w.chunk_id)
    ORDER BY w.digest, w.ordinal) m
ORDER BY m.ordinal LIMIT %(limit)s

-- name: insert_vectors
INSERT INTO embeddings (tenant_id, embedder_id, chunk_id, document_id, v, retired)
SELECT %(tenant)s, %(embedder)s, c.chunk_id, c.document_id, u.v, NOT EXISTS (
    SELECT 1 FROM placements p JOIN documents d ON d.tenant_id = %(tenant)s AND d.id = p.document_id
    WHERE p.tenant_id = %(tenant)s AND p.chunk_id = c.chunk_id AND p.revision = d.revision)
FROM unnest(%(chunk_id)s::int[], %(v)b::halfvec[]) AS u (chunk_id, v)
JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = u.chunk_id
WHERE c.document_id = %(document)s AND NOT c.quarantined
ON CONFLICT DO NOTHING

-- name: insert_words
INSERT INTO lex_doc (tenant_id, chunk_id, document_id, text_length, title_length, headings_length, w)
SELECT %(tenant)s, u.chunk_id, %(document)s, u.text_length, u.title_length, u.headings_length, u.w
FROM unnest(%(chunk_id)s::int[], %(text_length)s::int[], %(title_length)s::int[], %(headings_length)s::int[],
            %(w)s::sparsevec[])
  AS u (chunk_id, text_length, title_length, headings_length, w)

-- name: count_terms
INSERT INTO lex_term AS t (tenant_id, term, df)
SELECT %(tenant)s, u.term, u.df FROM unnest(%(term)s::int[], %(df)s::int[]) AS u (term, df) ORDER BY u.term
ON CONFLICT (tenant_id, term) DO UPDATE SET df = t.df + excluded.df

-- name: uncount_terms
UPDATE lex_term t SET df = t.df - u.df FROM unnest(%(term)s::int[], %(df)s::int[]) AS u (term, df)
WHERE t.tenant_id = %(tenant)s AND t.term = u.term

-- name: forget_terms
DELETE FROM lex_term WHERE tenant_id = %(tenant)s AND term = ANY(%(term)s::int[]) AND df <= 0

-- name: count_chunks
UPDATE lex_stat SET n = n + %(n)s, text_sum = text_sum + %(text)s, title_sum = title_sum + %(title)s,
    headings_sum = headings_sum + %(headings)s
WHERE tenant_id = %(tenant)s

-- name: words
SELECT chunk_id, text_length, title_length, headings_length, w FROM lex_doc
WHERE tenant_id = %(tenant)s AND chunk_id = ANY(%(chunk_id)s::int[])

-- name: words_of
SELECT chunk_id, retired FROM lex_doc WHERE tenant_id = %(tenant)s AND document_id = ANY(%(documents)s)

-- name: empty_words
DELETE FROM lex_doc WHERE tenant_id = %(tenant)s AND document_id = ANY(%(documents)s)

-- name: empty_vectors
DELETE FROM embeddings WHERE tenant_id = %(tenant)s AND document_id = ANY(%(documents)s)

-- name: retire_words
UPDATE lex_doc SET retired = %(retired)s WHERE tenant_id = %(tenant)s AND chunk_id = ANY(%(chunk_id)s::int[])

-- name: retire_vectors
UPDATE embeddings SET retired = %(retired)s WHERE tenant_id = %(tenant)s AND chunk_id = ANY(%(chunk_id)s::int[])

-- name: delete_vectors
DELETE FROM embeddings WHERE tenant_id = %(tenant)s AND chunk_id = ANY(%(chunk_id)s::int[])

-- name: delete_words
DELETE FROM lex_doc WHERE tenant_id = %(tenant)s AND chunk_id = ANY(%(chunk_id)s::int[])

-- name: delete_chunks
DELETE FROM chunks WHERE tenant_id = %(tenant)s AND chunk_id = ANY(%(chunk_id)s::int[])

-- name: contents
SELECT chunk_id, text, title, heading_path FROM chunks
WHERE tenant_id = %(tenant)s AND chunk_id = ANY(%(chunk_id)s::int[]) ORDER BY chunk_id

-- name: texts
SELECT c.chunk_id, c.text, c.title, c.heading_path FROM lex_doc l
JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = l.chunk_id
WHERE l.tenant_id = %(tenant)s AND l.chunk_id > %(after)s ORDER BY l.chunk_id LIMIT %(limit)s

-- name: reweigh
UPDATE lex_doc l SET w = u.w FROM unnest(%(chunk_id)s::int[], %(w)s::sparsevec[]) AS u (chunk_id, w)
WHERE l.tenant_id = %(tenant)s AND l.chunk_id = u.chunk_id

-- name: freeze_averages
UPDATE lex_stat SET text_average = %(text)s, title_average = %(title)s, headings_average = %(headings)s
WHERE tenant_id = %(tenant)s

-- name: clear_bits
-- Chunks in no block yet have no bit.
WITH places AS (
    SELECT u.chunk_id / s.block_size AS block, u.chunk_id %% s.block_size AS place, s.block_size
    FROM lex_stat s CROSS JOIN unnest(%(chunk_id)s::int[]) AS u (chunk_id)
    WHERE s.tenant_id = %(tenant)s AND u.chunk_id < s.merged_to
), bits AS (
    SELECT b.block, string_agg(CASE WHEN p.place IS NULL THEN '0' ELSE '1' END, '' ORDER BY n)::bit varying AS bits
    FROM (SELECT DISTINCT block, block_size FROM places) b CROSS JOIN LATERAL generate_series(0, b.block_size - 1) n
    LEFT JOIN places p ON p.block = b.block AND p.place = n GROUP BY b.block
)
UPDATE lex_mask m SET live = m.live & ~ b.bits FROM bits b
WHERE m.tenant_id = %(tenant)s AND m.block = b.block AND bit_count(m.live & b.bits) > 0

-- name: set_bits
WITH places AS (
    SELECT u.chunk_id / s.block_size AS block, u.chunk_id %% s.block_size AS place, s.block_size, d.collection_id
    FROM lex_stat s CROSS JOIN unnest(%(chunk_id)s::int[]) AS u (chunk_id)
    JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = u.chunk_id
    JOIN documents d ON d.tenant_id = %(tenant)s AND d.id = c.document_id
    WHERE s.tenant_id = %(tenant)s AND u.chunk_id < s.merged_to
)
INSERT INTO lex_mask AS m (tenant_id, block, collection_id, live)
SELECT %(tenant)s, b.block, b.collection_id,
       string_agg(CASE WHEN p.place IS NULL THEN '0' ELSE '1' END, '' ORDER BY n)::bit varying
FROM (SELECT DISTINCT block, block_size, collection_id FROM places) b
CROSS JOIN LATERAL generate_series(0, b.block_size - 1) n
LEFT JOIN places p ON p.block = b.block AND p.collection_id = b.collection_id AND p.place = n
GROUP BY b.block, b.collection_id
ON CONFLICT (tenant_id, block, collection_id) DO UPDATE SET live = m.live | excluded.live

-- name: count_gone
UPDATE lex_span p SET gone = p.gone + g.chunks FROM (
    SELECT u.chunk_id / s.block_size AS block, count(*) AS chunks
    FROM lex_stat s CROSS JOIN unnest(%(chunk_id)s::int[]) AS u (chunk_id)
    WHERE s.tenant_id = %(tenant)s AND u.chunk_id < s.merged_to GROUP BY 1) g
WHERE p.tenant_id = %(tenant)s AND p.block = g.block

-- name: note_strays
UPDATE lex_stat s SET strays = s.strays || ARRAY(SELECT x FROM unnest(%(chunk_id)s::int[]) x WHERE x < s.merged_to)
WHERE s.tenant_id = %(tenant)s AND s.merged_to > %(first)s

-- name: outdate_blocks
UPDATE lex_span SET gone = chunks WHERE tenant_id = %(tenant)s
