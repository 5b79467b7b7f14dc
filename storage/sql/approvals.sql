-- Answers that wait to be approved. An approver decides where every collection that asks for approval names one of their
-- grantees, and they may read each; an admin decides everywhere.

-- name: asking
SELECT name FROM collections WHERE tenant_id = %(tenant)s AND approvers IS NOT NULL

-- name: ask
INSERT INTO approvals (tenant_id, turn_id, run_id, user_id, collections, answer)
VALUES (%(tenant)s, %(turn)s, %(run)s, %(user)s, %(collections)s, %(answer)s::jsonb)

-- name: asked
SELECT EXISTS (
    SELECT 1 FROM collections
    WHERE tenant_id = %(tenant)s AND approvers IS NOT NULL AND (%(admin)s OR approvers && %(grantees)s::text[])) AS asked

-- name: pending
SELECT a.*, u.name AS "user", count(*) OVER () AS waiting FROM approvals a
JOIN users u ON u.tenant_id = %(tenant)s AND u.id = a.user_id
WHERE a.tenant_id = %(tenant)s
  AND (a.turn_id = %(turn)s OR %(turn)s::uuid IS NULL AND a.decided_at IS NULL AND a.user_id <> %(user)s)
  AND (%(admin)s OR NOT EXISTS (
    SELECT 1 FROM unnest(a.collections) n (name)
    WHERE NOT EXISTS (
        SELECT 1 FROM collections c JOIN grants g ON g.tenant_id = %(tenant)s AND g.collection_id = c.id
        WHERE c.tenant_id = %(tenant)s AND c.name = n.name AND c.approvers && %(grantees)s::text[]
          AND g.grantee = ANY(%(grantees)s))))
ORDER BY a.asked_at, a.turn_id LIMIT %(most)s

-- name: decide
UPDATE approvals SET decided_at = now(), decided_by = %(by)s, approved = %(approved)s, reason = %(reason)s
WHERE tenant_id = %(tenant)s AND turn_id = %(turn)s AND decided_at IS NULL

-- name: decided
SELECT a.*, u.name AS "user" FROM approvals a
JOIN turns t ON t.tenant_id = %(tenant)s AND t.id = a.turn_id AND t.session_id = %(session)s AND t.outcome = 'waiting'
JOIN users u ON u.tenant_id = %(tenant)s AND u.id = a.user_id
WHERE a.tenant_id = %(tenant)s AND a.user_id = %(user)s AND a.decided_at IS NOT NULL ORDER BY a.asked_at

-- name: settle
UPDATE runs SET state = 'finished', outcome = %(outcome)s
WHERE tenant_id = %(tenant)s AND id = %(run)s AND state = 'waiting'
