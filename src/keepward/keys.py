"""Carry a store's key to another home: a container, a second machine, or the same one after a loss.

Invariants
(1) What is carried is the sealing key, the noted heads, and what keeps the erased erased and the revoked revoked. No
    token and no content is in it.
(2) A key that another home has of the store is not overwritten unless that is asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward import durable
from keepward.adapters.trust_store import (
    FileErasures,
    TrustStore,
    decrypt_with_passphrase,
    default_config_dir,
    encrypt_with_passphrase,
)
from keepward.core.copies import KeyTransfer
from keepward.errors import Conflict, InvalidInput, StoreUnavailable, Unauthorised

if TYPE_CHECKING:
    from keepward.memory import Memory

#: Shortest passphrase.
MIN_PASSPHRASE_CHARS = 12
#: Entries of the list of erasures that mean something in another home; paths of backups do not.
EXPORTED_ENTRY_KINDS = frozenset({"erasure", "revocation"})


def export_key(memory: Memory, path: str | Path, passphrase: str, *, config_dir: Path | None = None) -> KeyTransfer:
    """Write the key of an owner's store to a file that is not there yet, sealed with a passphrase.

    Raises:
        Unauthorised: the handle is not an owner's.
        InvalidInput: the file is there already, or the passphrase has fewer than 12 characters.
        StoreUnavailable: this machine keeps no key of the store, or the file cannot be written.
        ModelUnavailable: `keepward[key]` is not installed.
    """

    if not memory.actor.is_owner:
        raise Unauthorised("exporting a key takes the owner")
    if len(passphrase) < MIN_PASSPHRASE_CHARS:
        raise InvalidInput(f"a passphrase has at least {MIN_PASSPHRASE_CHARS} characters")
    target = Path(path).expanduser().absolute()
    if target.exists():
        raise InvalidInput(f"{target.name} is there already; name another file")
    store_id = str(memory.status()["store_id"])
    try:
        home = config_dir or default_config_dir()
        anchor, erasures = TrustStore(home), FileErasures(home)
        anchor.bind(store_id, Path(memory.path))
        carried = anchor.carried()
        if carried is None:
            raise StoreUnavailable("this machine keeps no key of the store; adopt it first")
        entries = [each for each in erasures.entries() if each.get("entry") in EXPORTED_ENTRY_KINDS]
        tombstones = erasures.key()
        content = {
            "store": store_id,
            **carried,
            "erasures": entries,
            "tombstones": None if tombstones is None else tombstones.hex(),
        }
        durable.replace(target, encrypt_with_passphrase(content, passphrase))
    except OSError as fault:
        raise StoreUnavailable(f"the key cannot be written: {fault.strerror or 'output error'}") from fault
    return KeyTransfer(path=str(target), store_id=store_id, entries=len(entries), tombstones=True)


def import_key(
    path: str | Path, passphrase: str, *, config_dir: Path | None = None, replace: bool = False
) -> KeyTransfer:
    """Take a key into this home, so that the store is known here wherever it lies; see (2).

    Raises:
        InvalidInput: it is no such file, or the passphrase is another.
        Conflict: this home has another key of the store, and ``replace`` is not given.
        StoreUnavailable: the file cannot be read, or the configuration folder cannot be written.
    """

    file = Path(path).expanduser()
    try:
        content = decrypt_with_passphrase(file.read_bytes(), passphrase)
        home = config_dir or default_config_dir()
        anchor, erasures = TrustStore(home), FileErasures(home)
        anchor.bind(content["store"])
        held = anchor.key()
        if held is not None and held.hex() != content["key"] and not replace:
            raise Conflict("this home has another key of that store; take this one in its place with --replace")
        anchor.take(content, fresh=held is None or held.hex() != content["key"])
        known = [each for each in erasures.entries() if each.get("entry") in EXPORTED_ENTRY_KINDS]
        erasures.note([each for each in content["erasures"] if each not in known])
        same = _import_tombstone_key(erasures, content["tombstones"])
    except OSError as fault:
        raise StoreUnavailable(f"the key cannot be taken in: {fault.strerror or 'input or output error'}") from fault
    return KeyTransfer(path=str(file), store_id=content["store"], entries=len(content["erasures"]), tombstones=same)


def _import_tombstone_key(erasures: Any, key: str | None) -> bool:
    """Keep the key of tombstones where this home has none; return whether it is the one of this home now."""
    if key is None:
        return True
    held = erasures.key()
    return bool((held or erasures.take_key(bytes.fromhex(key))) == bytes.fromhex(key))
