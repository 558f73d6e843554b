"""Which settings files their owner has accepted, and what needs it.

A settings file that is found beside a store may have come with it, from anybody. Whoever names a file, on the command
line or in the environment, has chosen it; one that is only found is trusted as far as it tightens.

Layout: ``<config_dir>/accepted.json``, which maps the path of a file to its SHA-256, and a key's fingerprint to the
host that it is sent to.

Invariants
(1) A file that was found loosens nothing and sends nothing anywhere until its owner has accepted its digest; once it
    has changed it is accepted no more.
(2) What is not known to tighten, and to leave the words of people in prompts, counts as loosening.
(3) A key is sent to one host.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keepward import durable
from keepward.model.memory import Access
from keepward.model.policy import STRICTNESS, Policy
from keepward.model.trust import Trust

#: Names at the top of a file that loosen nothing, whatever they are.
_HARMLESS = frozenset({"scope", "maintenance"})
_EMBEDDERS = frozenset({"auto", "minilm", "hashed", "none"})
#: Settings of which less is tighter, and of which more is; each alone or by name.
_LESS = frozenset(
    (
        *("text_limit", "review_ttl", "agent_feedback_share", "removal_share"),
        "capture",
    )
)
_MORE = frozenset(("confidence_floor", "rule_floor", "least_trust", "four_eyes", "scopes", "memory_ethics"))
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
#: The same for the server, where a limit of 0 is none.
_LIMITS = frozenset({"writes_per_minute", "body_limit", "blob_limit", "import_limit"})
_QUIET = frozenset({"port", "log_json", "jobs"})


def digest_of(raw: bytes) -> str:
    """Return the digest by which a settings file is accepted; 64 hex digits."""
    return hashlib.sha256(raw).hexdigest()


def is_accepted(config_dir: Path, file: Path, raw: bytes) -> bool:
    """Whether the owner has accepted a file with exactly this content at this place."""
    return _read(config_dir)["files"].get(str(file.resolve())) == digest_of(raw)


def accept(config_dir: Path, file: Path, raw: bytes) -> None:
    """Accept a file with exactly this content at this place.

    Raises:
        OSError: it cannot be noted.
    """
    kept = _read(config_dir)
    kept["files"][str(file.resolve())] = digest_of(raw)
    _write(config_dir, kept)


def host_of_key(config_dir: Path, key: str, host: str) -> str:
    """Return the host that a key is sent to; one that was sent to none yet is bound to ``host`` from here on (3).

    Raises:
        OSError: it cannot be noted.
    """
    kept, name = _read(config_dir), _fingerprint(key)
    if name not in kept["keys"]:
        kept["keys"][name] = host
        _write(config_dir, kept)
    return str(kept["keys"][name])


def release_key(config_dir: Path, key: str) -> None:
    """Let a key be bound anew, by its next use."""
    kept = _read(config_dir)
    if kept["keys"].pop(_fingerprint(key), None) is not None:
        _write(config_dir, kept)


def loosening(table: Mapping[str, Any], policy: Policy, server: Any, plain: Any) -> tuple[str, ...]:
    """Return the settings of a file that need acceptance, as ``name`` or ``table.name``, in order.

    ``policy`` and ``server`` are what the file makes of them, ``plain`` is the server's default.
    """
    found = [name for name, value in table.items() if not isinstance(value, Mapping) and not _harmless(name, value)]
    default = Policy()
    for part, tightens, chosen, usual in (
        ("policy", _tighter, policy, default),
        ("server", _holds_back, server, plain),
    ):
        names = table.get(part, {})
        found += [f"{part}.{name}" for name in names if not tightens(name, getattr(chosen, name), getattr(usual, name))]
    return tuple(sorted(found))


def without(table: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return a settings file without some of its settings."""
    return {
        name: {inner: item for inner, item in value.items() if f"{name}.{inner}" not in names}
        if isinstance(value, Mapping)
        else value
        for name, value in table.items()
        if name not in names
    }


def _harmless(name: str, value: Any) -> bool:
    match name:
        case "actor":
            return str(value).partition(":")[0] == "agent"
        case "embedder":
            return value in _EMBEDDERS
        case "counter":
            return bool(value == "estimate")
        case "extractor":
            return bool(value == "none")
    return name in _HARMLESS


def _tighter(name: str, value: Any, default: Any) -> bool:
    if value == default or name == "scopes":
        # No scope named means all of them.
        return True
    if name in {"access", "block_access"}:
        # A block that the default does not name is bound by its tier alone.
        usual = {key: default.get(key, Access.READ_WRITE) for key in value}
        return all(STRICTNESS.index(mine) <= STRICTNESS.index(usual[key]) for key, mine in value.items())
    if name not in _LESS | _MORE:
        return False
    if name == "least_trust" and max(value.values()) > Trust.USER:
        # What a user said would leave the prompts.
        return False
    if isinstance(value, Mapping):
        return all(key in default and _within(name, mine, default[key]) for key, mine in value.items())
    return _within(name, value, default)


def _within(name: str, value: Any, default: Any) -> bool:
    """Whether a value is no more than the default, or no less, whichever is tighter."""
    mine, usual = (set(each) if isinstance(each, tuple) else each for each in (value, default))
    return bool(mine <= usual if name in _LESS else mine >= usual)


def _holds_back(name: str, value: Any, default: Any) -> bool:
    match name:
        case "host":
            return value in _LOOPBACK
        case "mcp":
            return not value
        case "mcp_profile":
            return value in {"default", "minimal", "readonly"}
    return bool(value == default or name in _QUIET or (name in _LIMITS and 0 < value <= default))


def _fingerprint(key: str) -> str:
    return hashlib.sha256(b"keepward/embedder-key/v1\0" + key.encode()).hexdigest()[:32]


def _read(config_dir: Path) -> dict[str, dict[str, str]]:
    try:
        kept = json.loads((config_dir / "accepted.json").read_bytes())
    except (OSError, ValueError):
        kept = {}
    found = kept if isinstance(kept, dict) else {}
    return {part: dict(found[part]) if isinstance(found.get(part), dict) else {} for part in ("files", "keys")}


def _write(config_dir: Path, kept: dict[str, dict[str, str]]) -> None:
    config_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable.replace(config_dir / "accepted.json", json.dumps(kept, indent=1, sort_keys=True).encode())
