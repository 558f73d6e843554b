-- meta --
SELECT value FROM meta WHERE name = :name;

-- set_meta --
INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- lock_seals --
-- Wait for another process that reseals all rows, and let no other do so until this transaction ends.
UPDATE meta SET value = value WHERE name = 'sealed_by' RETURNING name;

-- drop_meta --
DELETE FROM meta WHERE name = :name;

-- notes --
SELECT value FROM meta WHERE name LIKE 'note\_%' ESCAPE '\' ORDER BY name;

-- searched --
-- Fragment: whether there are tables of candidates of the tenant; see candidates.sql.
0

-- tenant --
-- The tenant's row and its newest commit, either of which may be missing, and the id of the sealing key.
SELECT t.seq, t.hash, t.restored, t.writes, t.tallies, t.sums, t.seal, c.seq, c.hash,
       (SELECT value FROM meta WHERE name = 'sealed_by'), {{searched}}
  FROM (SELECT CAST(:tenant AS TEXT) AS tenant) AS x
  LEFT JOIN tenants t ON t.tenant = x.tenant
  LEFT JOIN commits c ON c.tenant = x.tenant
        AND c.seq = (SELECT max(seq) FROM commits WHERE tenant = :tenant);

-- tenant_rows --
SELECT tenant, seq, hash, restored, writes, tallies, sums, seal FROM tenants ORDER BY tenant;

-- set_tenant --
INSERT INTO tenants (tenant, seq, hash, restored, writes, tallies, sums, seal) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, restored = excluded.restored,
       writes = excluded.writes, tallies = excluded.tallies, sums = excluded.sums, seal = excluded.seal;

-- tenants --
-- Tenants with a commit.
SELECT DISTINCT tenant FROM commits ORDER BY tenant;

-- commit_hash_at --
SELECT hash FROM commits WHERE tenant = :tenant AND seq = :seq;

-- commit_stamp --
SELECT hash, at FROM commits WHERE tenant = :tenant AND seq = :seq;

-- newest_commit_at --
-- In the order of the chain, read from its end.
SELECT coalesce((SELECT seq FROM commits WHERE tenant = :tenant AND at <= :at ORDER BY seq DESC LIMIT 1), 0);

-- newest_versions --
SELECT memory_id, max(version) FROM events
 WHERE tenant = :tenant AND memory_id IN (SELECT value FROM json_each(:ids)) GROUP BY memory_id;

-- versions_by_op --
-- The newest versions of memories, by op.
SELECT memory_id, op, max(version) FROM events
 WHERE tenant = :tenant AND memory_id IN (SELECT value FROM json_each(:ids)) GROUP BY memory_id, op;

-- arrivals --
SELECT memory_id, seq * 1048576 + n FROM events
 WHERE tenant = :tenant AND version = 1 AND memory_id IN (SELECT value FROM json_each(:ids));

-- live --
-- Fragment: active and not expired.
r.status = 'active' AND (r.expires_at IS NULL OR r.expires_at > :now)

