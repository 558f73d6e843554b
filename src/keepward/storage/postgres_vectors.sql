-- Vectors of candidates. The table is made for the first tenant that takes candidates from the database: it needs pgvector.
-- A space is an embedder and a dimension of one tenant.

CREATE TABLE candidate_vectors (
    tenant TEXT NOT NULL, arrival INTEGER NOT NULL, n INTEGER NOT NULL, space INTEGER NOT NULL,
    vector HALFVEC NOT NULL, PRIMARY KEY (tenant, arrival, n));

CREATE INDEX candidate_vectors_space ON candidate_vectors (tenant, space);
