-- Search by words with less beside its sums: a block's weights stand in their rows where these fit into a page, what was
-- summed to find the level is not summed again, and the level is found in fewer steps. And a tenant of a million chunks
-- gets its index over vectors.

CREATE OR REPLACE FUNCTION add_partition(parent text, child text, key text, sub_key text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = intramuros, public, pg_temp AS $$
BEGIN
    EXECUTE format('CREATE TABLE intramuros.%I (LIKE intramuros.%I INCLUDING ALL)', child, parent)
        || CASE WHEN sub_key IS NULL THEN '' ELSE format(' PARTITION BY LIST (%I)', sub_key) END
        || CASE WHEN parent = 'lex_block' THEN ' WITH (toast_tuple_target = 8160)' ELSE '' END;
    EXECUTE format('ALTER TABLE intramuros.%I ATTACH PARTITION intramuros.%I FOR VALUES IN (%L)', parent, child, key);
    PERFORM protect(format('intramuros.%I', child)::regclass);
END $$;

DO $$
DECLARE
    one regclass;
BEGIN
    -- What stands there already is left where it is until its block is built anew.
    FOR one IN SELECT i.inhrelid::regclass FROM pg_inherits i WHERE i.inhparent = 'lex_block'::regclass LOOP
        EXECUTE format('ALTER TABLE %s SET (toast_tuple_target = 8160)', one);
    END LOOP;
END $$;

DROP FUNCTION lex_sums(uuid, integer[], real[], uuid[], real, integer);

-- For each block that holds one of the terms often and has live chunks of these collections, of the sample (`step` divides
-- its number) or of the rest: the sums of the weights of these terms, each named once, by place in the block, and how much
-- larger than its sum a chunk's score may be. A term's rarity may have changed by `near` since its weights were multiplied
-- with it; where it changed more, or a term counts twice, they are corrected.
CREATE FUNCTION lex_sums(
    tenant uuid, terms integer[], factors real[], allowed uuid[], near real, step integer, sampled boolean)
RETURNS TABLE (block integer, live bit varying, total vector, slack real)
LANGUAGE sql STABLE AS $$
    SELECT m.block, m.live, t.total, t.slack
    FROM (SELECT l.block, bit_or(l.live) AS live FROM lex_mask l
          WHERE l.tenant_id = tenant AND l.collection_id = ANY(allowed) AND (l.block % step = 0) = sampled
          GROUP BY l.block OFFSET 0) m
    CROSS JOIN LATERAL (
        SELECT sum(CASE WHEN abs(k.ratio - 1) <= near THEN k.weights::vector
                        WHEN abs(k.ratio - 2) <= near THEN k.weights::vector + k.weights::vector
                        ELSE k.weights::vector * array_fill(k.ratio, ARRAY[vector_dims(k.weights::vector)])::vector
                   END) AS total,
               max(CASE WHEN abs(k.ratio - 1) <= near THEN k.ratio
                        WHEN abs(k.ratio - 2) <= near THEN k.ratio / 2 ELSE 1 END)::real AS slack
        FROM (SELECT k.weights, (factors[array_position(terms, k.term)] / k.factor)::real AS ratio FROM lex_block k
              WHERE k.tenant_id = tenant AND k.block = m.block AND k.term = ANY(terms) OFFSET 0) k) t
    WHERE t.total IS NOT NULL AND bit_count(m.live) > 0
$$;
REVOKE ALL ON FUNCTION lex_sums(uuid, integer[], real[], uuid[], real, integer, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lex_sums(uuid, integer[], real[], uuid[], real, integer, boolean) TO intramuros_app;

-- As before: merged chunks of these collections that may be among the best by the terms that their blocks hold often,
-- none whose sum of weights is above `level` missing, `level` no less than `at_least`, and at least `wanted` of them
-- above it, where there are so many. Each term is named once.
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
    -- So many places are looked through at a time for those that are found.
    part CONSTANT integer := 1000;
    size integer;
    step integer;
    aim integer;
    known integer[];
    sums vector[];
    lives bit varying[];
    low real;
    high real := most;
    -- The level that is tried and the one before it, and of either the logarithm of how many are above.
    middle real;
    counted real;
    earlier real;
    before real;
    guess real;
    bar vector;
    hits integer[];
    found bit varying[];
    bits bit varying;
    above integer;
    most_slack real;
BEGIN
    IF most <= at_least THEN
        RETURN;
    END IF;
    SELECT s.block_size, greatest(1, s.merged_to / s.block_size / sampled) INTO size, step
    FROM lex_stat s WHERE s.tenant_id = tenant;
    -- More than wanted: what is counted on some blocks is only about right for all, and to sum again costs most.
    aim := ceil(wanted * 1.8 / step);
    LOOP
        SELECT array_agg(s.block), array_agg(s.live), array_agg(s.total), max(s.slack) INTO known, lives, sums, most_slack
        FROM lex_sums(tenant, terms, factors, allowed, near, step, true) s;
        low := lowest;
        earlier := lowest;
        before := ln(size * greatest(cardinality(sums), 1));
        middle := low + (high - low) * 0.45;
        -- The logarithm of how many are above falls about evenly with the level: the next is guessed from two.
        FOR trial IN 1..12 LOOP
            EXIT WHEN sums IS NULL;
            bar := array_fill(middle, ARRAY[size])::vector;
            above := 0;
            FOR at IN 1..cardinality(sums) LOOP
                above := above + bit_count(binary_quantize(sums[at] - bar) & lives[at]);
            END LOOP;
            IF above >= aim THEN
                low := middle;
                EXIT WHEN above <= aim * 1.35;
            ELSE
                high := middle;
            END IF;
            counted := ln(above + 0.5);
            guess := middle + (ln(aim * 1.15) - counted) * (middle - earlier) / nullif(counted - before, 0);
            earlier := middle;
            before := counted;
            middle := CASE WHEN guess > low AND guess < high THEN guess ELSE (low + high) / 2 END;
        END LOOP;
        bar := array_fill(low, ARRAY[size])::vector;
        SELECT array_agg(b.block), array_agg(b.bits), coalesce(sum(bit_count(b.bits)), 0), greatest(most_slack, max(b.slack))
        INTO hits, found, above, most_slack
        FROM (SELECT s.block, binary_quantize(s.total - bar) & s.live AS bits, s.slack
              FROM lex_sums(tenant, terms, factors, allowed, near, step, false) s OFFSET 0) b;
        FOR at IN 1..coalesce(cardinality(sums), 0) LOOP
            bits := binary_quantize(sums[at] - bar) & lives[at];
            hits := hits || known[at];
            found := found || bits;
            above := above + bit_count(bits);
        END LOOP;
        EXIT WHEN step = 1 OR above <= 10 * wanted AND (above >= wanted OR low <= lowest);
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
    SELECT f.first + f.place - 1, (low * greatest(most_slack, 1) * rounding)::real FROM (
        SELECT hits[b.at] * size + p.start AS first, least(part, size - p.start) AS places,
               (sum(length(s.piece) + 1) OVER (PARTITION BY b.at, p.start ORDER BY s.piece_at))::integer AS place
        FROM unnest(found) WITH ORDINALITY AS b (bits, at)
        CROSS JOIN LATERAL (
            SELECT start, substring(b.bits FROM start + 1 FOR part) AS bits FROM generate_series(0, size - 1, part) start
            OFFSET 0) p
        CROSS JOIN LATERAL string_to_table(p.bits::text, '1') WITH ORDINALITY AS s (piece, piece_at)
        WHERE bit_count(p.bits) > 0) f
    WHERE f.place <= f.places;
END $$;

-- As before, but that bytes are counted in a number that holds them.
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
        SELECT l.n::bigint * (2 * dimensions + 1400) INTO needed FROM lex_stat l WHERE l.tenant_id = tenant;
        PERFORM set_config('maintenance_work_mem', greatest(
            pg_size_bytes(current_setting('maintenance_work_mem')),
            least(needed, pg_size_bytes(current_setting('shared_buffers')))) / 1024 || 'kB', true);
        EXECUTE format('CREATE INDEX ON intramuros.%I USING hnsw ((v::halfvec(%s)) halfvec_ip_ops) '
                       'WITH (m = 24, ef_construction = 200)', child, dimensions);
    END IF;
END $$;
