"""Each statement finds its rows by an index, although row-level security hides unsafe conditions from the planner.

The role is that of ``docs/howto/postgresql.md``: below its policy PostgreSQL looks only at leak-proof conditions. The
tables have 20,000 rows of one tenant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from keepward.core.query import Filter
from keepward.machine.clock import RandomIds
from keepward.machine.trust_store import TrustStore
from keepward.storage import postgres_connection
from keepward.storage.documents import _CONDITIONS
from keepward.storage.store import EventStore, open_store
from support.database import NEWEST, OLDEST, Servers, as_superuser
from support.factories import RecordFactory

pytestmark = pytest.mark.slow

psycopg = pytest.importorskip("psycopg")

ROWS = 20_000
#: Rows that a statement may look at for each row that it returns, and for a start.
MOST_ROWS = 2_500
STATEMENTS = postgres_connection._POSTGRES_STATEMENTS
READS = sorted(
    name
    for name, text in STATEMENTS.items()
    if re.match(r"SELECT|WITH", text) and not re.search(r"\?|candidate_vectors|DISTANCE", text)
)
#: Statements that read a whole table of a tenant, or of all: streams, counts, checks, and the tools of an owner.
WHOLE = {
    *("alike", "all_deliveries", "all_documents", "all_minhashes", "all_records", "attached_blobs"),
    *("blob_paths", "candidate_sample", "candidates_seen", "commit_ids_by_prefix", "commit_payloads"),
    *(
        "commit_receipts_between",
        "commits_after",
        "commits_of_kind",
        "commits_until",
        "counts_of_records",
        "document_ids",
    ),
    *("document_seals", "document_tenants", "documents", "documents_in", "events_from", "everyone"),
    *("facts_journal", "facts_journal_in", "facts_usage", "find", "find_naming", "indexed", "indexed_as_of", "lapsed"),
    *("least_worth_of_tier", "link_rows", "listed_as_of", "misordered", "newest_as_of"),
    *("payloads_with_blobs", "profiles", "proposal_fingerprints", "records_to_verify", "requested_commits"),
    *("scopes", "stray_features", "superseded_bodies", "tenants", "unembedded", "unrecorded"),
    # Fragments of others.
    *("commit_row", "event_row", "profile", "record_row", "select_documents"),
}
#: How a row of a table is varied: expressions of ``kept`` and its number ``n``.
VARIED = {
    "commits": {"seq": "(kept).seq + n", "id": "(kept).id || n", "at": "(kept).at + n", "request_key": "NULL"},
    "events": {"seq": "(kept).seq + n", "memory_id": "(kept).memory_id || n"},
    "records": {
        "id": "(kept).id || n",
        "position": "(kept).position + n * 1048576",
        "arrival": "(kept).arrival + n * 1048576",
        "scope": "'/agents/a' || n % 2000",
        "session": "'talk-' || n % 1000",
        "subject": "'person-' || n % 1000",
        "key": "CASE WHEN n % 100 = 0 THEN 'key-' || n END",
        "standing": "CASE WHEN n % 100 = 0 THEN 1 ELSE 0 END",
        "expires_at": "CASE WHEN n % 10 = 0 THEN (kept).created_at + 1000000000 * n END",
    },
    "listed": {
        "arrival": "(kept).arrival + n * 1048576",
        "id": "(kept).id || n",
        "position": "(kept).position + n * 1048576",
        "scope": "'/agents/a' || n % 2000",
        "subject": "'person-' || n % 1000",
        "worth": "n",
    },
    "features": {"id": "(kept).id || n", "digest": "'\\x' || md5('d' || n)", "trait": "'\\x' || md5('t' || n)"},
    "marks": {"mark": "n % 7000", "position": "(kept).position + n * 1048576"},
    "links": {"name": "'name-' || n", "id": "(kept).id || n"},
    "deliveries": {"memory_id": "(kept).memory_id || n", "receipt": "'receipt-' || n"},
    "documents": {"id": "(kept).id || n", "state": "'state-' || n % 1000"},
}


@pytest.fixture(scope="module", params=[NEWEST, OLDEST])
def filled(request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: Any) -> Iterator[EventStore]:
    """A store with 20,000 rows of one tenant in each table, and its statistics."""
    server = servers[request.param]
    server.create_database("plans")
    with open_store(server.address("plans"), anchor=TrustStore(tmp_path_factory.mktemp("config"))) as store:
        make = RecordFactory(RandomIds())
        with store.write() as writer:
            stage = make.stage(make.record("The ferry leaves at six"))
            writer.append("ada", stage)
            writer.put_receipt(make.receipt("ada", stage.details.receipt))
        with psycopg.connect(as_superuser(server.address("plans")), autocommit=True) as connection:
            connection.execute("INSERT INTO marks VALUES ('ada', 1, 1)")
            connection.execute("INSERT INTO links VALUES ('ada', 'lineage', 'a', 'b')")
            connection.execute("INSERT INTO deliveries VALUES ('ada', 'a', 1, 'b')")
            for table, columns in VARIED.items():
                pairs = ", ".join(f"'{name}', {value}" for name, value in columns.items())
                query = """SELECT string_agg(attname, ', ') FROM pg_attribute
                    WHERE attrelid = %s::regclass AND attnum > 0 AND attgenerated = ''"""
                ((names,),) = connection.execute(query, (table,)).fetchall()
                connection.execute(
                    f"""INSERT INTO {table} ({names}) SELECT {names} FROM (
                        SELECT (jsonb_populate_record(kept, jsonb_build_object({pairs}))).*
                          FROM (SELECT each AS kept FROM {table} AS each LIMIT 1) AS one,
                               generate_series(CAST(1 AS BIGINT), {ROWS}) AS n) AS made""".encode()
                )
            connection.execute("ANALYZE")
        yield store
    server.drop_database("plans")


@pytest.fixture(scope="module")
def values(filled: EventStore) -> dict[str, Any]:
    """Values of all parameters: each narrows to a few rows."""
    with filled._database.reading("ada") as db:
        ids = [name for (name,) in db.execute("SELECT id FROM records ORDER BY position LIMIT 3").fetchall()]
        (at,) = db.execute("SELECT at FROM commits WHERE seq = 9000").fetchone()
        document = db.execute("SELECT id FROM documents ORDER BY id LIMIT 1 OFFSET 100").fetchone()[0]
    listed = {"ids": ids, "scopes": ["/agents/a7", "/agents/a8"], "visible": ["/agents/a7"], "subject": ["person-7"]}
    listed |= {"session": ["talk-7"], "keys": ["key-100"], "states": ["state-7"], "recipes": ["1"]}
    listed |= {name: [] for name in ("category", "kinds", "tiers", "quoted", "quoted_tags", "tags", "content_types")}
    numbers = {"marks": [1, 2, 3], "seqs": [8_000, 9_000], "positions": [(2 << 20), (3 << 20)]}
    ranges = {"low": ids[1], "high": ids[2] + "~", "low_folded": "/agents/a7", "high_folded": "/agents/a8"}
    ranges |= {"main_low": ids[1], "main_high": ids[2] + "~"}
    return {name: json.dumps(each) for name, each in (listed | numbers).items()} | {
        **ranges,
        "tenant": "ada",
        "active": 1,
        "after": 9_000,
        "arrivals": [2 << 20, 3 << 20],
        "as_of": 9_000,
        "until_seq": 9_010,
        "at": at,
        "base": 1.0,
        "before": 9_000,
        "breadth": "40",
        "digest": b"d",
        "each": 1.0,
        "id": document,
        "include_sensitive": 1,
        "key": "key-100",
        "kind": "receipts",
        "limit": 10,
        "min_importance": 0,
        "model": "m",
        "most": 10,
        "n": 0,
        "name": "name-7",
        "narrow": 0,
        "now": at,
        "part": None,
        "percent": 1.0,
        "reach": 3,
        "ref": "name-7",
        "scope": "/agents/a7",
        "sensitive": 1,
        "sensitivity": "normal",
        "seq": 9_000,
        "sessions": ["talk-7", "talk-8"],
        "since": at,
        "sort": "on",
        "space": 0,
        "state": "state-7",
        "terms": [1, 2],
        "tier": "archival",
        "trait": b"t",
        "trust": 0,
        "until": at + 1,
        "version": 1,
        "weights": [1.0, 2.0],
    }


WRITTEN = {name: postgres_connection._named(name) for name in STATEMENTS}
WRITTEN |= {f"documents by {name}": postgres_connection.to_postgres_sql(text) for name, text in _CONDITIONS.items()}


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_no_condition_casts_an_element_of_a_list(name: str) -> None:
    written = WRITTEN[name]
    # The names in a document have no index.
    assert "jsonb_array_elements" not in written.replace("jsonb_array_elements_text(CAST(documents.refs AS jsonb))", "")
    assert re.findall(r"CAST\((?:\w+\.)?(?:value|item|tag|term) AS (?!BYTEA)\w+\)", written) == []
    assert "json_each" not in written


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


#: Values of parameters that mean something else in one statement.
OTHERWISE: dict[str, dict[str, Any]] = {
    "find_session": {"scopes": "[]"},
    "find_subject": {"scopes": "[]"},
    "session_tail": {"session": "talk-7"},
    "same_event": {"session": "talk-7"},
    "commits_before": {"scopes": None, "kind": None},
    "commit_receipts_before": {"before": "0"},
    "documents_before": {"before": "0"},
    "documents_in_states": {"after": ""},
    "scopes_between": {"low": "/agents/a7", "high": "/agents/a8"},
    "on_branch": {"path": "/agents/a7", "low": "/agents/a7/", "high": "/agents/a70"},
    "tokens_like": {"low": "a", "high": "b"},
    # Everything later is counted, so nothing may be later here.
    "decisions_since": {"since": 2**62, "low": "g"},
    "candidates_unread": {"after": 0},
    "candidate_index": {"name": "none"},
    "commit_by_request": {"key": b"k"},
}


def test_every_exception_is_a_statement() -> None:
    assert set(READS) >= WHOLE


@pytest.mark.parametrize("name", [name for name in READS if name not in WHOLE])
def test_a_statement_of_a_role_finds_its_rows_by_an_index(
    filled: EventStore, values: dict[str, Any], name: str
) -> None:
    with filled._database.reading("ada") as db:
        query = f"EXPLAIN (ANALYZE, FORMAT JSON) {STATEMENTS[name]}"
        ((((planned,),),),) = (db.execute(query, {**values, **OTHERWISE.get(name, {})}).fetchall(),)
    assert slow_parts(planned) == []


def test_the_first_page_of_a_list_is_read_by_an_index(filled: EventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = list[tuple[str, Any]]()
    ask = postgres_connection.PostgresConnection._ask

    def listen(session: Any, query: str, values: Any = (), **options: Any) -> Any:
        sent.append((query, values))
        return ask(session, query, values, **options)

    with monkeypatch.context() as patch:
        patch.setattr(postgres_connection.PostgresConnection, "_ask", listen)
        everything = Filter(scopes=(), include_sensitive=True)
        assert len(filled.listed_ids("ada", everything, 0, limit=50)) == 50
        filled.records("ada", filled.listed_ids("ada", everything, 0, limit=50))
    asked = [(query, values) for query, values in sent if query.lstrip().startswith("SELECT")]
    assert len(asked) >= 3
    with filled._database.reading("ada") as db:
        for query, values in asked:
            cursor = ask(db, f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", values)  # type: ignore[arg-type]
            assert slow_parts(cursor.fetchall()[0][0][0]) == [], query


def slow_parts(planned: dict[str, Any]) -> list[str]:
    """Return the nodes of a plan that read a large table, or very many rows, or say that it was compiled."""
    found = [(each, each["Actual Loops"] * _looked_at(each)) for each in nodes(planned["Plan"])]
    slow = [
        f"{each['Node Type']} {each.get('Relation Name', '')}: {rows:.0f} rows"
        for each, rows in found
        if rows > MOST_ROWS or (each.get("Relation Name") in VARIED and each["Node Type"] == "Seq Scan")
    ]
    return slow + ["JIT" for name in planned if name == "JIT"]


def _looked_at(node: dict[str, Any]) -> float:
    return float(node["Actual Rows"]) + float(node.get("Rows Removed by Filter", 0))
