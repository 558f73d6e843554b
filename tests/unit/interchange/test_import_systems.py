"""Exports of other systems come in completely and once, with the trust of a user if a person imports them."""

import json
from datetime import UTC, datetime, time, timedelta

import pytest

from keepward.core.principals import Actor, Trust
from keepward.errors import InvalidInput
from keepward.interchange import load
from support import foreign

#: What is in each file, by what it is told to be.
FILES = {
    "chatgpt-export.zip": "chatgpt",
    "claude-export.zip": "claude",
    "memory.jsonl": "mcp-memory",
    "mem0.json": "mem0",
    "openmemory.zip": "mem0",
    "agent.af": "letta",
    "zep.json": "zep",
    "store.db": "langgraph",
    "notes.db": "notes-table",
    "state/memory.db": "memory-bank",
    "blocks.jsonl": "block-tables",
    "basic-memory": "markdown",
    "obsidian": "markdown",
    "memory": "markdown",
    "CLAUDE.md": "markdown",
}


@pytest.fixture
def folder(tmp_path):
    foreign.written(tmp_path)
    return tmp_path


def texts(mem, **asked):
    return {each.text for each in mem.list_memories(within="/", limit=None, **asked)}


def counts(done):
    return (done.committed, done.duplicates, done.quarantined, done.refused, len(done.failed))


def load_and_approve(mem, path, **how):
    """Import a file as its owner, and approve what waits."""
    done = load(mem, path, **how)
    for each in mem.pending():
        mem.approve(each.id)
    return done


@pytest.mark.parametrize("name", FILES)
def test_each_system_is_detected_by_content_and_imported_once(mem, folder, name):
    first, again = load_and_approve(mem, folder / name), load(mem, folder / name)
    assert (first.format, first.failed, first.refused) == (FILES[name], (), 0)
    assert first.total > 0
    assert counts(again) == (0, first.total, 0, 0, 0)
    assert first.reference == f"import:{name.rpartition('/')[2]}"
    found = mem.list_memories(within="/", limit=None)
    spoken = {"assistant": Trust.AGENT}
    assert {(each.trust, each.source, first.reference in each.evidence) for each in found} == {
        (spoken.get(each.metadata.get("role"), Trust.USER), "import", True) for each in found
    }


@pytest.mark.parametrize("name", FILES)
def test_what_nobody_vouches_for_has_the_trust_of_an_import(mem, folder, name):
    load(mem, folder / name, untrusted=True)
    assert {each.trust for each in mem.list_memories(within="/", limit=None)} <= {Trust.IMPORT}


@pytest.mark.parametrize("name", FILES)
def test_a_dry_run_counts_what_would_come_and_stores_nothing(make_store, folder, name):
    mem = make_store(actor=Actor.agent("lyra"))
    tried = load(mem, folder / name, dry_run=True)
    assert (mem.log(limit=1), mem.pending()) == ([], [])
    assert counts(tried) == counts(load(mem, folder / name))


def test_conversation_becomes_a_session_with_dates_and_title(mem, folder):
    load(mem, folder / "chatgpt-export.zip")
    first, second = mem.list_memories(session="c-pottery", limit=None, ascending=True)
    assert (first.text, first.speaker) == ("I moved to Bristol. Remember that my favourite colour is teal.", "user")
    assert first.occurred_at == datetime.fromtimestamp(foreign.MARCH + 10, UTC)
    assert (second.speaker, second.metadata["title"]) == ("assistant", "Pottery plans")


def test_the_branch_that_was_shown_last_is_the_conversation(mem, folder):
    done = load(mem, folder / "chatgpt-export.zip")
    assert "A question that was edited away." not in texts(mem)
    assert "left out: 1 messages of branches that were not shown last" in done.notes


def test_what_chatgpt_noted_of_the_user_comes_along(mem, folder):
    load(mem, folder / "chatgpt-export.zip")
    assert {"The user takes pottery classes.", "I teach geography in Porto."} <= texts(mem, tiers=["archival"])


def test_a_tree_that_is_a_circle_gives_each_message_once(mem, put):
    said = [foreign.chatgpt_message(f"m{n}", "user", f"Turn {n} of a circle", at=foreign.MARCH + n) for n in range(3)]
    talk = foreign.chatgpt_conversation("c-circle", "Circle", said)
    talk["mapping"]["m0"]["parent"] = "m2"
    load(mem, put("conversations.json", json.dumps([talk])))
    assert texts(mem) == {f"Turn {n} of a circle" for n in range(3)}


def test_parts_of_a_sharded_export_come_in_together(mem, tmp_path):
    shards = {
        f"conversations-00{n}.json": [
            foreign.chatgpt_conversation(
                f"c{n}", "T", [foreign.chatgpt_message(f"m{n}", "user", f"Shard {n} says so", at=foreign.MARCH)]
            )
        ]
        for n in range(2)
    }
    load(mem, foreign.zipped(tmp_path / "export.zip", shards))
    assert texts(mem) == {"Shard 0 says so", "Shard 1 says so"}


