"""The Model Context Protocol: memory as tools, resources and prompts for agents.

Tools are functions of a handle and a row of data (`tool`, `tools`, `blocks`), gathered in `profiles`; `server`
speaks the protocol, on stdio and over HTTP, `connect` writes clients' settings.

Invariants
(1) Only `server` imports the SDK: it takes more than a second, and may not be installed.
(2) No profile has a tool that approves, rejects, rolls back, contains or erases.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from keepward.errors import InvalidInput

MISSING_EXTRA = 'this needs the extra `mcp`: pip install "keepward[mcp]"'


def is_installed() -> bool:
    """Whether the SDK is there."""
    return find_spec("mcp") is not None


def require_mcp() -> None:
    """Make sure that the SDK is there; the error says how to get it."""
    if not is_installed():
        raise InvalidInput(MISSING_EXTRA)


def jsonrpc_error(code: str, sentence: str) -> dict[str, Any]:
    """Return what a client of the protocol reads of a request that was answered before its message was read."""
    return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": sentence, "data": {"code": code}}}
