-- Runs: what became of each question and how, step by step; who read that; answers that wait for a person.
--
-- What a session remembers is its turns. LangGraph's checkpoints hold the working state of one run each, so that one that
-- waits for a person can go on; those made before were of whole sessions and say nothing that the turns do not.

ALTER TABLE turns
    ADD verdict text NOT NULL DEFAULT 'answer' CHECK (verdict IN ('answer', 'caveat', 'cannot')),
    ADD missing text[] NOT NULL DEFAULT '{}',
    ADD searched text[] NOT NULL DEFAULT '{}',
    ADD contacts text[] NOT NULL DEFAULT '{}';

ALTER TABLE collections ADD approvers text[];
COMMENT ON COLUMN collections.approvers IS 'Who, beside admins, approves answers that cite it before they are shown; null: '
    'they are shown at once.';

CREATE TABLE runs (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    user_id uuid NOT NULL,
    session_id uuid,
    turn_id uuid,
    question text NOT NULL,
    mode text NOT NULL,
    state text NOT NULL DEFAULT 'running'
        CHECK (state IN ('running', 'waiting', 'finished', 'failed', 'cancelled', 'aborted')),
    cancelling boolean NOT NULL DEFAULT false,
    checkpointed boolean NOT NULL DEFAULT false,
    outcome text,
    code text,
    steps jsonb NOT NULL DEFAULT '[]',
    model_calls integer NOT NULL DEFAULT 0,
    prompt_tokens integer NOT NULL DEFAULT 0,
    completion_tokens integer NOT NULL DEFAULT 0,
    ms integer,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, turn_id) REFERENCES turns ON DELETE CASCADE
);
COMMENT ON COLUMN runs.state IS 'aborted: its process ended without a word. waiting: for a person, see approvals.';
COMMENT ON COLUMN runs.checkpointed IS 'Whether LangGraph may hold a checkpoint of it.';
CREATE INDEX runs_session ON runs (tenant_id, session_id, started_at);
CREATE INDEX runs_user ON runs (tenant_id, user_id);
CREATE INDEX runs_turn ON runs (tenant_id, turn_id);
CREATE INDEX runs_started ON runs (tenant_id, started_at);

-- reader is not a key: what somebody read stays known when they are gone.
CREATE TABLE readings (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    user_id uuid NOT NULL,
    session_id uuid,
    run_id uuid NOT NULL,
    reader uuid NOT NULL,
    reader_name text NOT NULL,
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions ON DELETE CASCADE
);
COMMENT ON COLUMN readings.user_id IS 'Whose run was read.';
CREATE INDEX readings_user ON readings (tenant_id, user_id, at);
CREATE INDEX readings_session ON readings (tenant_id, session_id);

-- answer: as it would be shown; the turn says that it waits until somebody decides.
CREATE TABLE approvals (
    tenant_id uuid NOT NULL,
    turn_id uuid NOT NULL,
    run_id uuid NOT NULL,
    user_id uuid NOT NULL,
    collections text[] NOT NULL,
    answer jsonb NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT now(),
    decided_at timestamptz,
    decided_by uuid,
    approved boolean,
    reason text CHECK (length(reason) BETWEEN 1 AND 500),
    PRIMARY KEY (tenant_id, turn_id),
    FOREIGN KEY (tenant_id, turn_id) REFERENCES turns ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
COMMENT ON COLUMN approvals.user_id IS 'Who asked.';
CREATE INDEX approvals_waiting ON approvals (tenant_id, asked_at) WHERE decided_at IS NULL;
CREATE INDEX approvals_user ON approvals (tenant_id, user_id);

SELECT protect(t::regclass) FROM unnest(ARRAY['runs', 'readings', 'approvals']) t;
GRANT SELECT, INSERT, UPDATE, DELETE ON runs, readings, approvals TO intramuros_app;

DO $$
DECLARE
    one uuid;
BEGIN
    IF to_regclass('checkpoints.checkpoints') IS NOT NULL THEN
        FOREACH one IN ARRAY ARRAY(SELECT id FROM tenants) LOOP
            PERFORM set_config('intramuros.tenant', one::text, true);
            DELETE FROM checkpoints.checkpoint_writes;
            DELETE FROM checkpoints.checkpoint_blobs;
            DELETE FROM checkpoints.checkpoints;
        END LOOP;
        PERFORM set_config('intramuros.tenant', '', true);
    END IF;
END $$;
