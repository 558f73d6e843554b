"""The settings file of another program: read it, change it, and keep the tokens in it private.

Invariants
(1) The file is replaced atomically, and a copy of the earlier file is stored next to it.
(2) A token appears on no command line and in no output. Only its owner can read a file with a token.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import subprocess
import tomllib
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Literal, NamedTuple

import yaml

from keepward import durable
from keepward.core.value import is_too_deep
from keepward.errors import Conflict, InvalidInput, StoreUnavailable

#: Replaces tokens in output and on command lines.
MASKED_TOKEN = "kw_***"  # noqa: S105  no password
_TOKENS = re.compile(r"kw_[0-9A-Za-z]{43}")
#: Suffix of the copy of the earlier file.
BACKUP_SUFFIX = ".before-keepward"
#: Longest settings file, in bytes, and its deepest nesting.
_MAX_FILE_BYTES, _MAX_DEPTH = 100 << 20, 100
#: Seconds that a client's own command may take.
VENDOR_TIMEOUT_S = 30.0


def read(path: Path) -> str:
    """Return the text of a settings file; empty if there is no file."""
    try:
        return durable.read_regular(path, _MAX_FILE_BYTES).decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as fault:
        raise InvalidInput(f"{path.name} is not UTF-8 text; it was not changed") from fault
    except OSError as fault:
        raise StoreUnavailable(f"{path.name} cannot be read: {fault.strerror}") from fault


def load(text: str, *, suffix: str = ".json") -> dict[str, Any]:
    """Return the parsed object of a text, of a file with this suffix; an empty one if the text is empty."""
    try:
        if suffix == ".toml":
            value = tomllib.loads(text)
        elif suffix == ".yaml":
            value = yaml.safe_load(text) or {}
        else:
            value = json.loads(text.strip() or "{}", object_pairs_hook=_reject_duplicate_keys)
    except (ValueError, RecursionError, yaml.YAMLError) as fault:
        name = {".toml": "TOML", ".yaml": "YAML"}.get(suffix, "plain JSON")
        raise InvalidInput(f"it is not {name}") from fault
    if not isinstance(value, dict):
        raise InvalidInput("it is not an object")
    if is_too_deep(value, _MAX_DEPTH):
        raise InvalidInput("it is nested too deeply")
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as fault:
        raise InvalidInput("it contains half a character (a lone surrogate)") from fault
    return value


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def dump(value: dict[str, Any], text: str) -> str:
    """Return a value as JSON, with the indentation and line ends of a text; the text itself if it has this value."""
    if load(text) == value:
        return text
    found = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    newline = "\r\n" if "\r\n" in text else "\n"
    dumped = json.dumps(value, indent=found[1] if found else "  ", ensure_ascii=False)
    return dumped.replace("\n", newline) + (newline if text.endswith("\n") or not text.strip() else "")


def dump_yaml(value: dict[str, Any]) -> str:
    """Return a value as YAML."""
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1_000)
    return text


def add_to_yaml(text: str, container: str, entry: dict[str, Any]) -> str:
    """Return a text with an entry inside a mapping of the top level; comments and other lines stay as they are."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    heads = [index for index, line in enumerate(lines) if re.match(rf"{container}:\s*(?:#.*)?$", line)]
    if not heads:
        return "".join(lines) + dump_yaml({container: entry})
    inner = [line for line in lines[heads[0] + 1 :] if line.strip() and not line.lstrip().startswith("#")]
    indent = len(inner[0]) - len(inner[0].lstrip(" ")) if inner else 0
    added = "".join(" " * (indent or 2) + line + "\n" for line in dump_yaml(entry).splitlines())
    return "".join((*lines[: heads[0] + 1], added, *lines[heads[0] + 1 :]))


def remove_from_yaml(text: str, container: str, name: str) -> str:
    """Return a text without an entry of a mapping of the top level, and without the mapping if it is then empty."""
    found = re.search(
        rf"^( +){name}:[ \t]*\n(?:\1 +.*\n|[ \t]*\n)*", text if text.endswith("\n") else text + "\n", re.MULTILINE
    )
    after = text if found is None else found.string[: found.start()] + found.string[found.end() :]
    if not load(after, suffix=".yaml").get(container):
        after = re.sub(rf"^{container}:[ \t]*(?:#.*)?\n", "", after, count=1, flags=re.MULTILINE)
    return after


Action = Literal["added", "updated", "removed", "unchanged", "absent"]


class Change(NamedTuple):
    """The change of one settings file."""

    path: Path
    action: Action
    before: str
    #: Empty if the file is removed.
    after: str
    #: The client's own command that makes the change, with a mask instead of the token.
    command: tuple[str, ...] = ()
    #: The token that replaces the mask.
    secret: str = ""

    @property
    def diff(self) -> str:
        """The lines that differ, with masked tokens and no context, because that may contain other servers' secrets."""
        if self.command:
            return shlex.join(self.command)
        lines = difflib.unified_diff(_comparable_lines(self.before), _comparable_lines(self.after), lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def _comparable_lines(text: str) -> list[str]:
    """Return the lines to compare. JSON has one layout and no commas, so that no line of other settings differs."""
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return [line.rstrip(",") for line in _TOKENS.sub(MASKED_TOKEN, text).splitlines()]


def apply_change(change: Change, *, copies: bool = True) -> Path | None:
    """Write the file; return the path of the copy of the earlier file, or None if there is no copy."""
    if change.action in {"unchanged", "absent"}:
        return None
    # Settings files are often symbolic links; the target is replaced, not the link.
    target = Path(os.path.realpath(change.path))
    backup = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if read(target) != change.before:
            raise Conflict(f"{target.name} has changed in the meantime; run the command again")
        mode = target.stat().st_mode & 0o7777 if target.exists() else 0o600
        if change.secret or _TOKENS.search(change.before + change.after):
            mode &= 0o700
        if copies and target.exists():
            backup = target.with_name(target.name + BACKUP_SUFFIX)
            durable.replace(backup, change.before.encode(), mode=mode)
        if change.command:
            _run(change, target, mode)
        elif change.after:
            durable.replace(target, change.after.encode(), mode=mode)
        else:
            target.unlink(missing_ok=True)
    except OSError as fault:
        raise StoreUnavailable(f"{target.name} cannot be written: {fault.strerror}; nothing was changed") from fault
    return backup


def _run(change: Change, path: Path, mode: int) -> None:
    """Run a client's own command, then replace the mask by the token, so that no command line contains it."""
    failed = f"`{' '.join(change.command[:3])}` failed"
    try:
        done = subprocess.run(change.command, capture_output=True, text=True, timeout=VENDOR_TIMEOUT_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as fault:
        raise StoreUnavailable(f"{failed}: no answer") from fault
    if done.returncode:
        raise StoreUnavailable(f"{failed}: {(done.stderr or done.stdout).strip()[-200:] or 'no message'}")
    expected = MASKED_TOKEN if change.secret else ""
    deadline = monotonic() + VENDOR_TIMEOUT_S
    # A running editor may write its settings after its command has ended.
    while (after := read(path)) == change.before or expected not in after:
        if monotonic() > deadline:
            raise StoreUnavailable(f"{failed}: the settings did not change")
        sleep(0.1)
    if change.secret:
        durable.replace(path, after.replace(MASKED_TOKEN, change.secret).encode(), mode=mode)