def test_claudes_memory_projects_and_documents_come_along(mem, folder):
    load(mem, folder / "claude-export.zip")
    assert {
        "When does the ferry to Almada leave?",
        "The harbour project uses metric units.",
        "Answer in short sentences.",
        "Pier four is closed.",
    } <= texts(mem)


def test_an_import_preserves_every_entity_observation_and_relation(mem, folder):
    load(mem, folder / "memory.jsonl")
    kept = sorted((each.category, each.text, each.subject) for each in mem.list_memories(within="/", limit=None))
    assert kept == [
        ("entity", "Ana (person)", "Ana"),
        ("entity", "Atlas (project)", "Atlas"),
        ("observation", "Ana: Lives in Lisbon", "Ana"),
        ("observation", "Ana: Prefers tabs", "Ana"),
        ("relation", "Ana leads Atlas", "Ana"),
    ]


@pytest.mark.parametrize(
    "good",
    [
        foreign.SERVER_MEMORY[0],
        {"id": "1", "memory": "Ana rows", "hash": "a", "user_id": "ana"},
        {"uuid": "1", "name": "ROWS", "fact": "Ana rows"},
        {"role": "user", "content": "I row"},
        foreign.BLOCKS[1],
        foreign.LEGACY,
    ],
    ids=lambda row: next(iter(row)),
)
def test_each_bad_line_is_reported_with_its_number_and_reason(mem, put, good):
    lines = [json.dumps(good), '{"cut": ', json.dumps({**good, "extra": 1}), "[]", '{"x": NaN}']
    done = load(mem, put("lines.jsonl", "".join(line + "\n" for line in lines)))
    assert [number for number, _ in done.failed] == [2, 4, 5]
    assert ("not valid JSON" in done.failed[0][1], "NaN" in done.failed[2][1]) == (True, True)
    assert done.committed + done.quarantined > 0


def test_langgraph_item_is_a_key_in_its_namespace_scope(mem, folder):
    load_and_approve(mem, folder / "store.db")
    (item,) = mem.list_memories(within="/", limit=None)
    assert (item.scope, item.key, item.metadata) == ("/users/ana", "tabs", {"text": "Ana prefers tabs", "stars": 4})


def test_an_item_that_ran_out_is_left_out(mem, tmp_path):
    rows = [("a", "old", {"text": "gone"}, "2025-01-01 00:00:00+00:00"), ("a", "new", {"text": "stays"}, None)]
    foreign.langgraph_store(tmp_path / "store.db", rows)
    assert load(mem, tmp_path / "store.db").notes == ("left out: 1 items that expired",)


def test_a_langgraph_checkpointer_is_named(mem, tmp_path):
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "c.db")) as base, base:
        base.execute("CREATE TABLE checkpoints (thread_id text)")
    with pytest.raises(InvalidInput, match="holds checkpoints"):
        load(mem, tmp_path / "c.db")


def test_a_memory_of_mem0_preserves_its_user_tags_and_time(mem, folder):
    load(mem, folder / "mem0.json")
    found = mem.get("7c9d5f2e-0000-4000-8000-000000000001")
    assert (found.subject, found.tags, found.metadata["mem0"]["run_id"]) == ("ana", ("health",), "monday")
    assert found.occurred_at == datetime(2025, 5, 1, 17, tzinfo=UTC)


def expiring(folder, day):
    path = folder / "expiring.json"
    path.write_text(
        json.dumps([{"id": "e1", "memory": "The pier is closed", "user_id": "ana", "expiration_date": day}])
    )
    return path


def test_mem0_memory_lasts_to_the_end_of_its_last_day(mem, folder):
    day = (mem.now + timedelta(days=3)).date()
    load(mem, expiring(folder, day.isoformat()))
    assert mem.list_memories(within="/")[0].expires_at == datetime.combine(day, time(), UTC) + timedelta(days=1)


def test_a_note_preserves_its_kind_user_and_end(mem, folder):
    done = load(mem, folder / "notes.db")
    log, rule = mem.get("n-1"), mem.get("n-2")
    assert (log.kind.value, log.tags, log.scope, log.subject) == ("event", ("tides",), "/users/ana", "ana")
    assert (str(log.occurred_at), str(log.expires_at)) == ("2025-08-01 10:00:00+00:00", "2100-01-01 00:00:00+00:00")
    assert (rule.kind.value, rule.confidence, rule.scope) == ("rule", 0.9, "/users/bob")
    assert "left out: 1 memories that are not active" in done.notes


def test_a_note_of_unknown_kind_is_reported_with_its_row(mem, tmp_path):
    rows = [{"id": "a", "kind": "poem", "content": "x", "stability": "stable"}, foreign.NOTES[0]]
    foreign.notes_table(tmp_path / "n.db", rows)
    done = load(mem, tmp_path / "n.db")
    assert (done.committed, done.failed) == (1, ((1, "the kind of a note is one of log, summary, rule, soul"),))


