"""Change a store as a person with a database tool would. Only this module of the tests names its columns.

``path`` is the file of a store, or the address of a database, which the superuser edits.
"""

from __future__ import annotations

import re
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from .database import as_superuser

#: Two payloads of the first commit change places.
SWAPPED_PAYLOADS = """UPDATE events SET (salt, payload, payload_commit) = (
    SELECT o.salt, o.payload, o.payload_commit FROM events o WHERE o.seq = 1 AND o.n = 1 - events.n)
    WHERE seq = 1"""
#: Every record gets the words and the seal of another one.
SWAPPED_WORDS = """UPDATE features SET terms = (SELECT o.terms FROM features o WHERE o.id <> features.id LIMIT 1),
    seal = (SELECT o.seal FROM features o WHERE o.id <> features.id LIMIT 1)"""
SWAPPED_SEALS = "UPDATE features SET seal = (SELECT seal FROM features ORDER BY id DESC LIMIT 1)"
FORGED_COMMIT = (
    (
        "INSERT INTO commits SELECT tenant, 5, 'forged', at, kind, actor_kind, hash, events_hash, salt, payload,"
        " x'00', receipt, NULL, NULL, seal FROM commits WHERE seq = 4"
    ),
    "UPDATE tenants SET seq = 5, hash = x'00'",
)
#: A memory of the key ``f3`` that no commit made.
FORGED_MEMORY = (
    (
        "INSERT INTO events (tenant, seq, n, op, memory_id, version, salt, payload, payload_commit, seal) "
        "SELECT tenant, seq, 7, op, 'forged', 1, salt, "
        "CAST(replace(CAST(payload AS TEXT), 'number 3', 'forged') AS BLOB), payload_commit, seal "
        "FROM events WHERE payload LIKE '%number 3 %'"
    ),
    "CREATE TEMP TABLE forged AS SELECT * FROM records WHERE key = 'f3'",
    "UPDATE forged SET id = 'forged', key = NULL, position = position + 7, tier = 'core'",
    "INSERT INTO records SELECT * FROM forged",
)
#: A second memory of the key ``mood``.
SECOND_OF_A_KEY = (
    "CREATE TEMP TABLE copy AS SELECT * FROM records WHERE key = 'mood'",
    "UPDATE copy SET id = 'another', position = position + 1000",
    "INSERT INTO records SELECT * FROM copy",
)
#: An erasure of the first event that no commit named.
FORGED_ERASURE = (
    "UPDATE events SET salt = NULL, payload = NULL WHERE seq = 1",
    (
        "INSERT INTO documents (tenant, kind, id, at, body, seal) SELECT tenant, 'erased', '1/0', 2, "
        "CAST('{\"promise\":\"' || lower(hex(payload_commit)) || '\",\"remains\":null}' AS BLOB), x'00' "
        "FROM events WHERE seq = 1"
    ),
)
#: What plain writers leave in free pages: a text where a cell stood before.
TEXT_IN_FREE_PAGES = (
    "PRAGMA secure_delete=OFF",
    "CREATE TABLE aside AS SELECT payload || hex(zeroblob(9000)) AS a FROM events, json_each('[1,2,3,4]')",
    "DROP TABLE aside",
)
#: Everything computed from a memory's events, by table; ``{0}`` stands for its id.
DERIVED = {
    "marks": "position = (SELECT position FROM records WHERE id = '{0}')",
    "records": "id = '{0}'",
    "features": "id = '{0}'",
    "documents": "kind = 'usage' AND id = '{0}'",
    "links": "id = '{0}' OR name = '{0}'",
    "deliveries": "memory_id = '{0}'",
}
NO_EVENTS = "DELETE FROM events WHERE memory_id = '{0}'"
BENT_EVENTS = "UPDATE events SET payload = x'7b7d' WHERE memory_id = '{0}'"
BENT_BODY = "UPDATE records SET body = x'7b7d' WHERE id = '{0}'"
OTHER_TIER = "UPDATE records SET tier = 'archival' WHERE id = '{0}'"
#: What hides a memory from a read; ``{0}`` stands for its id.
HIDDEN = {
    "importance of all": ["UPDATE records SET body = CAST(json_set(CAST(body AS TEXT), '$.importance', 0) AS BLOB)"],
    "all derived rows gone": [f"DELETE FROM {table} WHERE {where}" for table, where in DERIVED.items()],
    "a status set to archived": ["UPDATE records SET status = 'archived' WHERE id = '{0}'"],
    "its scope moved away": ["UPDATE records SET scope = '/agents/nobody' WHERE id = '{0}'"],
    "its origin and its record gone": ["DELETE FROM records WHERE id = '{0}'", BENT_EVENTS],
}
#: Those of them that the first read of a handle notices: they change a number of records, or what every list reads.
COUNTED = {name: statements for name, statements in HIDDEN.items() if name != "its scope moved away"}
#: One edit each; the memories are those of ``test_regressions_storage``.
EDITS = {
    "content": "UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), 'number 3', 'number 8') AS BLOB)",
    "body": "UPDATE records SET body = CAST(replace(CAST(body AS TEXT), 'number 3', 'number 8') AS BLOB)",
    "tier": "UPDATE records SET tier = 'core' WHERE key = 'f3'",
    "trust": "UPDATE records SET trust = 7 WHERE trust < 4",
    "term": "UPDATE records SET expires_at = NULL WHERE expires_at IS NOT NULL",
    "tags": "UPDATE records SET body = CAST(replace(CAST(body AS TEXT), '\"boat\"', '\"verified\"') AS BLOB)",
    "scope": "UPDATE records SET scope = '/agents/orion' WHERE key = 'f3'",
    "importance": "UPDATE records SET body = CAST(json_set(CAST(body AS TEXT), '$.importance', 10000) AS BLOB)",
    "subject": "UPDATE records SET subject = 'Bo' WHERE key = 'f3'",
    "status": "UPDATE records SET status = 'retired' WHERE key = 'f3'",
    "sensitivity": "UPDATE records SET sensitivity = 'sensitive' WHERE key = 'f3'",
    "version": "UPDATE records SET version = 2 WHERE key = 'f3'",
    "terms": "UPDATE features SET terms = (SELECT terms FROM features ORDER BY id DESC LIMIT 1)",
    "vectors": "UPDATE features SET vectors = zeroblob(length(vectors))",
    "a proposal": "UPDATE documents SET state = 'approved' WHERE kind = 'proposals'",
    "a receipt": "UPDATE commits SET receipt = CAST(replace(CAST(receipt AS TEXT), 'ins', 'sin') AS BLOB)",
    "a commit's time": "UPDATE commits SET at = at + 1",
    "a commit's reason": "UPDATE commits SET payload = CAST(replace(CAST(payload AS TEXT), 'rem', 'mer') AS BLOB)",
}
#: Deliveries that no receipt tells of, and deliveries gone.
DELIVERIES = {
    "delete": "DELETE FROM deliveries",
    "insert": "INSERT INTO deliveries VALUES ('default', 'x', 1, 'y')",
    "another tenant": "INSERT INTO deliveries VALUES ('nobody', 'x', 1, 'y')",
    "update": "UPDATE deliveries SET version = version + 1",
}
RERANKER = "kind = 'artefacts' AND id LIKE 'reranker/%'"
RETIRED = "UPDATE events SET payload = x'7b7d' WHERE op = 'retire'"


