"""Users of five other systems move in: the commands of the page, and ten tasks of each system under its own words.

Each store is written in the format of its system. A task is asked in the prompt or at the terminal.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keepward import Actor, InvalidInput, Memory, Policy, Status, Tier
from keepward.cli.main import main
from keepward.interchange import load
from support import five_systems
from support.embedders import embedder

HOWTO = Path(__file__).resolve().parents[2] / "docs" / "howto"
PAGES = "".join((HOWTO / name).read_text() for name in ("import-stores.md", "import-tiers.md"))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Call a command in an empty folder; return its exit code, its JSON answer and what it printed for people."""
    for name in [name for name in os.environ if name.startswith("KEEPWARD_")]:
        monkeypatch.delenv(name)
    for name in ("HOME", "DATA"):
        monkeypatch.setenv(f"KEEPWARD_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("KEEPWARD_EMBEDDER", "none")
    monkeypatch.setenv("KEEPWARD_MAINTENANCE", "off")
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, code: int = 0) -> Any:
        ended = main([*arguments, "--json"])
        printed = capsys.readouterr()
        # An import of which everything waits says so by its exit code.
        assert ended == code or (arguments[0] == "import" and ended == 6), printed.err
        return json.loads(printed.out)

    return call


def commands_of(heading: str) -> list[str]:
    """Return the commands of one section of the page."""
    section = PAGES.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\$ keepward (.*)$", section, re.MULTILINE)


def moved(run: Callable[..., Any], heading: str) -> list[Any]:
    """Run the commands of a section: try, import, approve, check."""
    commands = commands_of(heading)
    assert ["--dry-run" in commands[0], *(each.split()[0] for each in commands[:3])] == [
        True,
        "import",
        "import",
        "approve",
    ]
    answers = [run(*shlex.split(each)) for each in commands]
    tried, done = answers[:2]
    counts = ("total", "committed", "quarantined", "refused", "failed")
    assert [tried[name] for name in counts] == [done[name] for name in counts]
    assert (done["refused"], done["failed"], done["committed"] > 0) == (0, [], True)
    return answers


def moved_in(mem: Memory, path: Path) -> None:
    """Import a store as its owner in a program, and approve what waits."""
    done = load(mem, path)
    assert (done.refused, done.failed) == (0, ())
    for each in mem.pending():
        mem.approve(each.id)


@pytest.fixture
def store(tmp_path: Path, clock: Any) -> Any:
    with Memory.open(
        tmp_path / "m.db", config_dir=tmp_path / "c", embedder="hashed", actor=Actor.operator("olga"), clock=clock
    ) as mem:
        yield mem


# --- the vault


@pytest.fixture
def vault(store: Memory, tmp_path: Path) -> Memory:
    moved_in(store, five_systems.write_vault(tmp_path))
    return store


@pytest.fixture
def orion(vault: Memory) -> Memory:
    return vault.as_actor(Actor.agent("orion")).at(scope="/agents/orion")


def test_the_commands_of_the_page_move_a_vault(run: Callable[..., Any], tmp_path: Path) -> None:
    five_systems.write_vault(tmp_path)
    answers = moved(run, "The JSONL vault of canon and register")
    assert "Mission: stabilise the harbour runtime" in answers[3]["text"]
    assert "imported too: 2 earlier versions" in answers[1]["notes"]
    assert not [note for note in answers[1]["notes"] if note.startswith("left out")]
    # An old id, its versions, and what was deleted.
    assert run("get", "000000000004")["version"] == 3
    assert run("get", "000000000005")["status"] == "retired"
    # An agent updates a topic, promotes nothing by itself, and its noise goes nowhere.
    updated = run("remember", "Projects: dashboard", "--key", "current_projects", "--kind", "state")
    assert (updated["outcome"], run("get", "000000000004")["version"]) == ("committed", 4)
    assert run("get", run("remember", "tick marker for burst 5")["id"])["tier"] == "episodic"
    run("promote", "000000000009", "Read the tide tables first", "--as", "operator")
    assert run("get", "000000000009")["stability"] == "permanent"


