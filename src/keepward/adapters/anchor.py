"""The anchor on disk: a sealing key, noted heads and the store's place, in the user's configuration folder.

Layout: ``<config_dir>/stores/<store_id>/key`` (32 bytes), ``place`` (JSON: where the store was opened last) and
``heads/<digest of the tenant's name>`` (two records of 72 bytes, of the journal and of what stands beside it: seq as
8 bytes big-endian, the head's 32-byte hash, and a 32-byte HMAC over tenant and both; zeros where nothing was noted).
A copy of the store, which has the same id, has the same three under ``copies/<digest of its path>``.

Invariants
(1) Folders are 0700, files 0600. The key never enters the store's folder.
(2) A noted head only moves forward, also when several processes note at once.
(3) The key is flushed to disk, since without it the store must be adopted again. A head is not: one that is lost in
    a power cut is only older than the store.
(4) A store is known by its id and its place. One whose file has gone from there has moved, and keeps its heads; one
    whose file is still there has been copied, and the copy has heads of its own.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keepward import durable
from keepward.errors import Tampered
from keepward.model.codec import digest
from keepward.model.commit import Head
from keepward.ports.world import Sort, Standing

_RECORD = 72
#: Tenants whose files are remembered.
_FILES = 1_024
_PLACES: dict[Sort, int] = {"journal": 0, "beside": _RECORD}
_LABELS: dict[Sort, bytes] = {"journal": b"keepward/anchor/v1\0", "beside": b"keepward/anchor/beside/v1\0"}
_DAMAGED = "what this machine noted of the store is damaged; run `keepward verify`, then `adopt`"


def default_config_dir() -> Path:
    """Return ``$KEEPWARD_HOME``, ``$XDG_CONFIG_HOME/keepward`` or ``~/.config/keepward``; works without ``HOME`` too.

    Raises:
        OSError: this user has no home.
    """
    if chosen := os.environ.get("KEEPWARD_HOME"):
        return Path(chosen).expanduser()
    named = os.environ.get("XDG_CONFIG_HOME", "")
    if named and Path(named).is_absolute():
        return Path(named) / "keepward"
    try:
        # Falls back to the password database where HOME is not set.
        return Path.home() / ".config" / "keepward"
    except RuntimeError as fault:
        raise FileNotFoundError("this user has no home folder") from fault


class FileAnchor:
    """Keeps the key and the heads of one store in files. ``config_dir`` need not exist yet."""

    def __init__(self, config_dir: str | Path) -> None:
        self._config = Path(config_dir)
        self._folder: Path | None = None
        self._place_file: dict[str, Any] | None = None
        self._key: bytes | None = None
        #: Files of heads by tenant, for they are opened at every write.
        self._files: dict[str, str] = {}

    def bind(self, store_id: str, place: Path | None = None) -> Standing:
        """Say which store this is about, and where it is; see (4).

        Raises:
            OSError: ``store_id`` cannot name a folder, or what is known of it cannot be read or written.
        """
        if not store_id.isalnum():
            raise ValueError("a store id is letters and digits")
        self._folder = self._config / "stores" / store_id
        self._place_file = None if place is None else _place_of(place)
        self._files.clear()
        if not (self._folder / "key").exists():
            return "unknown"
        return "known" if self._place_file is None else self._recognise(self._folder, self._place_file, store_id)

    def _recognise(self, home: Path, here: dict[str, Any], store_id: str) -> Standing:
        """Choose the folder of the store at a place, or make one for a copy."""
        known = [(folder, _read_place(folder)) for folder in _folders(home)]
        for fits in (_same_path, _same_file, lambda there, _: not _lives(there, store_id)):
            for folder, there in known:
                if there is None or fits(there, here):
                    self._folder = folder
                    linked = there is not None and there["path"] != here["path"] and _lives(there, store_id)
                    if there != here and not linked:
                        durable.replace(folder / "place", json.dumps(here).encode())
                    return "known"
        self._folder = home / "copies" / digest("place", os.fsencode(here["path"])).hex()[:32]
        for each in (home / "copies", self._folder, self._folder / "heads"):
            each.mkdir(mode=0o700, exist_ok=True)
        durable.replace(self._folder / "place", json.dumps(here).encode())
        # Last: a folder without a key is not yet one of the store's.
        durable.replace(self._folder / "key", (home / "key").read_bytes())
        return "copied"

    def knows(self, place: Path) -> bool:
        """Whether a store of this configuration folder was opened at a place last."""
        return store_at(self._config, place) is not None

    def key(self) -> bytes | None:
        """Return the key, or None when there is none here.

        Raises:
            OSError: it cannot be read.
        """
        try:
            key = (self._place() / "key").read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        self._key = key if len(key) == 32 else None
        return self._key

    def adopt(self) -> bytes:
        """Make a new key, forgetting all heads."""
        folder = self._place()
        for each in (self._config, self._config / "stores", folder):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._place_file is not None:
            durable.replace(folder / "place", json.dumps(self._place_file).encode())
        shutil.rmtree(folder / "heads", ignore_errors=True)
        (folder / "heads").mkdir(mode=0o700, exist_ok=True)
        key = os.urandom(32)
        durable.replace(folder / "key", key)
        self._key = key
        return key

    def carried(self) -> dict[str, Any] | None:
        """Return the key and the noted heads as plain values, for another home; None where there is no key."""
        key = self.key()
        if key is None:
            return None
        heads = self._place() / "heads"
        return {"key": key.hex(), "heads": {name: (heads / name).read_bytes().hex() for name in sorted(self.names())}}

    def take(self, carried: dict[str, Any], *, fresh: bool) -> None:
        """Keep a key and heads from another home; heads of this one stay unless the key is ``fresh``.

        Raises:
            OSError: it cannot be written.
        """
        folder = self._place()
        if fresh:
            # Seals of the heads are of the other key, and so is what was known of copies.
            shutil.rmtree(folder, ignore_errors=True)
        for each in (self._config, self._config / "stores", folder, folder / "heads"):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, raw in carried["heads"].items():
            if name.isalnum() and not (folder / "heads" / name).exists():
                durable.replace(folder / "heads" / name, bytes.fromhex(raw))
        durable.replace(folder / "key", bytes.fromhex(carried["key"]))

    def noted(self, tenant: str, of: Sort = "journal") -> Head | None:
        """Return the noted head, or None."""
        try:
            handle = os.open(self._head_file(tenant), os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH)
            raw = os.pread(handle, 2 * _RECORD + 1, 0)
        finally:
            os.close(handle)
        if len(raw) not in {0, _RECORD, 2 * _RECORD}:
            raise Tampered(_DAMAGED)
        # Empty: another process has made the file and is about to note its first head.
        own = raw[_PLACES[of] : _PLACES[of] + _RECORD]
        return self._read(tenant, own, of) if own.strip(b"\0") else None

    def note(self, tenant: str, head: Head | None, beside: Head | None = None) -> None:
        """Note heads, each if it is ahead of what is noted.

        Raises:
            OSError: it cannot be written.
        """
        handle = os.open(self._head_file(tenant), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            raw = os.pread(handle, 2 * _RECORD, 0).ljust(2 * _RECORD, b"\0")
            fresh = raw
            given: tuple[tuple[Sort, Head | None], ...] = (("journal", head), ("beside", beside))
            for of, each in given:
                place = _PLACES[of]
                if each is not None and int.from_bytes(raw[place : place + 8], "big") < each.seq:
                    fresh = fresh[:place] + self._record(tenant, each, of) + fresh[place + _RECORD :]
            if fresh != raw:
                os.pwrite(handle, fresh, 0)
        finally:
            os.close(handle)

    def names(self) -> set[str]:
        """Return the digests of the tenants' names."""
        try:
            return {entry.name for entry in (self._place() / "heads").iterdir()}
        except (FileNotFoundError, NotADirectoryError):
            return set()

    def _place(self) -> Path:
        if self._folder is None:
            raise ValueError("the anchor is not bound to a store")
        return self._folder

    def _head_file(self, tenant: str) -> str:
        file = self._files.get(tenant)
        if file is None:
            file = str(self._place() / "heads" / digest("tenant", tenant.encode()).hex())
            if len(self._files) < _FILES:
                self._files[tenant] = file
        return file

    def _record(self, tenant: str, head: Head, of: Sort) -> bytes:
        body = head.seq.to_bytes(8, "big") + head.hash
        key = self._key or self.key() or b""
        return body + hmac.digest(key, _LABELS[of] + tenant.encode() + b"\0" + body, "sha256")

    def _read(self, tenant: str, raw: bytes, of: Sort) -> Head:
        head = Head(seq=int.from_bytes(raw[:8], "big"), hash=raw[8:40])
        if len(raw) != _RECORD or not hmac.compare_digest(raw, self._record(tenant, head, of)):
            raise Tampered(_DAMAGED)
        return head


