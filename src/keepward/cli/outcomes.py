"""What a command shows of the outcome of a write: the outcome, the next step, and the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keepward.cli.command_context import CommandResult
from keepward.core.proposal import Outcome, is_too_long_for_tier
from keepward.core.results import outcome_summary
from keepward.core.value import redaction_note

if TYPE_CHECKING:
    from keepward.cli.render import Screen

#: Exit code by outcome of a write.
_EXIT_CODE_OF_OUTCOME = {"committed": 0, "duplicate": 0, "quarantined": 6, "refused": 5}


def write_result(result: Outcome | None) -> CommandResult:
    """Return the result of a write, with the next step if there is one; None: no memory was there to change."""
    if result is None:
        return CommandResult({}, messages=("there was nothing to change",))
    codes = {each.code for each in result.reasons}
    messages = [redaction_note(result.redacted)] if result.redacted else []
    next_step = None
    if result.item:
        next_step = f"pending review: approve it with `keepward approve {result.item.id}`"
        messages += [next_step, "with `--as operator` a write is the owner's own and needs no approval"]
    elif is_too_long_for_tier(result):
        next_step = "store it in linked parts with `keepward import --from markdown FILE`; - reads stdin"
        messages.append(next_step)
    elif "memory_off" in codes:
        messages.append("nothing was stored, not even a receipt")
    elif result.outcome == "refused":
        messages.append("nothing was stored except a receipt")
    elif "unchanged" in codes:
        messages.append("nothing was changed")

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        shown = outcome_summary(result) | {"redacted": list(result.redacted)}
        screen.result({**shown, "outcome": "unchanged" if "unchanged" in codes else result.outcome})

    data = {**result.to_dict(), "next": next_step}
    return CommandResult(data, draw, _EXIT_CODE_OF_OUTCOME[result.outcome], tuple(messages))
