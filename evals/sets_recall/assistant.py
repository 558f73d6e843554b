"""Long chats of a user with an assistant: user turns of some 250 characters, replies of some 3,400 with lists and code.

What is asked for stands in few words of a user's turn, or in one sentence of a reply, and three quarters of it in what
the user said. Replies repeat what the user said before they go on about the same things at length.

Invariants
(1) The same chats each time: every choice is drawn from a hash of the chat's name.
(2) `chats(unread=True)` are about other topics than `chats()`; four of them were opened once, to see what goes wrong.
(3) Every question has its kind as category; what was never said has no evidence.
"""

import random
import re
from itertools import combinations
from typing import Any, Final

from evals.sets_recall.assistant_kits import KITS

Chat = tuple[str, list[dict[str, Any]], list[tuple[str, str, list[str]]]]

CHATS: Final = 10
#: Topics of a chat, sessions of a topic, turns that only ask something, of a session.
_TOPICS: Final = 3
_SESSIONS: Final = 5
_IDLE: Final = 1
#: Questions of a chat by what they ask for.
ASKED: Final = {
    "fact": 2,
    "advice": 2,
    "update": 3,
    "instruction": 3,
    "order": 2,
    "adviceorder": 1,
    "contradiction": 2,
    "sum": 2,
    "advicesum": 1,
    "never": 2,
}
#: Kinds that the table of scores tells apart: what the assistant said counts to them.
KINDS: Final = {
    "fact": "stated facts",
    "advice": "what was advised",
    "update": "updates",
    "instruction": "instructions",
    "order": "order of events",
    "adviceorder": "order of events",
    "contradiction": "contradictions",
    "sum": "sums",
    "advicesum": "sums",
    "never": "never said",
}
_START: Final = 1_700_000_000_000_000
_DAY: Final = 86_400_000_000

_PEOPLE: Final = [
    "Radek",
    "Ilse",
    "Tomoko",
    "Baptiste",
    "Nuria",
    "Oleg",
    "Sunniva",
    "Dermot",
    "Ayşe",
    "Lorenzo",
    "Wiebke",
    "Kofi",
]
_CITIES: Final = [
    "Tartu",
    "Valencia",
    "Groningen",
    "Aarhus",
    "Ljubljana",
    "Coimbra",
    "Bergamo",
    "Lublin",
    "Tromsø",
    "Ghent",
    "Debrecen",
    "Cork",
]
_WEEKDAYS: Final = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
_MONTHS: Final = ["January", "February", "March", "April", "May", "June", "July", "September", "October", "November"]

