#!/bin/sh
# Makes the role and the database of docs/howto/postgresql.md, as the superuser of the image. The role is neither
# superuser nor BYPASSRLS, so row-level security applies to it; only a superuser can add the extension.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$KEEPWARD_DB_PASSWORD" \
  --username "${POSTGRES_USER:-postgres}" --dbname "${POSTGRES_DB:-postgres}" <<'SQL'
CREATE ROLE keepward LOGIN PASSWORD :'password';
CREATE DATABASE memory OWNER keepward;
\connect memory
CREATE EXTENSION IF NOT EXISTS vector;
SQL
