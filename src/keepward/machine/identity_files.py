"""Text files of the user outside the store: read at each call, never written. A missing file is no document."""

from __future__ import annotations

import hashlib
from pathlib import Path

from keepward.errors import InvalidInput


class IdentityFile:
    """A document in an optional file; without a path there is no document. See the protocol."""

    def __init__(self, path: str | Path | None) -> None:
        self._path = None if path is None else Path(path)
        self.name = None if self._path is None else self._path.name

    def __call__(self) -> tuple[str, str] | None:
        if self._path is None:
            return None
        try:
            text = self._path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as exc:
            raise InvalidInput(f"{self._path.name} cannot be read as UTF-8 text") from exc
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16], text