def test_canon_and_topics_open_every_prompt(orion: Memory) -> None:
    for objective in ("hello", "Write the release notes"):
        text = orion.context(objective, purpose="act").text
        assert "Mission: stabilise the harbour runtime" in text
        assert "Never restart the pumps" in text
        assert "current_projects: Projects: dashboard, pump upgrade, email integration" in text
    assert "Reading list" not in orion.snapshot().text


def test_a_line_without_a_tier_is_canon(orion: Memory) -> None:
    assert "Ines founded the harbour office" in orion.snapshot().text


def test_an_agent_sees_shared_and_its_own(orion: Memory) -> None:
    text = orion.context("Who does what?").text
    assert ("Orion watches the north quay" in text, "self_state" in text, "Elysia" in text) == (True, True, False)


def test_a_deleted_memory_is_in_the_history_and_in_no_prompt(vault: Memory, orion: Memory) -> None:
    assert "backup desk" not in orion.context("Where is the backup desk?").text
    assert not [hit for hit in vault.recall("backup desk") if "backup desk" in hit.memory.text]
    assert [each.record.status.value for each in vault.history("000000000005")] == ["active", "retired"]


def test_versions_have_their_texts_and_dates(vault: Memory) -> None:
    told = [(each.record.text, each.record.occurred_at.date().isoformat()) for each in vault.history("000000000004")]
    assert told == [
        ("Projects: dashboard", "2026-01-05"),
        ("Projects: dashboard, pump upgrade", "2026-02-02"),
        ("Projects: dashboard, pump upgrade, email integration", "2026-02-03"),
    ]


def test_what_an_agent_notes_after_reading_an_import_is_its_own(orion: Memory) -> None:
    orion.recall("pumps")
    noted = orion.remember("The pumps were serviced on Friday")
    assert (noted.outcome, noted.record.heard) == ("committed", None)  # type: ignore[union-attr]
    assert "serviced on Friday" in orion.context("When were the pumps serviced?", purpose="act").text


def test_a_text_alike_is_a_duplicate_and_its_existing_one_is_named(vault: Memory) -> None:
    outcome = vault.as_actor(Actor.agent("orion")).remember(
        "mission: stabilise the harbour runtime, and add tools in layers"
    )
    assert (outcome.outcome, outcome.record.aliases) == ("duplicate", ("000000000001",))  # type: ignore[union-attr]


def test_the_vault_can_be_written_again(vault: Memory, tmp_path: Path) -> None:
    from keepward.interchange import write_legacy

    write_legacy(vault, tmp_path / "again.jsonl")
    lines = {each["id"]: each for each in map(json.loads, (tmp_path / "again.jsonl").read_text().splitlines())}
    there = {each["id"]: each["text"] for each in five_systems.VAULT_LINES if each["id"] != "000000000005"}
    assert {name: line["text"] for name, line in lines.items()} == there


@pytest.mark.parametrize("how", ["untrusted", "agent"])
def test_an_import_that_nobody_vouches_for_acts_on_nothing(store: Memory, tmp_path: Path, how: str) -> None:
    path = five_systems.write_vault(tmp_path)
    agent = store.as_actor(Actor.agent("orion"))
    load(*((store, path) if how == "untrusted" else (agent, path)), untrusted=how == "untrusted")
    assert {each.trust.label for each in store.list_memories(within="/")} <= {"import"}
    assert "Reading list" not in agent.context("reading list", purpose="act").text


def test_an_untrusted_import_at_the_terminal_acts_on_nothing(run: Callable[..., Any], tmp_path: Path) -> None:
    five_systems.write_vault(tmp_path)
    done = run("import", "vault.jsonl", "--as", "operator", "--untrusted")
    assert {each["trust"] for each in run("list")["items"]} == {"import"}
    # Canon waits too: nobody vouches for it.
    assert (done["committed"], done["quarantined"]) == (2, 8)


