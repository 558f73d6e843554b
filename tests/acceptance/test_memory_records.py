"""What a memory record is, how it changes and who may change it."""

from __future__ import annotations

import json
import math
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from outcomes import codes, committed_record, quarantined_item, refused

import keepward
from keepward import (
    SOURCES,
    Actor,
    Committed,
    Conflict,
    Insert,
    InvalidInput,
    Kind,
    Memory,
    ModelUnavailable,
    NewerSchema,
    NotFound,
    Outcome,
    Policy,
    Stability,
    Tier,
    Unauthorised,
)
from keepward.core.reducer import content
from keepward.gates.detectors import pii, secrets
from keepward.gates.detectors.noise import phrases
from keepward.interchange import load
from keepward.machine.clock import RandomIds
from support.ids import CountingIds

# --- What a memory record is and how it changes


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
    first = committed_record(owner.remember("The harbour opens at six"))
    second = committed_record(owner.remember("The ferry costs 4 euros"))
    before = list(owner.journal())
    committed_record(owner.remember("The crane is yellow"))
    committed_record(owner.revise(first.id, "The harbour opens at seven", reason="new timetable"))
    committed_record(owner.forget(second.id, reason="no ferry any more"))
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
    assert committed_record(mem.remember(words)).text == words
    outcome = mem.remember(words + "!")
    assert refused(outcome) == {"too_long"}
    detail = outcome.reasons[0].detail
    assert "too long" in detail
    assert "compress it or split it; an import stores it" in detail


@pytest.mark.promise("A21")
def test_a_category_is_any_words_and_a_filter(mem: Memory) -> None:
    written = committed_record(mem.remember("The harbour opens at six", category="opening hours"))
    committed_record(mem.remember("The ferry costs 4 euros", category="prices"))
    assert mem.list_memories(category="opening hours") == [written]
    assert [hit.memory.id for hit in mem.recall("harbour ferry", category="opening hours")] == [written.id]


@pytest.mark.promise("A23", "A47", "A54")
def test_a_key_names_the_same_memory_in_every_session(opened: Callable[..., Memory], clock: Any) -> None:
    with opened("keyed") as first:
        made = committed_record(
            first.remember("Projects: dashboard", key="current_projects", kind="state", session="monday")
        )
    clock.move(hours=1)
    with opened("keyed") as second:
        again = committed_record(
            second.remember("Projects: dashboard, email", key="current_projects", kind="state", session="tuesday")
        )
        assert (again.id, again.version, again.created_at) == (made.id, 2, made.created_at)
        assert second.list_memories(key="current_projects") == [again]


@pytest.mark.promise("A25", "A26", "E14")
def test_created_is_and_updated_moves_with_each_change(mem: Memory, clock: Any) -> None:
    made = committed_record(mem.remember("The harbour opens at six", tier="archival"))
    assert (made.created_at, made.updated_at) == (clock.now(), None)
    assert datetime.fromisoformat(made.created_at.isoformat()).utcoffset() == timedelta(0)
    clock.move(hours=5)
    changed = committed_record(mem.revise(made.id, "The harbour opens at seven", reason="new timetable"))
    assert (changed.created_at, changed.updated_at) == (made.created_at, clock.now())


@pytest.mark.promise("A27", "A42", "E11")
def test_known_sources_are_stored_and_an_unknown_one_is_refused(owner: Memory, mem: Memory) -> None:
    texts = {"chat": "red crane", "manual": "blue ferry", "tool": "green buoy", "operator": "pier", "promotion": "tug"}
    texts |= {"user": "white sail", "assistant": "oak mast", "system": "iron anchor"}
    texts |= {"seeded": "long rope", "extracted": "old harbour"}
    for source, text in texts.items():
        assert committed_record(owner.remember(text, source=source)).source == source
    for source in ("rumour", "CHAT", "chat "):
        with pytest.raises(InvalidInput, match=r"unknown source: (did you mean chat. )?use one of operator, manual"):
            mem.remember("The lighthouse is white", source=source)
    assert refused(mem.propose([Insert(id="n", text="The lighthouse is white", source="rumour")], reason="seen")) == {
        "unknown_source"
    }


