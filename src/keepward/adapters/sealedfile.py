"""A file sealed with a passphrase: scrypt for the key (RFC 7914), ChaCha20-Poly1305 for the seal (RFC 8439).

Layout: one JSON object with ``format``, ``n``, ``r``, ``p``, ``salt``, ``nonce`` and ``sealed``, the last three in hex.
Everything but ``sealed`` is authenticated as it stands.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from keepward.errors import InvalidInput, ModelUnavailable

FORMAT = "keepward-key/1"
#: 128 MB and about half a second a guess.
_COST = {"n": 1 << 17, "r": 8, "p": 1}
#: What a file may ask for, so that none can exhaust the memory.
_MOST = {"n": 1 << 18, "r": 16, "p": 4}


def seal(content: dict[str, Any], passphrase: str) -> bytes:
    """Return a file that only the passphrase opens.

    Raises:
        ModelUnavailable: the package for it is not installed.
    """
    head = {"format": FORMAT, **_COST, "salt": os.urandom(16).hex(), "nonce": os.urandom(12).hex()}
    cipher = _cipher(head, passphrase)
    sealed = cipher.encrypt(bytes.fromhex(str(head["nonce"])), json.dumps(content).encode(), _bound(head))
    return json.dumps({**head, "sealed": sealed.hex()}, indent=1).encode() + b"\n"


def unseal(raw: bytes, passphrase: str) -> dict[str, Any]:
    """Return what a file holds.

    Raises:
        InvalidInput: it is no such file, or the passphrase is another, or it was changed.
        ModelUnavailable: the package for it is not installed.
    """
    try:
        whole = json.loads(raw)
        head = {name: value for name, value in whole.items() if name != "sealed"}
        fits = head["format"] == FORMAT and all(0 < int(head[name]) <= most for name, most in _MOST.items())
        nonce, sealed = bytes.fromhex(head["nonce"]), bytes.fromhex(whole["sealed"])
        bytes.fromhex(head["salt"])
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise InvalidInput("the file is no key that was exported by Keepward") from fault
    if not fits:
        raise InvalidInput("the file is no key that was exported by Keepward, or by a newer one")
    cipher = _cipher(head, passphrase)
    from cryptography.exceptions import InvalidTag

    try:
        return dict(json.loads(cipher.decrypt(nonce, sealed, _bound(head))))
    except (InvalidTag, ValueError) as fault:
        raise InvalidInput("the passphrase does not open the file, or the file was changed") from fault


def _cipher(head: dict[str, Any], passphrase: str) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    except ModuleNotFoundError as fault:
        raise ModelUnavailable("carrying a key takes `pip install 'keepward[key]'`") from fault
    cost = {name: int(head[name]) for name in ("n", "r", "p")}
    salt = bytes.fromhex(str(head["salt"]))
    key = hashlib.scrypt(passphrase.encode(), salt=salt, **cost, maxmem=1 << 30, dklen=32)
    return ChaCha20Poly1305(key)


def _bound(head: dict[str, Any]) -> bytes:
    return json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
