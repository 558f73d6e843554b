"""What an import may meet again: memories and waiting proposals of a tenant, by the file's own names and by place."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from keepward.core.memory import Record, Status
from keepward.core.value import plain_name
from keepward.errors import InvalidInput, NotFound
from keepward.interchange.reading import Item

if TYPE_CHECKING:
    from keepward.memory import Memory

_Said = tuple[Any, Any, Any]


class Known:
    """The memories and waiting proposals of one tenant that an import may meet again."""

    def __init__(self, mem: Memory) -> None:
        self._mem = mem
        # Nothing can be known in an empty tenant; asking for each item would double the time.
        self._empty = not mem.log(limit=1)
        self._views: dict[str, Memory] = {}
        self._loaded: tuple[str, str] | None = None
        self._by_alias: dict[str, Record] = {}
        self._by_said: dict[_Said, list[Record]] = {}
        self._claimed: set[str] = set()
        self._seen: set[tuple[str | None, str]] = set()
        #: Text by session and alias, and texts by session.
        self._waiting: dict[tuple[str | None, str], str] = {}
        self._waiting_texts: set[tuple[str | None, str]] = set()
        self._wait(mem)
        #: The memory that the last item was found to be; None where it waits, or was not known.
        self.found: Record | None = None
        #: How many were found, and what is odd about them.
        self.differing = 0
        self.ended = 0
        self.waiting = 0

    @property
    def names(self) -> set[str]:
        """The file's own names of the items that were met."""
        return {name for _, name in self._seen}

    def by_name(self, name: str, scope: str | None) -> Record | None:
        """Return the memory that a file's own name stands for, as seen from a scope; None where there is none."""
        with suppress(NotFound, InvalidInput):
            found = self._from(scope or self._mem.scope).get(name)
            # A key here is no name of the file's.
            return found if plain_name(name) in {found.id, *found.aliases} else None
        return None

    def meets(self, item: Item) -> bool:
        """Whether the item is known; a place name that belongs to another memory is taken off the item."""
        self.found = None
        session, aliases = item.fields.get("session"), item.fields.get("aliases", ())
        name = (session, aliases[0]) if aliases else None
        if name in self._seen and item.named:
            return True
        if name is not None:
            self._seen.add(name)
        # A reader sees its own scope and those above, so each item is looked for from where it goes.
        view = self._from(item.fields.get("scope") or self._mem.scope)
        if self._waits(item, name, session):
            self.waiting += 1
            return True
        if self._empty or not (aliases or session):
            return False
        if session is None:
            found = self.by_name(aliases[0], item.fields.get("scope"))
        else:
            found = self._of_session(view, item, session)
        if found is None:
            if aliases and session is not None and aliases[0] in self._by_alias:
                item.fields["aliases"] = aliases[1:]
            return False
        self.found = found
        self._claimed.add(found.id)
        self.differing += found.text != item.fields["text"]
        self.ended += found.status is not Status.ACTIVE
        return True

    def _wait(self, view: Memory) -> None:
        """Note what waits that a handle sees."""
        for item in view.pending(limit=None):
            for step in item.steps:
                after = step.after
                self._waiting |= {(after.session, alias): after.text for alias in after.aliases}
                self._waiting_texts.add((after.session, after.text))

    def _waits(self, item: Item, name: tuple[str | None, str] | None, session: str | None) -> bool:
        text = item.fields["text"]
        if (session, text) in self._waiting_texts:
            return True
        held = self._waiting.get(name) if name else None
        return held is not None and (item.named or _redacted(held, text))

    def _from(self, scope: str) -> Memory:
        if scope not in self._views:
            self._views[scope] = self._mem if scope == self._mem.scope else self._mem.at(scope=scope)
            if scope != self._mem.scope:
                self._wait(self._views[scope])
        return self._views[scope]

    def _of_session(self, view: Memory, item: Item, session: str) -> Record | None:
        if (view.scope, session) != self._loaded:
            self._load(view, session)
        aliases = item.fields.get("aliases", ())
        named = self._by_alias.get(aliases[0]) if aliases else None
        if item.named:
            return named
        for record in self._by_said.get(_said(item.fields), ()):
            if record.id not in self._claimed:
                return record
        if named is not None and named.id not in self._claimed and _same_place(named, item.fields):
            return named
        return None

    def _load(self, view: Memory, session: str) -> None:
        self._loaded = (view.scope, session)
        self._by_alias = {}
        said: defaultdict[_Said, list[Record]] = defaultdict(list)
        for record in view.find(session=session, limit=None, include_ended=True):
            self._by_alias |= dict.fromkeys((record.id, *record.aliases), record)
            said[(record.speaker, record.occurred_at, record.text)].append(record)
        self._by_said = dict(said)


def _said(fields: dict[str, Any]) -> _Said:
    return (fields.get("speaker"), fields.get("occurred_at"), fields["text"])


def _same_place(record: Record, fields: dict[str, Any]) -> bool:
    same = (record.speaker, record.occurred_at) == _said(fields)[:2]
    return same and (record.version > 1 or _redacted(record.text, fields["text"]))


def _redacted(stored: str, text: str) -> bool:
    """Whether ``stored`` may be ``text`` with a marker in place of something."""
    return "[" in stored and text.startswith(stored.split("[", 1)[0])
