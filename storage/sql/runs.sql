-- Runs and their traces. What is done to a run by its id comes from whoever began it, or was looked up by `own`.

-- name: begin
INSERT INTO runs (tenant_id, user_id, session_id, question, mode, checkpointed)
VALUES (%(tenant)s, %(user)s, %(session)s, %(question)s, %(mode)s, %(checkpointed)s) RETURNING id

-- name: abort
UPDATE runs SET state = 'aborted', finished_at = clock_timestamp()
WHERE tenant_id = %(tenant)s AND session_id = %(session)s AND state = 'running'

-- name: abort_old
UPDATE runs SET state = 'aborted', finished_at = clock_timestamp()
WHERE tenant_id = %(tenant)s AND state = 'running' AND started_at < now() - make_interval(secs => %(seconds)s)

-- name: end
UPDATE runs SET state = %(state)s, turn_id = %(turn)s, session_id = coalesce(session_id, %(session)s),
    outcome = %(outcome)s, code = %(code)s, steps = %(steps)s::jsonb,
    model_calls = %(model_calls)s, prompt_tokens = %(prompt_tokens)s, completion_tokens = %(completion_tokens)s,
    finished_at = clock_timestamp(), ms = extract(epoch FROM clock_timestamp() - started_at) * 1000
WHERE tenant_id = %(tenant)s AND id = %(run)s AND state = 'running'

-- name: cancel
UPDATE runs SET cancelling = true WHERE tenant_id = %(tenant)s AND session_id = %(session)s AND state = 'running'

-- name: cancelling
SELECT cancelling FROM runs WHERE tenant_id = %(tenant)s AND id = %(run)s

-- name: last
SELECT question, state, turn_id FROM runs
WHERE tenant_id = %(tenant)s AND user_id = %(user)s AND session_id = %(session)s ORDER BY started_at DESC LIMIT 1

-- name: checkpointed
SELECT DISTINCT user_id FROM runs
WHERE tenant_id = %(tenant)s AND checkpointed AND state NOT IN ('running', 'waiting')
  AND finished_at < now() - make_interval(days => %(days)s)

-- name: forget
UPDATE runs SET checkpointed = false
WHERE tenant_id = %(tenant)s AND user_id = %(user)s AND checkpointed AND state NOT IN ('running', 'waiting')
  AND finished_at < now() - make_interval(days => %(days)s)
RETURNING id

-- name: delete_old
DELETE FROM runs WHERE tenant_id = %(tenant)s AND NOT checkpointed AND state NOT IN ('running', 'waiting')
  AND finished_at < now() - make_interval(days => %(days)s)

-- name: listing
SELECT r.id, r.user_id, u.name AS "user", r.session_id, r.turn_id, r.mode, r.state, r.outcome, r.code, r.model_calls,
       r.prompt_tokens, r.completion_tokens, r.ms, r.started_at
FROM runs r JOIN users u ON u.tenant_id = %(tenant)s AND u.id = r.user_id
WHERE r.tenant_id = %(tenant)s AND (%(user)s::text IS NULL OR lower(u.name) = lower(%(user)s))
ORDER BY r.started_at DESC LIMIT %(most)s

-- name: whole
SELECT r.*, u.name AS "user" FROM runs r JOIN users u ON u.tenant_id = %(tenant)s AND u.id = r.user_id
WHERE r.tenant_id = %(tenant)s AND r.id = %(run)s

-- name: note_reading
INSERT INTO readings (tenant_id, user_id, session_id, run_id, reader, reader_name, reason)
VALUES (%(tenant)s, %(user)s, %(session)s, %(run)s, %(reader)s, %(reader_name)s, %(reason)s)

-- name: readings
SELECT run_id, session_id, reader_name, reason, at FROM readings
WHERE tenant_id = %(tenant)s AND user_id = %(user)s AND (%(session)s::uuid IS NULL OR session_id = %(session)s)
ORDER BY at DESC LIMIT 200
