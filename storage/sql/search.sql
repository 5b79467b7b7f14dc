-- Hybrid search in one statement: what the principal may read, the best 100 by vector and by BM25 within it, fused.
-- {dimension} is the query vector's; an index over vectors of one dimension needs it written out.

-- name: hybrid
WITH readable AS MATERIALIZED (
    SELECT d.id, d.chunks FROM documents d
    JOIN collections c ON c.tenant_id = d.tenant_id AND c.id = d.collection_id
    WHERE d.tenant_id = %(tenant)s AND d.chunks > 0
      AND (%(admin)s OR EXISTS (
          SELECT 1 FROM grants g
          WHERE g.tenant_id = d.tenant_id AND g.collection_id = d.collection_id AND g.grantee = ANY(%(grantees)s)))
      AND (%(collections)s::text[] IS NULL OR c.name = ANY(%(collections)s))
      AND coalesce(d.effective_from <= %(as_of)s, true) AND coalesce(d.effective_to >= %(as_of)s, true)
), active AS MATERIALIZED (
    SELECT s.embedder_id, s.dimension,
           s.embedder_id = %(embedder)s AND s.dimension = {dimension} AND %(vector)s::halfvec IS NOT NULL AS comparable,
           -- A filter that leaves few chunks makes an index miss most of them: scan those exactly.
           NOT s.indexed OR (SELECT coalesce(sum(r.chunks), 0) FROM readable r) < %(exact_below)s AS exact
    FROM embedding_sets s JOIN lex_stat l ON l.tenant_id = s.tenant_id AND l.n > 0
    WHERE s.tenant_id = %(tenant)s AND s.active
), query AS MATERIALIZED (
    SELECT ('{{' || string_agg(t.term || ':' || (u.weight * ln(1 + (s.n - t.df + 0.5) / (t.df + 0.5)))::real, ','
                             ORDER BY t.term) || '}}/1000000000')::sparsevec AS w
    FROM unnest(%(terms)s::int[], %(weights)s::float8[]) AS u (term, weight)
    JOIN lex_term t ON t.tenant_id = %(tenant)s AND t.term = u.term AND t.df > 0
    JOIN lex_stat s ON s.tenant_id = %(tenant)s
), lexical AS MATERIALIZED (
    SELECT x.chunk_id, x.document_id, x.score FROM (
        SELECT l.chunk_id, l.document_id, -(l.w <#> (SELECT q.w FROM query q)) AS score FROM lex_doc l
        WHERE l.tenant_id = %(tenant)s AND (l.document_id IN (SELECT r.id FROM readable r)) IS TRUE
          AND (SELECT q.w FROM query q) IS NOT NULL
        OFFSET 0) x
    WHERE x.score > 0 ORDER BY x.score DESC, x.chunk_id LIMIT %(depth)s
), nearest AS MATERIALIZED (
    -- `+ 0` keeps the planner from the index; `IS TRUE` keeps the filter a hash probe, so that the index keeps its order.
    (SELECT e.chunk_id, e.document_id, -((e.v <#> %(vector)s::halfvec) + 0) AS score FROM embeddings e
     WHERE e.tenant_id = %(tenant)s AND e.embedder_id = %(embedder)s
       AND (e.document_id IN (SELECT r.id FROM readable r)) IS TRUE
       AND (SELECT a.comparable AND a.exact FROM active a)
     ORDER BY (e.v <#> %(vector)s::halfvec) + 0, e.chunk_id LIMIT %(depth)s)
    UNION ALL
    (SELECT e.chunk_id, e.document_id, -(e.v::halfvec({dimension}) <#> %(vector)s::halfvec({dimension})) AS score
     FROM embeddings e
     WHERE e.tenant_id = %(tenant)s AND e.embedder_id = %(embedder)s
       AND (e.document_id IN (SELECT r.id FROM readable r)) IS TRUE
       AND (SELECT a.comparable AND NOT a.exact FROM active a)
     ORDER BY e.v::halfvec({dimension}) <#> %(vector)s::halfvec({dimension}) LIMIT %(depth)s)
), lexical_range AS (
    -- A list shorter than the depth has met every match: the next score would have been 0.
    SELECT max(score) AS high, CASE WHEN count(*) < %(depth)s THEN 0 ELSE min(score) END AS low,
           (SELECT max(l.score) FROM lexical l GROUP BY l.document_id ORDER BY 1 DESC OFFSET 1 LIMIT 1) AS second
    FROM lexical
), nearest_range AS (
    SELECT max(score) AS high, min(score) AS low,
           (SELECT max(n.score) FROM nearest n GROUP BY n.document_id ORDER BY 1 DESC OFFSET 1 LIMIT 1) AS second
    FROM nearest
), balance AS (
    -- The list that is surer of its first document (how far the second stays behind, 0 to 1) weighs more.
    SELECT CASE WHEN v.high IS NULL THEN 1 WHEN l.high IS NULL THEN 0
                ELSE least(0.9, greatest(0.1, 0.5 + %(sureness)s
                    * (coalesce((l.high - coalesce(l.second, l.low)) / nullif(l.high - l.low, 0), 0)
                       - coalesce((v.high - coalesce(v.second, v.low)) / nullif(v.high - v.low, 0), 0)))) END AS words
    FROM lexical_range l CROSS JOIN nearest_range v
), fused AS (
    SELECT chunk_id, v.score AS vector, l.score AS bm25,
           CASE WHEN v.score IS NULL THEN 0 WHEN vr.high > vr.low THEN (v.score - vr.low) / (vr.high - vr.low) ELSE 1 END
               AS by_vector,
           CASE WHEN l.score IS NULL THEN 0 WHEN lr.high > lr.low THEN (l.score - lr.low) / (lr.high - lr.low) ELSE 1 END
               AS by_words
    FROM nearest v FULL JOIN lexical l USING (chunk_id)
    CROSS JOIN lexical_range lr CROSS JOIN nearest_range vr
), ranked AS (
    SELECT f.chunk_id, f.vector, f.bm25, c.document_id, c.ordinal, c.section, c.text, c.heading_path, c.page, c.kind,
           guarded.weight * f.by_words + (1 - guarded.weight) * f.by_vector AS score
    FROM fused f
    JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = f.chunk_id
    -- Across languages words say little: they keep three tenths of their weight, the vector takes the rest.
    CROSS JOIN LATERAL (SELECT CASE WHEN b.words < 1 AND c.language <> %(language)s THEN 0.3 * b.words
                                    ELSE b.words END AS weight FROM balance b) guarded
    ORDER BY score DESC, f.vector DESC NULLS LAST, f.bm25 DESC NULLS LAST, f.chunk_id
    LIMIT %(limit)s
)
SELECT a.embedder_id AS active_embedder, a.dimension AS active_dimension, r.*, d.title, d.path, d.effective_from,
       d.effective_to, d.updated_at, k.name AS collection, s.ordinals, s.texts
FROM (SELECT 1) one
LEFT JOIN active a ON true
LEFT JOIN ranked r ON true
LEFT JOIN documents d ON d.tenant_id = %(tenant)s AND d.id = r.document_id
LEFT JOIN collections k ON k.tenant_id = %(tenant)s AND k.id = d.collection_id
LEFT JOIN LATERAL (
    SELECT array_agg(n.ordinal ORDER BY n.ordinal) AS ordinals, array_agg(n.text ORDER BY n.ordinal) AS texts
    FROM chunks n
    WHERE n.tenant_id = %(tenant)s AND n.document_id = r.document_id AND n.section = r.section
      AND n.ordinal BETWEEN r.ordinal - %(reach)s AND r.ordinal + %(reach)s
) s ON true
ORDER BY r.score DESC, r.vector DESC NULLS LAST, r.bm25 DESC NULLS LAST, r.chunk_id
