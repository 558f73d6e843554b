"""Add our entry to a client's settings, or remove it.

Invariants
(1) Only our own entry changes. Another program under our name raises ``Conflict``.
(2) If a client's own command is installed, it adds the entry. Else strict JSON is parsed, changed and written, and YAML
    gets or loses the lines of the entry. No other file is changed: the error says what to add by hand.
(3) A second call with the same options changes nothing.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from keepward.errors import Conflict, InvalidInput
from keepward.mcp.settings_file import (
    MASKED_TOKEN,
    Action,
    Change,
    add_to_yaml,
    dump,
    dump_yaml,
    load,
    read,
    remove_from_yaml,
)

#: The name under which a client lists this server.
SERVER_NAME = "keepward"
#: Environment variable with the token of `keepward mcp`.
TOKEN_VARIABLE = "KEEPWARD_TOKEN"  # noqa: S105 - the name of a variable


class ClientConfig(NamedTuple):
    name: str
    title: str
    #: The key that contains its servers.
    container: str
    #: The file in a project's folder; empty if it has none.
    project: str
    #: The user's own file, below a folder of `file_of`.
    user: str
    #: Environment variable that names another folder for its settings.
    variable: str = ""

    @property
    def next_step(self) -> str:
        """What the user must do next."""
        return _NEXT_STEPS.get(self.name, "start a new session; `/mcp` lists it")


_NEXT_STEPS = {
    "opencode": "start a new session; `opencode mcp list` shows it",
    "cursor": "switch it on in Settings, MCP",
    "vscode": "start it with `MCP: List Servers`",
    "claude-desktop": "quit Claude Desktop and start it again",
    "windsurf": "press Refresh in the MCP settings of Cascade",
    "zed": "the agent panel's settings list it",
    "cline": "its list of MCP servers shows it",
    "goose": "start a new session; `goose info -v` lists it",
    "junie": "Settings, Tools, Junie, MCP Settings lists it",
}
_CLINE = "{programs}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
_CLAUDE_DESKTOP = "{programs}/Claude/claude_desktop_config.json"
_CLIENTS = (
    ("claude", "Claude Code", "mcpServers", ".mcp.json", "{user}/.claude.json", "CLAUDE_CONFIG_DIR"),
    ("codex", "Codex", "mcp_servers", ".codex/config.toml", "{user}/.codex/config.toml", "CODEX_HOME"),
    ("gemini", "Gemini CLI", "mcpServers", ".gemini/settings.json", "{user}/.gemini/settings.json"),
    ("opencode", "OpenCode", "mcp", "opencode.json", "{config}/opencode/opencode.json"),
    ("cursor", "Cursor", "mcpServers", ".cursor/mcp.json", "{user}/.cursor/mcp.json"),
    ("vscode", "VS Code", "servers", ".vscode/mcp.json", "{programs}/Code/User/mcp.json"),
    ("claude-desktop", "Claude Desktop", "mcpServers", "", _CLAUDE_DESKTOP),
    ("windsurf", "Windsurf", "mcpServers", "", "{user}/.codeium/windsurf/mcp_config.json"),
    ("zed", "Zed", "context_servers", ".zed/settings.json", "{zed}/settings.json"),
    ("cline", "Cline", "mcpServers", "", _CLINE),
    ("goose", "Goose", "extensions", "", "{goose}/config.yaml"),
    ("junie", "JetBrains Junie", "mcpServers", ".junie/mcp/mcp.json", "{user}/.junie/mcp/mcp.json"),
)
CLIENTS = {row[0]: ClientConfig(*row) for row in _CLIENTS}


def client_of(name: str) -> ClientConfig:
    if name not in CLIENTS:
        raise InvalidInput(f"the client is one of {', '.join(CLIENTS)}")
    return CLIENTS[name]


def file_of(client: ClientConfig, project: Path | None, environ: Mapping[str, str]) -> Path:
    """Return the settings file of a client: in a project's folder, or the user's own."""
    if project is not None:
        if not client.project:
            raise InvalidInput(f"{client.title} has no project settings; leave out --project")
        if not project.is_dir():
            raise InvalidInput("--project takes an existing folder")
        return project / client.project
    if environ.get(client.variable):
        return Path(environ[client.variable]).expanduser() / Path(client.user).name
    home, xdg = home_folder(), environ.get("XDG_CONFIG_HOME", "")
    config = Path(xdg) if xdg.startswith("/") else home / ".config"
    programs, zed, goose = config, config / "zed", config / "goose"
    if sys.platform == "darwin":
        programs = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        programs = Path(environ.get("APPDATA", home / "AppData" / "Roaming"))
        zed, goose = programs / "zed", programs / "Block" / "goose" / "config"
    return Path(client.user.format(user=home, config=config, programs=programs, zed=zed, goose=goose))


def home_folder() -> Path:
    try:
        return Path.home()
    except RuntimeError as fault:
        raise InvalidInput("there is no home folder; name a project with --project DIR") from fault


#: The program of a client that has a command to add a server.
_PROGRAMS = {"claude": "claude", "codex": "codex", "gemini": "gemini", "vscode": "code"}


def has_program(client: ClientConfig, environ: Mapping[str, str]) -> bool:
    """Whether a client has a command to add a server, and it is installed."""
    program = _PROGRAMS.get(client.name)
    return program is not None and shutil.which(program, path=environ.get("PATH")) is not None


def _add_command(client: ClientConfig, command: list[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the client's own command that adds our entry."""
    if client.name == "vscode":
        entry = {"name": SERVER_NAME, **entry_of(client, command, env)}
        return ("code", "--add-mcp", json.dumps(entry, ensure_ascii=False))
    flags = [word for name, value in env.items() for word in ("--env", f"{name}={value}")]
    # In some clients --env takes all words before the next option, so another option or the name follows it.
    names = [SERVER_NAME, *flags] if client.name == "codex" else [*flags, "--scope", "user", SERVER_NAME]
    first = command[:1] if client.name == "gemini" else []
    return (client.name, "mcp", "add", *names, *first, "--", *command[len(first) :])