-- add_commit --
INSERT INTO commits (
    tenant, seq, id, at, kind, actor_kind, prev, events_hash, salt, payload, hash, receipt, request_key, request_digest,
    seal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- add_event --
INSERT INTO events (tenant, seq, n, op, memory_id, version, salt, payload, payload_commit, seal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- record_columns --
-- Fragment: see ``rows.RecordRow``.
r.id, r.version, r.position, r.arrival, r.status, r.tier, r.kind, r.scope, r.key, r.subject, r.category, r.session, r.sensitivity,
       r.trust, r.created_at, r.expires_at, r.standing, r.body, r.seal

-- feature_columns --
-- Fragment: see ``rows.FeatureRow``.
f.id, f.version, f.model, f.recipe, f.units, f.digest, f.marks, f.trait, f.terms, f.vectors, f.seal

-- add_record --
INSERT INTO records (tenant, id, version, position, arrival, status, tier, kind, scope, key, subject, category, session,
       sensitivity, trust, created_at, expires_at, standing, body, seal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- put_features --
INSERT INTO features (tenant, id, version, model, recipe, units, digest, marks, trait, terms, vectors, seal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, id) DO UPDATE SET version = excluded.version, model = excluded.model, recipe = excluded.recipe,
       units = excluded.units, digest = excluded.digest, marks = excluded.marks, trait = excluded.trait,
       terms = excluded.terms, vectors = excluded.vectors, seal = excluded.seal;

-- drop_features --
DELETE FROM features WHERE tenant = ? AND id = ?;

-- stray_features --
-- Features of no memory at its newest version.
SELECT f.id FROM features f
 WHERE f.tenant = :tenant AND NOT EXISTS (
       SELECT 1 FROM records r WHERE r.tenant = f.tenant AND r.id = f.id AND r.version = f.version)
 ORDER BY f.id;

-- set_feature_seal --
UPDATE features SET seal = ? WHERE tenant = ? AND id = ?;

-- all_records --
-- Every record.
SELECT {{record_columns}} FROM records r WHERE r.tenant = :tenant;

-- counts_of_records --
-- How many records there are of some tiers and statuses. Grouping them would take twice as long.
SELECT t.value, s.value,
       (SELECT count(*) FROM records r WHERE r.tenant = :tenant AND r.tier = t.value AND r.status = s.value)
  FROM json_each(:tiers) AS t CROSS JOIN json_each(:statuses) AS s;

-- profile --
-- Fragment: a record with its features, which are NULL where there are none of its version.
SELECT {{record_columns}}, {{feature_columns}}
  FROM records r LEFT JOIN features f ON f.tenant = r.tenant AND f.id = r.id AND f.version = r.version

-- profiles --
-- Every memory changed after a position, oldest change first, with its features.
{{profile}} WHERE r.tenant = :tenant AND r.position > :after ORDER BY r.position;

-- indexed --
-- Every active memory in order of arrival, with its features.
{{profile}} WHERE r.tenant = :tenant AND r.status = 'active' ORDER BY r.arrival;

-- alike --
-- Memories that a job may merge, of which more than one has the same words in any capitals.
SELECT f.id FROM features f CROSS JOIN records r
 WHERE f.tenant = :tenant AND f.trait IN (SELECT trait FROM features WHERE tenant = :tenant AND trait <> :none
                                           GROUP BY trait HAVING count(*) > 1)
   AND r.tenant = f.tenant AND r.id = f.id AND r.version = f.version AND r.tier IN ('archival', 'episodic')
   AND r.kind <> 'event' AND r.key IS NULL AND {{live}}
 ORDER BY f.trait, f.id;

-- mergeable --
-- The newest memories that a job may merge.
SELECT r.id FROM records r
 WHERE r.tenant = :tenant AND r.tier IN ('archival', 'episodic') AND r.kind <> 'event' AND r.key IS NULL AND {{live}}
 ORDER BY r.position DESC LIMIT :most;

-- passing --
-- Volatile memories of no key that were not confirmed since an instant.
SELECT l.id FROM listed l
 WHERE l.tenant = :tenant AND l.tier IN ('archival', 'episodic') AND l.status = 'active' AND l.expires_at > :now
   AND l.key IS NULL AND l.reinforced_at <= :until ORDER BY l.arrival;

-- profiles_by_id --
{{profile}} WHERE r.tenant = :tenant AND r.id IN (SELECT value FROM json_each(:ids));

-- features_by_id --
SELECT {{feature_columns}} FROM features f
 WHERE f.tenant = :tenant AND f.id IN (SELECT value FROM json_each(:ids));

-- drop_records --
DELETE FROM records WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:ids));

-- drop_listed --
DELETE FROM listed WHERE tenant = :tenant AND arrival IN (SELECT value FROM json_each(:arrivals));

-- add_listed --
INSERT INTO listed (tenant, arrival, id, position, scope, status, sensitivity, tier, kind, trust, content_type, source,
       author, model, recipe, expires_at, subject, category, session, key, job, tags, written_at, happened_at, importance,
       idle_since, confidence, reinforced_at, person, worth)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- set_listed_vectors --
UPDATE listed SET model = ?, recipe = ? WHERE tenant = ? AND arrival = ?;

-- citing_between --
-- Memories whose evidence begins in a range.
SELECT DISTINCT id FROM links WHERE tenant = :tenant AND kind = 'evidence' AND name >= :low AND name < :high;

-- drop_links --
DELETE FROM links WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:ids));

