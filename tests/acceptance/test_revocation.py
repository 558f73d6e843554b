"""A revoked token stays revoked: not its row, not the table, not an older copy of the store makes it hold again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from keepward import Actor, Memory, StoreUnavailable, Unauthorised
from keepward.core.principals import Issued
from keepward.errors import Tampered
from support import tamper

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
    assert (issued.secret in raw, issued.token.hash.hex() in raw) == (False, True)


def test_receipt_says_if_the_revocation_is_recorded_externally(opened: Callable[..., Memory]) -> None:
    with opened("store", actor=OWNER) as owner:
        made = owner.create_token("claude")
        assert owner.revoke_token(made.token.id).facts["listed"] is True


def test_a_list_that_cannot_be_read_opens_nothing(
    issued: Issued, opened: Callable[..., Memory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keepward.adapters.trust_store import FileErasures

    def denied(self: FileErasures) -> frozenset[str]:
        raise PermissionError

    monkeypatch.setattr(FileErasures, "revoked", denied)
    put_back(tmp_path / "store.db", tmp_path / "before")
    with pytest.raises((StoreUnavailable, Tampered)):
        opened("store", token=issued.secret)
