"""What was put into a session already: ids of memories, in a file of the user's own for each session.

Invariants
(1) No text is in it. It may be lost at any time: then something is put in a second time, and nothing worse.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from keepward import durable

#: Seconds after which a session is forgotten, and ids that are kept of one.
_TERM, _MOST = 7 * 86_400, 2_000


class Seen:
    """The memories that sessions of a client were told."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, session: str) -> set[str]:
        """Return the ids that a session was told."""
        try:
            listed = json.loads(self._path(session).read_text("utf-8"))
        except (OSError, ValueError):
            return set()
        return {each for each in listed if isinstance(each, str)} if isinstance(listed, list) else set()

    def add(self, session: str, ids: Iterable[str]) -> None:
        """Note that a session was told these."""
        known = self.of(session)
        if known >= set(ids):
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        listed = [*sorted(known), *(each for each in ids if each not in known)][-_MOST:]
        durable.replace(self._path(session), json.dumps(listed).encode(), mode=0o600)

    def clear(self, session: str, now: datetime) -> None:
        """Forget what a session was told, and sessions that are long over."""
        self._path(session).unlink(missing_ok=True)
        long_ago = now.timestamp() - _TERM
        for path in self._folder.glob("*.json") if self._folder.is_dir() else ():
            if path.stat().st_mtime < long_ago:
                path.unlink(missing_ok=True)

    def _path(self, session: str) -> Path:
        return self._folder / f"{hashlib.sha256(session.encode()).hexdigest()[:32]}.json"
