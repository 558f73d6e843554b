-- What PostgreSQL says in other words than SQLite.

-- facts_usage --
-- How many live memories were used, and how often in all.
SELECT count(DISTINCT u.id), CAST(coalesce(sum(u.uses), 0) AS BIGINT) FROM (
    SELECT d.tenant, d.id, CAST(CAST(convert_from(d.body, 'UTF8') AS JSON) ->> 'count' AS BIGINT) AS uses
      FROM documents d WHERE d.tenant = :tenant AND d.kind = 'usage' AND d.state IS DISTINCT FROM 'context'
    UNION ALL
    SELECT d.tenant, h.value ->> 0, 1
      FROM documents d
     CROSS JOIN LATERAL json_array_elements(CAST(convert_from(d.body, 'UTF8') AS JSON) -> 'held') AS h(value)
     WHERE d.tenant = :tenant AND d.kind = 'usage' AND d.state = 'context' AND CAST(h.value ->> 2 AS BOOLEAN)) AS u
  JOIN records r ON r.tenant = u.tenant AND r.id = u.id
 WHERE {{live}};

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