-- add_link --
INSERT INTO links (tenant, kind, name, id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- drop_minhash --
DELETE FROM marks WHERE tenant = ? AND mark = ? AND position = ?;

-- add_minhash --
INSERT INTO marks (tenant, mark, position) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- add_delivery --
INSERT INTO deliveries (tenant, memory_id, version, receipt) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- deliveries --
-- Contexts that delivered any of these memories, oldest receipt first.
SELECT memory_id, version, receipt FROM deliveries
 WHERE tenant = :tenant AND memory_id IN (SELECT value FROM json_each(:ids)) ORDER BY receipt, memory_id, version;

-- select_documents --
-- Fragment: the columns of ``documents.StoredDocument``.
SELECT tenant, kind, id, state, actor, at, until, refs, body, seal FROM documents

-- of_kind --
-- Fragment. SQLite plans a statement again for every value of a bare parameter that a partial index compares with a literal,
-- as that of tokens does; that took four times as long as to run it.
kind = CAST(:kind AS TEXT)

-- document --
{{select_documents}} WHERE tenant = :tenant AND {{of_kind}} AND id = :id;

-- documents --
-- Of one kind, by id.
{{select_documents}} WHERE tenant = :tenant AND {{of_kind}} ORDER BY id;

-- documents_between --
-- Of one kind whose ids lie in a range.
{{select_documents}} WHERE tenant = :tenant AND {{of_kind}} AND id >= :low AND id < :high ORDER BY id;

-- documents_before --
-- Documents of one kind with the highest ids below another id, highest first.
{{select_documents}} WHERE tenant = :tenant AND {{of_kind}} AND id < :before ORDER BY id DESC LIMIT :limit;

-- decisions_since --
-- How many decisions were made since an instant, by the kind of their receipts; ids rise with time, and :low is below all
-- of them. A quotation mark within a text is escaped, so that only a key of the body matches.
SELECT 'approval', count(*) FROM commits WHERE tenant = :tenant AND at >= :since AND kind = 'approve'
UNION ALL
SELECT 'rejection', count(*) FROM documents
 WHERE tenant = :tenant AND {{of_kind}} AND id >= :low AND state IS NULL AND at >= :since
   AND instr(body, CAST('"kind":"rejection"' AS BLOB)) > 0
UNION ALL
SELECT 'refusal', count(*) FROM documents
 WHERE tenant = :tenant AND {{of_kind}} AND id >= :low AND state IS NULL AND at >= :since
   AND instr(body, CAST('"kind":"refusal"' AS BLOB)) > 0;

-- documents_in --
-- Of one kind and state, by instant.
{{select_documents}} WHERE tenant = :tenant AND {{of_kind}} AND state = :state ORDER BY at, id;

-- documents_in_states --
-- Of one kind and some states up to an instant, the lowest ids above another.
{{select_documents}} WHERE tenant = :tenant AND {{of_kind}} AND state IN (SELECT value FROM json_each(:states))
   AND at <= :until AND id > :after ORDER BY id LIMIT :limit;

-- documents_by_id --
{{select_documents}} WHERE tenant = :tenant AND {{of_kind}} AND id IN (SELECT value FROM json_each(:ids)) ORDER BY id;

-- documents_of_memories --
-- The counted uses of memories, and what their sources said.
{{select_documents}} WHERE tenant = :tenant AND kind IN ('usage', 'sources') AND id IN (SELECT value FROM json_each(:ids));

-- drop_documents_of_memories --
DELETE FROM documents
 WHERE tenant = :tenant AND kind IN ('usage', 'sources') AND id IN (SELECT value FROM json_each(:ids));

-- proposal_fingerprints --
-- Values that change when a proposal is rewritten, by instant.
SELECT id, state, until, seal FROM documents WHERE tenant = :tenant AND kind = 'proposals' ORDER BY at, id;

-- count_unnotified --
-- How many proposals ended or expired without being stored, and without a notice to the proposer.
SELECT count(*) FROM documents WHERE tenant = :tenant AND kind = 'proposals' AND until IS NOT NULL
   AND (state IN ('rejected', 'expired', 'stale') OR (state = 'pending' AND until <= :now));

-- newest_feedback --
SELECT max(state) FROM documents WHERE tenant = :tenant AND kind = 'feedback';

-- tokens_like --
-- Tokens whose hash has this prefix; the caller compares the complete hash in constant time.
{{select_documents}} WHERE kind = 'tokens' AND state >= :low AND state <= :high ORDER BY state;

-- put_document --
INSERT INTO documents (tenant, kind, id, state, actor, at, until, refs, body, seal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, kind, id) DO UPDATE SET state = excluded.state, actor = excluded.actor, at = excluded.at,
       until = excluded.until, refs = excluded.refs, body = excluded.body, seal = excluded.seal;

-- add_document --
INSERT INTO documents (tenant, kind, id, state, actor, at, until, refs, body, seal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- drop_documents --
DELETE FROM documents WHERE tenant = :tenant AND {{of_kind}} AND id IN (SELECT value FROM json_each(:ids));

-- document_seals --
-- The seals that the sum of a tenant's documents is computed from.
SELECT kind, seal FROM documents WHERE tenant = :tenant;

-- all_documents --
{{select_documents}} WHERE tenant = :tenant ORDER BY kind, id;

-- document_ids --
SELECT id FROM documents WHERE tenant = :tenant AND {{of_kind}};

-- present_documents --
SELECT id FROM documents WHERE tenant = :tenant AND {{of_kind}} AND id IN (SELECT value FROM json_each(:ids));

-- all_deliveries --
SELECT tenant, memory_id, version, receipt FROM deliveries WHERE tenant = :tenant;

-- all_tokens --
{{select_documents}} WHERE kind = 'tokens';

-- document_tenants --
SELECT DISTINCT tenant FROM documents WHERE kind = :kind ORDER BY tenant;

-- commit_payloads --
-- The details of commits that have no receipt of their own.
SELECT seq, payload FROM commits WHERE tenant = :tenant AND payload IS NOT NULL AND receipt IS NULL ORDER BY seq;

-- commit_receipts_between --
-- The receipts of commits whose ids lie in a range.
SELECT id, seq, hash, seal, receipt FROM commits
 WHERE tenant = :tenant AND id >= :low AND id < :high AND receipt IS NOT NULL ORDER BY id;

-- commit_receipts_before --
-- The receipts of the commits with the highest ids below another, highest first.
SELECT id, seq, hash, seal, receipt FROM commits
 WHERE tenant = :tenant AND id < :before AND receipt IS NOT NULL ORDER BY id DESC LIMIT :limit;

-- commit_receipts_at --
-- The receipts of some commits.
SELECT id, seq, hash, seal, receipt FROM commits
 WHERE tenant = :tenant AND seq IN (SELECT value FROM json_each(:seqs)) AND receipt IS NOT NULL;

-- commit_receipts_by_id --
SELECT id, seq, hash, seal, receipt FROM commits
 WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:ids)) AND receipt IS NOT NULL;

