"""The shape gate: lengths, names, ranges, forbidden characters, and the rules of each tier and kind.

``validation_error`` runs before anything else reads the change, because an invalid change cannot be processed at all.
The gate ``shape`` runs the other checks.

Invariants
(1) Lengths are checked first, so no detector gets a text that is longer than its field permits.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from keepward.core import change as changes
from keepward.core.commit import Reason
from keepward.core.escaping import LINE_BREAK_CHARS
from keepward.core.json_form import MAX_SAFE_INTEGER
from keepward.core.memory import CORE_BLOCKS, NAME_FIELDS, ContentType, Kind, Record, Stability, Tier
from keepward.core.patterns import lazy_regex
from keepward.core.policy import Policy
from keepward.core.principals import RESERVED_SCOPE, SOURCES, is_scope, main_scope, parse_scope
from keepward.core.query import CONTEXT_LEGEND
from keepward.core.value import MAX_DEPTH, MAX_DURATION, is_blank, json_problem, to_micros, unknown_name_message
from keepward.gates.detectors.normalize import Text, first_forbidden_char, invisible
from keepward.gates.gate_types import (
    GateContext,
    GateInput,
    Quarantine,
    Refuse,
    Rewrite,
    Verdict,
    is_identity,
    reasons_of,
    retires_own_message,
)

#: Maximum characters of short fields, references and reasons, and maximum items of a list.
MAX_SHORT_CHARS = 256
MAX_REFERENCE_CHARS = 512
MAX_REASON_CHARS = 1_000
MAX_LIST_ITEMS = 64
_CONTROLS = dict.fromkeys(range(32))
_LINE_BREAK = lazy_regex(f"[{LINE_BREAK_CHARS}]")
_LINES = tuple(name for name in NAME_FIELDS if name != "blob")
_LISTS = {
    "tags": MAX_SHORT_CHARS,
    "evidence": MAX_REFERENCE_CHARS,
    "aliases": MAX_SHORT_CHARS,
    "derived_from": MAX_SHORT_CHARS,
}
_STABILITY = {
    Kind.SUMMARY: ({Stability.VOLATILE, Stability.STABLE}, "a summary is volatile or stable"),
    Kind.RULE: ({Stability.STABLE, Stability.PERMANENT}, "a rule is stable or permanent"),
    Kind.IDENTITY: ({Stability.PERMANENT}, "an identity is permanent"),
}
#: Code of the reason if an imported memory is stored without an alias of the file.
ALIAS_LEFT_OUT = "alias_left_out"
_TAKEN = "an alias is the name of a core block, or the key or id of another memory; leave it out"
_reason = reasons_of("shape")
_lines, _lists = attrgetter(*_LINES), attrgetter(*_LISTS)


def validation_error(change: changes.Change, reason: str, policy: Policy) -> tuple[Reason, ...]:
    """Return why a change cannot be processed: too long (1), forbidden characters, wrong types or numbers."""
    found = list(dict.fromkeys(_oversize(change, reason, policy)))
    if found:
        return tuple(found)
    for name, text in (*_strings(change), ("reason", reason)):
        # JSON escapes control characters, so they are harmless in metadata.
        checked_text = text.translate(_CONTROLS) if name == "metadata" else text
        forbidden = (
            None if checked_text.isascii() and checked_text.isprintable() else first_forbidden_char(checked_text)
        )
        if forbidden is not None:
            found.append(_reason("odd_unicode", f"{name} contains {forbidden}: send well-formed text without it"))
    for name in ("confidence", "importance", "gain"):
        value = getattr(change, name, None)
        if value is None:
            continue
        usable = isinstance(value, int | float) and not isinstance(value, bool)
        if not usable or not 0 <= value <= 1:
            found.append(_reason(f"bad_{name}", f"{name} is a number from 0 to 1"))
    metadata = getattr(change, "metadata", None)
    if isinstance(metadata, Mapping) and (problem := json_problem(metadata)):
        found.append(_reason("bad_metadata", f"metadata contains {problem}"))
    if isinstance(change, changes.Insert) and change.if_version is not None and change.key is None:
        detail = "if_version is the version of the memory with the same key: give its key, or leave it out"
        found.append(_reason("bad_if_version", detail))
    ttl = getattr(change, "ttl", None)
    if isinstance(ttl, timedelta) and not timedelta(0) < ttl <= MAX_DURATION:
        found.append(_reason("bad_ttl", "a time to live is more than zero and at most a hundred years"))
    for name in ("occurred_at", "valid_from", "valid_until"):
        at = getattr(change, name, None)
        if isinstance(at, datetime) and abs(to_micros(at)) > MAX_SAFE_INTEGER:
            detail = f"{name} is a date from 1684-07-28 to 2255-06-05: others go into the text"
            found.append(_reason(f"bad_{name}", detail))
    return tuple(found)


#: Maximum characters of a message or document before its secrets are masked.
MAX_UNMASKED_CHARS = 32_768


def _oversize(change: changes.Change, reason: str, policy: Policy) -> Iterator[Reason]:
    max_text = max(policy.text_limit.values())
    if isinstance(change, changes.Insert) and (change.tier, change.key) == (Tier.CORE, CORE_BLOCKS[0]):
        max_text = max(max_text, _identity_limit(policy))
    if isinstance(change, changes.Insert) and change.kind in {Kind.EVENT, Kind.DOCUMENT}:
        # The secrets gate masks secrets in these; the masked text must fit its tier.
        max_text = max(max_text, MAX_UNMASKED_CHARS)
    if len(reason) > MAX_REASON_CHARS:
        yield _reason("too_long", f"a reason is at most {MAX_REASON_CHARS} characters")
    for name in _LISTS:
        items = getattr(change, name, None)
        if isinstance(items, list | tuple) and len(items) > MAX_LIST_ITEMS:
            yield _wrong_list(name)
    sizes: dict[str, int] = {}
    for name, text in _strings(change):
        if name == "text" and len(text) > max_text:
            yield _text_too_long(len(text), max_text)
        elif name == "metadata":
            sizes[name] = sizes.get(name, 0) + len(text)
        elif name in _LISTS and len(text) > _LISTS[name]:
            yield _wrong_list(name)
        elif name != "text" and name not in _LISTS and len(text) > MAX_REFERENCE_CHARS:
            yield (
                _wrong_line(name)
                if name in _LINES
                else _reason("too_long", f"{name} is at most {MAX_SHORT_CHARS} characters")
            )
    max_chars = max(policy.metadata_limit, policy.structured_limit)
    if sizes.get("metadata", 0) > max_chars:
        yield _metadata_too_long(max_chars)


def _identity_limit(policy: Policy) -> int:
    """Return the most characters of the identity, 8 for each token of its budget: a limit on what detectors get."""
    return 8 * policy.block_budget.get(CORE_BLOCKS[0], 0)


def oversized(after: Record, policy: Policy) -> tuple[Reason, ...]:
    """Return why the new record is too long for a detector (1); only the complete record shows this."""
    structured = after.content_type is ContentType.STRUCTURED
    max_chars = policy.structured_limit if structured else policy.metadata_limit
    if after.metadata_json is not None and len(after.metadata_json) > max_chars:
        return (_metadata_too_long(max_chars),)
    return ()


def _metadata_too_long(max_chars: int) -> Reason:
    return _reason("too_long", f"metadata is at most {max_chars} characters of JSON")


def validate(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Refuse an invalid record; quarantine a rule that lacks evidence or confidence."""
    problems = list(_problems(case, policy))
    clashing = _clashing_aliases(case, view, policy)
    without_alias = case
    if clashing and case.after.source == "import":
        # The id of an item in the file is only an additional name.
        aliases = tuple(alias for alias in case.after.aliases if alias not in clashing)
        without_alias = dataclasses.replace(case, after=replace(case.after, aliases=aliases))
    elif clashing:
        problems.append(_reason("taken_alias", _TAKEN))
    if case.after.key in view.taken:
        problems.append(_reason("bad_key", "the id of another memory begins with this text: use another key"))
    if isinstance(case.change, (*changes.TEXT_CHANGES, changes.Promote)):
        problems += _size_problems(case, policy)
    if problems:
        return Refuse(reasons=tuple(problems))
    if CONTEXT_LEGEND in case.after.text:
        detail = "the text was compiled from memory and is nothing new: remember its source instead"
        return Refuse(reasons=(_reason("compiled_text", detail),))
    weak = tuple(_weak_rule(case, policy))
    if weak:
        return Quarantine(reasons=weak, after=None if without_alias is case else without_alias.after)
    default_reason = _default_ttl_notice(without_alias)
    if without_alias is case:
        return default_reason
    return Rewrite(
        after=without_alias.after,
        reasons=(_reason(ALIAS_LEFT_OUT, _TAKEN), *(default_reason.reasons if default_reason else ())),
    )


