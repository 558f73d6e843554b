"""Clients: where each keeps the servers it starts, and how it writes one down.

Invariants
(1) An entry names a program and its arguments; the token that it may hold is an agent's, and no other key is in it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from keepward.errors import InvalidInput

#: The name under which a client lists this server.
SERVER = "keepward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One client program."""

    name: str
    title: str
    #: The file in a project's folder, and the key under which its servers stand.
    project: str
    container: str
    form: Literal["json", "toml"] = "json"
    #: What to do for the client to see it.
    then: str = "restart it"


CLIENTS = {
    client.name: client
    for client in (
        Client(
            name="claude",
            title="Claude Code",
            project=".mcp.json",
            container="mcpServers",
            then="start a new session; `/mcp` lists it",
        ),
        Client(
            name="codex",
            title="Codex",
            project=".codex/config.toml",
            container="mcp_servers",
            form="toml",
            then="start a new session; `/mcp` lists it",
        ),
        Client(
            name="gemini",
            title="Gemini CLI",
            project=".gemini/settings.json",
            container="mcpServers",
            then="start a new session; `/mcp` lists it",
        ),
        Client(
            name="opencode",
            title="OpenCode",
            project="opencode.json",
            container="mcp",
            then="start a new session; `opencode mcp list` shows it",
        ),
        Client(
            name="cursor",
            title="Cursor",
            project=".cursor/mcp.json",
            container="mcpServers",
            then="switch it on in Settings, MCP",
        ),
        Client(
            name="vscode",
            title="VS Code",
            project=".vscode/mcp.json",
            container="servers",
            then="start it with `MCP: List Servers`",
        ),
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
    home = _home(environ)
    config = (
        Path(environ["XDG_CONFIG_HOME"]) if environ.get("XDG_CONFIG_HOME", "").startswith("/") else home / ".config"
    )
    match client.name:
        case "claude":
            folder = environ.get("CLAUDE_CONFIG_DIR")
            return Path(folder).expanduser() / ".claude.json" if folder else home / ".claude.json"
        case "opencode":
            return _spelled(config / "opencode" / "opencode.json")
        case "vscode":
            return _code(home, config, environ) / "mcp.json"
        case _:
            return home / client.project


def entry_of(
    client: Client, command: list[str], env: Mapping[str, str], container: Mapping[str, Any]
) -> dict[str, Any]:
    """Return how a client writes down a server that it starts itself; ``container`` is where it goes."""
    if client.name == "opencode":
        # The second major version nests its servers and knows no `enabled`.
        entry: dict[str, Any] = {"type": "local", "command": command}
        if not is_nested(client, container):
            entry["enabled"] = True
        return entry | ({"environment": dict(env)} if env else {})
    entry = {"command": command[0], "args": command[1:]}
    if client.name in {"claude", "vscode"}:
        entry = {"type": "stdio", **entry}
    return entry | ({"env": dict(env)} if env else {})


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


def is_nested(client: Client, container: Mapping[str, Any]) -> bool:
    """Whether OpenCode's servers stand one level deeper, as its second major version writes them."""
    inner = container.get("servers")
    return client.name == "opencode" and isinstance(inner, dict) and "type" not in inner


def is_ours(entry: Any) -> bool:
    """Whether an entry starts this program's server."""
    names = [Path(word).stem for word in words_of(entry)]
    return "mcp" in names and "keepward" in names


def _spelled(path: Path) -> Path:
    """Return the variant with comments where that is the one that is there."""
    other = path.with_suffix(".jsonc")
    return other if path.name == "opencode.json" and not path.exists() and other.exists() else path


def _code(home: Path, config: Path, environ: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "Code" / "User"
    if sys.platform == "win32":
        return Path(environ.get("APPDATA", home / "AppData" / "Roaming")) / "Code" / "User"
    return config / "Code" / "User"


def _home(environ: Mapping[str, str]) -> Path:
    named = environ.get("USERPROFILE") if sys.platform == "win32" else environ.get("HOME")
    if named:
        return Path(named)
    try:
        return Path.home()
    except RuntimeError as fault:
        raise InvalidInput("there is no home folder here; name a project with --project DIR") from fault
