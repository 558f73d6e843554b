"""Laws of undoing: whatever is written and undone in whatever order, each memory is what the commits that stand say."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from keepward import Actor, Memory, Record

#: A commit that revises some of three memories, or the undoing of one of the commits so far, alone or with later ones.
REVISE = st.tuples(st.just("revise"), st.sets(st.integers(0, 2), min_size=1))
UNDO = st.tuples(st.sampled_from(["undo", "undo with later"]), st.integers(0, 30))


def plain(record: Record) -> Record:
    return replace(record, version=0, updated_at=None)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.lists(st.one_of(REVISE, UNDO, UNDO), min_size=4, max_size=14))
@example([("revise", {0}), ("undo", 0), ("undo", 1), ("undo", 0), ("undo with later", 2), ("undo", 0)])
def test_each_memory_matches_its_newest_commit_in_force(asked: list[tuple[str, object]]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(Path(folder) / "a.db", actor=Actor.operator("olga"), embedder=None) as owner,
    ):
        ids = [owner.remember(f"Pier {n} is new", tier="archival", key=f"pier{n}").id for n in range(3)]
        first = {name: plain(owner.get(str(name))) for name in ids}
        #: What each write left of its targets, and what each rollback undid, by commit, oldest first.
        made: dict[str, dict[str, Record]] = {}
        undid: dict[str, tuple[str, ...]] = {}
        commits: list[str] = []

        def stands(commit: str) -> bool:
            return not any(commit in names and stands(by) for by, names in undid.items())

        for count, (what, which) in enumerate(asked):
            if what == "revise":
                with owner.draft(reason="x") as draft:
                    for n in which:  # type: ignore[attr-defined]
                        draft.replace(str(ids[n]), f"Pier {n} is number {count}")
                outcome = draft.outcome
                assert outcome is not None
                commit = outcome.commit.id  # type: ignore[union-attr]
                made[commit] = {record.id: plain(record) for record in outcome.records}
                commits.append(commit)
            elif commits:
                commit = commits[which % len(commits)]  # type: ignore[operator]
                stood, head = stands(commit), owner.head
                done = owner.rollback(commit, with_later=what == "undo with later")
                assert done.already is not stood
                if done.applied:
                    assert done.commit is not None
                    undid[done.commit.id] = done.undone
                    commits.append(done.commit.id)
                else:
                    assert owner.head == head
                    assert done.already or (done.conflicts and what == "undo")
            for name in ids:
                said = [left[name] for commit, left in made.items() if name in left and stands(commit)]
                assert plain(owner.get(str(name))) == (said[-1] if said else first[name])