def _problems(case: GateInput, policy: Policy) -> Iterator[Reason]:
    after, before, change = case.after, case.before, case.change
    asked = getattr(change, "source", None)
    if after.source not in SOURCES or (type(asked) is str and asked not in SOURCES):
        yield _reason("unknown_source", unknown_name_message("source", asked, SOURCES))
    yield from _unknown_scope(case, policy)
    if _hides_in_its_key(after, before):
        yield _reason("bad_key", "a key may not contain an invisible character, because it would resemble another key")
    if isinstance(change, changes.Move):
        yield from (problem for problem in _short_field_problems(after) if problem.code == "bad_key")
    if _takes_a_blocks_name(case, policy):
        yield _reason(
            "reserved_key", "the key is the name of a core block: use another key, or propose it for the core tier"
        )
    if isinstance(change, changes.Insert) and change.ttl is not None and after.stability is Stability.PERMANENT:
        yield _reason("ttl_on_permanent", "a permanent memory has no time to live: leave out one of the two")
    if (
        isinstance(change, changes.Replace)
        and isinstance(change.ttl, timedelta)
        and after.stability is Stability.PERMANENT
    ):
        yield _reason("ttl_on_permanent", "a permanent memory has no time to live")
    if isinstance(change, changes.Replace) and change.ttl is None and after.stability is Stability.VOLATILE:
        yield _reason("volatile_without_ttl", "a volatile memory needs a time to live: move it to store it permanently")
    if (
        isinstance(change, changes.Insert)
        and after.kind in _STABILITY
        and after.stability not in _STABILITY[after.kind][0]
    ):
        yield _reason("stability_of_kind", _STABILITY[after.kind][1])
    if before is not None and _rewrites_event(case, before):
        yield _reason("append_only", "an event is not changed after the fact: remember the correction as a new memory")


