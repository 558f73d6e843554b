"""The list of erasures, and of revoked tokens, on disk, in the user's configuration folder.

Layout: ``<config_dir>/erasures/key`` (32 bytes) and ``list.jsonl`` (one JSON object a line). One list serves all
stores of this user, so that a journal or a backup brought into another store is recognised as well.

Invariants
(1) The folder is 0700, files are 0600; entries are flushed to disk, since backups are trusted to them.
(2) The key outlives that of any store: accepting a store anew must not make its tombstones blind.
(3) A token is listed by its hash. What was revoked stays so when its row, or the whole store, is put back.
(4) A last line that a crash cut short is passed over; the journal says it again.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keepward import durable


class FileErasures:
    """Keeps the list in ``config_dir``, which need not exist yet."""

    def __init__(self, config_dir: str | Path) -> None:
        self._folder = Path(config_dir) / "erasures"
        self._key_file = str(self._folder / "key")
        self._key: bytes | None = None
        #: Time of change and size of the list, and the hashes that it names.
        self._revoked: tuple[tuple[int, int], frozenset[str]] = ((0, 0), frozenset())

    def key(self, *, make: bool = False) -> bytes | None:
        """Return the key; with ``make`` a missing one is made.

        Raises:
            OSError: it cannot be read or made.
        """
        if self._key is not None:
            return self._key
        # Asked before every write, mostly of a file that is not there.
        try:
            handle = os.open(self._key_file, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            held = b""
        else:
            try:
                held = os.read(handle, 33)
            finally:
                os.close(handle)
        if len(held) == 32:
            self._key = held
        elif make:
            self._key = self._made(Path(self._key_file))
        return self._key

    def _made(self, file: Path) -> bytes:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return durable.settle(file, os.urandom(32))

    def take_key(self, key: bytes) -> bytes:
        """Keep a key from another home where there is none; return the one that is kept."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._key = durable.settle(Path(self._key_file), key)
        return self._key

    def note(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Add entries, each a line."""
        if not entries:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lines = "".join(json.dumps(entry, sort_keys=True, separators=(",", ":")) + "\n" for entry in entries)
        handle = os.open(self._folder / "list.jsonl", os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                lines = "\n" + lines
            os.write(handle, lines.encode("ascii"))
            os.fsync(handle)
        finally:
            os.close(handle)

    def revoked(self) -> frozenset[str]:
        """Return the hashes of revoked tokens; the list is read again only when it has changed."""
        try:
            about = (self._folder / "list.jsonl").stat()
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
        stamp = (about.st_mtime_ns, about.st_size)
        if stamp != self._revoked[0]:
            hashes = {str(each.get("hash")) for each in self.entries() if each.get("entry") == "revocation"}
            self._revoked = (stamp, frozenset(hashes))
        return self._revoked[1]

    def entries(self) -> list[dict[str, Any]]:
        """Return all entries, oldest first."""
        try:
            raw = (self._folder / "list.jsonl").read_text("ascii", errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = []
        for line in raw.splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                found.append(entry)
        return found
