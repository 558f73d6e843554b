-- What a store holds, on SQLite and on PostgreSQL.
-- Every table but the first two leads with the tenant: it distributes by tenant.

-- store_id: names the store. sealed_by: id of the key that made the seals, '' when some rows have none.
-- note_*: plain sentences that `verify` repeats. carried_*: of a tenant that came from another store, which one, and after
-- how many writes here.
CREATE TABLE meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE migrations (
    number INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row a tenant, written by every transaction that changes anything of it, and its lock. seq, hash: the newest
-- commit. restored: up to this seq the commits came from an export, without receipts. writes: how many transactions.
-- tallies: JSON, how many documents there are by kind, and records by tier and status. sums: of documents and records,
-- 32 bytes each, under a key that is not in the store.
CREATE TABLE tenants (
    tenant TEXT NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    restored INTEGER NOT NULL,
    writes INTEGER NOT NULL,
    tallies TEXT NOT NULL,
    sums BLOB NOT NULL,
    seal BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The journal. receipt: what the decision was, by the id of the commit; NULL where the commit came without one, from an
-- export. The seal covers it, the hash does not: it may be erased, and stays at home. request_key, request_digest: keyed
-- hashes of the idempotency key and of the call that made the commit; NULL without one, or once its content was erased.
CREATE TABLE commits (
    tenant TEXT NOT NULL,
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    actor_kind TEXT NOT NULL,
    prev BLOB NOT NULL,
    events_hash BLOB NOT NULL,
    salt BLOB,
    payload BLOB,
    hash BLOB NOT NULL,
    receipt BLOB,
    request_key BLOB,
    request_digest BLOB,
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, seq)
) STRICT;
CREATE UNIQUE INDEX commits_id ON commits (tenant, id);
CREATE UNIQUE INDEX commits_request ON commits (tenant, request_key) WHERE request_key IS NOT NULL;

CREATE TABLE events (
    tenant TEXT NOT NULL,
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    op TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    salt BLOB,
    payload BLOB,
    payload_commit BLOB NOT NULL,
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, seq, n)
) STRICT;
CREATE UNIQUE INDEX events_version ON events (tenant, memory_id, version);

-- The newest version of each memory, computed from its event. position: of the event, seq * 1048576 + n. arrival: the
-- position of the first version. standing: 1 for what a context looks at without a query: core, working, permanent and
-- keyed memories. body: the canonical payload. seal: over the whole row.
CREATE TABLE records (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    position INTEGER NOT NULL,
    arrival INTEGER NOT NULL,
    status TEXT NOT NULL,
    tier TEXT NOT NULL,
    kind TEXT NOT NULL,
    scope TEXT NOT NULL,
    key TEXT,
    subject TEXT,
    category TEXT,
    session TEXT,
    sensitivity TEXT NOT NULL,
    trust INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    standing INTEGER NOT NULL,
    body BLOB NOT NULL,
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;
CREATE UNIQUE INDEX records_key ON records (tenant, scope, key) WHERE key IS NOT NULL AND status = 'active';
CREATE INDEX records_by_key ON records (tenant, key, scope) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX records_position ON records (tenant, position);
CREATE INDEX records_arrival ON records (tenant, arrival);
CREATE INDEX records_standing ON records (tenant, arrival) WHERE standing = 1;
CREATE INDEX records_subject ON records (tenant, subject, arrival) WHERE subject IS NOT NULL;
CREATE INDEX records_session ON records (tenant, session, arrival) WHERE session IS NOT NULL;

-- What was computed from a memory for ranking and for finding near-duplicates. They count while the memory is at this
-- version. model: the embedder, NULL without vectors. recipe: by what rules the embedded texts were made. units: number
-- of vectors. marks: int64 little-endian, sorted. trait: equal for texts that may state the same. seal: over the whole
-- row.
CREATE TABLE features (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    model TEXT,
    recipe TEXT NOT NULL,
    units INTEGER NOT NULL,
    digest BLOB NOT NULL,
    marks BLOB NOT NULL,
    trait BLOB NOT NULL,
    terms BLOB NOT NULL,
    vectors BLOB NOT NULL,
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;
CREATE INDEX features_digest ON features (digest, tenant);

-- Marks of active memories. mark: mixed with the place, which is tier, sensitivity and scope, apart by a blank.
-- position: that of the memory's record.
CREATE TABLE marks (
    tenant TEXT NOT NULL,
    mark INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (tenant, mark, position)
) STRICT, WITHOUT ROWID;

-- What the newest version of each memory names: kind 'lineage' the memories it was derived from, 'aliases' its other
-- names, 'attachments' the blob it refers to.
CREATE TABLE links (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (tenant, kind, name, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_id ON links (tenant, id);

-- Which memories each compiled context held; computed from the compile receipts.
CREATE TABLE deliveries (
    tenant TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    receipt TEXT NOT NULL,
    PRIMARY KEY (tenant, memory_id, version, receipt)
) STRICT, WITHOUT ROWID;

-- What stands beside the journal, sealed row by row: receipts, proposals, artefacts, uses, feedback, tokens, blobs,
-- jobs, and which content was erased. state: what rows of a kind are looked up or ordered by, see documents.py. actor: the
-- principal who made a proposal. refs: JSON, the ids and other names that it names, sorted.
CREATE TABLE documents (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    state TEXT,
    actor TEXT,
    at INTEGER NOT NULL,
    until INTEGER,
    refs TEXT,
    body BLOB NOT NULL,
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, kind, id)
) STRICT;
CREATE INDEX documents_state ON documents (tenant, kind, state, at, id) WHERE state IS NOT NULL;
CREATE INDEX documents_token ON documents (state) WHERE kind = 'tokens';
