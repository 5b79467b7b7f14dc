-- Hybrid search: what the principal may read (`scope`), the two lists within it, compared one by one (`exact`) or through
-- the indexes of a large tenant (`indexed`), and the hits that were fused from them (`hits`).
--
-- {allowed}, {in_force}, {earlier} and {readable} stand for the fragments of these names, the one place that says what a search may
-- see. {dimension} is the query vector's: an index over vectors of one dimension needs it written out.

-- name: allowed
d.tenant_id = %(tenant)s AND d.revision > 0 AND d.collection_id = ANY(%(collections)s::uuid[])
    AND (%(documents)s::uuid[] IS NULL OR d.id = ANY(%(documents)s::uuid[]))
    AND (%(languages)s::text[] IS NULL OR d.language = ANY(%(languages)s::text[]))
    AND (%(media_types)s::text[] IS NULL OR d.media_type = ANY(%(media_types)s::text[]))
    AND d.id <> ALL(%(without)s::uuid[])

-- name: in_force
-- Of the newest revision, which nearly always is the one in force.
coalesce(d.newest_from <= %(as_of)s, true) AND coalesce(d.effective_to >= %(as_of)s, true)
    AND coalesce(d.superseded_from > %(as_of)s, true)

-- name: earlier
-- Documents whose newest revision begins later: the one that is in force instead.
SELECT d.id, r.number AS revision, r.chunks FROM documents d CROSS JOIN LATERAL (
    SELECT r.number, r.chunks, r.effective_to FROM revisions r
    WHERE r.tenant_id = %(tenant)s AND r.document_id = d.id AND coalesce(r.in_force_from <= %(as_of)s, true)
    ORDER BY r.in_force_from DESC NULLS LAST, r.number DESC LIMIT 1) r
WHERE {allowed} AND d.newest_from > %(as_of)s AND coalesce(r.effective_to >= %(as_of)s, true)
    AND coalesce(d.superseded_from > %(as_of)s, true)

-- name: readable
-- Documents that a search may see, each with its revision that is in force.
SELECT d.id, d.revision FROM documents d WHERE {allowed} AND {in_force}
UNION ALL
SELECT e.id, e.revision FROM ({earlier}) e

-- name: scope
SELECT s.n, s.merged_to, a.embedder_id, a.dimension,
       -- Not EXISTS, which the planner may answer by reading them all.
       coalesce((SELECT true FROM embeddings e
                 WHERE e.tenant_id = %(tenant)s LIMIT 1), false) AS embedded,
       ARRAY(SELECT c.id FROM collections c
             WHERE c.tenant_id = %(tenant)s AND (%(names)s::text[] IS NULL OR c.name = ANY(%(names)s))
               AND (%(admin)s OR EXISTS (
                   SELECT 1 FROM grants g
                   WHERE g.tenant_id = %(tenant)s AND g.collection_id = c.id AND g.grantee = ANY(%(grantees)s))))
           AS collections,
       -- A term that only older revisions hold is in no count.
       ARRAY(SELECT coalesce(t.df, 0) FROM unnest(%(terms)s::int[]) WITH ORDINALITY AS u (term, place)
             LEFT JOIN lex_term t ON t.tenant_id = %(tenant)s AND t.term = u.term ORDER BY u.place) AS frequencies,
       -- What follows joins in the order in which it is written, which is quicker than to weigh all others.
       set_config('join_collapse_limit', '1', true)
FROM lex_stat s
-- A set that is being filled would hide what it lacks.
LEFT JOIN embedding_sets a ON a.tenant_id = %(tenant)s AND a.embedder_id = %(embedder)s AND (a.active OR a.filled)
WHERE s.tenant_id = %(tenant)s

-- name: left
-- About how many chunks are left; and for what follows in this transaction, that the indexes are to be used, the one over
-- vectors with more candidates where fewer of them are left.
SELECT x.chunks, set_config('enable_seqscan', 'off', true), set_config('hnsw.ef_search', least(
    %(most_breadth)s, ceil(%(breadth)s * sqrt(%(n)s::real / greatest(x.chunks, 1))))::integer::text, true)
