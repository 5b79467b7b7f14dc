-- Hybrid search in one statement: what the principal may read, the best 100 by vector and by BM25 within it, fused.
-- {dimension} is the query vector's; an index over vectors of one dimension needs it written out.

-- name: hybrid
WITH granted AS MATERIALIZED (
    SELECT d.id, d.revision, d.chunks, d.newest_from, d.effective_to FROM documents d
    JOIN collections c ON c.tenant_id = d.tenant_id AND c.id = d.collection_id
    WHERE d.tenant_id = %(tenant)s AND d.revision > 0
      AND (%(admin)s OR EXISTS (
          SELECT 1 FROM grants g
          WHERE g.tenant_id = d.tenant_id AND g.collection_id = d.collection_id AND g.grantee = ANY(%(grantees)s)))
      AND (%(collections)s::text[] IS NULL OR c.name = ANY(%(collections)s))
), readable AS MATERIALIZED (
    -- The revision in force: nearly always the newest, whose rows are those not retired; else it is looked for.
    SELECT g.id, g.revision, g.chunks, true AS newest FROM granted g
    WHERE coalesce(g.newest_from <= %(as_of)s, true) AND coalesce(g.effective_to >= %(as_of)s, true)
    UNION ALL
    SELECT g.id, r.number, r.chunks, false FROM granted g CROSS JOIN LATERAL (
        SELECT r.number, r.chunks, r.effective_to FROM revisions r
        WHERE r.tenant_id = %(tenant)s AND r.document_id = g.id AND coalesce(r.in_force_from <= %(as_of)s, true)
        ORDER BY r.in_force_from DESC NULLS LAST, r.number DESC LIMIT 1) r
    WHERE g.newest_from > %(as_of)s AND coalesce(r.effective_to >= %(as_of)s, true)
), older AS MATERIALIZED (
    SELECT p.chunk_id FROM readable r
    JOIN placements p ON p.tenant_id = %(tenant)s AND p.document_id = r.id AND p.revision = r.revision
    WHERE NOT r.newest
), active AS MATERIALIZED (
    SELECT s.embedder_id, s.dimension,
           s.embedder_id = %(embedder)s AND s.dimension = {dimension} AND %(vector)s::halfvec IS NOT NULL AS comparable,
           -- A filter that leaves few chunks makes an index miss most of them: scan those exactly.
           NOT s.indexed OR (SELECT coalesce(sum(r.chunks), 0) FROM readable r) < %(exact_below)s AS exact
    FROM embedding_sets s
    -- Not EXISTS, which the planner may answer by reading them all.
    WHERE s.tenant_id = %(tenant)s AND s.active AND (
        SELECT true FROM embeddings e WHERE e.tenant_id = %(tenant)s AND e.embedder_id = s.embedder_id LIMIT 1)
), query AS MATERIALIZED (
    -- A term that only older revisions hold is in no count.
    SELECT ('{{' || string_agg(u.term || ':' || (u.weight * ln(1 + (s.n - k.df + 0.5) / (k.df + 0.5)))::real, ','
                             ORDER BY u.term) || '}}/1000000000')::sparsevec AS w
    FROM unnest(%(terms)s::int[], %(weights)s::float8[]) AS u (term, weight)
    LEFT JOIN lex_term t ON t.tenant_id = %(tenant)s AND t.term = u.term
    CROSS JOIN LATERAL (SELECT coalesce(t.df, 0) AS df) k
    JOIN lex_stat s ON s.tenant_id = %(tenant)s
), lexical AS MATERIALIZED (
    SELECT x.chunk_id, x.document_id, x.score FROM (
        SELECT l.chunk_id, l.document_id, -(l.w <#> (SELECT q.w FROM query q)) AS score FROM lex_doc l
        WHERE l.tenant_id = %(tenant)s
          AND (NOT l.retired AND l.document_id IN (SELECT r.id FROM readable r WHERE r.newest)
               OR l.chunk_id IN (SELECT o.chunk_id FROM older o)) IS TRUE
          AND (SELECT q.w FROM query q) IS NOT NULL
        OFFSET 0) x
    WHERE x.score > 0 ORDER BY x.score DESC, x.chunk_id LIMIT %(depth)s
), nearest AS MATERIALIZED (
    -- `+ 0` keeps the planner from the index; `IS TRUE` keeps the filter a hash probe, so that the index keeps its order.
    (SELECT e.chunk_id, e.document_id, -((e.v <#> %(vector)s::halfvec) + 0) AS score FROM embeddings e
     WHERE e.tenant_id = %(tenant)s AND e.embedder_id = %(embedder)s
       AND (NOT e.retired AND e.document_id IN (SELECT r.id FROM readable r WHERE r.newest)
            OR e.chunk_id IN (SELECT o.chunk_id FROM older o)) IS TRUE
       AND (SELECT a.comparable AND a.exact FROM active a)
     ORDER BY (e.v <#> %(vector)s::halfvec) + 0, e.chunk_id LIMIT %(depth)s)
    UNION ALL
    (SELECT e.chunk_id, e.document_id, -(e.v::halfvec({dimension}) <#> %(vector)s::halfvec({dimension})) AS score
     FROM embeddings e
     WHERE e.tenant_id = %(tenant)s AND e.embedder_id = %(embedder)s
       AND (NOT e.retired AND e.document_id IN (SELECT r.id FROM readable r WHERE r.newest)
            OR e.chunk_id IN (SELECT o.chunk_id FROM older o)) IS TRUE
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
    SELECT f.chunk_id, f.vector, f.bm25, c.document_id, c.text, c.heading_path, c.kind,
           guarded.weight * f.by_words + (1 - guarded.weight) * f.by_vector AS score
    FROM fused f
    JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = f.chunk_id
    -- Across languages words say little: they keep three tenths of their weight, the vector takes the rest.
    CROSS JOIN LATERAL (SELECT CASE WHEN b.words < 1 AND c.language <> %(language)s THEN 0.3 * b.words
                                    ELSE b.words END AS weight FROM balance b) guarded
    ORDER BY score DESC, f.vector DESC NULLS LAST, f.bm25 DESC NULLS LAST, f.chunk_id
    LIMIT %(limit)s
)
SELECT a.embedder_id AS active_embedder, a.dimension AS active_dimension, r.*, p.ordinal, p.page, v.title, d.path,
       v.effective_from, v.effective_to, d.updated_at, d.collection, s.ordinals, s.texts
FROM (SELECT 1) one
LEFT JOIN active a ON true
LEFT JOIN ranked r ON true
LEFT JOIN shelf d ON d.tenant_id = %(tenant)s AND d.id = r.document_id
LEFT JOIN readable i ON i.id = r.document_id
LEFT JOIN revisions v ON v.tenant_id = %(tenant)s AND v.document_id = r.document_id AND v.number = i.revision
LEFT JOIN placements p ON p.tenant_id = %(tenant)s AND p.chunk_id = r.chunk_id AND p.revision = i.revision
LEFT JOIN LATERAL (
    SELECT array_agg(n.ordinal ORDER BY n.ordinal) AS ordinals, array_agg(c.text ORDER BY n.ordinal) AS texts
    FROM placements n JOIN chunks c ON c.tenant_id = %(tenant)s AND c.chunk_id = n.chunk_id AND NOT c.quarantined
    WHERE n.tenant_id = %(tenant)s AND n.document_id = r.document_id AND n.revision = i.revision
      AND n.section = p.section AND n.ordinal BETWEEN p.ordinal - %(reach)s AND p.ordinal + %(reach)s
) s ON true
ORDER BY r.score DESC, r.vector DESC NULLS LAST, r.bm25 DESC NULLS LAST, r.chunk_id
