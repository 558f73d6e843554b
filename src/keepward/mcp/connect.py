"""Add our entry to a client's settings, or remove it.

Invariants
(1) Only our own entry changes. The new text is parsed and compared with the expected result before it is written.
(2) If a client's own command is installed, it adds and removes the entry. Else the file is edited: strict JSON, or TOML
    with a header for each table. Any other file is not changed, and the error says what to add by hand.
(3) The file is replaced atomically, and a copy of the earlier file is stored next to it.
(4) A second call with the same options changes nothing.
(5) An entry contains a program and its arguments. Its token is an agent's and appears on no command line and in no
    output. Only its owner can read a file with a token.
(6) An unknown client, or a file that cannot be read or edited, raises ``InvalidInput``. Another program under our name
    raises ``Conflict``, and an error of the system ``StoreUnavailable``. The file is then not changed.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Literal, NamedTuple

from keepward import durable
from keepward.errors import Conflict, InvalidInput, StoreUnavailable

#: The name under which a client lists this server.
SERVER_NAME = "keepward"


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
}
_CLINE = "{programs}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
_CLAUDE_DESKTOP = "{programs}/Claude/claude_desktop_config.json"
_CLIENTS = (
    ("claude", "Claude Code", "mcpServers", ".mcp.json", "{home}/.claude.json", "CLAUDE_CONFIG_DIR"),
    ("codex", "Codex", "mcp_servers", ".codex/config.toml", "{home}/.codex/config.toml", "CODEX_HOME"),
    ("gemini", "Gemini CLI", "mcpServers", ".gemini/settings.json", "{home}/.gemini/settings.json"),
    ("opencode", "OpenCode", "mcp", "opencode.json", "{config}/opencode/opencode.json"),
    ("cursor", "Cursor", "mcpServers", ".cursor/mcp.json", "{home}/.cursor/mcp.json"),
    ("vscode", "VS Code", "servers", ".vscode/mcp.json", "{programs}/Code/User/mcp.json"),
    ("claude-desktop", "Claude Desktop", "mcpServers", "", _CLAUDE_DESKTOP),
    ("windsurf", "Windsurf", "mcpServers", "", "{home}/.codeium/windsurf/mcp_config.json"),
    ("zed", "Zed", "context_servers", ".zed/settings.json", "{zed}/settings.json"),
    ("cline", "Cline", "mcpServers", "", _CLINE),
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
        return _existing_variant(project / client.project)
    if environ.get(client.variable):
        return Path(environ[client.variable]).expanduser() / Path(client.user).name
    home, xdg = home_folder(environ), environ.get("XDG_CONFIG_HOME", "")
    config = Path(xdg) if xdg.startswith("/") else home / ".config"
    programs, zed = config, config / "zed"
    if sys.platform == "darwin":
        programs = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        programs = Path(environ.get("APPDATA", home / "AppData" / "Roaming"))
        zed = programs / "zed"
    return _existing_variant(Path(client.user.format(home=home, config=config, programs=programs, zed=zed)))


def vendor_command(client: ClientConfig, command: Sequence[str], env: Mapping[str, str], *, remove: bool) -> list[str]:
    """Return the client's own command that adds or removes our entry; empty if it has none."""
    if client.name == "vscode" and not remove:
        entry = {"name": SERVER_NAME, **entry_of(client, list(command), env, nested=False)}
        return ["code", "--add-mcp", json.dumps(entry, ensure_ascii=False)]
    if client.name not in {"claude", "codex", "gemini"}:
        return []
    scope = [] if client.name == "codex" else ["--scope", "user"]
    if remove:
        return [client.name, "mcp", "remove", *scope, SERVER_NAME]
    flags = [word for name, value in env.items() for word in ("--env", f"{name}={value}")]
    # The option --env of some takes every word up to the next option.
    names = [SERVER_NAME, *flags] if client.name == "codex" else [*flags, *scope, SERVER_NAME]
    first = list(command[:1]) if client.name == "gemini" else []
    return [client.name, "mcp", "add", *names, *first, "--", *command[len(first) :]]


