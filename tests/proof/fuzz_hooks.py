"""Hooks of Schemathesis, loaded into its process: a check of our own, and calls that must not be made."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import schemathesis

KEEP = frozenset(os.environ.get("KEEPWARD_FUZZ_KEEP", "").split())
#: Where misfits are written to, a line of JSON each.
MISFITS = Path(os.environ.get("KEEPWARD_FUZZ_MISFITS", "misfits.jsonl"))

#: Its body is that of the operation in its path, which the description does not say.
CALL_BY_NAME = "POST /memory/call/{operation}"
#: What a request line that is no HTTP, or has no end, is answered by before any operation sees it.
NO_HTTP = "Invalid HTTP request received."

#: Refusals of what fits its description, by operation, code, and words of the detail: each hangs on something that a
#: description of single fields cannot say.
BEYOND_DESCRIPTION = (
    # A cursor is what the page before gave; by its form alone none can be told from another.
    (r".*", "bad_cursor", r""),
    # Schemathesis counts tags without quotes among the valid ones, whatever the description says of them.
    (r".*", "bad_request", r"takes tags in quotes"),
    # No text of an address holds NUL, whatever part of it; half of the fields have no pattern to say so.
    (r".*", "bad_request", r"contains NUL"),
    # No text anywhere, keys of free objects included, holds NUL, and no whole number there takes more than 64 bits.
    (r".*", "bad_json", r"NUL|beyond 64 bits"),
    # One of several parameters of a query, and no second: OpenAPI has no words for it.
    (r"GET /memory/impact|POST /memory/contain(/plan)?", "invalid_input", r"exactly one of"),
    # A pattern does not know how many days a month has.
    (r".*", "invalid_input", r"not an instant|is a commit's number or id"),
    # What is in the store, or in the receipt, decides.
    (r"POST /memory/bisect", "invalid_input", r"passes already|nothing to look for|^give one of these"),
    (r"POST /memory/tests", "invalid_input", r"^test \d+"),
    (r"POST /memory/branches/\{name\}/merge", "invalid_input", r"this branch does not change"),
    # A header puts the call on a branch, or names a scope.
    (r"POST /memory/branches", "invalid_input", r"leave this branch"),
    (r".*", "invalid_input", r"name of a tenant or scope contains"),
    (r"POST /memory/erase(/plan)?", "invalid_input", r"^say what to erase"),
    (r"POST /memory/feedback", "invalid_input", r"not in it|shows|name it once"),
    (r"POST /memory/items/merge", "invalid_input", r"can be merged|about whom its memories are"),
    # An object as text, and names in it that are no field's; a time in one of several spellings.
    (r".*", "invalid_input", r"^`where`|operator|^\$|condition"),
    # A scope and an instant, each in one of several spellings.
    (r"GET .*", "invalid_input", r"^unknown scope|^a path of a scope|^(since|until) is an aware"),
    (r"POST /memory/messages", "invalid_input", r"^message \d+"),
    # A change that changes nothing; a year that is far away.
    (r".*", "invalid_input", r"nothing is changed"),
    (r".*", "invalid_input", r"beyond 2\*\*53"),
    # What each class of tokens can do; an instant that is past.
    (r"POST /memory/tokens", "invalid_input", r"of this role|can do everything|in the future"),
    # Any text is a string; few strings are an export of something.
    (r"POST /memory/(import|restore-export|restore-export/plan)", "invalid_input", r""),
    # An export is of every scope.
    (r"GET /memory/export", "invalid_input", r"contains every scope"),
    (r"GET /memory/subjects/\{name\}", "invalid_input", r"reads every scope"),
    # A vector has the length of the store's model, and a direction.
    (r".*", "invalid_input", r"a vector"),
)


@schemathesis.hook
def filter_failure(context: Any, failure: Any, case: Any, response: Any) -> bool:
    """Keep faults of an answer; of what is a misfit of description and reading, keep a line; see ``misfit``."""
    del context
    if response.text == NO_HTTP:
        return False
    kind = type(failure).__name__
    if kind not in {"AcceptedNegativeData", "RejectedPositiveData"}:
        return True
    if misfit(kind, case, response.json()):
        with MISFITS.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps([case.operation.label, kind, str(failure), response.text[:400]]) + "\n")
    return False


def misfit(kind: str, case: Any, told: dict[str, Any]) -> bool:
    """Return whether a description says something else than what is read, but for ``BEYOND_DESCRIPTION``."""
    # A server that is busy has read nothing.
    if told.get("code") == "rate_limited":
        return False
    if kind == "AcceptedNegativeData":
        # Where there is but one memory to merge there is nothing to judge.
        return case.operation.label != "POST /memory/items/merge" or told.get("outcome", "") is not None
    if case.operation.label == CALL_BY_NAME:
        return False
    return not any(
        re.fullmatch(operation, case.operation.label) and told["code"] == code and re.search(words, told["detail"])
        for operation, code, words in BEYOND_DESCRIPTION
    )


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """Never revoke the token that the calls are made with: nothing after it would be tested."""
    del context
    if case.method == "DELETE" and case.operation.path == "/memory/tokens/{id}":
        return str((case.path_parameters or {}).get("id")) not in KEEP
    return True


@schemathesis.check
def well_formed_is_read(ctx: Any, response: Any, case: Any) -> bool | None:
    """What fits its description is read: a gate may refuse it, the reading of the body may not."""
    del ctx
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive or response.status_code != 422:
        return None
    if case.operation.label == CALL_BY_NAME:
        return None
    code = response.json()["code"]
    assert code != "invalid_body", "the description allows a body that the server does not read"
    return None
