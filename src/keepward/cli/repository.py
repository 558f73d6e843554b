"""The project of a folder: the repository that it lies in.

Invariants
(1) Two repositories have two names: that of the remote with its owner, else that of the folder with a hash of its path.
    Clones of one remote, and worktrees of one repository, are one project.
(2) Files are read and no program is run. Unreadable settings count as a repository without a remote.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

#: Characters of a name, and of the hash in it.
MAX_NAME_LENGTH, HASH_LENGTH = 64, 8
_REMOTE = re.compile(r'^\s*\[remote "(?P<name>[^"]+)"\]\s*$')
_URL = re.compile(r"^\s*url\s*=\s*(?P<url>\S.*?)\s*$")
#: `https://host/acme/shop.git`, `git@host:acme/shop.git`, or a path.
_PATH = re.compile(r"(?:[a-z+]+://[^/]*/|[^/:]+:(?!//))?/*(?P<path>.*?)/*(?:\.git)?/*", re.IGNORECASE)


def project_of(folder: str | Path) -> str | None:
    """Return the name of the project that a folder lies in; None for the home folder and the root without repository.

    ``acme.shop`` for a repository whose remote is ``git@host:acme/shop.git``; ``shop-1f0a77c2`` for one without a
    remote, and for a folder that lies in no repository.
    """
    start = Path(os.path.realpath(folder))
    for root in (start, *start.parents):
        if (root / ".git").exists():
            settings, main = _settings(root)
            remote = _PATH.fullmatch(_remote(settings))
            path = remote["path"].replace("/", ".") if remote else ""
            return _name(path, path) if path else _name(main.name, str(main), always=True)
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111  `~` itself where there is no home folder
    if start in {Path(start.anchor), Path(home)}:
        return None
    return _name(start.name, str(start), always=True)


def _settings(root: Path) -> tuple[str, Path]:
    """Return the text of a repository's settings, and its root; for a worktree those of the main repository."""
    git = root / ".git"
    try:
        if git.is_file():
            # A worktree or a submodule: the file names the folder, which may name a common one.
            git = root / git.read_text("utf-8").partition("gitdir:")[2].strip()
            if (git / "commondir").is_file():
                git = Path(os.path.realpath(git / (git / "commondir").read_text("utf-8").strip()))
                root = git.parent if git.name == ".git" else git
        return (git / "config").read_text("utf-8"), root
    except (OSError, ValueError):
        return "", root


def _remote(settings: str) -> str:
    """Return the address of the remote `origin`, else of the first one; the empty text if there is none."""
    found: dict[str, str] = {}
    name = None
    for line in settings.splitlines():
        if head := _REMOTE.match(line):
            name = head["name"]
        elif line.lstrip().startswith("["):
            name = None
        elif name and (url := _URL.match(line)):
            found.setdefault(name, url["url"])
    return found.get("origin") or next(iter(found.values()), "")


def _name(text: str, identity: str, *, always: bool = False) -> str:
    """Return a text as the name of a project, with a hash of the identity if the text alone is not it."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip(".-") or "folder"
    if plain == text and len(plain) <= MAX_NAME_LENGTH and not always:
        return plain
    mark = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:HASH_LENGTH]
    return f"{plain[: MAX_NAME_LENGTH - HASH_LENGTH - 1]}-{mark}"
