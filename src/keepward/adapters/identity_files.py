"""Text files of the user outside the store: read again at each call, and replaced completely.

Invariants
(1) Nothing is cached; a missing file is no document.
(2) A new text replaces the old one in one step, once it is complete and on disk.
(3) Reads and writes follow a link: its target is replaced and the link stays. Mode and line ends of the file stay too,
    and its owner if this process may set it.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from keepward import durable
from keepward.core.identity import EDITION_ID_CHARS, edition_of
from keepward.errors import InvalidInput

_NO_IDENTITY_MESSAGE = (
    "no identity document is set: make a text file and name it as `identity` in keepward.toml, or KEEPWARD_IDENTITY"
)


class IdentityFile:
    """A document in an optional file; without a path there is no document. See the protocol."""

    def __init__(self, path: str | Path | None) -> None:
        self._path = None if path is None else Path(path)
        self.tenant: str | None = None

    def __call__(self) -> tuple[str, str] | None:
        if self._path is None:
            return None
        try:
            text = self._path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as exc:
            raise InvalidInput(f"{self._path.name} cannot be read as UTF-8 text") from exc
        return edition_of(text)[:EDITION_ID_CHARS], text

    def unwritable_reason(self) -> str | None:
        if self._path is None:
            return _NO_IDENTITY_MESSAGE
        name = self._path.name
        if self() is None:
            return f"there is no {name} yet: its owner writes the first edition of the identity"
        if not self._path.is_file():
            return f"{name} is not a regular file, so it is not replaced: name a file as `identity` in keepward.toml"
        return None

    def check_writable(self) -> None:
        with tempfile.TemporaryFile(dir=self._real_path().parent):
            pass

    def replace(self, text: str) -> None:
        path = self._real_path()
        ends = "\r\n" if b"\r\n" in path.read_bytes() else "\n"
        now = path.stat()
        with durable.atomic_replace(path, mode=stat.S_IMODE(now.st_mode)) as out:
            out.write(text.replace("\n", ends).encode())
            with suppress(OSError):
                # Set the owner by descriptor: the path may already name another file.
                os.fchown(out.fileno(), now.st_uid, now.st_gid)

    def _real_path(self) -> Path:
        assert self._path is not None
        # A circle of links raises no error before the file is read.
        return Path(os.path.realpath(self._path))
