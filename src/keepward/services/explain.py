"""Receipts: what they say of contexts and reads, and why a context holds what it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from keepward.context.render import rendered_lines
from keepward.core.commit import ReceiptLine, ReceiptPage
from keepward.core.compiled import Considered, ContextLine, Explanation
from keepward.core.journal import CommitView, ContextDifference, ContextDiffItem
from keepward.core.memory import Record, Status
from keepward.core.principals import is_actor
from keepward.core.query import check_limit
from keepward.core.results import to_plain
from keepward.core.value import from_micros
from keepward.services.access import COMPILE_RECEIPT_KINDS
from keepward.services.request_context import RequestContext
from keepward.services.review import proposals

if TYPE_CHECKING:
    from keepward.context.render import ArtefactLookup

#: Receipts that one page reads to find those that pass, and how many of them at once.
MAX_RECEIPTS_READ = 2_000
_RECEIPT_BATCH = 200
_INCLUSION_REASONS = {
    "identity": "the identity document opens every context",
    "core": "core memory is in every context",
    "pinned": "it is permanent, and stands in every context",
    "state": "keyed state stands in every context while there is room",
    "working": "working memory stands in every context while there is room",
    "recalled": "it bears on the objective",
}
#: The fields of a memory that its line, its section or its place in a context depend on.
_LINE_FIELDS = (
    *("text", "key", "kind", "tier", "scope", "status", "speaker", "occurred_at", "trust", "heard", "sensitivity"),
    *("stability", "content_type", "expires_at"),
)


def receipt(session: RequestContext, receipt_id: str) -> dict[str, Any]:
    """Return a receipt as plain values.

    That of a commit has what was there before and after. That of a context has its ``explanation``.

    Raises:
        NotFound: no such receipt within reach.
    """
    stored, view = session.reader.receipt(receipt_id)
    if stored["kind"] in COMPILE_RECEIPT_KINDS:
        explanation = explain_context(session, stored, partial(session.store.artefact, session.tenant))
        return {**stored, "explanation": to_plain(explanation)}
    if view is None:
        return stored
    return {
        **stored,
        "reason": view.details.reason,
        "changes": [
            {
                "id": step.after.id,
                "op": step.op,
                "tier": step.after.tier.value,
                "key": step.after.key,
                "before": step.before.text if step.before else None,
                "after": step.after.text,
                "status": step.after.status.value,
                "confidence": step.after.confidence,
                "source": step.after.source,
                "trust": step.after.trust.label,
                "evidence": list(step.after.evidence),
            }
            for step in view.steps
        ],
    }


def receipts(
    session: RequestContext,
    *,
    kinds: Sequence[str] = (),
    actor: str | None = None,
    objective: str | None = None,
    before: str | None = None,
    limit: int = 50,
) -> ReceiptPage:
    """Return receipts, newest first, of any of ``kinds``, by an actor, whose objective holds a text in any case.

    A page reads no more than ``MAX_RECEIPTS_READ`` receipts; ``before`` of the page leads on.

    Raises:
        InvalidInput: a limit below 1.
        Unauthorised: they span every scope of the tenant, and take a reviewer or the owner.
    """
    check_limit(limit)
    found: list[ReceiptLine] = []
    wanted = (objective or "").casefold()
    for _ in range(MAX_RECEIPTS_READ // _RECEIPT_BATCH):
        page = session.reader.receipts_before(before, limit=_RECEIPT_BATCH)
        for each in page:
            before, line = each["id"], _receipt_line(each)
            if (
                (not kinds or line.kind in kinds)
                and (actor is None or is_actor(line.actor, actor))
                and wanted in (line.objective or "").casefold()
            ):
                found.append(line)
            if len(found) == limit:
                return ReceiptPage(items=tuple(found), before=before)
        if len(page) < _RECEIPT_BATCH:
            return ReceiptPage(items=tuple(found), before=None)
    return ReceiptPage(items=tuple(found), before=before)


def _receipt_line(receipt: Mapping[str, Any]) -> ReceiptLine:
    inputs, excluded, compiles = receipt.get("inputs"), receipt.get("excluded"), "sections" in receipt
    asked: Mapping[str, Any] = inputs if isinstance(inputs, dict) else {}
    items = receipt.get("items")
    if compiles:
        items = [item for section in receipt["sections"] for item in section["items"]]
    return ReceiptLine(
        id=receipt["id"],
        kind=receipt["kind"],
        at=datetime.fromisoformat(receipt["at"]),
        actor=receipt["actor"],
        head=receipt["head"],
        commit=receipt.get("commit"),
        **{name: asked.get(name) for name in ("objective", "purpose", "scope", "budget_tokens")},
        compiled=receipt.get("compiled"),
        tokens=receipt.get("tokens") if compiles else None,
        shown=len(items) if isinstance(items, list) else None,
        left_out=len(excluded) if isinstance(excluded, list) else None,
    )


def context_diff(session: RequestContext, first: str, second: str) -> ContextDifference:
    """Return what differs between the contexts of two receipts, and the commits that changed what is shown.

    Raises:
        NotFound: one of them is not a compile receipt within reach.
    """
    a, b = (session.reader.receipt_of_read(name, COMPILE_RECEIPT_KINDS) for name in (first, second))
    before, after = (
        {item["id"]: (item["version"], part["name"]) for part in each["sections"] for item in part["items"]}
        for each in (a, b)
    )
    names: list[tuple[Any, str]] = [
        *(("added", name) for name in sorted(after.keys() - before.keys())),
        *(("removed", name) for name in sorted(before.keys() - after.keys())),
        *(("changed", name) for name in sorted(before.keys() & after.keys()) if before[name][0] != after[name][0]),
    ]
    low, high = sorted(int(each["inputs"]["head"].split(":")[0]) for each in (a, b))
    commits = session.reader.commits_changing([name for _, name in names], _LINE_FIELDS, after=low, until=high)
    items = []
    for change, name in names:
        touched = commits[name]
        items.append(
            ContextDiffItem(
                id=name,
                change=change,
                section=(after.get(name) or before[name])[1],
                before=before[name][0] if name in before else None,
                after=after[name][0] if name in after else None,
                commit=touched[-1] if touched else None,
                commits=tuple(touched),
                why=_difference_reason(session, name, touched, b if change == "removed" else a, (a, b)),
            )
        )
    asked = {**a["inputs"], **a["documents"]}, {**b["inputs"], **b["documents"]}
    return ContextDifference(
        first=first,
        second=second,
        same=a["digests"]["text"] == b["digests"]["text"],
        items=tuple(items),
        inputs={
            name: (asked[0].get(name), asked[1].get(name))
            for name in sorted(asked[0].keys() | asked[1].keys())
            if asked[0].get(name) != asked[1].get(name)
        },
    )


def _difference_reason(
    session: RequestContext,
    memory_id: str,
    commits: Sequence[CommitView],
    lacking: Mapping[str, Any],
    both: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> str:
    """Return in one sentence why one of two contexts lacks a memory, or has another version of it."""
    if commits:
        return "; ".join(
            f"commit {view.commit.seq} ({', '.join(dict.fromkeys(step.op for step in view.steps))}) "
            f"by {view.details.actor}: {view.details.reason}"
            for view in commits
        )
    for left in lacking["excluded"]:
        if left["id"] == memory_id:
            return f"left out of the other: {left['detail']} ({left['code']})"
    ends = [each.expires_at for each in session.reader.records([memory_id]).records]
    if any(at is not None and at <= from_micros(lacking["inputs"]["now"]) for at in ends):
        return "its term ended between the two"
    differ = [name for name in sorted(both[0]["inputs"]) if both[0]["inputs"][name] != both[1]["inputs"].get(name)]
    asked = [name for name in differ if name not in {"head", "now"}]
    if asked:
        return f"the two were asked differently: {', '.join(asked)}"
    return "it ranks otherwise among what was remembered in between"


def explain_context(session: RequestContext, facts: Mapping[str, Any], artefact: ArtefactLookup) -> Explanation:
    """Return the text of a context cut by memory, and why each candidate is in or out.

    Each memory is as it was at the version that the facts name. What the caller may not read is named without its
    words; what was erased has a line that says so.
    """
    items = [item for section in facts["sections"] for item in section["items"]]
    known = session.reader.versions({item["id"] for item in (*items, *facts.get("excluded", ()))})

    def fetch(memory_id: str, version: int) -> Record | None:
        _, record = known[memory_id].get(version, (None, None))
        return None if record is None or record.status is Status.ERASED else record

    count = session.engine.counter.count
    return Explanation(
        parts=tuple(
            ContextLine(section=section, id=name, text=text, tokens=count(text))
            for section, name, text in rendered_lines(facts, fetch, artefact)
        ),
        candidates=tuple(_considered_memories(session, facts, known)),
    )


def _considered_memories(
    session: RequestContext, facts: Mapping[str, Any], known: Mapping[str, Mapping[int, tuple[str, Record]]]
) -> Iterator[Considered]:
    """Yield each memory that a context holds or left out; version 0 is the newest."""
    listed = [
        (each["name"], item, each["name"], _INCLUSION_REASONS[each["name"]])
        for each in facts["sections"]
        for item in each["items"]
    ]
    outside = [(None, item, item["code"], item["detail"]) for item in facts.get("excluded", ())]
    proposed = {item.id: session.reader.steps(item.steps) for item in proposals(session)} if outside else {}
    for section, item, code, why in (*listed, *outside):
        versions = known[item["id"]]
        now = versions[max(versions)][1] if versions else None
        made, then = versions.get(item["version"] or max(versions, default=0), (None, None))
        if now is None and (steps := proposed.get(item["id"])):
            now = then = steps[-1].after
        if now is not None and now.status is Status.ERASED and then is not None:
            then = now
        gone = then is None or then.status is Status.ERASED
        yield Considered(
            id=item["id"],
            version=item["version"],
            section=section,
            code=code,
            why=why,
            text="" if gone or then is None else then.text,
            now=None if now is None or then is None or now.text == then.text else now.text,
            tier=then.tier.value if then else item.get("tier"),
            kind=then.kind.value if then else item.get("kind"),
            key=then.key if then else None,
            author=then.author if then else None,
            source=then.source if then else None,
            trust=then.trust.label if then else None,
            commit=made,
            tokens=item.get("tokens"),
            score=item.get("score"),
            parts=item.get("parts", {}),
        )
