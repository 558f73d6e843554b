"""The records of stores in the configuration directory of a user: keys, heads, tokens and erasures.

Layout: ``stores/<store_id>/key`` (32 bytes), ``owner.token``, ``place`` (JSON: the last path of the store) and
``heads/<digest of the tenant's name>``. A file of heads has two records of 72 bytes: one of the journal, and one of the
rows outside it. A record has the seq (8 bytes, big-endian), the hash of the head (32 bytes), and an HMAC over the
tenant and both (32 bytes). Zeros mean that no head is recorded.
One list of erasures serves all stores: ``erasures/key`` and ``erasures/list.jsonl`` (one JSON object a line).

Invariants
(1) Folders are 0700, files 0600. Neither key nor token is ever written to the store's folder.
(2) A recorded head only advances, even when several processes record heads at once.
(3) Keys and erasures are flushed to disk: without its key a store must be adopted again, and backups depend on the
    list. A head is not flushed: after a power cut the recorded head is only older than the store.
(4) A store is known by its id and its path. If its file is at another path and no longer at the recorded one, it has
    moved. If the file is still there too, the store is a copy, which gets an id of its own when its owner adopts it.
(5) The key of erasures outlives that of any store, so that tombstones are recognised after an adoption.
(6) A token is listed by its hash. A revoked token stays revoked when its row, or the complete store, is restored.
(7) A last line of the list that a crash cut short is skipped; the erasure is added again from the journal.

Late imports: an extra may be missing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keepward import durable, folders, locks
from keepward.core.commit import Head
from keepward.core.serialization import tenant_digest
from keepward.core.value import load_json
from keepward.errors import InvalidInput, ModelUnavailable, Tampered
from keepward.ports.world import HeadKind, StoreRecognition

_HEAD_BYTES = 72
#: Maximum number of tenants whose path is cached.
_MAX_CACHED_PATHS = 1_024
_HEAD_OFFSETS: dict[HeadKind, int] = {"journal": 0, "sums": _HEAD_BYTES}
_LABELS: dict[HeadKind, bytes] = {"journal": b"keepward/anchor/v1\0", "sums": b"keepward/anchor/beside/v1\0"}
_DAMAGED = "the record of the store on this machine is damaged; run `keepward verify`, then `adopt`"

#: The format of a file sealed with a passphrase: scrypt for the key (RFC 7914), ChaCha20-Poly1305 for the seal
#: (RFC 8439). One JSON object with ``format``, ``n``, ``r``, ``p``, ``salt``, ``nonce`` and ``sealed``, the last three
#: in hex; everything but ``sealed`` is authenticated exactly as written.
KEY_FILE_FORMAT = "keepward-key/1"
#: 128 MB and about half a second for each guess.
_SCRYPT_COST = {"n": 1 << 17, "r": 8, "p": 1}
#: Most memory that a file may ask for, in bytes.
_MAX_SCRYPT_COST = {"n": 1 << 18, "r": 16, "p": 4}


def default_config_dir() -> Path:
    """Return the folder of this user's keys and heads; see ``folders``."""
    return Path(folders.config_folder(os.environ))


def _read_file(path: Path) -> bytes | None:
    """Return the content of a file; None without one."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _read_locked(path: str | Path, size: int = -1) -> bytes:
    """Return the content of a file while no other process writes to it, or its first ``size`` bytes."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - every write reads one, and a Path costs more
        locks.lock_file(file.fileno(), shared=True)
        return file.read(size)


def _make_folder(config_dir: Path, *names: str) -> None:
    """Create a folder in the configuration directory; every entry down to it is on disk."""
    folder = config_dir.joinpath(*names)
    durable.make_folder(folder)
    for each in (folder, *folder.parents[: len(names)]):
        durable.flush(each.parent)


