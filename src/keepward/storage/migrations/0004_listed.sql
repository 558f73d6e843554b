-- What lists are filtered, ordered and counted by: a row for each record, computed from it. trust: the effective one.
-- tags: each as a JSON string without its quotation marks, after a line feed and before another. happened_at: date of the
-- event. importance, confidence: in 1/10,000, as stored. idle_since: when importance begins to decay, NULL for never.
-- person: 1 if its origin is a user, 2 for the owner. worth: order in which a full tier archives, the least first; NULL
-- for what it never archives. model, recipe: of the memory's vectors, see features.
CREATE TABLE listed (
    tenant TEXT NOT NULL,
    arrival INTEGER NOT NULL,
    id TEXT NOT NULL,
    position INTEGER NOT NULL,
    scope TEXT NOT NULL,
    status TEXT NOT NULL,
    sensitivity TEXT NOT NULL,
    tier TEXT NOT NULL,
    kind TEXT NOT NULL,
    trust INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    source TEXT NOT NULL,
    author TEXT NOT NULL,
    model TEXT,
    recipe TEXT,
    expires_at INTEGER,
    subject TEXT,
    category TEXT,
    session TEXT,
    key TEXT,
    job TEXT,
    tags TEXT,
    written_at INTEGER NOT NULL,
    happened_at INTEGER,
    importance INTEGER NOT NULL,
    idle_since INTEGER,
    confidence INTEGER NOT NULL,
    reinforced_at INTEGER NOT NULL,
    person INTEGER NOT NULL,
    worth INTEGER,
    PRIMARY KEY (tenant, arrival)
) STRICT, WITHOUT ROWID;
-- Counts by every field with few values are one pass in the order of this index.
CREATE INDEX listed_counts ON listed (tenant, scope, status, sensitivity, tier, kind, trust, content_type, source, author, model, recipe, expires_at);
CREATE INDEX listed_subject ON listed (tenant, subject, scope, status, sensitivity, expires_at) WHERE subject IS NOT NULL;
CREATE INDEX listed_category ON listed (tenant, category, scope, status, sensitivity, expires_at) WHERE category IS NOT NULL;
CREATE INDEX listed_session ON listed (tenant, session, scope, status, sensitivity, expires_at) WHERE session IS NOT NULL;
CREATE INDEX listed_tags ON listed (tenant, tags, scope, status, sensitivity, expires_at) WHERE tags IS NOT NULL;
CREATE INDEX listed_worth ON listed (tenant, tier, scope, person, worth, arrival) WHERE worth IS NOT NULL;
-- The last commits up to an instant, and those of a day.
CREATE INDEX commits_at ON commits (tenant, at);
-- Texts with the same words in any capitals, of one tenant: also those that more than one memory has.
DROP INDEX features_trait;
CREATE INDEX features_trait ON features (tenant, trait, id);
-- Numbers of records by tier and status, which every handle compares with the sealed ones before its first read.
CREATE INDEX records_tier ON records (tenant, tier, status);
-- Commits with their times, in the order of the chain; and those that erased something.
CREATE INDEX commits_time ON commits (tenant, seq, at);
CREATE INDEX commits_erase ON commits (tenant, seq) WHERE kind = 'erase';
-- Links of kind 'evidence': what the newest version of each memory cites.
INSERT INTO links (tenant, kind, name, id)
SELECT DISTINCT r.tenant, 'evidence', e.value, r.id
  FROM records r, json_each(CASE json_valid(CAST(r.body AS TEXT)) WHEN 1 THEN CAST(r.body AS TEXT) END, '$.evidence') AS e;
