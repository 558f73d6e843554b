"""Preferences and standing instructions in texts of a user: "from now on", "I prefer". English.

Late imports: few texts need it.
"""

from functools import cache
from typing import Any, Final

from keepward.core.linear_patterns import compile_str
from keepward.core.patterns import lazy_regex
from keepward.retrieval.tokenizer import analyse, is_gram

#: Patterns at the start of a sentence or clause.
_OPENING: Final = (
    r"(?:always|never) \w+",
    r"(?:answer|reply|respond|speak|talk)(?:(?: to)? (?:me|us))? (?:in|with|without|as|like|using) \w+",
    r"(?:address|call) (?:me|us) \w+",
    r"only (?:answer|ask|give|mention|name|recommend|send|show|suggest|use|write) \w+",
    r"(?:do not|don.t|stop|avoid) (?:answer|ask|mention|offer|recommend|repeat|send|suggest|us)(?:e|ing)? \w+",
    r"(?:when|whenever|if) (?:you|i ask) [^.!?\n]*",
)
_ANYWHERE: Final = (
    r"from (?:now|here|today|this \w+) on|going forward|by default|at all times|until further notice",
    r"(?:every|each) time (?:you|i)|whenever you \w+",
    r"please\W[^.!?\n]*\W(?:always|never|only|every|each|no more than|at most)",
    r"i (?:want|need|expect|ask) you (?:not )?to",
    r"i(?: would|.d) (?:rather|like you(?:r)?|(?:like|prefer) \w+ to) \w+",
    (
        r"(?:i|we) (?:\w+ly |do |do not |don.t |would |(?:have )?always )?"
        r"(?:prefer|dislike|hate|detest|loathe|despise|avoid|favou?r|adore|love|enjoy|like)"
    ),
    r"(?:i|we) (?:can(?:not|.t)|could(?:n.t| not)) (?:\w+ )?(?:stand|bear|eat|drink|tolerate)",
    (
        r"(?:i am|i.m|we are|we.re) (?:\w+ ){0,2}(?:allergic|intolerant|vegan|vegetarian|averse|opposed|sensitive|"
        r"partial|keen|fond|afraid|against|not (?:into|interested|comfortable))"
    ),
    (
        r"(?:i|we) have (?:an?|no) (?:\w+ ){0,2}"
        r"(?:preference|aversion|dislike|interest|allergy|phobia|fear|objection|passion)"
    ),
    r"my favou?rites?",
    r"(?:i|we) (?:only|exclusively|never) (?:\w+ )?(?:eat|drink|buy|use|watch|read|wear|travel|stay|shop|cook|play)",
    r"(?:i|we) find [^.!?\n]+(?:ing|too \w+)",
)
_LIKING: Final = lazy_regex(
    r"(?i)\b(?:prefers?|likes|loves|enjoys|hates|dislikes|avoids|favou?rites?|allergic|vegan|vegetarian)\b"
)


def preference_pattern() -> str:
    """Return the pattern that finds a preference ("I prefer tabs") or a standing instruction ("always use tabs")."""
    # For RE2 a word ends at any non-ASCII letter, so the pattern spells out the ends.
    start = r"(?:^|[.!?;:,\n])\s*(?:(?:please|and|so|but|also),?\s+){0,2}"
    anywhere = rf"(?:^|[^\pL\pN])(?:{'|'.join(_ANYWHERE)})(?:$|[^\pL\pN])"
    return rf"(?i){anywhere}|{start}(?:{'|'.join(_OPENING)})(?:$|[^\pL\pN])"


@cache
def _pattern() -> Any:
    return compile_str(preference_pattern())


def states_preference(text: str) -> bool:
    """Whether a text states a preference or a standing instruction. A heuristic, in linear time."""
    return _pattern().search(text.encode("utf-8", "replace").decode()) is not None


def mentions_liking(text: str) -> bool:
    """Whether a text says what a person likes or dislikes: "Ana prefers tabs"."""
    return _LIKING.search(text) is not None


def preference_topic(text: str) -> str | None:
    """Return the topic of a preference: "spicy food" of "I strongly dislike spicy food". None if nothing remains.

    Scripts without spaces are not supported: the result is None.
    """
    stripped = text.strip(" ,.;:!\n")
    rest: str = _pattern().sub(" ", text.encode("utf-8", "replace").decode()).strip(" ,.;:!\n")
    content_terms = analyse(rest).kept if 0 < len(rest) < len(stripped) else []
    return rest if content_terms and not any(map(is_gram, content_terms)) else None
