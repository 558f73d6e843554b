"""Who asks comes from a credential alone, and it can be revoked."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from outcomes import committed_record, refused

from keepward import Actor, Conflict, InvalidInput, Memory, Policy, StoreUnavailable, Unauthorised
from keepward.core.principals import Issued, StoredToken, hash_token
from keepward.errors import Tampered
from keepward.gates.content import redact_secrets
from keepward.memory import request_context_of
from support import tamper

# --- Who asks comes from a credential alone, and it can be ended


Enter = Callable[..., Memory]


def test_token_opens_the_store_as_its_holder_tenant_and_scope(owner: Memory, entering: Enter) -> None:
    issued = owner.create_token("claude", tenant="acme", scope="orion")
    bearer = entering(token=issued.secret)
    assert (bearer.actor.label, bearer.tenant, bearer.scope) == ("agent:claude", "acme", "/agents/orion")
    assert committed_record(bearer.remember("The ferry is blue")).author == "agent:claude"


@pytest.mark.parametrize("beside", [{"actor": Actor.operator()}, {"tenant": "acme"}, {"scope": "orion"}])
def test_nothing_next_to_a_token_says_who_asks_or_where(owner: Memory, entering: Enter, beside: dict[str, Any]) -> None:
    issued = owner.create_token("claude")
    with pytest.raises(InvalidInput, match="token"):
        entering(token=issued.secret, **beside)


def test_a_token_is_a_prefix_and_256_random_bits(owner: Memory) -> None:
    secrets = {owner.create_token("claude").secret for _ in range(20)}
    assert len(secrets) == 20
    assert all(each.startswith("kw_") and each[3:].isalnum() and 62 ** len(each[3:]) > 2**256 for each in secrets)


def test_token_may_expire_in_a_year_beyond_json_numbers(owner: Memory) -> None:
    issued = owner.create_token("claude", expires=datetime(4294, 12, 30, tzinfo=UTC))
    assert [each.expires_at for each in owner.tokens()] == [issued.token.expires_at]


def scoped_owner(owner: Memory) -> Issued:
    """Return an owner's token with a scope, as earlier releases made it."""
    issued = owner.create_token("ola", rights="owner")
    with request_context_of(owner).store.write() as writer:
        (stored,) = writer.documents(StoredToken, None).list(id=issued.token.id)
        writer.put(replace(stored, scope="/users/ana"))
    return issued


@pytest.mark.parametrize("handle", ["named", "of a user"])
def test_no_owners_token_is_made_with_a_scope(owner: Memory, handle: str) -> None:
    at = owner.user("ana") if handle == "of a user" else owner
    with pytest.raises(Conflict, match=r"an owner's token has no scope.*for /users/ana"):
        at.create_token("ola", rights="owner", scope=None if handle == "of a user" else "/users/ana")
    assert owner.tokens() == []


def test_an_older_owners_token_with_a_scope_is_refused(owner: Memory, entering: Enter) -> None:
    issued = scoped_owner(owner)
    with pytest.raises(Unauthorised, match=f"has no scope.*for /users/ana.*keepward token revoke {issued.token.id}"):
        entering(token=issued.secret)
    with pytest.raises(Unauthorised, match="has no scope"):
        owner.with_token(issued.secret)


def test_doctor_lists_owners_tokens_with_a_scope(owner: Memory, mem: Memory) -> None:
    def check(memory: Memory) -> list[Any]:
        return [each for each in memory.doctor() if each.name == "tokens"]

    assert [each.ok for each in check(owner)] == [True]
    issued = scoped_owner(owner)
    assert [(each.ok, f"`keepward token revoke {issued.token.id}`" in each.remedy) for each in check(owner)] == [
        (False, True)
    ]
    assert check(mem) == []
    owner.revoke_token(issued.token.id)
    assert [each.ok for each in check(owner)] == [True]


def test_no_file_of_the_store_holds_a_token(owner: Memory, path: Path, tmp_path: Path) -> None:
    issued = owner.create_token("claude")
    owner.close()
    found = [
        file
        for file in tmp_path.rglob("*")
        if file.is_file()
        and (issued.secret.encode() in (raw := file.read_bytes()) or issued.secret[3:].encode() in raw)
    ]
    assert found == []


