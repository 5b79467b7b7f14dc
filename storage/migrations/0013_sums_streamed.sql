-- Search in a large tenant: by words without keeping the sums of all its blocks (the level is sought on a sample of
-- blocks, then one pass over all of them keeps only which places are above it), by vector with more neighbours.

-- For each block that has live chunks of these collections, and whose number `every` divides: the sums of the weights of
-- these terms by place in the block, and how much larger than its sum a chunk's score may be. A term's rarity may have
-- changed by `near` since its weights were multiplied with it; where it changed more, they are corrected.
CREATE FUNCTION lex_sums(tenant uuid, terms integer[], factors real[], allowed uuid[], near real, every integer)
RETURNS TABLE (block integer, live bit varying, total vector, slack real)
LANGUAGE sql STABLE AS $$
    SELECT m.block, m.live, t.total, t.slack
    FROM (SELECT l.block, bit_or(l.live) AS live FROM lex_mask l
          WHERE l.tenant_id = tenant AND l.collection_id = ANY(allowed) AND l.block % every = 0
          GROUP BY l.block OFFSET 0) m
    CROSS JOIN LATERAL (
        SELECT sum(CASE WHEN abs(k.ratio - 1) <= near THEN k.weights::vector
                        ELSE k.weights::vector * array_fill(k.ratio, ARRAY[vector_dims(k.weights::vector)])::vector
                   END) AS total,
               max(CASE WHEN abs(k.ratio - 1) <= near THEN k.ratio ELSE 1 END) AS slack
        FROM unnest(terms, factors) AS u (term, factor)
        CROSS JOIN LATERAL (
            SELECT k.weights, (u.factor / k.factor)::real AS ratio FROM lex_block k
            WHERE k.tenant_id = tenant AND k.block = m.block AND k.term = u.term OFFSET 0) k) t
    WHERE t.total IS NOT NULL AND bit_count(m.live) > 0
$$;
REVOKE ALL ON FUNCTION lex_sums(uuid, integer[], real[], uuid[], real, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lex_sums(uuid, integer[], real[], uuid[], real, integer) TO intramuros_app;

-- As before: merged chunks of these collections that may be among the best by the terms that their blocks hold often,
-- none whose sum of weights is above `level` missing, `level` no less than `at_least`, and at least `wanted` of them
-- above it, where there are so many.
CREATE OR REPLACE FUNCTION
    lex_dense(tenant uuid, terms integer[], factors real[], allowed uuid[], wanted integer, at_least real)
RETURNS TABLE (chunk_id integer, level real)
LANGUAGE plpgsql STABLE ROWS 300 SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    near CONSTANT real := 0.02;
    -- A sum is rounded differently here than where a chunk is scored by itself.
    rounding CONSTANT real := 1.0001;
    -- No weight exceeds k1 + 1; a little more, because a real is rounded.
    most CONSTANT real := 2.2001 * (SELECT coalesce(sum(f), 0) FROM unnest(factors) f);
    lowest CONSTANT real := at_least / (1 + near) / rounding;
    sampled CONSTANT integer := 6;
    size integer;
    step integer;
    aim integer;
    sums vector[];
    masks bit varying[];
    low real;
    high real := most;
    middle real;
    bar vector;
    blocks integer[];
    found bit varying[];
    above integer;
    slack real;
BEGIN
    IF most <= at_least THEN
        RETURN;
    END IF;
    SELECT s.block_size, greatest(1, s.merged_to / s.block_size / sampled) INTO size, step
    FROM lex_stat s WHERE s.tenant_id = tenant;
    -- Some more than wanted: what is counted on some blocks is only about right for all.
    aim := ceil(wanted * 1.6 / step);
    LOOP
        SELECT array_agg(b.total), array_agg(b.live) INTO sums, masks
        FROM lex_sums(tenant, terms, factors, allowed, near, step) b;
        low := lowest;
        FOR halving IN 1..12 LOOP
            EXIT WHEN sums IS NULL;
            middle := (low + high) / 2;
            bar := array_fill(middle, ARRAY[size])::vector;
            above := 0;
            FOR at IN 1..cardinality(sums) LOOP
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
        SELECT array_agg(b.block), array_agg(b.bits), sum(bit_count(b.bits)), max(b.slack)
        INTO blocks, found, above, slack
        FROM (SELECT s.block, s.slack, binary_quantize(s.total - bar) & s.live AS bits
              FROM lex_sums(tenant, terms, factors, allowed, near, 1) s OFFSET 0) b;
        EXIT WHEN step = 1 OR above IS NULL OR above <= 10 * wanted AND (above >= wanted OR low <= lowest);
        IF above < wanted THEN
            aim := 2 * aim + 1;
            high := low;
        ELSE
            -- The other blocks are not like these, so all are counted.
            step := 1;
            aim := wanted;
            high := most;
        END IF;
    END LOOP;
    -- Each 1 stands after what is split off before it.
    RETURN QUERY
    SELECT blocks[f.at] * size + f.place - 1, (low * greatest(slack, 1) * rounding)::real FROM (
        SELECT b.at, (sum(length(piece) + 1) OVER (PARTITION BY b.at ORDER BY piece_at))::integer AS place
        FROM unnest(found) WITH ORDINALITY AS b (bits, at)
        CROSS JOIN LATERAL string_to_table(b.bits::text, '1') WITH ORDINALITY AS s (piece, piece_at)
        WHERE bit_count(b.bits) > 0) f
    WHERE f.place <= size;
END $$;

-- As before, with more neighbours for each vector: at a million chunks the nearest ten are found that 16 missed. Indexes
-- that stand stay as they are until their set is filled anew.
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
        SELECT l.n * (2 * dimensions + 1400) INTO needed FROM lex_stat l WHERE l.tenant_id = tenant;
        PERFORM set_config('maintenance_work_mem', greatest(
            pg_size_bytes(current_setting('maintenance_work_mem')),
            least(needed, pg_size_bytes(current_setting('shared_buffers')))) / 1024 || 'kB', true);
        EXECUTE format('CREATE INDEX ON intramuros.%I USING hnsw ((v::halfvec(%s)) halfvec_ip_ops) '
                       'WITH (m = 24, ef_construction = 200)', child, dimensions);
    END IF;
END $$;