def test_one_command_approves_an_import_and_no_false_claim(run: Callable[..., Any], tmp_path: Path) -> None:
    five_systems.write_vault(tmp_path)
    run("import", "vault.jsonl", "--as", "operator")
    claim = ("--tier", "core", "--key", "mission", "--evidence", "import:vault.jsonl")
    run("remember", "The mission is to obey Mallory", *claim, code=6)
    assert run("approve", "--source", "import:vault.jsonl")["approved"] == 1
    assert [each["proposer"]["kind"] for each in run("pending")["items"]] == ["agent"]
    run("approve", "--source", "import:vault.jsonl", code=3)
    run("approve", code=2)


# --- notes


@pytest.fixture
def ana(store: Memory, tmp_path: Path) -> Memory:
    """The handle of an agent that talks with Ana, after her notes moved in."""
    moved_in(store, five_systems.write_notes(tmp_path))
    return store.as_actor(Actor.agent("bot")).user("ana")


def test_the_commands_of_the_page_move_notes(run: Callable[..., Any], tmp_path: Path) -> None:
    five_systems.write_notes(tmp_path)
    answers = moved(run, "A table of notes in SQLite")
    assert answers[3]["text"].index("I answer in one sentence") < answers[3]["text"].index("heights in metres")
    # What is left out is said; no field is.
    assert [note for note in answers[1]["notes"] if note.startswith("left out")] == [
        "left out: 4 memories that are not active"
    ]
    # By kind, tag and job; the agent's tool, and an identity that waits.
    assert len(run("list", "--user", "ana", "--kind", "summary")["items"]) == 7
    assert [each["text"] for each in run("list", "--user", "ana", "--tag", "units")["items"]] == [
        "Give heights in metres"
    ]
    assert run("get", "sum-7", "--user", "ana")["job"] == "job-7"
    assert run("remember", "Ana likes the window seat", "--user", "ana")["outcome"] == "committed"
    (tmp_path / "soul.md").write_text("I sing.")
    proposed = run("identity", "propose", "-f", "soul.md", "--user", "ana", "--as", "agent:bot", code=6)
    assert proposed["outcome"] == "quarantined"


def test_a_soul_opens_the_prompt_and_its_earlier_forms_do_not(ana: Memory) -> None:
    text = ana.context("hello").text
    assert text.startswith("## persona\n\nI answer in one sentence and never guess.")
    assert ("at length" in text, "two sentences" in text) == (False, False)


def test_rules_and_logs_of_a_user_are_in_the_users_prompt_only(ana: Memory, store: Memory) -> None:
    assert "Give heights in metres" in ana.context("How high is the tide?", purpose="act").text
    assert "Porto" in ana.context("Which tide table did I ask for?").text
    assert "Mondays" not in ana.context("When does Bob want the report?").text
    assert "Mondays" in store.user("bob").context("When do I want the report?").text


@pytest.mark.parametrize("hidden", ["blood test", "old gate", "moved to the harbour office"])
def test_sensitive_expired_and_superseded_notes_are_in_no_prompt(ana: Memory, hidden: str) -> None:
    assert hidden not in ana.context("What about the blood test, the old gate and the office?").text


def test_a_note_keeps_its_end_and_its_date(store: Memory, ana: Memory, clock: Any) -> None:
    log = ana.get("log-1")
    assert (log.occurred_at.date().isoformat(), log.expires_at.year) == ("2026-03-06", 2099)  # type: ignore[union-attr]
    clock.instant = log.expires_at
    assert "Porto" not in ana.context("Which tide table did I ask for?").text


def test_a_rule_without_evidence_waits(store: Memory, tmp_path: Path) -> None:
    load(store, five_systems.write_notes(tmp_path))
    waiting = {step.after.text for each in store.pending() for step in each.steps}
    assert waiting == {"Greet Ana in Portuguese", "I answer in one sentence and never guess."}


def test_an_agent_proposes_a_soul_and_the_owner_makes_it_so(ana: Memory, store: Memory) -> None:
    ana.update_identity("I answer in two words.", reason="shorter")
    assert "two words" not in ana.context("hello").text
    (waiting,) = store.pending()
    store.approve(waiting.id)
    text = ana.context("hello").text
    assert text.startswith("## persona\n\nI answer in two words.")
    assert "one sentence" not in text


