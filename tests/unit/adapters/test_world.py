"""The clock, the ids and the anchor."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from keepward.adapters.trust_store import TrustStore, default_config_dir
from keepward.adapters.world import RandomIds
from keepward.core.commit import Head
from keepward.errors import Tampered

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