Place: TypeAlias = Path | str


@contextmanager
def _opened(path: Place) -> Iterator[Callable[[str, Sequence[Any]], Any]]:
    """Lend what runs a statement and returns its cursor."""
    if not str(path).startswith("postgresql://"):
        with closing(sqlite3.connect(path, isolation_level=None)) as raw:
            yield raw.execute
        return
    import psycopg

    def execute(statement: str, values: Sequence[Any]) -> Any:
        text = re.sub(r"CAST\((\w+) AS TEXT\)", r"convert_from(\1, 'UTF8')", statement)
        text = re.sub(r"CAST\((replace\(.*\)) AS BLOB\)", r"convert_to(\1, 'UTF8')", text)
        return connection.execute(text.replace("%", "%%").replace("?", "%s").encode(), values)

    with psycopg.connect(as_superuser(str(path)), autocommit=True) as connection:
        yield execute


def run(path: Place, *statements: str, values: Sequence[Any] = ()) -> int:
    """Run SQL on a store; return how many rows the last statement changed."""
    changed = 0
    with _opened(path) as execute:
        for statement in statements:
            changed = execute(statement, values).rowcount
    return changed


def rows(path: Place, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    with _opened(path) as execute:
        return list(execute(query, values).fetchall())


def edit(path: Place, table: str, change: str, where: str = "TRUE", values: Sequence[Any] = ()) -> int:
    """Change cells of some rows of a table."""
    return run(path, f"UPDATE {table} SET {change} WHERE {where}", values=values)


def delete(path: Place, *tables: str, where: str = "TRUE") -> None:
    """Delete some rows of tables."""
    run(path, *(f"DELETE FROM {table} WHERE {where}" for table in tables))


def body(before: str, after: str) -> str:
    """Return the change that replaces a text in the body of a document."""
    return f"body = CAST(replace(CAST(body AS TEXT), '{before}', '{after}') AS BLOB)"


def unrevoke_tokens(path: Place) -> None:
    edit_documents(path, "tokens", body('"revoked_at":', '"revoked_at":null,"x":'))


def edit_documents(path: Place, kind: str, change: str, where: str = "TRUE") -> None:
    edit(path, "documents", change, f"kind = '{kind}' AND {where}")


def delete_documents(path: Place, kind: str, where: str = "TRUE") -> None:
    delete(path, "documents", where=f"kind = '{kind}' AND {where}")


def documents(path: Place, kind: str) -> list[tuple[Any, ...]]:
    """Return the documents of a kind by id, as they are stored: tenant, kind, id and the rest."""
    return rows(path, "SELECT * FROM documents WHERE kind = ? ORDER BY id", (kind,))


def put_documents(path: Place, *given: tuple[Any, ...]) -> None:
    """Write documents as they were stored, in place of any of the same key."""
    with _opened(path) as execute:
        for row in given:
            execute("DELETE FROM documents WHERE tenant = ? AND kind = ? AND id = ?", row[:3])
            execute(f"INSERT INTO documents VALUES ({', '.join('?' * len(row))})", row)


def put_back_documents(path: Path, kind: str, old: Path) -> None:
    """Put the documents of a kind back as an older copy of the file has them."""
    before = documents(old, kind)
    delete_documents(path, kind)
    put_documents(path, *before)


def heads(path: Path) -> list[tuple[Any, ...]]:
    """Return the rows of all tenants."""
    return rows(path, "SELECT * FROM tenants")


def put_back_everything_beside(path: Path, tenants: list[tuple[Any, ...]], before: list[tuple[Any, ...]]) -> None:
    """Put the tenants' rows and all documents back as they once were."""
    delete(path, "documents", "tenants")
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.executemany(f"INSERT INTO tenants VALUES ({', '.join('?' * len(tenants[0]))})", tenants)
    put_documents(path, *before)


def bend_receipt(path: Path, name: str, before: bytes, after: bytes) -> None:
    """Replace bytes in a compressed receipt."""
    ((packed,),) = rows(path, "SELECT body FROM documents WHERE kind = 'receipts' AND id = ?", (name,))
    bent = zlib.compress(zlib.decompress(packed).replace(before, after))
    edit(path, "documents", "body = ?", "kind = 'receipts' AND id = ?", (bent, name))
