"""Text files of the user's that stand outside the store: read anew at each call, and replaced as a whole.

Invariants
(1) What is there is what is read: nothing of it is cached, and a file that is not there is no document.
(2) A new text is staged beside the file, whole and on disk, before anybody relies on it; it takes the place of the one
    edition that it was made from, and of nothing else.
(3) A link is followed to write as it is to read: what it names is replaced, and the link stays. So do mode,
    owner and line ends of the file, the owner where this program may give files away.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from keepward import durable
from keepward.errors import InvalidInput
from keepward.model.identity import VERSION, edition_of

_NONE = "no identity document is set: make a text file and name it as `identity` in keepward.toml, or KEEPWARD_IDENTITY"


class DocumentFile:
    """A document in a file, which need not be there; without a path there is none. See the port."""

    def __init__(self, path: str | Path | None) -> None:
        self._path = None if path is None else Path(path)
        self.tenant: str | None = None
        self._mark = ""

    def bind(self, store_id: str, tenant: str) -> None:
        self.tenant, self._mark = tenant, edition_of(f"{store_id}/{tenant}")[:VERSION]

    def __call__(self) -> tuple[str, str] | None:
        if self._path is None:
            return None
        try:
            text = self._path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as fault:
            raise InvalidInput(f"{self._path.name} cannot be read as UTF-8 text") from fault
        return edition_of(text)[:VERSION], text

    def obstacle(self) -> str | None:
        if self._path is None:
            return _NONE
        name = self._path.name
        if self() is None:
            return f"there is no {name} yet: its owner writes the first edition of the identity"
        if not self._path.is_file():
            return f"{name} is no plain file, so it is not replaced: name a file as `identity` in keepward.toml"
        return None

    def probe(self) -> None:
        aside = self._staged(f"{os.urandom(8).hex()}.probe")
        with durable.fresh(aside):
            pass
        aside.unlink()

    def stage(self, text: str) -> None:
        """Write a new text beside the file; see (2).

        Raises:
            OSError: it cannot be written.
        """
        self.discard()
        place = self._place()
        ends = "\r\n" if b"\r\n" in place.read_bytes() else "\n"
        now = place.stat()
        with durable.fresh(self._staged(), mode=stat.S_IMODE(now.st_mode)) as out:
            out.write(text.replace("\n", ends).encode())
            with suppress(OSError):
                # Who serves it may be another than who edits it; by name it could be another file by now.
                os.fchown(out.fileno(), now.st_uid, now.st_gid)
        durable.flush(place.parent)

    def staged(self) -> bool:
        return self._path is not None and self._staged().is_file()

    def put(self, edition: str, over: str) -> bool:
        aside, now = self._staged(), self()
        found = now and edition_of(now[1])
        if found == over != edition and edition_of(aside.read_text(encoding="utf-8", errors="replace")) == edition:
            place = self._place()
            aside.replace(place)
            durable.flush(place.parent)
            return True
        self.discard()
        return found == edition

    def discard(self) -> None:
        self._staged().unlink(missing_ok=True)

    def _staged(self, name: str = "") -> Path:
        place = self._place()
        return place.with_name(f"{place.name}.{name or self._mark}{durable.PART}")

    def _place(self) -> Path:
        assert self._path is not None
        # Links that lead in a circle are no error before the file is read.
        return Path(os.path.realpath(self._path))
