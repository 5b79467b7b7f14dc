-- Checkpoints by thread. Row security shows them to the user of the transaction alone.

-- name: delete_checkpoints
DELETE FROM checkpoints.checkpoints WHERE thread_id = ANY(%(threads)s::text[])

-- name: delete_writes
DELETE FROM checkpoints.checkpoint_writes WHERE thread_id = ANY(%(threads)s::text[])

-- name: delete_blobs
DELETE FROM checkpoints.checkpoint_blobs WHERE thread_id = ANY(%(threads)s::text[])
