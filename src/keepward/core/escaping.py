"""Escaping: texts of memories after a label of Keepward's own, and names in a label.

A text cannot begin a line at the margin, and a name cannot end its label. No chat markup is intact: it gets a
backslash after its first character; backslashes that are there get one more.
"""

from __future__ import annotations

from keepward.core.letters import INVISIBLE
from keepward.core.patterns import lazy_regex

LINE_BREAK_CHARS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
#: Four spaces: in Markdown no heading, list or rule begins there.
_INDENT = "    "
LINE_BREAK = lazy_regex(rf"([{LINE_BREAK_CHARS}]+)(?=[^{LINE_BREAK_CHARS}])")
_MARKUP = lazy_regex(
    r"(?i)(?:"
    rf"(?P<tag><[{INVISIBLE}]*+)(?P<a>\\*)(?=[|｜]|</?sys>>|/?(?:system|assistant|human|think|thinking|antml:\w+"
    r"|tool_\w+|function_\w+|start_of_turn|end_of_turn|s|[be]os)\b[^<>\n]{0,80}>)"
    rf"|(?P<box>\[[{INVISIBLE}]*+)(?P<b>\\*)(?=/?inst\])"
    r")"
)
_SPACE = lazy_regex(rf"[\s{LINE_BREAK_CHARS}\0]+")
#: Brackets, colons of other scripts, and a colon before a space or the end.
_LABEL_SIGNS = lazy_regex(r"[\[\]［］﹇﹈⁅⁆⟦⟧〚〛【】〔〕❲❳：﹕︓∶꞉ː]|:(?=\s|$)")


def indented(text: str) -> str:
    """Return the text with every line but the first indented by four spaces; empty lines stay empty."""
    return LINE_BREAK.sub(rf"\g<1>{_INDENT}", text)


def escape_markup(text: str) -> str:
    """Return the text with a backslash in all chat markup, such as ``<\\|im_start|>``."""
    if "<" not in text and "[" not in text:
        return text
    return _MARKUP.sub(lambda match: f"{match['tag'] or match['box']}\\{match['a'] or match['b'] or ''}", text)


def quoted(text: str) -> str:
    """Return a text that follows a label on its line: other lines are indented, and no chat markup is intact."""
    return indented(escape_markup(text))


def one_line(text: str) -> str:
    """Return a text as one line without intact chat markup; white space becomes single spaces."""
    return escape_markup(_SPACE.sub(" ", text).strip())


def escape_label(text: str) -> str:
    """Return a name such as a key or speaker as one line that ends no label."""
    line = one_line(text)
    return line if line.isalnum() else _LABEL_SIGNS.sub(r"\\\g<0>", line)
