"""Add hooks to a client's settings, or remove them; the other settings stay.

Each client has a list of hooks for each event. Ours is one entry in each list, recognized by its command. OpenCode
loads plugins from a folder instead, so ours is a file. Errors are those of ``connect``.
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
from keepward.mcp.connect import ClientConfig, home_folder
from keepward.mcp.settings_file import Action, Change, dump, load, read


class HookSettings(NamedTuple):
    """The settings file of a client's hooks, and its format."""

    #: Path below the home folder, or below a project's folder.
    file: str
    #: Number of units per second in its time limits; None if it has no time limits.
    second: int | None
    #: Other keys that the file needs.
    extra: Mapping[str, Any] = {}
    #: What the user must do next.
    next_step: str = ""


HOOK_SETTINGS: Mapping[str, HookSettings] = {
    "claude": HookSettings(".claude/settings.json", 1),
    "codex": HookSettings(".codex/hooks.json", 1, next_step="review them in `/hooks` and trust them"),
    "gemini": HookSettings(".gemini/settings.json", 1_000),
    "opencode": HookSettings(".opencode/plugins/keepward.js", None),
    "cursor": HookSettings(".cursor/hooks.json", None, {"version": 1}),
}
#: Seconds that a client waits for a hook; the hook ends earlier by itself.
_HOOK_TIMEOUT_S = 15
#: Recognize our plugin of OpenCode, and our entries.
_PLUGIN_MARKER = "keepward connect opencode"
_OUR_COMMAND = re.compile(r"\bkeepward\S* (?:-m keepward )?hook ")


def file_of(client: ClientConfig, project: Path | None, environ: Mapping[str, str]) -> Path:
    """Return the file with a client's hooks."""
    if client.name not in HOOK_SETTINGS:
        raise InvalidInput(f"hooks are supported for {', '.join(HOOK_SETTINGS)}")
    if project is None and environ.get(client.variable):
        return Path(environ[client.variable]).expanduser() / Path(HOOK_SETTINGS[client.name].file).name
    if project is None and client.name == "opencode":
        return connect.file_of(client, None, environ).parent / "plugins" / "keepward.js"
    return (project or home_folder()) / HOOK_SETTINGS[client.name].file


def plan_add_hooks(client: ClientConfig, path: Path, program: Sequence[str], options: Sequence[str]) -> Change:
    """Return the change that makes a client run a program with options as hooks. A repetition changes nothing."""
    settings_of_client, before = HOOK_SETTINGS[client.name], read(path)
    if client.name == "opencode":
        after = _plugin(path, before, program, options)
    else:
        try:
            settings, hooks = _without_ours(client, before)
        except InvalidInput as fault:
            raise InvalidInput(f"{path.name}: {fault}; the file was not changed") from fault
        for name, event in CLIENTS[client.name].events.items():
            line = shlex.join([*program, "hook", event, "--client", client.name, *options])
            hooks[name] = [_entry(settings_of_client, line), *hooks.get(name, [])]
        after = dump({**settings_of_client.extra, **settings}, before)
    action: Action = "unchanged" if after == before else "updated" if before.strip() else "added"
    return Change(path, action, before, after)


def plan_remove_hooks(client: ClientConfig, path: Path) -> Change:
    """Return the change that removes our entries."""
    before = read(path)
    if client.name == "opencode":
        ours = _PLUGIN_MARKER in before
        return Change(path, "removed" if ours else "absent", before, "" if ours else before)
    after = before
    if _OUR_COMMAND.search(before):
        try:
            settings, hooks = _without_ours(client, before)
            if not hooks:
                del settings["hooks"]
            after = dump(settings, before)
        except InvalidInput as fault:
            raise InvalidInput(f"{path.name}: {fault}; remove the entries with `keepward hook` by hand") from fault
    return Change(path, "absent" if after == before else "removed", before, after)


def _plugin(path: Path, before: str, program: Sequence[str], options: Sequence[str]) -> str:
    """Return our plugin of OpenCode, which runs a program with options."""
    if before.strip() and _PLUGIN_MARKER not in before:
        raise InvalidInput(f"{path} was not written by Keepward; it was not changed")
    text = resources.files("keepward.hooks").joinpath("opencode.js").read_text("utf-8")
    text = text.replace('["keepward", "hook"]', json.dumps([*program, "hook"]), 1)
    return text.replace("const OPTIONS = []", f"const OPTIONS = {json.dumps(list(options))}", 1)


def _entry(settings_of_client: HookSettings, line: str) -> dict[str, Any]:
    if settings_of_client.second is None:
        return {"command": line}
    return {"hooks": [{"type": "command", "command": line, "timeout": _HOOK_TIMEOUT_S * settings_of_client.second}]}


def _is_ours(entry: Any) -> bool:
    listed = entry.get("hooks", [entry]) if isinstance(entry, dict) else []
    lines = [item.get("command", "") for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return bool(lines) and all(_OUR_COMMAND.search(str(line)) for line in lines)


def _without_ours(client: ClientConfig, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return settings without our entries, and the hooks in them; a list that is then empty is removed."""
    settings = load(text)
    hooks = settings.setdefault("hooks", {})
    for name in CLIENTS[client.name].events:
        entries = hooks.get(name, []) if isinstance(hooks, dict) else None
        if not isinstance(entries, list):
            raise InvalidInput("`hooks` is not what the client writes there")
        hooks[name] = [entry for entry in entries if not _is_ours(entry)]
        if not hooks[name]:
            del hooks[name]
    return settings, hooks
