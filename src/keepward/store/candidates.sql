-- What PostgreSQL keeps and asks to find candidates of recall in a large tenant; see candidates.py.

-- searched --
-- Fragment.
(SELECT count(*) FROM search_state s WHERE s.tenant = :tenant)

-- search_state --
SELECT arrival, level FROM search_state WHERE tenant = :tenant;

-- search_lacking --
-- Tenants with other candidates than their active memories and vectors.
SELECT s.tenant FROM search_state s
  JOIN LATERAL (SELECT count(*) AS n, coalesce(sum(r.units), 0) AS units FROM records r
                 WHERE r.tenant = s.tenant AND r.status = 'active') AS due ON TRUE
 WHERE s.level = 1
   AND (due.n <> (SELECT count(*) FROM search_rows h WHERE h.tenant = s.tenant)
        OR due.units <> (SELECT count(*) FROM search_units u WHERE u.tenant = s.tenant)
        OR due.n <> (SELECT coalesce(sum(c.memories), 0) FROM search_classes c WHERE c.tenant = s.tenant)
        OR due.units <> (SELECT coalesce(sum(p.units), 0) FROM search_spaces p WHERE p.tenant = s.tenant))
 ORDER BY s.tenant;

-- set_search_state --
INSERT INTO search_state (tenant, arrival, level) VALUES (?, ?, ?)
    ON CONFLICT (tenant) DO UPDATE SET arrival = excluded.arrival, level = excluded.level;

-- search_unread --
-- Active memories that arrived after one, in their order.
SELECT {{record_columns}}, {{feature_columns}}
  FROM records r WHERE r.tenant = :tenant AND r.arrival > :after AND r.status = 'active'
 ORDER BY r.arrival LIMIT :most;

-- search_classes --
-- What a reader may see, class by class, and the vectors of one space in each.
SELECT c.class, c.memories, c.length, c.turns, c.spoken, s.holders, s.units, s.ones
  FROM search_classes c LEFT JOIN search_spaces s ON s.tenant = c.tenant AND s.class = c.class AND s.space = :space
 WHERE c.tenant = :tenant AND c.memories > 0 AND c.trust >= :trust AND (:sensitive = 1 OR c.sensitive = 0)
   AND (:scopes = '[]' OR c.scope IN (SELECT value FROM json_each(:scopes)))
 ORDER BY c.class;

-- search_holders --
-- How many memories of some classes hold each term, rarest first.
SELECT term, CAST(sum(holders) AS BIGINT) FROM search_terms
 WHERE tenant = :tenant AND term = ANY(CAST(:terms AS BIGINT[])) AND class = ANY(CAST(:classes AS BIGINT[]))
 GROUP BY term ORDER BY 2, 1;

-- search_postings --
-- Which memories hold each term, a block a row, the newest first.
SELECT term, refs FROM search_terms
 WHERE tenant = :tenant AND term = ANY(CAST(:terms AS BIGINT[])) AND class = ANY(CAST(:classes AS BIGINT[]))
 ORDER BY first DESC LIMIT :most;

-- search_passing --
-- Those of some memories that pass a filter.
SELECT r.arrival FROM records r
 WHERE r.tenant = :tenant AND r.arrival = ANY(CAST(:arrivals AS BIGINT[])) AND {{passes}};

-- search_vectors --
-- Packed vectors of one embedder, by whatever recipe, as they are kept.
SELECT r.arrival, r.vectors FROM records r
 WHERE r.tenant = :tenant AND r.arrival = ANY(CAST(:arrivals AS BIGINT[])) 
   AND split_part(r.model, ' recipe=', 1) = :model
 ORDER BY r.arrival;

-- search_narrow --
-- The active memories that pass a filter.
SELECT r.arrival FROM records r WHERE r.tenant = :tenant AND r.status = 'active' AND {{passes}} LIMIT :most;

-- search_near_turns --
-- What stands around some turns in their sessions.
SELECT near.arrival FROM unnest(CAST(:sessions AS TEXT[]), CAST(:arrivals AS BIGINT[])) AS f(session, arrival)
 CROSS JOIN LATERAL (
    (SELECT r.arrival FROM records r
      WHERE r.tenant = :tenant AND r.session = f.session AND r.arrival < f.arrival AND r.status = 'active'
      ORDER BY r.arrival DESC LIMIT :reach)
    UNION ALL
    (SELECT r.arrival FROM records r
      WHERE r.tenant = :tenant AND r.session = f.session AND r.arrival > f.arrival AND r.status = 'active'
      ORDER BY r.arrival LIMIT :reach)) AS near;

-- search_profiles --
SELECT {{record_columns}}, {{feature_columns}}
  FROM records r WHERE r.tenant = :tenant AND r.arrival = ANY(CAST(:arrivals AS BIGINT[])) AND r.status = 'active'
UNION ALL
SELECT {{record_columns}}, {{feature_columns}}
  FROM records r
 WHERE r.tenant = :tenant AND r.id IN (SELECT value FROM json_each(:ids)) AND r.status = 'active';

