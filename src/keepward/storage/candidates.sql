-- PostgreSQL's statements for candidates of recall in a large tenant; see candidates.py.

-- searched --
-- Fragment.
(SELECT count(*) FROM candidate_state s WHERE s.tenant = :tenant)

-- candidate_state --
SELECT arrival, level FROM candidate_state WHERE tenant = :tenant;

-- set_candidate_state --
INSERT INTO candidate_state (tenant, arrival, level) VALUES (?, ?, ?)
    ON CONFLICT (tenant) DO UPDATE SET arrival = excluded.arrival, level = excluded.level;

-- candidates_lacking --
-- Tenants with other candidates than their active memories, or with other words or vectors than these name.
SELECT s.tenant FROM candidate_state s
  JOIN LATERAL (SELECT count(*) AS n, coalesce(sum(c.units), 0) AS units, coalesce(sum(cardinality(c.terms)), 0) AS words
                  FROM candidates c WHERE c.tenant = s.tenant) AS due ON TRUE
 WHERE s.level = 1
   AND (due.n <> (SELECT count(*) FROM records r WHERE r.tenant = s.tenant AND r.status = 'active')
        OR due.units <> (SELECT count(*) FROM candidate_vectors v WHERE v.tenant = s.tenant)
        OR due.words <> (SELECT count(*) FROM candidate_words w WHERE w.tenant = s.tenant))
 ORDER BY s.tenant;

-- candidates_unread --
-- Active memories that arrived after one, in their order.
{{profile}} WHERE r.tenant = :tenant AND r.arrival > :after AND r.status = 'active'
 ORDER BY r.arrival LIMIT :most;

-- add_candidate --
WITH added AS (
    INSERT INTO candidates (tenant, arrival, scope, sensitive, trust, until, turn, length, space, units, terms)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING tenant, arrival, terms)
INSERT INTO candidate_words (tenant, term, arrival) SELECT tenant, unnest(terms), arrival FROM added;

-- drop_candidates --
WITH gone AS (
    DELETE FROM candidates WHERE tenant = :tenant AND arrival = ANY(CAST(:arrivals AS BIGINT[]))
    RETURNING arrival, terms),
words AS (
    DELETE FROM candidate_words w USING (SELECT arrival, unnest(terms) AS term FROM gone) AS g
     WHERE w.tenant = :tenant AND w.term = g.term AND w.arrival = g.arrival)
DELETE FROM candidate_vectors WHERE tenant = :tenant AND arrival = ANY(CAST(:arrivals AS BIGINT[]));

-- may_be_seen --
-- Fragment: the candidates c that a reader may see.
c.tenant = :tenant AND c.scope IN (SELECT value FROM json_each(:scopes)) AND c.trust >= :trust
   AND (:sensitive = 1 OR c.sensitive = 0) AND (c.until IS NULL OR c.until > :now)

-- passes_too --
-- Fragment: whether a candidate passes the rest of a filter.
(:narrow = 0 OR EXISTS (SELECT 1 FROM records r
   CROSS JOIN LATERAL (SELECT CAST(convert_from(r.body, 'UTF8') AS JSON) AS body) AS j
 WHERE r.tenant = c.tenant AND r.arrival = c.arrival AND {{passes}}
   AND (CAST(:key AS TEXT) IS NULL OR r.key = :key)
   AND (:session = '[]' OR r.session IN (SELECT value FROM json_each(:session)))
   AND (:subject = '[]' OR r.subject IN (SELECT value FROM json_each(:subject)))
   AND (:content_types = '[]'
        OR coalesce(j.body ->> 'content_type', 'text') IN (SELECT value FROM json_each(:content_types)))
   AND (:tags = '[]' OR EXISTS (SELECT 1 FROM json_array_elements_text(j.body -> 'tags') AS tag
        WHERE tag IN (SELECT value FROM json_each(:tags))))
   AND CAST(j.body ->> 'importance' AS BIGINT) >= :min_importance))

-- candidates_seen --
-- Counts of visible memories and their terms, of those of a session, and of those with vectors of a space.
SELECT count(*), CAST(coalesce(sum(c.length), 0) AS BIGINT), CAST(coalesce(sum(c.turn * c.length), 0) AS BIGINT),
       count(*) FILTER (WHERE c.space = :space), CAST(coalesce(sum(c.units) FILTER (WHERE c.space = :space), 0) AS BIGINT)
  FROM candidates c WHERE {{may_be_seen}} AND {{passes_too}};

-- candidates_all --
-- Visible memories that pass, at most so many, in no stated order.
SELECT c.arrival FROM candidates c WHERE {{may_be_seen}} AND {{passes_too}} LIMIT :most;

