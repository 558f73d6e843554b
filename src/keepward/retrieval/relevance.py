"""Relevance: how sure it is that the best answer bears on the question, as a share of 0..1.

The score that puts answers in order is comparable between questions of one store, not between stores: among twelve
plain facts and in a talk of six hundred turns the same sum means different things. A calibration turns it into the
chance that a question whose best answer looks like this one has an answer at all, where as many have one as have none.

Invariants
(1) A share depends on allowed rows alone, and falls with the order of the answers.
(2) A calibration has a name, which receipts tell; whatever changes a constant changes the name.
(3) Constants are fitted by logistic regression to the development half of ``evals/sets_recall/nothing.py`` and to
    questions that other conversations answer, against the questions that have an answer; see docs/evals.md.
"""

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from keepward.model.patterns import regex
from keepward.retrieval import analyze

Doubles = npt.NDArray[np.float64]

#: Answers whose own words and vectors are looked at.
LEADING: Final = 20
#: Turns from which a session counts as a talk: in one, neighbours and the session itself speak for an answer too.
TALK: Final = 8
#: Log-odds beyond which nothing is surer, and what an answer without any score would lose to the best: of those with
#: half the score of the best fewer than one in a hundred answered what was asked.
SUREST: Final = 4.0
BEHIND: Final = 8.0
#: Memories that a store is taken to have beside its own, so that the words of a small one are not all common.
USUAL: Final = 30.0
#: Log-odds of a request for advice and of a task, at least: what somebody likes bears on it and may share neither word
#: nor topic.
ADVICE: Final = -1.5
#: Added for one word that is looked for, which a memory may answer in others: a thing, where its kind was asked for.
BRIEF: Final = 2.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """Constants for turns of a session, where a question is mostly worded otherwise than its answer."""

    cosine: float
    words: float
    #: Of the mean cosine of the best three: what is talked of is mostly told more than once.
    three: float
    #: Of the mean cosine of all allowed vectors: a question that is far from all that was ever said is about nothing.
    mean: float
    #: Added in a chat with an assistant, and between people.
    assistant: float
    people: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Constants of one way of searching; log-odds are sums of products with them."""

    name: str
    #: Of a memory that stands for itself: of its cosine, of its share of the question's words, of the logarithm of
    #: how many parts it has, and what is added.
    cosine: float
    words: float
    parts: float
    alone: float
    #: Of a turn of a talk: of its score, of the logarithm of how many memories there are, and what is added.
    score: float
    size: float
    talk: float
    #: Of any turn that has a vector; None: it is judged as a memory that stands for itself, or as a turn of a talk.
    chat: Chat | None = None


#: Words alone: no embedder, or no memory in reach with a vector of it.
WORDS: Final = Calibration(
    name="words.1", cosine=0.0, words=20.5, parts=0.0, alone=-3.4, score=23.3, size=-1.24, talk=-5.5
)
#: Vectors of hashed words and letters: near is what shares pieces of words, and much does by chance.
HASHED: Final = Calibration(
    name="hashed.1", cosine=5.5, words=16.6, parts=0.0, alone=-3.46, score=22.1, size=-1.61, talk=-6.4
)
#: Vectors of a model of meaning, as measured with MiniLM. Another model is taken for alike: where it puts all texts
#: close together, cosines count from its mean on.
MEANING: Final = Calibration(
    name="meaning.6",
    cosine=31.8,
    words=5.14,
    parts=0.81,
    alone=-12.36,
    score=15.1,
    size=-1.49,
    talk=-9.4,
    chat=Chat(cosine=7.0, words=2.7, three=12.0, mean=14.0, assistant=-5.7, people=-7.4),
)

_TASKS: Final = "|".join(analyze.WORDS["advice"]["tasks"])
_ADVICE: Final = regex(
    "|".join(
        (
            *analyze.WORDS["advice"]["patterns"],
            # A task begins with what is to be done and is no question, unless it is asked for politely.
            rf"^\W{{0,3}}(?:(?:please|now|then|let's|let us)\s{{1,3}})?(?:{_TASKS})\s{{1,3}}(?!\w{{1,20}}\?)\w[^?]*$",
            rf"^\W{{0,3}}(?:can|could|would|will) you (?:please )?(?:{_TASKS})\s",
        )
    ),
    re.IGNORECASE,
)
_REQUEST: Final = regex("|".join(analyze.WORDS["advice"]["requests"]), re.IGNORECASE)

_THINGS: Final = "|".join(analyze.WORDS["answer"]["things"].split())
_NAME: Final = regex(
    "|".join((*analyze.WORDS["answer"]["name"], rf"\b(?:which|what) (?:\w+ )?(?:{_THINGS})\b")), re.IGNORECASE
)
_TIME: Final = tuple(
    (regex(table["asked"], re.IGNORECASE), table["told"]) for table in analyze.WORDS["answer"]["time"].values()
)
_ANY_TIME: Final = regex("|".join(asked.pattern for asked, _ in _TIME), re.IGNORECASE)

_ROLES: Final = {role: frozenset(names.split()) for role, names in analyze.WORDS["role"]["names"].items()}
#: Words of a remark, at least; what is shorter is looked for.
_REMARK: Final = 7
#: Speakers who are no people.
ROLES: Final = frozenset().union(*_ROLES.values())
_SAID_BY: Final = {role: regex("|".join(analyze.WORDS["role"][f"said_by_{role}"]), re.IGNORECASE) for role in _ROLES}


def calibration(model: str | None) -> Calibration:
    """Return the calibration of an embedder's vectors by its id; of words alone for None."""
    if model is None:
        return WORDS
    return HASHED if model.startswith("hashed:") else MEANING