def entry_of(client: ClientConfig, command: list[str], env: Mapping[str, str]) -> dict[str, Any]:
    """Return the entry for a server that the client starts, in the client's format."""
    if client.name == "opencode":
        return {"type": "local", "command": command, **({"environment": dict(env)} if env else {})}
    if client.name == "goose":
        named = {"name": SERVER_NAME, "type": "stdio", "enabled": True, "timeout": 300}
        return {**named, "cmd": command[0], "args": command[1:], "envs": dict(env)}
    kind = {"type": "stdio"} if client.name in {"claude", "vscode"} else {}
    return {**kind, "command": command[0], "args": command[1:], **({"env": dict(env)} if env else {})}


def environment_of(entry: Any) -> dict[str, str]:
    """Return the environment variables of an entry."""
    values = (entry.get(name) for name in ("env", "environment", "envs")) if isinstance(entry, dict) else ()
    found = next((each for each in values if each is not None), None)
    return {name: str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def command_of(entry: Any) -> list[str]:
    """Return the command line of an entry, its program first; empty if there is none."""
    found = [entry.get("command", entry.get("cmd", [])), entry.get("args", [])] if isinstance(entry, dict) else []
    return [str(word) for words in found for word in (words if isinstance(words, list) else [words])]


def _snippet(client: ClientConfig, entry: dict[str, Any]) -> str:
    """Return the text of an entry that a user adds to the settings by hand."""
    if client.name == "goose":
        return f"Add this under `{client.container}`:\n{dump_yaml({SERVER_NAME: entry})}".rstrip()
    if client.name != "codex":
        return f"Add this under `{client.container}`: {json.dumps({SERVER_NAME: entry}, ensure_ascii=False)}"
    env = entry.pop("env", {})
    values = entry | {f"env.{name}": value for name, value in env.items()}
    # Strings and lists of strings are the same in TOML and JSON, except for DEL.
    rows = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    repeat = ", and run the command again for the token" if env.get(TOKEN_VARIABLE) else ""
    shown = "\n".join((f"Add this at its end{repeat}:", f"[{client.container}.{SERVER_NAME}]", *rows))
    return shown.replace("\x7f", "\\u007f")


class ExistingToken(NamedTuple):
    """The token of our entry in a client's settings."""

    secret: str
    #: The store that the entry names.
    store: str | None


def existing_token(client: ClientConfig, path: Path) -> ExistingToken | None:
    """Return the token of our entry; None if there is no readable entry, or no token in it."""
    try:
        _, servers = _parsed(client, path, read(path))
    except (Conflict, InvalidInput):
        return None
    entry = servers.get(SERVER_NAME)
    secret = environment_of(entry).get(TOKEN_VARIABLE)
    return ExistingToken(secret, dict(pairwise(command_of(entry))).get("--db")) if secret else None


def plan_connect(
    client: ClientConfig, path: Path, command: list[str], env: Mapping[str, str], *, vendor: bool = False
) -> Change:
    """Return the change that makes a client start this command as its server. An error says what to add by hand.

    ``vendor`` is true if the client's own program adds a new entry.

    Raises:
        InvalidInput: the settings cannot be edited, or a path in the command or environment is not UTF-8.
    """
    try:
        "".join((*command, *env.values())).encode()
    except UnicodeEncodeError as fault:
        advice = "rename that file or folder, or name another with --db, --config or KEEPWARD_HOME"
        raise InvalidInput(f"a path in the entry is not UTF-8, as settings are; {advice}") from fault
    secret = env.get(TOKEN_VARIABLE, "")
    masked = {**env, TOKEN_VARIABLE: MASKED_TOKEN} if secret else env
    try:
        before = read(path)
        if vendor and SERVER_NAME not in before:
            return Change(path, "added", before, "", _add_command(client, command, masked), secret)
        settings, servers = _parsed(client, path, before)
        existing = servers.get(SERVER_NAME)
        # Other keys of the entry belong to the user, such as a time limit and whether it is enabled.
        theirs = {key: value for key, value in (existing or {}).items() if key in {"enabled", "timeout"}}
        wanted = (existing or {}) | entry_of(client, command, {**environment_of(existing), **env}) | theirs
        action: Action = "unchanged" if wanted == existing else "added" if existing is None else "updated"
        if path.suffix == ".json":
            servers[SERVER_NAME] = wanted
            return Change(path, action, before, dump(settings, before))
        if path.suffix == ".yaml":
            without = before if existing is None else remove_from_yaml(before, client.container, SERVER_NAME)
            after = add_to_yaml(without, client.container, {SERVER_NAME: wanted})
            servers[SERVER_NAME] = wanted
            if load(after, suffix=path.suffix) != settings:
                raise InvalidInput("the entry cannot be added to YAML of this form")
            return Change(path, action, before, before if action == "unchanged" else after)
        # In TOML only a token is replaced.
        earlier = environment_of(existing).get(TOKEN_VARIABLE)
        after = before.replace(earlier, secret) if earlier else before
        if _parsed(client, path, after)[1].get(SERVER_NAME) == wanted:
            return Change(path, action, before, after)
        # The client's command replaces the entry, so the user's own keys would be lost.
        if vendor and wanted == entry_of(client, command, env):
            return Change(path, action, before, "", _add_command(client, command, masked), secret)
        raise InvalidInput("TOML is not edited automatically")
    except InvalidInput as fault:
        shown = _snippet(client, entry_of(client, command, masked))
        raise InvalidInput(f"{path.name}: {fault}; the file was not changed. {shown}") from fault


def plan_disconnect(client: ClientConfig, path: Path, *, vendor: bool = False) -> Change:
    """Return the change that removes our entry."""
    before = read(path)
    if SERVER_NAME not in before:
        return Change(path, "absent", before, before)
    try:
        settings, servers = _parsed(client, path, before)
        if SERVER_NAME not in servers:
            return Change(path, "absent", before, before)
        del servers[SERVER_NAME]
        if not settings[client.container]:
            del settings[client.container]
        if path.suffix == ".json":
            return Change(path, "removed", before, dump(settings, before))
        if path.suffix == ".yaml":
            after = remove_from_yaml(before, client.container, SERVER_NAME)
            if load(after, suffix=path.suffix) == settings:
                return Change(path, "removed", before, after)
            raise InvalidInput("the entry cannot be removed from YAML of this form")
        if vendor:
            return Change(path, "removed", before, "", (client.name, "mcp", "remove", SERVER_NAME))
        raise InvalidInput("TOML is not edited automatically")
    except InvalidInput as fault:
        by_hand = f"remove the server `{SERVER_NAME}` by hand and revoke its token with `keepward token revoke`"
        raise InvalidInput(f"{path.name}: {fault}; {by_hand}") from fault


def _parsed(client: ClientConfig, path: Path, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of a text, and the servers in them; the key of the servers is added if it is missing."""
    settings = load(text, suffix=path.suffix)
    servers = settings.setdefault(client.container, {})
    if not isinstance(servers, dict):
        raise InvalidInput(f"`{client.container}` is not an object, as {client.title} writes it")
    # OpenCode's second major version nests its servers, but also reads entries of the first.
    nested = servers.get("servers") if client.name == "opencode" and SERVER_NAME not in servers else None
    if isinstance(nested, dict) and "type" not in nested:
        servers = nested
    entry = servers.get(SERVER_NAME)
    if entry is not None and not {"keepward", "mcp"} <= {Path(word).stem for word in command_of(entry)}:
        raise Conflict(f"{path.name} has another program as server `{SERVER_NAME}`; rename or remove it first")
    return settings, servers
