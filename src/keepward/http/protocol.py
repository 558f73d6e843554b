"""The parser of requests: h11, without what it takes from old clients.

A bare line feed and a folded header are allowed to be read in two ways, so a proxy in front may see another request. A
request with one is refused with 400, and the connection closed.
"""

from __future__ import annotations

import re
from typing import Any

import h11
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol

_LOOSE_LINE = re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)|\n[ \t]")
_BLANK_LINE = re.compile(rb"\n\r?\n")


class _StrictBuffer(ReceiveBuffer):
    """The buffer of a connection. It yields the lines before a body, and those of a trailer."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        # What was searched without a result is searched again only where it may continue.
        searched = max(0, self._multiple_lines_search - 2)
        end = _BLANK_LINE.search(self._data, searched)
        if _LOOSE_LINE.search(self._data, searched, len(self._data) if end is None else end.end()):
            raise h11.LocalProtocolError("a line ends without CR LF, or continues the one before")
        lines: list[bytearray] | None = super().maybe_extract_lines()
        return lines


class StrictProtocol(H11Protocol):
    """A connection of the server."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # h11 has no setting for this.
        self.conn._receive_buffer = _StrictBuffer()  # noqa: SLF001

    def send_400_response(self, msg: str) -> None:
        """Refuse a request, or close the connection if the request was answered before its end."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            super().send_400_response(msg)
        else:
            self.transport.close()
