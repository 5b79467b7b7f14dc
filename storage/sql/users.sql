-- Users, and the tokens they log in with. The user of nil id is the operator at the command line; nobody logs in as it.

-- name: create
INSERT INTO users (tenant_id, name, password_hash, role, groups)
VALUES (%(tenant)s, %(name)s, %(password_hash)s, %(role)s, %(groups)s)
RETURNING id, name, role, groups

-- name: by_name
SELECT id, name, role, groups, password_hash FROM users
WHERE tenant_id = %(tenant)s AND lower(name) = lower(%(name)s) AND NOT disabled AND password_hash IS NOT NULL

-- name: by_id
SELECT id, name, role, groups FROM users WHERE tenant_id = %(tenant)s AND id = %(id)s AND NOT disabled

-- name: list_all
SELECT id, name, role, groups, disabled, created_at FROM users
WHERE tenant_id = %(tenant)s AND password_hash IS NOT NULL ORDER BY lower(name)

-- name: set_disabled
UPDATE users SET disabled = %(disabled)s WHERE tenant_id = %(tenant)s AND id = %(id)s AND password_hash IS NOT NULL

-- name: set_password
WITH logged_out AS (
    DELETE FROM tokens WHERE tenant_id = %(tenant)s AND user_id = %(id)s AND kind = 'cookie'
)
UPDATE users SET password_hash = %(password_hash)s
WHERE tenant_id = %(tenant)s AND id = %(id)s AND password_hash IS NOT NULL

-- name: add_token
WITH outlived AS (
    DELETE FROM tokens
    WHERE tenant_id = %(tenant)s AND user_id = %(user)s AND kind = 'cookie' AND expires_at <= now()
)
INSERT INTO tokens (tenant_id, user_id, sha256, label, kind, expires_at)
VALUES (%(tenant)s, %(user)s, %(sha256)s, %(label)s, %(kind)s, now() + %(lifetime)s::interval) RETURNING id

-- name: by_token
-- One clock decides, this server's. What ends one day may not have been made later than now: then the clock was set back.
SELECT u.id, u.name, u.role, u.groups FROM tokens t
JOIN users u ON u.tenant_id = t.tenant_id AND u.id = t.user_id
WHERE t.tenant_id = %(tenant)s AND t.sha256 = %(sha256)s AND (t.expires_at IS NULL OR t.expires_at > now())
  AND (t.expires_at IS NULL OR t.created_at < now() + interval '5 minutes')
  AND NOT u.disabled

-- name: list_tokens
SELECT id, label, kind, created_at, expires_at FROM tokens
WHERE tenant_id = %(tenant)s AND user_id = %(user)s ORDER BY created_at, id

-- name: revoke_token
DELETE FROM tokens WHERE tenant_id = %(tenant)s AND user_id = %(user)s AND id = %(id)s

-- name: forget_token
DELETE FROM tokens WHERE tenant_id = %(tenant)s AND sha256 = %(sha256)s
