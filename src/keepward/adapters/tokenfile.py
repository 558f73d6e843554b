"""The owner's token on disk: ``<config_dir>/stores/<store_id>/owner.token``, for this user's eyes alone.

Invariants
(1) The file is 0600 in a folder of 0700; it is made whole under another name and then put in place.
(2) The token never enters the store's folder.
"""

from __future__ import annotations

from pathlib import Path

from keepward import durable
from keepward.adapters.anchor import default_config_dir


class TokenFile:
    """The file of one store. ``config_dir`` None is the default one.

    Raises:
        OSError: this user has no home.
    """

    def __init__(self, config_dir: str | Path | None, store_id: str) -> None:
        #: Where the token is, or would be.
        self.path = Path(config_dir or default_config_dir()) / "stores" / store_id / "owner.token"

    def read(self) -> str | None:
        """Return the token, or None when there is no file."""
        try:
            return self.path.read_text("ascii").strip() or None
        except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
            return None

    def write(self, secret: str) -> None:
        """Keep a token in place of any other.

        Raises:
            OSError: it cannot be written.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        durable.replace(self.path, f"{secret}\n".encode("ascii"))