_OPENERS: Final = (
    "I have been at the {0} again and it took most of my evening.",
    "Quick one before I have to leave, since the {0} keeps me busy.",
    "Things are moving slowly here, mostly because of the {0}.",
    "Thanks, that helped a lot with the {0} the other day.",
    "I looked at what you wrote on the {0} and tried it out.",
    "A friend asked me about the {0} and I had no good reply.",
    "It has been a strange week and the {0} did not make it easier.",
    "I am back with another question, this time on the {0}.",
    "Sorry for the long pause, the {0} had to wait.",
)
_REQUESTS: Final = (
    "Could you walk me through how to {1} the {0} without touching the {2}?",
    "What would be a sensible way to {1} the {0} next?",
    "How would you {1} the {0}, and does it matter for the {2}?",
    "Can you show me how people usually {1} a {0} like mine?",
    "Is there a common mistake when you {1} the {0} together with the {2}?",
    "I wonder whether I should {1} the {0} first or leave it until the {2} is done. What do you think?",
    "Please explain in detail how to {1} the {0}, with an example if there is one.",
)
_ECHOES: Final = (
    "That is good to know: {}",
    "Thanks for telling me that. {}",
    "Great, so here is where we are: {}",
    "Understood. {}",
    "Let me take that into account. {}",
)
_INTRO: Final = (
    "Here is a detailed way to {1} the {0} step by step.",
    "To {1} the {0} properly, it helps to look at a few aspects in turn.",
    "There are several things to consider before you {1} the {0}.",
    "Below you find a plan for the {0}, with remarks on the {2}.",
)
_HEADINGS: Final = (
    "Getting started with the {0}",
    "How to {1} the {0}",
    "Common pitfalls of the {0}",
    "Checklist for the {0}",
    "Why the {0} and the {2} belong together",
    "Next steps after the {0}",
    "Example for the {0}",
)
_POINTS: Final = (
    "{1} the {0} in small portions and compare it with the {2} each time",
    "keep a short note on every {0}, so that you can go back if the {2} suffers",
    "do not {1} the {0} on the same day as the {2}, since one hides the effect of the other",
    "decide beforehand how much time the {0} may take, and stop when it is used up",
    "ask somebody else to look at the {0}, because one gets blind to the {2}",
    "a {0} that was left alone for a month should be looked at before you {1} it again",
    "the {2} depends on the {0} more than most people expect, so begin there",
    "if the {0} gives you trouble, try to {1} the {2} and see whether it goes away",
    "there is no need to {1} every {0}; the ones next to the {2} are enough at first",
    "make the {0} visible, for instance on a list beside the {2}, and tick off what is done",
    "the usual advice to {1} the {0} once a week holds, but be generous when the {2} is new",
    "many people find that the {0} improves by itself as soon as the {2} is in order",
    "when in doubt, {1} the {0} twice, and only then turn to the {2}",
)
_CLOSERS: Final = (
    "Let me know how the {0} turns out and we can adjust the plan for the {2} together.",
    "If you tell me more about the {0}, I can be more specific about the {2}.",
    "Good luck with the {0}, and feel free to ask when you {1} the {2}.",
)
_SECOND_PERSON: Final = (
    (r"\bI am\b|\bI'm\b", "you are"),
    (r"\bI was\b", "you were"),
    (r"\bI\b", "you"),
    (r"\bmy\b", "your"),
    (r"\bMy\b", "Your"),
    (r"\bme\b", "you"),
    (r"\bour\b", "your"),
    (r"\bOur\b", "Your"),
    (r"\bwe\b|\bWe\b|\bus\b", "you"),
)


class _Topic:
    def __init__(self, text: str) -> None:
        name, *lines = text.strip().splitlines()
        self.name = name
        self.items: list[tuple[str, list[str], str]] = []
        self.words: dict[str, list[str]] = {}
        for line in lines:
            kind, _, rest = line.partition(": ")
            if kind in ("nouns", "verbs", "code"):
                self.words[kind] = rest.split(", ")
                continue
            told, _, question = rest.rpartition("=> ")
            self.items.append((kind, [part.strip() for part in told.split(" ~ ") if part.strip()], question))

    def fill(self, rnd: random.Random, patterns: tuple[str, ...]) -> str:
        one, other = rnd.sample(self.words["nouns"], 2)
        return rnd.choice(patterns).format(one, rnd.choice(self.words["verbs"]), other)


def chats(*, unread: bool = False) -> list[Chat]:
    """Return the chats: name, turns, and (question, kind, ids of the turns that answer it)."""
    topics = [_Topic(text) for text in KITS.strip().split("\n# ")]
    half = len(topics) // 2
    mine = topics[half:] if unread else topics[:half]
    # Of the twenty ways to take three of six, every other one.
    ways = list(combinations(mine, _TOPICS))[::2][:CHATS]
    return [
        _chat(f"{'unread' if unread else 'assistant'}-{n}", list(chosen), n) for n, chosen in enumerate(ways, start=1)
    ]


def _chat(name: str, topics: list[_Topic], number: int) -> Chat:
    rnd = random.Random(f"keepward {name}")
    told: list[dict[str, Any]] = []
    questions: list[tuple[str, str, list[str]]] = []
    #: (topic, session) -> what is told there: index of the question, kind, text.
    plan: dict[tuple[int, int], list[tuple[int, str, str]]] = {}
    for place, topic in enumerate(topics):
        drawn = _drawn(rnd)
        for kind, parts, question in topic.items:
            sessions = sorted(rnd.sample(range(_SESSIONS), len(parts)))
            for session, part in zip(sessions, parts, strict=True):
                plan.setdefault((place, session), []).append((len(questions), kind, part.format(**drawn)))
            questions.append((question.format(**drawn), kind, []))
    order = [(place, session) for session in range(_SESSIONS) for place in rnd.sample(range(_TOPICS), _TOPICS)]
    for week, (place, session) in enumerate(order):
        said = plan.get((place, session), [])
        said += [(-1, "", "")] * _IDLE
        rnd.shuffle(said)
        at = _START + (7 * week + number) * _DAY
        for turn, (asked, kind, text) in enumerate(said):
            advice = kind.startswith("advice")
            for speaker in ("user", "assistant"):
                own = text if advice == (speaker == "assistant") else ""
                identity = f"{week}/{turn}/{speaker}"
                if own and asked >= 0:
                    questions[asked][2].append(identity)
                write = _reply if speaker == "assistant" else _request
                told.append(
                    {
                        "id": identity,
                        "text": write(rnd, topics[place], own, "" if advice else text),
                        "speaker": speaker,
                        "session": f"week {week}",
                        "created_at": at + (2 * turn + (speaker == "assistant")) * 60_000_000,
                    }
                )
    rnd.shuffle(questions)
    chosen = [each for kind, count in ASKED.items() for each in [q for q in questions if q[1] == kind][:count]]
    return name, told, [(question, KINDS[kind], ids) for question, kind, ids in chosen]


