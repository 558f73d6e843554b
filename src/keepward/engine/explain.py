"""Explain: why a context holds what it holds, why recall put a hit where it is, and which receipts there are.

Invariants
(1) Nothing is kept and no use is counted. What a preview shows is noted against the one who asked, as any read is.
(2) Every candidate has one place or one reason: those of the compiler, as a receipt has them.
(3) The texts of the parts make up the text of the context, byte for byte.
(4) What a caller may not read is named and its words are withheld.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from keepward.context.render import Artefact, Fetch, pieces
from keepward.context.render import replay as render_again
from keepward.engine.contexts import ContextRequest, compiled, held_in, sources
from keepward.engine.reranker import reranker_status
from keepward.engine.review import pending
from keepward.engine.session import Session, note_handed
from keepward.engine.view import COMPILED, reaches, receipt_of_read, veiled, visible, withholds
from keepward.errors import Unauthorised
from keepward.model.commit import ReceiptLine, ReceiptPage
from keepward.model.compiled import Considered, Explanation, Part, Share, TokenCount
from keepward.model.memory import Record, Status
from keepward.model.query import Ranked, Ranking, Recall, check_limit
from keepward.model.trust import is_actor
from keepward.model.value import from_micros, plain_key

#: Receipts that one page looks at to find those that pass.
LOOKED_AT = 2_000
_AT_ONCE = 200
#: How far down an order a rank is told.
RANKED = 100
_IN = {
    "identity": "the identity document opens every context",
    "core": "core memory is in every context",
    "pinned": "it is permanent, and stands in every context",
    "state": "keyed state stands in every context while there is room",
    "working": "working memory stands in every context while there is room",
    "recalled": "it bears on the objective",
}


def preview(session: Session, objective: str, **asked: Any) -> Explanation:
    """Compile a context and explain it; see ``contexts.context`` for the arguments and other errors.

    Raises:
        Unauthorised: no receipt will say what was shown, so it takes a reviewer or the owner.
    """
    if not session.actor.may_decide:
        raise Unauthorised("a preview leaves no receipt; it takes a reviewer or the owner")
    gathered, made = compiled(session, objective, "context", ContextRequest(**asked))
    inputs = gathered.inputs
    note_handed(session, held_in(inputs, made))
    documents = {"identity": inputs.identity, "user_file": inputs.user_file}
    fetch, _ = sources(session)

    def document(kind: str, version: str) -> str | None:
        kept = documents.get(kind)
        return kept[1] if kept is not None and kept[0] == version else None

    return _explained(session, made.facts, fetch, document, receipt=None, notes=gathered.notes)


def explain(session: Session, receipt_id: str) -> Explanation:
    """Explain the context of a receipt; its texts are read at the versions that the receipt names.

    Raises:
        NotFound: no such compile receipt within reach.
    """
    receipt = receipt_of_read(session, receipt_id, COMPILED)
    notes = tuple(each["detail"] for each in receipt["reasons"] if each["gate"] == "recall")
    return _explained(session, receipt, *sources(session), receipt=receipt["id"], notes=notes)


def _explained(
    session: Session,
    facts: Mapping[str, Any],
    fetch: Fetch,
    artefact: Artefact,
    *,
    receipt: str | None,
    notes: tuple[str, ...],
) -> Explanation:
    parts = pieces(facts, fetch, artefact)
    inputs, count = facts["inputs"], session.engine.counter.count
    return Explanation(
        receipt=receipt,
        objective=inputs["objective"],
        purpose=inputs["purpose"],
        scope=inputs["scope"],
        budget_tokens=inputs["budget_tokens"],
        format=facts["format"],
        head=inputs["head"],
        at=from_micros(inputs["now"]),
        text="".join(text for _, _, text in parts),
        same=render_again(facts, fetch, artefact).same,
        tokens=facts["tokens"],
        sections=tuple(Share(name=each["name"], tokens=each["tokens"]) for each in facts["sections"]),
        parts=tuple(Part(section=section, id=name, text=text, tokens=count(text)) for section, name, text in parts),
        candidates=tuple(_considered(session, facts)),
        notes=notes,
        unlisted=facts.get("unlisted", {}),
    )


def _considered(session: Session, facts: Mapping[str, Any]) -> Iterator[Considered]:
    """Yield each memory that a context holds or left out, as it was at the version that the facts name."""
    inside = [
        (each["name"], item, each["name"], _IN[each["name"]]) for each in facts["sections"] for item in each["items"]
    ]
    outside = [(None, item, item["code"], item["detail"]) for item in facts.get("excluded", ())]
    proposed = {item.id: visible(session, item.steps) for item in pending(session)} if outside else {}
    for section, item, code, why in (*inside, *outside):
        now, then, made = _versions(session, item["id"], item["version"])
        if now is None and (steps := proposed.get(item["id"])):
            now = then = steps[-1].after
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


def _versions(session: Session, memory_id: str, version: int) -> tuple[Record | None, Record | None, str | None]:
    """Return a memory as it is and as it was at a version, as far as the caller may read it, and what commit made that.

    Version 0 is the newest.
    """
    made = {step.after.version: (view, step.after) for view, step in session.store.history(session.tenant, memory_id)}
    seen: dict[int, Record] = {}
    for number, (_, record) in made.items():
        if session.actor.may_decide or reaches(session, record.scope):
            seen[number] = veiled(record) if withholds(session, record) else record
    if not seen:
        return None, None, None
    now = seen[max(seen)]
    then = seen.get(version or now.version)
    if then is None:
        return now, None, None
    if withholds(session, now):
        then = veiled(then)
    return now, now if now.status is Status.ERASED else then, made[then.version][0].commit.id


def explained_recall(session: Session, recall: Recall, orders: Mapping[str, Recall]) -> Ranking:
    """Return a recall with what puts each hit where it is; ``orders`` are the same question, ordered otherwise."""
    from keepward.retrieval.fusion import adds

    ranks = {name: {hit.memory.id: hit.rank for hit in found} for name, found in orders.items()}
    told = reranker_status(session, session.store.head(session.tenant).seq)
    ranked = (
        Ranked(
            id=hit.memory.id,
            adds=adds(hit.parts),
            ranks={name: placed.get(hit.memory.id) for name, placed in ranks.items()},
        )
        for hit in recall
    )
    return Ranking(recall=recall, ranked=tuple(ranked), serving=told["serving"], why=told["why"])


def count_tokens(session: Session, text: str, *, key: str | None = None) -> TokenCount:
    """Return how many tokens a text takes, and the budget of the core block with this key; nothing is kept of it."""
    counter = session.engine.counter
    budget = None if key is None else session.policy.block_budget.get(plain_key(key))
    return TokenCount(tokens=counter.count(text), counter=counter.name, budget=budget)


def receipts(
    session: Session,
    *,
    kinds: Sequence[str] = (),
    actor: str | None = None,
    objective: str | None = None,
    before: str | None = None,
    limit: int = 50,
) -> ReceiptPage:
    """Return receipts, newest first, of any of ``kinds``, by an actor, whose objective holds a text in any case.

    A page looks at no more than ``LOOKED_AT`` receipts; ``before`` of the page leads on.

    Raises:
        InvalidInput: a limit below 1.
        Unauthorised: they span every scope of the tenant, and take a reviewer or the owner.
    """
    if not session.actor.may_decide:
        raise Unauthorised("a list of receipts spans every scope; it takes a reviewer or the owner")
    check_limit(limit)
    found: list[ReceiptLine] = []
    wanted = objective.casefold() if objective is not None else None
    for _ in range(LOOKED_AT // _AT_ONCE):
        page = session.store.receipts_before(session.tenant, before, limit=_AT_ONCE)
        for each in page:
            before = each["id"]
            line = _line(each)
            if (
                (not kinds or line.kind in kinds)
                and (actor is None or is_actor(line.actor, actor))
                and (wanted is None or wanted in (line.objective or "").casefold())
            ):
                found.append(line)
            if len(found) == limit:
                return ReceiptPage(items=tuple(found), before=before)
        if len(page) < _AT_ONCE:
            return ReceiptPage(items=tuple(found), before=None)
    return ReceiptPage(items=tuple(found), before=before)


def _line(receipt: Mapping[str, Any]) -> ReceiptLine:
    inputs = receipt.get("inputs")
    asked: Mapping[str, Any] = inputs if isinstance(inputs, dict) else {}
    shown = receipt.get("items")
    if "sections" in receipt:
        shown = [item for section in receipt["sections"] for item in section["items"]]
    excluded = receipt.get("excluded")
    return ReceiptLine(
        id=receipt["id"],
        kind=receipt["kind"],
        at=datetime.fromisoformat(receipt["at"]),
        actor=receipt["actor"],
        head=receipt["head"],
        commit=receipt.get("commit"),
        **{name: asked.get(name) for name in ("objective", "purpose", "scope", "budget_tokens")},
        compiled=receipt.get("compiled"),
        tokens=receipt.get("tokens") if "sections" in receipt else None,
        shown=len(shown) if isinstance(shown, list) else None,
        left_out=len(excluded) if isinstance(excluded, list) else None,
    )