def _hides_in_its_key(after: Record, before: Record | None) -> bool:
    """Whether a new key contains an invisible character."""
    key = after.key
    if key is None or (before is not None and before.key == key):
        return False
    return not key.isprintable() or (not key.isascii() and any(map(invisible, key)))


def _takes_a_blocks_name(case: GateInput, policy: Policy) -> bool:
    """Whether a memory outside of core gets the name of a core block, in any spelling."""
    after, before = case.after, case.before
    if after.key is None or after.tier is Tier.CORE or isinstance(case.change, changes.Revert | changes.Restore):
        return False
    if before is not None and (before.key, before.tier) == (after.key, after.tier):
        return False
    return _names_a_block(after.key, policy)


def _names_a_block(name: str, policy: Policy) -> bool:
    plain = Text(name).normal.text.casefold().replace("-", "_").replace(" ", "_").strip("_:.")
    return plain in {*CORE_BLOCKS, *policy.core_keys}


def _clashing_aliases(case: GateInput, view: GateContext, policy: Policy) -> set[str]:
    """Return new aliases that are names of a core block, or the key or id of another memory."""
    if not isinstance(case.change, changes.Insert):
        return set()
    fresh = {*case.after.aliases}.difference(case.before.aliases if case.before else ())
    return {alias for alias in fresh if alias in view.taken or _names_a_block(alias, policy)}


def _unknown_scope(case: GateInput, policy: Policy) -> Iterator[Reason]:
    if isinstance(case.change, changes.Revert) and case.after.scope == RESERVED_SCOPE:
        # Records of the store itself may be rolled back; no other operation changes them.
        return
    if not is_scope(case.after.scope):
        yield _reason("unknown_scope", "this is not a scope: use /, an agent's name, or a path such as /agents/orion")
    elif policy.scopes and main_scope(case.after.scope) not in map(parse_scope, policy.scopes):
        yield _reason("unknown_scope", f"unknown scope: this store knows {', '.join(policy.scopes)}")


def _rewrites_event(case: GateInput, before: Record) -> bool:
    if before.kind is not Kind.EVENT or before.tier is not Tier.EPISODIC:
        return False
    if isinstance(
        case.change,
        changes.Archive | changes.Expire | changes.Restore | changes.Reinforce | changes.Revert | changes.Supersede,
    ) or retires_own_message(case):
        return False
    return not (case.actor.is_owner and not isinstance(case.change, changes.TEXT_CHANGES))


