"""A process that has the store open answers hooks of the same user, so that none of them has to open it anew.

One JSON line goes each way over a socket in a folder that is the user's alone.

Invariants
(1) Only this user reaches the socket, and only events go over it: who asks, and where, is the listening process's own
    agent, which the name of the socket is made of.
(2) A socket that nobody answers any more is as good as none. Where a system has no such sockets there is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_log = logging.getLogger(__name__)
#: Bytes of an event, and seconds that either side waits for the other.
_LARGEST, _PATIENCE = 4 << 20, 5.0
#: Bytes of a path that a socket can have.
_LONGEST_PATH = 100


def place(folder: Path, *, store: str, tenant: str, scope: str, agent: str) -> Path:
    """Return the socket of an agent at a store and scope."""
    name = hashlib.sha256("\0".join((store, tenant, scope, agent)).encode()).hexdigest()[:20]
    return folder / f"{name}.sock"


def ask(path: Path, line: str) -> str | None:
    """Return the answer of whoever listens; None where nobody does."""
    if not hasattr(socket, "AF_UNIX") or not path.exists():
        return None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as end:
            end.settimeout(_PATIENCE)
            end.connect(str(path))
            end.sendall(line.encode() + b"\n")
            end.shutdown(socket.SHUT_WR)
            answer = json.loads(_all(end))
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, str) else None


@contextmanager
def listening(path: Path, reply: Callable[[str], str]) -> Iterator[bool]:
    """Answer at a socket until the block ends; False where there can be none or somebody listens there already."""
    if not hasattr(socket, "AF_UNIX") or len(os.fsencode(path)) > _LONGEST_PATH or ask(path, "{}") is not None:
        yield False
        return
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        end.bind(str(path))
        path.chmod(0o600)
        end.listen(16)
    except OSError as fault:
        end.close()
        _log.warning("hooks open the store anew: no socket (%s)", type(fault).__name__)
        yield False
        return
    thread = threading.Thread(target=_serve, args=(end, reply), name="keepward-hooks", daemon=True)
    thread.start()
    try:
        yield True
    finally:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
        thread.join(_PATIENCE)
        path.unlink(missing_ok=True)


def _serve(end: socket.socket, reply: Callable[[str], str]) -> None:
    while True:
        try:
            caller, _ = end.accept()
        except OSError:
            return
        with caller:
            caller.settimeout(_PATIENCE)
            try:
                caller.sendall(json.dumps(reply(_all(caller).decode().rstrip("\n"))).encode())
            except Exception as fault:  # noqa: BLE001  a hook that fails must not end the ones behind it
                _log.warning("a hook was not answered: %s", type(fault).__name__)


def _all(end: socket.socket) -> bytes:
    parts, size = [], 0
    while part := end.recv(65_536):
        parts.append(part)
        size += len(part)
        if size > _LARGEST:
            raise ValueError("an event is at most 4 MB")
    return b"".join(parts)
