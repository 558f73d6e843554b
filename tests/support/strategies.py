"""Hypothesis strategies for domain values. Needs Hypothesis."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import strategies as st

from keepward.core.memory import ContentType, Kind, Record, Sensitivity, Stability, Status, Tier
from keepward.core.principals import SOURCES, Trust

from .clock import START

#: Text that may be stored: any Unicode without NUL and lone surrogates.
texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=40)
names = st.text("abcdefghij-_0123456789", min_size=1, max_size=12)
instants: st.SearchStrategy[datetime] = st.integers(-(10**9), 10**9).map(
    lambda micros: START + timedelta(microseconds=micros)
)
shares = st.integers(0, 10_000).map(lambda units: units / 10_000)
scopes = st.sampled_from(["/", "/agents/orion", "/agents/orion/tasks/42"])


def _sorted(items: list[str]) -> tuple[str, ...]:
    return tuple(sorted(set(items)))


records: st.SearchStrategy[Record] = st.builds(
    Record,
    id=st.uuids(version=4).map(str),
    version=st.integers(1, 2**31),
    tier=st.sampled_from(Tier),
    kind=st.sampled_from(Kind),
    text=texts,
    scope=scopes,
    key=st.none() | names,
    subject=st.none() | texts.filter(bool),
    category=st.none() | names,
    tags=st.lists(texts.filter(bool), max_size=3).map(_sorted),
    content_type=st.sampled_from(ContentType),
    blob=st.none() | names,
    metadata_json=st.none() | st.just('{"a":1.5}'),
    source=st.sampled_from(sorted(SOURCES)),
    trust=st.sampled_from(Trust),
    heard=st.none() | st.sampled_from(Trust),
    evidence=st.lists(names, max_size=2).map(_sorted),
    derived_from=st.lists(names, max_size=2).map(tuple),
    confidence=shares,
    importance=shares,
    sensitivity=st.sampled_from(Sensitivity),
    stability=st.sampled_from(Stability),
    access=st.none(),
    status=st.sampled_from(Status),
    superseded_by=st.none() | names,
    author=names,
    session=st.none() | names,
    speaker=st.none() | names,
    job=st.none() | names,
    aliases=st.lists(names, max_size=2).map(_sorted),
    created_at=instants,
    updated_at=st.none() | instants,
    occurred_at=st.none() | instants,
    expires_at=st.none() | instants,
    reinforced_at=instants,
)
