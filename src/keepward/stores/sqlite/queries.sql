-- meta --
SELECT value FROM meta WHERE name = :name;

-- set_meta --
INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- notes --
SELECT value FROM meta WHERE name LIKE 'note\_%' ESCAPE '\' ORDER BY name;

-- head --
-- The head row beside the newest commit; either side may be missing.
SELECT h.seq, h.hash, h.restored, h.mac, c.seq, c.hash
  FROM (SELECT :tenant AS tenant) AS t
  LEFT JOIN heads h ON h.tenant = t.tenant
  LEFT JOIN commits c ON c.tenant = t.tenant
        AND c.seq = (SELECT max(seq) FROM commits WHERE tenant = :tenant);

-- heads --
SELECT tenant, seq, hash, restored, mac FROM heads;

-- set_head --
INSERT INTO heads (tenant, seq, hash, restored, mac) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, hash = excluded.hash,
       restored = excluded.restored, mac = excluded.mac;

-- tenants --
SELECT DISTINCT tenant FROM commits ORDER BY tenant;

-- commit_hash_at --
SELECT hash FROM commits WHERE tenant = :tenant AND seq = :seq;

-- newest_versions --
SELECT memory_id, max(version) FROM events
 WHERE tenant = :tenant AND memory_id IN (SELECT value FROM json_each(:ids)) GROUP BY memory_id;

-- arrivals --
SELECT memory_id, seq * 1048576 + n FROM events
 WHERE tenant = :tenant AND version = 1 AND memory_id IN (SELECT value FROM json_each(:ids));

-- digest_taken --
-- Live memories that have the digest; an event may say what a fact says.
SELECT r.id FROM features f INDEXED BY features_digest CROSS JOIN records r ON r.tenant = f.tenant AND r.id = f.id
 WHERE f.tenant = :tenant AND f.digest = :digest AND r.status = 'active' AND r.kind <> 'event'
   AND r.tier = :tier AND r.scope = :scope AND r.sensitivity = :sensitivity AND r.subject IS :subject
   AND (r.expires_at IS NULL OR r.expires_at > :now);

-- add_commit --
INSERT INTO commits (tenant, seq, id, at, kind, actor_kind, prev, events_hash, salt, payload, hash, seal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- add_event --
INSERT INTO events (tenant, seq, n, op, memory_id, version, salt, payload, payload_commit, seal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- add_record --
INSERT INTO records (tenant, id, version, seq, n, position, arrival, status, tier, kind, scope, key, subject,
       category, content_type, sensitivity, source, trust, importance, created_at, expires_at, job, session, tags,
       stability, standing)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- whole_record --
-- Fragment: every column of a record, as ``rows.record_row`` has them.
tenant, id, version, seq, n, position, arrival, status, tier, kind, scope, key, subject, category, content_type,
       sensitivity, source, trust, importance, created_at, expires_at, job, session, tags, stability, standing

-- whole_records --
SELECT {{whole_record}} FROM records WHERE tenant = :tenant;

-- drop_records --
DELETE FROM records WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:ids)) RETURNING {{whole_record}};

-- drop_lineage --
DELETE FROM lineage WHERE tenant = :tenant AND child IN (SELECT value FROM json_each(:ids));

-- drop_aliases --
DELETE FROM aliases WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:ids));

-- drop_attachments --
DELETE FROM attachments WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:ids));

-- add_attachment --
INSERT OR IGNORE INTO attachments (tenant, ref, id) VALUES (?, ?, ?);

-- add_lineage --
INSERT OR IGNORE INTO lineage (tenant, parent, child) VALUES (?, ?, ?);

-- add_alias --
INSERT OR IGNORE INTO aliases (tenant, alias, id) VALUES (?, ?, ?);

