-- Which document takes the place of which, and from when on. `named_by` (migration 0008) judges what is said.

-- name: spoken
-- Whether any document of these ones' collections says anything.
SELECT EXISTS (
    SELECT 1 FROM documents d JOIN documents n
        ON n.tenant_id = %(tenant)s AND n.collection_id = d.collection_id AND n.supersedes IS NOT NULL
    WHERE d.tenant_id = %(tenant)s AND d.id = ANY(%(ids)s)) OR EXISTS (
    -- One that just stopped saying it still has to let go.
    SELECT 1 FROM documents d
    WHERE d.tenant_id = %(tenant)s AND d.id = ANY(%(ids)s) AND coalesce(d.supersedes_id, d.superseded_by) IS NOT NULL)
    AS spoken

-- name: kin
-- Documents that say of each other, or said, that one supersedes the other, however far that goes; and these themselves.
-- `said` and `path`: what these may be about to say, and where they are about to stand.
WITH RECURSIVE kin AS (
    SELECT d.id FROM documents d WHERE d.tenant_id = %(tenant)s AND d.id = ANY(%(ids)s)
    UNION
    SELECT r.id FROM kin k CROSS JOIN LATERAL (
        SELECT d.* FROM documents d WHERE d.tenant_id = %(tenant)s AND d.id = k.id OFFSET 0) d
    CROSS JOIN LATERAL (
        SELECT n.id FROM documents n
        WHERE n.tenant_id = %(tenant)s AND n.collection_id = d.collection_id
          AND n.supersedes = ANY(names_of(d.id, d.path, d.title) || names_of(d.id, %(path)s::text, d.title))
        UNION ALL
        SELECT n.id FROM documents n WHERE n.tenant_id = %(tenant)s AND n.supersedes_id = d.id
        UNION ALL
        SELECT o.id FROM documents o
        WHERE (d.supersedes IS NOT NULL OR %(said)s::text[] <> '{}')
          AND o.tenant_id = %(tenant)s AND o.collection_id = d.collection_id AND EXISTS (
              SELECT 1 FROM unnest(%(said)s::text[] || d.supersedes) s
              WHERE named_by(s, d.path, o.id, o.path, o.title) IS NOT NULL)
        UNION ALL
        SELECT d.supersedes_id WHERE d.supersedes_id IS NOT NULL) r
)
SELECT k.id FROM kin k

-- name: standing
-- since: the first day of the revisions that have said the same without a break up to the newest.
SELECT d.id, d.supersedes, d.superseded_by, d.state = 'ready' AS ready, d.searchable <> 'nothing' AS found,
       (SELECT min(coalesce(r.in_force_from, r.created_at::date)) FROM revisions r
        WHERE r.tenant_id = %(tenant)s AND r.document_id = d.id AND r.number > coalesce((
            SELECT max(x.number) FROM revisions x
            WHERE x.tenant_id = %(tenant)s AND x.document_id = d.id AND x.supersedes IS DISTINCT FROM d.supersedes), 0))
           AS since
FROM documents d WHERE d.tenant_id = %(tenant)s AND d.id = ANY(%(ids)s)

-- name: named
-- What came inside another file speaks only of what came with it: a mail's attachment hides nothing of ours.
SELECT x.newer, x.older FROM (
    SELECT n.id AS newer, o.id AS older, r.rank, min(r.rank) OVER (PARTITION BY n.id) AS best
    FROM documents n
    JOIN documents o ON o.tenant_id = %(tenant)s AND o.collection_id = n.collection_id AND o.id = ANY(%(ids)s)
        AND o.id <> n.id AND (n.parent_id IS NULL OR n.parent_id = o.parent_id)
    CROSS JOIN LATERAL (SELECT named_by(n.supersedes, n.path, o.id, o.path, o.title) AS rank) r
    WHERE n.tenant_id = %(tenant)s AND n.id = ANY(%(ids)s) AND r.rank IS NOT NULL) x
WHERE x.rank = x.best

-- name: put
UPDATE documents d SET supersedes_id = u.older, supersedes_fault = u.fault, superseded_by = u.newer,
    superseded_from = u.since, updated_at = now()
FROM unnest(%(id)s::uuid[], %(older)s::uuid[], %(fault)s::text[], %(newer)s::uuid[], %(since)s::date[])
  AS u (id, older, fault, newer, since)
WHERE d.tenant_id = %(tenant)s AND d.id = u.id
  AND (d.supersedes_id, d.supersedes_fault, d.superseded_by, d.superseded_from)
      IS DISTINCT FROM (u.older, u.fault, u.newer, u.since)
