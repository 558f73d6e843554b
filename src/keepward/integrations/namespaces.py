"""Names of other systems as scopes and keys, and the index text of values.

Every name can be restored: characters that a scope or key cannot contain are escaped, and two names never become one.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, unquote

from keepward.core.memory import CORE_BLOCKS
from keepward.core.principals import MAX_SCOPE_DEPTH, SHARED_SCOPE
from keepward.core.value import plain_key

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PLAIN = re.compile(r"[A-Za-z0-9_-]")
_MAX_SEGMENT_LENGTH = 64
#: Prefix of a label in base64. An escaped label never begins so: after ``_..`` it is empty or has a dot or hyphen.
_PACKED = "_..b"


def segment_of(label: str) -> str:
    """Return a label as a segment of a scope: other bytes are escaped as a dot and two hexadecimal digits.

    If the result is too long, for example a name in another script, it is base64 with a prefix of its own.
    """
    bare = "".join(
        char if _PLAIN.match(char) else "".join(f".{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
        for char in label
    )
    segment = f"_..{bare}" if bare[:1] in {"", ".", "-"} else bare
    if len(segment) > _MAX_SEGMENT_LENGTH:
        segment = _PACKED + urlsafe_b64encode(label.encode("utf-8", "surrogatepass")).decode().rstrip("=")
    if len(segment) > _MAX_SEGMENT_LENGTH:
        raise ValueError(f"a label has at most {_MAX_SEGMENT_LENGTH} letters and digits of ASCII, or 45 bytes of UTF-8")
    return segment


def label_of(segment: str) -> str:
    """Return the label of a segment."""
    if segment.startswith(_PACKED):
        return urlsafe_b64decode(segment.removeprefix(_PACKED) + "===").decode("utf-8", "surrogatepass")
    return unquote(re.sub(r"\.([0-9a-f]{2})", r"%\1", segment.removeprefix("_..")), errors="surrogatepass")


def to_scope(scope: str, labels: Iterable[str]) -> str:
    """Return the scope of labels below another scope; ``ValueError`` if a label is too long or there are too many."""
    target = "/".join((scope.removesuffix(SHARED_SCOPE), *map(segment_of, labels))) or SHARED_SCOPE
    if target.count("/") > MAX_SCOPE_DEPTH:
        used = scope.removesuffix(SHARED_SCOPE).count("/")
        raise ValueError(f"a scope has at most {MAX_SCOPE_DEPTH} parts, of which {used} are used")
    return target


def to_namespace(scope: str, target: str) -> tuple[str, ...]:
    """Return the labels of a scope below another scope; none for the same scope."""
    return (
        tuple(map(label_of, target[len(scope.removesuffix(SHARED_SCOPE)) + 1 :].split("/"))) if target != scope else ()
    )


def labels_of(path: str | None) -> list[str]:
    """Return the labels in a path such as ``/team/ana``."""
    return [label for label in (path or "").split("/") if label]


def key_of(name: str) -> str:
    """Return a name as the key of a memory, escaped if necessary."""
    plain = name.isprintable() and name == plain_key(name) and name[:1] not in {"", "%"}
    return name if plain and name.casefold() not in CORE_BLOCKS else f"%{quote(name, safe='')}"


def name_of(key: str) -> str:
    """Return the name of a key."""
    return unquote(key[1:]) if key[:1] == "%" else key


def index_text(texts: Iterable[str], max_length: int) -> str:
    """Return texts as the text of a memory, one per line, without control characters, truncated to a length."""
    return _CONTROLS.sub(" ", "\n".join(texts))[:max_length]


def texts_of(value: Any, name: str = "") -> Iterator[str]:
    """Yield the texts in a value, and its numbers with their names."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from texts_of(item, str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_of(item, name)
    elif value is not None:
        yield value if isinstance(value, str) else f"{name}: {value}"