def test_a_token_that_is_written_as_a_memory_is_refused(owner: Memory, mem: Memory) -> None:
    issued = owner.create_token("claude")
    assert issued.secret not in redact_secrets(f"I use {issued.secret} here")
    outcome = mem.remember(f"I use {issued.secret} here")
    assert outcome.outcome == "refused" or issued.secret not in committed_record(outcome).text


def _expired(owner: Memory, clock: Any) -> str:
    secret = owner.create_token("claude", expires="1h").secret
    clock.move(hours=1)
    return secret


def _revoked(owner: Memory, clock: Any) -> str:
    issued = owner.create_token("claude")
    owner.revoke_token(issued.token.id)
    return issued.secret


def _unknown(owner: Memory, clock: Any) -> str:
    known = owner.create_token("claude").secret
    return known[:-1] + ("A" if known[-1] != "A" else "B")


BAD: dict[str, Callable[[Memory, Any], str]] = {
    "expired": _expired,
    "revoked": _revoked,
    "unknown": _unknown,
    "empty": lambda owner, clock: "",
    "without its prefix": lambda owner, clock: owner.create_token("claude").secret.removeprefix("kw_"),
    "a lone surrogate": lambda owner, clock: "kw_\ud800",
}


@pytest.mark.parametrize("what", sorted(BAD))
def test_every_invalid_token_is_refused_with_the_same_words(
    owner: Memory, entering: Enter, clock: Any, what: str
) -> None:
    secret = BAD[what](owner, clock)
    with pytest.raises(Unauthorised) as fault:
        entering(token=secret)
    assert str(fault.value) == "this token does not open this store; ask the owner for a new one"


def test_an_open_handle_ends_with_its_token(owner: Memory, entering: Enter) -> None:
    issued = owner.create_token("claude")
    bearer = entering(token=issued.secret)
    committed_record(bearer.remember("The ferry is blue"))
    owner.revoke_token(issued.token.id)
    for call in (lambda: bearer.recall("ferry"), lambda: bearer.remember("more"), bearer.status, bearer.pending):
        with pytest.raises(Unauthorised):
            call()


def test_what_an_owners_token_gave_ends_with_it(owner: Memory, entering: Enter) -> None:
    issued = owner.create_token("root", rights="owner")
    agent = entering(token=issued.secret).as_actor(Actor.agent())
    committed_record(agent.remember("The ferry is blue"))
    owner.revoke_token(issued.token.id)
    with pytest.raises(Unauthorised):
        agent.list_memories()


def test_revoking_and_making_leave_receipts_without_the_secret(owner: Memory) -> None:
    issued = owner.create_token("claude")
    first, again = owner.revoke_token(issued.token.id), owner.revoke_token(issued.token.id)
    assert (first.facts["action"], again.facts["action"]) == ("revoked", "revoked before")
    stored = owner.receipt(first.id)
    assert (stored["kind"], stored["token"], stored["actor"]) == ("token", issued.token.id, "operator:olga")
    assert issued.secret not in repr(stored)
    assert issued.secret not in repr(issued)


@pytest.mark.parametrize("scope", ["/", "elysia", "/agents"])
def test_a_token_leaves_neither_its_scope_upwards_nor_its_tenant(owner: Memory, entering: Enter, scope: str) -> None:
    bearer = entering(token=owner.create_token("orion", scope="orion").secret)
    assert bearer.at(scope="/agents/orion/tasks/42").scope == "/agents/orion/tasks/42"
    for call in (lambda: bearer.at(scope=scope), lambda: bearer.at(tenant="acme")):
        with pytest.raises(Unauthorised):
            call()


@pytest.mark.parametrize(
    ("rights", "can"),
    [("agent", ["approve"]), ("reviewer", ["propose"]), ("agent", []), ("agent", ["fly"]), ("owner", ["read"])],
)
def test_a_token_is_given_nothing_beyond_its_class(owner: Memory, rights: str, can: list[str]) -> None:
    with pytest.raises(InvalidInput):
        owner.create_token("claude", rights=rights, can=can)
    assert owner.tokens() == []


