-- Kept answers, and the state of what a principal can search: of which each answer is true for as long as it lasts.

-- name: state
-- A row that is changed in any way, by whatever statement, is another version of it, told by the transaction that wrote
-- it (xmin): nothing that changes documents, their revisions, collections, synonyms or vectors has to tell anybody.
SELECT %(as_of)s AS day, %(documents)s::uuid[] AS asked, %(languages)s::text[] AS languages,
       %(media_types)s::text[] AS media_types, %(without)s::uuid[] AS without,
       (SELECT jsonb_agg(jsonb_build_array(c.id, c.xmin) ORDER BY c.id) FROM collections c
        WHERE c.tenant_id = %(tenant)s AND c.id = ANY(%(collections)s::uuid[])) AS collections,
       (SELECT count(*)::text || ':' || coalesce(sum(hashtextextended(d.id::text || d.xmin::text, 0)), 0)::text
        FROM documents d WHERE {allowed}) AS documents,
       (SELECT count(*)::text || ':' || coalesce(sum(hashtextextended(
            r.document_id::text || '/' || r.number::text || '/' || r.xmin::text, 0)), 0)::text
        FROM documents d JOIN revisions r ON r.tenant_id = %(tenant)s AND r.document_id = d.id WHERE {allowed})
       AS revisions,
       (SELECT count(*)::text || ':' || coalesce(sum(hashtextextended(s.key || '/' || s.xmin::text, 0)), 0)::text
        FROM synonyms s WHERE s.tenant_id = %(tenant)s) AS synonyms,
       (SELECT jsonb_agg(jsonb_build_array(e.embedder_id, e.xmin) ORDER BY e.embedder_id) FROM embedding_sets e
        WHERE e.tenant_id = %(tenant)s) AS embedding_sets

-- name: find
SELECT answer, created_at FROM kept_answers WHERE tenant_id = %(tenant)s AND key = %(key)s

-- name: keep
INSERT INTO kept_answers (tenant_id, key, answer) VALUES (%(tenant)s, %(key)s, %(answer)s::jsonb)
ON CONFLICT (tenant_id, key) DO NOTHING

-- name: prune
DELETE FROM kept_answers WHERE tenant_id = %(tenant)s AND created_at < now() - interval '1 day'