-- set_receipt --
UPDATE commits SET receipt = ?, seal = ? WHERE tenant = ? AND seq = ?;

-- memories_by_prefix --
SELECT id FROM records WHERE tenant = :tenant AND id >= :low AND id < :high ORDER BY id LIMIT :limit;

-- lapsed --
-- Expired active memories, the longest ago first.
SELECT id FROM records WHERE tenant = :tenant AND status = 'active' AND expires_at <= :now
 ORDER BY expires_at, id LIMIT :limit;

-- record_row --
-- Fragment: a record, and the newest version that the journal has of it.
SELECT {{record_columns}}, (SELECT max(x.version) FROM events x WHERE x.tenant = r.tenant AND x.memory_id = r.id) FROM records r

-- passes --
-- Fragment: the part of a filter that columns answer; an empty list and NULL mean all. ``Filter.passes`` is all of it: a
-- body can hold a tag as another name.
       (:scopes = '[]' OR r.scope IN (SELECT value FROM json_each(:scopes)))
   AND (:tiers = '[]' OR r.tier IN (SELECT value FROM json_each(:tiers)))
   AND (:kinds = '[]' OR r.kind IN (SELECT value FROM json_each(:kinds)))
   AND (:category = '[]' OR r.category IN (SELECT value FROM json_each(:category)))
   AND (:quoted_tags = '[]'
        OR EXISTS (SELECT 1 FROM json_each(:quoted_tags) WHERE instr(r.body, CAST(value AS BLOB)) > 0))
   AND (:include_sensitive = 1 OR r.sensitivity = 'normal')
   AND (CAST(:now AS BIGINT) IS NULL OR (r.status = 'active' AND (r.expires_at IS NULL OR r.expires_at > :now)))

-- find --
-- Newest arrival first.
{{record_row}} WHERE r.tenant = :tenant AND {{passes}} ORDER BY r.arrival DESC;

-- find_standing --
-- The same among standing memories, which have an index.
{{record_row}} WHERE r.tenant = :tenant AND r.standing = 1 AND {{passes}} ORDER BY r.arrival DESC;

-- find_key --
-- The same under one key.
{{record_row}} INDEXED BY records_by_key
 WHERE r.tenant = :tenant AND r.key = :key AND {{passes}} ORDER BY r.arrival DESC;

-- keyed --
SELECT key, id FROM records
 WHERE tenant = :tenant AND key IN (SELECT value FROM json_each(:keys))
   AND scope IN (SELECT value FROM json_each(:scopes));

-- find_subject --
-- The same about one subject.
{{record_row}} INDEXED BY records_subject
 WHERE r.tenant = :tenant AND r.subject IN (SELECT value FROM json_each(:subject)) AND {{passes}}
 ORDER BY r.arrival DESC;

-- find_session --
-- The same of one session.
{{record_row}} INDEXED BY records_session
 WHERE r.tenant = :tenant AND r.session IN (SELECT value FROM json_each(:session)) AND {{passes}}
 ORDER BY r.arrival DESC;

-- find_naming --
-- Memories whose body holds one of some texts in quotation marks.
{{record_row}}
 WHERE r.tenant = :tenant AND EXISTS (
       SELECT 1 FROM json_each(:quoted) WHERE instr(r.body, CAST(value AS BLOB)) > 0) ORDER BY r.arrival DESC;

-- records_by_id --
{{record_row}} WHERE r.tenant = :tenant AND r.id IN (SELECT value FROM json_each(:ids));

-- by_alias --
-- For each alias, scope and trust the oldest and the newest memory.
SELECT l.name, r.scope, r.trust, min(l.id), max(l.id) FROM links l LEFT JOIN records r ON r.tenant = l.tenant AND r.id = l.id
 WHERE l.tenant = :tenant AND l.kind = 'aliases' AND l.name IN (SELECT value FROM json_each(:ids))
 GROUP BY l.name, r.scope, r.trust ORDER BY min(l.id);

-- same_event --
SELECT DISTINCT r.id FROM links l CROSS JOIN records r
 WHERE l.tenant = :tenant AND l.kind = 'aliases' AND l.name IN (SELECT value FROM json_each(:ids))
   AND r.tenant = l.tenant AND r.id = l.id AND r.scope = :scope
   AND coalesce(r.session, '') = coalesce(:session, '') ORDER BY r.id;

-- in_journal --
SELECT DISTINCT memory_id FROM events
 WHERE tenant = :tenant AND memory_id IN (SELECT value FROM json_each(:ids)) ORDER BY memory_id;

-- same_digest --
-- SQLite reads the tables of a CROSS JOIN in the order in which they are named.
SELECT r.id, r.position FROM features f CROSS JOIN records r
 WHERE f.tenant = :tenant AND f.digest = :digest AND r.tenant = f.tenant AND r.id = f.id AND r.id <> :id AND {{live}}
   AND r.tier = :tier AND r.scope = :scope AND r.sensitivity = :sensitivity LIMIT 24;

-- event_row --
-- Fragment.
SELECT e.seq, e.n, e.op, e.memory_id, e.version, e.salt, e.payload, e.payload_commit, e.seal