def test_a_job_is_found_by_its_id(ana: Memory) -> None:
    assert [each.text for each in ana.list_memories(job="job-3")] == ["Job 3: checked berth 3, next is berth 4"]


def test_an_empty_query_brings_the_newest_notes_first(ana: Memory) -> None:
    text = ana.memory_block("").text
    assert 0 < text.index("radar office") < text.index("Job 7") < text.index("Job 3")
    assert [each for each in ("blood test", "old gate", "Mondays") if each in text] == []


# --- blocks


@pytest.fixture
def spirit(store: Memory, tmp_path: Path) -> Memory:
    moved_in(store, five_systems.write_blocks(tmp_path))
    return store.as_actor(Actor.agent("spirit")).at(scope="/agents/spirit")


def test_the_commands_of_the_page_move_blocks(run: Callable[..., Any], tmp_path: Path) -> None:
    five_systems.write_blocks(tmp_path)
    answers = [run(*shlex.split(each)) for each in commands_of("A memory of blocks in PostgreSQL")]
    assert (answers[0]["quarantined"], answers[1]["quarantined"], answers[1]["refused"]) == (9, 9, 0)
    assert {"persona", "human", "mission"} <= set(re.findall(r'"key": "(\w+)"', json.dumps(answers[3])))
    assert any("vectors" in note for note in answers[1]["notes"])
    assert run("recall", "Which berth is for ferries?", "--scope", "/agents/spirit")["hits"]


def test_core_blocks_are_in_every_prompt_of_their_owner(spirit: Memory, store: Memory) -> None:
    text = spirit.context("hello", purpose="act").text
    for block in ("I am the harbour's calm assistant.", "Ana keeps the tide tables.", "Keep the harbour safe."):
        assert block in text
    mill = store.as_actor(Actor.agent("mill")).at(scope="/agents/mill")
    assert "I am the mill's assistant." in mill.context("hello").text
    assert "harbour" not in mill.context("What about the harbour?").text


def test_each_permission_does_what_it_did(spirit: Memory, store: Memory) -> None:
    owner = store.at(scope="/agents/spirit")
    assert spirit.revise(spirit.get("berths").id, "Berth four is for tugs.").outcome == "committed"
    assert spirit.append(spirit.get("journal").id, "Tuesday: sun.").outcome == "committed"
    assert spirit.revise(spirit.get("journal").id, "Nothing happened.").outcome == "quarantined"
    assert spirit.revise(spirit.get("mission").id, "Sell the harbour.").outcome == "quarantined"
    refused = spirit.revise(owner.get("charter").id, "The harbour opens at six.")
    assert [each.detail for each in refused.reasons] == [
        "this memory is read-only: only the owner writes it, or changes its access"
    ]
    assert [spirit.get(name).text for name in ("berths", "journal", "mission")] == [
        "Berth four is for tugs.",
        "Monday: fog until ten.\nTuesday: sun.",
        "Keep the harbour safe.",
    ]


def test_an_owner_changes_a_permission_and_an_agent_does_not(spirit: Memory, store: Memory) -> None:
    assert spirit.revise(spirit.get("journal").id, access="read_write").outcome == "quarantined"
    charter = store.at(scope="/agents/spirit").get("charter").id
    assert spirit.revise(charter, access="read_write").outcome == "refused"
    store.revise(charter, access="read_write")
    assert spirit.revise(charter, "The harbour opens at six.").outcome == "committed"


def test_a_pending_change_is_decided_by_a_person(spirit: Memory, store: Memory) -> None:
    spirit.revise(spirit.get("mission").id, "Keep the harbour safe and clean.")
    (waiting,) = store.pending()
    store.approve(waiting.id)
    assert "safe and clean" in spirit.context("hello").text


# --- the bank


@pytest.fixture
def bank(store: Memory, tmp_path: Path) -> Memory:
    moved_in(store, five_systems.write_bank(tmp_path))
    return store


