"""Traces: where the words of erased memories come again, and what stays of a receipt without them.

Invariants
(1) Texts are compared folded: under the declared normalisation and without case.
(2) A short text is looked for only where something was said about the memory itself; elsewhere "tea" would
    stand in too much.
(3) What a receipt keeps of a context with an erased memory is no digest that a short text could be guessed from.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from keepward.gates.detect.likeness import normalise
from keepward.model.commit import ERASED, CommitDetails
from keepward.model.memory import CORE_BLOCKS, Record, Status

#: Characters from which on a folded text is looked for inside of others.
LONG = 12
#: Fields in which a digest over content stands.
_DIGESTS = frozenset({"digest", "approved_digest", "context_id"})
_WORD = re.compile(r"\w{3,}")
#: Reasons that this program gives itself.
_STOCK = frozenset({"remembered", "said again", "confirmed", "import", "imported"})


def folded(text: str) -> str:
    """Return the form in which texts are compared here."""
    return normalise(text).casefold()


@dataclass(frozen=True, slots=True)
class Traces:
    """What the erased memories said."""

    #: Folded texts of all their versions.
    texts: frozenset[str]
    #: Those that are looked for inside of others.
    long: tuple[str, ...]
    #: Folded names: keys, aliases, references, subjects, tags and the like.
    names: frozenset[str]
    #: Words of three letters and more of texts and names.
    words: frozenset[str]

    def equals(self, text: str) -> bool:
        """Whether a text is that of an erased memory."""
        return folded(text) in self.texts

    def within(self, text: str) -> bool:
        """Whether a text is, or holds, that of an erased memory."""
        plain = folded(text)
        return plain in self.texts or any(each in plain for each in self.long)

    def touches(self, text: str | None) -> bool:
        """Whether a text that was said about an erased memory uses any of its words."""
        if not text or text in _STOCK:
            return False
        return self.within(text) or not self.words.isdisjoint(_WORD.findall(folded(text)))


def traces_of(records: Iterable[Record]) -> Traces:
    """Return what versions of memories said; those that are erased already said nothing."""
    texts: set[str] = set()
    names: set[str] = set()
    for record in records:
        if record.status is Status.ERASED:
            continue
        texts.add(folded(record.text))
        single = (record.key, record.subject, record.category, record.speaker, record.session, record.job, record.blob)
        names.update(folded(name) for name in single if name)
        names.update(folded(name) for name in (*record.tags, *record.evidence, *record.aliases))
        names.update(folded(text) for text in _strings(record.metadata))
    texts.discard("")
    names.discard("")
    return Traces(
        texts=frozenset(texts),
        long=tuple(sorted(text for text in texts if len(text) >= LONG)),
        names=frozenset(names),
        words=frozenset(word for text in texts | names for word in _WORD.findall(text)),
    )


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def speaks(details: CommitDetails, traces: Traces, *, own: bool, whole: bool) -> bool:
    """Whether a commit's details have to go.

    ``own``: it made a version of an erased memory; ``whole``: of nothing else.
    """
    if not own:
        return any(traces.within(text) for text in (details.reason, details.session) if text)
    if details.approved_digest is not None:
        return True
    stock = details.reason in _STOCK or bool(details.undoes)
    return (whole and not stock) or traces.touches(details.reason) or traces.touches(details.session)


def remains(details: CommitDetails) -> CommitDetails:
    """Return what of a commit's details says nothing of its content."""
    return CommitDetails(
        actor=details.actor,
        reason=ERASED,
        receipt=details.receipt,
        policy=details.policy,
        proposal=details.proposal,
        approved_by=details.approved_by,
        undoes=details.undoes,
    )


def cleaned(
    body: dict[str, Any], ids: Collection[str], proposals: Collection[str], documents: Collection[str], traces: Traces
) -> dict[str, Any]:
    """Return a receipt without what it says of the content of memories; the same object when it says nothing."""
    named = any(target.get("id") in ids for target in body.get("targets", ())) or body.get("proposal") in proposals
    held = body.get("kind") in {"compile", "recall"} and _holds(body, ids, documents)
    fresh = {name: _value(name, value, ids, traces, own=named or held) for name, value in body.items()}
    if held and "sections" in body:
        fresh |= _context(fresh, ids, documents)
    elif held:
        fresh["items"] = [unscored(item) if item["id"] in ids else item for item in fresh["items"]]
    return body if fresh == body else fresh


def _holds(body: dict[str, Any], ids: Collection[str], documents: Collection[str]) -> bool:
    parts = (body.get("items", ()), *(section["items"] for section in body.get("sections", ())))
    shown = {item["id"] for items in parts for item in items}
    return not shown.isdisjoint(ids) or any(each in documents for each in body.get("documents", {}).values())


def unscored(item: dict[str, Any]) -> dict[str, Any]:
    """Return what a receipt says of a memory without its scores: with enough queries they tell where its vector is."""
    return {name: value for name, value in item.items() if name not in {"score", "weak", "parts"}}


def _context(body: dict[str, Any], ids: Collection[str], documents: Collection[str]) -> dict[str, Any]:
    """Return the fields of a compile receipt that change: digests over an erased text, and names of blocks."""
    gone = {kind for kind, version in body.get("documents", {}).items() if version in documents}
    sections = []
    for section in body["sections"]:
        items = [
            {**item, "block": "core"}
            if item["id"] in ids and item.get("block") not in {None, "core", *CORE_BLOCKS}
            else item
            for item in section["items"]
        ]
        items = [unscored(item) if item["id"] in ids else item for item in items]
        mine = any(item["id"] in ids for item in items) or (section["name"] in {"identity", "core"} and bool(gone))
        sections.append({**section, "items": items, "digest": ERASED if mine else section["digest"]})
    return {
        "sections": sections,
        "documents": {kind: ERASED if kind in gone else version for kind, version in body["documents"].items()},
        "digests": dict.fromkeys(body["digests"], ERASED),
    }


def _value(name: str, value: Any, ids: Collection[str], traces: Traces, *, own: bool) -> Any:
    if isinstance(value, str):
        if own and (name in _DIGESTS or (name == "objective" and traces.touches(value))):
            return ERASED
        return ERASED if traces.within(value) else value
    if name == "targets" and isinstance(value, list):
        return [{**each, "key": None} if each.get("id") in ids and each.get("key") else each for each in value]
    if name in {"sections", "digests"}:
        return value
    if isinstance(value, list):
        return [_value(name, each, ids, traces, own=own) for each in value]
    if isinstance(value, dict):
        return {key: _value(key, each, ids, traces, own=own) for key, each in value.items()}
    return value