@pytest.mark.promise("A28", "A32", "A35")
def test_forgotten_memory_is_a_version_that_no_read_shows(mem: Memory, clock: Any) -> None:
    made = committed_record(mem.remember("The harbour opens at six", tier="archival"))
    clock.move(minutes=1)
    gone = committed_record(mem.forget(made.id, reason="closed for good"))
    assert (gone.id, gone.version, gone.status.value, gone.updated_at) == (made.id, 2, "retired", clock.now())
    assert mem.history(made.id)[-1].op == "retire"
    assert mem.list_memories() == []
    assert list(mem.recall("when does the harbour open")) == []
    assert "harbour" not in mem.context("when does the harbour open").text


@pytest.mark.promise("A29", "A30")
def test_versions_count_from_one_through_updates_and_the_deletion(mem: Memory) -> None:
    made = committed_record(mem.remember("The harbour opens at six", tier="archival"))
    committed_record(mem.revise(made.id, "The harbour opens at seven", reason="new timetable"))
    assert mem.get(made.id).text == "The harbour opens at seven"
    committed_record(mem.forget(made.id, reason="closed for good"))
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
    made = committed_record(mem.remember("The harbour opens at six", **fields, importance=0.9, evidence=["chat:1"]))
    changed = committed_record(mem.revise(made.id, tags=("c",), reason="better label"))
    differing = {name for name in made.__struct_fields__ if getattr(made, name) != getattr(changed, name)}
    assert (changed.id, changed.tags, differing) == (made.id, ("c",), {"tags", "version", "updated_at"})


@pytest.mark.promise("A33")
def test_bulk_deletion_is_one_commit_that_names_missing_ids(mem: Memory) -> None:
    made = [committed_record(mem.remember(text)) for text in ("red crane", "blue ferry", "green buoy")]
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


# --- Permissions and approval by another than the proposer


