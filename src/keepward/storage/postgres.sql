-- Statements that PostgreSQL runs in place of the one with the same name in queries.sql.

-- facts_usage --
-- How many live memories were used, and how often in all. Before there are statistics of a new store, a plain join may
-- read all memories for each that was used.
SELECT count(*), CAST(coalesce(sum(CAST(CAST(convert_from(u.body, 'UTF8') AS JSON) ->> 'count' AS BIGINT)), 0) AS BIGINT)
  FROM documents u CROSS JOIN LATERAL (
       SELECT * FROM records x WHERE x.tenant = u.tenant AND x.id = u.id OFFSET 0) AS r
 WHERE u.tenant = :tenant AND u.kind = 'usage' AND {{live}}
   AND (CAST(:scopes AS TEXT) IS NULL OR {{in_scopes}});

-- listed_as_of --
-- The newest version of each memory within the first commits, newest arrival first, without a sort.
{{event_row}}, f.seq * 1048576 + f.n
  FROM events f CROSS JOIN LATERAL (
       SELECT * FROM events x WHERE x.tenant = f.tenant AND x.memory_id = f.memory_id AND x.seq <= :as_of
        ORDER BY x.version DESC LIMIT 1) AS e
 WHERE f.tenant = :tenant AND f.version = 1 AND f.seq <= :as_of
 ORDER BY f.seq DESC, f.n DESC;

-- minhash_holders --
-- The memories with each minhash that were changed last: positions rise with time.
SELECT j.value, string_agg(CAST(p.position AS TEXT), ' ' ORDER BY p.position DESC)
  FROM json_each(:marks) AS j CROSS JOIN LATERAL (
       SELECT position FROM marks WHERE tenant = :tenant AND mark = j.value
        ORDER BY position DESC LIMIT :most) AS p
 GROUP BY j.value;

-- add_minhash --
INSERT INTO marks (tenant, mark, position)
SELECT * FROM unnest(CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[])) ON CONFLICT DO NOTHING;

-- next_transaction --
-- The number of the server's next transaction.
SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT);

-- unguarded_tables --
-- Tables of tenants whose row-level security has changed.
SELECT relname FROM pg_class AS c WHERE relnamespace = to_regnamespace(current_schema())
   AND relkind = 'r' AND relname NOT IN ('meta', 'migrations', 'server_state')
   AND NOT (relrowsecurity AND relforcerowsecurity AND ARRAY['own'] = ARRAY(
       SELECT CAST(polname AS TEXT) FROM pg_policy WHERE polrelid = c.oid))
 ORDER BY relname;

-- indexes --
SELECT indexname FROM pg_indexes WHERE schemaname = current_schema();

-- size_of_tables --
SELECT CAST(coalesce(sum(pg_total_relation_size(oid)), 0) AS BIGINT) FROM pg_class
 WHERE relnamespace = to_regnamespace(current_schema()) AND relkind = 'r';

-- put_blob_bytes --
INSERT INTO blob_bytes (tenant, place, data) VALUES (?, ?, ?)
    ON CONFLICT (tenant, place) DO UPDATE SET data = excluded.data WHERE blob_bytes.data <> excluded.data;

-- blob_bytes --
SELECT data FROM blob_bytes WHERE tenant = ? AND place = ?;

-- size_of_blob --
SELECT length(data) FROM blob_bytes WHERE tenant = ? AND place = ?;

-- drop_blob_bytes --
DELETE FROM blob_bytes WHERE tenant = ? AND place = ?;

-- blob_paths --
SELECT tenant || '/' || place FROM blob_bytes ORDER BY tenant, place;
