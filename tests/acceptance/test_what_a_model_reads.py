"""What a model reads in everyday turns: the same lines however they were stored, few of them, and none for a greeting."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import pytest
from days import TOLD, WAYS, lines, recalled, tell

from keepward import Actor, Memory
from support.clock import SteppingClock
from support.embedders import EMBEDDERS, embedder

NOTHING_RECALLED = "nothing was recalled"
#: A few lines: more than this for an objective that nothing bears on is noise.
FEW = 6

SMALL_TALK = {
    "English": ("hi", "thanks, bye", "Good morning!", "ok great, see you tomorrow", "What is 17 times 23?"),
    "German": ("Hallo!", "vielen Dank, tschüss", "guten Morgen", "alles klar", "Wie viel ist 17 mal 23?"),
    "French": ("bonjour", "merci beaucoup, au revoir", "d'accord", "très bien", "combien font 17 fois 23 ?"),
    "Spanish": ("hola", "muchas gracias, adiós", "buenos días", "de acuerdo", "¿cuánto es 17 por 23?"),
    "Portuguese": ("olá", "muito obrigada, tchau", "bom dia", "tudo bem?", "quanto é 17 vezes 23?"),
    "Italian": ("ciao", "grazie mille, a presto", "buongiorno", "va bene", "quanto è 17 per 23?"),
    "Dutch": ("hoi", "dank je wel, tot ziens", "goedemorgen", "prima", "hoeveel is 17 keer 23?"),
    "Polish": ("cześć", "dziękuję bardzo, do widzenia", "dzień dobry", "jasne", "ile to 17 razy 23?"),
    "Turkish": ("merhaba", "çok teşekkürler, hoşça kal", "günaydın", "tamam", "17 çarpı 23 kaç eder?"),
    "Japanese": (
        "こんにちは",
        "ありがとうございます、さようなら",
        "おはようございます",
        "了解です",
        "17かける23は何ですか?",
    ),
    "Chinese": ("你好", "谢谢,再见", "早上好", "好的", "17乘以23等于多少?"),
}
#: World knowledge, and things that this person never told.
NEVER_TOLD = (
    "What is the capital of Mongolia?",
    "Who wrote the Brothers Karamazov?",
    "How many moons does Jupiter have?",
    "When was the battle of Hastings?",
    "What is the tax number of my company?",
    "Which vaccine did the vet give?",
    "What did Dmitri say about the merger?",
)
#: Questions, and the statement that answers them. Each shares a word with its statement.
ASKED = {
    "Where is the spare key?": "under the blue pot",
    "What is the cat called?": "The cat is called Bramble",
    "Which instrument does my sister Clara play?": "plays the oboe",
    "On which day does the library close early?": "closes early on Fridays",
    "Who repairs accordions?": "My cousin repairs accordions",
    "When was the piano tuned?": "tuned in March",
}
#: Tasks and topics, and the statement that bears on them. They share no word that counts.
TASKS = {
    "format this source file": "I prefer tabs over spaces",
    "home address": "We rent rooms in a house on Harbour Lane",
    "order bread and cake for my birthday": "I can't eat gluten",
    "write the release notes for the UK": "Use British spelling",
    "pets": "The cat is called Bramble",
    "plan my jogging": "I run ten kilometres on Sundays",
}


@pytest.fixture(scope="module", params=EMBEDDERS)
def everyday(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Memory]]:
    """The same 64 statements in three stores, one for each way to store them, and a rule that always holds."""
    folder = tmp_path_factory.mktemp("everyday")
    stores = {}
    for way in WAYS:
        owner = Memory.open(
            folder / f"{way}.db",
            actor=Actor.operator("olga"),
            embedder=embedder(request.param),
            clock=SteppingClock(),
            config_dir=folder / "config",
        )
        owner.remember("Never send a mail unasked", kind="rule", stability="permanent")
        stores[way] = owner.user("ana")
        tell(stores[way], TOLD, way, reply="Okay.")
    yield stores
    for store in stores.values():
        store.close()


# --- Objectives without content


@pytest.mark.promise("B86")
@pytest.mark.parametrize("language", SMALL_TALK)
def test_small_talk_recalls_nothing_and_says_so(everyday: dict[str, Memory], language: str) -> None:
    for memory in everyday.values():
        for words in SMALL_TALK[language]:
            made = memory.context(words)
            assert [each for each in TOLD if each in made.text] == []
            assert "Okay." not in made.text
            assert any(NOTHING_RECALLED in note for note in made.notes), words
            assert lines(made) == ["[rule] Never send a mail unasked"]


@pytest.mark.promise("B86")
@pytest.mark.parametrize("name", EMBEDDERS)
@pytest.mark.parametrize("way", WAYS)
def test_a_greeting_brings_what_always_holds_also_in_a_small_store(
    everywhere: Callable[[str], Memory], name: str, way: str
) -> None:
    ana = everywhere(name)
    tell(ana, TOLD[:5], way)
    ana.remember("Ship the app before Easter", tier="core", key="mission")
    ana.remember("The build is red", kind="state", key="build")
    for budget in (None, 1_000):
        made = ana.context("hi", budget_tokens=budget)
        assert "Ship the app before Easter" in made.text
        assert "The build is red" in made.text
        assert recalled(made) == []
        assert ana.memory_block("thanks!", budget_tokens=budget).text == ""


def test_a_name_or_a_number_beside_other_words_has_content(everyday: dict[str, Memory]) -> None:
    for memory in everyday.values():
        for words in ("hi, where is the spare key?", "thanks! and the spare key?", "ok, spare key please"):
            made = memory.context(words)
            assert "The spare key lies under the blue pot" in made.text
            assert not any(NOTHING_RECALLED in note for note in made.notes)


# --- One way in


@pytest.mark.promise("B87")
@pytest.mark.parametrize("objective", ASKED)
def test_an_answer_is_there_with_few_lines_however_it_was_stored(everyday: dict[str, Memory], objective: str) -> None:
    counts = []
    for memory in everyday.values():
        made = memory.context(objective)
        assert ASKED[objective] in made.text
        counts.append(len(recalled(made)))
    assert max(counts) <= FEW, counts


@pytest.mark.promise("B87")
def test_the_way_of_storing_changes_no_more_than_a_few_lines(everyday: dict[str, Memory]) -> None:
    for objective in (*ASKED, *TASKS, *NEVER_TOLD):
        made = [memory.context(objective) for memory in everyday.values()]
        counts = [len(recalled(each)) for each in made]
        assert max(counts) - min(counts) <= 2, (objective, counts)


# --- The best three, and more only if they bear


@pytest.mark.promise("B88")
def test_what_was_never_told_brings_a_few_lines(everyday: dict[str, Memory]) -> None:
    for memory in everyday.values():
        made = [memory.context(objective) for objective in NEVER_TOLD]
        counts = [len(recalled(each)) for each in made]
        assert max(counts) <= FEW, counts
        assert median(counts) <= 3, counts
        assert max(each.tokens for each in made) <= 160


@pytest.mark.promise("B88")
@pytest.mark.parametrize("everyday", ["minilm", "foreign"], indirect=True)
@pytest.mark.parametrize("objective", TASKS)
def test_a_task_or_a_topic_finds_its_fact_by_meaning(everyday: dict[str, Memory], objective: str) -> None:
    for way, memory in everyday.items():
        made = memory.context(objective)
        assert TASKS[objective] in made.text, way
        assert len(recalled(made)) <= FEW


@pytest.mark.parametrize("everyday", ["none"], indirect=True)
def test_a_memory_without_a_word_of_the_objective_is_no_hit_without_an_embedder(everyday: dict[str, Memory]) -> None:
    for memory in everyday.values():
        assert recalled(memory.context("xylograph quokka")) == []


ABOUT_INES = (
    "Ines prefers pencils",
    "Ines lives in Porto",
    "Ines is allergic to nuts",
    "Ines leads the billing team",
    "Ines rows on the river",
    "Ines has two brothers",
)


@pytest.mark.promise("B53", "B88")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EMBEDDERS)
@pytest.mark.parametrize("others", [0, 30])
def test_the_fourth_memory_about_a_person_hides_none(
    everywhere: Callable[[str], Memory], name: str, way: str, others: int
) -> None:
    ana = everywhere(name)
    tell(ana, TOLD[:others], way, session="other")
    for count in range(3, len(ABOUT_INES) + 1):
        tell(ana, ABOUT_INES[:3] if count == 3 else ABOUT_INES[count - 1 : count], way, session=f"ines-{count}")
        for objective in ("Who is Ines?", "Ines"):
            shown = [text for text in ABOUT_INES[:count] if text in ana.context(objective).text]
            assert len(shown) >= (3 if others else count), (objective, shown)
            named = ana.context(objective, budget_tokens=1_000).text
            assert [text for text in ABOUT_INES[:count] if text not in named] == []


@pytest.mark.promise("A66")
def test_a_memory_block_may_be_empty_with_and_without_a_budget(everyday: dict[str, Memory]) -> None:
    for memory in everyday.values():
        for budget in (None, 1_000):
            made = memory.memory_block("What is the capital of Mongolia?", budget_tokens=budget)
            assert (made.text, made.tokens) == ("", 0)
            found = memory.memory_block("Where is the spare key?", budget_tokens=budget)
            assert "The spare key lies under the blue pot" in found.text
            assert "Never send a mail unasked" not in found.text


# --- A small store


@pytest.mark.promise("B89")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EMBEDDERS)
def test_a_small_store_is_shown_whole_and_a_twenty_first_memory_ends_it(
    everywhere: Callable[[str], Memory], name: str, way: str
) -> None:
    ana = everywhere(name)
    tell(ana, TOLD[:20], way)
    for objective in ("format this source file", "home address", "Who wrote the Brothers Karamazov?"):
        made = ana.context(objective)
        assert [text for text in TOLD[:20] if text not in made.text] == []
    tell(ana, TOLD[20:21], way, session="later")
    made = ana.context("Who wrote the Brothers Karamazov?")
    assert len([text for text in TOLD[:21] if text in made.text]) <= FEW


@pytest.mark.promise("B89")
@pytest.mark.parametrize("name", EMBEDDERS)
def test_a_small_store_is_in_order_of_relevance(everywhere: Callable[[str], Memory], name: str) -> None:
    ana = everywhere(name)
    tell(ana, TOLD[:20], "remember")
    assert "The spare key lies under the blue pot" in lines(ana.context("Where is the spare key?"))[0]


@pytest.mark.promise("B89")
def test_few_long_texts_are_no_small_store(everywhere: Callable[[str], Memory]) -> None:
    ana = everywhere("none")
    tell(ana, [f"{text}: {' '.join(TOLD[n : n + 8])}" for n, text in enumerate(TOLD[:15])], "remember")
    assert recalled(ana.context("xylograph quokka")) == []


@pytest.mark.promise("B89")
@pytest.mark.parametrize("name", EMBEDDERS)
def test_a_fact_of_a_store_of_one_is_there_for_every_objective(everywhere: Callable[[str], Memory], name: str) -> None:
    ana = everywhere(name)
    ana.remember("I prefer tabs")
    for objective in ("Which indentation?", "format this file", "What do you know about me?"):
        assert "I prefer tabs" in ana.context(objective).text


# --- Scopes below, and words of other systems


@pytest.mark.parametrize("name", EMBEDDERS)
def test_a_memory_below_is_in_no_prompt_above_and_a_note_says_where_it_is(
    everywhere: Callable[[str], Memory], name: str
) -> None:
    ana = everywhere(name)
    everybody = ana.at(scope="/")
    everybody.remember("Lunch is at noon")
    ana.remember("Ana prefers tabs")
    made = everybody.context("Which indentation: tabs?")
    assert "Lunch is at noon" in made.text
    assert "Ana prefers tabs" not in made.text
    (note,) = [note for note in made.notes if "scopes below" in note]
    scope = re.findall(r'at\(scope="(.*?)"\)', note)[0]
    assert "Ana prefers tabs" in everybody.at(scope=scope).context("Which indentation: tabs?").text


def test_the_calls_that_errors_show_lead_to_the_prompt(everywhere: Callable[[str], Any]) -> None:
    ana = everywhere("none")
    everybody = ana.at(scope="/")
    with pytest.raises(Exception, match=r"messages is .*\"role\": \"user\""):
        ana.add("I like tea")
    with pytest.raises(AttributeError, match=r"remember\("):
        ana.add_memory("I like tea")
    ana.add([{"role": "user", "content": "I like tea"}])
    with pytest.raises(TypeError, match=r'user\("ana"\)\.context\('):
        everybody.context("tea", user="ana")
    with pytest.raises(TypeError, match="did you mean `objective`"):
        ana.context(query="tea")
    assert "I like tea" in everybody.user("ana").context(objective="tea").text


@pytest.mark.parametrize("name", EMBEDDERS)
def test_a_question_asked_before_leaves_what_bears_on_it(name: str, everywhere: Callable[[str], Memory]) -> None:
    ana = everywhere(name)
    for text in TOLD[:40]:
        ana.remember(text)
    ana.remember("Ana prefers tabs over spaces")
    for n in range(4):
        ana.add([{"role": "user", "content": "Should I indent with tabs or spaces?"}], session=f"s{n}")
    assert "Ana prefers tabs over spaces" in ana.memory_block("Should I indent with tabs or spaces?").text
