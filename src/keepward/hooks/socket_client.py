"""The short way of `keepward hook`: a running server is asked before the rest of this package is loaded.

A message is a line `EVENT CLIENT FOLDER` and behind it what the client wrote; an answer is `=` and what the client is
to read. The folder is the working folder, for an event that names none.

Invariants
(1) Nothing is imported here that takes more than a few milliseconds: of this package only `folders`.
(2) What is not plainly answered goes the long way, which reads the command line anew.
(3) An event that a server has taken is given to nobody else: it would be kept twice.
(4) A server is asked where its socket and the folder of it are this user's, and nobody else may write to the folder:
    the runtime folder that the environment names may be another user's, as after `su`.
"""

from __future__ import annotations

import os
import socket
import sys

from keepward import folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Switches hooks off in one shell or program.
SWITCH_VARIABLE = "KEEPWARD_HOOKS"
EVENTS = ("start", "prompt", "compact", "end")
#: Seconds that an event may take: clients are told to wait a little longer.
EVENT_TIMEOUT_S = 8.0
#: Bytes of an event.
MAX_EVENT_BYTES = 4 << 20
TOO_LARGE = "an event is at most 4 MB; this one was left out"
#: Bytes that the log may have before it begins anew.
_MAX_LOG_BYTES = 256 << 10
_OPTIONS = ("--client", "--name", "--db", "--tenant", "--scope", "--user", "--project", "--embedder", "--config")


def ask_server(arguments: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Answer a hook through a running server, or leave it out where it is switched off; whether that was done."""
    if is_off(environ):
        return True
    path = _socket_of(arguments, environ)
    end = None if path is None else connect(path, EVENT_TIMEOUT_S)
    if end is None:
        return False
    data = sys.stdin.buffer.read(MAX_EVENT_BYTES + 1)
    if len(data) > MAX_EVENT_BYTES:
        end.close()
        append_log(environ, f"{arguments[0]}: {TOO_LARGE}")
        return True
    try:
        answer = request(end, encode_request(arguments[0], _options(arguments).get("--client", "claude"), data))
    except TimeoutError:
        # It may have taken it: (3).
        append_log(environ, f"{arguments[0]}: the running server took too long")
        return True
    if answer is None:
        import io

        sys.stdin = io.TextIOWrapper(io.BytesIO(data), "utf-8")
        return False
    sys.stdout.buffer.write(answer)
    sys.stdout.flush()
    return True


def is_off(environ: Mapping[str, str]) -> bool:
    return environ.get(SWITCH_VARIABLE, "").lower() in {"off", "0", "false", "no"}


def encode_request(event: str, client: str, data: bytes) -> bytes:
    """Return what a server is sent of an event."""
    try:
        folder = os.fsencode(os.getcwd())
    except OSError:
        folder = b""
    return f"{event} {client} ".encode() + (b"" if b"\n" in folder else folder) + b"\n" + data


def resolve_names(scope: str | None, user: str | None, project: str | None) -> tuple[str, str, str]:
    """Return the scope, user and project that options mean: without a scope the login, and the folder's project."""
    return (scope, user or "", project or "") if scope else ("", user or "me", project or ".")


def socket_path(environ: Mapping[str, str], *, store: str, tenant: str, agent: str, where: tuple[str, str, str]) -> str:
    """Return the path of the socket of an agent at a store, and at a scope, user and project as they were named."""
    import hashlib

    name = hashlib.sha256("\0".join((store, tenant, agent, *where)).encode()).hexdigest()[:20]
    return os.path.join(folders.runtime_folder(environ), f"{name}.sock")


def connect(path: str, patience: float) -> socket.socket | None:
    """Return a connection to whoever listens, which waits for so many seconds; None where nobody does."""
    if not hasattr(socket, "AF_UNIX") or not _is_own(path):
        return None
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    end.settimeout(patience)
    try:
        end.connect(path)
    except OSError:
        end.close()
        return None
    return end


def _is_own(path: str) -> bool:
    """Whether a socket is there, and nobody but this user can have put it there (4)."""
    try:
        folder, found = os.stat(os.path.dirname(path)), os.lstat(path)
    except OSError:
        return False
    return {folder.st_uid, found.st_uid} == {os.getuid()} and not folder.st_mode & 0o022


def request(connection: socket.socket, message: bytes) -> bytes | None:
    """Return the answer to a message, and close the connection; None where it was not taken.

    Raises:
        TimeoutError: the answer did not come in time.
    """
    with connection:
        try:
            connection.sendall(message)
            connection.shutdown(socket.SHUT_WR)
            answer = recv_all(connection)
        except TimeoutError:
            raise
        except (OSError, ValueError):
            return None
    return answer[1:] if answer[:1] == b"=" else None


def recv_all(connection: socket.socket) -> bytes:
    """Return all that comes until the other side is done; ``ValueError`` where it is more than an event may be."""
    parts, size = [], 0
    while part := connection.recv(65_536):
        parts.append(part)
        size += len(part)
        if size > MAX_EVENT_BYTES:
            raise ValueError(TOO_LARGE)
    return b"".join(parts)


def append_log(environ: Mapping[str, str], line: str) -> None:
    """Add a line to the log of hooks; where it cannot be written there is nowhere to say so."""
    import time
    from pathlib import Path

    log = Path(folders.config_folder(environ)) / "hook.log"
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_full = log.exists() and log.stat().st_size > _MAX_LOG_BYTES
        with open(log, "w" if is_full else "a", encoding="utf-8", opener=_open_private) as out:
            out.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {' '.join(line.split())[:500]}\n")
    except OSError:
        return


def _open_private(path: str, flags: int) -> int:
    """Open a file that only this user reads, also one that others could read until now."""
    handle = os.open(path, flags, 0o600)
    if hasattr(os, "fchmod"):
        os.fchmod(handle, 0o600)
    return handle


def _options(arguments: Sequence[str]) -> dict[str, str]:
    return dict(zip(arguments[1::2], arguments[2::2], strict=False))


def _socket_of(arguments: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return the socket that a command line means; None where that is not plain without the rest of the package."""
    options, store = _options(arguments), environ.get("KEEPWARD_DB", "")
    flags = arguments[1::2]
    is_plain = arguments[:1] and arguments[0] in EVENTS and len(arguments) % 2 and set(flags) <= set(_OPTIONS)
    store = options.get("--db", store)
    # Any other spelling of the same place is left to those who can read it.
    if not is_plain or len(set(flags)) < len(flags) or not store.startswith("/") or os.path.normpath(store) != store:
        return None
    return socket_path(
        environ,
        store=store,
        tenant=options.get("--tenant") or "default",
        where=resolve_names(options.get("--scope"), options.get("--user"), options.get("--project")),
        agent=options.get("--name") or options.get("--client") or "claude",
    )