def _size_problems(case: GateInput, policy: Policy) -> Iterator[Reason]:
    after = case.after
    if after.valid_from is not None and after.valid_until is not None and after.valid_until <= after.valid_from:
        yield _reason("bad_valid_until", "valid_until is later than valid_from, such as 2026-01-01 and 2027-01-01")
    added = getattr(case.change, "text", None)
    # An appended text may not be blank either. Structured data may have fields only.
    plain = after.content_type is not ContentType.STRUCTURED
    if plain and (is_blank(after.text) or (type(added) is str and is_blank(added))):
        yield _reason("empty_text", "there is no text to remember")
    # An insert under an existing key ignores some of its fields; they must be valid all the same.
    is_update = isinstance(case.change, changes.Insert) and case.before is not None
    values = (after, case.change) if is_update else (after,)
    yield from dict.fromkeys(problem for value in values for problem in _short_field_problems(value))
    limit = policy.text_limit[after.tier]
    if is_identity(after):
        limit = max(limit, _identity_limit(policy))
    if len(after.text) > limit and not isinstance(case.change, changes.Promote):
        yield _text_too_long(len(after.text), limit)


def _short_field_problems(value: Any) -> Iterator[Reason]:
    """Yield the problems of the short fields of a memory or of an insert."""
    for name, text in zip(_LINES, _lines(value), strict=True):
        if text is not None and (is_blank(text) or len(text) > MAX_SHORT_CHARS or _LINE_BREAK.search(text)):
            yield _wrong_line(name)
    for (name, max_chars), items in zip(_LISTS.items(), _lists(value), strict=True):
        # Most lists are empty, so this is checked first.
        if items and (len(items) > MAX_LIST_ITEMS or any(is_blank(item) or len(item) > max_chars for item in items)):
            yield _wrong_list(name)


def _wrong_line(name: str) -> Reason:
    return _reason(f"bad_{name}", f"a {name} is one line of 1 to {MAX_SHORT_CHARS} characters")


def _wrong_list(name: str) -> Reason:
    return _reason(f"bad_{name}", f"{name} are at most {MAX_LIST_ITEMS} texts of 1 to {_LISTS[name]} characters")


def _text_too_long(length: int, limit: int) -> Reason:
    detail = f"the text is too long ({length} of {limit} characters): compress it or split it"
    return _reason("too_long", f"{detail}; an import stores it in linked parts")


def _weak_rule(case: GateInput, policy: Policy) -> Iterator[Reason]:
    after = case.after
    if (
        after.kind is not Kind.RULE
        or not isinstance(case.change, changes.Insert | changes.Replace)
        or policy.may_self_approve(case.actor)
    ):
        return
    if not after.evidence:
        yield _reason("rule_without_evidence", "a rule needs evidence: name its source, or write it as the owner")
    if after.confidence < policy.rule_floor:
        yield _reason("rule_below_floor", f"a rule needs a confidence of {policy.rule_floor:g} or more")


def _default_ttl_notice(case: GateInput) -> Rewrite | None:
    change, after = case.change, case.after
    if not isinstance(change, changes.Insert) or change.ttl is not None or after.expires_at is None or case.before:
        return None
    hours = (after.expires_at - after.created_at) / timedelta(hours=1)
    term = f"{hours:g} hours" if hours < 72 else f"{hours / 24:g} days"
    what = f"{after.stability.value} {after.tier.value} memory"
    detail = f"it expires after {term} as a {what}: state a time to live to change that"
    return Rewrite(after=after, reasons=(_reason("default_ttl", detail),))


def _strings(change: changes.Change) -> Iterator[tuple[str, str]]:
    made: Any = type(change)
    names, values = _fields(made)
    for name, value in zip(names, values(change), strict=True):
        # Most fields are empty.
        if not value:
            continue
        if type(value) is str:
            yield name, value
        elif isinstance(value, str | dict | list | tuple):
            yield from _leaves(name, value, 0)


@functools.cache
def _fields(kind: type[changes.Change]) -> tuple[tuple[str, ...], Callable[[changes.Change], tuple[Any, ...]]]:
    """Return the names of a change's fields (at least two), and a function that returns their values."""
    names = kind.__struct_fields__
    return names, attrgetter(*names)


def _leaves(name: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict | list | tuple) and depth <= MAX_DEPTH:
        for item in itertools.chain.from_iterable(value.items()) if isinstance(value, dict) else value:
            yield from _leaves(name, item, depth + 1)
