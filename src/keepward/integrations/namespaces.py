"""Names of other systems as scopes and keys, and values as the text that they are found by.

Invariants
(1) Every name comes back as it went in: what a scope or key cannot hold is escaped, and no two names become one.
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
#: Behind the two dots of a label that is only escaped stands nothing, a dot or a hyphen.
_PACKED = "_..b"


def segment_of(label: str) -> str:
    """Return a label as a segment of a scope (1): a dot stands before the hexadecimal digits of a byte.

    What that makes too long, as of a name in another script, is base64 of its bytes behind a sign of its own.
    """
    bare = "".join(
        each if _PLAIN.match(each) else "".join(f".{byte:02x}" for byte in each.encode("utf-8", "surrogatepass"))
        for each in label
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
    """Return the scope that labels name below another; ``ValueError`` where one is too long, or there are too many."""
    found = "/".join((scope.removesuffix(SHARED_SCOPE), *map(segment_of, labels))) or SHARED_SCOPE
    if found.count("/") > MAX_SCOPE_DEPTH:
        taken = scope.removesuffix(SHARED_SCOPE).count("/")
        raise ValueError(f"a scope has at most {MAX_SCOPE_DEPTH} parts, of which {taken} are taken")
    return found


def to_namespace(scope: str, target: str) -> tuple[str, ...]:
    """Return the labels that name a scope below another; none for the same."""
    return (
        tuple(map(label_of, target[len(scope.removesuffix(SHARED_SCOPE)) + 1 :].split("/"))) if target != scope else ()
    )


def labels_of(path: str | None) -> list[str]:
    """Return the labels in a path such as ``/team/ana``."""
    return [each for each in (path or "").split("/") if each]


def key_of(name: str) -> str:
    """Return a name as the key of a memory (1)."""
    plain = name.isprintable() and name == plain_key(name) and name[:1] not in {"", "%"}
    return name if plain and name.casefold() not in CORE_BLOCKS else f"%{quote(name, safe='')}"


def name_of(key: str) -> str:
    """Return the name of a key."""
    return unquote(key[1:]) if key[:1] == "%" else key


def index_text(texts: Iterable[str], max_length: int) -> str:
    """Return texts as the text of a memory, a line each, without what no text may hold, cut to a length."""
    return _CONTROLS.sub(" ", "\n".join(texts))[:max_length]


def texts_of(value: Any, name: str = "") -> Iterator[str]:
    """Yield the texts in a value, and its numbers under their names."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from texts_of(each, str(key))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_of(each, name)
    elif value is not None:
        yield value if isinstance(value, str) else f"{name}: {value}"
