-- Search by words without lists that grow: a block holds all that its chunks hold, and is never touched by later ones.
--
-- A term that a block's chunks hold often is a row of lex_block as before, its weights now times its rarity, so that a
-- search only adds them up. What they hold seldom is in lex_list. All blocks are built anew by the worker; until then a
-- large tenant's searches compare every chunk.

TRUNCATE lex_block, lex_mask, lex_span;

-- factor: what the weights were multiplied by.
ALTER TABLE lex_block ADD factor real NOT NULL;
COMMENT ON COLUMN lex_block.weights IS
    'By place in the block, from 1: weight in lex_doc, of retired ones too, times factor.';

DROP TABLE lex_posting;

-- chunks: those that hold the term at the same place of terms, which is sorted, for the seldom terms of a block that
-- have the same remainder.
CREATE TABLE lex_list (
    tenant_id uuid NOT NULL,
    remainder integer NOT NULL,
    block integer NOT NULL,
    terms integer[] NOT NULL,
    chunks integer[] NOT NULL,
    PRIMARY KEY (tenant_id, remainder, block)
) PARTITION BY LIST (tenant_id);

SELECT protect('lex_list');
GRANT SELECT, INSERT, UPDATE, DELETE ON lex_list TO intramuros_app;

DO $$
DECLARE
    one uuid;
BEGIN
    FOREACH one IN ARRAY ARRAY(SELECT id FROM tenants) LOOP
        PERFORM set_config('intramuros.tenant', one::text, true);
        PERFORM add_partition('lex_list', 'lex_list_' || replace(one::text, '-', ''), one::text);
        UPDATE lex_stat SET merged_to = 0, strays = '{}' WHERE tenant_id = one;
    END LOOP;
    PERFORM set_config('intramuros.tenant', '', true);
END $$;

-- Documents whose newest revision is not in force yet are found without reading the others.
CREATE INDEX documents_later ON documents (tenant_id, newest_from) WHERE newest_from IS NOT NULL;

