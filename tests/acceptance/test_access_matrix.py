"""Who may do what: every access, every operation, every class of actor, against the tables in docs/concepts/roles.md.

The tables of that page are the expectation; each cell is played in a fresh tenant. ``yes``: it is committed.
``waits``: a person has to approve it, and what held before still holds. ``no``: it is refused and changes nothing.
In the table of scopes ``no`` also means that nothing of it is in an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from outcomes import committed_record

from keepward import Access, Actor, Committed, KeepwardError, Memory, Outcome, Policy, Tier, Unauthorised
from keepward.core.principals import ActorKind, Role
from keepward.interchange.imports import load

PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "roles.md"
ACTORS = {
    "agent": Actor.agent(),
    "user": Actor.user(),
    "importer": Actor.importer(),
    "job": Actor(kind=ActorKind.JOB, name="tidy", rights=Role.AGENT),
    "reviewer": Actor.reviewer("rita"),
    "owner": Actor.operator("olga"),
}
#: The source of the other memory that an operation needs.
WRITTEN = {"archival": "web", "core": "inference"}
#: How the tables of the page are headed, and where their memories live.
TABLES = {"Archival memory": ("archival", None), "A core block": ("core", "mission")}
MARKS = {"committed": "yes", "quarantined": "waits", "refused": "no"}
#: What is in the archive is trusted no more than who asks, so that access alone decides; `origin` tries the rest.
WHERE = {
    "archival": {"tier": "archival", "source": "web"},
    "core": {"tier": "core", "key": "mission", "confidence": 0.9},
}


class Cell:
    """One tenant, with a memory that an operation is tried on."""

    def __init__(self, owner: Memory, actor: Actor, tier: str, folder: Path) -> None:
        self.owner, self.tier, self.folder = owner, tier, folder
        #: A commit of the actor's own.
        self.own: str | None = None
        self.mem = owner if actor == owner.actor else owner.as_actor(actor)

    def made(self, text: str = "The ferry leaves at six") -> str:
        return committed_record(self.owner.remember(text, **WHERE[self.tier])).id

    def other(self) -> str:
        writer = self.owner if self.tier == "archival" else self.owner.as_actor(Actor.agent())
        return committed_record(
            writer.remember("The crane is red", **WHERE["archival"] | {"source": WRITTEN[self.tier]})
        ).id

    def retired(self) -> str:
        name = self.made()
        committed_record(self.owner.forget(name, reason="off season"))
        return name

    def imported(self) -> Any:
        path = self.folder / "notes.md"
        if self.tier == "core":
            path = self.folder / "old.jsonl"
            line = {
                "id": "0" * 12,
                "text": "Keep to the timetable",
                "tier": "canon",
                "topic_id": "mission",
                "version": 1,
            }
            path.write_text(json.dumps(line) + "\n")
        else:
            path.write_text("- Keep to the timetable\n")
        done = load(self.mem, path)
        return "refused" if done.refused else "quarantined" if done.quarantined else "committed"

    def undone(self) -> str:
        """Undo the owner's newest change."""
        name = self.made()
        changed = self.owner.revise(name, "The ferry leaves at seven", reason="winter")
        committed_record(changed)
        return self.rolled_back(changed.commit.id)  # type: ignore[union-attr]

    def undone_own(self) -> str:
        """Undo the actor's own newest change, which it made while it might; where it never may, there is none."""
        if self.own is None:
            return "refused"
        return self.rolled_back(self.own)

    def rolled_back(self, commit: str) -> str:
        return "committed" if self.mem.rollback(commit).applied else "refused"


OPERATIONS: dict[str, Callable[[Cell], Outcome | str | None]] = {
    "insert": lambda cell: cell.mem.remember("The ferry leaves at six", **WHERE[cell.tier]),
    "replace": lambda cell: cell.mem.revise(cell.made(), "The ferry leaves at seven", reason="winter"),
    "append": lambda cell: cell.mem.append(cell.made(), "and at nine", reason="summer"),
    "move": lambda cell: cell.mem.move(cell.made(), tier="working", key=None, reason="for now"),
    "retire": lambda cell: cell.mem.forget(cell.made(), reason="off season"),
    "restore": lambda cell: cell.mem.restore(cell.retired(), reason="season"),
    "supersede": lambda cell: cell.mem.supersede(cell.made(), cell.other(), reason="sold"),
    "merge": lambda cell: cell.mem.merge([cell.made(), cell.other()], reason="tidy"),
    "promote": lambda cell: cell.mem.promote(cell.made(), "The ferry leaves at six", reason="lasting"),
    "import": lambda cell: cell.imported(),
    "rollback": lambda cell: cell.undone(),
    "rollback of one's own": lambda cell: cell.undone_own(),
}
#: Operations on a commit from the time when access was read_write.
LATER = {"rollback of one's own"}


