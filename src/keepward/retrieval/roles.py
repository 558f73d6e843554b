"""Whether a question asks for the user's or the assistant's words. English."""

import re
from typing import Final

from keepward.core.patterns import lazy_regex

USER: Final = frozenset(("user", "human"))
ASSISTANT: Final = frozenset(("assistant", "agent", "ai", "bot"))
#: Speakers whose name is a role, in lower case.
ROLES: Final = USER | ASSISTANT
_ASKS_FOR_ASSISTANT: Final = lazy_regex(
    r"\b(?:did|have|had|were|was) you\b|\baccording to you\b"
    r"|\byou(?:'ve| have| had)? (?:\w+ )?(?:said|told|suggested|recommended|advised|proposed|mentioned|gave|named)\b"
    r"|\byou (?:listed|explained|showed|wrote|brought up|came up|laid out|described|pointed)\b"
    r"|\byour (?:\w+ )?(?:advice|suggestions?|recommendations?|opinion|view|answers?|repl(?:y|ies))\b",
    re.IGNORECASE,
)
_ASKS_FOR_USER: Final = lazy_regex(r"\b(?:i|my|me|mine|myself|we|our|us)\b", re.IGNORECASE)


def asks_for_assistant(query: str) -> bool:
    """Whether a question asks for the assistant's words: "What did you suggest?"."""
    return _ASKS_FOR_ASSISTANT.search(query) is not None


def other_roles(query: str) -> frozenset[str]:
    """Return the roles whose words a question does not ask for; empty if the question is open.

    "Which drill did you suggest?" asks for the assistant's words, "Where do I live?" for the user's.
    """
    if asks_for_assistant(query):
        return USER
    return ASSISTANT if _ASKS_FOR_USER.search(query) else frozenset()
