"""Clients: where each keeps the servers it starts, and how it writes one down.

Invariants
(1) An entry names a program and its arguments; the token that it may hold is an agent's, and no other key is in it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from keepward.errors import InvalidInput

#: The name under which a client lists this server.
SERVER = "keepward"


class Client(NamedTuple):
    """One client program."""

    name: str
    title: str
    #: The file in a project's folder, and the key under which its servers stand.
    project: str
    container: str
    #: What to do for the client to see it.
    then: str = "start a new session; `/mcp` lists it"


CLIENTS = {
    each.name: each
    for each in (
        Client("claude", "Claude Code", ".mcp.json", "mcpServers"),
        Client("codex", "Codex", ".codex/config.toml", "mcp_servers"),
        Client("gemini", "Gemini CLI", ".gemini/settings.json", "mcpServers"),
        Client("opencode", "OpenCode", "opencode.json", "mcp", "start a new session; `opencode mcp list` shows it"),
        Client("cursor", "Cursor", ".cursor/mcp.json", "mcpServers", "switch it on in Settings, MCP"),
        Client("vscode", "VS Code", ".vscode/mcp.json", "servers", "start it with `MCP: List Servers`"),
    )
}


def client_of(name: str) -> Client:
    """Return a client by name.

    Raises:
        InvalidInput: it is none of those known here.
    """
    if name not in CLIENTS:
        raise InvalidInput(f"connect takes {', '.join(CLIENTS)}")
    return CLIENTS[name]


def file_of(client: Client, project: Path | None, environ: Mapping[str, str]) -> Path:
    """Return the settings file of a client: in a project's folder, or the user's own.

    Raises:
        InvalidInput: there is no home folder, or no such project.
    """
    if project is not None:
        if not project.is_dir():
            raise InvalidInput("--project takes a folder that is there")
        return _spelled(project / client.project)
    if client.name == "codex" and environ.get("CODEX_HOME"):
        return Path(environ["CODEX_HOME"]).expanduser() / "config.toml"
    home, xdg = _home(environ), environ.get("XDG_CONFIG_HOME", "")
    config = Path(xdg) if xdg.startswith("/") else home / ".config"
    match client.name, sys.platform:
        case "claude", _:
            folder = environ.get("CLAUDE_CONFIG_DIR")
            return (Path(folder).expanduser() if folder else home) / ".claude.json"
        case "opencode", _:
            return _spelled(config / "opencode" / "opencode.json")
        case "vscode", "darwin":
            return home / "Library" / "Application Support" / "Code" / "User" / "mcp.json"
        case "vscode", "win32":
            return Path(environ.get("APPDATA", home / "AppData" / "Roaming")) / "Code" / "User" / "mcp.json"
        case "vscode", _:
            return config / "Code" / "User" / "mcp.json"
    return home / client.project


def entry_of(client: Client, command: list[str], env: Mapping[str, str], *, nested: bool) -> dict[str, Any]:
    """Return how a client writes down a server that it starts itself."""
    if client.name == "opencode":
        # The second major version nests its servers and knows no `enabled`.
        enabled = {} if nested else {"enabled": True}
        return {"type": "local", "command": command, **enabled, **({"environment": dict(env)} if env else {})}
    kind = {"type": "stdio"} if client.name in {"claude", "vscode"} else {}
    return {**kind, "command": command[0], "args": command[1:], **({"env": dict(env)} if env else {})}


def environment_of(entry: Any) -> dict[str, str]:
    """Return what an entry sets in the environment of its program."""
    for key in ("env", "environment"):
        if isinstance(entry, dict) and isinstance(entry.get(key), dict):
            return {str(name): str(value) for name, value in entry[key].items()}
    return {}


def words_of(entry: Any) -> list[str]:
    """Return the command line of an entry, its program first; empty where it is none."""
    if not isinstance(entry, dict):
        return []
    command, args = entry.get("command", ""), entry.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [])]
    return [str(word) for word in words]


def is_ours(entry: Any) -> bool:
    """Whether an entry starts this program's server."""
    names = [Path(word).stem for word in words_of(entry)]
    return "mcp" in names and "keepward" in names


def place_of(client: Client, container: Mapping[str, Any]) -> list[str]:
    """Return the keys under which our entry stands, or would."""
    inner = container.get("servers")
    # OpenCode's second major version nests its servers, and still reads one written for the first.
    if client.name == "opencode" and isinstance(inner, dict) and "type" not in inner:
        return [client.container, *(("servers",) if SERVER in inner or SERVER not in container else ()), SERVER]
    return [client.container, SERVER]


def _spelled(path: Path) -> Path:
    """Return the variant with comments where that is the one that is there."""
    other = path.with_suffix(".jsonc")
    return other if path.name == "opencode.json" and not path.exists() and other.exists() else path


def _home(environ: Mapping[str, str]) -> Path:
    named = environ.get("USERPROFILE") if sys.platform == "win32" else environ.get("HOME")
    if named:
        return Path(named)
    try:
        return Path.home()
    except RuntimeError as fault:
        raise InvalidInput("there is no home folder here; name a project with --project DIR") from fault
