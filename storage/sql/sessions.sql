-- Conversations. Everything is the user's own: each statement names tenant and user.

-- name: create
INSERT INTO sessions (tenant_id, user_id, title) VALUES (%(tenant)s, %(user)s, %(title)s)
RETURNING id, title, 0 AS turns, created_at, updated_at

-- name: listing
SELECT s.id, s.title, count(t.id) AS turns, s.created_at, s.updated_at FROM sessions s
LEFT JOIN turns t ON t.tenant_id = s.tenant_id AND t.session_id = s.id
WHERE s.tenant_id = %(tenant)s AND s.user_id = %(user)s AND (%(id)s::uuid IS NULL OR s.id = %(id)s)
GROUP BY s.tenant_id, s.id ORDER BY s.updated_at DESC, s.id

-- name: rename
UPDATE sessions SET title = %(title)s, updated_at = now()
WHERE tenant_id = %(tenant)s AND user_id = %(user)s AND id = %(id)s

-- name: touch
UPDATE sessions SET updated_at = now() WHERE tenant_id = %(tenant)s AND user_id = %(user)s AND id = %(id)s

-- name: delete_turns
DELETE FROM turns WHERE tenant_id = %(tenant)s AND session_id = %(id)s

-- name: delete
DELETE FROM sessions WHERE tenant_id = %(tenant)s AND user_id = %(user)s AND id = %(id)s

-- name: delete_checkpoints
DELETE FROM checkpoints.checkpoints WHERE thread_id = %(thread)s

-- name: delete_checkpoint_writes
DELETE FROM checkpoints.checkpoint_writes WHERE thread_id = %(thread)s

-- name: delete_checkpoint_blobs
DELETE FROM checkpoints.checkpoint_blobs WHERE thread_id = %(thread)s

-- name: add_turn
INSERT INTO turns (tenant_id, session_id, question, standalone_question, answer, outcome, language, citations, timings,
                   model_calls, notice)
VALUES (%(tenant)s, %(session)s, %(question)s, %(standalone_question)s, %(answer)s, %(outcome)s, %(language)s,
        %(citations)s::jsonb, %(timings)s::jsonb, %(model_calls)s, %(notice)s)
RETURNING id, session_id, question, answer, outcome, language, citations, created_at, NULL::smallint AS feedback

-- name: turns
SELECT t.id, t.session_id, t.question, t.answer, t.outcome, t.language, t.citations, t.created_at, f.value AS feedback
FROM turns t
LEFT JOIN feedback f ON f.tenant_id = t.tenant_id AND f.turn_id = t.id AND f.user_id = %(user)s
WHERE t.tenant_id = %(tenant)s AND t.session_id = %(session)s ORDER BY t.created_at, t.id

-- name: feedback
INSERT INTO feedback (tenant_id, turn_id, user_id, value, reason)
SELECT %(tenant)s, t.id, s.user_id, %(value)s, %(reason)s FROM turns t
JOIN sessions s ON s.tenant_id = t.tenant_id AND s.id = t.session_id
WHERE t.tenant_id = %(tenant)s AND t.id = %(turn)s AND s.user_id = %(user)s
ON CONFLICT (tenant_id, turn_id, user_id) DO UPDATE SET value = excluded.value, reason = excluded.reason,
    created_at = now()
