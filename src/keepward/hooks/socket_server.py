"""A process that has the store open answers hooks of the same user, so that none of them has to open it anew.

Invariants
(1) Only this user reaches the socket, and only events go over it: who asks, and from which scope down, is the listening
    process's own agent, which the name of the socket is made of.
(2) A socket that nobody answers any more is as good as none. Where a system has no such sockets there is none.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from keepward.hooks.socket_client import connect, recv_all

_log = logging.getLogger(__name__)
#: Seconds for which a caller that says nothing is waited for.
_RECEIVE_TIMEOUT_S = 5.0
#: Bytes of a path that a socket can have.
_MAX_SOCKET_PATH_LENGTH = 100


@contextmanager
def listen(path: Path, reply: Callable[[str, str, str, str], str]) -> Iterator[bool]:
    """Answer at a socket until the block ends; False where there can be none or somebody listens there already.

    ``reply`` takes the name of an event, that of a client, the working folder, and what the client wrote.
    """
    if not hasattr(socket, "AF_UNIX") or len(os.fsencode(path)) > _MAX_SOCKET_PATH_LENGTH:
        yield False
        return
    if other := connect(str(path), _RECEIVE_TIMEOUT_S):
        other.close()
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
        thread.join(_RECEIVE_TIMEOUT_S)
        path.unlink(missing_ok=True)


def _serve(connection: socket.socket, reply: Callable[[str, str, str, str], str]) -> None:
    while True:
        try:
            caller, _ = connection.accept()
        except OSError:
            return
        with caller:
            caller.settimeout(_RECEIVE_TIMEOUT_S)
            try:
                if message := recv_all(caller):
                    head, _, data = message.partition(b"\n")
                    what, client, folder = (*os.fsdecode(head).split(" ", 2), "", "")[:3]
                    caller.sendall(b"=" + reply(what, client, folder, data.decode()).encode())
            except Exception as fault:  # noqa: BLE001  a hook that fails must not end the ones behind it
                _log.warning("a hook was not answered: %s", type(fault).__name__)
