"""Locations of stores: the path of a file, or the URL of a PostgreSQL database.

A URL is always shown without its password.

Late imports: an extra may be missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from keepward.errors import InvalidInput

#: URL schemes of PostgreSQL.
SCHEMES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """A database on a server. As text it is its URL without the password."""

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
        """Whether the URL contains a password."""
        parts = urlsplit(self.url)
        return ":" in parts.netloc.rpartition("@")[0] or "password" in dict(parse_qsl(parts.query))

    def exists(self) -> bool:
        """Whether the database has a store.

        Raises:
            StoreUnavailable: the database cannot be reached.
        """
        from keepward.storage.postgres import holds_store

        return holds_store(self.url)

    def absolute(self) -> DatabaseUrl:
        """Return itself: a URL is the same from any folder."""
        return self


Location = Path | DatabaseUrl


def parse_location(named: str) -> Location:
    """Return the location in a text.

    Raises:
        InvalidInput: it is a URL of another kind.
    """
    if named.startswith(("http://", "https://")):
        raise InvalidInput("a store is a file or a postgresql:// address; a server is asked with `Client(url, token)`")
    if "://" in named and not named.startswith(SCHEMES):
        raise InvalidInput("a store is a file or a postgresql:// address, and this is an address of another kind")
    if named.startswith(SCHEMES) and _is_cut(named):
        raise InvalidInput(
            "the password in the address has characters that end it: write @ as %40, / as %2F, # as %23, ? as %3F and "
            "% as %25, or leave it out and set PGPASSWORD"
        )
    return DatabaseUrl(named) if named.startswith(SCHEMES) else Path(named).expanduser()


def parse_file(named: str | Path) -> Path:
    """Return the absolute path of a file.

    Raises:
        InvalidInput: it is the address of a database.
    """
    # A path of an address has lost one of its slashes.
    if re.match(r"postgres(ql)?:/", str(named)):
        raise InvalidInput(
            "this takes a file and not the address of a database: copy a store to or from a database with "
            "`keepward store migrate`, and back a database up with `pg_dump`"
        )
    return Path(named).expanduser().absolute()


def _is_cut(url: str) -> bool:
    """Whether a login in a URL ends before its host, as libpq or other parsers read it."""
    rest = url.partition("://")[2]
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    port = authority.rpartition("@")[2].rpartition(":")[2] if ":" in authority else ""
    left = "@" not in authority and "@" in rest and not re.fullmatch(r"\d*\]?", port)
    return authority.count("@") > 1 or left or bool(re.search(r"%(?![0-9A-Fa-f]{2})", authority))


def address_of(location: Location) -> str:
    """Return the text that opens a store at a location; for a database it may contain a password."""
    return location.url if isinstance(location, DatabaseUrl) else str(location)