-- set_features --
INSERT INTO features (tenant, id, version, model, units, digest, marks, terms, vectors, trait, seal, facts, bond)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, id) DO UPDATE SET version = excluded.version, model = excluded.model,
       units = excluded.units, digest = excluded.digest, marks = excluded.marks, terms = excluded.terms,
       vectors = excluded.vectors, trait = excluded.trait, seal = excluded.seal, facts = excluded.facts,
       bond = excluded.bond;

-- features_by_id --
SELECT f.id, f.version, f.model, f.units, f.digest, f.marks, f.terms, f.vectors, f.trait, f.seal FROM features f
 WHERE f.tenant = :tenant AND f.id IN (SELECT value FROM json_each(:ids));

-- places --
-- Where the marks of memories stand now.
SELECT id, version, status, tier || ' ' || sensitivity || ' ' || scope, position FROM records
 WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:ids));

-- drop_mark --
DELETE FROM marks WHERE tenant = ? AND mark = ? AND position = ?;

-- add_mark --
INSERT OR IGNORE INTO marks (tenant, mark, position) VALUES (?, ?, ?);

-- add_receipt --
INSERT INTO receipts (tenant, id, kind, at, body, seal) VALUES (?, ?, ?, ?, ?, ?);

-- unreceipted --
-- Commits made here whose receipt is missing, and its name; one whose details cannot be read is left to its hash.
SELECT named.seq, named.receipt
  FROM (SELECT c.seq, CASE WHEN json_valid(CAST(c.payload AS TEXT))
                           THEN json_extract(CAST(c.payload AS TEXT), '$.receipt') END AS receipt
          FROM commits c LEFT JOIN heads h ON h.tenant = c.tenant
         WHERE c.tenant = :tenant AND c.seq > coalesce(h.restored, 0)) AS named
 WHERE named.receipt IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM receipts r WHERE r.tenant = :tenant AND r.id = named.receipt)
 ORDER BY named.seq;

-- receipt --
SELECT id, kind, at, body, seal FROM receipts WHERE tenant = :tenant AND id = :id;

-- receipts_handed --
-- Receipts of contexts and recalls that handed out something of low trust, after an id; ids begin with the time.
SELECT id, kind, at, body, seal FROM receipts
 WHERE tenant = :tenant AND id > :after AND kind IN ('compile', 'recall')
   AND instr(body, CAST('"handed":' AS BLOB)) > 0
 ORDER BY id;

-- receipts_by_prefix --
SELECT id, kind, at, body, seal FROM receipts
 WHERE tenant = :tenant AND id >= :id AND id < :id || char(1114111) ORDER BY id LIMIT 2;

-- add_delivery --
INSERT OR IGNORE INTO deliveries (tenant, memory_id, version, receipt) VALUES (?, ?, ?, ?);

-- deliveries --
-- Contexts that held any of these memories, oldest receipt first.
SELECT memory_id, version, receipt FROM deliveries
 WHERE tenant = :tenant AND memory_id IN (SELECT value FROM json_each(:ids)) ORDER BY receipt, memory_id, version;

-- set_proposal --
INSERT INTO proposals (tenant, id, state, created_at, expires_at, body, seal) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, id) DO UPDATE SET state = excluded.state, created_at = excluded.created_at,
       expires_at = excluded.expires_at, body = excluded.body, seal = excluded.seal;

-- queue --
-- Oldest first.
SELECT id, state, created_at, expires_at, body, seal FROM proposals
 WHERE tenant = :tenant AND (:state IS NULL OR state = :state) ORDER BY created_at, id;

-- untold --
-- Proposals that were decided against, or have run out, and whose proposer has not been told.
SELECT count(*) FROM proposals
 WHERE tenant = :tenant AND (state IN ('rejected', 'expired', 'stale') OR (state = 'pending' AND expires_at <= :now))
   AND NOT coalesce(CASE WHEN json_valid(CAST(body AS TEXT)) THEN json_extract(CAST(body AS TEXT), '$.told') END, 0);

