"""Requests for advice and tasks: stored preferences matter for them, even without a shared word. English."""

import re
from functools import lru_cache
from typing import Final

from keepward.core.patterns import lazy_regex
from keepward.retrieval.roles import asks_for_assistant

_TASKS: Final = (
    "add|analy[sz]e|answer|arrange|book|build|buy|change|check|clean|code|compile|compose|configure|continue|cook|"
    "create|debug|decide|deploy|design|do|draft|edit|explain|extend|fix|format|generate|help|implement|improve|"
    "install|make|merge|migrate|move|optimi[sz]e|order|organi[sz]e|outline|pack|plan|prepare|propose|refactor|"
    "release|remind|rename|reply|reserve|respond|review|rewrite|run|schedule|send|set up|ship|sketch|solve|sort|"
    "style|summari[sz]e|test|tidy|translate|update|upgrade|write"
)
_ADVICE: Final = lazy_regex(
    r"\b(?:should|shall)\b"
    r"|(?:^|[.?!,;:]\s{0,3}|\b(?:can|could|would|will|please)\s(?:\w{1,20}\s){0,2})(?:recommend|suggest|advise)\b"
    r"|\b(?:would|could|can|might)\b.{0,60}\b(?:me|i|us|we|our|my)\b|\bwhat are (?:some|good|the best)\b"
    r"|\b(?:good|best|better) (?:idea|way|time|place)\b|\bsuits? (?:me|us)\b|\bideas?\b|^(?:some|any)thing \w+ to\b"
    r"|^where to\b|^(?:find|pick|choose|plan|put together|give) (?:(?:me|us)\b|an?\s)|\bwhat \w+ are good\b",
    re.IGNORECASE,
)
#: A task begins with its verb and is not a question, except for a polite one ("can you ...").
_TASK: Final = lazy_regex(
    rf"^\W{{0,3}}(?:(?:please|now|then|let's|let us)\s{{1,3}})?(?:{_TASKS})\s{{1,3}}(?!\w{{1,20}}\?)\w[^?]*$"
    rf"|^\W{{0,3}}(?:can|could|would|will) you (?:please )?(?:{_TASKS})\s",
    re.IGNORECASE,
)
_REQUEST: Final = lazy_regex(
    r"^\W{0,3}(?:can|could|would|will) you (?!tell|say|remember|recall)|\bhow (?:do|can|could|would|might|to)\b"
    r"|\bwhat (?:helps?|could|can|would|do you think)\b|\bwhich \w+ (?:would|could|can|are (?:good|best))\b"
    r"|\bhelp (?:me|us)\b",
    re.IGNORECASE,
)
#: Their mean vector is common to all requests for advice; it is subtracted from the vector of such a request.
EXAMPLES: Final = (
    "Can you recommend a book for a long train ride?",
    "Which laptop should I buy for my studies?",
    "Can you suggest a film for tonight?",
    "What would be a good present for my mother?",
    "I'm looking for a new job. What should I look out for?",
    "What should I cook for my guests?",
    "Which plants would you suggest for my garden?",
    "What are some ways to save money every month?",
    "Can you suggest a podcast about science?",
    "Which car would suit my family?",
    "What music should I listen to while running?",
    "I'm planning a trip to Japan. What should I see?",
    "What should I wear to an interview?",
    "Which insurance do I need?",
    "What are some healthy snacks for the office?",
    "Can you suggest a hobby for the winter?",
)


@lru_cache(maxsize=64)
def asks_advice(text: str) -> bool:
    """Whether a text asks for a recommendation: "What should I cook?"."""
    return _ADVICE.search(text) is not None


@lru_cache(maxsize=64)
def is_advice_or_task(text: str) -> bool:
    """Whether a text asks for advice or is a task: "Plan my week", "format this file"."""
    return asks_advice(text) or _TASK.search(text) is not None


def requests_action(text: str) -> bool:
    """Whether a text asks for an action, advice or an explanation, not for an earlier statement."""
    return not asks_for_assistant(text) and (is_advice_or_task(text) or _REQUEST.search(text) is not None)
