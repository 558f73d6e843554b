"""Memories as notes for any editor, and as JSON objects of programs."""

import json

import pytest

from keepward import Actor
from keepward.errors import InvalidInput, Unauthorised
from keepward.interchange import load, plan_restore_export, write_notes, write_vault
from keepward.interchange.markdown import front_matter
from keepward.interchange.records import COPIED_FIELDS

STRANGE = 'Two lines\n---\nand: a "quote"\n\n# no heading\n\ttab … ü 漢'


@pytest.fixture
def filled(mem):
    first = mem.remember("Ana prefers tabs", tags=["style"], subject="Ana", metadata={"n": [1, {"a": None}]})
    mem.remember("Editors are set to tabs", derived_from=[first.record.id], ttl="30d")
    mem.remember(STRANGE, scope="/agents/orion", key="odd/key: name", occurred_at="2025-01-02T03:04:05Z")
    mem.remember("I like green tea", tier="episodic", kind="event", session="monday", speaker="ana")
    mem.remember("Ship the app", tier="core", key="mission")
    gone = mem.remember("Nobody knows this any more")
    mem.forget(gone.record.id, reason="over")
    return mem


def unmoved_fields(mem):
    """What stays the same of every memory when it moves."""
    names = ("text", "tier", "kind", "key", "scope", "tags", "subject", "session", "speaker", "metadata")
    found = mem.list_memories(within="/", limit=None)
    # The date of another store becomes when it happened, where nothing else says when that was.
    when = {each.id: str(each.occurred_at or each.created_at) for each in found}
    return sorted(json.dumps([when[each.id], *(each.to_dict()[name] for name in names)]) for each in found)


def test_a_note_has_its_fields_as_properties_and_its_text(filled, tmp_path):
    assert write_notes(filled, tmp_path / "notes") == 5
    (path,) = (tmp_path / "notes").rglob("odd key name*.md")
    properties, text = front_matter(path.read_text())
    found = filled.at(scope="/agents/orion").get("odd/key: name")
    assert (properties["keepward"], properties["scope"], text) == (found.id, "/agents/orion", f"\n{STRANGE}\n")


@pytest.mark.parametrize("scope", ["/users/ana", "/agents/orion", "/projects/shop"])
def test_notes_of_one_scope_contain_only_what_is_at_or_below_it(filled, tmp_path, scope):
    for each in (scope, f"{scope}/users/eve", "/users/bo"):
        filled.remember(f"The boat of {each} is red", scope=each)
    handle = filled.at(scope=scope)
    count = write_notes(handle, tmp_path / "notes")
    written = [path.read_text() for path in (tmp_path / "notes").rglob("*.md")]
    assert len(written) == count == len(handle.list_memories(within=scope, limit=None))
    assert all(f'scope: "{scope}' in text for text in written)


def test_the_journal_is_not_exported_for_one_scope(filled, tmp_path):
    path = tmp_path / "ana.jsonl"
    with pytest.raises(InvalidInput, match=r"every scope, not only /users/ana.*--markdown --scope /users/ana"):
        write_vault(filled.at(scope="/users/ana"), path)
    assert not path.exists()


def test_a_folder_is_a_scope_and_lineage_is_a_link(filled, tmp_path):
    write_notes(filled, tmp_path / "notes")
    assert [path.parent.name for path in (tmp_path / "notes").rglob("odd key name*.md")] == ["orion"]
    (derived,) = (tmp_path / "notes").glob("Editors*.md")
    properties, _ = front_matter(derived.read_text())
    linked = tmp_path / "notes" / f"{properties['links'][0][2:-2]}.md"
    assert linked.read_text().endswith("\nAna prefers tabs\n")


def test_properties_are_yaml_as_every_editor_reads_it(filled, tmp_path):
    yaml = pytest.importorskip("yaml")
    write_notes(filled, tmp_path / "notes")
    for path in (tmp_path / "notes").rglob("*.md"):
        text = path.read_text()
        assert yaml.safe_load(text.split("---\n")[1]).keys() == front_matter(text)[0].keys()


def test_notes_take_the_owner_and_an_empty_folder(filled, tmp_path):
    with pytest.raises(Unauthorised):
        write_notes(filled.as_actor(Actor.agent("lyra")), tmp_path / "notes")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.md").write_text("mine")
    with pytest.raises(InvalidInput, match="not an empty folder"):
        write_notes(filled, tmp_path / "full")


@pytest.mark.parametrize("form", ["lines", "items", "list"])
def test_memories_in_api_form_are_imported_unchanged(filled, make_store, put, form):
    rows = [each.to_dict() for each in filled.list_memories(within="/", limit=None)]
    content = (
        "".join(json.dumps(row) + "\n" for row in rows)
        if form == "lines"
        else json.dumps({"items": rows, "total": len(rows)} if form == "items" else rows)
    )
    other = make_store("other")
    assert load(other, put("memories-5.jsonl", content)).format == "records"
    other.approve(other.pending()[0].id)
    assert unmoved_fields(other) == unmoved_fields(filled)


