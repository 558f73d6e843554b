"""A process with an open store answers hooks of the same user, so that hooks need not open the store themselves.

Only this user can connect to the socket, and requests contain only events. Actor and scope are those of the listening
process; they determine the name of the socket. A socket without a listener is replaced. Systems without Unix sockets
have no such server.
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
#: Seconds to wait for a silent caller.
_RECEIVE_TIMEOUT_S = 5.0
#: Maximum bytes of the path of a socket.
_MAX_SOCKET_PATH_LENGTH = 100


@contextmanager
def listen(path: Path, reply: Callable[[str, str, str, str], str]) -> Iterator[bool]:
    """Answer requests at a socket until the block ends. Yield False if there is no socket or another process listens.

    ``reply`` takes the name of the event, the name of the client, the working folder, and the client's event.
    """
    if not hasattr(socket, "AF_UNIX") or len(os.fsencode(path)) > _MAX_SOCKET_PATH_LENGTH:
        yield False
        return
    if other := connect(str(path), _RECEIVE_TIMEOUT_S):
        other.close()
        yield False
        return
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        server.bind(str(path))
        path.chmod(0o600)
        server.listen(16)
    except OSError as fault:
        server.close()
        _log.warning("hooks have to open the store themselves: no socket (%s)", type(fault).__name__)
        yield False
        return
    thread = threading.Thread(target=_serve, args=(server, reply), name="keepward-hooks", daemon=True)
    thread.start()
    try:
        yield True
    finally:
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        server.close()
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
                    event, client, folder = (*os.fsdecode(head).split(" ", 2), "", "")[:3]
                    caller.sendall(b"=" + reply(event, client, folder, data.decode()).encode())
            except Exception as fault:  # noqa: BLE001 - a failing hook must not stop the server
                _log.warning("a hook was not answered: %s", type(fault).__name__)
