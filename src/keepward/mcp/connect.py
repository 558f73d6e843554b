"""Connecting: one entry put into a client's settings, or taken out again.

Invariants
(1) Only the entry of that name is touched, and only where it is ours; all else in the file stays, byte for byte.
(2) The file is replaced whole or not at all, and what was there before is kept beside it.
(3) A second call with the same choices changes nothing.
(4) A token in it is shown nowhere, and a file that holds one is its owner's alone.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from keepward import durable
from keepward.errors import Conflict, InvalidInput, StoreUnavailable
from keepward.mcp import jsonc, tomltext
from keepward.mcp.clients import SERVER, Client, entry_of, environment_of, is_nested, is_ours, words_of

Action = Literal["added", "updated", "removed", "unchanged", "absent"]
#: What stands behind the name of the copy that is kept.
BACKUP = ".before-keepward"
#: Where `keepward mcp` reads its token.
TOKEN = "KEEPWARD_TOKEN"  # noqa: S105 - the name of a variable
#: Stands for a token where one is shown.
MASKED = "kw_***"
_TOKENS = re.compile(r"kw_[0-9A-Za-z]{43}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What connecting or disconnecting does to one file."""

    client: Client
    path: Path
    action: Action
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The lines that differ, tokens masked, and none around them: those may hold secrets of other servers."""
        before, after = (_TOKENS.sub(MASKED, each).splitlines() for each in (self.before, self.after))
        lines = difflib.unified_diff(before, after, lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The token of our entry as it stands in a client's settings."""

    secret: str
    #: The store that the entry names.
    store: str | None


def standing_token(client: Client, path: Path) -> Standing | None:
    """Return the token of our entry; None where there is no entry of ours, or none in it.

    Raises:
        InvalidInput: the file is not one that can be edited safely.
    """
    _, entry, _ = _standing(client, path, _read(path))
    secret = environment_of(entry).get(TOKEN) if is_ours(entry) else None
    if not secret:
        return None
    words = words_of(entry)
    named = words.index("--db") + 1 if "--db" in words else len(words)
    return Standing(secret=secret, store=words[named] if named < len(words) else None)


def connected(client: Client, path: Path, command: Sequence[str], env: Mapping[str, str]) -> Change:
    """Return the change that makes a client start this command as its server.

    Raises:
        InvalidInput: the file is not one that can be edited safely; it is left alone.
        Conflict: a server of that name is there and is another program.
    """
    before = _read(path)
    place, standing, container = _standing(client, path, before)
    wanted = entry_of(client, list(command), env, container)
    after, action = before, "unchanged"
    if standing is None:
        action = "added"
        after = _put(client, path, before, place, wanted)
    else:
        if not is_ours(standing):
            raise Conflict(f"{path.name} has a server `{SERVER}` that is another program; rename or remove it first")
        # Other keys of the entry, such as a time limit, are the person's.
        own = {key: value for key, value in wanted.items() if key not in {"env", "environment", "enabled"}}
        added = _missing(standing, wanted)
        if {key: standing.get(key) for key in own} != own or added:
            action = "updated"
            after = _put(client, path, before, place, own | added, merge=True)
    return Change(client=client, path=path, action=action, before=before, after=after)  # type: ignore[arg-type]


def disconnected(client: Client, path: Path) -> Change:
    """Return the change that takes our entry out.

    Raises:
        InvalidInput: the file is not one that can be edited safely; it is left alone.
        Conflict: a server of that name is there and is another program.
    """
    before = _read(path)
    place, standing, _ = _standing(client, path, before)
    if standing is None:
        return Change(client=client, path=path, action="absent", before=before, after=before)
    if not is_ours(standing):
        raise Conflict(f"{path.name} has a server `{SERVER}` that is another program; it was left as it is")
    try:
        after = tomltext.drop(before, place) if client.form == "toml" else jsonc.drop(before, place)
    except InvalidInput as fault:
        raise InvalidInput(f"{path.name}: {fault}; take the server `{SERVER}` out by hand") from fault
    return Change(client=client, path=path, action="removed", before=before, after=after)


def carry_out(change: Change) -> Path | None:
    """Write the file; return where what was there before is kept, None where there was nothing.

    Raises:
        StoreUnavailable: it cannot be written; nothing was changed.
    """
    # Settings are often links into a folder of their own: the file itself is replaced, not the link.
    target = Path(os.path.realpath(change.path))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if _read(target) != change.before:
            raise Conflict(f"{target.name} has changed in the meantime; run the command again")
        mode = target.stat().st_mode & 0o7777 if target.exists() else 0o600
        if _TOKENS.search(change.before + change.after):
            mode &= 0o700
        backup = target.with_name(target.name + BACKUP) if target.exists() else None
        if backup is not None:
            durable.replace(backup, change.before.encode(), mode=mode)
        durable.replace(target, change.after.encode(), mode=mode)
    except OSError as fault:
        raise StoreUnavailable(f"{target.name} cannot be written: {fault.strerror}; nothing was changed") from fault
    return backup


def _standing(client: Client, path: Path, text: str) -> tuple[list[str], Any, Mapping[str, Any]]:
    """Return the path of our entry, the entry if it is there, and what stands around it."""
    try:
        whole = tomltext.load(text) if client.form == "toml" else jsonc.load(text)
    except InvalidInput as fault:
        raise InvalidInput(f"{path.name}: {fault}; mend it first, it was left as it is") from fault
    container = (whole or {}).get(client.container, {}) if isinstance(whole or {}, dict) else None
    if not isinstance(container, dict):
        raise InvalidInput(f"{path.name}: `{client.container}` is not what {client.title} writes there; mend it first")
    place = [client.container, SERVER]
    if is_nested(client, container):
        place.insert(1, "servers")
        # One written for the first major version is still read by the second.
        if SERVER in container["servers"] or SERVER not in container:
            return place, container["servers"].get(SERVER), container
        place = [client.container, SERVER]
        return place, container[SERVER], {}
    return place, container.get(SERVER), container


def _put(
    client: Client, path: Path, text: str, place: Sequence[str], entry: Mapping[str, Any], *, merge: bool = False
) -> str:
    try:
        if client.form == "toml":
            return tomltext.put(text, place, entry)
        if not merge:
            return jsonc.put(text, place, entry)
        for key, value in entry.items():
            if isinstance(value, dict):
                for inner, each in value.items():
                    text = jsonc.put(text, [*place, key, inner], each)
            else:
                text = jsonc.put(text, [*place, key], value)
        return text
    except InvalidInput as fault:
        raise InvalidInput(f"{path.name}: {fault}; add the server by hand, `--dry-run --json` shows it") from fault


def _missing(standing: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return what our environment has that the entry's has not, or has otherwise."""
    there = environment_of(standing)
    for key in ("env", "environment"):
        if key in wanted:
            left = {name: value for name, value in wanted[key].items() if there.get(name) != value}
            return {key: left} if left else {}
    return {}


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as fault:
        raise InvalidInput(f"{path.name} is not UTF-8 text; it was left as it is") from fault
    except OSError as fault:
        raise StoreUnavailable(f"{path.name} cannot be read: {fault.strerror}") from fault