-- proposal --
SELECT id, state, created_at, expires_at, body, seal FROM proposals WHERE tenant = :tenant AND id = :id;

-- proposals_by_prefix --
SELECT id, state, created_at, expires_at, body, seal FROM proposals
 WHERE tenant = :tenant AND id >= :id AND id < :id || char(1114111) ORDER BY id LIMIT 2;

-- memories_by_prefix --
SELECT id FROM records
 WHERE tenant = :tenant AND id >= :id AND id < :id || char(1114111) ORDER BY id LIMIT :limit;

-- set_artefact --
INSERT OR IGNORE INTO artefacts (tenant, kind, version, text, seal) VALUES (?, ?, ?, ?, ?);

-- drop_artefacts --
DELETE FROM artefacts WHERE tenant = ? AND kind = ? RETURNING seal;

-- artefact --
SELECT text, seal FROM artefacts WHERE tenant = :tenant AND kind = :kind AND version = :version;

-- set_usage --
INSERT INTO usage (tenant, id, count, last_at, learned, seal) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, id) DO UPDATE SET count = excluded.count, last_at = excluded.last_at,
       learned = excluded.learned, seal = excluded.seal;

-- usage --
SELECT id, count, last_at, learned, seal FROM usage
 WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:ids));

-- unlearned --
SELECT id, count, last_at, learned, seal FROM usage WHERE tenant = :tenant AND count > learned ORDER BY id;

-- set_feedback --
INSERT INTO feedback (tenant, n, at, receipt, actor, body, seal) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, n) DO UPDATE SET at = excluded.at, body = excluded.body, seal = excluded.seal;

-- feedback --
-- Newest first.
SELECT n, at, receipt, actor, body, seal FROM feedback WHERE tenant = :tenant ORDER BY n DESC LIMIT :limit;

-- feedback_on --
SELECT n, at, body, seal FROM feedback WHERE tenant = :tenant AND receipt = :receipt AND actor = :actor;

-- feedback_count --
SELECT coalesce(max(n), 0) FROM feedback WHERE tenant = :tenant;

-- beside --
SELECT writes, sums, seal FROM beside WHERE tenant = :tenant;

-- set_beside --
INSERT INTO beside (tenant, writes, sums, seal) VALUES (?, ?, ?, ?)
    ON CONFLICT (tenant) DO UPDATE SET writes = excluded.writes, sums = excluded.sums, seal = excluded.seal;

-- set_job --
INSERT INTO jobs (tenant, job, holder, until, last_at, outcome, receipt, seal) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, job) DO UPDATE SET holder = excluded.holder, until = excluded.until,
       last_at = excluded.last_at, outcome = excluded.outcome, receipt = excluded.receipt, seal = excluded.seal;

-- jobs --
SELECT tenant, job, holder, until, last_at, outcome, receipt, seal FROM jobs
 WHERE tenant = :tenant AND (:job IS NULL OR job = :job) ORDER BY job;

-- lapsed --
-- Active memories whose term is over, the longest ago first.
SELECT id FROM records WHERE tenant = :tenant AND status = 'active' AND expires_at <= :now
 ORDER BY expires_at, id LIMIT :limit;

-- record_row --
-- Fragment: a record's columns, its event, the newest version there is, and the memory's first position.
SELECT r.id, r.version, r.seq, r.n, r.position, r.arrival, r.status, r.tier, r.kind, r.scope, r.key, r.subject,
       r.category, r.content_type, r.sensitivity, r.source, r.trust, r.importance, r.created_at, r.expires_at,
       r.job, r.session, r.tags, r.stability, r.standing,
       e.seq, e.n, e.op, e.memory_id, e.version, e.salt, e.payload, e.payload_commit, e.seal,
       (SELECT max(x.version) FROM events x WHERE x.tenant = r.tenant AND x.memory_id = r.id),
       CASE r.version WHEN 1 THEN r.position ELSE (SELECT x.seq * 1048576 + x.n FROM events x
             WHERE x.tenant = r.tenant AND x.memory_id = r.id AND x.version = 1) END