-- candidate_holders --
-- How many visible memories contain each term, rarest first.
SELECT w.term, count(*) FROM candidate_words w JOIN candidates c ON c.tenant = w.tenant AND c.arrival = w.arrival
 WHERE w.tenant = :tenant AND w.term = ANY(CAST(:terms AS BIGINT[])) AND {{may_be_seen}} AND {{passes_too}}
 GROUP BY w.term ORDER BY 2, 1;

-- candidates_by_words --
-- The visible memories whose words weigh most for their length.
SELECT w.arrival FROM unnest(CAST(:terms AS BIGINT[]), CAST(:weights AS DOUBLE PRECISION[])) AS t(term, weight)
  JOIN candidate_words w ON w.tenant = :tenant AND w.term = t.term
  JOIN candidates c ON c.tenant = w.tenant AND c.arrival = w.arrival
 WHERE {{may_be_seen}} AND {{passes_too}}
 GROUP BY w.arrival, c.length
 ORDER BY sum(t.weight) / (1 + CAST(:base AS DOUBLE PRECISION) + CAST(:each AS DOUBLE PRECISION) * c.length) DESC, w.arrival DESC
 LIMIT :most;

-- candidates_nearest --
-- The visible memories whose vectors are nearest; the caller writes the distance.
SELECT v.arrival FROM candidate_vectors v JOIN candidates c ON c.tenant = v.tenant AND c.arrival = v.arrival
 WHERE v.tenant = :tenant AND v.space = :space AND {{may_be_seen}} AND {{passes_too}}
 ORDER BY DISTANCE LIMIT :most;

-- candidate_sample --
-- Packed vectors of some visible memories of a space.
SELECT f.vectors FROM candidates c TABLESAMPLE BERNOULLI (CAST(:percent AS REAL)) REPEATABLE (1)
  JOIN records AS own ON own.tenant = c.tenant AND own.arrival = c.arrival
  JOIN features f ON f.tenant = own.tenant AND f.id = own.id
 WHERE {{may_be_seen}} AND {{passes_too}} AND c.space = :space;

-- candidates_near_turns --
-- The messages before and after some messages in their sessions.
SELECT near.arrival FROM unnest(CAST(:sessions AS TEXT[]), CAST(:arrivals AS BIGINT[])) AS f(session, arrival)
 CROSS JOIN LATERAL (
    (SELECT r.arrival FROM records r
      WHERE r.tenant = :tenant AND r.session = f.session AND r.arrival < f.arrival AND r.status = 'active'
      ORDER BY r.arrival DESC LIMIT :reach)
    UNION ALL
    (SELECT r.arrival FROM records r
      WHERE r.tenant = :tenant AND r.session = f.session AND r.arrival > f.arrival AND r.status = 'active'
      ORDER BY r.arrival LIMIT :reach)) AS near;

-- candidate_profiles --
{{profile}} WHERE r.tenant = :tenant AND r.arrival = ANY(CAST(:arrivals AS BIGINT[])) AND r.status = 'active'
UNION ALL
{{profile}}
 WHERE r.tenant = :tenant AND r.id IN (SELECT value FROM json_each(:ids)) AND r.status = 'active';

-- candidate_index --
-- Whether an index exists and is usable, and the schema of the extension.
SELECT coalesce((SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass(:name)), FALSE),
       (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
         WHERE e.extname = 'vector');

-- candidate_tune --
-- Settings of a query for the nearest: plan with its values, and scan the index in order until enough rows pass.
SELECT set_config('plan_cache_mode', 'force_custom_plan', TRUE), set_config('enable_sort', :sort, TRUE),
       set_config('hnsw.iterative_scan', 'relaxed_order', TRUE),
       set_config('hnsw.ef_search', :breadth, TRUE);

-- candidate_spaces --
-- The spaces of a tenant: how many vectors each has, and of one of its memories the vectors and where they are.
SELECT s.space, s.units, f.vectors, (
       SELECT CAST(v.tableoid::regclass AS TEXT) FROM candidate_vectors v
        WHERE v.tenant = :tenant AND v.arrival = s.arrival LIMIT 1)
  FROM (SELECT c.space, CAST(sum(c.units) AS BIGINT) AS units, min(c.arrival) AS arrival
          FROM candidates c WHERE c.tenant = :tenant AND c.units > 0 GROUP BY c.space) AS s
  JOIN records r ON r.tenant = :tenant AND r.arrival = s.arrival
  JOIN features f ON f.tenant = r.tenant AND f.id = r.id
 ORDER BY s.space;

-- add_candidate_vector --
INSERT INTO candidate_vectors (tenant, arrival, n, space, vector) VALUES (?, ?, ?, ?, ?);
