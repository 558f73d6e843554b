"""The index of one tenant: who is found, in what order, and what hidden memories change (nothing)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from keepward.core.principals import Trust
from keepward.core.query import Filter
from keepward.ports.store import IndexedMemory
from keepward.retrieval import ranking, tokenizer, vector_index
from keepward.retrieval.index import Index, Query
from support.indexed import indexed_memory

WORDS = ["tea", "coffee", "harbour", "piano", "garden", "brother", "letter", "winter", "engine", "museum"]
ALL = Filter(scopes=())
MAY_8 = 1_683_554_160_000_000


def vector(seed: int) -> np.ndarray:
    made = np.random.default_rng(seed).normal(size=(1, 64)).astype(np.float32)
    return made / np.linalg.norm(made)


def entry(n: int, text: str, **fields: Any) -> IndexedMemory:
    given = {"version": 1, "arrival": n, "scope": "/", "tier": "episodic", "kind": "event"} | fields
    return indexed_memory(id=f"m{n:03}", **{"terms": tokenizer.pack(tokenizer.terms(text))} | given)


def query(text: str, seed: int | None = None, model: str = "m") -> Query:
    near = None if seed is None else vector(seed)[0]
    return Query(text=text, terms=tuple(tokenizer.terms(text)), vector=near, vector_model=model)


def index_of(*entries: IndexedMemory) -> Index:
    index = Index()
    index.apply(entries)
    return index


def found(index: Index, text: str, allowed: Filter = ALL, limit: int = 10, **more: Any) -> list[str]:
    return [scored.id for scored in index.search(query(text, **more), allowed, limit)]


def test_the_neighbour_of_a_match_comes_before_a_stranger() -> None:
    view = {"vectors": vector(50), "model": "m"}
    turns = [entry(n, t, session="s", **view) for n, t in enumerate(("tea harbour", "piano", "garden"))]
    held = index_of(*turns, entry(9, "engine", session="t", **view))
    assert found(held, "tea harbour", seed=50)[:2] == ["m000", "m001"]


def test_compaction_changes_no_answer() -> None:
    index = index_of(*(entry(n, WORDS[n % 10], tags=(WORDS[n % 3],)) for n in range(3_000)))
    before = found(index, "tea", Filter(scopes=(), tags=("tea",)), limit=50)
    index.apply([], [f"m{n:03}" for n in range(3_000) if n % 10])
    assert found(index, "tea", Filter(scopes=(), tags=("tea",)), limit=50) == before


_texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
_rows = st.lists(
    st.tuples(
        _texts,
        st.sampled_from([None, "s", "t"]),
        st.sampled_from(["/", "/a"]),
        st.sampled_from([0, 1, 2]),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


def made(rows: list[tuple[str, str | None, str, int, bool]]) -> list[IndexedMemory]:
    return [
        entry(
            n,
            text,
            session=session,
            scope=scope,
            sensitive=sensitive,
            model="m" if count else None,
            vectors=np.concatenate([vector(7 * n + u) for u in range(count)]) if count else None,
        )
        for n, (text, session, scope, count, sensitive) in enumerate(rows)
    ]


@settings(max_examples=25, deadline=None)
@given(_rows, _texts, st.booleans())
def test_hidden_memories_change_neither_score_nor_order(rows: Any, text: str, near: bool) -> None:
    entries = made(rows)
    allowed = Filter(scopes=("/",))
    asked = query(text, seed=1 if near else None)
    seen = index_of(*(e for e in entries if e.fields.scope == "/" and e.fields.sensitivity == "normal"))
    assert index_of(*entries).search(asked, allowed, 10) == seen.search(asked, ALL, 10)


@settings(max_examples=25, deadline=None)
@given(_rows, _texts, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_application_changes_nothing(rows: Any, text: str, near: bool, dice: Any) -> None:
    entries = made(rows)
    asked = query(text, seed=1 if near else None)
    straight = index_of(*entries).search(asked, ALL, 10)
    dice.shuffle(entries)
    index = Index()
    for one in entries:
        index.apply([one])
        index.search(asked, ALL, 1)
    assert index.search(asked, ALL, 10) == straight


def named_entry(n: int, text: str, **fields: Any) -> IndexedMemory:
    """Return an entry whose names are known."""
    found = tokenizer.analyse(text)
    return entry(n, text, terms=tokenizer.pack(found.terms, found.names), **fields)


def test_memory_with_a_time_comes_first_for_time_questions() -> None:
    told = [entry(1, "tea yesterday"), entry(2, "tea garden")]
    asked = ("when did we have tea", "how did we have tea")
    assert [found(index_of(*told), each) for each in asked] == [["m001", "m002"], ["m002", "m001"]]


def test_memory_with_a_name_comes_first_for_name_questions() -> None:
    told = [named_entry(1, "we had tea at Harbour"), named_entry(2, "we had tea at home")]
    asked = ("where did we have tea", "how did we have tea")
    assert [found(index_of(*told), each) for each in asked] == [["m001", "m002"], ["m002", "m001"]]


@pytest.mark.parametrize(
    ("asked", "gained"), [("who had tea", ranking.NAME_ANSWER_BOOST), ("who had tea with Ana", 0.0)]
)
def test_speaker_or_question_name_is_no_answer(asked: str, gained: float) -> None:
    told = index_of(named_entry(1, "tea, Bob, and Ana", speaker="Bob"))
    assert told.search(query(asked), ALL, 1)[0].parts["feature"] == gained


def test_hidden_speaker_does_not_prevent_a_name_answer() -> None:
    told = [named_entry(1, "tea with Ana", speaker="Bob"), named_entry(2, "tea", speaker="Ana", scope="/hidden")]
    seen = index_of(*told).search(query("who had tea"), structs.replace(ALL, scopes=("/",)), 2)
    assert [each.parts["feature"] for each in seen] == [ranking.NAME_ANSWER_BOOST]


def test_request_for_advice_has_no_answer_kind() -> None:
    told = [named_entry(1, "we had tea at Harbour")]
    seen = index_of(*told).search(query("which restaurant should I go to for tea"), ALL, 2)
    assert [each.parts["feature"] for each in seen] == [0.0]


def turned(cosine: float, seed: int) -> np.ndarray:
    """Return a vector of this cosine to the one of seed 1."""
    axis, other = vector(1), vector(seed)
    other = other - (other @ axis.T) * axis
    return np.float32(cosine) * axis + np.float32(np.sqrt(1 - cosine**2)) * other / np.linalg.norm(other)


def test_long_text_with_a_slightly_closer_part_ranks_lower() -> None:
    many = np.concatenate([turned(0.52, 2), *(turned(0.1, seed) for seed in range(3, 18))])
    index = index_of(
        entry(1, "reply", vectors=many, model="m"), entry(2, "remark", vectors=turned(0.45, 20), model="m")
    )
    assert found(index, "zither", seed=1) == ["m002", "m001"]


@pytest.mark.parametrize(
    ("text", "first"), [("which tea did you suggest", "m001"), ("which tea do I like", "m002"), ("which tea", "m003")]
)
def test_who_is_asked_for_by_role_goes_first(text: str, first: str) -> None:
    said = [entry(1, "tea", speaker="assistant"), entry(2, "tea", speaker="user"), entry(3, "tea", speaker="tool")]
    answers = [each for each in found(index_of(*said), text) if each != "m003" or first == "m003"]
    assert answers[0] == first


def preferences(speaker: str | None = "user", *, trust: Trust = Trust.USER) -> Index:
    wish = tokenizer.pack(["maps"], marker_terms=[tokenizer.PREFERENCE_TERM])
    away, close = ({"vectors": turned(cosine, 2), "model": "m"} for cosine in (0.1, 0.2))
    others = [entry(n, f"memory {n}", **(away if n > 2 else close)) for n in range(2, 30)]
    said = entry(1, "", speaker=speaker, trust=trust, terms=wish, **away)
    return index_of(said, *others)


def test_preference_is_found_where_an_action_is_requested() -> None:
    assert found(preferences(), "Could you draft a letter?", seed=1)[0] == "m001"
    assert found(preferences(None), "Could you draft a letter?", seed=1)[0] == "m001"
    assert found(preferences(), "Who wrote the letter?", seed=1)[0] == "m002"


@pytest.mark.parametrize(("speaker", "trust"), [("user", Trust.WEB), (None, Trust.TOOL), (None, Trust.IMPORT)])
def test_preference_of_untrusted_source_is_not_raised(speaker: str | None, trust: Trust) -> None:
    assert found(preferences(speaker, trust=trust), "Could you draft a letter?", seed=1)[0] == "m002"


def test_preference_among_many_is_hardly_raised() -> None:
    many, few = ranking.preference_weight(100, 50), ranking.preference_weight(100, 2)
    assert many < few / 10


def weight(covered: list[float]) -> float:
    return ranking.words_weight(np.array(covered), advice=False)


def test_common_words_count_less_than_rare_ones() -> None:
    assert weight([0.3] * 30) == pytest.approx(0.5 * weight([0.3] + [0.0] * 29))


def test_words_that_cover_most_of_a_memory_count_fully() -> None:
    assert weight([0.7] + [0.4] * 29) == 1.0


def test_preference_has_the_mean_cosine_of_its_two_vectors() -> None:
    views = {"vectors": np.concatenate((turned(0.2, 2), turned(0.6, 3))), "model": "m"}
    wish = entry(1, "", terms=tokenizer.pack(["spice"], marker_terms=[tokenizer.PREFERENCE_TERM]), **views)
    hits = index_of(wish, entry(2, "spice", **views)).search(query("Could you draft a menu?", seed=1), ALL, 2)
    cosines = {hit.id: hit.parts["cosine"] for hit in hits}
    assert cosines["m002"] - cosines["m001"] == pytest.approx(0.2, abs=0.01)


def marked(n: int, mark: str, **fields: Any) -> IndexedMemory:
    return entry(n, "", session="s", terms=tokenizer.pack(["tea"], marker_terms=[mark]), **fields)


def asked_of(answering: str) -> dict[str, float]:
    """Features of a question between two turns that are as near."""
    view = {"vectors": vector(1), "model": "m"}
    turns = [
        entry(1, "tea", session="s", speaker="Ben", **view),
        marked(2, tokenizer.QUESTION_TERM, speaker="Ana", **view),
        entry(3, "tea", session="s", speaker=answering, **view),
        *(entry(n, "piano", vectors=vector(n), model="m") for n in range(4, 12)),
    ]
    return {hit.id: hit.parts["feature"] for hit in index_of(*turns).search(query("tea", seed=1), ALL, 3)}


def test_question_passes_part_of_its_score_to_its_answer() -> None:
    features = asked_of("Ben")
    assert features["m003"] == -features["m002"] > 0.1 > features["m001"] == 0.0


@pytest.mark.parametrize("speaker", ["Ana", "assistant"])
def test_only_what_another_person_says_answers_a_question_between_people(speaker: str) -> None:
    assert set(asked_of(speaker).values()) == {0.0}


def test_a_message_among_long_ones_is_read_by_itself() -> None:
    def talk(words: int) -> Index:
        filler = " ".join(f"word{n}" for n in range(words))
        return index_of(
            entry(1, f"harbour {filler}", session="s"), entry(2, "tea", session="s"), entry(3, filler, session="s")
        )

    def gain(index: Index) -> float:
        covers = [index.search(query(f"{word} tea"), ALL, 3)[0].parts["cover"] for word in ("harbour", "unheard")]
        return covers[0] / covers[1]

    assert gain(talk(400)) < gain(talk(10))


def leaning(seed: int, lean: float) -> np.ndarray:
    """Return a vector that leans towards the one of seed 99, which is at a right angle to that of seed 1."""
    axis, shared = vector(1), vector(99)
    shared = shared - (shared @ axis.T) * axis
    made = vector(seed) + np.float32(lean) * shared / np.linalg.norm(shared)
    return made / np.linalg.norm(made)


def test_mean_vector_is_subtracted_unless_requests_have_their_own() -> None:
    shared = leaning(99, 9)
    asked = (vector(1) + shared)[0]
    units = {"m001": shared, "m002": turned(0.5, 2)}
    entries = [entry(n, f"memory {n}", vectors=leaning(n, 1.2), model="m") for n in range(10, 300)]
    entries += [entry(int(name[1:]), "memory", vectors=each, model="m") for name, each in units.items()]
    index = index_of(*entries)

    def first(text: str, common: np.ndarray | None) -> str:
        given = Query(text=text, terms=(), vector=asked, vector_model="m", common=common)
        places = [each.id for each in index.search(given, ALL, 300)]
        return min(units, key=places.index)

    assert first("Who told it?", None) == "m002"
    assert first("What should I do?", leaning(55, 0.0)[0]) == "m001"


def test_the_mean_memory_preserves_its_cosine_to_a_question() -> None:
    made = np.concatenate([leaning(seed, 1.0) for seed in range(400)])
    store = vector_index.VectorIndex(64)
    store.extend(np.arange(400, dtype=np.int32), *vector_index.quantise(made))
    toward = ranking.centre_query(vector(7)[0], store.signs(np.ones(400, dtype=np.bool_)))
    cosines = toward.rescale_cosines(made @ toward.vector / np.linalg.norm(toward.vector))
    assert float(cosines.mean()) == pytest.approx(float((made @ vector(7)[0]).mean()), abs=0.02)


def test_mean_advice_vector_is_subtracted_from_advice() -> None:
    usual = vector(3)[0]
    assert float(ranking.ModelScale().query(vector(1)[0], usual).vector @ usual) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("requests", [[], range(60, 75), [3]])
def test_cosines_of_unrelated_texts_are_0_and_of_equal_ones_1_whatever_the_model(requests: Sequence[int]) -> None:
    def close(seed: int) -> np.ndarray:
        made = shared + vector(seed)[0] * np.float32(0.5)
        return made / np.linalg.norm(made)

    shared = vector(0)[0]
    asked = close(1)
    scale = ranking.ModelScale(baseline=float(np.mean([asked @ close(seed) for seed in range(10, 60)])))
    given = scale.query(asked, np.mean([close(seed) for seed in requests], axis=0) if requests else None)
    toward = given.vector / np.linalg.norm(given.vector)
    cosines = [float(given.rescale_cosines(made @ toward)) for made in map(close, range(10, 60))]
    assert np.mean(cosines) == pytest.approx(0.0, abs=0.02)
    assert float(given.rescale_cosines(float(asked @ toward))) == pytest.approx(1.0, abs=0.02)


def test_missing_vectors_are_counted_by_reader_and_model() -> None:
    mine = Filter(scopes=("/",))
    index = index_of(
        entry(1, "green tea", model="m", vectors=vector(1)),
        entry(2, "black tea", scope="/agents/orion", model="m", vectors=vector(2)),
        entry(3, "white tea", scope="/agents/orion"),
    )

    def lacking(allowed: Filter, model: str = "m") -> int:
        return index.count_without_vector(query("tea", seed=1, model=model), allowed)

    assert (lacking(ALL), lacking(mine), lacking(ALL, "other"), lacking(ALL)) == (1, 0, 3, 1)
    index.apply([entry(4, "iced tea")], removed=["m003"])
    assert (lacking(ALL), lacking(mine), lacking(ALL, "other")) == (1, 1, 3)
    index.apply([entry(4, "iced tea", model="m", vectors=vector(4))])
    assert (lacking(ALL), lacking(mine)) == (0, 0)
