"""Hooks put into a client's settings, or taken out again; the rest of the settings stays.

Each client keeps a list for each of its events. Ours is one entry in each, told by the command that it runs. OpenCode
loads programs from a folder instead: ours is a file of its own. Errors are those of ``connect``.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from keepward.errors import InvalidInput
from keepward.hooks.events import CLIENTS
from keepward.mcp import connect
from keepward.mcp.connect import Action, Change, ClientConfig, delete_key, load, read, set_key


class HookSettings(NamedTuple):
    """Where a client keeps its hooks."""

    #: In the home folder, or in a project's.
    file: str
    #: What its settings call a second of patience; None where they take no time limit.
    second: int | None
    #: What else the file has to say for them to run.
    beside: Mapping[str, Any] = {}
    #: What a person has to do for them to run.
    then: str = ""


HOOK_SETTINGS: Mapping[str, HookSettings] = {
    "claude": HookSettings(".claude/settings.json", 1),
    "codex": HookSettings(".codex/hooks.json", 1, then="look at them in `/hooks` and trust them"),
    "gemini": HookSettings(".gemini/settings.json", 1_000),
    "opencode": HookSettings(".opencode/plugins/keepward.js", None),
    "cursor": HookSettings(".cursor/hooks.json", None, {"version": 1}),
}
#: Seconds that a client waits for a hook; it gives up by itself before that.
_HOOK_TIMEOUT_S = 15
#: What tells an entry, and a plugin of OpenCode, as ours.
_PLUGIN_MARKER = "keepward connect opencode"
_OUR_COMMAND = re.compile(r"\bkeepward\S* (?:-m keepward )?hook ")


def file_of(client: ClientConfig, project: Path | None, environ: Mapping[str, str], home: Path) -> Path:
    """Return the file with a client's hooks."""
    if client.name not in HOOK_SETTINGS:
        raise InvalidInput(f"hooks are known of {', '.join(HOOK_SETTINGS)}")
    moved = {"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}.get(client.name, "")
    if project is None and environ.get(moved):
        return Path(environ[moved]).expanduser() / Path(HOOK_SETTINGS[client.name].file).name
    if project is None and client.name == "opencode":
        return connect.file_of(client, None, environ).parent / "plugins" / "keepward.js"
    return (project or home) / HOOK_SETTINGS[client.name].file


def plan_add_hooks(client: ClientConfig, path: Path, program: Sequence[str], options: Sequence[str]) -> Change:
    """Return the change that makes a client call a program with options; the same again changes nothing."""
    place, before = HOOK_SETTINGS[client.name], read(path)
    if client.name == "opencode":
        return _changed(client, path, before, _plugin(path, before, program, options), owned=True)
    after = before
    try:
        for name, what in CLIENTS[client.name].events.items():
            line = shlex.join([*program, "hook", what, "--client", client.name, *options])
            entry = _entry(place, line)
            if [each for each in _list(load(after, toml=False), name) if _is_ours(each)] == [entry]:
                continue
            after = set_key(_without_ours(after, name), ["hooks", name, 0], entry, toml=False)
        for key, value in place.beside.items():
            if key not in load(after, toml=False):
                after = set_key(after, [key], value, toml=False)
    except InvalidInput as fault:
        raise InvalidInput(f"{path.name}: {fault}; it was left as it is") from fault
    return _changed(client, path, before, after)


def plan_remove_hooks(client: ClientConfig, path: Path) -> Change:
    """Return the change that takes our entries out."""
    before = after = read(path)
    if client.name == "opencode":
        ours = _PLUGIN_MARKER in before
        return Change(client, path, "removed" if ours else "absent", before, "" if ours else before, owned=True)
    if _OUR_COMMAND.search(before):
        try:
            for name in CLIENTS[client.name].events:
                after = _without_ours(after, name)
        except InvalidInput as fault:
            raise InvalidInput(f"{path.name}: {fault}; take what calls `keepward hook` out by hand") from fault
    if after == before:
        return Change(client, path, "absent", before, before)
    return Change(client, path, "removed", before, connect.restore_backup_text(path, after))


def _changed(client: ClientConfig, path: Path, before: str, after: str, *, owned: bool = False) -> Change:
    action: Action = "unchanged" if after == before else "updated" if before.strip() else "added"
    return Change(client, path, action, before, after, owned)


def _plugin(path: Path, before: str, program: Sequence[str], options: Sequence[str]) -> str:
    """Return our plugin of OpenCode, which calls a program with options."""
    if before.strip() and _PLUGIN_MARKER not in before:
        raise InvalidInput(f"{path} is no file of ours; it was left as it is")
    text = resources.files("keepward.hooks").joinpath("opencode.js").read_text("utf-8")
    text = text.replace('["keepward", "hook"]', json.dumps([*program, "hook"]), 1)
    return text.replace("const OPTIONS = []", f"const OPTIONS = {json.dumps(list(options))}", 1)


def _entry(place: HookSettings, line: str) -> dict[str, Any]:
    if place.second is None:
        return {"command": line}
    return {"hooks": [{"type": "command", "command": line, "timeout": _HOOK_TIMEOUT_S * place.second}]}


def _list(settings: Mapping[str, Any], name: str) -> list[Any]:
    hooks = settings.get("hooks", {})
    found = hooks.get(name, []) if isinstance(hooks, dict) else None
    if not isinstance(found, list):
        raise InvalidInput("`hooks` is not what the client writes there")
    return found


def _is_ours(entry: Any) -> bool:
    listed = entry.get("hooks", [entry]) if isinstance(entry, dict) else []
    lines = [each.get("command", "") for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return bool(lines) and all(_OUR_COMMAND.search(str(line)) for line in lines)


def _without_ours(text: str, name: str) -> str:
    """Return a text of JSON without our entries in the list of an event, and without the list where they were alone."""
    listed = _list(load(text, toml=False), name)
    for place in reversed([place for place, each in enumerate(listed) if _is_ours(each)]):
        text = delete_key(text, ["hooks", name, place], toml=False)
    return text