-- record_from --
-- Fragment.
  FROM records r LEFT JOIN events e ON e.tenant = r.tenant AND e.seq = r.seq AND e.n = r.n

-- passes --
-- Fragment: the filter; an empty list and NULL mean all.
       (:scopes = '[]' OR r.scope IN (SELECT value FROM json_each(:scopes)))
   AND (:tiers = '[]' OR r.tier IN (SELECT value FROM json_each(:tiers)))
   AND (:kinds = '[]' OR r.kind IN (SELECT value FROM json_each(:kinds)))
   AND (:content_types = '[]' OR r.content_type IN (SELECT value FROM json_each(:content_types)))
   AND (:subject IS NULL OR r.subject = :subject)
   AND (:category IS NULL OR r.category = :category)
   AND (:session IS NULL OR r.session = :session)
   AND (:job IS NULL OR r.job = :job)
   AND (:keyed IS NULL OR (r.key IS NOT NULL) = :keyed)
   AND (:permanent IS NULL OR (r.stability = 'permanent') = :permanent)
   AND r.importance >= :min_importance
   AND (:include_sensitive OR r.sensitivity = 'normal')
   AND (:tags = '[]' OR EXISTS (
        SELECT 1 FROM json_each(CASE WHEN json_valid(r.tags) THEN r.tags ELSE '[]' END) AS own
         WHERE own.value IN (SELECT value FROM json_each(:tags))))
   AND (:now IS NULL OR (r.status = 'active' AND (r.expires_at IS NULL OR r.expires_at > :now)))

-- find --
-- Newest arrival first, ties by id.
{{record_row}} {{record_from}}
 WHERE r.tenant = :tenant AND {{passes}}
 ORDER BY r.arrival DESC, r.id LIMIT :limit;

-- find_standing --
-- The same among what stands, which has an index.
{{record_row}} {{record_from}}
 WHERE r.tenant = :tenant AND r.standing = 1 AND {{passes}}
 ORDER BY r.arrival DESC, r.id LIMIT :limit;

-- find_key --
-- The same under one key, which has an index.
{{record_row}}
  FROM records r INDEXED BY records_by_key LEFT JOIN events e ON e.tenant = r.tenant AND e.seq = r.seq AND e.n = r.n
 WHERE r.tenant = :tenant AND r.key = :key AND {{passes}}
 ORDER BY r.arrival DESC, r.id LIMIT :limit;

-- find_session --
-- The same of one session, which has an index too.
{{record_row}}
  FROM records r INDEXED BY records_session LEFT JOIN events e ON e.tenant = r.tenant AND e.seq = r.seq AND e.n = r.n
 WHERE r.tenant = :tenant AND r.session = :session AND (:key IS NULL OR r.key = :key) AND {{passes}}
 ORDER BY r.arrival DESC, r.id LIMIT :limit;

-- records_by_id --
{{record_row}} {{record_from}}
 WHERE r.tenant = :tenant AND r.id IN (SELECT value FROM json_each(:ids));

-- by_alias --
SELECT alias, min(id) FROM aliases
 WHERE tenant = :tenant AND alias IN (SELECT value FROM json_each(:ids)) GROUP BY alias;

-- in_journal --
SELECT DISTINCT memory_id FROM events
 WHERE tenant = :tenant AND memory_id IN (SELECT value FROM json_each(:ids));

-- same_digest --
SELECT r.id, r.position FROM features f INDEXED BY features_digest CROSS JOIN records r
    ON r.tenant = f.tenant AND r.id = f.id
 WHERE f.tenant = :tenant AND f.digest = :digest AND r.id <> :id AND r.status = 'active'
   AND r.tier = :tier AND r.scope = :scope AND r.sensitivity = :sensitivity
   AND (r.expires_at IS NULL OR r.expires_at > :now) LIMIT 24;

