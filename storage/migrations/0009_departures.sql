-- Documents that were deleted a short while ago, for those who watch: a row that is gone says nothing of itself.

CREATE TABLE departures (
    tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    document_id uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, document_id)
);
CREATE INDEX departures_at ON departures (tenant_id, at);

SELECT protect('departures'::regclass);
GRANT SELECT, INSERT, UPDATE, DELETE ON departures TO intramuros_app;
