import pytest

from keepward.core.policy import Policy
from keepward.interchange import legacy
from keepward.interchange.parsing import open_source
from keepward.interchange.run import ImportRun
from keepward.services.writing.splitter import UnusableItem


def row(number: int = 1, **fields):
    return {"id": f"{number:012x}", "text": f"fact {number}", "scope": "shared", "version": 1} | fields


@pytest.fixture
def read(put, make_store):
    def rows(lines):
        run = ImportRun(make_store(policy=Policy(core_keys=("mission",))), "vault")
        with open_source(put("vault.jsonl", lines)) as source:
            return [item for _, item in legacy.read(source, run)], run.skipped

    return rows


def test_the_highest_version_wins_wherever_it_stays(read):
    entries, _ = read([row(text="new", version=3), row(text="old"), row(text="middle", version=2)])
    assert [entry["text"] for entry in entries] == ["new"]


def test_of_equal_versions_the_later_line_wins(read):
    assert read([row(text="first"), row(text="second")])[0][0]["text"] == "second"


def test_a_tombstone_ends_its_memory(read):
    entries, _ = read([row(), row(version=2, deleted_at="2026-01-01T00:00:00Z"), row(2)])
    assert [(entry["text"], entry.get("retired", False)) for entry in entries] == [("fact 1", True), ("fact 2", False)]


def test_earlier_texts_come_along_with_their_times(read):
    texts = [row(text=f"draft {n}", version=n, updated_at=f"2026-01-0{n}T00:00:00Z") for n in (1, 2, 3)]
    ((entry,), _) = read([*texts, row(text="draft 3", version=4)])
    assert entry["versions"] == (("draft 1", "2026-01-01T00:00:00Z"), ("draft 2", "2026-01-02T00:00:00Z"))
    assert (entry["text"], entry["when"]) == ("draft 3", "2026-01-03T00:00:00Z")


def test_canon_under_the_name_of_a_block_is_core(read):
    fields = read([row(tier="canon", topic_id="mission")])[0][0]
    assert (fields["tier"], fields["key"]) == ("core", "mission")


def test_a_register_becomes_keyed_state(read):
    fields = read([row(tier="register", topic_id="projects")])[0][0]
    assert (fields["tier"], fields["kind"], fields["key"]) == ("archival", "state", "projects")


def test_a_log_line_becomes_an_event_at_its_time(read):
    fields = read([row(tier="log", created_at="2026-01-02T03:04:05Z")])[0][0]
    assert (fields["tier"], fields["when"]) == ("episodic", "2026-01-02T03:04:05Z")


def test_old_times_and_source_are_stored_as_metadata(read):
    fields = read([row(source="chat", created_at="2026-01-02T03:04:05Z")])[0][0]
    assert fields["metadata"]["legacy"] == {"source": "chat", "version": 1, "created_at": "2026-01-02T03:04:05Z"}


@pytest.mark.parametrize(
    "fields",
    [
        {"tier": "gold"},
        {"scope": "../x"},
        {"text": None},
        {"tags": "a"},
        {"version": 0},
        {"created_at": "soon"},
    ],
)
def test_line_with_a_wrong_field_is_skipped_and_reported(read, fields):
    entries, _ = read([row(1, **fields), row(2)])
    assert (isinstance(entries[0], UnusableItem), entries[1]["text"]) == (True, "fact 2")
