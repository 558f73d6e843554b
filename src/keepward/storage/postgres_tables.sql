-- What only PostgreSQL has: the bytes of blobs, and candidates of recall in a large tenant; see candidates.py.

CREATE TABLE blob_bytes (
    tenant TEXT NOT NULL, place TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (tenant, place));

-- How far a tenant was taken in, and whether that is all of it.
CREATE TABLE candidate_state (
    tenant TEXT NOT NULL PRIMARY KEY, arrival INTEGER NOT NULL, level INTEGER NOT NULL);

-- Active memories by order of arrival. until: when it expires. turn: 1 for a memory of a session. length: of its text, in
-- terms. space: of its vectors. terms: hashes.
CREATE TABLE candidates (
    tenant TEXT NOT NULL, arrival INTEGER NOT NULL, scope TEXT NOT NULL, sensitive INTEGER NOT NULL,
    trust INTEGER NOT NULL, until INTEGER, turn INTEGER NOT NULL, length INTEGER NOT NULL, space INTEGER,
    units INTEGER NOT NULL, terms BIGINT[] NOT NULL, PRIMARY KEY (tenant, arrival));

CREATE TABLE candidate_words (
    tenant TEXT NOT NULL, term INTEGER NOT NULL, arrival INTEGER NOT NULL, PRIMARY KEY (tenant, term, arrival));