@pytest.mark.parametrize("given", [{"name": ""}, {"name": "a\nb"}, {"name": "x", "rights": "god"}])
def test_token_without_a_valid_name_or_role_is_not_created(owner: Memory, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        owner.create_token(**given)


@pytest.mark.parametrize("term", [timedelta(0), timedelta(seconds=-1)])
def test_a_token_does_not_expire_in_the_past(owner: Memory, term: timedelta) -> None:
    with pytest.raises(InvalidInput):
        owner.create_token("claude", expires=term)


@pytest.mark.promise("F3")
@pytest.mark.parametrize(
    "edit",
    [
        tamper.body("agent", "owner"),
        tamper.body('"can":[', '"can":["approve",'),
        tamper.body('"scope":"/agents/orion"', '"scope":"/"'),
        "tenant = 'acme'",
        "until = NULL",
        tamper.body('"claude"', '"olga"'),
    ],
)
def test_token_edited_by_hand_opens_nothing_and_verify_names_it(
    owner: Memory, entering: Enter, path: Path, edit: str
) -> None:
    issued = owner.create_token("claude", scope="orion", expires="1d")
    tamper.edit_documents(path, "tokens", edit)
    with pytest.raises(Unauthorised):
        entering(token=issued.secret)
    assert {fault.row.split()[0] for fault in owner.verify().faults} == {"tokens"}


def test_restored_old_row_of_a_revoked_token_is_named(owner: Memory, path: Path) -> None:
    issued = owner.create_token("claude")
    (old,) = tamper.documents(path, "tokens")
    owner.revoke_token(issued.token.id)
    tamper.delete_documents(path, "tokens")
    tamper.put_documents(path, old)
    assert ("tokens", "a receipt says that it was revoked") in {
        (each.check, each.detail) for each in owner.verify().faults
    }


def test_the_owners_token_is_stored_for_the_owners_eyes_alone(owner: Memory, entering: Enter, tmp_path: Path) -> None:
    file = owner.owner_token()
    assert file.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "config") in file.parents
    assert owner.owner_token() == file
    assert [each.name for each in owner.tokens()] == ["olga"]
    bearer = entering(token=file.read_text().strip())
    assert (bearer.actor.label, bearer.actor.is_owner) == ("operator:olga", True)
    assert bearer.at(tenant="acme").tenant == "acme"


def test_a_revoked_owners_token_is_recreated_when_asked_for(owner: Memory, entering: Enter) -> None:
    old = owner.owner_token().read_text().strip()
    owner.revoke_token(owner.tokens()[0].id)
    assert (new := owner.owner_token().read_text().strip()) != old
    assert entering(token=new).actor.is_owner


def test_token_creates_no_missing_store(opened: Callable[..., Memory], tmp_path: Path) -> None:
    from keepward import StoreUnavailable

    with pytest.raises(StoreUnavailable):
        opened("nowhere", token="kw_" + "A" * 43)
    assert not (tmp_path / "nowhere.db").exists()


@pytest.mark.promise("F10", "Z24", "C66", "C67")
@pytest.mark.parametrize(
    "start", [Actor.agent(), Actor.user(), Actor.importer(), Actor.reviewer("rita")], ids=lambda each: each.label
)
def test_no_handle_makes_itself_anybody_else(owner: Memory, entering: Enter, start: Actor) -> None:
    for handle in (owner.as_actor(start), entering(start)):
        for wanted in (
            Actor.operator("olga"),
            Actor.operator(start.name),
            Actor.reviewer("rosa"),
            Actor.agent("another"),
            Actor.user("ana"),
            Actor.importer(start.name + "2"),
            Actor(kind=start.kind, name=start.name, rights=owner.actor.rights),
        ):
            with pytest.raises(Unauthorised):
                handle.as_actor(wanted)
        assert handle.as_actor(start).actor == start