-- event_row --
-- Fragment.
SELECT e.seq, e.n, e.op, e.memory_id, e.version, e.salt, e.payload, e.payload_commit, e.seal

-- versions --
{{event_row}} FROM events e WHERE e.tenant = :tenant AND e.memory_id = :id ORDER BY e.version;

-- events_of_commit --
{{event_row}} FROM events e WHERE e.tenant = :tenant AND e.seq = :seq ORDER BY e.n;

-- event_at --
{{event_row}} FROM events e WHERE e.tenant = :tenant AND e.memory_id = :id AND e.version = :version;

-- newest_as_of --
-- Fragment: the newest version of each memory within the first commits, and its first position.
{{event_row}}, f.seq * 1048576 + f.n
  FROM (SELECT memory_id, max(version) AS version FROM events
         WHERE tenant = :tenant AND seq <= :as_of GROUP BY memory_id) AS newest
  JOIN events e ON e.tenant = :tenant AND e.memory_id = newest.memory_id AND e.version = newest.version
  LEFT JOIN events f ON f.tenant = :tenant AND f.memory_id = newest.memory_id AND f.version = 1

-- due_records --
-- The newest version of each memory, and its first position.
{{event_row}}, f.seq * 1048576 + f.n
  FROM (SELECT memory_id, max(version) AS version FROM events WHERE tenant = :tenant GROUP BY memory_id) AS newest
  JOIN events e ON e.tenant = :tenant AND e.memory_id = newest.memory_id AND e.version = newest.version
  LEFT JOIN events f ON f.tenant = :tenant AND f.memory_id = newest.memory_id AND f.version = 1;

-- find_as_of --
{{newest_as_of}} ORDER BY f.seq DESC, f.n DESC, e.memory_id;

-- records_as_of --
{{event_row}}
  FROM (SELECT memory_id, max(version) AS version FROM events
         WHERE tenant = :tenant AND +seq <= :as_of AND memory_id IN (SELECT value FROM json_each(:ids))
         GROUP BY memory_id) AS newest
  JOIN events e ON e.tenant = :tenant AND e.memory_id = newest.memory_id AND e.version = newest.version;

-- indexed --
-- Every memory touched after a position, oldest touch first.
{{record_row}}, f.version, f.model, f.units, f.digest, f.marks, f.terms, f.vectors, f.trait, f.seal
{{record_from}} LEFT JOIN features f ON f.tenant = r.tenant AND f.id = r.id
 WHERE r.tenant = :tenant AND r.position > :after ORDER BY r.position;

-- columns_of_record --
-- Fragment: a record's row after its tenant.
SELECT r.id, r.version, r.seq, r.n, r.position, r.arrival, r.status, r.tier, r.kind, r.scope, r.key, r.subject,
       r.category, r.content_type, r.sensitivity, r.source, r.trust, r.importance, r.created_at, r.expires_at,
       r.job, r.session, r.tags, r.stability, r.standing

-- profiles --
-- Every memory touched after a position, oldest touch first, as ranking sees it.
{{columns_of_record}},
       f.version, f.model, f.units, f.digest, f.marks, f.terms, f.vectors, f.trait, f.seal, f.facts, f.bond
  FROM records r LEFT JOIN features f ON f.tenant = r.tenant AND f.id = r.id
 WHERE r.tenant = :tenant AND r.position > :after ORDER BY r.position;

-- bonded --
-- Records and features together, for whoever seals or checks the bond; see profiles.
{{columns_of_record}},
       f.version, f.model, f.units, f.digest, f.marks, f.terms, f.vectors, f.trait, f.seal, f.facts, f.bond
  FROM features f CROSS JOIN records r ON r.tenant = f.tenant AND r.id = f.id WHERE f.tenant = :tenant;