class TrustStore:
    """Stores the key and the heads of one store in files; see the protocol. Creates ``config_dir`` when needed."""

    def __init__(self, config_dir: str | Path) -> None:
        self._config = Path(config_dir)
        self._folder: Path | None = None
        self._location: dict[str, Any] | None = None
        self._key: bytes | None = None
        #: Paths of the files of heads, by tenant. They are cached because every write uses them.
        self._head_files: dict[str, str] = {}

    def bind(self, store_id: str, path: Path | None = None) -> StoreRecognition:
        """Select a store, and return whether this user knows it; see (4). ``store_id`` is alphanumeric.

        Raises:
            OSError: the record of the store cannot be read or written.
        """
        self._folder = self._config / "stores" / store_id
        self._location = None
        if path is not None:
            path = path.resolve()
            about = path.stat()
            self._location = {"path": str(path), "device": about.st_dev, "inode": about.st_ino}
        self._head_files.clear()
        if not (self._folder / "key").exists():
            return "unknown"
        here, there = self._location, _read_location(self._folder)
        if here is None:
            return "known"
        # The folder has another inode: store and configuration directory were copied together, so this is not a copy.
        if there is not None and there["folder"] == self._folder.stat().st_ino and there["path"] != here["path"]:
            same = (there["device"], there["inode"]) == (here["device"], here["inode"])
            if _is_store_at(there, store_id):
                # A link leads to the known file.
                return "known" if same else "copied"
        self._record_location(there)
        return "known"

    def _record_location(self, recorded: dict[str, Any] | None = None) -> None:
        """Record the path of the store's file, unless it is what ``recorded`` contains."""
        if self._location is not None:
            location = {**self._location, "folder": self._store_folder().stat().st_ino}
            if location != recorded:
                durable.replace(self._store_folder() / "place", json.dumps(location).encode())

    def recorded_path(self) -> str | None:
        there = _read_location(self._store_folder())
        return None if there is None else str(there["path"])

    def had_store_at(self, path: Path) -> bool:
        """Whether the store at a path was opened with this configuration directory before."""
        return store_at(self._config, path) is not None

    def key(self) -> bytes | None:
        key = _read_file(self._store_folder() / "key")
        if key is None:
            return None
        self._key = key if len(key) == 32 else None
        return self._key

    def adopt(self) -> bytes:
        folder = self._store_folder()
        _make_folder(self._config, "stores", folder.name)
        self._record_location()
        shutil.rmtree(folder / "heads", ignore_errors=True)
        durable.make_folder(folder / "heads")
        key = os.urandom(32)
        durable.replace(folder / "key", key)
        self._key = key
        return key

    def export_entries(self) -> dict[str, Any] | None:
        """Return the key and the heads as JSON values, for another configuration directory; None without a key."""
        key = self.key()
        if key is None:
            return None
        heads = self._store_folder() / "heads"
        return {
            "key": key.hex(),
            "heads": {
                name: _read_locked(heads / name, 2 * _HEAD_BYTES).hex() for name in sorted(self.tenant_digests())
            },
        }

    def import_entries(self, entries: dict[str, Any], *, fresh: bool) -> None:
        """Store a key and heads from another configuration directory. Recorded heads stay unless the key is ``fresh``.

        Raises:
            OSError: they cannot be written.
        """
        folder = self._store_folder()
        if fresh:
            # The recorded heads are sealed with the other key.
            shutil.rmtree(folder, ignore_errors=True)
        _make_folder(self._config, "stores", folder.name, "heads")
        for name, raw in entries["heads"].items():
            if name.isalnum() and not (folder / "heads" / name).exists():
                durable.replace(folder / "heads" / name, bytes.fromhex(raw))
        durable.replace(folder / "key", bytes.fromhex(entries["key"]))

    def last_head(self, tenant: str, of: HeadKind = "journal") -> Head | None:
        try:
            raw = _read_locked(self._head_file(tenant), 2 * _HEAD_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if len(raw) not in {0, _HEAD_BYTES, 2 * _HEAD_BYTES}:
            raise Tampered(_DAMAGED)
        # Empty: another process has created the file and is about to record its first head.
        own = raw[_HEAD_OFFSETS[of] : _HEAD_OFFSETS[of] + _HEAD_BYTES]
        if not own.strip(b"\0"):
            return None
        head = Head(seq=int.from_bytes(own[:8], "big"), hash=own[8:40])
        if len(own) != _HEAD_BYTES or not hmac.compare_digest(own, self._encode_head(tenant, head, of)):
            raise Tampered(_DAMAGED)
        return head

    def record_head(self, tenant: str, head: Head | None, sums: Head | None = None) -> None:
        """Record each head that is ahead of its recorded one.

        Raises:
            OSError: it cannot be written.
        """
        handle = os.open(self._head_file(tenant), os.O_CREAT | os.O_RDWR | durable.BINARY, 0o600)
        try:
            locks.lock_file(handle)
            stored = os.read(handle, 2 * _HEAD_BYTES)
            fresh = raw = stored.ljust(2 * _HEAD_BYTES, b"\0")
            given: tuple[tuple[HeadKind, Head | None], ...] = (("journal", head), ("sums", sums))
            for of, each in given:
                offset = _HEAD_OFFSETS[of]
                if each is not None and int.from_bytes(raw[offset : offset + 8], "big") < each.seq:
                    fresh = fresh[:offset] + self._encode_head(tenant, each, of) + fresh[offset + _HEAD_BYTES :]
            if fresh != raw:
                try:
                    durable.write_all(handle, fresh, 0)
                except OSError:
                    # A part of a record would seem damaged.
                    os.ftruncate(handle, len(stored))
                    durable.write_all(handle, stored, 0)
                    raise
        finally:
            os.close(handle)

    def unwritable_reason(self, tenant: str) -> str | None:
        file = self._head_file(tenant)
        try:
            try:
                os.close(os.open(file, os.O_RDWR))
            except FileNotFoundError:
                if not os.access(Path(file).parent, os.W_OK | os.X_OK):
                    return "no file can be made in its folder"
        except OSError as exc:
            return exc.strerror or "the disk gave an error"
        return None

    def tenant_digests(self) -> set[str]:
        try:
            return {entry.name for entry in (self._store_folder() / "heads").iterdir()}
        except (FileNotFoundError, NotADirectoryError):
            return set()

    def _store_folder(self) -> Path:
        if self._folder is None:
            raise ValueError("the anchor is not bound to a store")
        return self._folder

    def _head_file(self, tenant: str) -> str:
        file = self._head_files.get(tenant)
        if file is None:
            file = str(self._store_folder() / "heads" / tenant_digest(tenant))
            if len(self._head_files) < _MAX_CACHED_PATHS:
                self._head_files[tenant] = file
        return file

    def _encode_head(self, tenant: str, head: Head, of: HeadKind) -> bytes:
        body = head.seq.to_bytes(8, "big") + head.hash
        key = self._key or self.key() or b""
        return body + hmac.digest(key, _LABELS[of] + tenant.encode() + b"\0" + body, "sha256")


def store_at(config_dir: str | Path, path: Path) -> str | None:
    """Return the id of the store that this configuration directory knows at a path; None without one."""
    named = str(path.resolve())
    for folder in sorted((Path(config_dir) / "stores").glob("*/")):
        there = _read_location(folder)
        if there is not None and there["path"] == named:
            return folder.name
    return None


def _read_location(folder: Path) -> dict[str, Any] | None:
    """Return the recorded identity of a path; None without one, for example in records of older releases."""
    try:
        location = load_json(_read_file(folder / "place") or b"null")
    except ValueError:
        return None
    return location if isinstance(location, dict) and location.keys() == {"path", "device", "inode", "folder"} else None


def _is_store_at(there: dict[str, Any], store_id: str) -> bool:
    """Whether the store is still at a path: its file exists, and the id file there names no other."""
    path = Path(there["path"])
    try:
        said = path.with_name(path.name + ".id")
        return path.exists() and durable.read_regular(said, 1 << 20).decode("ascii").strip() == store_id
    except (FileNotFoundError, UnicodeDecodeError, InvalidInput):
        return True
    except OSError:
        return False


class TokenFile:
    """The file with the owner's token of a store. If ``config_dir`` is None, it is in the default one.

    Raises:
        OSError: this user has no home directory.
    """

    def __init__(self, config_dir: str | Path | None, store_id: str) -> None:
        #: Path of the token file, which may not exist.
        self._config = Path(config_dir or default_config_dir())
        self.path = self._config / "stores" / store_id / "owner.token"

    def read(self) -> str | None:
        """Return the token; None without a file."""
        raw = _read_file(self.path) or b""
        return raw.decode().strip() or None if raw.isascii() else None

    def write(self, secret: str) -> None:
        """Replace the token.

        Raises:
            OSError: it cannot be written.
        """
        _make_folder(self._config, "stores", self.path.parent.name)
        durable.replace(self.path, f"{secret}\n".encode("ascii"))


class FileErasures:
    """Stores the list of erasures and revoked tokens in ``config_dir``, created when needed; see the protocol."""

    def __init__(self, config_dir: str | Path) -> None:
        self._folder = Path(config_dir) / "erasures"
        self._key_file = str(self._folder / "key")
        self._key: bytes | None = None
        #: Modification time and size of the list, and the hashes in it.
        self._revoked: tuple[tuple[int, int], frozenset[str]] = ((0, 0), frozenset())

    def key(self, *, make: bool = False) -> bytes | None:
        if self._key is not None:
            return self._key
        # Every write calls this, and mostly the file does not exist.
        try:
            handle = os.open(self._key_file, os.O_RDONLY | durable.BINARY)
        except (FileNotFoundError, NotADirectoryError):
            stored = b""
        else:
            try:
                stored = os.read(handle, 33)
            finally:
                os.close(handle)
        if len(stored) == 32:
            self._key = stored
        elif make:
            self.take_key(os.urandom(32))
        return self._key

    def take_key(self, key: bytes) -> bytes:
        """Store a key from another configuration directory unless there is one; return the stored one."""
        _make_folder(self._folder.parent, self._folder.name)
        self._key = durable.create_exclusive(Path(self._key_file), key)
        return self._key

    def add(self, entries: Sequence[Mapping[str, Any]]) -> None:
        if not entries:
            return
        _make_folder(self._folder.parent, self._folder.name)
        lines = "".join(json.dumps(entry, sort_keys=True, separators=(",", ":")) + "\n" for entry in entries)
        flags = os.O_CREAT | os.O_RDWR | os.O_APPEND | durable.BINARY
        handle = os.open(self._folder / "list.jsonl", flags, 0o600)
        try:
            locks.lock_file(handle)
            size = os.fstat(handle).st_size
            if size and os.lseek(handle, size - 1, os.SEEK_SET) and os.read(handle, 1) != b"\n":
                lines = "\n" + lines
            durable.write_all(handle, lines.encode("ascii"))
            os.fsync(handle)
        finally:
            os.close(handle)
        durable.flush(self._folder)

    def revoked(self) -> frozenset[str]:
        """Return the hashes of revoked tokens; the list is read again only when it has changed."""
        try:
            about = (self._folder / "list.jsonl").stat()
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
        stamp = (about.st_mtime_ns, about.st_size)
        if stamp != self._revoked[0]:
            hashes = {str(entry.get("hash")) for entry in self.entries() if entry.get("entry") == "revocation"}
            self._revoked = (stamp, frozenset(hashes))
        return self._revoked[1]

    def entries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        try:
            raw = _read_locked(self._folder / "list.jsonl")
        except (FileNotFoundError, NotADirectoryError):
            return found
        for line in raw.decode("ascii", "replace").splitlines():
            try:
                entry = load_json(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                found.append(entry)
        return found


def encrypt_with_passphrase(content: dict[str, Any], passphrase: str) -> bytes:
    """Return the content of a file that only the passphrase opens.

    Raises:
        ModelUnavailable: the package for it is not installed.
    """
    head = {"format": KEY_FILE_FORMAT, **_SCRYPT_COST, "salt": os.urandom(16).hex(), "nonce": os.urandom(12).hex()}
    cipher = _cipher(head, passphrase)
    sealed = cipher.encrypt(bytes.fromhex(str(head["nonce"])), json.dumps(content).encode(), _authenticated_bytes(head))
    return json.dumps({**head, "sealed": sealed.hex()}, indent=1).encode() + b"\n"


def decrypt_with_passphrase(raw: bytes, passphrase: str) -> dict[str, Any]:
    """Return the sealed content of a file.

    Raises:
        InvalidInput: the file has another format or was changed, or the passphrase is wrong.
        ModelUnavailable: the package for it is not installed.
    """
    try:
        sealed_file = load_json(raw)
        head = {name: value for name, value in sealed_file.items() if name != "sealed"}
        fits = head["format"] == KEY_FILE_FORMAT and all(
            0 < int(head[name]) <= most for name, most in _MAX_SCRYPT_COST.items()
        )
        nonce, sealed = bytes.fromhex(head["nonce"]), bytes.fromhex(sealed_file["sealed"])
        bytes.fromhex(head["salt"])
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise InvalidInput("the file is not a key that Keepward exported") from exc
    if not fits:
        raise InvalidInput("the file is not a key that Keepward exported, or a newer release exported it")
    cipher = _cipher(head, passphrase)
    from cryptography.exceptions import InvalidTag

    try:
        return dict(json.loads(cipher.decrypt(nonce, sealed, _authenticated_bytes(head))))
    except (InvalidTag, ValueError) as exc:
        raise InvalidInput("the passphrase does not open the file, or the file was changed") from exc


def _cipher(head: dict[str, Any], passphrase: str) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    except ModuleNotFoundError as exc:
        raise ModelUnavailable("exporting and importing keys takes `pip install 'keepward[key]'`") from exc
    cost = {name: int(head[name]) for name in ("n", "r", "p")}
    salt = bytes.fromhex(str(head["salt"]))
    key = hashlib.scrypt(passphrase.encode(), salt=salt, **cost, maxmem=1 << 30, dklen=32)
    return ChaCha20Poly1305(key)


def _authenticated_bytes(head: dict[str, Any]) -> bytes:
    return json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