def test_a_memory_bank_preserves_pictures_lineage_and_importance(mem, folder):
    done = load(mem, folder / "state" / "memory.db")
    child, parent = mem.get("m-2"), mem.get("m-1")
    assert (child.derived_from, child.tags, child.importance) == ((parent.id,), ("pier",), 0.8)
    assert child.metadata == {"page": 2, "bank": {"source": "extracted"}}
    assert (parent.content_type.value, mem.read_blob(parent.blob)) == ("image", foreign.PICTURE)
    assert {"left out: 1 memories that are not active", "left out: 1 vectors: texts are embedded here"} <= {*done.notes}


@pytest.mark.parametrize("place", ["blobs/gone.png", "../outside.png", "/etc/hostname"])
def test_content_outside_of_the_folder_is_not_read(mem, tmp_path, place):
    (tmp_path / "outside.png").write_bytes(foreign.PICTURE)
    row = {"id": "a", "text": "A photo", "content_type": "image", "content_ref": place, "importance": 0.5, "active": 1}
    done = load(mem, foreign.memory_bank(tmp_path / "state", [row]))
    assert (mem.get("a").text, mem.get("a").blob) == ("A photo", None)
    assert [note for note in done.notes if "contents that are not in the folder" in note]


def test_a_block_preserves_its_owner_label_and_access(mem, folder):
    done = load_and_approve(mem, folder / "blocks.jsonl")
    block = mem.at(scope="/agents/spirit").get("berths")
    assert (block.text, block.scope, block.access.value) == ("Berth four is for ferries", "/agents/spirit", "append")
    assert "left out: 1 rows of other tables, such as events and mutations" in done.notes


def test_core_and_keyed_blocks_wait_together_even_when_the_owner_imports(mem, folder):
    load(mem, folder / "blocks.jsonl")
    (waiting,) = mem.pending()
    assert [(each.after.key, each.after.tier.value) for each in waiting.steps] == [
        ("mission", "core"),
        ("berths", "archival"),
    ]


def test_an_unknown_sqlite_file_names_the_known_tables(mem, tmp_path):
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "x.db")) as base, base:
        base.execute("CREATE TABLE x (y text)")
    with pytest.raises(InvalidInput, match="columns of a LangGraph store"):
        load(mem, tmp_path / "x.db")


def test_what_a_letta_agent_sent_is_what_it_said(mem, folder):
    load(mem, folder / "agent.af")
    assert [each.text for each in mem.list_memories(session="harbour-bot", ascending=True)] == [
        "Is the pier open?",
        "It opens at nine.",
    ]


def test_invalid_fact_is_omitted_and_valid_ones_name_their_episode(mem, folder):
    load(mem, folder / "zep.json")
    assert "The lighthouse is painted red" not in texts(mem)
    assert "e-1" in mem.get("f-1").evidence


def test_notes_keep_their_properties(mem, folder):
    load(mem, folder / "obsidian")
    lamp = next(each for each in mem.list_memories(limit=None) if "lamp" in each.text)
    assert (lamp.tags, lamp.metadata["note"]["created"]) == (("harbour",), "2025-02-03")
    assert lamp.occurred_at == datetime(2025, 2, 3, tzinfo=UTC)


def test_lines_of_a_basic_memory_note_have_it_as_subject(mem, folder):
    load(mem, folder / "basic-memory")
    found = {each.text: each.tags for each in mem.list_memories(subject="Coffee Brewing", limit=None)}
    assert found["relates_to [[Bean Origins]]"] == ("brewing", "coffee")


def test_facts_are_proposed_on_request_derived_from_their_message(mem, folder):
    done = load(mem, folder / "chatgpt-export.zip", facts=True, subject="Ana")
    (fact,) = mem.list_memories(kinds=["fact"], subject="Ana", limit=None)
    assert (done.facts["committed"] >= 1, fact.trust) == (True, Trust.AGENT)
    assert mem.get(fact.derived_from[0]).session == "c-pottery"


def test_file_system_root_is_no_notes_folder(mem):
    with pytest.raises(InvalidInput, match="root folder of this machine"):
        load(mem, "/")


def test_interrupted_import_is_finished_by_a_second_run(mem, tmp_path):
    path = foreign.zipped(tmp_path / "year.zip", {"conversations.json": foreign.chatgpt_year(12, 20)})

    class Off(Exception):
        """The power is gone."""

    def break_off(done, total):
        if done >= 100:
            raise Off

    with pytest.raises(Off):
        load(mem, path, on_progress=break_off)
    assert 0 < len(texts(mem)) < 242
    done = load(mem, path)
    assert (len(texts(mem)), done.committed + done.duplicates) == (242, 242)