def rows(*tables: str) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield (table, access or place, operation, actor, expected) for every cell of some tables of the page."""
    table, columns = "", []
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            table, columns = line.removeprefix("## ").strip(), []
        elif table in tables and line.startswith("|"):
            cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
            if not columns:
                columns = cells[2:]
            elif not set(cells[0]) <= set("-: "):
                for actor, expected in zip(columns, cells[2:], strict=True):
                    yield table, cells[0], cells[1], actor, expected


CELLS = list(rows(*TABLES))


def play_cell(owner: Memory, tier: str, what: str, actor: str, own: str | None, folder: Path) -> str:
    """Play one cell; return what became of it, and say so if the state does not fit the result."""
    cell = Cell(owner, ACTORS[actor], tier, folder)
    cell.own = own
    state = {}

    def remembered() -> dict[str, Any]:
        return {each.id: replace(each, version=0, updated_at=None) for each in owner.list_memories(include_ended=True)}

    original = {name: getattr(cell, name) for name in ("made", "other", "retired")}
    for name, make in original.items():

        def prepared(*given: Any, make: Any = make) -> str:
            result = make(*given)
            state.clear()
            state.update(remembered())
            return str(result)

        setattr(cell, name, prepared)
    try:
        outcome = OPERATIONS[what](cell)
    except Unauthorised:
        outcome = "refused"
    word = outcome if isinstance(outcome, str) else outcome.outcome if outcome else "none"
    became = MARKS.get(word, word)
    if what.startswith("rollback") or (remembered() != state) == (became == "yes"):
        return became
    return f"{became}, but the state says otherwise"


def own_commit(owner: Memory, tier: str, actor: Actor) -> str | None:
    """Write and change a memory as an actor; return the id of the change, None if it was not committed."""
    mem = owner if actor == owner.actor else owner.as_actor(actor)
    name = committed_record(owner.remember("The ferry leaves at six", **WHERE[tier])).id
    changed = mem.revise(name, "The ferry leaves at seven", reason="winter")
    return changed.commit.id if isinstance(changed, Committed) else None


@pytest.mark.promise("Z4", "T18", "D2", "D15", "D16", "D30", "D31", "D32", "D33", "D38")
@pytest.mark.parametrize(("table", "access"), [(table, access) for table in TABLES for access in Access])
def test_access_operation_and_actor_decide(tmp_path: Path, table: str, access: Access) -> None:
    tier = TABLES[table][0]
    expected = {(what, actor): word for name, level, what, actor, word in CELLS if (name, level) == (table, access)}

    def opened(granted: Access) -> Memory:
        policy = Policy(access={**Policy().access, Tier(tier): granted})
        config = tmp_path / "config"
        return Memory.open(tmp_path / "own.db", actor=ACTORS["owner"], embedder=None, policy=policy, config_dir=config)

    # Each cell has a tenant of its own in one store.
    tenants = {cell: f"tenant-{number}" for number, cell in enumerate(expected)}
    with opened(Access.READ_WRITE) as owner:
        own = {
            (what, actor): own_commit(owner.at(tenant=tenant), tier, ACTORS[actor])
            for (what, actor), tenant in tenants.items()
            if what in LATER
        }
    with opened(access) as owner:
        found = {
            (what, actor): play_cell(owner.at(tenant=tenant), tier, what, actor, own.get((what, actor)), tmp_path)
            for (what, actor), tenant in tenants.items()
        }
    assert found == expected


def test_the_page_has_every_cell() -> None:
    wanted = {
        (table, access.value, what, actor)
        for table in TABLES
        for access in Access
        for what in OPERATIONS
        for actor in ACTORS
    }
    assert {cell[:4] for cell in CELLS} == wanted
    assert len(CELLS) == len(wanted)


IDENTITY: dict[str, Callable[[Memory, str], Any]] = {
    "insert a kind": lambda mem, _: mem.remember("I am Orion", kind="identity"),
    "insert a block": lambda mem, _: mem.remember("I am Orion", tier="core", key="persona"),
    "move a memory": lambda mem, name: mem.move(name, tier="core", key="persona", reason="me"),
    "rename a block": lambda mem, name: mem.move(name, key="persona", tier="core", reason="me"),
    "update by key": lambda mem, _: mem.remember("I am Orion", key="persona", kind="state", tier="core"),
    "merge": lambda mem, name: mem.merge(
        [name, committed_record(mem.remember("Stars are far", tier="archival")).id],
        "I am Orion",
        kind="identity",
        reason="me",
    ),
    "draft": lambda mem, name: _drafted(mem),
    "move and promote": lambda mem, name: _promoted(mem, name),
    "many": lambda mem, _: mem.remember_many([{"text": "I am Orion", "tier": "core", "key": "persona"}])[0],
}


def _drafted(mem: Memory) -> Any:
    with mem.draft(reason="me") as draft:
        draft.insert("Stars are far")
        draft.insert("I am Orion", tier="core", key="persona")
    return draft.outcome


def _promoted(mem: Memory, name: str) -> Any:
    with mem.draft(reason="me") as draft:
        draft.move(name, key="persona", tier="core")
        draft.promote(name, "I am Orion")
    return draft.outcome


@pytest.mark.promise("Z5", "C14", "D15", "D30", "D38")
@pytest.mark.parametrize("actor", sorted(ACTORS))
def test_the_identity_is_immune_by_every_route(opened: Callable[..., Memory], tmp_path: Path, actor: str) -> None:
    (tmp_path / "identity.md").write_text("I am Lyra, and I keep the lighthouse at the end of the pier.")
    with opened("own", actor=ACTORS["owner"], identity=tmp_path / "identity.md", embedder=None) as owner:
        name = committed_record(owner.remember("A star", tier="archival")).id
        mem = owner if actor == "owner" else owner.as_actor(ACTORS[actor])
        for route, change in IDENTITY.items():
            try:
                outcome = change(mem, name).outcome
            except KeepwardError:
                outcome = "refused"
            except AssertionError:
                outcome = "refused"  # A reviewer cannot even make what it would merge.
            assert (route, outcome) == (route, "refused")
            assert owner.pending() == []
            text = mem.context("who am I").text
            assert ("I am Lyra" in text, "I am Orion" in text) == (True, False)


@pytest.mark.promise("Z5")
def test_the_identity_of_a_file_is_not_imported(owner: Memory, tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    line = {"id": "0" * 12, "text": "I am Orion", "tier": "canon", "topic_id": "persona", "version": 1}
    path.write_text(json.dumps(line) + "\n")
    load(owner, path)
    for item in owner.pending():
        for step in item.steps:
            assert (step.after.key, step.after.kind.value) != ("persona", "identity")
    assert "I am Orion" not in owner.context("who am I").text


@pytest.mark.parametrize("purpose", ["answer", "act", "core"])
@pytest.mark.parametrize("objective", ["", "something else entirely"])
def test_core_is_in_every_context_of_every_purpose(mem: Memory, owner: Memory, purpose: str, objective: str) -> None:
    committed_record(owner.remember("Sail to Oslo", tier="core", key="mission"))
    assert "Sail to Oslo" in mem.context(objective, purpose=purpose).text


# --- Scopes of tokens

SCOPES = "Scopes of tokens"
PLACES = {"own": "/agents/bob", "below": "/agents/bob/tasks/4", "above": "/", "elsewhere": "/agents/ann"}
ROLES: dict[str, dict[str, Any]] = {
    "agent": {"scope": PLACES["own"]},
    "reviewer": {"scope": PLACES["own"], "rights": "reviewer"},
    "owner": {"rights": "owner"},
}
#: Only what is at the place says this.
HIDDEN_WORD = "Quillzephyr"


class Place:
    """What one place holds: a memory with its commits, a context with its receipt, and proposals."""

    def __init__(self, owner: Memory, scope: str) -> None:
        self.owner = owner.at(scope=scope)
        writer = owner.as_actor(Actor.agent("orion")).at(scope=scope)
        first = writer.remember(f"The keeper is {HIDDEN_WORD}", tier="archival", source="tool")
        self.memory, self.commit = first.records[0].id, first.commit.id
        self.revised = writer.revise(self.memory, f"The old keeper is {HIDDEN_WORD}", reason=HIDDEN_WORD).commit.id
        self.context = writer.context(f"Who is {HIDDEN_WORD}?").receipt.id
        self.recalled = writer.recall(f"Who is {HIDDEN_WORD}?", receipt=True).receipt
        self.writer, self.made = writer, 0

    def proposal(self) -> Any:
        self.made += 1
        return self.writer.remember(
            f"Proposal {self.made} names {HIDDEN_WORD}", tier="archival", stability="permanent"
        ).item

    def rejected(self) -> str:
        item = self.proposal()
        self.owner.reject(item.id, reason=HIDDEN_WORD)
        return str(item.id)


#: By operation of the table, its calls. Each answers with the word of the place, or fails.
READS: dict[str, dict[str, Callable[[Memory, Place], Any]]] = {
    "read a memory": {
        "get": lambda mem, at: mem.get(at.memory),
        "history": lambda mem, at: mem.history(at.memory),
        "blame": lambda mem, at: mem.blame(at.memory),
        "lineage": lambda mem, at: mem.lineage(at.memory),
    },
    "read its commits and receipts": {
        "log": lambda mem, at: mem.log(),
        "log of an actor": lambda mem, at: mem.log(actor="orion", kind="write"),
        "show": lambda mem, at: mem.show(at.commit),
        "diff": lambda mem, at: mem.diff(0),
        "receipt of a commit": lambda mem, at: mem.receipt(at.commit),
        "receipt of a context": lambda mem, at: mem.receipt(at.context),
        "receipt of a recall": lambda mem, at: mem.receipt(at.recalled),
        "replay": lambda mem, at: mem.replay(at.context),
        "context_diff": lambda mem, at: (mem.context_diff(at.context, at.context), HIDDEN_WORD),
        "feedback": lambda mem, at: (mem.feedback(at.recalled, used=[at.memory]), HIDDEN_WORD),
    },
    "list receipts and impacts": {
        "receipts": lambda mem, at: mem.receipts(kinds=["compile"]),
        "receipts of commits": lambda mem, at: [
            (each, HIDDEN_WORD) for each in mem.receipts(kinds=["commit"]).items if each.commit == at.commit
        ],
        "impact of an actor": lambda mem, at: mem.impact(actor="agent:orion"),
        "impact of a source": lambda mem, at: mem.impact(source="tool"),
        "impact of a commit": lambda mem, at: mem.impact(commit=at.commit),
        "plan_contain": lambda mem, at: mem.plan_contain(actor="agent:orion"),
    },
    "read a proposal": {
        "pending": lambda mem, at: (at.proposal(), mem.pending())[1],
        "counts": lambda mem, at: (at.proposal(), [HIDDEN_WORD] * mem.pending(limit=1).total)[1],
        "status": lambda mem, at: (at.proposal(), [HIDDEN_WORD] * mem.status()["quarantine"]["depth"])[1],
        "all states": lambda mem, at: (at.rejected(), mem.pending(state="rejected"))[1],
        "proposal": lambda mem, at: mem.proposal(at.proposal().id),
    },
    "decide": {
        "approve": lambda mem, at: mem.approve(at.proposal().id),
        "amend": lambda mem, at: mem.amend(at.proposal().id, f"It is {HIDDEN_WORD} {at.made}"),
        "reject": lambda mem, at: (mem.reject(at.proposal().id, reason="no"), HIDDEN_WORD),
        "reopen": lambda mem, at: (mem.reopen(at.rejected(), reason="again"), HIDDEN_WORD),
        "approve_many": lambda mem, at: mem.approve_many([at.proposal().id]),
        "reject_many": lambda mem, at: [
            (each, HIDDEN_WORD) for each in mem.reject_many([at.proposal().id], reason="no") if each.ok
        ],
    },
}


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.slow)])
def two_databases(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    address = tmp_path / "own.db" if request.param == "file" else request.getfixturevalue("database")
    given = {"embedder": None, "config_dir": tmp_path / "config"}
    with Memory.open(address, actor=Actor.operator("olga"), **given) as memory:
        yield memory


@pytest.mark.promise("Z4", "Z11")
@pytest.mark.parametrize("role", ROLES)
def test_scope_of_a_token_bounds_every_right(two_databases: Memory, role: str) -> None:
    expected = {(where, what): word for _, where, what, actor, word in rows(SCOPES) if actor == role}
    assert expected.keys() == {(where, what) for where in PLACES for what in READS}
    wrong = []
    for number, (name, scope) in enumerate(PLACES.items()):
        owner = two_databases.at(tenant=f"tenant-{number}")
        place = Place(owner, scope)
        token = owner.with_token(owner.create_token("rita", **ROLES[role]).secret)
        for what, calls in READS.items():
            for call, read in calls.items():
                try:
                    shown = HIDDEN_WORD in repr(read(token, place))
                except KeepwardError as fault:
                    shown = HIDDEN_WORD in str(fault)
                if ("yes" if shown else "no") != expected[name, what]:
                    wrong.append((name, call, shown))
    assert wrong == []