def test_an_owner_does_not_take_another_owners_name(owner: Memory) -> None:
    with pytest.raises(Unauthorised):
        owner.as_actor(Actor.operator("bob"))


def test_no_handle_changes_the_policy(owner: Memory, entering: Enter) -> None:
    bearer = entering(token=owner.create_token("claude").secret)
    with pytest.raises(AttributeError):
        bearer.policy = Policy(enabled=False)  # type: ignore[misc]


def test_store_with_only_a_token_or_a_refusal_verifies(owner: Memory, mem: Memory) -> None:
    owner.create_token("claude", tenant="acme")
    refused(mem.remember("  "))
    assert owner.verify().faults == ()


def cut_down(*can: str) -> Actor:
    """An owner as a host may open one, able to do less than an owner's token always can."""
    return replace(Actor.operator("watcher"), can=frozenset(can))


@pytest.fixture
def watching(owner: Memory, entering: Enter) -> Memory:
    """A handle on the owner's store that only reads."""
    return entering(actor=cut_down("read"))


def test_an_owner_who_only_reads_rolls_nothing_back(owner: Memory, watching: Memory) -> None:
    commit = owner.remember("The ferry is blue", tier="archival").commit  # type: ignore[union-attr]
    with pytest.raises(Unauthorised):
        watching.rollback(commit.id)  # type: ignore[union-attr]
    assert owner.recall("ferry")[0].memory.text == "The ferry is blue"


def test_owner_with_erase_alone_can_plan_an_erasure(owner: Memory, entering: Enter) -> None:
    made = committed_record(owner.remember("The ferry is blue", tier="archival"))
    eraser = entering(actor=cut_down("read", "erase"))
    assert made.id in {each.id for each in eraser.plan_erase([made.id]).targets}


# --- A revoked token stays revoked: not its row, not the table, not an older copy of the store makes it hold again


OWNER = Actor.operator("olga")


def files(path: Path) -> list[Path]:
    return [path.with_name(path.name + end) for end in ("", "-wal", "-shm")]


def kept_aside(path: Path, folder: Path) -> None:
    """Copy the files of a store that is closed."""
    folder.mkdir()
    for each in files(path):
        if each.exists():
            shutil.copy(each, folder)


def put_back(path: Path, folder: Path) -> None:
    for each in files(path):
        each.unlink(missing_ok=True)
        if (folder / each.name).exists():
            shutil.copy(folder / each.name, each)


@pytest.fixture
def issued(opened: Callable[..., Memory], tmp_path: Path) -> Issued:
    """A token of a store that is closed; files of before and of after it was revoked lie in folders."""
    with opened("store", actor=OWNER) as owner:
        owner.remember("The quay is closed on Mondays", tier="archival")
        made = owner.create_token("claude")
    kept_aside(tmp_path / "store.db", tmp_path / "before")
    with opened("store", actor=OWNER) as owner:
        owner.revoke_token(made.token.id)
    return made


def test_a_revoked_token_opens_nothing(issued: Issued, opened: Callable[..., Memory]) -> None:
    with pytest.raises(Unauthorised):
        opened("store", token=issued.secret)