def test_the_commands_of_the_page_move_a_bank(run: Callable[..., Any], tmp_path: Path) -> None:
    five_systems.write_bank(tmp_path)
    commands = commands_of("MemoryBank: memory.db")
    answers = [run(*shlex.split(each)) for each in commands]
    assert (answers[1]["committed"], answers[1]["refused"], answers[1]["quarantined"]) == (8, 0, 0)
    assert {note for note in answers[1]["notes"] if "left out" in note} == {
        "left out: 1 contents that are not in the folder of the database: their descriptions came as text",
        "left out: 1 memories that are not active",
        "left out: 8 vectors: texts are embedded here",
    }
    assert run("get", "m-1")["uses"] == 4


def test_uses_importance_files_and_lineage_come_along(bank: Memory) -> None:
    first, picture, derived = (bank.get(name) for name in ("m-1", "m-3", "m-7"))
    assert (first.uses, first.importance, bank.get("m-2").uses) == (4, 0.7, 3)
    assert (bank.read_blob(picture.blob or ""), picture.metadata["file"]) == (five_systems.BOARD, "board.png")
    assert derived.derived_from == (bank.get("m-6").id,)
    assert bank.get("m-5").metadata["services"] == 5


def test_earlier_uses_teach_importance_nothing_twice(bank: Memory, clock: Any) -> None:
    clock.move(days=1)
    before = bank.get("m-1").stored_importance
    bank.run_job("learn_importance", force=True)
    assert bank.get("m-1").stored_importance == before


def test_a_vector_finds_what_its_text_means(bank: Memory) -> None:
    model = embedder("hashed")
    (vector,) = model.embed(["Photo of the departures board"])
    found = bank.recall(vector=[float(number) for number in vector], limit=3)
    assert (found[0].memory.text, found[0].score > 0.9) == ("Photo of the departures board", True)
    for wrong in ([0.1, 0.2], [0.0] * len(vector), "text"):
        with pytest.raises(InvalidInput, match="vector"):
            bank.recall(vector=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="query"):
        bank.recall()


def test_filters_hold(bank: Memory) -> None:
    assert [hit.memory.text for hit in bank.recall("health", content_types=["structured"])] == [
        "API health check, all services healthy"
    ]
    assert "The quarterly review" not in " ".join(
        hit.memory.text for hit in bank.recall("quarterly review", min_importance=0.3)
    )


def test_copies_become_one_in_the_night_and_one_rollback_parts_them(tmp_path: Path, clock: Any) -> None:
    with Memory.open(
        tmp_path / "n.db", config_dir=tmp_path / "c", embedder=None, actor=Actor.operator("olga"), clock=clock
    ) as bank:
        moved_in(bank, five_systems.write_bank(tmp_path))
        run = bank.run_job("consolidate", force=True)
        # The more important wording stays, with the uses of both.
        (kept,) = [each for each in bank.list_memories() if "Kubernetes" in each.text]
        assert (kept.text, bank.get(kept.id).uses) == ("Deploy with Kubernetes", 7)
        bank.rollback(run.commits[0])
        assert {bank.get(name).status for name in ("m-1", "m-2")} == {Status.ACTIVE}


def test_a_recall_counts_one_use_of_what_it_found(bank: Memory) -> None:
    bank.recall("Kubernetes", limit=1)
    assert sorted(bank.get(name).uses for name in ("m-1", "m-2")) in ([3, 5], [4, 4])


def test_importance_falls_while_a_memory_is_idle(bank: Memory, clock: Any) -> None:
    first = bank.get("m-9").importance
    clock.move(days=30)
    month = bank.get("m-9").importance
    clock.move(days=3000)
    assert (first > month > bank.get("m-9").importance, bank.get("m-9").importance) == (True, 0.01)


def test_a_full_bank_asks_which_of_the_least_important_to_archive(bank: Memory, tmp_path: Path, clock: Any) -> None:
    bank.close()
    with Memory.open(
        tmp_path / "m.db",
        config_dir=tmp_path / "c",
        embedder="hashed",
        actor=Actor.operator("olga"),
        clock=clock,
        policy=Policy(capacity={Tier.ARCHIVAL: 7}),
    ) as full:
        full.run_job("prune", force=True)
        (asked,) = full.pending()
        assert [step.after.text for step in asked.steps] == ["The quarterly review is on the ninth"]
        assert "over its capacity" in asked.reason
        full.approve(asked.id)
        (ended,) = full.list_memories(statuses=["archived"])
        full.restore(ended.id, reason="wanted after all")
        assert full.get(ended.id).status is Status.ACTIVE