-- standing_rows --
-- Every record with what its event says, the newest version there is, the memory's first position and its features.
{{columns_of_record}},
       e.memory_id, e.version, e.payload,
       (SELECT max(x.version) FROM events x WHERE x.tenant = r.tenant AND x.memory_id = r.id),
       CASE r.version WHEN 1 THEN r.position ELSE (SELECT x.seq * 1048576 + x.n FROM events x
             WHERE x.tenant = r.tenant AND x.memory_id = r.id AND x.version = 1) END,
       f.version, f.model, f.units, f.digest, f.marks, f.terms, f.vectors, f.trait, f.seal, f.facts, f.bond
{{record_from}} LEFT JOIN features f ON f.tenant = r.tenant AND f.id = r.id
 WHERE r.tenant = :tenant ORDER BY r.position;

-- stray_features --
-- Features without a record, as they are sealed.
SELECT f.id, f.version, f.model, f.units, f.digest, f.marks, f.terms, f.vectors, f.trait, f.seal FROM features f
 WHERE f.tenant = :tenant AND NOT EXISTS (SELECT 1 FROM records r WHERE r.tenant = f.tenant AND r.id = f.id);

-- holders --
-- The memories under each mark that were touched last: positions rise with time.
SELECT j.value, (SELECT group_concat(position, ' ') FROM (
       SELECT position FROM marks WHERE tenant = :tenant AND mark = j.value ORDER BY position DESC LIMIT :most))
  FROM json_each(:marks) j;

-- positions --
SELECT id, position FROM records WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:ids));

-- likely --
-- What is told of the memories at some positions before they are read.
SELECT r.position, r.id, r.version, r.status, r.expires_at, f.trait
  FROM records r INDEXED BY records_position
  LEFT JOIN features f ON f.tenant = r.tenant AND f.id = r.id AND f.version = r.version
 WHERE r.tenant = :tenant AND r.position IN (SELECT value FROM json_each(:positions));

-- known_digest --
SELECT 1 FROM features WHERE tenant = ? AND digest = ?;

-- indexed_as_of --
SELECT e.seq, e.n, e.op, e.memory_id, e.version, e.salt, e.payload, e.payload_commit, e.seal,
       first.seq * 1048576 + first.n,
       f.version, f.model, f.units, f.digest, f.marks, f.terms, f.vectors, f.trait, f.seal
  FROM (SELECT memory_id, max(version) AS version FROM events
         WHERE tenant = :tenant AND seq <= :as_of GROUP BY memory_id) AS newest
  JOIN events e ON e.tenant = :tenant AND e.memory_id = newest.memory_id AND e.version = newest.version
  LEFT JOIN events first ON first.tenant = :tenant AND first.memory_id = newest.memory_id AND first.version = 1
  LEFT JOIN features f ON f.tenant = :tenant AND f.id = newest.memory_id
 WHERE e.seq * 1048576 + e.n > :after ORDER BY e.seq, e.n;

-- commit_row --
-- Fragment.
SELECT c.seq, c.id, c.at, c.kind, c.actor_kind, c.prev, c.events_hash, c.salt, c.payload, c.hash, c.seal
  FROM commits c

-- commits_before --
{{commit_row}} WHERE c.tenant = :tenant AND (:before IS NULL OR c.seq < :before) ORDER BY c.seq DESC LIMIT :limit;

-- commits_after --
{{commit_row}} WHERE c.tenant = :tenant AND c.seq > :after ORDER BY c.seq;

-- commit_by_id --
{{commit_row}} WHERE c.tenant = :tenant AND c.id = :id;

-- commit_by_seq --
{{commit_row}} WHERE c.tenant = :tenant AND c.seq = :seq;

-- commit_by_prefix --
{{commit_row}} WHERE c.tenant = :tenant AND c.id >= :id AND c.id < :id || char(1114111) ORDER BY c.id LIMIT 2;

-- events_from --
{{event_row}} FROM events e WHERE e.tenant = :tenant AND e.seq > :after ORDER BY e.seq, e.n;