-- versions --
{{event_row}} FROM events e
 WHERE e.tenant = :tenant AND e.memory_id IN (SELECT value FROM json_each(:ids)) ORDER BY e.memory_id, e.version;

-- replaced_versions --
-- Versions with content that are not the newest ones.
{{event_row}} FROM events e JOIN records r ON r.tenant = e.tenant AND r.id = e.memory_id AND r.version > e.version
 WHERE e.tenant = :tenant AND e.payload IS NOT NULL
   AND e.memory_id IN (SELECT memory_id FROM events WHERE tenant = :tenant AND version = 2);

-- events_at --
-- Events of some commits.
{{event_row}} FROM events e
 WHERE e.tenant = :tenant AND e.seq IN (SELECT value FROM json_each(:seqs)) ORDER BY e.seq, e.n;

-- events_of_commit --
{{event_row}} FROM events e WHERE e.tenant = :tenant AND e.seq = :seq ORDER BY e.n;

-- event_at --
{{event_row}} FROM events e WHERE e.tenant = :tenant AND e.memory_id = :id AND e.version = :version;

-- least_worth --
-- Memories of one tier and scope that no person said, in the order of their worth.
SELECT l.worth, l.arrival, l.id, l.importance, l.idle_since FROM listed l INDEXED BY listed_worth
 WHERE l.tenant = :tenant AND l.tier = :tier AND l.scope = :scope AND l.person = 0 AND l.worth IS NOT NULL
   AND l.sensitivity = 'normal' ORDER BY l.worth, l.arrival;

-- least_worth_of_tier --
-- Memories of one tier from the owner, or all others, in the order of their worth.
SELECT l.worth, l.arrival, l.id, l.importance, l.idle_since FROM listed l
 WHERE l.tenant = :tenant AND l.tier = :tier AND l.worth IS NOT NULL AND (CASE l.person WHEN 2 THEN 1 ELSE 0 END) = :owner
 ORDER BY l.worth, l.arrival;

-- newest_as_of --
-- The newest version of each memory within the first commits, and its first position; newest arrival first.
{{event_row}}, f.seq * 1048576 + f.n
  FROM (SELECT memory_id, max(version) AS version FROM events
         WHERE tenant = :tenant AND seq <= :as_of GROUP BY memory_id) AS newest
  JOIN events e ON e.tenant = :tenant AND e.memory_id = newest.memory_id AND e.version = newest.version
  LEFT JOIN events f ON f.tenant = :tenant AND f.memory_id = newest.memory_id AND f.version = 1
 ORDER BY f.seq DESC, f.n DESC, e.memory_id;

-- listed_as_of --
-- The same without a sort, of the memories whose first version is there.
{{event_row}}, f.seq * 1048576 + f.n
  FROM events f CROSS JOIN events e
 WHERE f.tenant = :tenant AND f.version = 1 AND f.seq <= :as_of AND e.tenant = f.tenant AND e.memory_id = f.memory_id
   AND e.version = (SELECT max(x.version) FROM events x
                     WHERE x.tenant = f.tenant AND x.memory_id = f.memory_id AND x.seq <= :as_of)
 ORDER BY f.seq DESC, f.n DESC;

-- headless_as_of --
-- The same of the memories whose first version is missing.
{{event_row}}, NULL
  FROM events e
 WHERE e.tenant = :tenant AND e.version > 1 AND e.seq <= :as_of
   AND NOT EXISTS (SELECT 1 FROM events x WHERE x.tenant = e.tenant AND x.memory_id = e.memory_id AND x.version = 1)
   AND e.version = (SELECT max(x.version) FROM events x
                     WHERE x.tenant = e.tenant AND x.memory_id = e.memory_id AND x.seq <= :as_of)
 ORDER BY e.memory_id;

-- records_as_of --
{{event_row}}
  FROM (SELECT memory_id, max(version) AS version FROM events
         WHERE tenant = :tenant AND +seq <= :as_of AND memory_id IN (SELECT value FROM json_each(:ids))
         GROUP BY memory_id) AS newest
  JOIN events e ON e.tenant = :tenant AND e.memory_id = newest.memory_id AND e.version = newest.version;

-- indexed_as_of --
-- The newest version of each memory within the first commits, its first position, and its features.
{{event_row}}, b.seq * 1048576 + b.n, {{feature_columns}}
  FROM (SELECT memory_id, max(version) AS version FROM events
         WHERE tenant = :tenant AND seq <= :as_of GROUP BY memory_id) AS newest
  JOIN events e ON e.tenant = :tenant AND e.memory_id = newest.memory_id AND e.version = newest.version
  LEFT JOIN events b ON b.tenant = :tenant AND b.memory_id = newest.memory_id AND b.version = 1
  LEFT JOIN features f ON f.tenant = :tenant AND f.id = e.memory_id AND f.version = e.version
 ORDER BY e.seq, e.n;

-- superseded_bodies --
SELECT r.id, r.body FROM records r WHERE r.tenant = :tenant AND r.status = 'superseded' ORDER BY r.id;

-- changed_between --
-- Memories that commits of a range changed.
SELECT DISTINCT memory_id FROM events WHERE tenant = :tenant AND seq > :after AND seq <= :until_seq ORDER BY memory_id;