def _drawn(rnd: random.Random) -> dict[str, Any]:
    """Return a value for each name in braces; the numbers of one topic differ."""
    people, cities = rnd.sample(_PEOPLE, 2), rnd.sample(_CITIES, 2)
    days, months = rnd.sample(_WEEKDAYS, 2), sorted(rnd.sample(range(len(_MONTHS)), 2))
    small, large = sorted(rnd.sample(range(3, 10), 3)), sorted(rnd.sample(range(21, 99), 3))
    return {
        **dict(zip("PQ", people, strict=True)),
        **dict(zip("CD", cities, strict=True)),
        **dict(zip("nmo", small, strict=True)),
        **dict(zip("NKM", large, strict=True)),
        "day": days[0],
        "day2": days[1],
        "month": _MONTHS[months[0]],
        "month2": _MONTHS[months[1]],
    }


def _request(rnd: random.Random, topic: _Topic, own: str, _: str) -> str:
    before = [topic.fill(rnd, _OPENERS)] if rnd.random() < 0.8 else []
    after = [topic.fill(rnd, _REQUESTS) for _ in range(rnd.randint(1, 2))]
    return " ".join((*before, *filter(None, [own]), *after))


def _reply(rnd: random.Random, topic: _Topic, own: str, said: str) -> str:
    paragraphs: list[str] = []
    if said and rnd.random() < 0.6:
        paragraphs.append(rnd.choice(_ECHOES).format(_second_person(said)))
    paragraphs.append(topic.fill(rnd, _INTRO))
    sections = rnd.randint(4, 8)
    holds = rnd.randrange(sections)
    for section in range(sections):
        paragraphs.append(f"### {topic.fill(rnd, _HEADINGS)}")
        points = [topic.fill(rnd, _POINTS) for _ in range(rnd.randint(3, 6))]
        points = [f"{point[0].upper()}{point[1:]}." for point in points]
        if own and section == holds:
            points.insert(rnd.randrange(len(points) + 1), own)
        style = rnd.randrange(3)
        if style == 0:
            points = [f"{number}. {point}" for number, point in enumerate(points, start=1)]
        elif style == 1:
            points = [f"- **{rnd.choice(topic.words['nouns']).title()}**: {point}" for point in points]
        paragraphs.append((" " if style == 2 else "\n").join(points))
        if section == 1 and "code" in topic.words:
            paragraphs.append(_code(rnd, topic))
    paragraphs.append(topic.fill(rnd, _CLOSERS))
    return "\n\n".join(paragraphs)


def _code(rnd: random.Random, topic: _Topic) -> str:
    noun, other = (each.replace(" ", "_").replace("-", "_").lower() for each in rnd.sample(topic.words["nouns"], 2))
    verb = rnd.choice(topic.words["verbs"]).replace("-", "_").replace(" ", "_")
    return (
        f"```python\ndef {verb}_{noun}({other}, limit={rnd.randint(5, 90)}):\n    found = []\n"
        f"    for each in {other}:\n        if each.{noun} is None:\n            continue\n"
        f"        found.append(each.{noun})\n    return sorted(found)[:limit]\n```"
    )


def _second_person(text: str) -> str:
    for pattern, form in _SECOND_PERSON:
        text = re.sub(pattern, form, text)
    return text[0].upper() + text[1:]
