"""Evidence that can be checked: a file, a git object, a page, another memory; and what a check found.

A reference is one text of `Record.evidence`. Any other text is evidence too, and is never checked:

* `file:PATH`, `file:PATH#PORT`: a file below an accepted root, or what it says under a name or with these words.
* `git:REVISION:PATH`, also with `#`, or `git:OBJECT`: what a repository at an accepted root has.
* `url:ADDRESS` or `url:ADDRESS sha256:HEX`: a page, whose text the caller of a check hands in.
* `memory:ID`: another memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher, get_close_matches
from typing import Literal, NamedTuple

from keepward.core.brief import line, shorten
from keepward.core.value import Data, Instant, ListResult, Value

#: Maximum characters of a cited text that is stored, to show what changed.
MAX_EXCERPT = 400
#: Longest line that is cited, in characters.
MAX_CITED_LINE = 200
#: What the references that a check reads begin with.
CHECKED_FORMS = ("file:", "git:", "url:", "memory:")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@^~-]{0,199}")
_OBJECT = re.compile(r"[0-9a-f]{7,64}")
_SHA256 = re.compile(r"(?P<url>\S+)(?: sha256:(?P<digest>[0-9a-f]{64}))?")


class Reference(NamedTuple):
    """One reference, in its parts."""

    #: As in the evidence.
    text: str
    form: Literal["file", "git", "url", "memory"]
    #: Path, address or id; empty for a git object.
    name: str
    #: The name or words after `#`, which the source has; empty for all of it.
    cited: str = ""
    #: Revision or object of git.
    revision: str = ""
    #: SHA-256 in hex that the writer gave.
    digest: str = ""


def parse_reference(text: str) -> Reference | None:
    """Return the parts of a reference; None for evidence of another form."""
    form, _, rest = text.partition(":")
    name, _, cited = rest.partition("#")
    match form:
        case "file" if name.strip():
            return Reference(text, "file", name.strip(), cited.strip())
        case "git":
            revision, colon, path = name.partition(":")
            if colon and path and _REVISION.fullmatch(revision):
                return Reference(text, "git", path, cited.strip(), revision)
            if not colon and not cited and _OBJECT.fullmatch(revision):
                return Reference(text, "git", "", "", revision)
        case "url" if (found := _SHA256.fullmatch(rest)) is not None:
            return Reference(text, "url", found["url"], digest=found["digest"] or "")
        case "memory" if rest.strip():
            return Reference(text, "memory", rest.strip())
    return None


def references_in(evidence: Iterable[str]) -> Iterator[Reference]:
    """Yield the references that a check reads."""
    for text in evidence:
        if text.startswith(CHECKED_FORMS) and (reference := parse_reference(text)) is not None:
            yield reference


class FoundSource(NamedTuple):
    """What a source says now."""

    #: The cited part, or all of it; None if it is not there.
    text: str | None
    #: Why it is not there, or could not be read; empty otherwise.
    why: str = ""
    #: Whether it could be looked for; otherwise nothing is known.
    readable: bool = True
    #: All of the source, to find what replaced the cited part.
    content: str = ""


class CitedSource(Data):
    """What one reference said when it was recorded."""

    reference: str
    #: SHA-256 in hex of the cited text.
    digest: str
    #: Its beginning, without secrets.
    text: str


class CitedSources(Data):
    """What the references of one memory said when it was written or confirmed; a document of the store."""

    tenant: str
    #: Id of the memory.
    id: str
    at: Instant
    sources: tuple[CitedSource, ...]


class SourceState(Value):
    """The state of one reference of a memory."""

    #: Id and text of the memory.
    memory: str
    text: str
    #: As in its evidence.
    reference: str
    #: `fresh`: as cited. `changed`: it says something else. `missing`: it is no longer there. `recorded`: read for
    #: the first time. `unread`: it could not be read.
    state: Literal["fresh", "changed", "missing", "recorded", "unread"]
    #: The first line that differs, as it was cited and as it is now.
    before: str | None = None
    after: str | None = None
    #: Why it could not be read, or where it is not found.
    why: str | None = None


class SourceCheck(ListResult[SourceState]):
    """The result of a check: every reference that is not as it was cited."""

    #: Number of references that were looked at, and of those that are as cited.
    checked: int
    fresh: int
    #: Ids of the memories that this check marked as stale, and of those whose mark it removed.
    marked: tuple[str, ...] = ()
    cleared: tuple[str, ...] = ()
    #: Ids of all memories that are stale now.
    stale: tuple[str, ...] = ()


@line.register
def _line_of_state(state: SourceState) -> str:
    return shorten(f"{state.reference}: {state.state}{': ' + how if (how := how_changed(state)) else ''}", 200)


def how_changed(state: SourceState) -> str:
    """Return what changed in words, such as `PORT = 8080 → PORT = 9090`; empty if nothing is known."""
    if state.before is not None and state.after is not None:
        return f"{state.before} → {state.after}"
    return state.why or (f"was: {state.before}" if state.before is not None else "")


def first_difference(before: str, after: str) -> tuple[str, str]:
    """Return the first line that differs between two texts, before and after; empty where there is none."""
    old, new = ([each.strip() for each in text.splitlines()] for text in (before, after))
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            return shorten(" ".join(old[i:j][:1]), MAX_EXCERPT), shorten(" ".join(new[k:m][:1]), MAX_EXCERPT)
    return "", ""


def nearest_line(cited: str, content: str) -> str | None:
    """Return the line of a text that is most like the cited words; None if none is."""
    lines = [each.strip() for each in content.splitlines() if each.strip()][:20_000]
    near = get_close_matches(cited, lines, n=1, cutoff=0.5)
    return near[0] if near else None


def line_about(content: str, text: str) -> str | None:
    """Return the one line of a source that has most of the numbers and names of a text; None if none or several do.

    For example, `PORT = 8080` for "the service listens on port 8080".
    """
    words = {word for word in re.findall(r"[\w.-]*\w", text) if len(word) > 2 and _is_specific(word)}
    found: dict[str, int] = {}
    for each in content.splitlines():
        plain = " ".join(each.split())
        if 0 < len(plain) <= MAX_CITED_LINE and (shared := len(words & set(re.findall(r"[\w.-]*\w", plain)))):
            found[plain] = shared
    best = [plain for plain, shared in found.items() if shared == max(found.values())]
    return best[0] if len(best) == 1 else None


def _is_specific(word: str) -> bool:
    """Whether a word is a number, or a name as in code."""
    return any(sign.isdigit() or sign in "_." for sign in word) or (
        word != word.lower() and word[1:] != word[1:].lower()
    )


def revised_text(text: str, before: str, after: str) -> str | None:
    """Return a text with the one word that changed in its source; None unless exactly one did and the text has it once.

    For example, `PORT = 8080` became `PORT = 9090`: "It listens on port 8080" becomes "It listens on port 9090".
    """
    old, new = (re.findall(r"[\w.+-]*\w", part) for part in (before, after))
    differing = [pair for pair in zip(old, new, strict=False) if pair[0] != pair[1]]
    if len(old) != len(new) or len(differing) != 1:
        return None
    word, instead = differing[0]
    parts = re.split(rf"(?<![\w.+-]){re.escape(word)}(?![\w+-]|\.\w)", text)
    return instead.join(parts) if len(parts) == 2 else None