ACCESS = ("read_only", "approval", "append", "read_write")
#: What becomes of an agent's operation on a memory with each access, in the order of ACCESS.
OPERATIONS: dict[str, tuple[Callable[[Memory, str], Outcome], tuple[str, str, str, str]]] = {
    "update": (
        lambda mem, name: mem.revise(name, "new", reason="better"),
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "append": (
        lambda mem, name: mem.append(name, "new", reason="more"),
        ("refused", "quarantined", "committed", "committed"),
    ),
    "upsert": (
        lambda mem, _: mem.remember("new", key="log", tier="archival"),
        ("refused", "quarantined", "committed", "committed"),
    ),
    "delete": (
        lambda mem, name: mem.forget(name, reason="old"),
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "move": (
        lambda mem, name: mem.move(name, tier="working", reason="for now"),
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "rename": (
        lambda mem, name: mem.move(name, key="diary", reason="better name"),
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "supersede": (
        lambda mem, name: mem.supersede(name, committed_record(mem.remember("other words")).id, reason="other words"),
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "merge": (
        lambda mem, name: mem.merge(
            [name, committed_record(mem.remember("other words")).id], "both", reason="one thing"
        ),
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "delete among many": (
        lambda mem, name: mem.forget_many([name], reason="old")[0],
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "delete in a draft": (
        lambda mem, name: _drafted(mem, name),
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "promote": (
        lambda mem, name: mem.promote(name, "new", reason="lasting"),
        ("refused", "quarantined", "quarantined", "quarantined"),
    ),
}


def _drafted(mem: Memory, name: str) -> Outcome:
    with mem.draft(reason="old") as draft:
        draft.insert("harmless")
        draft.retire(name)
    return draft.outcome


CASES = [(what, access) for what in OPERATIONS for access in ACCESS]


@pytest.mark.promise("D2", "D15", "D16", "D30", "D31", "D32", "D33", "Z4")
@pytest.mark.parametrize(("what", "access"), CASES, ids=str)
def test_access_decides_what_an_agent_may_do_with_a_memory(mem: Memory, owner: Memory, what: str, access: str) -> None:
    made = committed_record(owner.remember("old", key="log", tier="archival", access=access))
    operation, expected = OPERATIONS[what]
    outcome = operation(mem, made.id)
    assert outcome.outcome == expected[ACCESS.index(access)]
    if not isinstance(outcome, Committed):
        assert mem.get(made.id) == made
        assert mem.list_memories(key="log") == [made]
    assert len(mem.pending()) == (outcome.outcome == "quarantined")


@pytest.mark.promise("D2")
@pytest.mark.parametrize(
    ("access", "becomes"), list(zip(ACCESS, ("refused", "quarantined", "committed", "committed"), strict=True))
)
def test_an_agent_creates_only_what_it_might_itself_change(mem: Memory, access: str, becomes: str) -> None:
    assert mem.remember("a new diary", tier="archival", access=access).outcome == becomes


@pytest.mark.promise("D17", "D32", "D18", "D33")
def test_append_adds_a_line_and_write_replaces_the_text(mem: Memory, owner: Memory) -> None:
    diary = committed_record(owner.remember("monday", key="diary", tier="archival", access="append"))
    assert committed_record(mem.append(diary.id, "tuesday", reason="a new day")).text == "monday\ntuesday"
    assert (
        committed_record(mem.remember("wednesday", key="diary", tier="archival")).text == "monday\ntuesday\nwednesday"
    )
    board = committed_record(owner.remember("monday", key="board", tier="archival", access="read_write"))
    assert committed_record(mem.remember("tuesday", key="board", tier="archival")).text == "tuesday"
    assert committed_record(mem.revise(board.id, "wednesday", reason="a new day")).text == "wednesday"


@pytest.mark.promise("D1", "D27", "D28", "D29")
def test_core_is_always_in_the_prompt_and_archival_on_request(opened: Callable[..., Memory], clock) -> None:
    with opened("tiers", embedder=None, actor=Actor.operator()) as owner:
        mem = owner.as_actor(Actor.agent())
        committed_record(owner.remember("Keep the museum open", tier="core", key="mission"))
        committed_record(mem.remember("The roof is being mended", tier="working"))
        committed_record(owner.remember("Tickets cost 4 euros", tier="archival"))
        for n in range(24):
            committed_record(owner.remember(f"Painting {n} hangs in room {n}", tier="archival"))

        def parts(objective: str) -> list[bool]:
            text = mem.context(objective).text
            return [each in text for each in ("Keep the museum open", "roof", "Tickets")]

        assert parts("what do tickets cost") == [True, True, True]
        assert parts("where does a painting hang") == [True, True, False]
        clock.move(hours=24)
        assert parts("what do tickets cost") == [True, False, True]


@pytest.mark.promise("D4", "D20", "D39", "Z26")
def test_every_change_leaves_one_event_that_outlives_the_memory(mem: Memory, owner: Memory) -> None:
    made = committed_record(mem.remember("monday", tier="archival"))
    committed_record(mem.append(made.id, "tuesday", reason="a new day"))
    committed_record(owner.revise(made.id, "wednesday", reason="tidied"))
    committed_record(owner.forget(made.id, reason="over"))
    committed_record(owner.restore(made.id, reason="not yet"))
    told = [(each.op, each.details.actor, each.details.reason) for each in mem.history(made.id)]
    assert told == [
        ("insert", "agent:agent", "remembered"),
        ("append", "agent:agent", "a new day"),
        ("replace", "operator:olga", "tidied"),
        ("retire", "operator:olga", "over"),
        ("restore", "operator:olga", "not yet"),
    ]
    assert sum(len(events) for _, events in owner.journal()) == mem.status()["events"] == 5


@pytest.mark.promise("D5", "D10", "D34")
def test_no_one_approves_a_proposal_of_their_own(mem: Memory, owner: Memory) -> None:
    item = quarantined_item(mem.remember("Keep the museum open", tier="core", key="mission", confidence=0.9))
    assert [each.id for each in mem.pending()] == [item.id]
    with pytest.raises(Unauthorised):
        mem.approve(item.id)
    with pytest.raises(Unauthorised):
        mem.reject(item.id, reason="no")
    with pytest.raises(Unauthorised):
        mem.as_actor(owner.actor)
    weak = quarantined_item(owner.remember("maybe so", tier="archival", confidence=0.1))
    with pytest.raises(Unauthorised, match="propos"):
        owner.as_actor(Actor.reviewer("mia")).approve(weak.id)
    owner.reject(weak.id, reason="on second thoughts")
    committed_record(owner.approve(item.id))
    assert mem.pending() == []


@pytest.mark.promise("D40", "D41", "D5", "Z3")
def test_time_alone_never_approves_and_in_the_end_rejects(mem: Memory, owner: Memory, clock: Any) -> None:
    item = quarantined_item(mem.remember("Keep the museum open", tier="core", key="mission", confidence=0.9))
    for _ in range(4):
        clock.move(days=7)
        assert [each.state for each in mem.pending()] == ["pending"]
        assert mem.list_memories(tiers=["core"]) == []
    clock.move(days=7)
    assert [each.state for each in mem.pending(state="all")] == ["expired"]
    with pytest.raises(Conflict, match="expired"):
        owner.approve(item.id)
    assert mem.list_memories(tiers=["core"]) == []


@pytest.mark.promise("D9")
def test_a_list_is_of_everything_or_of_one_tier(owner: Memory) -> None:
    for tier in ("working", "episodic", "archival"):
        committed_record(owner.remember(f"this is {tier}", tier=tier))
    assert [each.text for each in owner.list_memories()] == ["this is archival", "this is episodic", "this is working"]
    assert [each.text for each in owner.list_memories(tiers=["episodic"])] == ["this is episodic"]


@pytest.mark.promise("D38", "D27")
def test_memory_created_or_moved_in_core_is_always_prompted(owner: Memory) -> None:
    committed_record(owner.remember("Keep the museum open", tier="core", key="mission"))
    fact = committed_record(owner.remember("Never promise a refund", tier="archival"))
    committed_record(owner.move(fact.id, tier="core", key="operating_rules", reason="it always holds"))
    text = owner.at(scope="orion").context("an unrelated question").text
    assert "Keep the museum open" in text
    assert "Never promise a refund" in text


# --- The store, its models, its tenants and its edges


SOURCE = Path(keepward.__file__).parent


class Meanings:
    """An embedder that knows three meanings, whatever the words, and can be switched off."""

    id, dim = "meanings:64", 64
    _WORDS = (("ship", "boat", "vessel", "ferry"), ("price", "cost", "euros"), ("crane", "hoist"))

    def __init__(self) -> None:
        self.on = True

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        if not self.on:
            raise ModelUnavailable("the model is being mended")
        rows = np.array([self._row(text.lower()) for text in texts], np.float32).reshape(len(texts), 64)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _row(self, text: str) -> np.ndarray:
        known = [n for n, words in enumerate(self._WORDS) if any(word in text for word in words)]
        # What has none of the meanings points somewhere of its own.
        seeds = known or [zlib.crc32(text.encode())]
        return np.sum([np.random.default_rng(seed).standard_normal(64) for seed in seeds], axis=0)


@pytest.mark.promise("D23", "B52", "Z33")
def test_memory_written_without_embedder_is_later_found_by_meaning(
    opened: Callable[..., Memory],
) -> None:
    model = Meanings()
    with opened("mended", embedder=model, actor=Actor.operator()) as owner:
        mem = owner.as_actor(Actor.agent())
        model.on = False
        committed_record(mem.remember("The ferry leaves at six", tier="archival"))
        assert mem.status()["vectors_pending"] == 1
        found = mem.recall("when does the ferry leave")
        assert [hit.why for hit in found] == [("words",)]
        assert any("unavailable" in note for note in found.notes)
        model.on = True
        assert owner.reindex() == 1
        assert [hit.why for hit in mem.recall("any vessel")] == [("meaning",)]


@pytest.mark.promise("D12", "D13", "D43", "D44")
def test_handle_is_built_from_a_path_and_given_dependencies(
    opened: Callable[..., Memory],
) -> None:
    ids = CountingIds()
    with opened("made", embedder=Meanings(), ids=ids, tenant="acme") as mem:
        assert mem.status()["embedder"] == "meanings:64"
        made = committed_record(mem.remember("The ferry leaves at six", tier="archival"))
        assert made.id.endswith("-000000000001")
        assert mem.tenant == "acme"


@pytest.mark.promise("D14", "D42")
def test_every_public_name_can_be_imported() -> None:
    assert [name for name in keepward.__all__ if not hasattr(keepward, name)] == []
    assert {"Memory", "Record", "Tier", "Access", "Proposal", "Committed", "Quarantined", "Refused"} <= set(
        keepward.__all__
    )


@pytest.mark.promise("D11", "D24", "D26", "D43")
def test_no_module_outside_the_stores_speaks_to_a_database() -> None:
    talking = [
        str(path.relative_to(SOURCE))
        for path in sorted(SOURCE.rglob("*.py"))
        # The drill attacks a copy of the file from outside, as a thief would; an import reads files of other programs.
        if not {"storage", "drill"} & set(path.parts)
        and path.name != "sqlite_process.py"
        and any(word in path.read_text("utf-8") for word in ("sqlite3.connect", ".execute(", "executescript"))
    ]
    assert talking == []


@pytest.mark.promise("D22")
def test_fresh_store_records_its_schema_and_refuses_newer_ones(opened: Callable[..., Memory], tmp_path: Path) -> None:
    with opened("dated") as mem:
        committed_record(mem.remember("The ferry leaves at six"))
        schema = mem.status()["schema"]
    with sqlite3.connect(tmp_path / "dated.db") as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (schema,)
        assert raw.execute("SELECT max(number) FROM migrations").fetchone() == (schema,)
        raw.execute(f"PRAGMA user_version = {schema + 1}")
    raw.close()
    with pytest.raises(NewerSchema):
        opened("dated")


@pytest.mark.promise("D35", "D36")
def test_a_tenants_memories_are_another_tenants_nothing(owner: Memory) -> None:
    ours, theirs = owner.at(tenant="ours"), owner.at(tenant="theirs")
    made = committed_record(ours.remember("Liquorice for the keeper", key="keeper", aliases=["old-7"]))
    quarantined_item(ours.as_actor(Actor.agent()).remember("Liquorice, perhaps", tier="archival", confidence=0.1))
    context, commit = ours.context("what does the keeper like"), ours.log()[0].commit
    shown: list[object] = [
        theirs.list_memories(include_ended=True),
        list(theirs.recall("liquorice keeper")),
        theirs.context("what does the keeper like").text,
        theirs.snapshot().text,
        theirs.log(),
        theirs.pending(state="all"),
        theirs.diff(0),
        list(theirs.journal()),
        theirs.status()["live"],
    ]
    assert shown == [[], [], "", "", [], [], [], [], 0]
    for ask in (
        lambda: theirs.get(made.id),
        lambda: theirs.get("old-7"),
        lambda: theirs.history(made.id),
        lambda: theirs.revise(made.id, "No", reason="malice"),
        lambda: theirs.show(commit.id),
        lambda: theirs.rollback(commit.id),
        lambda: theirs.receipt(context.receipt.id),
        lambda: theirs.replay(context.receipt.id),
    ):
        with pytest.raises(NotFound):
            ask()
    assert committed_record(theirs.remember("Liquorice for the keeper", key="keeper")).version == 1


# --- A memory is text, an embedding and metadata in one file, and comes back as it went in


@pytest.mark.promise("E1")
def test_a_store_is_one_sqlite_file_and_its_number(opened: Callable[..., Memory], tmp_path: Path) -> None:
    with opened("single") as mem:
        committed_record(mem.remember("The kiln is fired on Mondays", tier="archival"))
        path = Path(mem.path)
    assert {each.name for each in path.parent.glob(f"{path.name}*")} == {path.name, f"{path.name}.id"}
    with closing(sqlite3.connect(path)) as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.promise("E3")
def test_memory_has_text_embedding_metadata_or_reports_a_missing_embedding(
    opened: Callable[..., Memory],
) -> None:
    for name, choice, waiting in (("all", "hashed", 0), ("two", None, 1)):
        with opened(name, embedder=choice) as mem:
            memory = committed_record(mem.remember("The kiln is fired on Mondays", tier="archival", metadata={"n": 1}))
            assert (memory.text, memory.metadata) == ("The kiln is fired on Mondays", {"n": 1})
            assert mem.status()["vectors_pending"] == waiting


@pytest.mark.promise("E6")
def test_id_is_a_uuid_and_foreign_ids_find_memories(mem: Memory) -> None:
    made = [
        committed_record(mem.remember(f"The kiln number {n} is red", tier="archival", aliases=[f"old-{n}"]))
        for n in (1, 2)
    ]
    assert {UUID(each.id).version for each in made} == {7}
    assert made[0].id != made[1].id
    assert [mem.get(f"old-{n}").id for n in (1, 2)] == [each.id for each in made]


@pytest.mark.promise("E7")
def test_the_text_of_a_memory_is_stored_to_the_letter(mem: Memory) -> None:
    text = "Grüße an 茶 🍵:\n\ta kiln,  two spaces, and a “quote”"
    assert mem.get(committed_record(mem.remember(text, tier="archival")).id).text == text


@pytest.mark.promise("E8", "E22")
def test_vector_length_is_part_of_the_model_name(opened: Callable[..., Memory]) -> None:
    with opened("length", embedder="hashed") as mem:
        committed_record(mem.remember("The kiln is fired on Mondays", tier="archival"))
        stated = mem.status()["embedder"]
        with closing(sqlite3.connect(mem.path)) as store:
            units, size = store.execute("SELECT units, length(vectors) FROM features").fetchone()
    # A head of eight bytes; one byte a number and four for their common step.
    assert int(stated.rpartition(":")[2]) == (size - 8) // units - 4 == 384


@pytest.mark.promise("E25")
def test_store_opens_by_text_path_or_url(opened: Callable[..., Memory], tmp_path: Path) -> None:
    config = tmp_path / "config-of-paths"
    path = tmp_path / "by-path.db"
    with Memory.open(path, config_dir=config, embedder=None) as mem:
        made = committed_record(mem.remember("The kiln is red", tier="archival"))
    for place in (path, str(path), f"sqlite:///{path}"):
        with Memory.open(place, config_dir=config, embedder=None, create=False) as mem:
            assert mem.get(made.id) == made


# --- What use and time make of a memory


IDLE = 1_110


@pytest.mark.promise("E13", "E15", "E51")
def test_get_reports_the_number_and_time_of_deliveries(owner: Memory, clock: Any) -> None:
    name = committed_record(owner.remember("The ferry is red")).id
    fresh = owner.get(name)
    assert (fresh.uses, fresh.last_used) == (0, None)
    seen = []
    for _ in range(3):
        clock.move(hours=5)
        owner.recall("the ferry")
        again = owner.get(name)
        seen.append((again.uses, again.last_used))
        clock.move(minutes=5)
        committed_record(owner.remember(f"A day of {len(seen)} gulls"))
    assert [count for count, _ in seen] == [1, 2, 3]
    last = owner.get(name)
    assert (last.uses, last.last_used) == (3, seen[-1][1])
    assert last.last_used == clock.now() - timedelta(minutes=5)


@pytest.mark.promise("E39", "E40", "E52", "C98")
@pytest.mark.parametrize("steps", [1, 37])
def test_importance_and_confidence_fade_by_the_formula_in_every_read(owner: Memory, clock: Any, steps: int) -> None:
    made = committed_record(owner.remember("The ferry is red", importance=0.8, confidence=0.9))
    for _ in range(steps):
        clock.move(days=74 / steps)
        owner.run_job("decay_archival")
        found = owner.list_memories()[0]
    for read in (owner.get(made.id), found, owner.recall("the ferry")[0].memory):
        assert (read.importance, read.confidence) == (
            pytest.approx(0.8 * math.exp(-0.74), abs=1e-4),
            pytest.approx(0.9 * 0.5 ** (74 / 30), abs=1e-4),
        )
        assert (read.base_importance, read.base_confidence) == (0.8, 0.9)
        assert (read == made, content(read) == content(made)) == (True, True)


@pytest.mark.promise("E39", "E52")
def test_decayed_importance_counts_in_filters(owner: Memory, clock: Any) -> None:
    name = committed_record(owner.remember("The ferry is red", importance=0.8)).id
    seq = owner.log()[0].commit.seq
    days = [0, 30, 46, 48, IDLE]
    passed = []
    for day, before in zip(days, [0, *days], strict=False):
        clock.move(days=day - before)
        ids = [each.id for each in owner.list_memories(min_importance=0.5)]
        hits = [hit.memory.id for hit in owner.recall("the ferry", min_importance=0.5)]
        assert ids == hits
        assert [each.id for each in owner.list_memories(min_importance=0.5, include_ended=True)] == ids
        passed.append(ids == [name])
    assert passed == [True, True, True, False, False]
    assert [each.importance for each in owner.list_memories(min_importance=0.5, as_of=seq)] == [0.8]
    assert [hit.memory.importance for hit in owner.recall("the ferry", min_importance=0.5, as_of=seq)] == [0.8]


@pytest.mark.promise("E40")
def test_importance_never_falls_below_a_hundredth(owner: Memory, clock: Any) -> None:
    name = committed_record(owner.remember("The ferry is red", importance=0.8)).id
    low = committed_record(owner.remember("Gulls are loud", importance=0.004)).id
    clock.move(days=20_000)
    assert (owner.get(name).importance, owner.get(low).importance) == (0.01, 0.004)


@pytest.mark.promise("E52", "E12")
@pytest.mark.parametrize("how", ["used", "confirmed", "told again"])
def test_confirmation_starts_from_the_decayed_importance(owner: Memory, clock: Any, how: str) -> None:
    name = committed_record(owner.remember("The ferry is red", importance=0.8)).id
    clock.move(days=IDLE)
    if how == "used":
        owner.recall("the ferry")
        owner.run_job("learn_importance")
        assert owner.get(name).importance == pytest.approx(0.01 + 0.99 * 0.02, abs=1e-4)
    elif how == "confirmed":
        committed_record(owner.reinforce(name, gain=0.1))
        assert owner.get(name).importance == 0.11
    else:
        owner.remember("The ferry is red")
        assert owner.get(name).importance == 0.01


@pytest.mark.promise("C98", "E39", "C35")
def test_core_and_lasting_memories_do_not_fade(owner: Memory, clock: Any) -> None:
    made = [
        committed_record(owner.remember("Ship the app by June", tier="core", key="mission", importance=0.8)),
        committed_record(owner.remember("The ferry is red", stability="permanent", importance=0.8)),
    ]
    clock.move(days=IDLE)
    for each in made:
        read = owner.get(each.id)
        assert (read.importance, read.confidence) == (0.8, each.confidence)
    assert {each.id for each in owner.list_memories(min_importance=0.8)} == {each.id for each in made}


@pytest.mark.promise("C98")
def test_a_poisoned_note_fades_while_what_is_confirmed_does_not(owner: Memory, mem: Memory, clock: Any) -> None:
    poison = committed_record(mem.remember("The ferry sank in the night", source="web"))
    fact = committed_record(owner.remember("The ferry was painted red by Bo", source="user_message"))
    for _ in range(12):
        clock.move(days=10)
        committed_record(owner.reinforce(fact.id))
    assert (owner.get(poison.id).confidence < 0.04, owner.get(fact.id).confidence) == (True, fact.confidence)


@pytest.mark.promise("E46", "E54")
def test_full_tier_drops_the_least_important_then_least_used(opened: Callable[..., Memory], clock: Any) -> None:
    policy = Policy(capacity={"archival": 3}, removal_share=1.0)
    with opened("full", policy=policy) as memory:
        agent = memory.as_actor(type(memory.actor).agent())
        faded = committed_record(agent.remember("The mast is new", importance=0.9))
        clock.move(days=200)
        used = committed_record(agent.remember("The keel is long", importance=0.5))
        clock.move(seconds=1)
        idle = committed_record(agent.remember("Gulls are loud", importance=0.5))
        assert memory.recall("how long is the keel", limit=1)[0].memory.id == used.id
        clock.move(seconds=1)
        gone = []
        for text in ("Rope is cheap", "Fog came early"):
            kept_ids = {each.id for each in memory.list_memories()}
            outcome = agent.remember(text, importance=0.9)
            gone += sorted(kept_ids - {each.id for each in memory.list_memories()})
            (told,) = [each.detail for each in outcome.reasons if each.code == "made_room"]
            assert (outcome.outcome, gone[-1] in told) == ("committed", True)
        assert gone == [faded.id, idle.id]
        assert memory.get(idle.id).status.value == "archived"


@pytest.mark.promise("E46")
def test_full_tier_prefers_used_memories(opened: Callable[..., Memory], clock: Any) -> None:
    with opened("used", policy=Policy(capacity={"archival": 2}, removal_share=1.0)) as memory:
        used = committed_record(memory.remember("The keel is long", importance=0.45))
        idle = committed_record(memory.remember("Gulls are loud", importance=0.5))
        for _ in range(6):
            memory.recall("how long is the keel", limit=1)
        committed_record(memory.remember("The tide is out", tier="working"))
        memory.remember("Rope is cheap", importance=0.9)
        assert [memory.get(each.id).status.value for each in (used, idle)] == ["active", "archived"]


def test_json_of_a_memory_shows_stored_and_decayed_values(owner: Memory, clock: Any) -> None:
    from keepward.core.json_form import to_json

    name = committed_record(owner.remember("The ferry is red", importance=0.8, confidence=0.9)).id
    clock.move(days=30)
    owner.recall("the ferry")
    shown = json.loads(json.dumps(to_json(owner.get(name))))
    assert (shown["confidence"], shown["base_confidence"], shown["base_importance"]) == (0.45, 0.9, 0.8)
    assert (shown["importance"], shown["uses"], shown["last_used"]) == (
        0.5927,
        1,
        clock.now().isoformat().replace("+00:00", "Z"),
    )


@pytest.mark.promise("E18", "E29")
def test_lineage_is_reported_in_both_directions(owner: Memory, mem: Memory) -> None:
    parents = [committed_record(owner.remember(text)) for text in ("The ferry is red", "The ferry is slow")]
    child = committed_record(owner.remember("Red boats are slow", derived_from=[parents[0].id]))
    hidden = committed_record(owner.at(scope="/agents/bo").remember("Bo thinks so", derived_from=[parents[0].id]))
    assert owner.get(child.id).derived_from == (parents[0].id,)
    assert owner.get(parents[0].id).children == tuple(sorted([child.id, hidden.id]))
    assert owner.get(parents[1].id).children == ()
    merged = owner.merge([each.id for each in parents], "The ferry is red and slow", reason="one note")
    assert isinstance(merged, Committed)
    summary = merged.records[0]
    for each in parents:
        assert summary.id in (owner.get(each.id).children or ())
    assert set(summary.derived_from) == {each.id for each in parents}
    assert owner.get(parents[1].id, as_of=owner.log()[-1].commit.seq + 1).children == ()
    other = mem.at(scope="/agents/ana")
    assert hidden.id not in (other.get(parents[0].id).children or ())


@pytest.mark.promise("E19")
def test_a_person_puts_a_memory_away_and_brings_it_back(owner: Memory) -> None:
    made = committed_record(owner.remember("The ferry is red"))
    away = committed_record(owner.archive(made.id, reason="nobody asks", if_version=1))
    assert (away.status.value, owner.list_memories(), len(owner.recall("the ferry")), owner.context("ferry").text) == (
        "archived",
        [],
        0,
        "",
    )
    with pytest.raises(Conflict):
        owner.archive(made.id, reason="again")
    back = committed_record(owner.restore(made.id, reason="asked for"))
    assert ([each.id for each in owner.list_memories()], back.text) == ([made.id], made.text)


@pytest.mark.promise("E19")
def test_archiving_a_protected_memory_needs_approval(owner: Memory, mem: Memory) -> None:
    made = committed_record(owner.remember("The ferry is red", access="approval"))
    item = quarantined_item(mem.archive(made.id, reason="in the way"))
    assert [each.id for each in owner.list_memories()] == [made.id]
    assert committed_record(owner.approve(item.id)).status.value == "archived"


def test_decayed_memory_below_the_tier_minimum_is_not_moved(mem: Memory, clock: Any) -> None:
    made = committed_record(mem.remember("The ferry is red", tier="working", ttl="90d", confidence=0.5))
    early = committed_record(mem.remember("The harbour opens at six", tier="working", ttl="90d", confidence=0.5))
    committed_record(mem.move(early.id, tier="archival", reason="worth keeping"))
    clock.move(days=25)
    item = quarantined_item(mem.move(made.id, tier="archival", reason="worth keeping"))
    assert {each.code for each in item.reasons} == {"below_floor"}


# --- Vectors are asked for once, kept small, and read while somebody writes


@pytest.mark.promise("E4")
def test_recall_reports_search_by_meaning_and_words(mem: Memory) -> None:
    mem.remember("The kiln is fired on Mondays")
    assert mem.recall("kiln").used == ("text", "vector")


@pytest.mark.promise("E24")
def test_reader_can_read_during_a_write_transaction(mem: Memory) -> None:
    mem.remember("The kiln is fired on Mondays")
    writer = sqlite3.connect(mem.path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert mem.recall("kiln")[0].memory.text == "The kiln is fired on Mondays"
    finally:
        writer.execute("ROLLBACK")
        writer.close()