FROM (SELECT CASE
          WHEN %(documents)s::uuid[] IS NULL AND %(languages)s::text[] IS NULL AND %(media_types)s::text[] IS NULL
          THEN (SELECT coalesce(sum(bit_count(m.live)), 0) FROM lex_mask m
                WHERE m.tenant_id = %(tenant)s AND m.collection_id = ANY(%(collections)s::uuid[]))
          ELSE (SELECT coalesce(sum(d.chunks), 0) FROM documents d WHERE {allowed}) END::integer AS chunks OFFSET 0) x

-- name: reach
SELECT count(*) AS documents, coalesce(sum(x.chunks), 0)::integer AS chunks FROM (
    SELECT d.chunks FROM documents d WHERE {allowed} AND {in_force}
    UNION ALL
    SELECT e.chunks FROM ({earlier}) e) x

-- name: exact
WITH readable AS MATERIALIZED (
    SELECT d.id, d.revision, true AS newest FROM documents d WHERE {allowed} AND {in_force}
    UNION ALL
    SELECT e.id, e.revision, false FROM ({earlier}) e
), older AS MATERIALIZED (
    SELECT p.chunk_id, r.revision FROM readable r
    JOIN placements p ON p.tenant_id = %(tenant)s AND p.document_id = r.id AND p.revision = r.revision
    WHERE NOT r.newest
), words AS MATERIALIZED (
    SELECT x.chunk_id, x.document_id, x.revision, x.score FROM (
        SELECT l.chunk_id, l.document_id, r.revision, -(l.w <#> %(words)s::sparsevec) AS score
        FROM readable r CROSS JOIN LATERAL (
            SELECT l.chunk_id, l.document_id, l.w FROM lex_doc l
            WHERE l.tenant_id = %(tenant)s AND l.document_id = r.id AND NOT l.retired OFFSET 0) l
        WHERE r.newest AND %(words)s::sparsevec IS NOT NULL
        UNION ALL
        SELECT l.chunk_id, l.document_id, o.revision, -(l.w <#> %(words)s::sparsevec) FROM older o
        JOIN lex_doc l ON l.tenant_id = %(tenant)s AND l.chunk_id = o.chunk_id
        OFFSET 0) x
    WHERE x.score > 0 ORDER BY x.score DESC, x.chunk_id LIMIT %(depth)s
), nearest AS MATERIALIZED (
    -- `+ 0` keeps the planner from an index, which would miss most of few.
    SELECT x.chunk_id, x.document_id, x.revision, -x.distance AS score FROM (
        SELECT e.chunk_id, e.document_id, r.revision, (e.v <#> %(vector)s::halfvec) + 0 AS distance
        FROM readable r CROSS JOIN LATERAL (
            SELECT e.chunk_id, e.document_id, e.v FROM embeddings e
            WHERE e.tenant_id = %(tenant)s AND e.embedder_id = %(embedder)s AND e.document_id = r.id AND NOT e.retired
            OFFSET 0) e
        WHERE r.newest AND %(vector)s::halfvec IS NOT NULL
        UNION ALL
        SELECT e.chunk_id, e.document_id, o.revision, (e.v <#> %(vector)s::halfvec) + 0 FROM older o
        JOIN embeddings e ON e.tenant_id = %(tenant)s AND e.embedder_id = %(embedder)s AND e.chunk_id = o.chunk_id
        WHERE %(vector)s::halfvec IS NOT NULL) x
    ORDER BY x.distance, x.chunk_id LIMIT %(depth)s
)
SELECT x.list, x.chunk_id, x.document_id, x.revision, x.score, c.language, true AS complete
FROM (SELECT 'words' AS list, w.* FROM words w UNION ALL SELECT 'nearest', n.* FROM nearest n) x
JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = x.chunk_id
ORDER BY x.list, x.score DESC, x.chunk_id

-- name: indexed
WITH older AS MATERIALIZED (
    SELECT p.chunk_id, e.revision FROM ({earlier}) e
    JOIN placements p ON p.tenant_id = %(tenant)s AND p.document_id = e.id AND p.revision = e.revision
), listed AS MATERIALIZED (
    -- Merged chunks that hold one of the terms where few do, and those that no block knows yet.
    SELECT s.merged_to, s.strays || ARRAY(
        SELECT p.chunks[i] FROM unnest(%(terms)s::int[]) AS u (term)
        CROSS JOIN LATERAL (SELECT p.terms, p.chunks FROM lex_list p
                            WHERE p.tenant_id = %(tenant)s AND p.remainder = u.term %% %(lists)s OFFSET 0) p
        CROSS JOIN LATERAL unnest(array_positions(p.terms, u.term)) AS i) AS chunks
    FROM lex_stat s WHERE s.tenant_id = %(tenant)s
), few AS MATERIALIZED (
    SELECT x.chunk_id, x.document_id, x.score, f.revision FROM (
        SELECT y.* FROM (
            SELECT l.chunk_id, l.document_id, -(l.w <#> %(words)s::sparsevec) AS score FROM lex_doc l
            WHERE l.tenant_id = %(tenant)s AND l.chunk_id = ANY((SELECT i.chunks FROM listed i)::int[]) AND NOT l.retired
            UNION ALL
            SELECT l.chunk_id, l.document_id, -(l.w <#> %(words)s::sparsevec) FROM lex_doc l
            WHERE l.tenant_id = %(tenant)s AND l.chunk_id >= (SELECT i.merged_to FROM listed i) AND NOT l.retired
            OFFSET 0) y
        WHERE y.score > 0 ORDER BY y.score DESC, y.chunk_id OFFSET 0) x
    CROSS JOIN LATERAL (SELECT d.revision FROM documents d
                        WHERE d.id = x.document_id AND {allowed} AND {in_force} OFFSET 0) f
    LIMIT %(depth)s
), dense AS MATERIALIZED (
    SELECT k.chunk_id, k.level FROM lex_dense(%(tenant)s, %(terms)s::int[], %(factors)s::real[], %(collections)s::uuid[],
        %(wanted)s, (SELECT CASE WHEN count(*) < %(depth)s THEN 0 ELSE min(f.score) END FROM few f)::real) k
), words AS MATERIALIZED (
    SELECT x.chunk_id, x.document_id, x.revision, x.score FROM (
        SELECT f.chunk_id, f.document_id, f.revision, f.score FROM few f
        UNION
        SELECT l.chunk_id, l.document_id, f.revision, -(l.w <#> %(words)s::sparsevec) FROM dense k
        CROSS JOIN LATERAL (SELECT l.chunk_id, l.document_id, l.w FROM lex_doc l
                            WHERE l.tenant_id = %(tenant)s AND l.chunk_id = k.chunk_id AND NOT l.retired OFFSET 0) l
        CROSS JOIN LATERAL (SELECT d.revision FROM documents d
                            WHERE d.id = l.document_id AND {allowed} AND {in_force} OFFSET 0) f
        UNION
        SELECT l.chunk_id, l.document_id, o.revision, -(l.w <#> %(words)s::sparsevec) FROM older o
        JOIN lex_doc l ON l.tenant_id = %(tenant)s AND l.chunk_id = o.chunk_id
        OFFSET 0) x
    WHERE x.score > 0 ORDER BY x.score DESC, x.chunk_id LIMIT %(depth)s
), nearest AS MATERIALIZED (
    SELECT x.chunk_id, x.document_id, x.revision, x.score FROM (
        -- A sub-select `IS TRUE` stays a test of each row, so that the index keeps its order.
        (SELECT e.chunk_id, e.document_id, NULL::integer AS revision,
                -(e.v::halfvec({dimension}) <#> %(vector)s::halfvec({dimension})) AS score
         FROM embeddings e
         WHERE e.tenant_id = %(tenant)s AND e.embedder_id = %(embedder)s AND NOT e.retired
           AND %(vector)s::halfvec IS NOT NULL
           AND (SELECT true FROM documents d WHERE d.id = e.document_id AND {allowed} AND {in_force}) IS TRUE
         ORDER BY e.v::halfvec({dimension}) <#> %(vector)s::halfvec({dimension}) LIMIT %(depth)s)
        UNION ALL
        SELECT e.chunk_id, e.document_id, o.revision, -(e.v <#> %(vector)s::halfvec) FROM older o
        JOIN embeddings e ON e.tenant_id = %(tenant)s AND e.embedder_id = %(embedder)s AND e.chunk_id = o.chunk_id
        WHERE %(vector)s::halfvec IS NOT NULL) x
    ORDER BY x.score DESC, x.chunk_id LIMIT %(depth)s
), complete AS MATERIALIZED (
    -- Whether no chunk below the level could be in the list: the list is full above it, or there is none below. Where
    -- terms were spared, chunks that hold those alone are below it too.
    SELECT (SELECT count(*) FROM words w WHERE w.score >= coalesce(k.level, 0)) >= %(depth)s
           OR NOT %(spared)s AND coalesce(k.level <= 0, true) AS words
    FROM (SELECT max(k.level) AS level FROM dense k) k
)
SELECT x.list, x.chunk_id, x.document_id, coalesce(x.revision, (
           SELECT d.revision FROM documents d WHERE d.tenant_id = %(tenant)s AND d.id = x.document_id)) AS revision,
       x.score, c.language, (SELECT k.words FROM complete k) AS complete
FROM (SELECT 'words' AS list, w.* FROM words w UNION ALL SELECT 'nearest', n.* FROM nearest n) x
JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = x.chunk_id
ORDER BY x.list, x.score DESC, x.chunk_id

-- name: hits
SELECT u.chunk_id, u.revision, c.document_id, c.text, c.heading_path, c.kind, p.ordinal, p.page, p.start_at, d.title,
       d.path, d.effective_from, d.effective_to, d.updated_at, d.collection, s.ordinals, s.texts
FROM unnest(%(chunk_id)s::int[], %(revision)s::int[]) WITH ORDINALITY AS u (chunk_id, revision, place)
JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = u.chunk_id
JOIN placements p ON p.tenant_id = %(tenant)s AND p.chunk_id = u.chunk_id AND p.revision = u.revision
-- OFFSET 0: look-ups for each, planned by themselves, which is quicker than to weigh all orders of so many joins.
CROSS JOIN LATERAL (
    SELECT d.path, d.updated_at, o.name AS collection, v.title, v.effective_from, v.effective_to FROM documents d
    JOIN collections o ON o.tenant_id = %(tenant)s AND o.id = d.collection_id
    JOIN revisions v ON v.tenant_id = %(tenant)s AND v.document_id = d.id AND v.number = u.revision
    WHERE d.tenant_id = %(tenant)s AND d.id = c.document_id OFFSET 0) d
CROSS JOIN LATERAL (
    SELECT array_agg(n.ordinal ORDER BY n.ordinal) AS ordinals, array_agg(c.text ORDER BY n.ordinal) AS texts
    FROM placements n JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = n.chunk_id AND NOT c.quarantined
    WHERE n.tenant_id = %(tenant)s AND n.document_id = p.document_id AND n.revision = u.revision
      AND n.section = p.section AND n.ordinal BETWEEN p.ordinal - %(reach)s AND p.ordinal + %(reach)s) s
ORDER BY u.place

-- name: listed
SELECT c.chunk_id, c.document_id, c.title, c.heading_path, c.text FROM chunks c
WHERE c.tenant_id = %(tenant)s AND c.chunk_id = ANY(%(chunk_ids)s::int[])