-- written --
-- Versions that said something, or brought an earlier text back, with the instants of their commits.
SELECT e.seq, e.n, e.op, e.memory_id, e.version, e.salt, e.payload, e.payload_commit, e.seal, c.at
  FROM commits c CROSS JOIN events e
 WHERE c.tenant = :tenant AND c.at >= :since AND c.at <= :until AND e.tenant = c.tenant AND e.seq = c.seq
   AND e.op IN ('insert', 'replace', 'append', 'promote', 'revert')
 ORDER BY e.seq, e.n;

-- scopes_between --
-- Scopes of the first active memories between two scopes: how many of them a reader may see, and how many were read.
SELECT scope, sum(visible), count(*) FROM (
       SELECT r.scope AS scope, CASE WHEN (r.expires_at IS NULL OR r.expires_at > :now)
              AND (:include_sensitive = 1 OR r.sensitivity = 'normal') THEN 1 ELSE 0 END AS visible
         FROM records r INDEXED BY records_scope
        WHERE r.tenant = :tenant AND r.status = 'active' AND lower(r.scope) >= :low_folded
          AND lower(r.scope) < :high_folded
          AND r.scope >= :low AND r.scope < :high
        ORDER BY lower(r.scope), r.scope LIMIT :limit) AS first
 GROUP BY scope ORDER BY scope;

-- scopes_in_other_case --
-- Each scope with the nearest ones that have active memories and differ only in upper and lower case.
SELECT j.value,
       (SELECT r.scope FROM records r INDEXED BY records_scope WHERE r.tenant = :tenant AND r.status = 'active'
           AND lower(r.scope) = lower(j.value) AND r.scope < j.value ORDER BY r.scope DESC LIMIT 1),
       (SELECT r.scope FROM records r INDEXED BY records_scope WHERE r.tenant = :tenant AND r.status = 'active'
           AND lower(r.scope) = lower(j.value) AND r.scope > j.value ORDER BY r.scope LIMIT 1)
  FROM json_each(:scopes) AS j;

-- minhash_holders --
-- The memories with each minhash that were changed last: positions rise with time.
SELECT j.value, (SELECT group_concat(position, ' ') FROM (
       SELECT position FROM marks WHERE tenant = :tenant AND mark = j.value ORDER BY position DESC LIMIT :most))
  FROM json_each(:marks) j;

-- likely --
-- Unchecked columns of the memories at some positions.
SELECT r.position, r.id, r.version, r.status, r.expires_at, f.trait
  FROM records r INDEXED BY records_position
  LEFT JOIN features f ON f.tenant = r.tenant AND f.id = r.id AND f.version = r.version
 WHERE r.tenant = :tenant AND r.position IN (SELECT value FROM json_each(:positions));

-- known_trust --
-- The lowest trust of memories with the same words in some scopes.
SELECT min(r.trust) FROM features f CROSS JOIN records r
 WHERE f.tenant = :tenant AND f.trait = :trait AND r.tenant = f.tenant AND r.id = f.id AND r.id <> :id
   AND r.status <> 'erased' AND (:include_sensitive = 1 OR r.sensitivity <> 'sensitive')
   AND r.scope IN (SELECT value FROM json_each(:scopes));

-- commit_row --
-- Fragment.
SELECT c.seq, c.id, c.at, c.kind, c.actor_kind, c.prev, c.events_hash, c.salt, c.payload, c.hash, c.seal,
       c.receipt
  FROM commits c

-- scopes --
SELECT DISTINCT scope FROM listed WHERE tenant = :tenant ORDER BY scope;

-- on_branch --
-- The memories at a path and below: of any status, or the active ones. One range, and no order of the primary key, so
-- that SQLite reads the index of scopes; `try.x` lies between `try` and what is below it.
SELECT id FROM listed WHERE tenant = :tenant AND scope >= :path AND scope < :high AND (scope = :path OR scope >= :low)
   AND (:active = 0 OR status = 'active') ORDER BY arrival + 0;

-- first_and_newest --
-- The first and the newest commit of each of these memories, and the kind of the newest.
SELECT r.id, r.arrival / 1048576, c.seq, c.kind FROM records r
  JOIN events e ON e.tenant = r.tenant AND e.memory_id = r.id AND e.version = r.version
  JOIN commits c ON c.tenant = e.tenant AND c.seq = e.seq
 WHERE r.tenant = :tenant AND r.id IN (SELECT value FROM json_each(:ids));

-- in_scopes --
-- Fragment: whether the newest version of a memory is in some scopes.
(r.scope IN (SELECT value FROM json_each(:scopes)) OR (r.scope >= :low AND r.scope < :high)
       OR (r.scope >= :main_low AND r.scope < :main_high))

-- touches_scopes --
-- Fragment: commits c that change a memory in some scopes, or one that was moved and may have been there.
(CAST(:scopes AS TEXT) IS NULL OR EXISTS (
       SELECT 1 FROM events e JOIN records r ON r.tenant = e.tenant AND r.id = e.memory_id
        WHERE e.tenant = c.tenant AND e.seq = c.seq AND ({{in_scopes}} OR EXISTS (
              SELECT 1 FROM events m WHERE m.tenant = e.tenant AND m.memory_id = e.memory_id AND m.op = 'move'))))