-- facts_records --
-- Status as it stands at an instant, and what is counted of it.
SELECT CASE WHEN r.status = 'active' AND r.expires_at <= :now THEN 'expired' ELSE r.status END,
       r.tier, r.kind, r.scope, r.category, r.content_type, r.source, r.trust, r.importance,
       r.kind = 'state' AND r.key IS NOT NULL, r.sensitivity = 'sensitive'
  FROM records r WHERE r.tenant = :tenant;

-- facts_usage --
SELECT coalesce(sum(u.count), 0), count(*) FROM usage u JOIN records r ON r.tenant = u.tenant AND r.id = u.id
 WHERE u.tenant = :tenant AND r.status = 'active' AND (r.expires_at IS NULL OR r.expires_at > :now);

-- facts_journal --
SELECT (SELECT count(*) FROM events WHERE tenant = :tenant), (SELECT count(*) FROM commits WHERE tenant = :tenant),
       (SELECT coalesce(sum(length(payload)), 0) FROM events WHERE tenant = :tenant)
     + (SELECT coalesce(sum(length(payload)), 0) FROM commits WHERE tenant = :tenant);

-- facts_queue --
SELECT count(*), min(created_at) FROM proposals WHERE tenant = :tenant AND state = 'pending';

-- facts_vectors --
-- Live memories by the embedder of their vectors; NULL for those without.
SELECT f.model, count(*) FROM records r
  LEFT JOIN features f ON f.tenant = r.tenant AND f.id = r.id AND f.version = r.version
 WHERE r.tenant = :tenant AND r.status = 'active' AND (r.expires_at IS NULL OR r.expires_at > :now)
 GROUP BY f.model;

-- unembedded --
-- Whether a live memory has no vectors of an embedder.
SELECT EXISTS (
  SELECT 1 FROM records r
    LEFT JOIN features f ON f.tenant = r.tenant AND f.id = r.id AND f.version = r.version
   WHERE r.tenant = :tenant AND r.status = 'active' AND (r.expires_at IS NULL OR r.expires_at > :now)
     AND f.model IS NOT :model);

-- unrecorded --
-- Memories of the journal that have no record.
SELECT DISTINCT e.memory_id FROM events e
 WHERE e.tenant = :tenant AND NOT EXISTS (SELECT 1 FROM records r WHERE r.tenant = e.tenant AND r.id = e.memory_id)
 ORDER BY e.memory_id;

-- superseded --
-- Superseded and contained memories of a scope that say the same, newest first.
SELECT r.id FROM features f INDEXED BY features_digest CROSS JOIN records r ON r.tenant = f.tenant AND r.id = f.id
 WHERE f.tenant = :tenant AND f.digest = :digest AND r.scope = :scope
   AND (r.status = 'superseded' OR (r.status = 'archived' AND EXISTS (
        SELECT 1 FROM events e WHERE e.tenant = r.tenant AND e.seq = r.seq AND e.n = r.n AND e.op = 'contain')))
 ORDER BY r.arrival DESC, r.id LIMIT 8;

-- tally --
SELECT tier, count FROM tallies WHERE tenant = :tenant AND count <> 0 ORDER BY tier;

-- add_tally --
INSERT INTO tallies (tenant, tier, count) VALUES (?, ?, ?)
    ON CONFLICT (tenant, tier) DO UPDATE SET count = count + excluded.count;

-- recount --
SELECT tier, count(*) FROM records WHERE tenant = :tenant AND status = 'active' GROUP BY tier ORDER BY tier;

-- children --
SELECT DISTINCT child FROM lineage
 WHERE tenant = :tenant AND parent IN (SELECT value FROM json_each(:ids)) ORDER BY child;

-- undone_by --
-- Rollbacks that name a commit, newest first.
SELECT c.id FROM commits c
 WHERE c.tenant = :tenant AND c.kind = 'rollback'
   AND EXISTS (SELECT 1 FROM json_each(CAST(c.payload AS TEXT), '$.undoes') WHERE value = :commit_id)
 ORDER BY c.seq DESC;

