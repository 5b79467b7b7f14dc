-- Tenants are made, listed and removed by the owner; the app role can only find one by its short name.

-- name: find
SELECT id, slug, name FROM find_tenant(%(slug)s)

-- name: create
INSERT INTO tenants (slug, name) VALUES (%(slug)s, %(name)s) RETURNING id, slug, name

-- name: enter
SELECT set_config('intramuros.tenant', %(tenant)s, true)

-- name: furnish
WITH operator AS (
    INSERT INTO users (tenant_id, id, name, role, disabled)
    VALUES (%(tenant)s, '00000000-0000-0000-0000-000000000000', 'operator', 'admin', true)
), statistics AS (
    INSERT INTO lex_stat (tenant_id, text_average, title_average, headings_average)
    VALUES (%(tenant)s, %(text)s, %(title)s, %(headings)s)
)
SELECT add_partition('chunks', 'chunks_' || %(suffix)s, %(tenant)s::text),
       add_partition('placements', 'placements_' || %(suffix)s, %(tenant)s::text),
       add_partition('lex_doc', 'lex_doc_' || %(suffix)s, %(tenant)s::text),
       add_partition('embeddings', 'embeddings_' || %(suffix)s, %(tenant)s::text, 'embedder_id')

-- name: list_all
SELECT id, slug, name FROM tenants ORDER BY slug

-- name: by_slug
SELECT id, slug, name FROM tenants WHERE slug = %(slug)s FOR UPDATE

-- name: count
SELECT (SELECT count(*) FROM users WHERE tenant_id = %(tenant)s AND password_hash IS NOT NULL) AS users,
       (SELECT count(*) FROM collections WHERE tenant_id = %(tenant)s) AS collections,
       (SELECT count(*) FROM documents WHERE tenant_id = %(tenant)s) AS documents,
       (SELECT count(*) FROM revisions WHERE tenant_id = %(tenant)s) AS revisions,
       (SELECT count(*) FROM chunks WHERE tenant_id = %(tenant)s) AS chunks,
       (SELECT count(*) FROM placements WHERE tenant_id = %(tenant)s) AS placements,
       (SELECT count(*) FROM embeddings WHERE tenant_id = %(tenant)s) AS vectors,
       (SELECT count(*) FROM lex_doc WHERE tenant_id = %(tenant)s) AS words,
       (SELECT count(*) FROM sessions WHERE tenant_id = %(tenant)s) AS sessions,
       (SELECT count(*) FROM turns WHERE tenant_id = %(tenant)s) AS turns,
       (SELECT count(*) FROM checkpoints.checkpoints
        WHERE split_part(thread_id, ':', 1) = %(tenant)s::text) AS checkpoints

-- name: remove
WITH terms AS (
    DELETE FROM lex_term WHERE tenant_id = %(tenant)s
), writes AS (
    DELETE FROM checkpoints.checkpoint_writes WHERE split_part(thread_id, ':', 1) = %(tenant)s::text
), blobs AS (
    DELETE FROM checkpoints.checkpoint_blobs WHERE split_part(thread_id, ':', 1) = %(tenant)s::text
), checkpoints AS (
    DELETE FROM checkpoints.checkpoints WHERE split_part(thread_id, ':', 1) = %(tenant)s::text
)
DELETE FROM tenants WHERE id = %(tenant)s
