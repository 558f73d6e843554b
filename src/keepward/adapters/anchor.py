"""The anchor on disk: a sealing key and noted heads, in the user's configuration folder.

Layout: ``<config_dir>/stores/<store_id>/key`` (32 bytes) and ``heads/<digest of the tenant's name>``
(two records of 72 bytes, of the journal and of what stands beside it: seq as 8 bytes big-endian, the head's 32-byte
hash, and a 32-byte HMAC over tenant and both; zeros where nothing was noted).

Invariants
(1) Folders are 0700, files 0600. The key never enters the store's folder.
(2) A noted head only moves forward, also when several processes note at once.
(3) The key is flushed to disk, since without it the store must be adopted again. A head is not: one that is lost in
    a power cut is only older than the store.
"""

from __future__ import annotations

import fcntl
import hmac
import os
import shutil
from pathlib import Path

from keepward import durable
from keepward.domain.codec import digest
from keepward.domain.commit import Head
from keepward.errors import Tampered
from keepward.ports.world import Sort

_RECORD = 72
#: Tenants whose files are remembered.
_FILES = 1_024
_PLACES: dict[Sort, int] = {"journal": 0, "beside": _RECORD}
_LABELS: dict[Sort, bytes] = {"journal": b"keepward/anchor/v1\0", "beside": b"keepward/anchor/beside/v1\0"}
_DAMAGED = "what this machine noted of the store is damaged; run `keepward verify`, then `adopt`"


def default_config_dir() -> Path:
    """Return ``$XDG_CONFIG_HOME/keepward`` or ``~/.config/keepward``; works without ``HOME`` too.

    Raises:
        OSError: this user has no home.
    """
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
        self._key: bytes | None = None
        #: Files of heads by tenant, for they are opened at every write.
        self._files: dict[str, str] = {}

    def bind(self, store_id: str) -> None:
        """Say which store this is about.

        Raises:
            OSError: ``store_id`` cannot name a folder.
        """
        if not store_id.isalnum():
            raise ValueError("a store id is letters and digits")
        self._folder = self._config / "stores" / store_id
        self._files.clear()

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
        shutil.rmtree(folder / "heads", ignore_errors=True)
        (folder / "heads").mkdir(mode=0o700, exist_ok=True)
        key = os.urandom(32)
        durable.replace(folder / "key", key)
        self._key = key
        return key

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
