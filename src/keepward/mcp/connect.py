"""Connecting: one entry put into a client's settings, or taken out again.

Invariants
(1) Only the entry of that name is touched, and only where it is ours; all else in the file stays, byte for byte.
(2) The file is replaced whole or not at all, and what was there before is kept beside it.
(3) A second call with the same choices changes nothing.
(4) A token in it is shown nowhere, and a file that holds one is its owner's alone.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from keepward import durable
from keepward.errors import Conflict, InvalidInput, StoreUnavailable
from keepward.mcp import settings
from keepward.mcp.clients import SERVER, Client, entry_of, environment_of, is_ours, place_of, words_of

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
    """Return the token of our entry; None where there is no entry of ours that can be read, or none in it."""
    try:
        _, _, entry = _entry(client, path)
    except InvalidInput:
        return None
    secret = environment_of(entry).get(TOKEN) if is_ours(entry) else None
    if not secret:
        return None
    words = words_of(entry)
    named = words.index("--db") + 1 if "--db" in words else len(words)
    return Standing(secret=secret, store=words[named] if named < len(words) else None)


def connected(client: Client, path: Path, command: Sequence[str], env: Mapping[str, str]) -> Change:
    """Return the change that makes a client start this command as its server.

    Raises:
        InvalidInput: the file is not one that can be edited safely; it is left alone, and what to add is told.
        Conflict: a server of that name is there and is another program.
    """
    by_hand = entry_of(client, list(command), env, nested=False)
    try:
        before, place, there = _entry(client, path)
        wanted = entry_of(client, list(command), env, nested=len(place) > 2)
        if there is None:
            return _change(client, path, "added", before, settings.put(before, place, wanted, toml=_is_toml(path)))
        _require_ours(path, there)
        # Other keys of the entry, such as a time limit, are the person's, and so is whether it is enabled.
        name = "environment" if client.name == "opencode" else "env"
        merged = {**there, **{key: value for key, value in wanted.items() if key not in {name, "enabled"}}}
        if name in wanted:
            merged[name] = environment_of(there) | wanted[name]
        if merged == there:
            return _change(client, path, "unchanged", before, before)
        return _change(client, path, "updated", before, settings.put(before, place, merged, toml=_is_toml(path)))
    except InvalidInput as fault:
        shown = json.dumps({SERVER: by_hand}, ensure_ascii=False)
        raise InvalidInput(
            f"{path.name}: {fault}; it was left as it is. Under `{client.container}` belongs what this says: {shown}"
        ) from fault


def disconnected(client: Client, path: Path) -> Change:
    """Return the change that takes our entry out.

    Raises:
        InvalidInput: the file is not one that can be edited safely; it is left alone.
        Conflict: a server of that name is there and is another program.
    """
    try:
        before, place, there = _entry(client, path)
        if there is None:
            return _change(client, path, "absent", before, before)
        _require_ours(path, there)
        return _change(client, path, "removed", before, settings.drop(before, place, toml=_is_toml(path)))
    except InvalidInput as fault:
        raise InvalidInput(f"{path.name}: {fault}; take the server `{SERVER}` out by hand") from fault


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


def _change(client: Client, path: Path, action: Action, before: str, after: str) -> Change:
    return Change(client=client, path=path, action=action, before=before, after=after)


def _entry(client: Client, path: Path) -> tuple[str, list[str], Any]:
    """Return the text of a file, the path of our entry in it, and the entry if it is there."""
    text = _read(path)
    found: Any = settings.load(text, toml=_is_toml(path))
    container = found.get(client.container, {})
    if not isinstance(container, dict):
        raise InvalidInput(f"`{client.container}` is not what {client.title} writes there")
    place = place_of(client, container)
    for key in place[:-1]:
        found = found.get(key, {})
    return text, place, found.get(SERVER)


def _is_toml(path: Path) -> bool:
    return path.suffix == ".toml"


def _require_ours(path: Path, entry: Any) -> None:
    if not is_ours(entry):
        raise Conflict(f"{path.name} has a server `{SERVER}` that is another program; rename or remove it first")


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as fault:
        raise InvalidInput(f"{path.name} is not UTF-8 text; it was left as it is") from fault
    except OSError as fault:
        raise StoreUnavailable(f"{path.name} cannot be read: {fault.strerror}") from fault
