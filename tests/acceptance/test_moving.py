"""Moving, copying, losing: what `docs/howto/backups.md` tells one to do, done."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from keepward import Actor, Conflict, InvalidInput, Memory, Tampered
from keepward.keys import export_key, import_key

pytestmark = pytest.mark.slow

WORDS = "a harbour in the rain"


@pytest.fixture
def at(tmp_path: Path, clock) -> Callable[..., Memory]:
    """Opens a file with one home, as its owner."""

    def open_at(path: Path, home: str) -> Memory:
        given = {"actor": Actor.operator("olga"), "embedder": "hashed", "clock": clock}
        return Memory.open(path, config_dir=tmp_path / home, **given)

    return open_at


@pytest.fixture
def made(tmp_path: Path, at) -> Path:
    path = tmp_path / "m.db"
    with at(path, "host") as mem:
        mem.remember("Ana prefers tabs", tier="archival")
    return path


@pytest.fixture
def carry(tmp_path: Path, at) -> Callable[..., Path]:
    """Exports the key of a store from one home and imports it into another."""

    def carried(path: Path, source: str, target: str, **options) -> Path:
        file = tmp_path / f"{source}-{target}.key"
        with at(path, source) as mem:
            export_key(mem, file, WORDS, config_dir=tmp_path / source)
        import_key(file, WORDS, config_dir=tmp_path / target, **options)
        return file

    return carried


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    """A key file, with the store's home beside it as ``host``; made once, since sealing it takes its time."""
    folder = tmp_path_factory.mktemp("exported")
    with Memory.open(folder / "m.db", config_dir=folder / "host", actor=Actor.operator("olga"), embedder=None) as mem:
        mem.remember("Ana prefers tabs", tier="archival")
        export_key(mem, folder / "store.key", WORDS, config_dir=folder / "host")
    return folder / "store.key"


def texts(mem: Memory) -> list[str]:
    return sorted(each.text for each in mem.list_memories())


def test_container_and_host_share_a_store_by_its_key(made, at, carry):
    carry(made, "host", "container")
    for number, home in enumerate(("container", "host", "container")):
        with at(made, home) as mem:
            mem.remember(f"Pier {number} is open on day {number}", tier="archival")
    for home in ("host", "container"):
        with at(made, home) as mem:
            assert (len(texts(mem)), mem.verify().ok) == (4, True)


def test_an_older_head_than_the_key_reports_is_refused(made, at, carry):
    older = made.read_bytes()
    with at(made, "host") as mem:
        mem.remember("The deploy target is db-7", tier="archival")
    carry(made, "host", "laptop")
    made.write_bytes(older)
    with at(made, "laptop") as mem, pytest.raises(Tampered):
        mem.list_memories()


def test_what_was_erased_stays_refused_in_the_new_home(made, at, carry):
    with at(made, "host") as mem:
        name = mem.list_memories()[0].id
        mem.erase(mem.plan_erase(name).digest, name)
    carry(made, "host", "laptop")
    with at(made, "laptop") as mem:
        assert mem.remember("Ana prefers tabs", tier="archival").outcome == "refused"


def test_store_adopted_elsewhere_is_recovered_with_its_key(made, at, carry, tmp_path):
    with at(made, "container") as mem:
        mem.adopt(mem.plan_adopt().digest)
    with pytest.raises(Conflict, match="--replace"):
        carry(made, "container", "host")
    import_key(tmp_path / "container-host.key", WORDS, config_dir=tmp_path / "host", replace=True)
    with at(made, "host") as mem:
        assert texts(mem) == ["Ana prefers tabs"]


def test_another_passphrase_opens_nothing(exported, tmp_path):
    with pytest.raises(InvalidInput, match="does not open"):
        import_key(exported, "a harbour in the sun", config_dir=tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("name", ["salt", "nonce", "sealed", "n", "format"])
def test_a_key_file_that_was_changed_opens_nothing(exported, tmp_path, name):
    held = json.loads(exported.read_text())
    held[name] = {"n": held["n"] // 2, "format": "keepward-key/9"}.get(name, str(held[name])[::-1])
    file = tmp_path / "changed.key"
    file.write_text(json.dumps(held))
    with pytest.raises(InvalidInput):
        import_key(file, WORDS, config_dir=tmp_path / "other")


def test_key_file_is_encrypted_and_private_to_its_owner(exported):
    key = next((exported.parent / "host").glob("stores/*/key")).read_bytes()
    content = exported.read_bytes()
    assert (key.hex().encode() in content, key in content, exported.stat().st_mode & 0o077) == (False, False, 0)


def test_a_short_passphrase_is_refused(made, at, tmp_path):
    with at(made, "host") as mem, pytest.raises(InvalidInput, match="12 characters"):
        export_key(mem, tmp_path / "k", "short", config_dir=tmp_path / "host")


def test_store_moves_to_a_new_machine_with_its_configuration(made, at, tmp_path):
    there = tmp_path / "new"
    there.mkdir()
    for name in ("m.db", "m.db.id"):
        (tmp_path / name).rename(there / name)
    (tmp_path / "host").rename(there / "config")
    with at(there / "m.db", "new/config") as mem:
        assert (texts(mem), mem.verify().ok) == (["Ana prefers tabs"], True)


def test_store_adopted_after_a_loss_warns_of_returning_erased_texts(made, at, tmp_path):
    with at(made, "host") as mem:
        name = mem.list_memories()[0].id
        mem.erase(mem.plan_erase(name).digest, name)
    shutil.rmtree(tmp_path / "host")
    with at(made, "host") as mem:
        mem.adopt(mem.plan_adopt().digest)
        assert "1 erased memories were erased under another home's key" in " ".join(mem.status()["notes"])


@pytest.mark.parametrize("lost", [True, False])
def test_backup_restored_after_a_loss_reports_unknown_facts(made, at, tmp_path, lost):
    with at(made, "host") as mem:
        mem.backup(tmp_path / "backup.db")
    home = tmp_path / ("empty" if lost else "host")
    done = Memory.restore_backup(
        tmp_path / "backup.db", tmp_path / "back.db", actor=Actor.operator("olga"), config_dir=home
    )
    assert ("may be back" in " ".join(done.warning.split()), done.separate) == (lost, not lost)