def store_at(config_dir: str | Path, path: Path) -> str | None:
    """Return the id of the store that this configuration folder knows at a path, or None."""
    named = str(path.resolve())
    for folder in sorted((Path(config_dir) / "stores").glob("*/")):
        for each in _folders(folder):
            there = _read_place(each)
            if there is not None and there["path"] == named:
                return folder.name
    return None


def _folders(home: Path) -> Iterator[Path]:
    """Yield the folders of a store and of its copies."""
    yield home
    yield from (each for each in sorted((home / "copies").glob("*")) if (each / "key").exists())


def _place_of(path: Path) -> dict[str, Any]:
    path = path.resolve()
    about = path.stat()
    return {"path": str(path), "device": about.st_dev, "inode": about.st_ino}


def _read_place(folder: Path) -> dict[str, Any] | None:
    """Return what was noted of a place; None where nothing was, as by releases that did not."""
    try:
        place = json.loads((folder / "place").read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return place if isinstance(place, dict) and place.keys() == {"path", "device", "inode"} else None


def _same_path(there: dict[str, Any], here: dict[str, Any]) -> bool:
    return bool(there["path"] == here["path"])


def _same_file(there: dict[str, Any], here: dict[str, Any]) -> bool:
    return bool((there["device"], there["inode"]) == (here["device"], here["inode"]))


def _lives(there: dict[str, Any], store_id: str) -> bool:
    """Whether the store is still at a place: its file is, and the file beside it names no other."""
    path = Path(there["path"])
    try:
        return path.exists() and path.with_name(path.name + ".id").read_text("ascii").strip() == store_id
    except (FileNotFoundError, UnicodeDecodeError):
        return True
    except OSError:
        return False