-- search_index --
-- Whether the graph over the vectors of a space is there, and the schema of the extension.
SELECT coalesce((SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass(:name)), FALSE),
       (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
         WHERE e.extname = 'vector');

-- search_tune --
-- Planned for what is asked, walked from the graph's order, and on until enough pass.
SELECT set_config('plan_cache_mode', 'force_custom_plan', TRUE), set_config('enable_sort', :sort, TRUE),
       set_config('jit', 'off', TRUE), set_config('hnsw.iterative_scan', 'relaxed_order', TRUE),
       set_config('hnsw.ef_search', :breadth, TRUE);

-- search_spaces --
-- The spaces of a tenant, with how many vectors each has and one of them.
SELECT s.space, CAST(sum(s.units) AS BIGINT), min(length(s.ones) / 4) FROM search_spaces s
 WHERE s.tenant = :tenant GROUP BY s.space ORDER BY s.space;

-- search_part --
-- The part of the table in which the vectors of a tenant lie.
SELECT CAST(tableoid::regclass AS TEXT) FROM search_units WHERE tenant = :tenant LIMIT 1;

-- search_scopes --
SELECT class, scope, sensitive, trust, memories, length, turns, spoken FROM search_classes
 WHERE tenant = :tenant ORDER BY class;

-- search_sums --
SELECT class, space, holders, units, ones FROM search_spaces WHERE tenant = :tenant;

-- put_search_class --
INSERT INTO search_classes (tenant, class, scope, sensitive, trust, memories, length, turns, spoken)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, class) DO UPDATE SET memories = excluded.memories, length = excluded.length,
       turns = excluded.turns, spoken = excluded.spoken;

-- put_search_sum --
INSERT INTO search_spaces (tenant, class, space, holders, units, ones) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, class, space) DO UPDATE SET holders = excluded.holders, units = excluded.units,
       ones = excluded.ones;

-- drop_search_rows --
DELETE FROM search_rows WHERE tenant = :tenant AND arrival = ANY(CAST(:arrivals AS BIGINT[]))
RETURNING arrival, class, turn, terms;

-- drop_search_units --
DELETE FROM search_units WHERE tenant = :tenant AND arrival = ANY(CAST(:arrivals AS BIGINT[]))
RETURNING arrival, class, space, CAST(bits AS TEXT);

-- add_search_row --
INSERT INTO search_rows (tenant, arrival, class, turn, terms)
SELECT * FROM unnest(CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]),
                     CAST(? AS BYTEA[]));

-- add_search_unit --
INSERT INTO search_units (tenant, arrival, n, space, class, until, bits)
SELECT tenant, arrival, n, space, class, until, CAST(bits AS BIT VARYING)
  FROM unnest(CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]),
              CAST(? AS BIGINT[]), CAST(? AS TEXT[])) AS f(tenant, arrival, n, space, class, until, bits);

-- search_block --
-- The block in which a memory stands under a term.
SELECT t.term, t.class, b.first, b.refs
  FROM unnest(CAST(:terms AS BIGINT[]), CAST(:classes AS BIGINT[]), CAST(:arrivals AS BIGINT[])) AS t(term, class, arrival)
 CROSS JOIN LATERAL (
       SELECT first, refs FROM search_terms b
        WHERE b.tenant = :tenant AND b.term = t.term AND b.class = t.class AND b.first <= t.arrival
        ORDER BY first DESC LIMIT 1) AS b;

-- set_search_block --
UPDATE search_terms SET holders = ?, refs = ? WHERE tenant = ? AND term = ? AND class = ? AND first = ?;

-- drop_empty_blocks --
DELETE FROM search_terms WHERE tenant = :tenant AND holders = 0 AND term = ANY(CAST(:terms AS BIGINT[]));

-- add_postings --
-- Behind what stands in the block of each term and class; in a block of their own where that one is full, which only
-- what arrived after everything else may begin.
INSERT INTO search_terms AS t (tenant, term, class, first, holders, refs)
SELECT :tenant, f.term, f.class, coalesce(b.first, f.first), length(f.refs) / 8, f.refs
  FROM unnest(CAST(:terms AS BIGINT[]), CAST(:classes AS BIGINT[]), CAST(:firsts AS BIGINT[]), CAST(:refs AS BYTEA[]))
       AS f(term, class, first, refs)
  LEFT JOIN LATERAL (
       SELECT s.first, length(s.refs) AS size FROM search_terms s
        WHERE s.tenant = :tenant AND s.term = f.term AND s.class = f.class AND s.first <= f.first
        ORDER BY s.first DESC LIMIT 1) AS b ON b.size < :full
    ON CONFLICT (tenant, term, class, first) DO UPDATE
   SET holders = t.holders + excluded.holders, refs = t.refs || excluded.refs;

-- add_blocks --
INSERT INTO search_terms (tenant, term, class, first, holders, refs)
SELECT :tenant, f.term, f.class, f.first, length(f.refs) / 8, f.refs
  FROM unnest(CAST(:terms AS BIGINT[]), CAST(:classes AS BIGINT[]), CAST(:firsts AS BIGINT[]), CAST(:refs AS BYTEA[]))
       AS f(term, class, first, refs);
