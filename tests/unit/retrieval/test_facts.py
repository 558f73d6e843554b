"""Facts of a talk by rules: what is told, in which words, and of what nothing is made."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepward.retrieval
from keepward.model.talk import Turn
from keepward.model.value import to_micros
from keepward.retrieval.facts import MOST, Rules, facts_of

RULES = tomllib.loads((Path(keepward.retrieval.__file__).parent / "facts.toml").read_text("utf-8"))["rule"]
SAID = to_micros(datetime(2026, 9, 21, 14, tzinfo=UTC))


def told(text: str, *, speaker: str = "Ana", said_at: int | None = None) -> list[str]:
    return [fact.text for fact in facts_of(Turn(role="user", speaker=speaker, text=text, said_at=said_at))]


@pytest.mark.parametrize(
    ("clause", "fact"), [pair for rule in RULES for pair in rule["examples"].items()], ids=lambda each: each[:40]
)
def test_each_example_of_a_rule_is_told_so(clause, fact):
    assert told(f"{clause}.") == [fact]


@pytest.mark.parametrize(
    "clause", [each for rule in RULES for each in rule.get("none", ())], ids=lambda each: each[:40]
)
def test_nothing_is_made_of_what_a_rule_leaves_out(clause):
    assert told(clause) == []


@pytest.mark.parametrize(
    "text",
    [
        "Do I live in Leeds?",
        "If I lived in Rome I would eat pizza daily.",
        "I think I'm allergic to shellfish.",
        "I'm allergic to shellfish, I guess.",
        'She said "I live in Paris" yesterday.',
        "My friend said I live in the past.",
        "```\nI live in a code block.\n```",
        "> I live in a quotation.",
        "I use {braces} and I live in <markup>.",
        "Could you tell me where I live?",
        "I remember when I lived in Rome.",
        "Thanks, that worked!",
        "Keep messages to yourself.",
        "I'd like you to write a poem.",
        "I'm done.",
        "Imagine I am a pirate and I live in a cave.",
    ],
)
def test_what_is_asked_supposed_hedged_quoted_or_pasted_tells_nothing(text):
    assert told(text) == []


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Hi! I'm Ana and I live in Leeds.", ["Ana lives in Leeds"]),
        ("I don't like cilantro, and I can't eat gluten.", ["Ana does not like cilantro", "Ana can't eat gluten"]),
        ("Remember that the deploy target is db-7.", ["The deploy target is db-7"]),
        ("Can you remember that I prefer tabs?", ["Ana prefers tabs"]),
        ("Please remember to water my plants.", ["Ana asked to be reminded to water their plants"]),
        ("Please always answer in metric units.", ['Ana asked: "Please always answer in metric units"']),
        ("Keep answers short.", ['Ana asked: "Keep answers short"']),
        ("I want you to show sources from now on", ['Ana asked: "I want you to show sources from now on"']),
        ("I'm left-handed and live in York.", ["Ana is left-handed and lives in York"]),
        ("I like to cook and play chess.", ["Ana likes to cook and play chess"]),
        ("My wife Mia loves sailing.", ["Ana's wife Mia loves sailing"]),
        ("I like tea when I work on my own.", ["Ana likes tea when they work on their own"]),
    ],
)
def test_a_statement_is_told_in_the_third_person(text, facts):
    assert told(text) == facts


def test_a_relative_date_is_told_as_the_day_that_it_means():
    assert told("I got promoted yesterday.", said_at=SAID) == ["Ana got promoted on 20 September 2026"]


def test_the_name_of_the_speaker_takes_an_apostrophe_where_it_ends_in_s():
    assert told("My birthday is on 4 March.", speaker="Lars") == ["Lars' birthday is 4 March"]


def test_what_there_is_one_of_has_a_slot():
    (fact,) = facts_of(Turn(role="user", speaker="Ana", text="I moved to Bristol."))
    assert fact.slot == "home"


def test_only_users_tell_facts():
    turns = [
        Turn(role="assistant", speaker="assistant", text="I live in a server."),
        Turn(role="user", speaker="Ana", text="I live in Leeds."),
    ]
    assert [(fact.turn, fact.text) for fact in Rules().extract(turns)] == [(1, "Ana lives in Leeds")]


def test_one_turn_tells_only_so_much():
    assert len(told(" ".join(f"I like dish number {n}." for n in range(100)))) == MOST


@given(st.text(max_size=400))
def test_every_fact_quotes_its_turn(text):
    plain = text.replace("\u2019", "'")
    assert all(fact.quote in plain for fact in facts_of(Turn(role="user", speaker="Ana", text=text)))


@given(
    st.lists(
        st.sampled_from(
            [
                "I like tea",
                "and I live in Leeds",
                "because",
                "my dog",
                "is",
                "if I",
                "remember that",
                "always",
                ",",
                ".",
                "?",
                "\n",
                '"',
            ]
        ),
        max_size=20,
    )
)
def test_the_same_talk_gives_the_same_facts(words):
    assert told(" ".join(words)) == told(" ".join(words))
