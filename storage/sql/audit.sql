-- The chains of what was done and refused. Entries are added by a function alone; nothing here changes one.

-- name: add
SELECT add_audit(%(actor)s, %(action)s, %(subject)s, %(trace)s)

-- name: listing
SELECT a.number, a.at, a.actor, a.action, a.subject, a.trace, u.name FROM audit a
LEFT JOIN users u ON u.tenant_id = a.tenant_id AND u.id = a.actor
WHERE a.tenant_id = %(tenant)s ORDER BY a.number DESC LIMIT %(limit)s

-- name: after
SELECT number, at, actor, action, subject, trace, previous, hash FROM audit
WHERE tenant_id = %(tenant)s AND number > %(number)s ORDER BY number LIMIT %(limit)s

-- name: head
SELECT number, hash FROM audit_heads WHERE tenant_id = %(tenant)s

-- name: newest
SELECT subject FROM audit WHERE tenant_id = %(tenant)s AND action = %(action)s ORDER BY number DESC LIMIT 1
