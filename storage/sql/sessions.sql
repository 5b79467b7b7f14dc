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
UPDATE sessions SET updated_at = now(), title = CASE WHEN title = '' THEN %(title)s ELSE title END
WHERE tenant_id = %(tenant)s AND user_id = %(user)s AND id = %(id)s

-- name: fork
WITH origin AS (
    SELECT t.session_id, t.created_at, t.id AS turn_id, s.title FROM turns t
    JOIN sessions s ON s.tenant_id = %(tenant)s AND s.id = t.session_id AND s.user_id = %(user)s
    WHERE t.tenant_id = %(tenant)s AND t.id = %(turn)s
), made AS (
    INSERT INTO sessions (tenant_id, user_id, title) SELECT %(tenant)s, %(user)s, title FROM origin RETURNING id
), copied AS (
    INSERT INTO turns (tenant_id, session_id, question, standalone_question, answer, outcome, language, citations,
                       timings, model_calls, notice, verdict, missing, searched, contacts, created_at)
    SELECT %(tenant)s, m.id, t.question, t.standalone_question, t.answer, t.outcome, t.language, t.citations, t.timings,
           t.model_calls, t.notice, t.verdict, t.missing, t.searched, t.contacts, t.created_at
    FROM made m CROSS JOIN origin o JOIN turns t ON t.tenant_id = %(tenant)s AND t.session_id = o.session_id
    WHERE (t.created_at, t.id) <= (o.created_at, o.turn_id) AND t.outcome <> 'waiting'
)
SELECT id FROM made

-- name: delete_runs
DELETE FROM runs WHERE tenant_id = %(tenant)s AND session_id = %(id)s RETURNING id

-- name: delete_turns
DELETE FROM turns WHERE tenant_id = %(tenant)s AND session_id = %(id)s

-- name: delete
DELETE FROM sessions WHERE tenant_id = %(tenant)s AND user_id = %(user)s AND id = %(id)s

-- name: add_turn
INSERT INTO turns (tenant_id, session_id, question, standalone_question, answer, outcome, language, citations, timings,
                   model_calls, notice, verdict, missing, searched, contacts)
VALUES (%(tenant)s, %(session)s, %(question)s, %(standalone_question)s, %(answer)s, %(outcome)s, %(language)s,
        %(citations)s::jsonb, %(timings)s::jsonb, %(model_calls)s, %(notice)s, %(verdict)s, %(missing)s::text[],
        %(searched)s::text[], %(contacts)s::text[])
RETURNING *, NULL::smallint AS feedback

-- name: replace_turn
UPDATE turns SET standalone_question = %(standalone_question)s, answer = %(answer)s, outcome = %(outcome)s,
    language = %(language)s, citations = %(citations)s::jsonb, timings = %(timings)s::jsonb,
    model_calls = %(model_calls)s, notice = %(notice)s, verdict = %(verdict)s, missing = %(missing)s::text[],
    searched = %(searched)s::text[], contacts = %(contacts)s::text[]
WHERE tenant_id = %(tenant)s AND id = %(turn)s AND question = %(question)s

-- name: turns
SELECT t.*, f.value AS feedback FROM turns t
LEFT JOIN feedback f ON f.tenant_id = t.tenant_id AND f.turn_id = t.id AND f.user_id = %(user)s
WHERE t.tenant_id = %(tenant)s AND t.session_id = %(session)s ORDER BY t.created_at, t.id

-- name: latest
SELECT t.*, NULL::smallint AS feedback FROM turns t
JOIN sessions s ON s.tenant_id = %(tenant)s AND s.id = t.session_id AND s.user_id = %(user)s
WHERE t.tenant_id = %(tenant)s AND t.session_id = %(session)s ORDER BY t.created_at DESC, t.id DESC LIMIT %(most)s

-- name: turn
SELECT t.*, f.value AS feedback FROM turns t
LEFT JOIN feedback f ON f.tenant_id = t.tenant_id AND f.turn_id = t.id AND f.user_id = %(user)s
WHERE t.tenant_id = %(tenant)s AND t.id = %(turn)s

-- name: feedback
INSERT INTO feedback (tenant_id, turn_id, user_id, value, reason)
SELECT %(tenant)s, t.id, s.user_id, %(value)s, %(reason)s FROM turns t
JOIN sessions s ON s.tenant_id = t.tenant_id AND s.id = t.session_id
WHERE t.tenant_id = %(tenant)s AND t.id = %(turn)s AND s.user_id = %(user)s
ON CONFLICT (tenant_id, turn_id, user_id) DO UPDATE SET value = excluded.value, reason = excluded.reason,
    created_at = now()
