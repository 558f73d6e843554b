"""Laws of fold: what a change does to a memory, whatever the memory and whoever asks."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from keepward.core import change as ask
from keepward.core.memory import Record, Sensitivity, Status
from keepward.core.policy import Policy
from keepward.core.principals import SOURCES, Actor, Trust, visible_from
from keepward.core.reducer import ChangeContext, apply, content, inherit
from keepward.errors import Conflict, InvalidInput
from support.clock import START
from support.strategies import names, records, scopes, shares, texts

pytestmark = pytest.mark.slow

#: Many changes may not be made of many memories; those draws are passed over.
law = settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much])
NOW = START + timedelta(days=4000)
ACTORS = st.sampled_from([Actor.agent(), Actor.user(), Actor.operator(), Actor.importer()])
SOURCE = st.none() | st.sampled_from(sorted(SOURCES))
WORDS = texts.filter(bool)
TERM = st.none() | st.integers(1, 10**6).map(lambda seconds: timedelta(seconds=seconds))
#: Fields that say when and in which version something changed, and not what a memory says.
TIMES = {"version", "updated_at", "reinforced_at"}

edits = st.one_of(
    st.builds(
        ask.Replace,
        id=st.just("m"),
        text=st.just(ask.UNSET) | WORDS,
        category=st.just(ask.UNSET) | st.none() | names,
        subject=st.just(ask.UNSET) | st.none() | names,
        tags=st.just(ask.UNSET) | st.lists(names, max_size=3).map(tuple),
        evidence=st.just(ask.UNSET) | st.lists(names, max_size=3).map(tuple),
        source=SOURCE,
        confidence=st.none() | shares,
        importance=st.none() | shares,
        ttl=st.just(ask.UNSET) | TERM,
        sensitivity=st.none() | st.sampled_from(["normal", "sensitive"]),
    ),
    st.builds(ask.Append, id=st.just("m"), text=WORDS, source=SOURCE, confidence=st.none() | shares),
    st.builds(ask.Move, id=st.just("m"), scope=st.just(ask.UNSET) | scopes, key=st.just(ask.UNSET) | st.none() | names),
    st.builds(ask.Reinforce, id=st.just("m"), gain=shares, confirms=st.booleans()),
    st.builds(ask.Promote, id=st.just("m"), text=WORDS),
    st.builds(ask.Retire, id=st.just("m")),
    st.builds(ask.Archive, id=st.just("m")),
    st.builds(ask.Supersede, id=st.just("m"), by=names),
    st.builds(ask.Restore, id=st.just("m"), ttl=TERM),
    st.builds(ask.Expire, id=st.just("m")),
)


def frame(actor: Actor, **given: object) -> ChangeContext:
    return ChangeContext(now=NOW, actor=actor, policy=Policy(), **given)


def applied(change: ask.Change, before: Record, actor: Actor) -> Record:
    """Return what a change makes of a memory, where it may be made at all."""
    try:
        return apply(change, before, frame(actor))
    except (Conflict, InvalidInput):
        assume(False)
        raise


def differing(one: Record, other: Record) -> set[str]:
    return {each for each in Record.__struct_fields__ if getattr(one, each) != getattr(other, each)}


@law
@given(edits, records, ACTORS)
def test_the_same_change_of_the_same_memory_gives_the_same(change, before, actor):
    assert applied(change, before, actor) == applied(change, before, actor)


@law
@given(edits, records, ACTORS)
def test_a_change_never_makes_another_memory_of_it(change, before, actor):
    after = applied(change, before, actor)
    assert (after.id, after.author, after.created_at) == (before.id, before.author, before.created_at)


@law
@given(edits, records, ACTORS)
def test_going_back_gives_the_content_there_was(change, before, actor):
    after = applied(change, before, actor)
    back = ask.Revert(id=before.id, to_version=before.version, if_version=after.version)
    assert content(apply(back, after, frame(actor, earlier=before))) == content(before)


@law
@given(st.lists(edits, min_size=1, max_size=6), records, ACTORS)
def test_change_depends_on_the_memory_and_not_its_history(changes, before, actor):
    states = [before]
    for change in changes:
        states.append(applied(change, states[-1], actor))
    copies = [replace(state) for state in states]
    assert [apply(change, copy, frame(actor)) for change, copy in zip(changes, copies, strict=False)] == states[1:]


@law
@given(records, ACTORS, names, st.lists(names, max_size=3).map(tuple), shares)
def test_the_order_of_independent_changes_does_not_matter(before, actor, category, tags, importance):
    changes = (
        ask.Replace(id="m", category=category),
        ask.Replace(id="m", tags=tags),
        ask.Replace(id="m", importance=importance),
    )
    forth = back = before
    for change in changes:
        forth = applied(change, forth, actor)
    for change in reversed(changes):
        back = applied(change, back, actor)
    assert differing(forth, back) == set()


@law
@given(records, ACTORS, names)
def test_a_change_of_one_field_touches_no_other(before, actor, category):
    after = applied(ask.Replace(id="m", category=category), before, actor)
    assert differing(before, after) <= {"category", "trust"} | TIMES


@law
@given(edits, records, st.sampled_from([Actor.agent(), Actor.user(), Actor.importer()]))
def test_only_the_owner_raises_the_trust_of_a_memory(change, before, actor):
    assert applied(change, before, actor).trust <= before.trust


@law
@given(edits, records, st.sampled_from([Actor.agent(), Actor.user(), Actor.importer()]))
def test_only_the_owner_declassifies_a_sensitive_memory(change, before, actor):
    assume(before.sensitivity is Sensitivity.SENSITIVE)
    assert applied(change, before, actor).sensitivity is Sensitivity.SENSITIVE


@law
@given(records, ACTORS)
def test_what_holds_cannot_be_brought_back(before, actor):
    assume(before.is_live(NOW))
    with pytest.raises(Conflict):
        apply(ask.Restore(id="m"), before, frame(actor))


@law
@given(records, ACTORS)
def test_what_was_retired_holds_again_when_it_is_brought_back(before, actor):
    gone = applied(ask.Retire(id="m"), before, actor)
    assert applied(ask.Restore(id="m"), gone, actor).is_live(NOW)


@law
@given(records, ACTORS)
def test_a_term_that_is_not_over_does_not_expire(before, actor):
    assume(before.status is Status.ACTIVE and (before.expires_at is None or before.expires_at > NOW))
    with pytest.raises(Conflict):
        apply(ask.Expire(id="m"), before, frame(actor))


@law
@given(records, st.lists(records, min_size=1, max_size=4))
def test_derived_memory_is_no_better_or_more_visible_than_its_sources(child, parents):
    try:
        made = inherit(child, parents)
    except InvalidInput:
        assume(False)
        raise
    sources = (child, *parents)
    assert made.trust == min(each.trust for each in sources)
    assert made.confidence == min(each.confidence for each in sources)
    ends = [each.expires_at for each in sources if each.expires_at is not None]
    assert made.expires_at == min(ends, default=None)
    assert {each.scope for each in sources} <= set(visible_from(made.scope))


@law
@given(texts.filter(bool), ACTORS, SOURCE)
def test_a_claim_never_raises_the_trust_of_who_makes_it(text, actor, source):
    made = apply(ask.Insert(id="m", text=text, scope="/", source=source), None, frame(actor))
    ceiling = apply(ask.Insert(id="m", text=text, scope="/"), None, frame(actor)).trust
    assert made.trust <= max(ceiling, Trust.UNKNOWN)
