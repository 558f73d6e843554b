"""What a memory record is and how it changes (promises A1, A3-A6, A18-A35)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from outcomes import codes, kept, refused

from keepward import SOURCES, Insert, InvalidInput, Kind, Memory, Policy, Stability, Tier
from keepward.adapters.world import RandomIds
from keepward.gates.detectors import pii, secrets
from keepward.gates.detectors.noise import phrases
from keepward.interchange import load


@pytest.mark.slow
@pytest.mark.promise("A1")
def test_a_memory_outlives_the_process_that_wrote_it(tmp_path: Path, opened: Callable[..., Memory]) -> None:
    program = (
        "import sys; from pathlib import Path; from keepward import Memory\n"
        "with Memory.open(sys.argv[1], embedder=None, config_dir=Path(sys.argv[2])) as mem:\n"
        "    print(mem.remember('The harbour opens at six', tier='archival').records[0].id)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "kept.db"), str(tmp_path / "config")]
    name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    with opened("kept") as here:
        assert here.get(name).text == "The harbour opens at six"


@pytest.mark.promise("A3")
def test_past_commits_never_change_after_later_writes(owner: Memory) -> None:
    first = kept(owner.remember("The harbour opens at six"))
    second = kept(owner.remember("The ferry costs 4 euros"))
    before = list(owner.journal())
    kept(owner.remember("The crane is yellow"))
    kept(owner.revise(first.id, "The harbour opens at seven", reason="new timetable"))
    kept(owner.forget(second.id, reason="no ferry any more"))
    after = list(owner.journal())
    assert after[: len(before)] == before
    assert len(after) == len(before) + 3


@pytest.mark.promise("A4")
def test_taxonomy_sources_and_gate_constants_match_the_documentation() -> None:
    policy = Policy()
    assert [each.value for each in Tier] == ["core", "working", "episodic", "archival"]
    assert {each.value for each in Kind} == {"identity", "rule", "fact", "state", "event", "summary", "document"}
    assert {each.value for each in Stability} == {"volatile", "stable", "permanent"}
    assert set(policy.text_limit.values()) == {1200}
    assert (policy.duplicate_overlap, policy.similarity_threshold) == (0.60, 0.70)
    assert {"chat", "manual", "tool", "operator", "promotion"} <= set(SOURCES)
    assert len(phrases().names) == 10


@pytest.mark.promise("A6")
def test_detectors_list_their_findings_and_none_in_clean_text() -> None:
    card = "4111 " + "1111 1111 1111"
    assert [each.detector for each in pii.scan(f"paid with {card}")] == ["payment_card"]
    assert [each.detector for each in secrets.scan("the key is " + "AKIA" + "HTLGMXGEDN73U55X")] == ["aws_access_key"]
    for scan in (pii.scan, secrets.scan):
        assert list(scan("The harbour opens at six")) == []


@pytest.mark.slow
@pytest.mark.promise("A18")
def test_hundred_thousand_ids_at_one_instant_are_unique_and_increasing() -> None:
    source, now = RandomIds(), datetime(2026, 3, 1, tzinfo=UTC)
    ids = [source.new_id(now) for _ in range(100_000)]
    assert all(earlier < later for earlier, later in pairwise(ids))


@pytest.mark.promise("A19", "A39")
def test_text_of_1200_characters_is_stored_and_1201_is_refused(mem: Memory) -> None:
    words = ("the crane lifts " * 100)[:1199] + "!"
    assert kept(mem.remember(words)).text == words
    outcome = mem.remember(words + "!")
    assert refused(outcome) == {"too_long"}
    detail = outcome.reasons[0].detail
    assert "too long" in detail
    assert "compress it or split it; an import stores it" in detail


@pytest.mark.promise("A21")
def test_a_category_is_any_words_and_a_filter(mem: Memory) -> None:
    written = kept(mem.remember("The harbour opens at six", category="opening hours"))
    kept(mem.remember("The ferry costs 4 euros", category="prices"))
    assert mem.list_memories(category="opening hours") == [written]
    assert [hit.memory.id for hit in mem.recall("harbour ferry", category="opening hours")] == [written.id]


@pytest.mark.promise("A23", "A47", "A54")
def test_a_key_names_the_same_memory_in_every_session(opened: Callable[..., Memory], clock: Any) -> None:
    with opened("keyed") as first:
        made = kept(first.update_by_key("current_projects", "Projects: dashboard", session="monday"))
    clock.move(hours=1)
    with opened("keyed") as second:
        again = kept(second.update_by_key("current_projects", "Projects: dashboard, email", session="tuesday"))
        assert (again.id, again.version, again.created_at) == (made.id, 2, made.created_at)
        assert second.list_memories(key="current_projects") == [again]


@pytest.mark.promise("A25", "A26", "E14")
def test_created_is_and_updated_moves_with_each_change(mem: Memory, clock: Any) -> None:
    made = kept(mem.remember("The harbour opens at six", tier="archival"))
    assert (made.created_at, made.updated_at) == (clock.now(), None)
    assert datetime.fromisoformat(made.created_at.isoformat()).utcoffset() == timedelta(0)
    clock.move(hours=5)
    changed = kept(mem.revise(made.id, "The harbour opens at seven", reason="new timetable"))
    assert (changed.created_at, changed.updated_at) == (made.created_at, clock.now())


@pytest.mark.promise("A27", "A42", "E11")
def test_known_sources_are_stored_and_an_unknown_one_is_refused(mem: Memory) -> None:
    texts = {"chat": "red crane", "manual": "blue ferry", "tool": "green buoy", "operator": "pier", "promotion": "tug"}
    texts |= {"user": "white sail", "assistant": "oak mast", "system": "iron anchor"}
    texts |= {"seeded": "long rope", "extracted": "old harbour"}
    for source, text in texts.items():
        assert kept(mem.remember(text, source=source)).source == source
    for source in ("rumour", "CHAT", "chat "):
        with pytest.raises(InvalidInput, match=r"unknown source: (did you mean chat. )?use one of operator, manual"):
            mem.remember("The lighthouse is white", source=source)
    assert refused(mem.propose([Insert(id="n", text="The lighthouse is white", source="rumour")], reason="seen")) == {
        "unknown_source"
    }


@pytest.mark.promise("A28", "A32", "A35")
def test_forgotten_memory_is_a_version_that_no_read_shows(mem: Memory, clock: Any) -> None:
    made = kept(mem.remember("The harbour opens at six", tier="archival"))
    clock.move(minutes=1)
    gone = kept(mem.forget(made.id, reason="closed for good"))
    assert (gone.id, gone.version, gone.status.value, gone.updated_at) == (made.id, 2, "retired", clock.now())
    assert mem.history(made.id)[-1].op == "retire"
    assert mem.list_memories() == []
    assert list(mem.recall("when does the harbour open")) == []
    assert "harbour" not in mem.context("when does the harbour open").text


@pytest.mark.promise("A29", "A30")
def test_versions_count_from_one_through_updates_and_the_deletion(mem: Memory) -> None:
    made = kept(mem.remember("The harbour opens at six", tier="archival"))
    kept(mem.revise(made.id, "The harbour opens at seven", reason="new timetable"))
    assert mem.get(made.id).text == "The harbour opens at seven"
    kept(mem.forget(made.id, reason="closed for good"))
    assert [(each.record.version, each.op) for each in mem.history(made.id)] == [
        (1, "insert"),
        (2, "replace"),
        (3, "retire"),
    ]


@pytest.mark.promise("A30")
def test_highest_version_of_an_id_counts_in_any_line_order(owner: Memory, tmp_path: Path) -> None:
    lines = [
        f'{{"id": "0123456789ab", "text": "The harbour opens at {hour}", "tier": "register", "version": {version}}}'
        for version, hour in ((2, "seven"), (3, "eight"), (1, "six"))
    ]
    (tmp_path / "old.jsonl").write_text("\n".join(lines))
    load(owner, tmp_path / "old.jsonl")
    assert [each.text for each in owner.list_memories()] == ["The harbour opens at eight"]


@pytest.mark.promise("A31")
def test_an_update_changes_the_fields_it_names_and_no_other(mem: Memory) -> None:
    fields = {"category": "hours", "tags": ("b", "a"), "subject": "harbour", "metadata": {"n": 1}, "tier": "archival"}
    made = kept(mem.remember("The harbour opens at six", **fields, importance=0.9, evidence=["chat:1"]))
    changed = kept(mem.revise(made.id, tags=("c",), reason="better label"))
    differing = {name for name in made.__struct_fields__ if getattr(made, name) != getattr(changed, name)}
    assert (changed.id, changed.tags, differing) == (made.id, ("c",), {"tags", "version", "updated_at"})


@pytest.mark.promise("A33")
def test_bulk_deletion_is_one_commit_that_names_missing_ids(mem: Memory) -> None:
    made = [kept(mem.remember(text)) for text in ("red crane", "blue ferry", "green buoy")]
    outcome, missing = mem.forget_many([made[0].id, "nobody", made[2].id, made[0].id], reason="clearing up")
    assert missing == ["nobody"]
    assert [each.text for each in mem.list_memories()] == ["blue ferry"]
    assert len(mem.log()) == 4
    assert {step.after.id for step in mem.log()[0].steps} == {made[0].id, made[2].id}
    assert outcome is not None


@pytest.mark.promise("A34")
def test_mixed_batch_stores_good_items_and_reports_bad_ones(mem: Memory) -> None:
    items = ["red crane", {"text": "x" * 1201}, {"text": "blue ferry", "source": "rumour"}, "green buoy"]
    outcomes = mem.remember_many(items)
    assert [each.outcome for each in outcomes] == ["committed", "refused", "refused", "committed"]
    assert [codes(each) - {"default_ttl"} for each in outcomes] == [set(), {"too_long"}, {"unknown_source"}, set()]
    assert {each.text for each in mem.list_memories()} == {"red crane", "green buoy"}
