"""Where a store is: the path of a file, or the address of a PostgreSQL database.

Invariants
(1) An address is shown without its password, wherever it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from keepward.errors import InvalidInput

#: What an address begins with.
SCHEMES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class Database:
    """A database on a server; as a text it is its address without the password, see (1)."""

    url: str

    def __str__(self) -> str:
        try:
            parts = urlsplit(self.url)
            login, at, host = parts.netloc.rpartition("@")
            query = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if "password" not in pair[0]]
        except ValueError:
            return f"{SCHEMES[0]}..."
        plain = urlencode(query, quote_via=quote, safe="/")
        return urlunsplit((parts.scheme, login.partition(":")[0] + at + host, parts.path, plain, ""))

    @property
    def has_password(self) -> bool:
        """Whether the address itself holds a password."""
        parts = urlsplit(self.url)
        return ":" in parts.netloc.rpartition("@")[0] or "password" in dict(parse_qsl(parts.query))

    def exists(self) -> bool:
        """Whether there is a store in it.

        Raises:
            StoreUnavailable: nobody knows: it cannot be reached.
        """
        from keepward.store.postgres import holds_store

        return holds_store(self.url)

    def absolute(self) -> Database:
        """Return it: an address is the same from any folder."""
        return self


Place = Path | Database


def place_of(named: str) -> Place:
    """Return the place that a person named.

    Raises:
        InvalidInput: it is an address of another kind.
    """
    if named.startswith(("http://", "https://")):
        raise InvalidInput("a store is a file or a postgresql:// address; a server is asked with `Client(url, token)`")
    if "://" in named and not named.startswith(SCHEMES):
        raise InvalidInput("a store is a file or a postgresql:// address, and this is an address of another kind")
    return Database(named) if named.startswith(SCHEMES) else Path(named).expanduser()


def address(place: Place) -> str:
    """Return what opens a store at a place; of a database it may hold a password."""
    return place.url if isinstance(place, Database) else str(place)
