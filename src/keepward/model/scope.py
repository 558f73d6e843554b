"""Scopes: visibility paths inside a tenant.

Invariants
(1) A scope is ``/`` or ``/a/b``: segments of letters, digits, ``.``, ``_``, ``-``, never ``.`` or ``..``.
(2) A reader at a path sees that path and its ancestors, and nothing else.
(3) Membership is decided on whole paths, never on prefixes of text: ``/agents/or`` does not see
    ``/agents/orion``.
"""

from __future__ import annotations

import re

from keepward.errors import InvalidInput

SHARED = "/"
#: Where the store keeps what is its own, such as which learned weights serve. Not a well-formed scope, so that no
#: handle stands there, sees it from anywhere, or writes to it.
RESERVED = "/.keepward"
_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", re.ASCII)
_TENANT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@:-]{0,127}", re.ASCII)
#: The longest path, in segments.
DEPTH = 8


def parse_scope(name: str) -> str:
    """Return the canonical path of a scope name.

    ``shared`` and ``user`` are ``/``; a bare name such as ``orion`` is ``/agents/orion``; a path is
    itself without a trailing slash.

    Raises:
        InvalidInput: the name breaks (1) or has more than 8 segments.
    """
    if name in {SHARED, "shared", "user"}:
        return SHARED
    path = name if name.startswith("/") else f"/agents/{name}"
    segments = path.removesuffix("/").split("/")[1:] if name else []
    if not segments or len(segments) > DEPTH or not all(_SEGMENT.fullmatch(part) for part in segments):
        raise InvalidInput("unknown scope: use `shared`, an agent's name, or a path such as /agents/orion/tasks/42")
    return "/" + "/".join(segments)


def is_scope(path: str) -> bool:
    """Whether a path is the canonical one of a scope that can be named."""
    try:
        return parse_scope(path) == path
    except InvalidInput:
        return False


def visible_from(path: str) -> tuple[str, ...]:
    """Return the scopes a reader at a canonical path sees: its own first, ``/`` last."""
    parts = path.split("/")[1:] if path != SHARED else []
    own = tuple("/" + "/".join(parts[:depth]) for depth in range(len(parts), 0, -1))
    return (*own, SHARED)


def in_task(path: str) -> bool:
    """Whether a canonical path is a task's scope (``.../tasks/<id>``) or lies in one."""
    return "tasks" in path.split("/")[:-1]


def parse_tenant(name: str) -> str:
    """Return the tenant name, unchanged.

    Raises:
        InvalidInput: empty, longer than 128, or outside letters, digits and ``. _ @ : -``.
    """
    if not _TENANT.fullmatch(name):
        raise InvalidInput("a tenant is 1 to 128 letters, digits or . _ @ : - and starts with a letter or digit")
    return name
