"""The verbs that read, over HTTP; each says what ``Memory``'s says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from keepward.client import wire
from keepward.client.calls import PAGE, Calls
from keepward.client.decode import decode, decode_each
from keepward.client.transport import path_of
from keepward.errors import InvalidInput
from keepward.model.memory import Record
from keepward.model.query import Memories, Recall, check_names

if TYPE_CHECKING:
    from keepward.model.compiled import CompiledContext, Replayed
    from keepward.model.journal import Check, Version
    from keepward.model.query import AsOf


class Reads(Calls):
    """Recall, lists, history, contexts and receipts."""

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        purpose: str = "answer",
        tiers: Sequence[str] = (),
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        content_types: Sequence[str] = (),
        subject: str | None = None,
        category: str | None = None,
        session: str | None = None,
        min_importance: float = 0.0,
        include_sensitive: bool = False,
        as_of: AsOf = None,
        order: str = "learned",
        floor: float | None = None,
        receipt: bool = False,
    ) -> Recall:
        """Return the memories most relevant to a query, best first; scores are rounded to six decimals."""
        filters = _filters(tiers, kinds, tags, content_types, subject, category, session, min_importance)
        if limit < 1:
            raise InvalidInput("a limit is at least 1")
        if receipt and limit > PAGE:
            raise InvalidInput(f"a receipt of a recall over HTTP names at most {PAGE} memories")
        asked = [
            ("query", query),
            ("limit", min(limit, PAGE)),
            ("purpose", purpose),
            *filters,
            ("include_sensitive", include_sensitive or None),
            ("as_of", wire.moment(as_of)),
            ("order", order),
            ("floor", floor),
            ("receipt", receipt or None),
        ]
        # A receipt that is kept is one more each time it is asked for.
        answer = self._get("/memory/search", asked, once=receipt)
        found, cursor = decode(Recall, answer), answer.get("cursor")
        while len(found) < limit and cursor:
            further = self._get("/memory/search", [*asked, ("cursor", cursor)])
            hits, cursor = (*found.hits, *decode(Recall, further).hits), further.get("cursor")
            found = replace(found, hits=hits[:limit])
        return found

    def find(
        self,
        *,
        tiers: Sequence[str] = (),
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        content_types: Sequence[str] = (),
        key: str | None = None,
        subject: str | None = None,
        category: str | None = None,
        session: str | None = None,
        job: str | None = None,
        min_importance: float = 0.0,
        limit: int | None = 50,
        include_ended: bool = False,
        include_sensitive: bool = True,
        as_of: AsOf = None,
    ) -> Memories:
        """Return the memories that pass all filters, newest first; ``tags`` match any."""
        if limit is not None and limit < 1:
            raise InvalidInput("a limit is at least 1")
        asked = [
            *_filters(tiers, kinds, tags, content_types, subject, category, session, min_importance),
            ("key", key),
            ("job", job),
            ("include_ended", include_ended),
            ("include_sensitive", include_sensitive),
            ("as_of", wire.moment(as_of)),
        ]
        told: dict[str, Any] = {}
        records = decode_each(Record, self._pages("/memory/items", asked, limit=limit, told=told))
        # A server of an older release says nothing of it.
        lost, notes = (tuple(map(str, told.get(name, ()))) for name in ("withheld", "notes"))
        return Memories(records, withheld=lost, notes=notes)

    def get(self, memory_id: str, *, as_of: AsOf = None) -> Record:
        """Return a memory by id or alias, whatever its status."""
        return decode(Record, self._get(path_of("items", memory_id), [("as_of", wire.moment(as_of))]))

    def history(self, memory_id: str) -> list[Version]:
        """Return every version of a memory with the commit that made it, oldest first."""
        from keepward.model.journal import Version

        return decode_each(Version, self._get(path_of("items", memory_id, "history"))["items"])

    def context(
        self,
        objective: str,
        *,
        budget_tokens: int | None = None,
        purpose: str = "answer",
        as_of: AsOf = None,
        format: str = "markdown",  # noqa: A002  the word users know
        include_sensitive: bool = False,
        without: Sequence[str] = (),
        floor: float | None = None,
    ) -> CompiledContext:
        """Compile what a model should know for an objective, within a budget, with a receipt."""
        from keepward.model.compiled import CompiledContext

        asked = wire.present(
            objective=objective,
            budget_tokens=budget_tokens,
            purpose=purpose,
            as_of=wire.moment(as_of),
            format=format,
            include_sensitive=include_sensitive,
            without=_words("without", without) or None,
            floor=floor,
        )
        return decode(CompiledContext, self._post("/memory/compile", asked))

    def snapshot(
        self,
        *,
        budget_tokens: int | None = None,
        format: str = "markdown",  # noqa: A002
        without: Sequence[str] = (),
    ) -> CompiledContext:
        """Compile what belongs in every prompt of this scope: core, lasting memories and keyed state, no recall."""
        from keepward.model.compiled import CompiledContext

        asked = [("budget_tokens", budget_tokens), ("format", format), ("without", _words("without", without))]
        return decode(CompiledContext, self._get("/memory/snapshot", asked))

    def memory_block(
        self,
        query: str,
        *,
        budget_tokens: int | None = None,
        purpose: str = "answer",
        floor: float | None = None,
        format: str = "markdown",  # noqa: A002
    ) -> CompiledContext:
        """Compile only what is relevant to a query; the empty text when nothing is."""
        from keepward.model.compiled import CompiledContext

        asked = wire.present(query=query, budget_tokens=budget_tokens, purpose=purpose, floor=floor, format=format)
        return decode(CompiledContext, self._post("/memory/block", asked))

    def replay(self, receipt_id: str) -> Replayed:
        """Render a compiled context again from its receipt, byte for byte."""
        from keepward.model.compiled import Replayed

        return decode(Replayed, self._post(path_of("receipts", receipt_id, "replay")))

    def receipt(self, receipt_id: str) -> dict[str, Any]:
        """Return a receipt as plain values; a commit's comes with the before and after of each target."""
        return dict(self._get(path_of("receipts", receipt_id)))

    def doctor(self) -> list[Check]:
        """Return what was looked at, whether it is well, and what to do when it is not."""
        from keepward.model.journal import Check

        return decode_each(Check, self._get("/memory/doctor")["items"])

    def status(self) -> dict[str, Any]:
        """Return counts, sizes, the queue and the use of budgets, as plain values."""
        return dict(self._standing())


def _filters(
    tiers: Sequence[str],
    kinds: Sequence[str],
    tags: Sequence[str],
    content_types: Sequence[str],
    subject: str | None,
    category: str | None,
    session: str | None,
    min_importance: float,
) -> list[tuple[str, Any]]:
    named = [
        _words(name, given) for name, given in (("tiers", tiers), ("kinds", kinds), ("content_types", content_types))
    ]
    check_names(tiers=named[0], kinds=named[1], content_types=named[2])
    return [
        ("tier", named[0]),
        ("kind", named[1]),
        ("tags", _words("tags", tags)),
        ("content_type", named[2]),
        ("subject", subject),
        ("category", category),
        ("session", session),
        ("min_importance", min_importance or None),
    ]


def _words(name: str, given: Sequence[str]) -> list[str]:
    if isinstance(given, str) or not all(isinstance(each, str) for each in given):
        raise InvalidInput(f"{name} is a list of texts")
    return [str(each) for each in given]
