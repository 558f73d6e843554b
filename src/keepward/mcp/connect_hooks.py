"""Hooks put into a client's settings, or taken out again; all else in the file stays, byte for byte.

Each client keeps a list for each of its events. Ours is one entry in each, told by the command that it runs.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keepward.errors import InvalidInput
from keepward.hooks.events import CLIENTS
from keepward.mcp.connect import Change, Client, drop, first_of, load, put, read


class Place(NamedTuple):
    """Where a client keeps its hooks."""

    #: In the home folder, or in a project's.
    file: str
    #: What its settings call a second of patience; None where they take no time limit.
    second: int | None
    #: What else the file has to say for them to run.
    beside: Mapping[str, Any] = {}
    #: What a person has to do for them to run.
    then: str = ""


PLACES: Mapping[str, Place] = {
    "claude": Place(".claude/settings.json", 1),
    "codex": Place(
        ".codex/hooks.json", 1, then="switch hooks on (`[features]` `hooks = true`) and trust them in `/hooks`"
    ),
    "gemini": Place(".gemini/settings.json", 1_000),
    "cursor": Place(".cursor/hooks.json", None, {"version": 1}),
}
_PATIENCE = {"start": 10, "prompt": 5, "compact": 10, "end": 10}


def file_of(client: Client, project: Path | None, environ: Mapping[str, str], home: Path) -> Path:
    """Return the file with a client's hooks.

    Raises:
        InvalidInput: the client has none that are known here.
    """
    if client.name not in PLACES:
        raise InvalidInput(f"hooks are known of {', '.join(PLACES)}")
    moved = {"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}.get(client.name, "")
    if project is None and environ.get(moved):
        return Path(environ[moved]).expanduser() / Path(PLACES[client.name].file).name
    return (project or home) / PLACES[client.name].file


def hooked(client: Client, path: Path, program: Sequence[str], options: Sequence[str]) -> Change:
    """Return the change that makes a client call a program with options; the same again changes nothing.

    Raises:
        InvalidInput: the file is not one that can be edited safely; it is left alone.
    """
    place, before = PLACES[client.name], read(path)
    after = before
    try:
        for name, what in CLIENTS[client.name].events.items():
            line = shlex.join([*program, "hook", what, "--client", client.name, *options])
            entry = _entry(place, line, _PATIENCE[what])
            there = [each for each in _list(load(after, toml=False), name) if _is_ours(each)]
            if there == [entry]:
                continue
            for each in there:
                after = _without(after, name, each)
            after = _with(after, name, entry)
        for key, value in place.beside.items():
            if key not in load(after, toml=False):
                after = put(after, [key], value, toml=False)
    except InvalidInput as fault:
        raise InvalidInput(f"{path.name}: {fault}; it was left as it is") from fault
    action = "unchanged" if after == before else "updated" if before.strip() else "added"
    return Change(client, path, action, before, after)  # type: ignore[arg-type]


def unhooked(client: Client, path: Path) -> Change:
    """Return the change that takes our entries out."""
    before = after = read(path)
    for name in CLIENTS[client.name].events:
        for each in _list(load(after, toml=False), name):
            if _is_ours(each):
                after = _without(after, name, each)
    return Change(client, path, "absent" if after == before else "removed", before, after)


def _entry(place: Place, line: str, patience: int) -> dict[str, Any]:
    if place.second is None:
        return {"command": line}
    return {"hooks": [{"type": "command", "command": line, "timeout": patience * place.second}]}


def _list(settings: Mapping[str, Any], name: str) -> list[Any]:
    hooks = settings.get("hooks", {})
    found = hooks.get(name, []) if isinstance(hooks, dict) else None
    if not isinstance(found, list):
        raise InvalidInput("`hooks` is not what the client writes there")
    return found


def _is_ours(entry: Any) -> bool:
    listed = entry.get("hooks", [entry]) if isinstance(entry, dict) else []
    lines = [each.get("command", "") for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return bool(lines) and all(re.search(r"\bkeepward\S* (?:-m keepward )?hook ", str(line)) for line in lines)


def _with(text: str, name: str, entry: dict[str, Any]) -> str:
    """Return a text of JSON with an entry in front of the list of an event."""
    meant = load(text, toml=False)
    listed = _list(meant, name)
    if not listed:
        return put(text, ["hooks", name], [entry], toml=False)
    meant["hooks"][name] = [entry, *listed]

    def ways() -> Iterator[str]:
        for match in re.finditer(rf"{re.escape(json.dumps(name))}\s*:\s*\[(\s*)", text):
            written = json.dumps(entry, ensure_ascii=False)
            yield f"{text[: match.end()]}{written},{match[1] or ' '}{text[match.end() :]}"

    return first_of(ways(), meant)


def _without(text: str, name: str, entry: Any) -> str:
    """Return a text of JSON without one entry of the list of an event, and without the list where it was alone."""
    meant = load(text, toml=False)
    rest = [each for each in meant["hooks"][name] if each != entry]
    if not rest:
        return drop(text, ["hooks", name], toml=False)
    meant["hooks"][name] = rest

    def ways() -> Iterator[str]:
        for match in re.finditer(r"\{", text):
            try:
                found, end = json.JSONDecoder().raw_decode(text, match.start())
            except ValueError:
                continue
            if found == entry:
                head, tail = text[: match.start()], text[end:]
                yield head + re.sub(r"\A\s*,\s*", "", tail)
                yield re.sub(r",\s*\Z", "", head) + tail

    return first_of(ways(), meant)
