-- Collections and who may read them. `grantees` is what a principal answers to: everyone, its groups, itself.

-- name: ensure
INSERT INTO collections (tenant_id, name) VALUES (%(tenant)s, %(name)s)
ON CONFLICT (tenant_id, name) DO NOTHING RETURNING id, name, owner_contact, approvers

-- name: create
INSERT INTO collections (tenant_id, name) VALUES (%(tenant)s, %(name)s) RETURNING id, name, owner_contact, approvers

-- name: by_name
SELECT id, name, owner_contact, approvers FROM collections WHERE tenant_id = %(tenant)s AND name = %(name)s

-- name: visible
SELECT c.id, c.name, c.owner_contact, c.approvers, count(d.id) AS documents, max(d.updated_at) AS updated_at
FROM collections c
LEFT JOIN documents d ON d.tenant_id = c.tenant_id AND d.collection_id = c.id AND d.searchable <> 'nothing'
WHERE c.tenant_id = %(tenant)s AND (%(admin)s OR EXISTS (
    SELECT 1 FROM grants g
    WHERE g.tenant_id = c.tenant_id AND g.collection_id = c.id AND g.grantee = ANY(%(grantees)s)))
GROUP BY c.tenant_id, c.id ORDER BY c.name

-- name: readable
-- As `visible`, without a look at the documents.
SELECT c.id FROM collections c
WHERE c.tenant_id = %(tenant)s AND (%(admin)s OR EXISTS (
    SELECT 1 FROM grants g
    WHERE g.tenant_id = c.tenant_id AND g.collection_id = c.id AND g.grantee = ANY(%(grantees)s)))

-- name: set_owner
UPDATE collections SET owner_contact = %(contact)s WHERE tenant_id = %(tenant)s AND id = %(collection)s
RETURNING id, name, owner_contact, approvers

-- name: set_approvers
UPDATE collections SET approvers = %(approvers)s::text[] WHERE tenant_id = %(tenant)s AND id = %(collection)s
RETURNING id, name, owner_contact, approvers

-- name: grant
INSERT INTO grants (tenant_id, collection_id, grantee) VALUES (%(tenant)s, %(collection)s, %(grantee)s)
ON CONFLICT DO NOTHING

-- name: revoke
DELETE FROM grants WHERE tenant_id = %(tenant)s AND collection_id = %(collection)s AND grantee = %(grantee)s

-- name: grants
SELECT grantee FROM grants WHERE tenant_id = %(tenant)s AND collection_id = %(collection)s ORDER BY grantee
