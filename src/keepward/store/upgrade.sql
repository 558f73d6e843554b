-- The tables of the first format that became documents: first what the document says, then what stood under the old seal,
-- and that seal.

-- receipts --
SELECT id, CASE WHEN kind IN ('compile', 'recall') AND instr(body, CAST('"handed":' AS BLOB)) > 0 THEN 'handed'
            WHEN kind = 'compile' THEN 'whole' END,
       at, NULL, body, tenant, id, kind, at, body, seal FROM receipts;

-- proposals --
SELECT id, state, created_at, expires_at, body, tenant, id, state, created_at, expires_at, body, seal FROM proposals;

-- artefacts --
SELECT kind || '/' || version, NULL, 0, NULL, CAST(text AS BLOB), tenant, kind, version, text, seal FROM artefacts;

-- usage --
SELECT id, CASE WHEN count > learned THEN 'new' END, last_at, NULL,
       CAST(json_object('count', count, 'learned', learned) AS BLOB), tenant, id, count, last_at, learned, seal FROM usage;

-- feedback --
SELECT receipt || ' ' || actor, printf('%012d', n), at, NULL,
       CAST(json_object('tenant', tenant, 'n', n, 'at', at, 'receipt', receipt, 'actor', actor, 'trust',
            CASE json_extract(CAST(body AS TEXT), '$.trust') WHEN 'web' THEN 1 WHEN 'import' THEN 2 WHEN 'document' THEN 3
                 WHEN 'tool' THEN 4 WHEN 'agent' THEN 5 WHEN 'user' THEN 6 WHEN 'owner' THEN 7 ELSE 0 END,
            'used', json(json_extract(CAST(body AS TEXT), '$.used')),
            'ignored', json(json_extract(CAST(body AS TEXT), '$.ignored'))) AS BLOB),
       tenant, n, at, receipt, actor, body, seal FROM feedback;

-- tokens --
SELECT id, lower(hex(hash)), created_at, expires_at,
       CAST(json_object('id', id, 'name', name, 'hash', lower(hex(hash)), 'rights', rights, 'can', json(can),
            'tenant', tenant, 'scope', scope, 'created_by', created_by, 'created_at', created_at,
            'expires_at', expires_at, 'revoked_at', revoked_at) AS BLOB),
       tenant, id, name, hash, rights, can, scope, created_by, created_at, expires_at, revoked_at, seal FROM tokens;

-- blobs --
SELECT ref, NULL, at, NULL,
       CAST(json_object('tenant', tenant, 'at', at,
            'blob', json_object('ref', ref, 'bytes', bytes, 'media_type', media_type,
                                'active', json(CASE active WHEN 1 THEN 'true' ELSE 'false' END)),
            'puts', (SELECT json_group_array(json_object('kind', json_extract(value, '$[0]'),
                            'name', json_extract(value, '$[1]'), 'credential', json_extract(value, '$[2]'),
                            'at', json_extract(value, '$[3]'))) FROM json_each(CAST(puts AS TEXT)))) AS BLOB),
       tenant, ref, bytes, media_type, active, at, puts, seal FROM blobs;

-- jobs --
SELECT job, NULL, 0, until,
       CAST(json_object('tenant', tenant, 'job', job, 'holder', holder, 'until', until, 'last_at', last_at,
            'outcome', outcome, 'receipt', receipt) AS BLOB),
       tenant, job, holder, until, last_at, outcome, receipt, seal FROM jobs;

-- erased --
SELECT seq || '/' || n, NULL, by_seq, NULL,
       CAST(json_object('promise', lower(hex(promise)), 'remains', CAST(remains AS TEXT)) AS BLOB),
       tenant, seq, n, by_seq, promise, remains, seal FROM erased;
