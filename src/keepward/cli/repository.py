"""The project of a folder: the repository that contains it.

The name is that of the remote with its owner, or that of the folder with a hash of its path. Clones of one remote, and
worktrees of one repository, are one project. Files are read and no program is run. A repository whose settings cannot
be read counts as one without a remote.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

#: Maximum characters of a name, and characters of the hash in it.
MAX_NAME_LENGTH, HASH_LENGTH = 64, 8
_REMOTE = re.compile(r'^\s*\[remote "(?P<name>[^"]+)"\]\s*$')
_URL = re.compile(r"^\s*url\s*=\s*(?P<url>\S.*?)\s*$")
#: `https://host/acme/shop.git`, `git@host:acme/shop.git`, or a path.
_PATH = re.compile(r"(?:[a-z+]+://[^/]*/|[^/:]+:(?!//))?/*(?P<path>.*?)/*(?:\.git)?/*", re.IGNORECASE)


def project_of(folder: str | Path) -> str | None:
    """Return the name of the project that contains a folder.

    The name is ``acme.shop`` if the remote is ``git@host:acme/shop.git``. It is ``shop-1f0a77c2`` for a repository
    without a remote, and for a folder in no repository. None for the home folder and the root folder.
    """
    start = Path(os.path.realpath(folder))
    for root in (start, *start.parents):
        if (root / ".git").exists():
            settings, main = _settings(root)
            remote = _PATH.fullmatch(_remote(settings))
            path = remote["path"].replace("/", ".") if remote else ""
            return _name(path, path) if path else _name(main.name, str(main), always=True)
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - leaves `~` as it is if there is no home folder
    if start in {Path(start.anchor), Path(home)}:
        return None
    return _name(start.name, str(start), always=True)


def _settings(root: Path) -> tuple[str, Path]:
    """Return the text of a repository's settings, and its root. For a worktree, both are of the main repository."""
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
    urls: dict[str, str] = {}
    name = None
    for line in settings.splitlines():
        if head := _REMOTE.match(line):
            name = head["name"]
        elif line.lstrip().startswith("["):
            name = None
        elif name and (url := _URL.match(line)):
            urls.setdefault(name, url["url"])
    return urls.get("origin") or next(iter(urls.values()), "")


def _name(text: str, identity: str, *, always: bool = False) -> str:
    """Return a text as the name of a project. A changed or long text gets a hash of the identity."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip(".-") or "folder"
    if plain == text and len(plain) <= MAX_NAME_LENGTH and not always:
        return plain
    digest = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:HASH_LENGTH]
    return f"{plain[: MAX_NAME_LENGTH - HASH_LENGTH - 1]}-{digest}"
