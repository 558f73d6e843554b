"""Memories as notes and as JSON objects: out, into any editor, and back as they were."""

import json

import pytest

from keepward import Actor
from keepward.errors import InvalidInput, Unauthorised
from keepward.interchange import load, plan_restore_export, write_notes
from keepward.interchange.notes import front_matter

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


def told(mem):
    """What stays the same of every memory when it moves."""
    names = ("text", "tier", "kind", "key", "scope", "tags", "subject", "session", "speaker", "occurred_at", "metadata")
    return sorted(json.dumps([each.to_dict()[name] for name in names]) for each in mem.find(within="/", limit=None))


def test_notes_come_back_as_they_were(filled, make_store, tmp_path):
    assert write_notes(filled, tmp_path / "notes") == 5
    other = make_store("other")
    done = load(other, tmp_path / "notes")
    assert (done.committed, done.quarantined, done.failed) == (4, 1, ())
    (core,) = other.pending()
    other.approve(core.id)
    assert told(other) == told(filled)


def test_notes_that_come_home_change_nothing(filled, tmp_path):
    write_notes(filled, tmp_path / "notes")
    head = filled.head
    assert (load(filled, tmp_path / "notes").duplicates, filled.head) == (5, head)


def test_notes_that_were_edited_are_said_and_change_nothing(filled, tmp_path):
    write_notes(filled, tmp_path / "notes")
    note = next(path for path in (tmp_path / "notes").glob("Ana*.md"))
    note.write_text(note.read_text().replace("prefers tabs", "prefers spaces"))
    done = load(filled, tmp_path / "notes")
    assert [each for each in done.notes if "edited" in each] != []
    assert "Ana prefers tabs" in {each.text for each in filled.find(limit=None)}


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
        write_notes(filled.acting_as(Actor.agent("lyra")), tmp_path / "notes")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.md").write_text("mine")
    with pytest.raises(InvalidInput, match="not an empty folder"):
        write_notes(filled, tmp_path / "full")


@pytest.mark.parametrize("form", ["lines", "items", "list"])
def test_memories_as_the_api_gives_them_come_in_as_they_were(filled, make_store, put, form):
    rows = [each.to_dict() for each in filled.find(within="/", limit=None)]
    content = (
        "".join(json.dumps(row) + "\n" for row in rows)
        if form == "lines"
        else json.dumps({"items": rows, "total": len(rows)} if form == "items" else rows)
    )
    other = make_store("other")
    assert load(other, put("memories-5.jsonl", content)).format == "records"
    other.approve(other.pending()[0].id)
    assert told(other) == told(filled)


def test_a_list_of_memories_is_no_export_to_restore_and_that_is_said(filled, put):
    rows = [each.to_dict() for each in filled.find(limit=None)]
    with pytest.raises(InvalidInput, match=r"looks like records.*import it"):
        plan_restore_export(filled, put("memories.jsonl", rows))


def test_a_memory_with_a_damaged_field_is_named_and_the_others_come(filled, make_store, put):
    rows = [each.to_dict() for each in filled.find(limit=None)]
    rows[0] |= {"aliases": 7}
    rows[1] |= {"text": None}
    done = load(make_store("other"), put("memories.jsonl", rows), format="records")
    assert [number for number, _ in done.failed] == [1, 2]


@pytest.mark.parametrize(
    ("row", "value"),
    [("a: [x, 'y']", ["x", "y"]), ("a:\n  - x\n  - y", ["x", "y"]), ("a: 'x'", "x"), ("a: 2025-01-01", "2025-01-01")],
)
def test_properties_are_texts_and_lists_of_texts(row, value):
    assert front_matter(f"---\n{row}\n---\nrest\n") == ({"a": value}, "rest\n")
