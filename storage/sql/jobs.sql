-- Documents that wait, beside the jobs of the queue. A job names its document in its queueing lock, its tenant in its queue.

-- name: missing
SELECT d.id, d.next_attempt_at FROM documents d
WHERE d.tenant_id = %(tenant)s AND d.state IN ('queued', 'processing')
  AND (%(parent)s::uuid IS NULL OR d.parent_id = %(parent)s) AND (%(only)s::uuid IS NULL OR d.id = %(only)s)
  AND NOT EXISTS (SELECT 1 FROM procrastinate.procrastinate_jobs j
                  WHERE j.status = 'todo' AND j.queueing_lock = d.id::text)
ORDER BY d.created_at, d.path, d.id

-- name: hasten
-- A worker that listens is told as if the job were new.
WITH hastened AS (
    UPDATE procrastinate.procrastinate_jobs j SET scheduled_at = NULL FROM documents d
    WHERE d.tenant_id = %(tenant)s AND d.state IN ('queued', 'processing') AND d.next_attempt_at IS NULL
      AND j.status = 'todo' AND j.scheduled_at > now() AND j.queueing_lock = d.id::text
    RETURNING j.id
)
SELECT pg_notify('procrastinate_any_queue_v1', json_build_object('type', 'job_inserted', 'job_id', id)::text)
FROM hastened

-- name: waiting
SELECT count(*) AS jobs FROM procrastinate.procrastinate_jobs
WHERE queue_name = %(tenant)s::text AND status = 'todo'

-- name: moving
SELECT id, updated_at FROM documents
WHERE tenant_id = %(tenant)s AND (state = 'processing' OR updated_at > %(since)s)

-- name: load
SELECT count(*) FILTER (WHERE state = 'queued') AS waiting, count(*) FILTER (WHERE state = 'processing') AS processing,
       coalesce(avg(chunks) FILTER (WHERE state = 'ready'), 0)::float AS usual_chunks, now() AS at
FROM documents WHERE tenant_id = %(tenant)s
