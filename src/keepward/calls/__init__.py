"""The verbs as Python calls: a signature for each, over one way to send a request.

``Memory`` sends it to the store that it has opened, ``Client`` to a server; the values and the errors are the same.
"""

from __future__ import annotations

from typing import Any, TypeVar

from keepward.verbs import Request

R = TypeVar("R")


class Calls:
    """What carries out requests."""

    def _send(self, request: Request[R], **local: Any) -> R:
        """Have a request carried out; ``local`` is what stays in this process, such as ``progress``."""
        raise NotImplementedError


def send(handle: Calls, request: Request[R], **local: Any) -> R:
    """Have a request carried out by a handle; for surfaces, which make requests from what they read."""
    return handle._send(request, **local)  # noqa: SLF001  a part of the handle