def vendor_program(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the path of a client's own program, if it is installed."""
    return shutil.which(name, path=environ.get("PATH"))


def entry_of(client: ClientConfig, command: list[str], env: Mapping[str, str], *, nested: bool) -> dict[str, Any]:
    """Return the entry for a server that the client starts, in the client's format."""
    if client.name == "opencode":
        # The second major version nests its servers and has no `enabled`.
        enabled = {} if nested else {"enabled": True}
        return {"type": "local", "command": command, **enabled, **({"environment": dict(env)} if env else {})}
    kind = {"type": "stdio"} if client.name in {"claude", "vscode"} else {}
    return {**kind, "command": command[0], "args": command[1:], **({"env": dict(env)} if env else {})}


def environment_of(entry: Any) -> dict[str, str]:
    """Return the environment variables of an entry."""
    for key in ("env", "environment"):
        if isinstance(entry, dict) and isinstance(entry.get(key), dict):
            return {str(name): str(value) for name, value in entry[key].items()}
    return {}


def command_of(entry: Any) -> list[str]:
    """Return the command line of an entry, its program first; empty if there is none."""
    if not isinstance(entry, dict):
        return []
    command, args = entry.get("command", ""), entry.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [])]
    return [str(word) for word in words]


def is_ours(entry: Any) -> bool:
    """Whether an entry starts this program's server."""
    names = [Path(word).stem for word in command_of(entry)]
    return "mcp" in names and "keepward" in names


def entry_path(client: ClientConfig, root: Mapping[str, Any]) -> list[str]:
    """Return the path of keys of our entry, whether it exists or not."""
    inner = root.get("servers")
    # OpenCode's second major version nests its servers, but also reads entries of the first.
    if client.name == "opencode" and isinstance(inner, dict) and "type" not in inner:
        return [
            client.container,
            *(("servers",) if SERVER_NAME in inner or SERVER_NAME not in root else ()),
            SERVER_NAME,
        ]
    return [client.container, SERVER_NAME]


def _existing_variant(path: Path) -> Path:
    """Return the path of the variant with comments (.jsonc) if only that file exists."""
    other = path.with_suffix(".jsonc")
    return other if path.name == "opencode.json" and not path.exists() and other.exists() else path


def home_folder(environ: Mapping[str, str]) -> Path:
    named = environ.get("USERPROFILE") if sys.platform == "win32" else environ.get("HOME")
    if named:
        return Path(named)
    try:
        return Path.home()
    except RuntimeError as fault:
        raise InvalidInput("there is no home folder; name a project with --project DIR") from fault


_UNSUPPORTED_SYNTAX = "its syntax cannot be edited automatically"
_HEADER = re.compile(r"\s*\[")


def load(text: str, *, toml: bool) -> dict[str, Any]:
    """Return the parsed object of a text; an empty one if the text is empty."""
    try:
        if toml:
            return tomllib.loads(text)
        value = json.loads(text, object_pairs_hook=_reject_duplicate_keys) if text.strip() else {}
    except (ValueError, RecursionError) as fault:
        raise InvalidInput(f"it is not {'TOML' if toml else 'plain JSON'}") from fault
    if not isinstance(value, dict):
        raise InvalidInput("it is not an object")
    return value


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def set_key(text: str, keys: Sequence[Any], entry: Any, *, toml: bool) -> str:
    """Return the text with an entry at a path of keys; 0 is the front of a list. Missing tables and lists are made."""
    expected: Any = load(text, toml=toml)
    inner, last = expected, keys[-1]
    for key, following in pairwise(keys):
        kind = list if following == 0 else dict
        inner = inner.setdefault(key, kind())
        if not isinstance(inner, kind):
            raise InvalidInput(_UNSUPPORTED_SYNTAX)
    if isinstance(inner, list):
        inner.insert(0, entry)
    else:
        inner[last] = entry
    return _verify_edit(_with_table(text, keys, entry) if toml else _format_json(text, expected), expected, toml=toml)


