-- What became of what was cited. A document that is gone is looked for by the collection that it stood in.

-- name: standings
SELECT u.document_id, u.chunk_id, d.id IS NULL AS deleted, d.revision,
       (%(admin)s OR EXISTS (
           SELECT 1 FROM collections c JOIN grants g ON g.tenant_id = %(tenant)s AND g.collection_id = c.id
           WHERE c.tenant_id = %(tenant)s AND g.grantee = ANY(%(grantees)s)
             AND CASE WHEN d.id IS NULL THEN c.name = u.collection ELSE c.id = d.collection_id END)) AS readable,
       (SELECT max(p.revision) FROM placements p
        WHERE p.tenant_id = %(tenant)s AND p.document_id = u.document_id AND p.chunk_id = u.chunk_id) AS held
FROM unnest(%(documents)s::uuid[], %(chunks)s::int[], %(collections)s::text[])
  AS u (document_id, chunk_id, collection)
LEFT JOIN documents d ON d.tenant_id = %(tenant)s AND d.id = u.document_id