-- commits_within --
SELECT c.id FROM commits c
 WHERE c.tenant = :tenant AND c.id IN (SELECT value FROM json_each(:ids)) AND {{touches_scopes}} ORDER BY c.seq;

-- commits_until --
SELECT count(DISTINCT e.seq) FROM events e JOIN records r ON r.tenant = e.tenant AND r.id = e.memory_id
 WHERE e.tenant = :tenant AND e.seq <= :until_seq AND {{in_scopes}};

-- commits_before --
-- Of a kind and with a part in their details, where these are named; what was erased may have had it.
{{commit_row}} WHERE c.tenant = :tenant AND c.seq < :before
   AND (CAST(:kind AS TEXT) IS NULL OR c.kind = :kind) AND {{touches_scopes}}
   AND (CAST(:part AS BLOB) IS NULL OR c.payload IS NULL OR instr(c.payload, CAST(:part AS BLOB)) > 0)
 ORDER BY c.seq DESC LIMIT :limit;

-- requested_commits --
SELECT seq, id, request_key, request_digest FROM commits
 WHERE tenant = :tenant AND (request_key IS NOT NULL OR request_digest IS NOT NULL) ORDER BY seq;

-- commits_after --
{{commit_row}} WHERE c.tenant = :tenant AND c.seq > :after ORDER BY c.seq;

-- commit_by_id --
{{commit_row}} WHERE c.tenant = :tenant AND c.id = :id;

-- commit_by_seq --
{{commit_row}} WHERE c.tenant = :tenant AND c.seq = :seq;

-- commit_by_prefix --
{{commit_row}} WHERE c.tenant = :tenant AND c.id >= :low AND c.id < :high ORDER BY c.id LIMIT 2;

-- commit_ids_by_prefix --
SELECT id FROM commits WHERE tenant = :tenant AND id >= :low AND id < :high ORDER BY id;

-- commit_by_request --
SELECT id, request_digest FROM commits WHERE tenant = :tenant AND request_key = :key;

-- commits_at --
-- Some commits, each with its number of events.
SELECT c.*, (SELECT count(*) FROM events e WHERE e.tenant = :tenant AND e.seq = c.seq) FROM ({{commit_row}}
 WHERE c.tenant = :tenant AND c.seq IN (SELECT value FROM json_each(:seqs))) AS c ORDER BY c.seq;

-- erasing_commits --
-- In order; the index has these alone.
{{commit_row}} WHERE c.tenant = :tenant AND c.kind = 'erase' ORDER BY c.seq;

-- commits_of_kind --
-- In order.
SELECT seq, payload, id FROM commits WHERE tenant = :tenant AND kind = :kind ORDER BY seq;

-- events_from --
{{event_row}} FROM events e WHERE e.tenant = :tenant AND e.seq > :after ORDER BY e.seq, e.n;

-- facts_journal_in --
-- The same of the memories in some scopes.
SELECT count(*), count(DISTINCT e.seq)
  FROM events e JOIN records r ON r.tenant = e.tenant AND r.id = e.memory_id
 WHERE e.tenant = :tenant AND {{in_scopes}};

-- facts_journal --
SELECT (SELECT count(*) FROM events WHERE tenant = :tenant), (SELECT count(*) FROM commits WHERE tenant = :tenant);

-- facts_queue --
-- How many proposals are pending, and when the first and the last of them were made.
SELECT count(*), min(at), max(at) FROM documents WHERE tenant = :tenant AND kind = 'proposals' AND state = 'pending';

-- facts_usage --
-- How many live memories were used, and how often in all.
SELECT count(*), coalesce(sum(json_extract(CAST(u.body AS TEXT), '$.count')), 0)
  FROM documents u JOIN records r ON r.tenant = u.tenant AND r.id = u.id
 WHERE u.tenant = :tenant AND u.kind = 'usage' AND {{live}} AND (CAST(:scopes AS TEXT) IS NULL OR {{in_scopes}});

-- unembedded --
-- A live memory that has no vectors of an embedder by one of some recipes.
SELECT l.id FROM listed l
 WHERE l.tenant = :tenant AND l.status = 'active' AND (l.expires_at IS NULL OR l.expires_at > :now)
   AND (l.model IS NULL OR l.model <> :model OR l.recipe NOT IN (SELECT value FROM json_each(:recipes))) LIMIT 1;

-- unrecorded --
-- Memories of the journal that have no record.
SELECT DISTINCT e.memory_id FROM events e
 WHERE e.tenant = :tenant AND NOT EXISTS (SELECT 1 FROM records r WHERE r.tenant = e.tenant AND r.id = e.memory_id)
 ORDER BY e.memory_id;

