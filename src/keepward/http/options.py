"""Options: what the person who starts a server chooses.

Invariants
(1) The defaults are the protected ones: loopback, closed reads, no other host name, no foreign origin.
(2) What cannot be served safely is refused by ``checked`` before anything is bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from keepward.config import ServerSettings
from keepward.errors import InvalidInput
from keepward.model.value import is_loopback

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104  to be refused without TLS, not bound


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions(ServerSettings):
    """What the settings say of a server, and what is chosen for one run of it."""

    #: Whether the four plain reads need no token; on loopback alone.
    open_reads: bool = False
    #: Whether the log holds warnings and errors alone.
    quiet: bool = False

    @property
    def secure(self) -> bool:
        """Whether browsers see this server behind TLS."""
        return self.behind_proxy or self.tls_cert is not None

    @property
    def scheme(self) -> str:
        """``https`` or ``http``, as browsers see it."""
        return "https" if self.secure else "http"

    @property
    def shown_host(self) -> str:
        """A name under which this machine reaches the server."""
        host = "127.0.0.1" if self.host in _EVERYWHERE else self.host
        return f"[{host}]" if ":" in host else host

    @property
    def url(self) -> str:
        """The address of the page, without a slash at its end: the first allowed name behind TLS, else this machine."""
        name = self.allow_hosts[0] if self.secure and self.allow_hosts else self.shown_host
        if self.behind_proxy or has_port(name):
            return f"{self.scheme}://{name}" if self.allow_hosts else f"http://{name}:{self.port}"
        return f"{self.scheme}://{name}:{self.port}"

    def checked(self) -> ServerOptions:
        """Return these options, if they can be served safely; see (2).

        Raises:
            InvalidInput: they cannot; the message says what to add.
        """
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidInput("--tls-cert and --tls-key go together")
        local = is_loopback(self.host)
        if not local and not self.secure:
            raise InvalidInput(
                "only loopback is served without TLS: give --tls-cert and --tls-key, or --behind-proxy where a "
                "proxy that speaks TLS stands in front"
            )
        if self.open_reads and (not local or self.behind_proxy):
            raise InvalidInput("--open-reads is for loopback alone: leave out --host and --behind-proxy")
        if not 0 <= self.port <= 65_535:
            raise InvalidInput("a port is 0 to 65535; 0 takes a free one")
        if min(self.writes_per_minute, self.body_limit, self.blob_limit, self.import_limit) < 0:
            raise InvalidInput("limits of a server are not negative")
        return self


def has_port(name: str) -> bool:
    """Whether the name of a host has a port at its end."""
    return ":" in name.rpartition("]")[2]
