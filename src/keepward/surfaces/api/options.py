"""Options: what the person who starts a server chooses.

Invariants
(1) The defaults are the protected ones: loopback, closed reads, no other host name, no foreign origin.
(2) What cannot be served safely is refused by ``checked`` before anything is bound.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from keepward.errors import InvalidInput

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104  to be refused without TLS, not bound


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Where a server listens, whom it lets in, and how much it takes."""

    host: str = "127.0.0.1"
    port: int = 8321
    #: Whether the four plain reads need no token; on loopback alone.
    open_reads: bool = False
    #: Whether a proxy that speaks TLS stands in front.
    behind_proxy: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None
    #: Names by which the server is asked for, beside loopback names and `host`; with `:port` where it is another.
    allow_hosts: tuple[str, ...] = ()
    #: Origins, such as `https://console.example`, whose pages may call beside the server's own.
    allow_origins: tuple[str, ...] = ()
    #: Changing calls of one principal in a minute; 0 for no limit.
    writes_per_minute: int = 60
    #: Longest body, in bytes: of a call, of a blob, and of an import, which is read line by line.
    body_limit: int = 1 << 20
    blob_limit: int = 32 << 20
    import_limit: int = 1 << 30
    #: Whether `/mcp` is served, and with which tools.
    mcp: bool = True
    mcp_profile: str = "default"
    #: Whether jobs that are due are run while the server is up.
    jobs: bool = False
    #: Whether the log is JSON lines.
    log_json: bool = False
    #: Whether it holds warnings and errors alone.
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


def is_loopback(host: str) -> bool:
    """Whether a host names this machine alone."""
    if host.lower() in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
