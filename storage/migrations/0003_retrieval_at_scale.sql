-- Search by words over a million chunks of a tenant: common words by blocks of chunks, rare ones by lists of them.
--
-- What is merged is the chunks below lex_stat.merged_to but for the strays; the rest, the tail, is read one by one. A
-- block is block_size chunks by number. Whoever changes what stands here holds the tenant's row in lex_stat.

ALTER TABLE lex_stat
    ADD merged_to integer NOT NULL DEFAULT 0,
    ADD strays integer[] NOT NULL DEFAULT '{}',
    ADD block_size integer NOT NULL DEFAULT 16000 CHECK (block_size BETWEEN 1 AND 16000);
COMMENT ON COLUMN lex_stat.strays IS 'Chunks below merged_to whose words came after their block was built.';

-- chunks: all that hold the term, those deleted since among them; null: the term is dense, its chunks are in lex_block.
CREATE TABLE lex_posting (
    tenant_id uuid NOT NULL,
    term integer NOT NULL,
    chunks integer[],
    PRIMARY KEY (tenant_id, term)
) PARTITION BY LIST (tenant_id);
ALTER TABLE lex_posting ALTER chunks SET STORAGE EXTERNAL;

-- weights: by place in the block, from 1, the weight that the dense term has in that chunk's lex_doc; retired ones too.
CREATE TABLE lex_block (
    tenant_id uuid NOT NULL,
    block integer NOT NULL,
    term integer NOT NULL,
    weights sparsevec NOT NULL,
    PRIMARY KEY (tenant_id, block, term)
) PARTITION BY LIST (tenant_id);
ALTER TABLE lex_block ALTER weights SET STORAGE EXTERNAL;

-- live: one bit for each place in the block, set for the chunks of this collection that are in a newest revision.
CREATE TABLE lex_mask (
    tenant_id uuid NOT NULL,
    block integer NOT NULL,
    collection_id uuid NOT NULL,
    live bit varying NOT NULL,
    PRIMARY KEY (tenant_id, block, collection_id)
) PARTITION BY LIST (tenant_id);
ALTER TABLE lex_mask ALTER live SET STORAGE EXTERNAL;

-- One row for each block that was built: with how many chunks, and how many of them went since, or changed their weights.
CREATE TABLE lex_span (
    tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    block integer NOT NULL,
    chunks integer NOT NULL,
    gone integer NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, block)
);

SELECT protect(t::regclass) FROM unnest(ARRAY['lex_posting', 'lex_block', 'lex_mask', 'lex_span']) t;
GRANT SELECT, INSERT, UPDATE, DELETE ON lex_posting, lex_block, lex_mask, lex_span TO intramuros_app;

DO $$
DECLARE
    one uuid;
    parent text;
BEGIN
    FOR one, parent IN
        SELECT t.id, p FROM tenants t CROSS JOIN unnest(ARRAY['lex_posting', 'lex_block', 'lex_mask']) p
    LOOP
        PERFORM set_config('intramuros.tenant', one::text, true);
        PERFORM add_partition(parent, parent || '_' || replace(one::text, '-', ''), one::text);
    END LOOP;
    PERFORM set_config('intramuros.tenant', '', true);
END $$;

-- Merged chunks of these collections that may be among the best by their dense terms alone: none whose sum of weights is
-- above `level`, which is no less than `at_least`, is missing. At least `wanted` of them are above it, where there are so many.
--
-- pgvector's own code adds the weights of whole blocks and compares every place at once. How high the level may be is
-- found by halving on the few heaviest blocks: what so many there exceed, so many exceed in all.
CREATE FUNCTION lex_dense(tenant uuid, terms integer[], factors real[], allowed uuid[], wanted integer, at_least real)
RETURNS TABLE (chunk_id integer, level real)
LANGUAGE plpgsql STABLE ROWS 300 SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    size CONSTANT integer := (SELECT s.block_size FROM lex_stat s WHERE s.tenant_id = tenant);
    few CONSTANT integer := 8;
    low real := at_least;
    -- No weight exceeds k1 + 1; a little more, because a real is rounded.
    high real := 2.2001 * (SELECT coalesce(sum(f), 0) FROM unnest(factors) f);
    middle real;
    above integer;
    bar vector;
    scales vector[];
    sums vector[];
    masks bit varying[];
    blocks integer[];
    found bit varying[];
BEGIN
    IF high <= low THEN
        RETURN;
    END IF;
    scales := ARRAY(SELECT array_fill(f, ARRAY[size])::vector FROM unnest(factors) WITH ORDINALITY u (f, place)
                    ORDER BY place);
    SELECT array_agg(b.total ORDER BY vector_norm(b.total) DESC), array_agg(b.live ORDER BY vector_norm(b.total) DESC),
           array_agg(b.block ORDER BY vector_norm(b.total) DESC)
    INTO sums, masks, blocks
    FROM (
        SELECT m.block, m.live, (
            SELECT sum(k.weights::vector * scales[array_position(terms, k.term)]) FROM lex_block k
            WHERE k.tenant_id = tenant AND k.block = m.block AND k.term = ANY(terms)) AS total
        FROM (SELECT l.block, bit_or(l.live) AS live FROM lex_mask l
              WHERE l.tenant_id = tenant AND l.collection_id = ANY(allowed) GROUP BY l.block OFFSET 0) m
        WHERE bit_count(m.live) > 0 OFFSET 0) b
    WHERE b.total IS NOT NULL;
    IF sums IS NULL THEN
        RETURN;
    END IF;
    FOR halving IN 1..12 LOOP
        middle := (low + high) / 2;
        bar := array_fill(middle, ARRAY[size])::vector;
        above := 0;
        FOR at IN 1..least(few, cardinality(sums)) LOOP
            above := above + bit_count(binary_quantize(sums[at] - bar) & masks[at]);
        END LOOP;
        IF above >= wanted THEN
            low := middle;
            EXIT WHEN above <= wanted + wanted / 4;
        ELSE
            high := middle;
        END IF;
    END LOOP;
    -- A sum is rounded differently here than where a chunk is scored by itself.
    low := low * 0.9999;
    bar := array_fill(low, ARRAY[size])::vector;
    FOR at IN 1..cardinality(sums) LOOP
        found[at] := binary_quantize(sums[at] - bar) & masks[at];
    END LOOP;
    -- Each 1 stands after what is split off before it.
    RETURN QUERY
    SELECT blocks[f.at] * size + f.place - 1, low FROM (
        SELECT b.at, (sum(length(piece) + 1) OVER (PARTITION BY b.at ORDER BY piece_at))::integer AS place
        FROM unnest(found) WITH ORDINALITY AS b (bits, at)
        CROSS JOIN LATERAL string_to_table(b.bits::text, '1') WITH ORDINALITY AS s (piece, piece_at)
        WHERE bit_count(b.bits) > 0) f
    WHERE f.place <= size;
END $$;
REVOKE ALL ON FUNCTION lex_dense(uuid, integer[], real[], uuid[], integer, real) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lex_dense(uuid, integer[], real[], uuid[], integer, real) TO intramuros_app;
