-- Whole answers of this day, given again to the same question while all that they were made from is the same.

-- key: a hash over the question, the rights, the state of all that can be read and whatever else shaped the answer.
CREATE TABLE kept_answers (
    tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    key bytea NOT NULL,
    answer jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, key)
);
CREATE INDEX kept_answers_age ON kept_answers (tenant_id, created_at);

SELECT protect('kept_answers'::regclass);
GRANT SELECT, INSERT, UPDATE, DELETE ON kept_answers TO intramuros_app;

-- What was deleted is not quoted by what is kept for later.
CREATE FUNCTION forget_kept_answers() RETURNS trigger LANGUAGE plpgsql SET search_path = intramuros, pg_temp AS $$
BEGIN
    DELETE FROM kept_answers WHERE tenant_id = nullif(current_setting('intramuros.tenant', true), '')::uuid;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION forget_kept_answers() FROM PUBLIC;
CREATE TRIGGER forget_kept_answers AFTER DELETE ON documents
    FOR EACH STATEMENT EXECUTE FUNCTION forget_kept_answers();