@lru_cache(maxsize=64)
def asks_advice(text: str) -> bool:
    """Whether a text asks what to do or to choose, or is a task: on it bear likings that share nothing with it."""
    return _ADVICE.search(text) is not None


def requests(text: str) -> bool:
    """Whether a text asks for something to be done, advised or explained, and not for what was: wishes bear on it."""
    if _SAID_BY["assistant"].search(text):
        return False
    return asks_advice(text) or _REQUEST.search(text) is not None


def remarks(text: str) -> bool:
    """Whether a text tells of its speaker and asks nothing: what explains it may share neither word nor topic."""
    return "?" not in text and len(text.split()) >= _REMARK and _SAID_BY["user"].search(text) is not None


def asks_name(text: str) -> bool:
    """Whether a text asks where or who, or for something that has a name, such as a book or a town."""
    return _NAME.search(text) is not None


def time_terms(text: str) -> frozenset[int]:
    """Return hashes of terms by which an answer would tell a time; empty where a text asks for none."""
    if not _ANY_TIME.search(text):
        return frozenset()
    return frozenset().union(*(_hashes(told) for asked, told in _TIME if asked.search(text)))


@lru_cache(maxsize=16)
def _hashes(words: str) -> frozenset[int]:
    return frozenset(map(analyze.term_hash, analyze.terms(words)))


def other_roles(text: str) -> frozenset[str]:
    """Return the names of speakers who did not say what a question asks for, in lower case; empty where it is open.

    What was advised ("did you suggest", "your advice") the assistant said; whoever else asks about himself ("my", "I")
    asks for what the user said.
    """
    if _SAID_BY["assistant"].search(text):
        return _ROLES["user"]
    return _ROLES["assistant"] if _SAID_BY["user"].search(text) else frozenset()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leading:
    """What is known of the best answers, one cell each."""

    #: From the mean of all allowed vectors (0) to equal (1), unless the mean is so low that it says nothing.
    cosine: Doubles
    #: Whether each holds each different word of the question, (words, n).
    held: npt.NDArray[np.bool_]
    #: Vectors of each; 0 for none.
    parts: npt.NDArray[np.intp]
    #: Visible turns of the session that each stands in; 0 for none.
    turns: npt.NDArray[np.intp]
    #: Whether each is what a user or an assistant said, and no person by name.
    roles: npt.NDArray[np.bool_]
    score: Doubles
    #: Mean cosine of all allowed vectors to the question, at most what a wide space has.
    mean: float


def best_odds(how: Calibration, lead: Leading, frequencies: list[int], count: int, text: str) -> float:
    """Return the log-odds that the best answers bear on a question.

    ``frequencies`` are how many of the ``count`` allowed memories hold each word of the question, in the order of
    ``lead.held``.
    """
    weights = [math.log((count + USUAL) / (found + 1)) for found in frequencies]
    most = math.fsum(weights) + math.log(USUAL)
    covered = np.array([math.fsum(w for w, there in zip(weights, row, strict=True) if there) for row in lead.held.T])
    alone = how.cosine * lead.cosine + how.words * covered / most + how.parts * np.log1p(lead.parts) + how.alone
    # What has no vector of this model is judged by its words, also beside others that have one.
    alone = np.where(lead.parts > 0, alone, WORDS.words * covered / most + WORDS.alone)
    talk = how.score * lead.score + how.size * math.log(count) + how.talk
    long = lead.turns >= TALK
    each = np.where(long, talk, alone)
    if how.chat is not None:
        three = np.sort(lead.cosine)[-3:]
        about = how.chat.three * math.fsum(three.tolist()) / len(three) + how.chat.mean * lead.mean
        chat = how.chat.cosine * lead.cosine + how.chat.words * covered / most + about
        chat += np.where(lead.roles, how.chat.assistant, how.chat.people)
        # What people say to each other is told by its neighbours as well, and the surer of both holds.
        said = np.where(long & ~lead.roles, np.maximum(chat, talk), chat)
        each = np.where((lead.turns > 0) & (lead.parts > 0), said, each)
    odds = float(each.max()) + (BRIEF if len(frequencies) == len(text.split()) == 1 else 0.0)
    odds = min(odds, SUREST)
    return max(odds, ADVICE) if asks_advice(text) or (how is MEANING and remarks(text)) else odds


def shares(odds: float, scores: Doubles) -> Doubles:
    """Return the share of each score, 0..1 in steps of 0.0001: of the best what its log-odds say, of others less."""
    best = float(scores.max())
    behind = np.zeros(len(scores)) if best <= 0.0 else 1.0 - scores / best
    return np.asarray(np.round(1.0 / (1.0 + np.exp(BEHIND * behind - odds)), 4), dtype=np.float64)
