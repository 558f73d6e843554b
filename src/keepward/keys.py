"""Export a store's key to another home: a container, a second machine, or the same machine after a loss.

The export contains the sealing key, the recorded heads, and the records of erasures and revocations. It contains no
token and no content. A key of another home is replaced only on request.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward import durable
from keepward.core.copies import KeyTransfer
from keepward.errors import Conflict, InvalidInput, StoreUnavailable, Unauthorised
from keepward.locations import parse_file
from keepward.machine.trust_store import (
    FileErasures,
    TrustStore,
    decrypt_with_passphrase,
    default_config_dir,
    encrypt_with_passphrase,
)

if TYPE_CHECKING:
    from keepward.memory import Memory

#: Shortest passphrase, in characters.
MIN_PASSPHRASE_CHARS = 12
#: Kinds of entries of the erasure list that are valid in another home; paths of backups are not.
EXPORTED_ENTRY_KINDS = frozenset({"erasure", "revocation"})


def export_key(memory: Memory, path: str | Path, passphrase: str, *, config_dir: Path | None = None) -> KeyTransfer:
    """Write the key of an owner's store to a new file, sealed with a passphrase.

    Raises:
        Unauthorised: the handle is not an owner's.
        InvalidInput: the file exists, or the passphrase has fewer than 12 characters.
        StoreUnavailable: this machine has no key of the store, or the file cannot be written.
        ModelUnavailable: `keepward[key]` is not installed.
    """

    if not memory.actor.is_owner:
        raise Unauthorised("exporting a key takes the owner")
    if len(passphrase) < MIN_PASSPHRASE_CHARS:
        raise InvalidInput(f"a passphrase has at least {MIN_PASSPHRASE_CHARS} characters")
    target = parse_file(path)
    if target.exists():
        raise InvalidInput(f"{target.name} is there already; name another file")
    store_id = str(memory.status()["store_id"])
    try:
        home = config_dir or default_config_dir()
        anchor, erasures = TrustStore(home), FileErasures(home)
        anchor.bind(store_id)
        exported = anchor.export_entries()
        if exported is None:
            raise StoreUnavailable("this machine has no key of the store; adopt it first")
        entries = [entry for entry in erasures.entries() if entry.get("entry") in EXPORTED_ENTRY_KINDS]
        tombstones = erasures.key()
        content = {
            "store": store_id,
            **exported,
            "erasures": entries,
            "tombstones": None if tombstones is None else tombstones.hex(),
        }
        durable.replace(target, encrypt_with_passphrase(content, passphrase))
    except OSError as exc:
        raise StoreUnavailable(f"the key cannot be written: {exc.strerror or 'output error'}") from exc
    return KeyTransfer(path=str(target), store_id=store_id, entries=len(entries), tombstones=True)


def import_key(
    path: str | Path, passphrase: str, *, config_dir: Path | None = None, replace: bool = False
) -> KeyTransfer:
    """Import a key into this home, so that the store is known here at any path.

    Raises:
        InvalidInput: the file has another format, or the passphrase is wrong.
        Conflict: this home has another key of the store, and ``replace`` is not given.
        StoreUnavailable: the file cannot be read, or the configuration folder cannot be written.
    """

    file = parse_file(path)
    try:
        content = decrypt_with_passphrase(file.read_bytes(), passphrase)
        home = config_dir or default_config_dir()
        anchor, erasures = TrustStore(home), FileErasures(home)
        anchor.bind(content["store"])
        stored_key = anchor.key()
        if stored_key is not None and stored_key.hex() != content["key"] and not replace:
            raise Conflict("this home has another key of that store; take this one in its place with --replace")
        anchor.import_entries(content, fresh=stored_key is None or stored_key.hex() != content["key"])
        known = [entry for entry in erasures.entries() if entry.get("entry") in EXPORTED_ENTRY_KINDS]
        erasures.add([each for each in content["erasures"] if each not in known])
        same = _import_tombstone_key(erasures, content["tombstones"])
    except OSError as exc:
        raise StoreUnavailable(f"the key cannot be imported: {exc.strerror or 'input or output error'}") from exc
    return KeyTransfer(path=str(file), store_id=content["store"], entries=len(content["erasures"]), tombstones=same)


def _import_tombstone_key(erasures: Any, key: str | None) -> bool:
    """Store the key of tombstones unless this home has one; return whether this home now has this key."""
    if key is None:
        return True
    stored_key = erasures.key()
    return bool((stored_key or erasures.take_key(bytes.fromhex(key))) == bytes.fromhex(key))
