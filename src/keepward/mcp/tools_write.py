"""Tools that propose: remember, revise, forget. What they say passes the gates; the outcome is data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keepward.errors import InvalidInput, KeepwardError
from keepward.mcp import shapes
from keepward.mcp.spec import Given, Tool, anything, number, span, text, texts, whole, yes_no
from keepward.model.change import KEEP
from keepward.model.memory import Kind, Sensitivity, Stability, Tier
from keepward.model.proposal import Outcome, Quarantined

if TYPE_CHECKING:
    from keepward.memory import Memory

_BECAME = {"rejected": "rejected", "expired": "not decided in time", "stale": "set aside"}
#: What an identity is, is written outside of memory.
_KINDS = tuple(kind.value for kind in Kind if kind is not Kind.IDENTITY)
_ID = text("Memory id.")
_REASON = text("Why.")
_IF_VERSION = whole("Fail unless it is the newest.", low=1)
#: What every write gives back.
OUTCOME = {
    "outcome": text(options=("committed", "duplicate", "quarantined", "refused")),
    "id": text(),
    "version": whole(),
    "proposal": text(),
    "receipt": text(),
    "reasons": texts(),
    "notices": texts(),
}
ALWAYS = ("outcome", "receipt", "reasons")


def remember(memory: Memory, given: Mapping[str, Any]) -> Given:
    """Propose a new memory."""
    fields = dict(given)
    if "occurred_at" in fields:
        from keepward.model.value import parse_instant

        fields["occurred_at"] = parse_instant(fields["occurred_at"])
    return written(memory, memory.remember(fields.pop("text"), **fields))


def revise(memory: Memory, given: Mapping[str, Any]) -> Given:
    """Propose new text or fields for a memory, or an addition to it."""
    fields = dict(given)
    memory_id, reason = fields.pop("id"), fields.pop("reason")
    if fields.pop("append", False):
        if not fields.keys() <= {"text", "source", "evidence", "confidence", "consent", "if_version"}:
            raise InvalidInput("`append` goes with `text`, `source`, `evidence`, `confidence` and `if_version` alone")
        if "text" not in fields:
            raise InvalidInput("`append` needs `text`, what to add")
        return written(memory, memory.append(memory_id, fields.pop("text"), reason=reason, **_tuples(fields)))
    if not fields.keys() - {"if_version"}:
        raise InvalidInput("revise needs `text` or another field to change")
    if fields.get("ttl") == "never":
        fields["ttl"] = None
    return written(memory, memory.revise(memory_id, fields.pop("text", KEEP), reason=reason, **_tuples(fields)))


def forget(memory: Memory, given: Mapping[str, Any]) -> Given:
    """Propose that a memory no longer holds."""
    return written(memory, memory.forget(given["id"], reason=given["reason"], if_version=given.get("if_version")))


def written(memory: Memory, result: Outcome) -> Given:
    """Return what became of a write, with decisions on earlier ones that the caller has not heard of."""
    data, told = shapes.outcome(result, notices(memory))
    return Given(data=data, text=told, held=result.item if isinstance(result, Quarantined) else None)


def notices(memory: Memory) -> list[str]:
    """Return, once, what became of earlier proposals of the caller's where it went against them."""
    try:
        decided = memory.notices()
    except KeepwardError:
        # The write itself is done and has its receipt; what cannot be told now is told another time.
        return []
    return [
        f"your proposal {each.id} was {_BECAME[each.state]}" + (f": {each.decision}" if each.decision else "")
        for each in decided
    ]


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


_BACKING = {
    "source": text("Where it comes from: user_message, tool, document, web, inference (default)."),
    "evidence": texts("What backs it, such as chat:42."),
    "confidence": number("Is it true?", low=0, high=1),
    "importance": number(low=0, high=1),
    "ttl": span("24h, 30d, or seconds."),
    "sensitivity": text(options=tuple(Sensitivity)),
    "consent": yes_no("Personal data was given with consent."),
}
_LABELS = {"subject": text("Whom or what it is about."), "category": text(), "tags": texts()}
REMEMBER = Tool(
    name="remember",
    title="Remember",
    about="Remember one thing in a plain sentence. Gates judge it; `outcome` says whether it is committed, held for a "
    "person, refused, or a duplicate. It stays unless a tier or time to live says otherwise. No secrets.",
    run=remember,
    takes={
        "text": text("What to remember; at most 1,200 characters."),
        "tier": text("core changes wait for a person.", options=tuple(Tier)),
        "kind": text("A rule needs evidence and confidence 0.8.", options=_KINDS),
        "key": text("Stable name; writing it again updates."),
        "scope": text("shared, an agent's name, or a path."),
        **_LABELS,
        "metadata": anything(),
        **_BACKING,
        "stability": text(options=tuple(Stability)),
        "derived_from": texts("Ids it was made from."),
        "session": text(),
        "occurred_at": text("ISO time."),
        "reason": _REASON,
    },
    needs=("text",),
    gives=OUTCOME,
    always=ALWAYS,
)
REVISE = Tool(
    name="revise",
    title="Revise",
    about="Give a memory new text or fields, or append to it; the old version stays in its history.",
    run=revise,
    takes={
        "id": _ID,
        "text": text(),
        "append": yes_no("Add the text on a line of its own."),
        "reason": _REASON,
        "if_version": _IF_VERSION,
        **_LABELS,
        **_BACKING,
    },
    needs=("id", "reason"),
    gives=OUTCOME,
    always=ALWAYS,
    destroys=True,
)
FORGET = Tool(
    name="forget",
    title="Forget",
    about="Propose that a memory no longer holds. A person can restore it; nothing is erased.",
    run=forget,
    takes={"id": _ID, "reason": _REASON, "if_version": _IF_VERSION},
    needs=("id", "reason"),
    gives=OUTCOME,
    always=ALWAYS,
    destroys=True,
)