def delete_key(text: str, keys: Sequence[Any], *, toml: bool) -> str:
    """Return the text without the value at a path, and without parent tables and lists that are then empty."""
    expected = load(text, toml=toml)
    tables: list[Any] = [expected]
    for key in keys[:-1]:
        tables.append(tables[-1][key])
    depth = len(keys) - 1
    del tables[depth][keys[depth]]
    while depth and not tables[depth]:
        depth -= 1
        del tables[depth][keys[depth]]
    if not toml:
        return _verify_edit(_format_json(text, expected), expected, toml=False)
    result = _lines_without(text, keys)
    # An empty header of a parent table may remain.
    left: dict[str, Any] = {key: {} for key in keys[:1] if load(result, toml=True).get(key) == {}}
    return _verify_edit(result, expected | left, toml=True)


def _verify_edit(text: str, expected: dict[str, Any], *, toml: bool) -> str:
    """Return the text if it parses to the expected value (1)."""
    with suppress(InvalidInput):
        if load(text, toml=toml) == expected:
            return text
    raise InvalidInput(_UNSUPPORTED_SYNTAX)


def _format_json(text: str, value: Any) -> str:
    """Return a value as JSON, with the indentation and line ends of a text."""
    found = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    newline = "\r\n" if "\r\n" in text else "\n"
    dumped = json.dumps(value, indent=found[1] if found else "  ", ensure_ascii=False)
    return dumped.replace("\n", newline) + (newline if text.endswith("\n") or not text.strip() else "")


def _with_table(text: str, keys: Sequence[str], entry: Mapping[str, Any]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    plain = {key: value for key, value in entry.items() if not isinstance(value, Mapping)}
    tables = {(): plain} | {(key,): value for key, value in entry.items() if isinstance(value, Mapping)}
    rows = []
    for path, values in tables.items():
        rows.append(f"[{'.'.join(map(_toml_key, (*keys, *path)))}]")
        rows += [f"{_toml_key(key)} = {_toml(value)}" for key, value in values.items()]
    head = _lines_without(text, keys)
    head += newline if head and not head.endswith("\n") else ""
    return head + (newline if head.strip() else "") + "".join(row + newline for row in rows)


def _lines_without(text: str, keys: Sequence[str]) -> str:
    """Return a TOML text without the tables at a path and below, and without the empty line above each."""
    dotted = r"\s*\.\s*".join(f'(?:{re.escape(key)}|"{re.escape(key)}")' for key in keys)
    wanted = re.compile(rf"\s*\[\s*{dotted}\s*[.\]]")
    lines = text.splitlines(keepends=True)
    heads = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    for start, after in reversed(list(zip(heads, [*heads[1:], len(lines)], strict=False))):
        if not wanted.match(lines[start]):
            continue
        end = after
        # Comments above the next header belong to the next table.
        while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
            end -= 1
        del lines[start - 1 if start and not lines[start - 1].strip() else start : end]
    return "".join(lines)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)


