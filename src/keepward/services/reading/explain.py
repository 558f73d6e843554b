"""Receipts: what they record of contexts and reads, and why a memory is in a context or not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from keepward.context.lines import TOMBSTONE
from keepward.context.render import rendered_lines
from keepward.core.commit import ReceiptLine, ReceiptPage
from keepward.core.compiled import Considered, ContextLine, Explanation
from keepward.core.journal import CommitView, ContextDifference, ContextDiffItem
from keepward.core.json_form import to_json
from keepward.core.memory import Record, Status
from keepward.core.principals import is_actor
from keepward.core.value import from_micros
from keepward.services.access import COMPILE_RECEIPT_KINDS
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import RequestContext

if TYPE_CHECKING:
    from keepward.context.render import ArtefactLookup

#: Most receipts that one page reads to find those that pass, and how many at a time.
MAX_RECEIPTS_READ = 2_000
_RECEIPT_BATCH = 200
#: Replaces the text of a version that cannot be read.
DAMAGED_TEXT = "damaged: this version does not match its seal; run `keepward verify`"
_INCLUSION_REASONS = {
    "identity": "the identity file opens every context",
    "core": "core memory is in every context",
    "pinned": "it is permanent, and is in every context",
    "state": "keyed state is in every context while there is room",
    "working": "working memory is in every context while there is room",
    "recalled": "it bears on the objective",
}
#: Fields of a memory that decide on its line, section or position in a context.
_LINE_FIELDS = (
    *("text", "key", "kind", "tier", "scope", "status", "speaker", "occurred_at", "trust", "heard", "sensitivity"),
    *("stability", "content_type", "expires_at", "valid_from", "valid_until", "stale_at"),
)


def receipt(context: RequestContext, receipt_id: str) -> dict[str, Any]:
    """Return a receipt as plain values.

    The receipt of a commit has the texts before and after. That of a context has its ``explanation``.

    Raises:
        NotFound: no such receipt is visible.
    """
    stored, view = VisibleReader(context).receipt(receipt_id)
    if stored["kind"] in COMPILE_RECEIPT_KINDS:
        explanation = explain_context(context, stored, partial(context.store.artefact, context.tenant))
        return {**stored, "explanation": to_json(explanation)}
    if view is None:
        return stored
    return {
        **stored,
        **({"damage": list(view.damage)} if view.damage else {}),
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
    context: RequestContext,
    *,
    kinds: Sequence[str] = (),
    actor: str | None = None,
    objective: str | None = None,
    before: str | None = None,
    limit: int = 50,
) -> ReceiptPage:
    """Return the visible receipts, newest first, by kind and actor, whose objective contains a text in any case.

    A page reads at most ``MAX_RECEIPTS_READ`` receipts; its ``before`` continues the list.

    Raises:
        Unauthorised: the list takes a reviewer or the owner.
    """
    lines: list[ReceiptLine] = []
    damaged: list[str] = []
    part = (objective or "").casefold()
    for _ in range(MAX_RECEIPTS_READ // _RECEIPT_BATCH):
        page = [*VisibleReader(context).receipts_before(before, limit=_RECEIPT_BATCH)]
        for name, stored, is_damaged in page:
            before = name
            damaged += [name] if is_damaged else []
            if stored is None:
                continue
            line = _receipt_line(stored)
            if (
                (not kinds or line.kind in kinds)
                and (actor is None or is_actor(line.actor, actor))
                and part in (line.objective or "").casefold()
            ):
                lines.append(line)
            if len(lines) == limit:
                return ReceiptPage(items=tuple(lines), before=before, damaged=tuple(damaged))
        if len(page) < _RECEIPT_BATCH:
            return ReceiptPage(items=tuple(lines), before=None, damaged=tuple(damaged))
    return ReceiptPage(items=tuple(lines), before=before, damaged=tuple(damaged))


def _receipt_line(receipt: Mapping[str, Any]) -> ReceiptLine:
    recorded, excluded, compiles = receipt.get("inputs"), receipt.get("excluded"), "sections" in receipt
    inputs: Mapping[str, Any] = recorded if isinstance(recorded, dict) else {}
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
        **{name: inputs.get(name) for name in ("objective", "purpose", "scope", "budget_tokens")},
        compiled=receipt.get("compiled"),
        tokens=receipt.get("tokens") if compiles else None,
        shown=len(items) if isinstance(items, list) else None,
        left_out=len(excluded) if isinstance(excluded, list) else None,
    )


def context_diff(context: RequestContext, first: str, second: str) -> ContextDifference:
    """Return the differences between the contexts of two receipts, and the commits that caused them.

    Raises:
        NotFound: one of them is not a visible compile receipt.
    """
    a, b = (VisibleReader(context).receipt_of_read(name, COMPILE_RECEIPT_KINDS) for name in (first, second))
    before, after = (
        {item["id"]: (item["version"], section["name"]) for section in receipt["sections"] for item in section["items"]}
        for receipt in (a, b)
    )
    names: list[tuple[Any, str]] = [
        *(("added", name) for name in sorted(after.keys() - before.keys())),
        *(("removed", name) for name in sorted(before.keys() - after.keys())),
        *(("changed", name) for name in sorted(before.keys() & after.keys()) if before[name][0] != after[name][0]),
    ]
    low, high = sorted(int(receipt["inputs"]["head"].split(":")[0]) for receipt in (a, b))
    ids = [name for _, name in names]
    commits, notes = VisibleReader(context).commits_changing(ids, _LINE_FIELDS, after=low, until=high)
    items = []
    for change, name in names:
        changing = commits[name]
        items.append(
            ContextDiffItem(
                id=name,
                change=change,
                section=(after.get(name) or before[name])[1],
                before=before[name][0] if name in before else None,
                after=after[name][0] if name in after else None,
                commit=changing[-1] if changing else None,
                commits=tuple(changing),
                why=_difference_reason(context, name, changing, b if change == "removed" else a, (a, b)),
            )
        )
    inputs = {**a["inputs"], **a["documents"]}, {**b["inputs"], **b["documents"]}
    return ContextDifference(
        first=first,
        second=second,
        same=a["digests"]["text"] == b["digests"]["text"],
        items=tuple(items),
        inputs={
            name: (inputs[0].get(name), inputs[1].get(name))
            for name in sorted(inputs[0].keys() | inputs[1].keys())
            if inputs[0].get(name) != inputs[1].get(name)
        },
        notes=notes,
    )


def _difference_reason(
    context: RequestContext,
    memory_id: str,
    commits: Sequence[CommitView],
    lacking: Mapping[str, Any],
    both: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> str:
    """Return one sentence on why one of two contexts lacks a memory, or has another version of it."""
    if commits:
        return "; ".join(
            f"commit {view.commit.seq} ({', '.join(dict.fromkeys(step.op for step in view.steps))}) "
            f"by {view.details.actor}: {view.details.reason}"
            for view in commits
        )
    for excluded in lacking["excluded"]:
        if excluded["id"] == memory_id:
            return f"left out of the other: {excluded['detail']} ({excluded['code']})"
    expiries = [record.expires_at for record in VisibleReader(context).records([memory_id]).records]
    if any(at is not None and at <= from_micros(lacking["inputs"]["now"]) for at in expiries):
        return "its TTL ended between the two"
    differing = [name for name in sorted(both[0]["inputs"]) if both[0]["inputs"][name] != both[1]["inputs"].get(name)]
    options = [name for name in differing if name not in {"head", "now"}]
    if options:
        return f"the two had different options: {', '.join(options)}"
    return "it ranks differently among what was remembered in between"


def explain_context(context: RequestContext, facts: Mapping[str, Any], artefact: ArtefactLookup) -> Explanation:
    """Return the text of a context cut into memories, and why each candidate is in or out.

    Each memory is shown at the version that the facts name. One that the caller may not read is named without its
    content; an erased one has a line that says so.
    """
    items = [item for section in facts["sections"] for item in section["items"]]
    ids = {item["id"] for item in (*items, *facts.get("excluded", ()))}
    known, damaged = VisibleReader(context).versions(ids)
    unread = {item["id"] for item in items if item["version"] in damaged.get(item["id"], ())}

    def fetch(memory_id: str, version: int) -> Record | None:
        _, record = known[memory_id].get(version, (None, None))
        return None if record is None or record.status is Status.ERASED else record

    count = context.engine.counter.count
    return Explanation(
        parts=tuple(
            ContextLine(section=section, id=name, text=text, tokens=count(text))
            for section, name, text in (
                (section, name, text.replace(TOMBSTONE, "[damaged]") if name in unread else text)
                for section, name, text in rendered_lines(facts, fetch, artefact)
            )
        ),
        candidates=tuple(_considered_memories(context, facts, known, damaged)),
    )


def _considered_memories(
    context: RequestContext,
    facts: Mapping[str, Any],
    known: Mapping[str, Mapping[int, tuple[str, Record]]],
    damaged: Mapping[str, Collection[int]],
) -> Iterator[Considered]:
    """Yield each memory that a context included or excluded; version 0 means the newest.

    The last two arguments are those of ``VisibleReader.versions``.
    """
    listed = [
        (section["name"], item, section["name"], _INCLUSION_REASONS[section["name"]])
        for section in facts["sections"]
        for item in section["items"]
    ]
    excluded = [(None, item, item["code"], item["detail"]) for item in facts.get("excluded", ())]
    pending = VisibleReader(context).proposals("pending") if excluded else []
    undecided = [item for item in pending if item.expires_at > context.clock.now()]
    proposed = {item.id: VisibleReader(context).steps(item.steps) for item in undecided}
    for section, item, code, why in (*listed, *excluded):
        versions = known[item["id"]]
        now = versions[max(versions)][1] if versions else None
        commit, then = versions.get(item["version"] or max(versions, default=0), (None, None))
        if then is not None:
            # The version of then may have changed other fields only.
            words = then.text, then.text_by, then.text_at
            commit = next(made for made, each in versions.values() if (each.text, each.text_by, each.text_at) == words)
        if now is None and (steps := proposed.get(item["id"])):
            now = then = steps[-1].after
        if now is not None and now.status is Status.ERASED and then is not None:
            then = now
        erased = then is None or then.status is Status.ERASED
        is_damaged = then is None and (item["version"] or max(damaged.get(item["id"], ()), default=0)) in damaged.get(
            item["id"], ()
        )
        yield Considered(
            id=item["id"],
            version=item["version"],
            section=section,
            code=code,
            why=why,
            text=DAMAGED_TEXT if is_damaged else "" if erased or then is None else then.text,
            now=None if now is None or then is None or now.text == then.text else now.text,
            tier=then.tier.value if then else item.get("tier"),
            kind=then.kind.value if then else item.get("kind"),
            key=then.key if then else None,
            author=then.text_by if then else None,
            source=then.source if then else None,
            trust=then.trust.label if then else None,
            commit=commit,
            tokens=item.get("tokens"),
            score=item.get("score"),
            parts=item.get("parts", {}),
        )
