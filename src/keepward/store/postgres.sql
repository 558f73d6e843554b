-- What PostgreSQL says in other words than SQLite.

-- payloads_with_blobs --
-- Payloads of the journal in which a blob is named.
SELECT payload FROM events
 WHERE tenant = :tenant AND payload IS NOT NULL AND position(CAST('"blob":"' AS BYTEA) IN payload) > 0;

-- commits_before --
-- Of a kind and with a part in their details, where these are named; what was erased may have had it.
{{commit_row}} WHERE c.tenant = :tenant AND c.seq < :before
   AND (CAST(:kind AS TEXT) IS NULL OR c.kind = :kind)
   AND (CAST(:part AS BYTEA) IS NULL OR c.payload IS NULL OR position(CAST(:part AS BYTEA) IN c.payload) > 0)
 ORDER BY c.seq DESC LIMIT :limit;

-- naming_payloads --
-- The newest versions that name memories or blobs.
SELECT e.payload FROM events e JOIN records r ON r.tenant = e.tenant AND r.position = e.seq * 1048576 + e.n
 WHERE e.tenant = :tenant AND (position(CAST('"aliases":' AS BYTEA) IN e.payload) > 0
       OR position(CAST('"blob":' AS BYTEA) IN e.payload) > 0
       OR position(CAST('"derived_from":' AS BYTEA) IN e.payload) > 0);

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
