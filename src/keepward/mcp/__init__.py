"""The Model Context Protocol: memory as tools, resources and prompts for agents.

`tool`, `tools` and `blocks` define tools, and `profiles` combines them into sets. `server` serves the protocol on stdio
and over HTTP. `connect` writes the settings of clients. Only `server` imports the SDK, which takes more than a second
and may not be installed. No profile has a tool that approves, rejects, rolls back, contains or erases.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from keepward.errors import InvalidInput

MISSING_EXTRA = 'this needs the extra `mcp`: pip install "keepward[mcp]"'


def is_installed() -> bool:
    """Whether the SDK is installed."""
    return find_spec("mcp") is not None


def require_mcp() -> None:
    """Raise ``InvalidInput`` with the install command if the SDK is missing."""
    if not is_installed():
        raise InvalidInput(MISSING_EXTRA)


def jsonrpc_error(code: str, sentence: str) -> dict[str, Any]:
    """Return a JSON-RPC error for a request that is refused before its message is parsed."""
    return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": sentence, "data": {"code": code}}}