def test_an_edited_row_does_not_make_it_hold_again(
    issued: Issued, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    tamper.unrevoke_tokens(tmp_path / "store.db")
    with pytest.raises(Unauthorised):
        opened("store", token=issued.secret)


def test_restored_token_row_does_not_become_valid_again(
    issued: Issued, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    tamper.put_back_documents(tmp_path / "store.db", "tokens", tmp_path / "before" / "store.db")
    with pytest.raises(Unauthorised):
        opened("store", token=issued.secret)


def test_older_copy_of_the_file_does_not_revalidate_a_token(
    issued: Issued, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    put_back(tmp_path / "store.db", tmp_path / "before")
    with pytest.raises((Unauthorised, Tampered)):
        opened("store", token=issued.secret)


def test_accepted_older_copy_does_not_revalidate_a_token(
    issued: Issued, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    put_back(tmp_path / "store.db", tmp_path / "before")
    with opened("store", actor=OWNER) as owner:
        owner.adopt(owner.plan_adopt().digest)
        assert [token.state(owner.now) for token in owner.tokens()] == ["revoked"]
    with pytest.raises(Unauthorised):
        opened("store", token=issued.secret)


@pytest.fixture
def restored(opened: Callable[..., Memory], tmp_path: Path) -> tuple[Issued, int]:
    """A token that was revoked after the backup was made which stands in the store's place now."""
    with opened("store", actor=OWNER) as owner:
        made = owner.create_token("claude")
        owner.backup(tmp_path / "copy.db")
        owner.revoke_token(made.token.id)
    for each in files(tmp_path / "store.db"):
        each.unlink(missing_ok=True)
    done = Memory.restore_backup(
        tmp_path / "copy.db", tmp_path / "store.db", actor=OWNER, config_dir=tmp_path / "config"
    )
    return made, done.revoked


def test_a_backup_brought_back_does_not_make_it_hold_again(
    restored: tuple[Issued, int], opened: Callable[..., Memory]
) -> None:
    with pytest.raises(Unauthorised):
        opened("store", token=restored[0].secret)


def test_restored_backup_reports_how_many_tokens_it_ended(restored: tuple[Issued, int]) -> None:
    assert restored[1] == 1


def test_token_row_in_a_restored_backup_reports_its_revocation(
    restored: tuple[Issued, int], opened: Callable[..., Memory], tmp_path: Path
) -> None:
    # Without the list, as on another machine, the row alone decides.
    shutil.rmtree(tmp_path / "config" / "erasures")
    with pytest.raises(Unauthorised):
        opened("store", token=restored[0].secret)


def test_a_store_that_was_brought_back_verifies(restored: tuple[Issued, int], opened: Callable[..., Memory]) -> None:
    with opened("store", actor=OWNER) as owner:
        assert owner.verify().faults == ()


def test_unrevoked_token_is_valid_in_a_restored_backup(opened: Callable[..., Memory], tmp_path: Path) -> None:
    with opened("store", actor=OWNER) as owner:
        made = owner.create_token("claude")
        owner.backup(tmp_path / "copy.db")
    for each in files(tmp_path / "store.db"):
        each.unlink(missing_ok=True)
    Memory.restore_backup(tmp_path / "copy.db", tmp_path / "store.db", actor=OWNER, config_dir=tmp_path / "config")
    with opened("store", token=made.secret) as bearer:
        assert bearer.actor.name == "claude"


def test_the_list_holds_no_token(issued: Issued, tmp_path: Path) -> None:
    raw = (tmp_path / "config" / "erasures" / "list.jsonl").read_text()
    assert (issued.secret in raw, hash_token(issued.secret).hex() in raw) == (False, True)


def test_receipt_says_if_the_revocation_is_recorded_externally(opened: Callable[..., Memory]) -> None:
    with opened("store", actor=OWNER) as owner:
        made = owner.create_token("claude")
        assert owner.revoke_token(made.token.id).facts["listed"] is True


def test_a_list_that_cannot_be_read_opens_nothing(
    issued: Issued, opened: Callable[..., Memory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keepward.machine.trust_store import FileErasures

    def denied(self: FileErasures) -> frozenset[str]:
        raise PermissionError

    monkeypatch.setattr(FileErasures, "revoked", denied)
    put_back(tmp_path / "store.db", tmp_path / "before")
    with pytest.raises((StoreUnavailable, Tampered)):
        opened("store", token=issued.secret)


def test_label_tells_a_reviewer_from_an_owner_of_the_same_name(owner, entering):
    asked = owner.as_actor(Actor.agent()).remember("Ship it", tier="core", key="mission", reason="so").item
    token = owner.create_token("olga", rights="reviewer")
    reviewer = entering(token=token.secret)
    assert (reviewer.status()["actor"], owner.status()["actor"]) == ("reviewer:olga", "operator:olga")
    receipt = reviewer.reject(asked.id, reason="no")
    assert (receipt.actor, owner.receipt(receipt.id)["actor"]) == ("reviewer:olga", "reviewer:olga")
