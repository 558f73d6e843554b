"""Guard: keeps a memory's text inside its place in a context.

Invariants
(1) ``unguard(guard(text)) == text`` for every text.
(2) After ``guard`` no line of a memory opens a heading, a code fence, a rule, one of our own ``[kind]``
    markers or a chat turn, and no chat markup stands whole anywhere in it.
(3) Text without any of these is left byte for byte as it is.

The escape is one backslash: before the first character of a structural line, and after the first
character of chat markup. Text that already carries backslashes there gets one more.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from keepward.model.compiled import Mask

_BREAK = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_PAD = "[ \t\xa0\xad\u1680\u180e\u2000-\u200f\u202a-\u202f\u205f-\u2064\u3000\ufeff]*"
_END = rf"(?=[ \t]*(?:\Z|[{_BREAK}]))"
_STRUCTURE = (
    r"#|```|~~~"
    rf"|=+{_END}|-+{_END}|\*\*\*+{_END}|___+{_END}"
    r"|\[(?:identity|rule|fact|state|event|summary|document|erased)\b"
    r"|(?i:system|assistant|user|human|developer|tool)[ \t]{0,3}[:：]"
)
_BREAKS = re.compile(rf"[{_BREAK}]")
_LINE = re.compile(rf"(?:\A|(?<=[{_BREAK}]))({_PAD})(\\*)(?={_STRUCTURE})")
_MARKUP = re.compile(
    r"(?i)(?:"
    r"(?P<tag><)(?P<a>\\*)(?=[|｜]|</?sys>>|/?(?:system|assistant|human|think|thinking|antml:\w+"
    r"|tool_\w+|function_\w+|start_of_turn|end_of_turn|s)\b[^<>\n]{0,80}>)"
    r"|(?P<box>\[)(?P<b>\\*)(?=/?inst\])"
    r")"
)
_SPACE = re.compile(rf"[\s{_BREAK}\0]+")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def guard(text: str) -> str:
    """Return the text with every structural line start and all chat markup escaped."""
    # Most memories are one plain line: then there is one place to look at, and no markup.
    plain = _BREAKS.search(text) is None and _LINE.match(text) is None
    lined = text if plain else _LINE.sub(r"\1\\\2", text)
    if "<" not in lined and "[" not in lined:
        return lined
    return _MARKUP.sub(lambda found: f"{found['tag'] or found['box']}\\{found['a'] or found['b'] or ''}", lined)


def unguard(text: str) -> str:
    """Return the text that ``guard`` was given."""
    plain = _MARKUP.sub(lambda found: (found["tag"] or found["box"]) + (found["a"] or found["b"] or "")[1:], text)
    return _LINE.sub(lambda found: found[1] + found[2][1:], plain)


def label(text: str) -> str:
    """Return a name such as a key or speaker as one guarded line; runs of white space become one space."""
    return guard(_SPACE.sub(" ", text).strip())


def tidy(masks: Iterable[Mask], length: int) -> tuple[Mask, ...]:
    """Return masks in order and without overlap, within a text of ``length`` characters.

    Overlapping spans become one, named after the first; empty ones are dropped.
    """
    clean: list[Mask] = []
    for start, end, name in sorted(masks):
        begin, stop = max(0, start), min(length, end)
        if begin >= stop:
            continue
        if clean and begin < clean[-1][1]:
            first, until, kept = clean[-1]
            clean[-1] = (first, max(until, stop), kept)
        else:
            clean.append((begin, stop, name))
    return tuple(clean)


def masked(text: str, masks: Iterable[Mask]) -> str:
    """Return the text with each span of tidy masks replaced by ``[NAME]``."""
    parts: list[str] = []
    at = 0
    for start, end, name in masks:
        parts += (text[at:start], f"[{name}]")
        at = end
    return "".join((*parts, text[at:]))


def xml_text(text: str) -> str:
    """Return the text as XML character data; characters XML cannot hold become U+FFFD."""
    return html.escape(_NOT_XML.sub("\ufffd", text), quote=False)


def xml_attribute(name: str, value: str | None) -> str:
    """Return `` name="value"``, or nothing for None."""
    if value is None:
        return ""
    plain = _NOT_XML.sub("\ufffd", _SPACE.sub(" ", value).strip())
    return f' {name}="{html.escape(plain)}"'
