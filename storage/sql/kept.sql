-- Kept answers, and the state of what a principal can search: of which each answer is true for as long as it lasts.

-- name: state
-- What can be found in a collection is told by its stamps (migration 0014): how many transactions changed it. Rows of
-- small tables tell it themselves: one that is changed is another version, known by the transaction that wrote it (xmin).
SELECT (SELECT jsonb_agg(jsonb_build_array(c.id, c.xmin, (
            SELECT coalesce(sum(s.changes), 0) FROM stamps s WHERE s.tenant_id = %(tenant)s AND s.collection_id = c.id))
            ORDER BY c.id)
        FROM collections c
        WHERE c.tenant_id = %(tenant)s AND (%(names)s::text[] IS NULL OR c.name = ANY(%(names)s)) AND (
            %(admin)s OR EXISTS (
                SELECT 1 FROM grants g
                WHERE g.tenant_id = %(tenant)s AND g.collection_id = c.id AND g.grantee = ANY(%(grantees)s))))
       AS collections,
       (SELECT count(*)::text || ':' || coalesce(sum(hashtextextended(s.key || '/' || s.xmin::text, 0)), 0)::text
        FROM synonyms s WHERE s.tenant_id = %(tenant)s) AS synonyms,
       (SELECT jsonb_agg(jsonb_build_array(e.embedder_id, e.xmin) ORDER BY e.embedder_id) FROM embedding_sets e
        WHERE e.tenant_id = %(tenant)s) AS embedding_sets,
       (SELECT coalesce(sum(s.changes), 0)::bigint FROM stamps s
        WHERE s.tenant_id = %(tenant)s AND s.collection_id = '00000000-0000-0000-0000-000000000000') AS rights

-- name: find
SELECT answer, created_at FROM kept_answers WHERE tenant_id = %(tenant)s AND key = %(key)s

-- name: keep
INSERT INTO kept_answers (tenant_id, key, answer) VALUES (%(tenant)s, %(key)s, %(answer)s::jsonb)
ON CONFLICT (tenant_id, key) DO NOTHING

-- name: prune
DELETE FROM kept_answers WHERE tenant_id = %(tenant)s AND created_at < now() - interval '1 day'