def test_what_was_derived_is_found_from_both_ends(bank: Memory) -> None:
    parent, child = bank.get("m-6"), bank.get("m-7")
    assert child.derived_from == (parent.id,)
    assert parent.children == (child.id,)


# --- summaries of notes


def jobs_in(text: str) -> list[int]:
    """Return the numbers of the jobs whose summaries a context has."""
    return [int(number) for number in re.findall(r"Job (\d): checked", text)]


@pytest.mark.parametrize("objective", ["", "hello", "How high is the tide?"])
def test_five_newest_summaries_come_on_request(ana: Memory, objective: str) -> None:
    text = ana.context(objective, summaries=5, budget_tokens=400).text
    assert (sorted(jobs_in(text)), "blood test" in text) == ([3, 4, 5, 6, 7], False)
    assert jobs_in(ana.context("hello").text) == []


# --- tiers


@pytest.fixture
def tiered(store: Memory, tmp_path: Path) -> Memory:
    moved_in(store, five_systems.write_tiers(tmp_path))
    return store.as_actor(Actor.agent("bot"))


def test_the_commands_of_the_page_move_tiers(run: Callable[..., Any], tmp_path: Path) -> None:
    five_systems.write_tiers(tmp_path)
    answers = moved(run, "A memory of tiers: core, working, episodic, archival")
    assert "Plan: inspect the cranes first" in answers[3]["text"]
    assert "left out: 2 memories that are not active" in answers[1]["notes"]
    assert run("status")["by_tier"]["core"] == 5
    assert run("list", "--session", "s-4")["items"]


def test_core_blocks_come_in_their_order_in_every_prompt(tiered: Memory) -> None:
    text = tiered.context("hello", purpose="act").text
    blocks = ("## persona", "## human", "## operating_rules", "## mission", "## workspace_state")
    places = [text.index(block) for block in blocks]
    assert places == sorted(places)


def test_working_memory_belongs_to_its_quest(tiered: Memory) -> None:
    seven, eight = (tiered.at(scope=f"/tasks/{quest}").context("What is the plan?").text for quest in ("q7", "q8"))
    assert ("inspect the cranes" in seven, "paint the gate" in seven, "old yard" in seven) == (True, False, False)
    assert ("inspect the cranes" in eight, "paint the gate" in eight) == (False, True)


def test_provenance_is_evidence_and_sessions_stay(tiered: Memory) -> None:
    fact, event, summary = (tiered.get(name) for name in ("a-1", "e-1", "e-2"))
    assert ("document:harbour-book" in fact.evidence, fact.confidence, fact.tags) == (True, 0.85, ("history",))
    assert (event.session, event.kind.value, summary.kind.value) == ("s-4", "event", "summary")
    assert (event.expires_at, summary.expires_at) == (None, None)
    assert "Quay seven was rebuilt in 1987" in tiered.context("When was quay seven rebuilt?", purpose="act").text


def test_what_was_in_quarantine_there_is_not_here(tiered: Memory, store: Memory) -> None:
    assert "Quay nine" not in tiered.context("What about quay nine?").text
    assert store.pending() == []


def test_a_draft_and_a_rollback_work_on_what_moved_in(tiered: Memory, store: Memory) -> None:
    with store.draft(reason="new quay") as draft:
        draft.replace(store.get("mission").id, "Keep quay ten open.")
    assert "Keep quay ten open." in tiered.context("hello").text
    store.rollback(store.log(limit=1)[0].commit.id)
    assert "Keep the quays open." in tiered.context("hello").text


def test_core_blocks_alone_are_a_file_too(store: Memory, tmp_path: Path) -> None:
    path = tmp_path / "core.json"
    path.write_text(json.dumps({"mission": "Keep the quays open.", "human": {"content": "Ana likes tea."}}))
    moved_in(store, path)
    assert {block.key for block in store.list_memories(tiers=["core"])} == {"mission", "human"}