-- superseded --
-- Superseded and contained memories of a scope with the same digest or trait, newest first.
SELECT r.id
  FROM (SELECT id FROM features WHERE tenant = :tenant AND digest = :digest
        UNION ALL
        SELECT id FROM features WHERE tenant = :tenant AND trait = :trait AND digest <> :digest) f CROSS JOIN records r
 WHERE r.tenant = :tenant AND r.id = f.id AND r.scope = :scope
   AND (r.status = 'superseded' OR (r.status = 'archived' AND EXISTS (
        SELECT 1 FROM events e WHERE e.tenant = r.tenant AND e.seq = r.position / 1048576
           AND e.n = r.position % 1048576 AND e.op = 'contain')))
 ORDER BY r.arrival DESC LIMIT 24;

-- linked --
SELECT DISTINCT id FROM links
 WHERE tenant = :tenant AND kind = :kind AND name IN (SELECT value FROM json_each(:ids)) ORDER BY id;

-- session_tail --
SELECT r.id FROM records r INDEXED BY records_session
 WHERE r.tenant = :tenant AND r.session = :session AND r.status = 'active' ORDER BY r.arrival DESC LIMIT 1;

-- blob_holders --
SELECT id FROM links WHERE tenant = :tenant AND kind = 'attachments' AND name = :ref ORDER BY id;

-- attached_blobs --
SELECT DISTINCT a.name FROM links a LEFT JOIN records r ON r.tenant = a.tenant AND r.id = a.id
 WHERE a.tenant = :tenant AND a.kind = 'attachments' AND (CAST(:scopes AS TEXT) IS NULL OR {{in_scopes}});

-- payloads_with_blobs --
-- Payloads of the journal in which a blob is named; a quotation mark inside a text is escaped.
SELECT seq, n, memory_id, payload FROM events
 WHERE tenant = :tenant AND seq > :after AND payload IS NOT NULL AND instr(payload, CAST('"blob":"' AS BLOB)) > 0;

-- contents_at --
-- Positions of events with content, in some commits.
SELECT seq, n FROM events
 WHERE tenant = :tenant AND seq IN (SELECT value FROM json_each(:seqs)) AND payload IS NOT NULL;

-- details_at --
SELECT seq, salt, payload FROM commits
 WHERE tenant = :tenant AND seq IN (SELECT value FROM json_each(:seqs)) AND payload IS NOT NULL;

-- erase_event --
UPDATE events SET payload = NULL, salt = NULL WHERE tenant = ? AND seq = ? AND n = ?;

-- forget_request --
UPDATE commits SET request_key = NULL, request_digest = NULL WHERE tenant = ? AND seq = ?;

-- forget_requests --
UPDATE commits SET request_key = NULL, request_digest = NULL WHERE tenant = :tenant AND request_key IS NOT NULL;

-- erase_details --
UPDATE commits SET payload = NULL, salt = NULL WHERE tenant = ? AND seq = ?;

-- newest_event --
{{event_row}} FROM events e WHERE e.tenant = :tenant AND e.memory_id = :id ORDER BY e.version DESC LIMIT 1;

-- misordered --
-- Versions of a memory that do not follow the previous one, or precede it in the journal.
SELECT memory_id, version FROM (
    SELECT memory_id, version, seq, n,
           lag(version) OVER own AS before, lag(seq) OVER own AS seq_before, lag(n) OVER own AS n_before
      FROM events WHERE tenant = :tenant WINDOW own AS (PARTITION BY memory_id ORDER BY version)) AS ordered
 WHERE version <> coalesce(before, 0) + 1
    OR seq * 1048576 + n <= coalesce(seq_before, -1) * 1048576 + coalesce(n_before, -1)
 ORDER BY memory_id, version;

-- records_to_verify --
-- Every record with its features, the newest version there is, the memory's first position, whether its event has the
-- same payload, and its row of lists.
SELECT {{record_columns}}, {{feature_columns}}, (SELECT max(x.version) FROM events x WHERE x.tenant = r.tenant AND x.memory_id = r.id),
       CASE r.version WHEN 1 THEN r.position ELSE (SELECT x.seq * 1048576 + x.n FROM events x
             WHERE x.tenant = r.tenant AND x.memory_id = r.id AND x.version = 1) END,
       CASE WHEN e.payload = r.body THEN 1 ELSE 0 END, l.*
  FROM records r
  LEFT JOIN features f ON f.tenant = r.tenant AND f.id = r.id AND f.version = r.version
  LEFT JOIN events e ON e.tenant = r.tenant AND e.seq = r.position / 1048576 AND e.n = r.position % 1048576
  LEFT JOIN listed l ON l.tenant = r.tenant AND l.arrival = r.arrival
 WHERE r.tenant = :tenant ORDER BY r.position;

-- set_commit_seal --
UPDATE commits SET seal = ? WHERE tenant = ? AND seq = ?;

-- set_event_seal --
UPDATE events SET seal = ? WHERE tenant = ? AND seq = ? AND n = ?;

-- set_document_seal --
UPDATE documents SET seal = ? WHERE tenant = ? AND kind = ? AND id = ?;

-- everyone --
SELECT tenant FROM tenants UNION SELECT tenant FROM commits UNION SELECT tenant FROM documents ORDER BY 1;

-- all_minhashes --
SELECT mark, position FROM marks WHERE tenant = :tenant;

-- link_rows --
SELECT kind, name, id FROM links WHERE tenant = :tenant;
