-- What a store holds. A test proves that the migrations together give exactly this.

-- store_id: names the store. sealed_by: id of the key that made the seals, '' when some rows have none.
-- note_*: plain sentences that `verify` repeats.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL
) STRICT;

-- The journal.
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
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, seq)
) STRICT;
CREATE UNIQUE INDEX commits_id ON commits (tenant, id);

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

-- Content that was destroyed; n is -1 for a commit's own. by_seq: the commit that says so. promise: the commitment
-- to what stood there. remains: of a commit's details, what says nothing of the content.
CREATE TABLE erased (
    tenant TEXT NOT NULL,
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    by_seq INTEGER NOT NULL,
    promise BLOB NOT NULL,
    remains BLOB,
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, seq, n)
) STRICT;

-- The newest commit of each tenant. restored: up to this seq the commits came from an export, without receipts.
CREATE TABLE heads (
    tenant TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    restored INTEGER NOT NULL,
    mac BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The newest version of each memory: what filters need, and where its content stands.
-- Every column is computed from one event and its payload. standing: 1 for what a context looks at without a
-- query: core, working, permanent and keyed memories.
CREATE TABLE records (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    position INTEGER NOT NULL,
    arrival INTEGER NOT NULL,
    status TEXT NOT NULL,
    tier TEXT NOT NULL,
    kind TEXT NOT NULL,
    scope TEXT NOT NULL,
    key TEXT,
    subject TEXT,
    category TEXT,
    content_type TEXT NOT NULL,
    sensitivity TEXT NOT NULL,
    source TEXT NOT NULL,
    trust INTEGER NOT NULL,
    importance INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    job TEXT,
    session TEXT,
    tags TEXT NOT NULL,
    stability TEXT NOT NULL,
    standing INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX records_key ON records (tenant, scope, key) WHERE key IS NOT NULL AND status = 'active';
CREATE INDEX records_by_key ON records (tenant, key, scope) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX records_position ON records (tenant, position);
CREATE INDEX records_arrival ON records (tenant, arrival DESC, id);
CREATE INDEX records_standing ON records (tenant, arrival DESC, id) WHERE standing = 1;
CREATE INDEX records_session ON records (tenant, session, arrival DESC, id) WHERE session IS NOT NULL;

-- Active memories by tier, so that a full tier is known without counting.
CREATE TABLE tallies (
    tenant TEXT NOT NULL,
    tier TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (tenant, tier)
) STRICT, WITHOUT ROWID;

-- Ranking inputs of the newest version. marks: int64 little-endian, sorted. trait: equal for texts that may state the
-- same. facts: what ranking needs of a memory that its record's columns do not say. bond: a seal over the whole
-- row and the record's, so that ranking need not read the journal.
CREATE TABLE features (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    model TEXT,
    units INTEGER NOT NULL,
    digest BLOB NOT NULL,
    marks BLOB NOT NULL,
    terms BLOB NOT NULL,
    vectors BLOB NOT NULL,
    trait BLOB NOT NULL,
    seal BLOB NOT NULL,
    facts BLOB NOT NULL,
    bond BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;
CREATE INDEX features_digest ON features (tenant, digest);

-- Marks of active memories. mark: mixed with the place, which is tier, sensitivity and scope, apart by a blank.
-- position: that of the memory's record.
CREATE TABLE marks (
    tenant TEXT NOT NULL,
    mark INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (tenant, mark, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE lineage (
    tenant TEXT NOT NULL,
    parent TEXT NOT NULL,
    child TEXT NOT NULL,
    PRIMARY KEY (tenant, parent, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX lineage_child ON lineage (tenant, child);

CREATE TABLE aliases (
    tenant TEXT NOT NULL,
    alias TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (tenant, alias, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX aliases_id ON aliases (tenant, id);

-- What the newest version of each memory refers to.
CREATE TABLE attachments (
    tenant TEXT NOT NULL,
    ref TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (tenant, ref, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX attachments_id ON attachments (tenant, id);

-- Beside the journal.
CREATE TABLE proposals (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    body BLOB NOT NULL,
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;
CREATE INDEX proposals_queue ON proposals (tenant, state, created_at, id);

CREATE TABLE receipts (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;

-- Which memories each compiled context held; computed from the compile receipts.
CREATE TABLE deliveries (
    tenant TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    receipt TEXT NOT NULL,
    PRIMARY KEY (tenant, memory_id, version, receipt)
) STRICT, WITHOUT ROWID;

CREATE TABLE artefacts (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    version TEXT NOT NULL,
    text TEXT NOT NULL,
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, kind, version)
) STRICT;

-- learned: of count, how many uses importance has learned from.
CREATE TABLE usage (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    count INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    learned INTEGER NOT NULL,
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- What was said of recalls and contexts, in the order of arrival. body: JSON, ids that were used and ignored.
CREATE TABLE feedback (
    tenant TEXT NOT NULL,
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    receipt TEXT NOT NULL,
    actor TEXT NOT NULL,
    body BLOB NOT NULL,
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, n)
) STRICT;
CREATE UNIQUE INDEX feedback_on ON feedback (tenant, receipt, actor);

-- Maintenance: who runs a job now and until when, and what its last run came to.
CREATE TABLE jobs (
    tenant TEXT NOT NULL,
    job TEXT NOT NULL,
    holder TEXT NOT NULL,
    until INTEGER,
    last_at INTEGER,
    outcome TEXT,
    receipt TEXT,
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, job)
) STRICT;

-- Sums over the rows of each table beside the journal, under a key that is not in the store. writes: transactions
-- that changed any of them.
CREATE TABLE beside (
    tenant TEXT PRIMARY KEY,
    writes INTEGER NOT NULL,
    sums BLOB NOT NULL,
    seal BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Content that lies in files beside the store. at: the day of its folder. active: 1 for what might run when it is
-- opened. puts: JSON, who has put it and when.
CREATE TABLE blobs (
    tenant TEXT NOT NULL,
    ref TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    active INTEGER NOT NULL,
    at INTEGER NOT NULL,
    puts BLOB NOT NULL,
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, ref)
) STRICT;

-- Credentials. hash: SHA-256 of a token. can: JSON list. tenant and scope are those of its bearer.
CREATE TABLE tokens (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    hash BLOB NOT NULL,
    rights TEXT NOT NULL,
    can TEXT NOT NULL,
    scope TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    seal BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;
CREATE UNIQUE INDEX tokens_hash ON tokens (hash);
