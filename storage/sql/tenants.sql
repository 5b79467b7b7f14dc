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
       add_partition('lex_list', 'lex_list_' || %(suffix)s, %(tenant)s::text),
       add_partition('lex_block', 'lex_block_' || %(suffix)s, %(tenant)s::text),
       add_partition('lex_mask', 'lex_mask_' || %(suffix)s, %(tenant)s::text),
       add_partition('embeddings', 'embeddings_' || %(suffix)s, %(tenant)s::text, 'embedder_id')

-- name: list_all
SELECT id, slug, name FROM tenants ORDER BY slug

-- name: by_slug
SELECT id, slug, name FROM tenants WHERE slug = %(slug)s FOR UPDATE

-- name: tables
-- Every table that may hold something of a tenant's: whole ones and parents of partitions, with what finds its rows.
SELECT n.nspname AS schema, c.relname AS name, CASE
    WHEN EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id') THEN 'tenant_id'
    WHEN EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'thread_id') THEN 'thread_id'
    ELSE 'text' END AS by
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname IN ('intramuros', 'checkpoints', 'procrastinate') AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY n.nspname = 'procrastinate', n.nspname, c.relname

-- name: named_after
SELECT count(*) AS relations FROM pg_class WHERE relname LIKE '%%' || %(hex)s || '%%'

-- name: remove
WITH terms AS (
    DELETE FROM lex_term WHERE tenant_id = %(tenant)s
), writes AS (
    DELETE FROM checkpoints.checkpoint_writes WHERE split_part(thread_id, ':', 1) = %(tenant)s::text
), blobs AS (
    DELETE FROM checkpoints.checkpoint_blobs WHERE split_part(thread_id, ':', 1) = %(tenant)s::text
), checkpoints AS (
    DELETE FROM checkpoints.checkpoints WHERE split_part(thread_id, ':', 1) = %(tenant)s::text
), jobs AS (
    DELETE FROM procrastinate.procrastinate_jobs WHERE queue_name = %(tenant)s::text
), stamps AS (
    DELETE FROM stamps WHERE tenant_id = %(tenant)s
), entries AS (
    DELETE FROM audit WHERE tenant_id = %(tenant)s
), heads AS (
    DELETE FROM audit_heads WHERE tenant_id = %(tenant)s
)
DELETE FROM tenants WHERE id = %(tenant)s
