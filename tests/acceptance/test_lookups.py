"""Names are looked up among all of a store, not among the most frequent ones."""

from __future__ import annotations

import pytest

from keepward import Actor, Filters, Member, Memory
from support.bulk_data import many_subjects, put_records

ON_BOTH_DATABASES = True
#: Subjects with two memories each, beside the one that is looked up.
SIZES = [70, 1_300, pytest.param(20_000, marks=pytest.mark.slow)]


def found_in(owner: Memory, part: str, **more: int) -> list[tuple[str, int]]:
    listed = owner.facets(of=["subject"], name=part, **more)
    return [(each.value, each.count) for each in listed.facets["subject"]]


@pytest.mark.parametrize("count", SIZES)
def test_rare_subject_is_found_by_a_part_of_its_name(owner: Memory, count: int) -> None:
    many_subjects(owner, count)
    assert found_in(owner, "brandt") == [("Olga Brandt", 1)]
    assert len(owner.list_memories(subject="Olga Brandt")) == 1


def test_same_name_comes_before_longer_ones_and_frequent_ones(owner: Memory) -> None:
    names = ["Hannah", "Hannah", "Hannah", "Anna Berg", "Anna Berg", "ANNA", "Zoe"]
    put_records(owner, [f"Entry {n}." for n in range(len(names))], subjects=names)
    assert found_in(owner, "anna") == [("ANNA", 1), ("Anna Berg", 2), ("Hannah", 3)]


def test_values_that_match_and_are_not_listed_are_counted(owner: Memory) -> None:
    many_subjects(owner, 70)
    listed = owner.facets(of=["subject"], name="person", most=8)
    assert (len(listed.facets["subject"]), listed.more["subject"]) == (8, 62)


def test_decomposed_name_finds_the_composed_one(owner: Memory) -> None:
    owner.remember("The pier is long", tier="archival", subject="Zo\u00eb", reason="told")
    assert found_in(owner, "zoe\u0308") == [("Zo\u00eb", 1)]


def test_sources_are_looked_up_among_all(owner: Memory) -> None:
    pages = [f"https://site{n}.example/page" for n in range(600)]
    put_records(owner, ["Read on many pages.", "Read on them again."], evidence=tuple(pages))
    rare = owner.as_actor(Actor.agent("rare")).remember("Seen once", tier="archival", reason="seen").record
    found = owner.sources(name="rare")
    assert [(each.name, each.memories) for each in found.actors] == [(rare.text_by, 1)]
    assert (found.sources, found.references, found.more) == ((), (), {})
    assert [each.name for each in owner.sources(name="SITE599.").references] == [pages[599]]


def test_users_and_projects_are_looked_up_by_a_part_of_their_names(owner: Memory) -> None:
    for user in ("hannah", "anna.berg", "anna", "bob"):
        owner.user(user).remember(f"{user} likes rye bread", tier="archival", reason="told")
    owner.project("bakery").remember("The oven is old", tier="archival", reason="told")
    assert [each.name for each in owner.users(name="ANNA")] == ["anna", "anna.berg", "hannah"]
    assert (owner.projects(name="bake"), owner.projects(name="anna")) == ([Member(name="bakery", memories=1)], [])


def test_lookup_shows_no_name_of_a_scope_that_is_not_seen(owner: Memory) -> None:
    owner.user("anna").remember("Takes ten units", tier="archival", subject="anna", reason="told")
    other = owner.user("bob").as_actor(Actor.agent("bot"))
    listed = other.facets(of=["subject"], name="anna", filters=Filters(include_ended=True)).facets["subject"]
    assert (listed, other.sources(name="anna").actors, other.users(name="anna")) == ((), (), [])


def test_comparison_names_what_differs_in_either_order(owner: Memory) -> None:
    ids = [owner.remember(f"The lock of gate {n} is old", tier="archival", reason="told").record.id for n in range(4)]
    before = int(owner.head.split(":")[0])
    owner.revise(ids[0], "The lock of gate 0 is new", reason="seen")
    owner.forget(ids[1], reason="gone")
    undone = owner.archive(ids[2], reason="old").commit
    owner.rollback(undone.id)
    new = owner.remember("The pier is long", tier="archival", reason="told").record.id
    now = int(owner.head.split(":")[0])
    there = {each.id: (each.before is None, each.after is None) for each in owner.diff(before)}
    back = {each.id: (each.after is None, each.before is None) for each in owner.diff(now, before)}
    expected = {ids[0]: (False, False), ids[1]: (False, True), new: (True, False)}
    assert {name: there[name] for name in expected} == expected
    assert (there, set(there) - set(expected)) == (back, {ids[2]} & set(there))


def test_comparison_comes_in_pages_with_its_total(owner: Memory) -> None:
    made = put_records(owner, [f"Boat {n} is red." for n in range(120)])
    before = int(owner.head.split(":")[0])
    owner.reinforce(made[0].id, reason="so it is")
    owner.revise(made[1].id, "Boat 1 is green.", reason="seen")
    owner.forget(made[2].id, reason="gone")
    new = owner.remember("The pier is long", tier="archival", reason="told").record.id
    found = owner.diff(before)
    # What differs in importance and uses only comes last.
    assert [each.id for each in found] == [*sorted([made[1].id, made[2].id, new]), made[0].id]
    assert (found.total, found.counts) == (4, {"added": 1, "changed": 1, "importance": 1, "removed": 1})
    parts = [owner.diff(before, limit=3), owner.diff(before, limit=3, offset=3)]
    assert [list(each) for each in parts] == [found[:3], found[3:]]
    assert {each.total for each in parts} == {4}
    assert (len(owner.diff(0)), owner.diff(0).total, len(owner.diff(0, limit=None))) == (50, 120, 120)
