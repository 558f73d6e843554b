"""Accepted settings files, and the one host that each model's key is sent to.

A settings file next to a store may have come with the store, from anyone. It applies only after its owner has accepted
its digest. A file that the user names applies at once.

Layout: ``<config_dir>/accepted.json`` maps the path of a file to its SHA-256, and a key's fingerprint to a host. A path
is the real one of the folder, and the name in it: a link to the accepted file of another store is not accepted.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from keepward import durable
from keepward.core.value import load_json


def digest_of(raw: bytes) -> str:
    """Return the digest by which a settings file is accepted, as 64 hex digits."""
    return hashlib.sha256(raw).hexdigest()


def is_accepted(config_dir: Path, file: Path, raw: bytes) -> bool:
    """Whether the owner has accepted exactly this content at this path."""
    return _read(config_dir)["files"].get(_location(file)) == digest_of(raw)


def accept(config_dir: Path, file: Path, raw: bytes) -> None:
    """Accept exactly this content at this path.

    Raises:
        OSError: the acceptance cannot be recorded.
    """
    accepted = _read(config_dir)
    accepted["files"][_location(file)] = digest_of(raw)
    _write(config_dir, accepted)


def _location(file: Path) -> str:
    return str(file.parent.resolve() / file.name)


def host_of_key(config_dir: Path, key: str, host: str) -> str:
    """Return the host of a key; bind an unbound key to ``host``.

    Raises:
        OSError: the host cannot be recorded.
    """
    accepted, name = _read(config_dir), _fingerprint(key)
    if name not in accepted["keys"]:
        accepted["keys"][name] = host
        _write(config_dir, accepted)
    return str(accepted["keys"][name])


def release_key(config_dir: Path, key: str) -> None:
    """Unbind a key, so that its next use binds it again."""
    accepted = _read(config_dir)
    if accepted["keys"].pop(_fingerprint(key), None) is not None:
        _write(config_dir, accepted)


def _fingerprint(key: str) -> str:
    return hashlib.sha256(b"keepward/embedder-key/v1\0" + key.encode()).hexdigest()[:32]


def _read(config_dir: Path) -> dict[str, dict[str, str]]:
    try:
        accepted = load_json((config_dir / "accepted.json").read_bytes())
    except (OSError, ValueError):
        accepted = {}
    found = accepted if isinstance(accepted, dict) else {}
    return {part: dict(found[part]) if isinstance(found.get(part), dict) else {} for part in ("files", "keys")}


def _write(config_dir: Path, accepted: dict[str, dict[str, str]]) -> None:
    durable.make_folder(config_dir)
    durable.replace(config_dir / "accepted.json", json.dumps(accepted, indent=1, sort_keys=True).encode())