def test_list_of_memories_is_no_restorable_export(filled, put):
    rows = [each.to_dict() for each in filled.list_memories(limit=None)]
    with pytest.raises(InvalidInput, match=r"format is records.*import it"):
        plan_restore_export(filled, put("memories.jsonl", rows))


def test_memory_with_a_damaged_field_is_named_and_skipped(filled, make_store, put):
    rows = [each.to_dict() for each in filled.list_memories(limit=None)]
    rows[0] |= {"aliases": 7}
    rows[1] |= {"text": None}
    done = load(make_store("other"), put("memories.jsonl", rows), format="records")
    assert [number for number, _ in done.failed] == [1, 2]


FIELDS = sorted(
    {*COPIED_FIELDS, "when", "user_id", "parent_id", "parents", "tier", "session", "scope", "created_at", "status"}
)


@pytest.mark.parametrize("value", [7, [[1]], {"a": [1]}, "x" * 5_000, "../up"], ids=str)
def test_no_field_of_a_record_stops_the_others(mem, put, value):
    rows = [{"id": f"odd-{name}", "text": f"Odd {name}", name: value} for name in FIELDS]
    done = load(mem, put("odd.json", [*rows, {"id": "good", "text": "Ana lives in Lisbon"}]), format="records")
    assert mem.get("good").text == "Ana lives in Lisbon"
    told = done.committed + done.duplicates + done.quarantined + done.refused + len(done.failed)
    assert done.total == told


INACTIVE = [
    {"status": "retired"},
    {"state": "paused"},
    *({"active": value} for value in (False, 0, "false")),
    {"is_deleted": True},
    *({name: "2025-01-02T00:00:00Z"} for name in ("deleted_at", "expires_at")),
    {"superseded_by": "b"},
]


@pytest.mark.parametrize("says", INACTIVE, ids=str)
def test_an_inactive_record_is_left_out_and_counted(mem, put, says):
    rows = [{"id": "a", "text": "Ana lived in Porto", **says}, {"id": "b", "text": "Ana lives in Lisbon"}]
    done = load(mem, put("bank.json", rows), format="records")
    assert ([each.text for each in mem.list_memories()], "left out: 1 memories that are not active" in done.notes) == (
        ["Ana lives in Lisbon"],
        True,
    )


@pytest.mark.parametrize("when", ["2025-03-04T05:06:07Z", 1741064767.0, 1741064767000])
@pytest.mark.parametrize("name", ["created_at", "timestamp"])
def test_a_record_preserves_its_date(mem, put, name, when):
    load(mem, put("bank.json", [{"id": "a", "text": "Ana lives in Lisbon", name: when}]), format="records")
    assert str(mem.list_memories()[0].occurred_at) == "2025-03-04 05:06:07+00:00"


@pytest.mark.parametrize("link", [{"parent_id": "a"}, {"parents": ["a"]}, {"derived_from": ["a"]}])
@pytest.mark.parametrize("first", ["parent", "child"])
def test_a_record_preserves_its_parent(mem, put, link, first):
    rows = [{"id": "a", "text": "Ana moved to Lisbon in May"}, {"id": "b", "text": "Ana lives in Lisbon", **link}]
    load(mem, put("bank.json", rows if first == "parent" else rows[::-1]), format="records")
    assert mem.get("b").derived_from == (mem.get("a").id,)


def test_missing_parent_is_counted_and_named_as_evidence(mem, put):
    done = load(mem, put("bank.json", [{"id": "b", "text": "Ana lives in Lisbon", "parent_id": "a"}]), format="records")
    told = "left out: 1 parents that are missing or pending review: the evidence has their names"
    assert (told in done.notes, "a" in mem.get("b").evidence) == (True, True)


def test_records_that_name_each_other_as_parents_come_in(mem, put):
    rows = [{"id": "a", "text": "The first one", "parent_id": "b"}, {"id": "b", "text": "One more", "parent_id": "a"}]
    assert load(mem, put("bank.json", rows), format="records").committed == 2


@pytest.mark.parametrize("form", ["records", "vault"])
def test_lineage_and_dates_of_our_own_survive(filled, make_store, put, tmp_path, form):
    if form == "vault":
        write_vault(filled, tmp_path / "own.jsonl")
        path = tmp_path / "own.jsonl"
    else:
        path = put("own.json", [each.to_dict() for each in filled.list_memories(within="/", limit=None)])
    other = make_store("other")
    load(other, path)
    child = next(each for each in other.list_memories() if each.text == "Editors are set to tabs")
    (parent,) = child.derived_from
    assert (other.get(parent).text, child.occurred_at) == ("Ana prefers tabs", filled.get(child.aliases[0]).created_at)


@pytest.mark.parametrize(
    ("row", "value"),
    [("a: [x, 'y']", ["x", "y"]), ("a:\n  - x\n  - y", ["x", "y"]), ("a: 'x'", "x"), ("a: 2025-01-01", "2025-01-01")],
)
def test_properties_are_texts_and_lists_of_texts(row, value):
    assert front_matter(f"---\n{row}\n---\nrest\n") == ({"a": value}, "rest\n")
