"""The project of a folder: the repository that contains it.

A remote names it by host and path, so that two hosts never share a project. Clones of one remote, and worktrees of one
repository, are one project. Without a remote, the folder and a hash of its path name it. Files are read and no program
is run. A repository whose settings cannot be read counts as one without a remote.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from urllib.parse import unquote

from keepward import durable
from keepward.errors import InvalidInput

#: Maximum characters of a name, and characters of the hash in it.
MAX_NAME_LENGTH, HASH_LENGTH = 64, 8
#: Hosts that ignore the case of owners and repositories. Any other host may keep two apart.
CASELESS_HOSTS = frozenset({"github.com", "gitlab.com", "bitbucket.org", "dev.azure.com", "codeberg.org", "gitea.com"})
#: Other hosts of the same repositories: for SSH, most of them on the port of HTTPS.
_ALIASES = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
    "ssh.dev.azure.com": "dev.azure.com",
}
_SECTION = re.compile(r'^\s*\[remote "(?P<name>[^"]+)"\]\s*$')
_SETTING = re.compile(r'^\s*url\s*=\s*"?(?P<url>\S.*?)"?\s*$')
#: `https://ana@host:8443/acme/shop.git`, `git@host:acme/shop.git` and `[git@host:2222]:acme/shop.git`.
_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:[^/]*@)?(?P<host>\[[^]/]*\]|[^/:]*)(?::\d*)?(?:/(?P<path>.*))?", re.IGNORECASE
)
_SCP = re.compile(
    r"(?:\[(?:[^]/]*@)?(?P<ported>[^]/:@]+)(?::\d+)?\]|(?:[^/:]*@)?(?P<host>[^/:]+)):(?P<path>(?!//|:).*)"
)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
#: Nothing but a name of this form is as unambiguous as host and path: the path is the last two words.
_PLAIN = re.compile(rf"(?!.*-[0-9a-f]{{{HASH_LENGTH}}}$)[a-z0-9][a-z0-9.-]*\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


def project_of(folder: str | Path) -> str | None:
    """Return the name of the project that contains a folder.

    The name is ``github.com.acme.shop`` if the remote is ``git@github.com:acme/shop.git``. It is ``shop-1f0a77c2`` for
    a repository without a remote, and for a folder in no repository. None for the home folder and the root folder.
    """
    start = Path(os.path.realpath(folder))
    for root in (start, *start.parents):
        if (root / ".git").exists():
            settings, main = _settings(root)
            return _named(_remote(settings), main) or _hashed(main.name, str(main))
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - leaves `~` as it is if there is no home folder
    if start in {Path(start.anchor), Path(home)}:
        return None
    return _hashed(start.name, str(start))


def _named(remote: str, root: Path) -> str | None:
    """Return the name of the project of a remote; None if it names no repository."""
    host, path = _parsed(remote)
    if not host:
        if "://" in remote and not remote.lower().startswith("file:"):
            # A form that only another program reads. It may hold a password, so its last word stands for it.
            return _hashed(re.split("[/:@]", remote)[-1], remote)
        # A folder on this machine, from the repository if it is relative.
        path = re.sub("^file://(?:localhost)?(?=/)", "", remote, flags=re.IGNORECASE)
        path = re.sub(r"(?<=[^/])(?:/*\.git)?/*$", "", path)
        folder = path and os.path.normpath(os.path.join(root, os.path.expanduser(path)))  # noqa: PTH111, PTH118
        return _hashed(folder.strip("/").replace("/", "."), folder) if folder else None
    if not path:
        return None
    text = f"{host}.{path.replace('/', '.')}"
    plain = path.count("/") == 1 and path.count(".") == 0 and len(text) <= MAX_NAME_LENGTH and _PLAIN.fullmatch(text)
    return text if plain else _hashed(text, f"{host}/{path}")


def _parsed(remote: str) -> tuple[str, str]:
    """Return host and path of a remote, each in the one form that it has; two empty texts for a folder."""
    url = _URL.fullmatch(remote)
    scp = None if url or _DRIVE.match(remote) or "://" in remote else _SCP.fullmatch(remote)
    if url and url["scheme"].lower() != "file":
        host, path = url["host"], unquote(url["path"] or "")
    elif scp:
        host, path = scp["ported"] or scp["host"], scp["path"]
    else:
        return "", ""
    host = host.lower().rstrip(".")
    host = _ALIASES.get(host, host)
    path = re.sub("/{2,}", "/", path).strip("/")
    path = re.sub(r"(?<=[^/])\.git$", "", path, flags=re.IGNORECASE)
    if host == "dev.azure.com":
        # `v3/acme/web/shop` over SSH and `acme/web/_git/shop` over HTTPS.
        path = re.sub(r"^v3/|(?<=/)_git/", "", path)
    return host, path.lower() if host in CASELESS_HOSTS else path


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
        return durable.read_regular(git / "config", 10 << 20).decode("utf-8"), root
    except (OSError, ValueError, InvalidInput):
        return "", root


def _remote(settings: str) -> str:
    """Return the address of the remote `origin`, else of the first one; the empty text if there is none."""
    urls: dict[str, str] = {}
    name = None
    for line in settings.splitlines():
        if head := _SECTION.match(line):
            name = head["name"]
        elif line.lstrip().startswith("["):
            name = None
        elif name and (url := _SETTING.match(line)):
            urls.setdefault(name, url["url"])
    return urls.get("origin") or next(iter(urls.values()), "")


def _hashed(text: str, identity: str) -> str:
    """Return a text as the name of a project, with a hash of its identity."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip(".-") or "folder"
    digest = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:HASH_LENGTH]
    return f"{plain[: MAX_NAME_LENGTH - HASH_LENGTH - 1]}-{digest}"
