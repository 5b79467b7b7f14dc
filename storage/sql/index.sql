-- Writing the searchable half of a document. Every statement here runs under the tenant's row in lex_stat.
-- Long arrays go in binary (%(name)b): as text they would cost more than the writing.

-- name: lock
SELECT n, next_chunk, text_sum, title_sum, headings_sum, text_average, title_average, headings_average
FROM lex_stat WHERE tenant_id = %(tenant)s FOR UPDATE

-- name: active_set
SELECT embedder_id, dimension FROM embedding_sets WHERE tenant_id = %(tenant)s AND active

-- name: add_set
SELECT add_embedding_set(%(embedder)s, %(dimension)s)

-- name: index_set
SELECT index_embedding_set(%(embedder)s)

-- name: grown
SELECT s.embedder_id FROM embedding_sets s JOIN lex_stat l ON l.tenant_id = s.tenant_id
WHERE s.tenant_id = %(tenant)s AND s.active AND NOT s.indexed AND l.n >= %(threshold)s

-- name: insert_chunks
INSERT INTO chunks (tenant_id, chunk_id, document_id, ordinal, section, kind, language, heading_path, text, page, boxes,
                    start_at, end_at)
SELECT %(tenant)s, u.chunk_id, %(document)s, u.ordinal, u.section, u.kind, u.language,
       ARRAY(SELECT jsonb_array_elements_text(u.heading_path)), u.text, u.page, u.boxes, u.start_at, u.end_at
FROM unnest(%(chunk_id)b::int[], %(ordinal)s::int[], %(section)s::int[], %(kind)s::text[], %(language)s::text[],
            %(heading_path)s::jsonb[], %(text)s::text[], %(page)s::int[], %(boxes)s::jsonb[], %(start_at)s::int[],
            %(end_at)s::int[])
  AS u (chunk_id, ordinal, section, kind, language, heading_path, text, page, boxes, start_at, end_at)

-- name: insert_vectors
INSERT INTO embeddings (tenant_id, embedder_id, chunk_id, document_id, v)
SELECT %(tenant)s, %(embedder)s, u.chunk_id, %(document)s, u.v
FROM unnest(%(chunk_id)b::int[], %(v)b::halfvec[]) AS u (chunk_id, v)

-- name: insert_words
INSERT INTO lex_doc (tenant_id, chunk_id, document_id, text_length, title_length, headings_length, w)
SELECT %(tenant)s, u.chunk_id, %(document)s, u.text_length, u.title_length, u.headings_length, u.w
FROM unnest(%(chunk_id)b::int[], %(text_length)s::int[], %(title_length)s::int[], %(headings_length)s::int[],
            %(w)b::sparsevec[])
  AS u (chunk_id, text_length, title_length, headings_length, w)

-- name: count_terms
INSERT INTO lex_term AS t (tenant_id, term, df, maxw, dense, docs)
SELECT %(tenant)s, u.term, count(*), max(u.weight), count(*) > %(dense)s,
       CASE WHEN count(*) <= %(dense)s THEN array_agg(u.chunk_id ORDER BY u.chunk_id) END
FROM unnest(%(term)b::int[], %(chunk_id)b::int[], %(weight)b::real[]) AS u (term, chunk_id, weight)
GROUP BY u.term ORDER BY u.term
ON CONFLICT (tenant_id, term) DO UPDATE SET
    df = t.df + excluded.df, maxw = greatest(t.maxw, excluded.maxw),
    dense = t.dense OR t.df + excluded.df > %(dense)s,
    docs = CASE WHEN NOT t.dense AND t.df + excluded.df <= %(dense)s THEN t.docs || excluded.docs END

-- name: uncount_terms
UPDATE lex_term t SET df = t.df - u.gone,
    docs = CASE WHEN NOT t.dense THEN ARRAY(SELECT d FROM unnest(t.docs) d WHERE d <> ALL (u.chunk_ids) ORDER BY d) END
FROM (SELECT x.term, count(*) AS gone, array_agg(x.chunk_id) AS chunk_ids
      FROM unnest(%(term)b::int[], %(chunk_id)b::int[]) AS x (term, chunk_id) GROUP BY x.term) u
WHERE t.tenant_id = %(tenant)s AND t.term = u.term

-- name: forget_terms
DELETE FROM lex_term WHERE tenant_id = %(tenant)s AND term = ANY(%(term)b::int[]) AND df <= 0

-- name: count_chunks
UPDATE lex_stat SET n = n + %(n)s, next_chunk = next_chunk + %(given)s, text_sum = text_sum + %(text)s,
    title_sum = title_sum + %(title)s, headings_sum = headings_sum + %(headings)s
WHERE tenant_id = %(tenant)s
RETURNING n, text_sum, title_sum, headings_sum, text_average, title_average, headings_average

-- name: words
SELECT chunk_id, text_length, title_length, headings_length, w FROM lex_doc
WHERE tenant_id = %(tenant)s AND document_id = %(document)s

-- name: delete_vectors
DELETE FROM embeddings WHERE tenant_id = %(tenant)s AND document_id = %(document)s

-- name: delete_words
DELETE FROM lex_doc WHERE tenant_id = %(tenant)s AND document_id = %(document)s

-- name: delete_chunks
DELETE FROM chunks WHERE tenant_id = %(tenant)s AND document_id = %(document)s

-- name: texts
SELECT c.chunk_id, c.text, d.title, c.heading_path FROM chunks c
JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id
WHERE c.tenant_id = %(tenant)s AND c.chunk_id > %(after)s ORDER BY c.chunk_id LIMIT %(limit)s

-- name: reweigh
UPDATE lex_doc l SET w = u.w FROM unnest(%(chunk_id)b::int[], %(w)b::sparsevec[]) AS u (chunk_id, w)
WHERE l.tenant_id = %(tenant)s AND l.chunk_id = u.chunk_id

-- name: raise_bounds
UPDATE lex_term t SET maxw = greatest(t.maxw, u.weight)
FROM (SELECT x.term, max(x.weight) AS weight FROM unnest(%(term)b::int[], %(weight)b::real[]) AS x (term, weight)
      GROUP BY x.term) u
WHERE t.tenant_id = %(tenant)s AND t.term = u.term

-- name: freeze_averages
UPDATE lex_stat SET text_average = %(text)s, title_average = %(title)s, headings_average = %(headings)s
WHERE tenant_id = %(tenant)s