-- session_tail --
SELECT r.id FROM records r INDEXED BY records_session
 WHERE r.tenant = :tenant AND r.session = :session AND r.status = 'active' ORDER BY r.arrival DESC LIMIT 1;

-- set_token --
INSERT INTO tokens (tenant, id, name, hash, rights, can, scope, created_by, created_at, expires_at, revoked_at, seal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, id) DO UPDATE SET name = excluded.name, rights = excluded.rights, can = excluded.can,
       scope = excluded.scope, expires_at = excluded.expires_at, revoked_at = excluded.revoked_at,
       seal = excluded.seal;

-- token_seal --
SELECT seal FROM tokens WHERE tenant = ? AND id = ?;

-- tokens --
-- Of all tenants: a token is shown before its tenant is known. Oldest first.
SELECT tenant, id, name, hash, rights, can, scope, created_by, created_at, expires_at, revoked_at, seal FROM tokens
 WHERE (:id IS NULL OR id = :id) ORDER BY created_at, id;

-- tokens_like --
-- Those whose hash begins alike; the caller compares the whole of it in constant time.
SELECT tenant, id, name, hash, rights, can, scope, created_by, created_at, expires_at, revoked_at, seal FROM tokens
 WHERE hash >= :low AND hash <= :high ORDER BY hash;

-- set_blob --
INSERT INTO blobs (tenant, ref, bytes, media_type, active, at, puts, seal) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, ref) DO UPDATE SET bytes = excluded.bytes, media_type = excluded.media_type,
       active = excluded.active, at = excluded.at, puts = excluded.puts, seal = excluded.seal;

-- blobs --
SELECT tenant, ref, bytes, media_type, active, at, puts, seal FROM blobs
 WHERE tenant = :tenant AND (:ref IS NULL OR ref = :ref) ORDER BY ref;

-- blob_holders --
SELECT id FROM attachments WHERE tenant = :tenant AND ref = :ref ORDER BY id;

-- facts_blobs --
-- How many, their size, and how many no memory refers to.
SELECT count(*), coalesce(sum(b.bytes), 0),
       coalesce(sum(NOT EXISTS (SELECT 1 FROM attachments a WHERE a.tenant = b.tenant AND a.ref = b.ref)), 0)
  FROM blobs b WHERE b.tenant = :tenant;

-- blob_tenants --
SELECT DISTINCT tenant FROM blobs ORDER BY tenant;

-- drop_blob --
-- Unless a memory refers to it.
DELETE FROM blobs WHERE tenant = :tenant AND ref = :ref
   AND NOT EXISTS (SELECT 1 FROM attachments a WHERE a.tenant = :tenant AND a.ref = :ref);

-- payloads_with_blobs --
-- Payloads of the journal in which a blob is named; a quotation mark inside of a text is written otherwise.
SELECT payload FROM events
 WHERE tenant = :tenant AND payload IS NOT NULL AND instr(payload, CAST('"blob":"' AS BLOB)) > 0;

-- erasures --
-- Commits that erase, in order.
SELECT seq, payload, id FROM commits WHERE tenant = :tenant AND kind = 'erase' ORDER BY seq;

-- erased_at --
SELECT by_seq, promise, remains, seal FROM erased WHERE tenant = :tenant AND seq = :seq AND n = :n;

-- add_erased --
INSERT INTO erased (tenant, seq, n, by_seq, promise, remains, seal) VALUES (?, ?, ?, ?, ?, ?, ?);

-- newest_event --
{{event_row}} FROM events e WHERE e.tenant = :tenant AND e.memory_id = :id ORDER BY e.version DESC LIMIT 1;

-- token_receipts --
SELECT body FROM receipts WHERE tenant = :tenant AND kind = 'token' ORDER BY id;
