-- What PostgreSQL keeps to find candidates of recall in a large tenant; see candidates.py.

-- How far a tenant was taken in, and whether that is all of it.
CREATE TABLE search_state (
    tenant TEXT NOT NULL PRIMARY KEY, arrival INTEGER NOT NULL, level INTEGER NOT NULL);

-- turns, spoken: memories of a session, and their terms.
CREATE TABLE search_classes (
    tenant TEXT NOT NULL, class INTEGER NOT NULL, scope TEXT NOT NULL, sensitive INTEGER NOT NULL,
    trust INTEGER NOT NULL, memories INTEGER NOT NULL, length INTEGER NOT NULL, turns INTEGER NOT NULL,
    spoken INTEGER NOT NULL, PRIMARY KEY (tenant, class));

-- A space is an embedder and a dimension. ones: by component how many vectors are not negative, uint32.
CREATE TABLE search_spaces (
    tenant TEXT NOT NULL, class INTEGER NOT NULL, space INTEGER NOT NULL, holders INTEGER NOT NULL,
    units INTEGER NOT NULL, ones BLOB NOT NULL, PRIMARY KEY (tenant, class, space));

-- refs: int64, little-endian, see SHIFT.
CREATE TABLE search_terms (
    tenant TEXT NOT NULL, term INTEGER NOT NULL, class INTEGER NOT NULL, first INTEGER NOT NULL,
    holders INTEGER NOT NULL, refs BLOB NOT NULL, PRIMARY KEY (tenant, term, class, first));

CREATE TABLE search_rows (
    tenant TEXT NOT NULL, arrival INTEGER NOT NULL, class INTEGER NOT NULL, turn INTEGER NOT NULL, terms BLOB NOT NULL,
    PRIMARY KEY (tenant, arrival));

CREATE TABLE search_units (
    tenant TEXT NOT NULL, arrival INTEGER NOT NULL, n INTEGER NOT NULL, space INTEGER NOT NULL,
    class INTEGER NOT NULL, until INTEGER, bits BIT VARYING NOT NULL, PRIMARY KEY (tenant, arrival, n));

CREATE INDEX search_units_class ON search_units (tenant, space, class);
