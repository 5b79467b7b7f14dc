-- Words that mean the same: one row each, those with the same group_id are one group. `key`: see storage.synonyms.

-- name: lock
SELECT pg_advisory_xact_lock(%(key)s)

-- name: listing
SELECT group_id AS id, array_agg(word ORDER BY lower(word)) AS words FROM synonyms
WHERE tenant_id = %(tenant)s GROUP BY group_id ORDER BY min(lower(word))

-- name: by_id
SELECT group_id AS id, array_agg(word ORDER BY lower(word)) AS words FROM synonyms
WHERE tenant_id = %(tenant)s AND group_id = %(id)s GROUP BY group_id

-- name: by_key
SELECT group_id AS id, array_agg(word ORDER BY lower(word)) AS words FROM synonyms
WHERE tenant_id = %(tenant)s AND group_id = (SELECT group_id FROM synonyms WHERE tenant_id = %(tenant)s AND key = %(key)s)
GROUP BY group_id

-- name: unite
UPDATE synonyms SET group_id = %(id)s WHERE tenant_id = %(tenant)s AND group_id IN (
    SELECT group_id FROM synonyms WHERE tenant_id = %(tenant)s AND key = ANY(%(keys)s))

-- name: add
INSERT INTO synonyms (tenant_id, key, word, group_id)
SELECT %(tenant)s, key, word, %(id)s FROM unnest(%(keys)s::text[], %(words)s::text[]) AS given (key, word)
ON CONFLICT (tenant_id, key) DO NOTHING

-- name: count
SELECT count(*) AS words FROM synonyms WHERE tenant_id = %(tenant)s

-- name: remove
DELETE FROM synonyms WHERE tenant_id = %(tenant)s AND group_id = %(id)s
    AND (%(key)s::text IS NULL OR key = %(key)s)

-- name: remove_alone
DELETE FROM synonyms WHERE tenant_id = %(tenant)s AND group_id = %(id)s
    AND (SELECT count(*) FROM synonyms WHERE tenant_id = %(tenant)s AND group_id = %(id)s) = 1

-- name: of
SELECT typed.key, typed.word, array_agg(other.word ORDER BY lower(other.word)) AS others
FROM synonyms typed JOIN synonyms other ON other.tenant_id = typed.tenant_id AND other.group_id = typed.group_id
WHERE typed.tenant_id = %(tenant)s AND other.tenant_id = %(tenant)s AND typed.key = ANY(%(keys)s)
    AND other.key <> typed.key
GROUP BY typed.key, typed.word
