"""Cited sources on this machine: files below the roots that the owner accepted, and git repositories at them.

* A path is read only if it lies below a root after all links are followed.
* Nothing is fetched: git is told not to use any network, and its settings for the repository run no program here.
* A name cited in a Python file is a class, function or assignment; any other citation is a part of a line.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from keepward.core.evidence import FoundSource, Reference

#: Bytes of the largest file that is read.
MAX_SOURCE_BYTES = 1_048_576
#: Seconds after which git is given up.
GIT_TIMEOUT_S = 10
#: Environment of git: only what finds programs, and no prompt, network, pager or settings of others.
_GIT_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C",
}
_GIT_OPTIONS = ("-c", "protocol.allow=never", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


class SourceFiles:
    """Reads what references of the forms `file` and `git` cite."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = [Path(root).expanduser() for root in roots]

    def read(self, reference: Reference) -> FoundSource:
        """Return what a reference cites now."""
        if not self._roots:
            return FoundSource(None, "no folder is accepted: set `evidence_roots` under [policy]", readable=False)
        content = self._file(reference.name) if reference.form == "file" else self._git(reference)
        if isinstance(content, FoundSource):
            return content
        if not reference.cited:
            return FoundSource(content, content=content)
        found = cited_part(content, reference.cited, python=reference.name.endswith((".py", ".pyi")))
        why = "" if found is not None else f"it has no `{reference.cited}`"
        return FoundSource(found, why, content=content)

    def _file(self, name: str) -> str | FoundSource:
        """Return the text of a file, or why there is none."""
        outside = False
        for root in self._resolved_roots():
            try:
                path = (root / name).resolve()
                if not path.is_relative_to(root):
                    outside = True
                    continue
                if not path.is_file():
                    continue
                if path.stat().st_size > MAX_SOURCE_BYTES:
                    return FoundSource(None, "it is larger than 1 MB", readable=False)
                return path.read_text("utf-8")
            except (OSError, ValueError, RuntimeError):
                return FoundSource(None, "it cannot be read as UTF-8 text", readable=False)
        if outside:
            return FoundSource(None, "it lies outside of the accepted folders", readable=False)
        return FoundSource(None, "there is no such file")

    def _resolved_roots(self) -> Iterator[Path]:
        for root in self._roots:
            try:
                yield root.resolve(strict=True)
            except (OSError, RuntimeError):
                continue

    def _git(self, reference: Reference) -> str | FoundSource:
        """Return the text of a git object, or why there is none."""
        program = shutil.which("git")
        if program is None:
            return FoundSource(None, "git is not installed", readable=False)
        why, readable = "no accepted folder is a git repository", False
        for root in self._resolved_roots():
            if not self._is_repository(root):
                continue
            if reference.name:
                done = _run_git(program, root, "cat-file", "blob", f"{reference.revision}:{reference.name}")
            else:
                done = _run_git(program, root, "cat-file", "-t", reference.revision)
            if done is None:
                return FoundSource(None, "git did not answer", readable=False)
            if done.returncode == 0 and len(done.stdout) <= MAX_SOURCE_BYTES:
                # An object never changes: its name is enough.
                return done.stdout.decode("utf-8", "replace") if reference.name else reference.revision
            if b"dubious ownership" in done.stderr:
                why, readable = "the repository belongs to another user, and git refuses it", False
            else:
                why, readable = "the repository has no such object", True
        return FoundSource(None, why, readable=readable)

    def _is_repository(self, root: Path) -> bool:
        """Whether a repository is at a root, and its objects lie below a root too."""
        try:
            folder = (root / ".git").resolve(strict=True)
            if folder.is_file():
                # That of a worktree names the folder of its repository.
                folder = (root / folder.read_text("utf-8").removeprefix("gitdir:").strip()).resolve(strict=True)
            return any(folder.is_relative_to(each) for each in self._resolved_roots())
        except (OSError, ValueError, RuntimeError):
            return False


def _run_git(program: str, root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes] | None:
    environment = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    command = [program, "-C", str(root), *_GIT_OPTIONS, *arguments]
    try:
        return subprocess.run(  # noqa: S603 - no shell; a revision has the form of one, and begins with no dash
            command,
            env=environment | _GIT_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def cited_part(content: str, cited: str, *, python: bool) -> str | None:
    """Return the part of a text with a name or some words; None if it has neither.

    Of a Python file, the source of the class, function or assignment of that name, such as `Server.port`. Otherwise
    the words themselves, where a line has them, whatever its blanks.
    """
    if python and cited.replace(".", "_").isidentifier() and (found := _python_symbol(content, cited)) is not None:
        return found
    words = " ".join(cited.split())
    return words if any(words in " ".join(each.split()) for each in content.splitlines()) else None


def _python_symbol(content: str, cited: str) -> str | None:
    try:
        with warnings.catch_warnings():
            # An escape that Python warns of is the business of its author.
            warnings.simplefilter("ignore")
            body: Sequence[ast.stmt] = ast.parse(content).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    *outer, name = cited.split(".")
    for part in outer:
        classes = [each for each in body if isinstance(each, ast.ClassDef) and each.name == part]
        if not classes:
            return None
        body = classes[-1].body
    # The last definition of a name holds.
    found = next((each for each in reversed(body) if name in _names(each)), None)
    if found is None:
        return None
    first = min([found.lineno, *(each.lineno for each in getattr(found, "decorator_list", ()))])
    return "\n".join(content.splitlines()[first - 1 : found.end_lineno])


def _names(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {statement.name}
        case ast.Assign():
            return {target.id for target in statement.targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()
