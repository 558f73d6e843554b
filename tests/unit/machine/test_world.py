"""The clock, the ids and the anchor."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta

import pytest

from keepward import durable, folders
from keepward.core.commit import Head
from keepward.errors import Tampered
from keepward.machine.clock import RandomIds
from keepward.machine.trust_store import FileErasures, TokenFile, TrustStore, default_config_dir

NOW = datetime(2026, 3, 1, 9, 30, 0, 123000, tzinfo=UTC)


def test_an_id_is_a_uuid_of_version_7():
    new = RandomIds().new_id(NOW)
    assert (len(new), new[14], new[19] in "89ab") == (36, "7", True)


def test_an_id_begins_with_its_milliseconds():
    assert int(RandomIds().new_id(NOW).replace("-", "")[:12], 16) == 1772357400123


def test_ids_rise_while_the_clock_is_still():
    ids = RandomIds()
    made = [ids.new_id(NOW) for _ in range(2000)]
    assert made == sorted(set(made))


def test_ids_rise_when_the_clock_steps_back():
    ids = RandomIds()
    assert ids.new_id(NOW) < ids.new_id(NOW - timedelta(hours=1))


def test_salts_are_16_bytes_and_differ():
    ids = RandomIds()
    assert len({ids.salt() for _ in range(100)} | {bytes(16)}) == 101


@pytest.fixture
def anchor(tmp_path):
    anchor = TrustStore(tmp_path / "config")
    anchor.bind("abc123")
    return anchor


def _head(seq):
    return Head(seq=seq, hash=bytes([seq]) * 32)


def test_a_key_that_was_made_is_stored(anchor, tmp_path):
    key = anchor.adopt()
    again = TrustStore(tmp_path / "config")
    again.bind("abc123")
    assert again.key() == key


def test_key_and_heads_can_be_read_by_their_user_alone(anchor, tmp_path):
    anchor.adopt()
    anchor.record_head("ada", _head(1))
    modes = {each.stat().st_mode & 0o777 for each in (tmp_path / "config").rglob("*")}
    assert modes == {0o600, 0o700}


def test_a_noted_head_only_moves_forward(anchor):
    anchor.adopt()
    anchor.record_head("ada", _head(3))
    anchor.record_head("ada", _head(2))
    assert anchor.last_head("ada") == _head(3)


def test_heads_of_tenants_are_apart(anchor):
    anchor.adopt()
    anchor.record_head("ada", _head(3))
    assert anchor.last_head("bob") is None


@pytest.mark.parametrize("offset", [0, 7, 8, 39, 40, 71])
def test_a_bent_head_is_tampered(anchor, tmp_path, offset):
    anchor.adopt()
    anchor.record_head("ada", _head(3))
    [file] = (tmp_path / "config" / "stores" / "abc123" / "heads").iterdir()
    raw = bytearray(file.read_bytes())
    raw[offset] ^= 1
    file.write_bytes(bytes(raw))
    with pytest.raises(Tampered):
        anchor.last_head("ada")


def test_a_new_key_forgets_all_heads(anchor):
    anchor.adopt()
    anchor.record_head("ada", _head(3))
    anchor.adopt()
    assert anchor.last_head("ada") is None


def test_tenant_name_is_not_in_the_file_system(anchor, tmp_path):
    anchor.adopt()
    anchor.record_head("ada", _head(1))
    assert not any("ada" in each.name for each in (tmp_path / "config").rglob("*"))


def test_the_configuration_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert default_config_dir() == tmp_path / "keepward"


def test_the_configuration_folder_is_found_without_home(monkeypatch):
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert default_config_dir().is_absolute()


def test_an_empty_home_is_that_of_the_login(monkeypatch):
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    expected = default_config_dir()
    monkeypatch.setenv("HOME", "")
    assert default_config_dir() == expected


def test_home_of_a_shell_is_ignored_on_windows(monkeypatch):
    expected = folders.config_folder({})
    monkeypatch.setattr(os, "name", "nt")
    assert folders.config_folder({"HOME": "/of/a/shell"}) == expected


def test_ids_of_a_forked_process_are_its_own():
    ids = RandomIds()
    ids.new_id(NOW + timedelta(days=1))
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(writing, ids.new_id(NOW).encode())
        finally:
            os._exit(0)
    # A child that fails says nothing.
    os.close(writing)
    os.waitpid(child, 0)
    assert os.read(reading, 36).decode() < ids.new_id(NOW)


@pytest.mark.parametrize(
    ("write", "folders"),
    [
        (lambda config: _bound(config).adopt(), ["outside", "config", "stores", "abc123"]),
        (lambda config: TokenFile(config, "abc123").write("x"), ["outside", "config", "stores", "abc123"]),
        (lambda config: FileErasures(config).key(make=True), ["outside", "config", "erasures"]),
        (lambda config: FileErasures(config).add([{"entry": "erasure"}]), ["outside", "config", "erasures"]),
    ],
)
@pytest.mark.parametrize("before", [False, True])
def test_every_folder_down_to_a_key_or_a_list_is_flushed(tmp_path, monkeypatch, write, folders, before):
    config = tmp_path / "outside" / "config"
    # With ``before``, a process that was killed created the folders and did not flush them.
    config.joinpath(*folders[2:] if before else "").mkdir(parents=True)
    flushed = []
    monkeypatch.setattr(durable, "flush", lambda path: flushed.append(path.name))
    write(config)
    assert set(folders) <= set(flushed)


def _bound(config):
    anchor = TrustStore(config)
    anchor.bind("abc123")
    return anchor


@pytest.mark.parametrize(
    "write",
    [
        lambda config: _bound(config).adopt(),
        lambda config: TokenFile(config, "abc123").write("x"),
        lambda config: FileErasures(config).key(make=True),
        lambda config: FileErasures(config).add([{"entry": "erasure"}]),
    ],
)
def test_a_disk_that_flushes_no_folder_is_an_error(tmp_path, monkeypatch, write):
    sync = os.fsync

    def fsync(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(5, "Input/output error")
        sync(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="Input"):
        write(tmp_path / "config")


def test_short_writes_leave_a_complete_list(tmp_path, monkeypatch):
    write, entries = os.write, [{"entry": "erasure", "commit": "a"}, {"entry": "erasure", "commit": "b"}]
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, bytes(data[:7])))
    FileErasures(tmp_path).add(entries)
    assert FileErasures(tmp_path).entries() == entries


def test_a_list_on_a_full_disk_keeps_its_entries(tmp_path, monkeypatch):
    erasures, left, write = FileErasures(tmp_path), [9], os.write
    erasures.add([{"commit": "a"}])

    def fill(handle, data):
        taken = write(handle, bytes(data[: left[0]]))
        left[0] -= taken
        return taken

    with monkeypatch.context() as patch, pytest.raises(OSError, match="space"):
        patch.setattr(os, "write", fill)
        erasures.add([{"commit": "b"}])
    erasures.add([{"commit": "c"}])
    assert erasures.entries() == [{"commit": "a"}, {"commit": "c"}]


def test_a_head_on_a_disk_that_fails_stays_as_it_was(anchor, monkeypatch):
    anchor.adopt()
    anchor.record_head("ada", _head(1))
    write, left = os.write, [10, 0]

    def fail(handle, data):
        return write(handle, bytes(data[: left.pop(0)])) if left else write(handle, data)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="space"):
        patch.setattr(os, "write", fail)
        anchor.record_head("ada", _head(2))
    assert anchor.last_head("ada") == _head(1)
