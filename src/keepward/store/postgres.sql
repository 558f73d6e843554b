-- What PostgreSQL says in other words than SQLite.

-- holders --
-- The memories under each mark that were touched last: positions rise with time.
SELECT CAST(j.value AS BIGINT), string_agg(CAST(p.position AS TEXT), ' ' ORDER BY p.position DESC)
  FROM json_each(:marks) AS j CROSS JOIN LATERAL (
       SELECT position FROM marks WHERE tenant = :tenant AND mark = CAST(j.value AS BIGINT)
        ORDER BY position DESC LIMIT :most) AS p
 GROUP BY j.value;
