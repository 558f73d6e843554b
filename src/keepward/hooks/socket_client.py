"""The fast path of `keepward hook`: ask a running server before the rest of this package is loaded.

A request is a line `EVENT CLIENT FOLDER`, followed by the client's event. An answer is `=`, followed by the text for
the client. The folder is the working folder, for events that name no folder.

Invariants
(1) All imports together take a few milliseconds; of this package only `folders` is imported.
(2) If the server does not answer, the command line runs as usual.
(3) An event that a server has received is not handled again, because it would be stored twice.
(4) The socket and its folder must belong to this user, and no other user may write to the folder. After `su`, the
    runtime folder of the environment belongs to another user.

Late imports: a program that does not need it starts faster.
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
SHADOW_OPTION = "--shadow"
EVENTS = ("start", "prompt", "reply", "compact", "end")
#: Maximum seconds of an event. The time limit of clients is a little longer.
EVENT_TIMEOUT_S = 8.0
#: Maximum bytes of an event.
MAX_EVENT_BYTES = 4 << 20
TOO_LARGE = "an event has at most 4 MB; this one was ignored"
#: A larger log is truncated, in bytes.
_MAX_LOG_BYTES = 256 << 10
_OPTIONS = ("--client", "--name", "--db", "--tenant", "--scope", "--user", "--project", "--embedder", "--config")


def ask_server(arguments: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Answer a hook through a running server; return whether it was handled. True if hooks are switched off."""
    if is_off(environ):
        return True
    # A running server answers for hooks that add.
    path = None if is_shadow(environ, arguments) else _socket_of(arguments, environ)
    connection = None if path is None else connect(path, EVENT_TIMEOUT_S)
    if connection is None:
        return False
    data = sys.stdin.buffer.read(MAX_EVENT_BYTES + 1)
    if len(data) > MAX_EVENT_BYTES:
        connection.close()
        append_log(environ, f"{arguments[0]}: {TOO_LARGE}")
        return True
    try:
        answer = request(connection, encode_request(arguments[0], _options(arguments).get("--client", "claude"), data))
    except TimeoutError:
        # The server may have received the event (3).
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


def is_shadow(environ: Mapping[str, str], arguments: Sequence[str] = ()) -> bool:
    """Whether hooks store and report, and add nothing."""
    return SHADOW_OPTION in arguments or environ.get(SWITCH_VARIABLE, "").lower() == "shadow"


def encode_request(event: str, client: str, data: bytes) -> bytes:
    """Return the request for an event."""
    try:
        folder = os.fsencode(os.getcwd())
    except OSError:
        folder = b""
    return f"{event} {client} ".encode() + (b"" if b"\n" in folder else folder) + b"\n" + data


def resolve_names(scope: str | None, user: str | None, project: str | None) -> tuple[str, str, str]:
    """Return scope, user and project of the options. Without a scope, the defaults are the login and the folder."""
    return (scope, user or "", project or "") if scope else ("", user or "me", project or ".")


def socket_path(environ: Mapping[str, str], *, store: str, tenant: str, agent: str, names: tuple[str, str, str]) -> str:
    """Return the path of the socket of an agent, for a store and the names of scope, user and project."""
    import hashlib

    name = hashlib.sha256("\0".join((store, tenant, agent, *names)).encode()).hexdigest()[:20]
    return os.path.join(folders.runtime_folder(environ), f"{name}.sock")


def connect(path: str, timeout: float) -> socket.socket | None:
    """Return a connection to the server, with a timeout in seconds; None if no server listens."""
    if not (hasattr(socket, "AF_UNIX") and hasattr(os, "getuid")):
        return None
    try:
        folder, found = os.stat(os.path.dirname(path)), os.lstat(path)
    except OSError:
        return None
    # Only this user can have made it (4).
    if {folder.st_uid, found.st_uid} != {os.getuid()} or folder.st_mode & 0o022:
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        return None
    return connection


def request(connection: socket.socket, message: bytes) -> bytes | None:
    """Return the answer to a message, and close the connection; None if the server did not handle it.

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
    """Return all bytes until the other side closes; ``ValueError`` if an event may not be that large."""
    parts, size = [], 0
    while part := connection.recv(65_536):
        parts.append(part)
        size += len(part)
        if size > MAX_EVENT_BYTES:
            raise ValueError(TOO_LARGE)
    return b"".join(parts)


def append_log(environ: Mapping[str, str], line: str) -> None:
    """Add a line to the log of hooks. An error is ignored, because there is nowhere to report it."""
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
    """Open a file and make it readable by this user only."""
    handle = os.open(path, flags, 0o600)
    if hasattr(os, "fchmod"):
        os.fchmod(handle, 0o600)
    return handle


def _options(arguments: Sequence[str]) -> dict[str, str]:
    return dict(zip(arguments[1::2], arguments[2::2], strict=False))


def _socket_of(arguments: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return the socket for a command line, or None if the rest of the package is needed to parse it."""
    options, store = _options(arguments), environ.get("KEEPWARD_DB", "")
    flags = arguments[1::2]
    is_plain = arguments[:1] and arguments[0] in EVENTS and len(arguments) % 2 and set(flags) <= set(_OPTIONS)
    store = options.get("--db", store)
    # Any other form of the path needs the complete parser.
    if not is_plain or len(set(flags)) < len(flags) or not store.startswith("/") or os.path.normpath(store) != store:
        return None
    return socket_path(
        environ,
        store=store,
        tenant=options.get("--tenant") or "default",
        names=resolve_names(options.get("--scope"), options.get("--user"), options.get("--project")),
        agent=options.get("--name") or options.get("--client") or "claude",
    )
