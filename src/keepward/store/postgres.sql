-- What PostgreSQL says in other words than SQLite.

-- facts_usage --
-- How many live memories were used, and how often in all.
SELECT count(*), CAST(coalesce(sum(CAST(CAST(convert_from(u.body, 'UTF8') AS JSON) ->> 'count' AS BIGINT)), 0) AS BIGINT)
  FROM documents u JOIN records r ON r.tenant = u.tenant AND r.id = u.id
 WHERE u.tenant = :tenant AND u.kind = 'usage' AND {{live}};

-- holders --
-- The memories under each mark that were touched last: positions rise with time.
SELECT CAST(j.value AS BIGINT), string_agg(CAST(p.position AS TEXT), ' ' ORDER BY p.position DESC)
  FROM json_each(:marks) AS j CROSS JOIN LATERAL (
       SELECT position FROM marks WHERE tenant = :tenant AND mark = CAST(j.value AS BIGINT)
        ORDER BY position DESC LIMIT :most) AS p
 GROUP BY j.value;

-- add_mark --
INSERT INTO marks (tenant, mark, position)
SELECT * FROM unnest(CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[])) ON CONFLICT DO NOTHING;