def _toml(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return f"[{', '.join(map(_toml, value))}]"
    if not isinstance(value, str | int | float):
        raise InvalidInput(_UNSUPPORTED_SYNTAX)
    # A basic string of TOML has the escapes of JSON, and one for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


#: Seconds that a client's own command may take.
VENDOR_TIMEOUT_S = 30.0
Action = Literal["added", "updated", "removed", "unchanged", "absent"]
#: Suffix of the copy of the earlier file.
BACKUP_SUFFIX = ".before-keepward"
#: Environment variable with the token of `keepward mcp`.
TOKEN_VARIABLE = "KEEPWARD_TOKEN"  # noqa: S105 - the name of a variable
#: Replaces tokens in output.
MASKED_TOKEN = "kw_***"  # noqa: S105  no password
_TOKENS = re.compile(r"kw_[0-9A-Za-z]{43}")


class Change(NamedTuple):
    """The change of one settings file."""

    client: ClientConfig
    path: Path
    action: Action
    before: str
    after: str
    #: True if we made the file: then a removal deletes it and makes no copy.
    owned: bool = False
    #: The client's own command that makes the change, with a mask instead of the token.
    command: tuple[str, ...] = ()
    #: The token that replaces the mask.
    secret: str = ""

    @property
    def diff(self) -> str:
        """The lines that differ, with masked tokens and no context, because that may contain other servers' secrets."""
        if self.command:
            return shlex.join(self.command)
        before, after = (_TOKENS.sub(MASKED_TOKEN, text).splitlines() for text in (self.before, self.after))
        lines = difflib.unified_diff(before, after, lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


class ExistingToken(NamedTuple):
    """The token of our entry in a client's settings."""

    secret: str
    #: The store that the entry names.
    store: str | None


def existing_token(client: ClientConfig, path: Path) -> ExistingToken | None:
    """Return the token of our entry; None if there is no readable entry, or no token in it."""
    try:
        _, _, entry = _entry(client, path)
    except InvalidInput:
        return None
    secret = environment_of(entry).get(TOKEN_VARIABLE) if is_ours(entry) else None
    if not secret:
        return None
    return ExistingToken(secret=secret, store=dict(pairwise(command_of(entry))).get("--db"))


def plan_connect(
    client: ClientConfig, path: Path, command: Sequence[str], env: Mapping[str, str], program: str | None = None
) -> Change:
    """Return the change that makes a client start this command as its server. An error says what to add by hand.

    ``program`` is the path of the client's own program, which adds a new entry.
    """
    by_hand = entry_of(client, list(command), env, nested=False)
    masked = {name: MASKED_TOKEN if name == TOKEN_VARIABLE and value else value for name, value in env.items()}
    vendor = tuple(vendor_command(client, command, masked, remove=False)) if program else ()
    try:
        before = read(path)
        if vendor and SERVER_NAME not in before:
            return Change(client, path, "added", before, "", False, vendor, env.get(TOKEN_VARIABLE, ""))
        before, keys_of_entry, existing = _entry(client, path)
        wanted = entry_of(client, list(command), env, nested=len(keys_of_entry) > 2)
        if existing is not None:
            _require_ours(path, existing)
            # Other keys of the entry belong to the user, such as a time limit and whether it is enabled.
            name = "environment" if client.name == "opencode" else "env"
            merged = {**existing, **{key: value for key, value in wanted.items() if key != "enabled"}}
            if name in wanted:
                merged[name] = environment_of(existing) | wanted[name]
            wanted = merged
        if wanted == existing:
            return Change(client, path, "unchanged", before, before)
        after = set_key(before, keys_of_entry, wanted, toml=path.suffix == ".toml")
        return Change(client, path, "added" if existing is None else "updated", before, after)
    except InvalidInput as fault:
        shown = json.dumps({SERVER_NAME: by_hand}, ensure_ascii=False)
        raise InvalidInput(
            f"{path.name}: {fault}; the file was not changed. Add this under `{client.container}`: {shown}"
        ) from fault


def plan_disconnect(client: ClientConfig, path: Path, program: str | None = None) -> Change:
    """Return the change that removes our entry."""
    if SERVER_NAME not in read(path):
        return Change(client, path, "absent", read(path), read(path))
    try:
        before, keys_of_entry, existing = _entry(client, path)
        if existing is None:
            return Change(client, path, "absent", before, before)
        _require_ours(path, existing)
        if program and (vendor := vendor_command(client, [], {}, remove=True)):
            return Change(client, path, "removed", before, "", False, tuple(vendor))
        toml = path.suffix == ".toml"
        after = restore_backup_text(path, delete_key(before, keys_of_entry, toml=toml), toml=toml)
        return Change(client, path, "removed", before, after)
    except InvalidInput as fault:
        by_hand = f"remove the server `{SERVER_NAME}` by hand and revoke its token with `keepward token revoke`"
        raise InvalidInput(f"{path.name}: {fault}; {by_hand}") from fault


def restore_backup_text(path: Path, after: str, *, toml: bool = False) -> str:
    """Return the exact text of the earlier copy if its values are the same; else ``after``."""

    def filled(text: str) -> dict[str, Any]:
        return {key: value for key, value in load(text, toml=toml).items() if value != {}}

    with suppress(InvalidInput, StoreUnavailable):
        copy = read(path.with_name(path.name + BACKUP_SUFFIX))
        if copy and filled(copy) == filled(after):
            return copy
    return after


def apply_change(change: Change, *, copies: bool = True) -> Path | None:
    """Write the file; return the path of the copy of the earlier file, or None if there is no copy."""
    if change.after == change.before and not change.command:
        return None
    # Settings files are often symbolic links; the target is replaced, not the link.
    target = Path(os.path.realpath(change.path))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if read(target) != change.before:
            raise Conflict(f"{target.name} has changed in the meantime; run the command again")
        mode = target.stat().st_mode & 0o7777 if target.exists() else 0o600
        if change.secret or _TOKENS.search(change.before + change.after):
            mode &= 0o700
        backup = (
            target.with_name(target.name + BACKUP_SUFFIX) if copies and not change.owned and target.exists() else None
        )
        if backup is not None:
            durable.replace(backup, change.before.encode(), mode=mode)
        if change.command:
            _run(change, target, mode)
        elif change.owned and not change.after:
            target.unlink(missing_ok=True)
        else:
            durable.replace(target, change.after.encode(), mode=mode)
    except OSError as fault:
        raise StoreUnavailable(f"{target.name} cannot be written: {fault.strerror}; nothing was changed") from fault
    return backup


def _run(change: Change, path: Path, mode: int) -> None:
    """Run a client's own command, then replace the mask by the token, so that no command line contains it.

    Raises:
        StoreUnavailable: the command failed or did not change the file; the file is restored.
    """
    has_entry = change.action == "added"
    try:
        done = subprocess.run(change.command, capture_output=True, text=True, timeout=VENDOR_TIMEOUT_S, check=False)  # noqa: S603
        fault = "" if done.returncode == 0 else (done.stderr or done.stdout).strip()[-200:] or "no message"
    except subprocess.TimeoutExpired:
        fault = "no answer"
    deadline = monotonic() + (0 if fault else VENDOR_TIMEOUT_S)
    # A running editor may write its settings after its command has ended.
    while (SERVER_NAME in read(path)) is not has_entry and monotonic() < deadline:
        sleep(0.1)
    after = read(path)
    if fault or (SERVER_NAME in after) is not has_entry:
        if after != change.before:
            durable.replace(path, change.before.encode(), mode=mode)
        raise StoreUnavailable(f"`{' '.join(change.command[:3])}` failed: {fault or 'the settings did not change'}")
    if change.secret:
        durable.replace(path, after.replace(MASKED_TOKEN, change.secret).encode(), mode=mode)


def _entry(client: ClientConfig, path: Path) -> tuple[str, list[str], Any]:
    """Return the text of a file, the path of our entry in it, and the entry, or None if it is missing."""
    text = read(path)
    found: Any = load(text, toml=path.suffix == ".toml")
    container = found.get(client.container, {})
    if not isinstance(container, dict):
        raise InvalidInput(f"`{client.container}` is not an object, as {client.title} writes it")
    keys_of_entry = entry_path(client, container)
    for key in keys_of_entry[:-1]:
        found = found.get(key, {})
    return text, keys_of_entry, found.get(SERVER_NAME)


def _require_ours(path: Path, entry: Any) -> None:
    if not is_ours(entry):
        raise Conflict(f"{path.name} has another program as server `{SERVER_NAME}`; rename or remove it first")


def read(path: Path) -> str:
    """Return the text of a settings file; empty if there is no file."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as fault:
        raise InvalidInput(f"{path.name} is not UTF-8 text; it was not changed") from fault
    except OSError as fault:
        raise StoreUnavailable(f"{path.name} cannot be read: {fault.strerror}") from fault