-- As before, with twice the care for each vector's neighbours. The graph is built in memory where the server has so much
-- for its buffers.
CREATE OR REPLACE FUNCTION index_embedding_set(embedder text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = intramuros, public, pg_temp AS $$
DECLARE
    tenant CONSTANT uuid := nullif(current_setting('intramuros.tenant', true), '')::uuid;
    child CONSTANT text := 'embeddings_' || replace(tenant::text, '-', '') || '_' || left(md5(embedder), 8);
    dimensions integer;
    needed bigint;
BEGIN
    UPDATE embedding_sets SET indexed = true
    WHERE tenant_id = tenant AND embedder_id = embedder AND NOT indexed RETURNING dimension INTO dimensions;
    IF FOUND THEN
        SELECT l.n * (2 * dimensions + 1000) INTO needed FROM lex_stat l WHERE l.tenant_id = tenant;
        PERFORM set_config('maintenance_work_mem', greatest(
            pg_size_bytes(current_setting('maintenance_work_mem')),
            least(needed, pg_size_bytes(current_setting('shared_buffers')))) / 1024 || 'kB', true);
        EXECUTE format('CREATE INDEX ON intramuros.%I USING hnsw ((v::halfvec(%s)) halfvec_ip_ops) '
                       'WITH (ef_construction = 128)', child, dimensions);
    END IF;
END $$;

DROP FUNCTION lex_dense(uuid, integer[], real[], uuid[], integer, real);

-- Merged chunks of these collections that may be among the best by the terms that their blocks hold often: none whose
-- sum of weights is above `level`, which is no less than `at_least`, is missing. At least `wanted` of them are above it,
-- where there are so many.
--
-- pgvector's own code adds the weights of whole blocks and compares every place at once. How high the level may be is
-- found by halving: on some of the blocks, and on all where the others are not like them.
CREATE FUNCTION lex_dense(tenant uuid, terms integer[], factors real[], allowed uuid[], wanted integer, at_least real)
RETURNS TABLE (chunk_id integer, level real)
LANGUAGE plpgsql STABLE ROWS 300 SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    size CONSTANT integer := (SELECT s.block_size FROM lex_stat s WHERE s.tenant_id = tenant);
    -- A term's rarity may have changed so much since it was multiplied with; where it did more, weights are corrected.
    near CONSTANT real := 0.02;
    -- No weight exceeds k1 + 1; a little more, because a real is rounded.
    most CONSTANT real := 2.2001 * (SELECT coalesce(sum(f), 0) FROM unnest(factors) f);
    sampled CONSTANT integer := 6;
    sums vector[];
    masks bit varying[];
    blocks integer[];
    slack real;
    low real;
    high real;
    middle real;
    bar vector;
    step integer;
    above integer;
    aim integer;
    found bit varying[];
BEGIN
    IF most <= at_least THEN
        RETURN;
    END IF;
    SELECT array_agg(b.total), array_agg(b.live), array_agg(b.block), max(b.slack) INTO sums, masks, blocks, slack
    FROM (
        SELECT m.block, m.live, t.total, t.slack
        FROM (SELECT l.block, bit_or(l.live) AS live FROM lex_mask l
              WHERE l.tenant_id = tenant AND l.collection_id = ANY(allowed) GROUP BY l.block OFFSET 0) m
        CROSS JOIN LATERAL (
            SELECT sum(CASE WHEN abs(k.ratio - 1) <= near THEN k.weights::vector
                            ELSE k.weights::vector * array_fill(k.ratio, ARRAY[size])::vector END) AS total,
                   max(CASE WHEN abs(k.ratio - 1) <= near THEN k.ratio ELSE 1 END) AS slack
            FROM unnest(terms, factors) AS u (term, factor)
            CROSS JOIN LATERAL (
                SELECT k.weights, (u.factor / k.factor)::real AS ratio FROM lex_block k
                WHERE k.tenant_id = tenant AND k.block = m.block AND k.term = u.term OFFSET 0) k) t
        WHERE bit_count(m.live) > 0 OFFSET 0) b
    WHERE b.total IS NOT NULL;
    IF sums IS NULL THEN
        RETURN;
    END IF;
    -- A sum is rounded differently here than where a chunk is scored by itself.
    slack := greatest(slack, 1) * 1.0001;
    low := at_least / slack;
    high := most;
    step := (cardinality(sums) + sampled - 1) / sampled;
    -- Some more than wanted: what is counted on some blocks is only about right for all.
    aim := ceil(wanted * 1.6 / step);
    LOOP
        FOR halving IN 1..12 LOOP
            middle := (low + high) / 2;
            bar := array_fill(middle, ARRAY[size])::vector;
            above := 0;
            FOR at IN 1..cardinality(sums) BY step LOOP
                above := above + bit_count(binary_quantize(sums[at] - bar) & masks[at]);
            END LOOP;
            IF above >= aim THEN
                low := middle;
                EXIT WHEN above <= aim + aim / 4;
            ELSE
                high := middle;
            END IF;
        END LOOP;
        bar := array_fill(low, ARRAY[size])::vector;
        above := 0;
        FOR at IN 1..cardinality(sums) LOOP
            found[at] := binary_quantize(sums[at] - bar) & masks[at];
            above := above + bit_count(found[at]);
        END LOOP;
        EXIT WHEN step = 1 OR above <= 10 * wanted AND (above >= wanted OR low <= at_least / slack);
        IF above < wanted THEN
            aim := 2 * aim + 1;
            high := low;
            low := at_least / slack;
        ELSE
            -- The other blocks are not like these, so all are counted.
            step := 1;
            aim := wanted;
            high := most;
        END IF;
    END LOOP;
    -- Each 1 stands after what is split off before it.
    RETURN QUERY
    SELECT blocks[f.at] * size + f.place - 1, low * slack FROM (
        SELECT b.at, (sum(length(piece) + 1) OVER (PARTITION BY b.at ORDER BY piece_at))::integer AS place
        FROM unnest(found) WITH ORDINALITY AS b (bits, at)
        CROSS JOIN LATERAL string_to_table(b.bits::text, '1') WITH ORDINALITY AS s (piece, piece_at)
        WHERE bit_count(b.bits) > 0) f
    WHERE f.place <= size;
END $$;
REVOKE ALL ON FUNCTION lex_dense(uuid, integer[], real[], uuid[], integer, real) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lex_dense(uuid, integer[], real[], uuid[], integer, real) TO intramuros_app;
