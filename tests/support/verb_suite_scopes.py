"""What a handle with a scope must not tell; part of ``verb_suite.VerbSuite``. Needs pytest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

from keepward.core.change import Append, Insert
from keepward.core.principals import MAX_ROLE_RIGHTS, Role
from keepward.errors import Conflict, InvalidInput, NotFound, Unauthorised

from .verb_suite_reads import Handles

ANN, BOB = "/agents/ann", "/agents/bob"


class ScopeSuite(Handles):
    """Required answers of a handle with a scope."""

    @pytest.fixture
    def bob(self, hold: Callable[[str], Any], issue: Callable[..., str]) -> Any:
        """Return the handle of who decides in one scope."""
        return hold(issue("rob", rights="reviewer", scope=BOB))

    def changed_together(self, owner: Any) -> tuple[str, str, str]:
        """Change a memory of each of two scopes in one commit; return their ids and that of the commit."""
        ann, bob = (self.kept(owner, f"The tide at pier {scope[-1]} is low", scope=scope).id for scope in (ANN, BOB))
        both = owner.propose([Append(id=ann, text="until nine"), Append(id=bob, text="until ten")], reason="tides")
        return ann, bob, both.commit.id

    def test_commit_shows_only_its_changes_in_the_scope(self, owner: Any, bob: Any) -> None:
        ann, own, commit = self.changed_together(owner)
        seen = bob.show(commit)
        receipt = bob.receipt(commit)
        assert [step.after.id for step in seen.steps] == [own]
        assert (
            [change["id"] for change in receipt["changes"]] == [target["id"] for target in receipt["targets"]] == [own]
        )
        assert ann not in repr((seen, receipt, bob.log(), bob.diff(0), bob.receipts(), bob.impact(commit=commit)))

    def test_commit_of_another_scope_is_missing(self, owner: Any, bob: Any) -> None:
        made = owner.remember("The tide is low", scope=ANN)
        for call in (
            lambda: bob.show(made.commit.id),
            lambda: bob.show(str(made.commit.seq)),
            lambda: bob.receipt(made.receipt.id),
            lambda: bob.impact(commit=made.commit.id),
            lambda: bob.rollback(made.commit.id, dry_run=True),
            lambda: bob.diff(0, made.commit.id),
            lambda: bob.list_memories(as_of=made.commit.id),
        ):
            with pytest.raises(NotFound):
                call()
        assert (bob.log(), bob.diff(0), bob.receipts().items) == ([], [], ())

    def test_counts_are_of_the_scope(self, owner: Any, bob: Any) -> None:
        self.kept(owner, "The oven is hot", scope=BOB, tier="archival")
        before = bob.status()
        self.kept(owner, "The tide is low", scope=ANN, tier="archival", category="sea")
        owner.put_blob(b"\x89PNG\r\n\x1a\n" + bytes(64), media_type="image/png")
        after = bob.status()
        counted = before.keys() - {"head", "jobs", "etag", "now"}
        assert {name: after[name] for name in counted} == {name: before[name] for name in counted}
        assert (after["live"], after["by_tier"], after["events"], after["commits"]) == (1, {"archival": 1}, 1, 1)

    def test_memory_that_was_moved_in_shows_nothing_of_before(self, owner: Any, bob: Any) -> None:
        name = self.kept(owner, "The safe is behind the oak", scope=ANN).id
        owner.revise(name, "The safe is gone", reason="sold")
        owner.move(name, scope=BOB, reason="for Bob")
        shown = (bob.history(name), bob.log(), bob.sources(), bob.blame(name))
        assert "behind the oak" not in repr(shown)
        assert [each.record.text for each in shown[0]] == ["The safe is gone"]

    def test_memory_that_was_moved_out_leaves_what_was_seen(self, owner: Any, bob: Any) -> None:
        made = owner.remember("The crane is red", scope=BOB)
        owner.move(made.id, scope=ANN, reason="for Ann")
        owner.revise(made.id, "The crane is blue", reason="painted")
        assert [each.commit.id for each in bob.log()] == [made.commit.id]
        assert "blue" not in repr((bob.show(made.commit.id), bob.receipts(), bob.diff(0, made.commit.seq)))

    def test_proposal_of_two_scopes_is_decided_by_who_sees_both(self, agent: Any, owner: Any, bob: Any) -> None:
        new = [Insert(id=str(uuid4()), text=f"Pier {scope[-1]} is old", scope=scope) for scope in (ANN, BOB)]
        item = agent.propose([replace(each, stability="permanent") for each in new], reason="x").item
        assert (bob.pending(state="all").total, bob.status()["quarantine"]["depth"]) == (0, 0)
        for call in (bob.proposal, bob.approve):
            with pytest.raises(NotFound):
                call(item.id)
        assert owner.approve(item.id).outcome == "committed"

    def test_decision_above_the_scope_is_refused(self, agent: Any, bob: Any) -> None:
        item = agent.remember("Stars are far", scope="/", stability="permanent").item
        assert not bob.proposal(item.id).may_approve
        for decide in (lambda: bob.approve(item.id), lambda: bob.reject(item.id, reason="x")):
            with pytest.raises(Unauthorised, match=f"decides at {BOB} and below"):
                decide()
        assert bob.proposal(item.id).state == "pending"

    def test_receipts_of_other_scopes_take_no_place_in_a_page(self, owner: Any, bob: Any) -> None:
        first = self.kept(owner, "The oven is hot", scope=BOB).id
        for number in range(5):
            self.kept(owner, f"Tide number {number} is low", scope=ANN)
        last = owner.revise(first, "The oven is cold", reason="off")
        page = bob.receipts(limit=1)
        rest = bob.receipts(limit=9, before=page.before)
        assert [each.commit for each in page.items] == [last.commit.id]
        assert [each.kind for each in rest.items] == ["commit"]
        assert [view.commit.seq for view in bob.log(limit=1, before=last.commit.seq)] == [1]

    def test_owners_token_has_no_scope(self, owner: Any) -> None:
        with pytest.raises(Conflict, match="an owner's token has no scope"):
            owner.create_token("ola", rights="owner", scope=BOB)
        assert "ola" not in [each.name for each in owner.tokens()]

    @pytest.mark.parametrize("role", list(Role))
    def test_token_may_have_every_right_of_its_role(self, owner: Any, role: Role) -> None:
        rights = sorted(MAX_ROLE_RIGHTS[role])
        assert owner.create_token("lyra", rights=role.value, can=rights).token.can == tuple(rights)

    def test_error_lists_the_rights(self, owner: Any) -> None:
        with pytest.raises(InvalidInput, match=r"\bone of .*\bread, .*\bshare\b") as told:
            owner.create_token("lyra", can=["read", "bogus"])
        assert "list" not in str(told.value)
        assert "null" not in str(told.value)

    def test_list_of_scopes_takes_the_names_of_scopes(self, owner: Any) -> None:
        for scope in ("/", "/agents/lyra"):
            self.kept(owner, f"The crane of {scope[8:]} is red", scope=scope, tier="archival")

        def scopes(name: str) -> list[str]:
            return [each.scope for each in owner.list_memories(scopes=[name], below=True)]

        assert [scopes(name) for name in ("shared", "/", "lyra", "/agents/lyra", "/agents/lyra/")] == [
            ["/"],
            ["/"],
            ["/agents/lyra"],
            ["/agents/lyra"],
            ["/agents/lyra"],
        ]
        for name in ("no such/!", "//", "users/ana"):
            with pytest.raises(InvalidInput, match="scope"):
                scopes(name)
