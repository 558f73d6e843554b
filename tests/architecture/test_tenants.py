"""Each key and each statement names the tenant, so tables can be partitioned or distributed by tenant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keepward.storage.sql import SQL, load_migrations, parse_queries, read_sql, statements

#: Tables that belong to no tenant.
SHARED = {"meta", "migrations", "server_state"}
#: Statements of an owner's tools, or that find the tenant.
FIND_TENANTS = {"tenant_rows", "tenants", "document_tenants", "everyone", "all_tokens", "tokens_like"}
SCHEMA = [statement for step in load_migrations() for statement in statements(step.sql)]
TABLES = {match[1] for each in SCHEMA if (match := re.match(r"CREATE TABLE (\w+)", each))} - SHARED
#: A table in a statement, with its alias.
_NAMED = re.compile(rf"(?:FROM|JOIN|UPDATE|INTO)\s+({'|'.join(sorted(TABLES))})\b(?:\s+(?:AS\s+)?(\w+))?")
_NO_ALIAS = {"WHERE", "SET", "VALUES", "LEFT", "CROSS", "JOIN", "ON", "INDEXED", "ORDER", "UNION", "GROUP", "WINDOW"}
SOURCE = "".join(map(read_sql, ("queries.sql", "postgres.sql", "candidates.sql")))
#: Parts that statements include.
FRAGMENTS = set(re.findall(r"\{\{(\w+)\}\}", SOURCE))
POSTGRES = {f"{name} on PostgreSQL": text for name, text in parse_queries(SOURCE).items() if text != SQL.get(name)}
STATEMENTS = {name: text for name, text in (SQL | POSTGRES).items() if name.split()[0] not in FRAGMENTS}


def without_tenant(text: str) -> list[str]:
    """Return the tables of a statement that no condition ties to a tenant."""
    found = []
    for table, alias in _NAMED.findall(text):
        if re.search(rf"INSERT INTO {table}\b", text):
            if not re.search(rf"INSERT INTO {table} (\(\s*tenant\b|VALUES)", text):
                found.append(table)
            continue
        name = rf"{alias}\." if alias and alias not in _NO_ALIAS else r"(?<![.\w])"
        value = r"(?::tenant|%\(tenant\)s|\?|\w+\.tenant)"
        if not re.search(rf"{name}tenant = {value}|\w+\.tenant = {name}tenant\b", text):
            found.append(f"{table} {alias}".strip())
    return found


@pytest.mark.parametrize("table", sorted(TABLES))
def test_each_unique_key_begins_with_the_tenant(table: str) -> None:
    (made,) = [each for each in SCHEMA if re.match(rf"CREATE TABLE {table} ", each)]
    assert re.search(r"PRIMARY KEY \(tenant\b|tenant TEXT NOT NULL PRIMARY KEY", made)
    unique = [each for each in SCHEMA if re.match(rf"CREATE UNIQUE INDEX \w+ ON {table} ", each)]
    assert [each for each in unique if f"ON {table} (tenant, " not in each] == []


def test_each_statement_ties_each_table_to_one_tenant() -> None:
    loose = {name: found for name, text in STATEMENTS.items() if (found := without_tenant(text))}
    assert {name: found for name, found in loose.items() if name not in FIND_TENANTS} == {}
    assert FIND_TENANTS - loose.keys() == set()


def test_a_statement_without_its_tenant_is_found() -> None:
    assert without_tenant("SELECT 1 FROM records r JOIN events e ON e.tenant = r.tenant WHERE r.id = :id") == []
    assert without_tenant("SELECT 1 FROM records r WHERE r.id = :id") == ["records r"]
    assert without_tenant("DELETE FROM links WHERE id = ?") == ["links WHERE"]


def test_the_page_on_clusters_distributes_each_table_of_a_tenant() -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "postgresql-large.md").read_text("utf-8")
    listed = re.findall(
        r"'(\w+)'", " ".join(re.findall(r"```sql\n(SELECT create_distributed_table.*?)```", page, re.DOTALL))
    )
    source = read_sql("postgres_tables.sql") + read_sql("postgres_vectors.sql")
    made = set(re.findall(r"CREATE (?:UNLOGGED )?TABLE (\w+)", source))
    assert set(listed) - {"tenant"} == (TABLES | made) - SHARED
