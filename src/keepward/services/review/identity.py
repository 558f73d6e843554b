"""The identity: who the agent is, at the start of every context.

A new text is a proposal for the core block ``persona``, which only the owner approves. With a file, the file alone is
the persona and nothing here writes it: its owner applies the approved text by hand. Without one, the block is it.
"""

from __future__ import annotations

from difflib import unified_diff
from typing import Any

from keepward.core.change import Insert
from keepward.core.identity import Identity
from keepward.core.journal import Check
from keepward.core.memory import CORE_BLOCKS, Record, Tier
from keepward.core.principals import RESERVED_SCOPE, branch_of
from keepward.core.proposal import Outcome
from keepward.errors import InvalidInput
from keepward.gates.content import redact_secrets
from keepward.services import arguments
from keepward.services.access import records_under_key
from keepward.services.reading.visible import VisibleReader, core_blocks
from keepward.services.request_context import RequestContext
from keepward.services.writing import write

PERSONA = CORE_BLOCKS[0]


def identity(context: RequestContext) -> Identity:
    """Return the persona of this handle's contexts, and what was approved for it.

    Raises:
        InvalidInput: the file cannot be read.
    """
    document, block = context.engine.identity(), _block(context)
    name = context.engine.identity.name
    if name is None:
        version, text = (None, None) if block is None else (str(block.version), block.text)
    else:
        version, text = document or (None, None)
    text = None if text is None else redact_secrets(text)
    return Identity(
        version=version,
        text=text,
        tokens=0 if text is None else context.engine.counter.count(text),
        budget=context.policy.block_budget.get(PERSONA, 0),
        file=name,
        block=block,
        diff="" if name is None or block is None else _diff(name, text or "", block.text),
    )


def _block(context: RequestContext) -> Record | None:
    blocks = core_blocks(context, approved=True).records
    return next((VisibleReader(context).hide_content(block) for block in blocks if block.key == PERSONA), None)


def _diff(name: str, now: str, approved: str) -> str:
    before, after = (text.replace("\r\n", "\n").rstrip().splitlines() for text in (now, approved))
    return "".join(f"{line}\n" for line in unified_diff(before, after, name, name, lineterm=""))


def update_identity(context: RequestContext, text: str, *, reason: str = "") -> Outcome:
    """Propose a new text of the identity, in the nearest core block that this handle sees, else in its own scope."""
    if branch_of(context.scope) is not None:
        raise InvalidInput("the identity is changed on main: leave the branch")
    change = identity_change(context, arguments.text(text))
    return write.propose(context, [change], reason=reason.strip() or "revised", identity=True)


def identity_change(context: RequestContext, text: str, **fields: Any) -> Insert:
    """Return the change that gives the identity of this handle a new text."""
    block = _block(context)
    return Insert(
        id=context.ids.new_id(context.clock.now()),
        text=text.replace("\r\n", "\n").rstrip(),
        scope=context.scope if block is None else block.scope,
        tier=Tier.CORE.value,
        key=PERSONA,
        **fields,
    )


def check(context: RequestContext) -> Check:
    """Compare the file with the text that was approved last."""
    name, block = context.engine.identity.name, _block(context)
    if block is None and records_under_key(context, RESERVED_SCOPE, "identity"):
        detail = "an earlier release stored editions of the identity, which only contexts of that time show"
        remedy = "`keepward identity propose -f FILE` makes its text the first version of the core block"
        return Check(name="identity", ok=True, warning=True, detail=detail, remedy=remedy)
    if name is None:
        return Check(name="identity", ok=True, detail="the core block is the persona" if block else "there is none")
    now = context.engine.identity()
    if now is None:
        remedy = f"write {name}, or take it out of the settings: then the core block is the persona"
        return Check(name="identity", ok=False, detail=f"there is no file {name}", remedy=remedy)
    if block is None or not _diff(name, now[1], block.text):
        return Check(name="identity", ok=True, detail=f"{name} is the persona")
    detail = f"{name} is the persona, and differs from the text that was approved last"
    remedy = f"apply the diff of `keepward identity`, or approve the file: `keepward identity propose -f {name}`"
    return Check(name="identity", ok=True, warning=True, detail=detail, remedy=remedy)
