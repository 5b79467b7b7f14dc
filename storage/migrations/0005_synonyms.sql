-- Words that mean the same, one row each; those of one group have the same group_id.

CREATE TABLE synonyms (
    tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    key text NOT NULL,
    word text NOT NULL,
    group_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, key)
);
CREATE INDEX synonyms_group ON synonyms (tenant_id, group_id);
COMMENT ON COLUMN synonyms.key IS 'Stems, numbers and single Chinese characters of the word, with blanks between.';

SELECT protect('synonyms'::regclass);
GRANT SELECT, INSERT, UPDATE, DELETE ON synonyms TO intramuros_app;
