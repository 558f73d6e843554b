"""The shape gate: lengths, names, ranges, odd Unicode, and the rules of each tier and kind.

``validation_error`` runs before anything else reads the change, since what it finds cannot be processed at
all; the gate ``shape`` runs this check.

Invariants
(1) Lengths come first: no detector, here or elsewhere, is given a text longer than a field may hold.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from datetime import timedelta
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from keepward.core import change as ask
from keepward.core.commit import Reason
from keepward.core.memory import CORE_BLOCKS, NAME_FIELDS, ContentType, Kind, Record, Stability, Tier
from keepward.core.patterns import lazy_regex
from keepward.core.policy import Policy
from keepward.core.principals import RESERVED_SCOPE, SOURCES, is_scope, parse_scope
from keepward.core.query import CONTEXT_LEGEND
from keepward.core.value import MAX_DURATION, is_blank, unknown_name_message
from keepward.gates.detectors.normalize import Text, first_forbidden_char, invisible
from keepward.gates.gate_types import (
    GateContext,
    GateInput,
    Quarantine,
    Refuse,
    Rewrite,
    Verdict,
    reasons_of,
    retires_own_turn,
)

#: Longest of the short fields, in characters, and most items of a list.
MAX_SHORT_CHARS = 256
MAX_REFERENCE_CHARS = 512
MAX_REASON_CHARS = 1_000
MAX_LIST_ITEMS = 64
#: Characters of a sentence of the identity that counts wherever it stands, of one that counts at all, and of what may
#: stand beside a short one.
MIN_QUOTE_CHARS, MIN_SENTENCE_CHARS, MAX_REMAINDER_CHARS = 30, 8, 16
_CONTROLS = dict.fromkeys(range(32))
_ENDS = lazy_regex(r"[.!?;:。！？；：]+")
_MARKS = lazy_regex(r"[\W_]+")
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
#: Code of the reason on which an imported memory goes without a name of the file.
ALIAS_LEFT_OUT = "alias_left_out"
_TAKEN = "an alias is the name of a core block, or the key or id of another memory; leave it out"
_reason = reasons_of("shape")
_lines, _lists = attrgetter(*_LINES), attrgetter(*_LISTS)


def validation_error(change: ask.Change, reason: str, policy: Policy) -> tuple[Reason, ...]:
    """Return why a change cannot be processed: too long (1), odd Unicode, wrong types, numbers out of range."""
    found = list(dict.fromkeys(_oversize(change, reason, policy)))
    if found:
        return tuple(found)
    for name, text in (*_strings(change), ("reason", reason)):
        # JSON writes a control character in six plain ones, so that no file or database meets it.
        said = text.translate(_CONTROLS) if name == "metadata" else text
        odd = None if said.isascii() and said.isprintable() else first_forbidden_char(said)
        if odd is not None:
            found.append(_reason("odd_unicode", f"{name} holds {odd}: send well-formed text without it"))
    for name in ("confidence", "importance", "gain"):
        value = getattr(change, name, None)
        if value is None:
            continue
        usable = isinstance(value, int | float) and not isinstance(value, bool)
        if not usable or not math.isfinite(value) or not 0 <= value <= 1:
            found.append(_reason(f"bad_{name}", f"{name} is a number from 0 to 1"))
    ttl = getattr(change, "ttl", None)
    if isinstance(ttl, timedelta) and not timedelta(0) < ttl <= MAX_DURATION:
        found.append(_reason("bad_ttl", "a time to live is longer than nothing and at most a hundred years"))
    return tuple(found)


#: Characters of a turn of a talk or of a document, the secrets that will be masked included.
MAX_UNMASKED_CHARS = 32_768


def _oversize(change: ask.Change, reason: str, policy: Policy) -> Iterator[Reason]:
    longest = max(policy.text_limit.values())
    if isinstance(change, ask.Insert) and change.kind in {Kind.EVENT, Kind.DOCUMENT}:
        # The secrets gate masks secrets in these; the text that is left must fit its tier.
        longest = max(longest, MAX_UNMASKED_CHARS)
    if len(reason) > MAX_REASON_CHARS:
        yield _reason("too_long", f"a reason is at most {MAX_REASON_CHARS} characters")
    for name in _LISTS:
        items = getattr(change, name, None)
        if isinstance(items, list | tuple) and len(items) > MAX_LIST_ITEMS:
            yield _wrong_list(name)
    sizes: dict[str, int] = {}
    for name, text in _strings(change):
        if name == "text" and len(text) > longest:
            yield _text_too_long(len(text), longest)
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
    most = max(policy.metadata_limit, policy.structured_limit)
    if sizes.get("metadata", 0) > most:
        yield _metadata_too_long(most)


def oversized(after: Record, policy: Policy) -> tuple[Reason, ...]:
    """Return why what would be stored is too long to be read by a detector (1), where only the whole tells."""
    structured = after.content_type is ContentType.STRUCTURED
    most = policy.structured_limit if structured else policy.metadata_limit
    if after.metadata_json is not None and len(after.metadata_json) > most:
        return (_metadata_too_long(most),)
    return ()


def _metadata_too_long(most: int) -> Reason:
    return _reason("too_long", f"metadata is at most {most} characters of JSON")


def validate(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Refuse what breaks a rule of form; hold a rule that lacks evidence or confidence."""
    problems = list(_problems(case, policy))
    clashing = _clashing_aliases(case, view, policy)
    kept = case
    if clashing and case.after.source == "import":
        # A file's own id is an extra name here, which the memory can do without.
        aliases = tuple(each for each in case.after.aliases if each not in clashing)
        kept = dataclasses.replace(case, after=replace(case.after, aliases=aliases))
    elif clashing:
        problems.append(_reason("taken_alias", _TAKEN))
    if case.after.key in view.taken:
        problems.append(_reason("bad_key", "the id of another memory begins so: use another key"))
    if isinstance(case.change, (*ask.TEXT_CHANGES, ask.Promote)):
        problems += _size_problems(case, policy)
    if problems:
        return Refuse(reasons=tuple(problems))
    if CONTEXT_LEGEND in case.after.text:
        detail = "the text was compiled from memory: what came out of recall is no news; remember its source instead"
        return Refuse(reasons=(_reason("compiled_text", detail),))
    if _quotes_identity(case.after, view.identity_text):
        detail = "the text repeats the identity document: memory refers to its version and never holds its text"
        return Refuse(reasons=(_reason("identity_text", detail),))
    weak = tuple(_weak_rule(case, policy))
    if weak:
        return Quarantine(reasons=weak, after=None if kept is case else kept.after)
    told = _defaults_told(kept)
    if kept is case:
        return told
    return Rewrite(after=kept.after, reasons=(_reason(ALIAS_LEFT_OUT, _TAKEN), *(told.reasons if told else ())))


def _problems(case: GateInput, policy: Policy) -> Iterator[Reason]:
    after, before, change = case.after, case.before, case.change
    asked = getattr(change, "source", None)
    if after.source not in SOURCES or (type(asked) is str and asked not in SOURCES):
        yield _reason("unknown_source", unknown_name_message("source", asked, SOURCES))
    yield from _unknown_scope(case, policy)
    if _hides_in_its_key(after, before):
        yield _reason("bad_key", "a key holds no invisible character: it could not be told from another")
    if _takes_a_blocks_name(case, policy):
        yield _reason(
            "reserved_key", "that is the name of a core block: use another key, or propose it for the core tier"
        )
    if isinstance(change, ask.Insert) and change.ttl is not None and after.stability is Stability.PERMANENT:
        yield _reason("ttl_on_permanent", "a permanent memory has no time to live: leave out one of the two")
    if isinstance(change, ask.Replace) and isinstance(change.ttl, timedelta) and after.stability is Stability.PERMANENT:
        yield _reason("ttl_on_permanent", "a permanent memory has no time to live")
    if isinstance(change, ask.Replace) and change.ttl is None and after.stability is Stability.VOLATILE:
        yield _reason("volatile_without_ttl", "a volatile memory has a time to live: move it to keep it for good")
    if isinstance(change, ask.Insert) and after.kind in _STABILITY and after.stability not in _STABILITY[after.kind][0]:
        yield _reason("stability_of_kind", _STABILITY[after.kind][1])
    if before is not None and _rewrites_event(case, before):
        yield _reason("append_only", "an event is not changed after the fact: remember the correction as a new memory")


def _hides_in_its_key(after: Record, before: Record | None) -> bool:
    """Whether a key that is new holds a character that nobody sees."""
    key = after.key
    if key is None or (before is not None and before.key == key):
        return False
    return not key.isprintable() or (not key.isascii() and any(map(invisible, key)))


def _takes_a_blocks_name(case: GateInput, policy: Policy) -> bool:
    """Whether a memory outside of core is given the name of a core block, in whatever letters."""
    after, before = case.after, case.before
    if after.key is None or after.tier is Tier.CORE or isinstance(case.change, ask.Revert | ask.Restore):
        return False
    if before is not None and (before.key, before.tier) == (after.key, after.tier):
        return False
    return _names_a_block(after.key, policy)


def _names_a_block(name: str, policy: Policy) -> bool:
    plain = Text(name).normal.text.casefold().replace("-", "_").replace(" ", "_").strip("_:.")
    return plain in {*CORE_BLOCKS, *policy.core_keys}


def _clashing_aliases(case: GateInput, view: GateContext, policy: Policy) -> set[str]:
    """Return new aliases by which something else goes: a core block, or another memory by its key or id."""
    if not isinstance(case.change, ask.Insert):
        return set()
    fresh = {*case.after.aliases}.difference(case.before.aliases if case.before else ())
    return {each for each in fresh if each in view.taken or _names_a_block(each, policy)}


def _unknown_scope(case: GateInput, policy: Policy) -> Iterator[Reason]:
    if isinstance(case.change, ask.Revert) and case.after.scope == RESERVED_SCOPE:
        # What the store keeps for itself is undone like anything else, and changed by nothing else that is judged.
        return
    if not is_scope(case.after.scope):
        yield _reason("unknown_scope", "that is no scope: use /, an agent's name, or a path such as /agents/orion")
    elif policy.scopes and case.after.scope not in map(parse_scope, policy.scopes):
        yield _reason("unknown_scope", f"unknown scope: this store knows {', '.join(policy.scopes)}")


def _rewrites_event(case: GateInput, before: Record) -> bool:
    if before.kind is not Kind.EVENT or before.tier is not Tier.EPISODIC:
        return False
    if isinstance(
        case.change, ask.Archive | ask.Expire | ask.Restore | ask.Reinforce | ask.Revert | ask.Supersede
    ) or retires_own_turn(case):
        return False
    return not (case.actor.is_owner and not isinstance(case.change, ask.TEXT_CHANGES))


def _size_problems(case: GateInput, policy: Policy) -> Iterator[Reason]:
    after = case.after
    added = getattr(case.change, "text", None)
    # Also where it is added to a text that is there, so that nothing but a line break would be. What is structured may
    # be found by its fields alone.
    plain = after.content_type is not ContentType.STRUCTURED
    if plain and (is_blank(after.text) or (type(added) is str and is_blank(added))):
        yield _reason("empty_text", "there is no text to remember")
    # What an insert leaves aside because its key is taken has to be in form all the same.
    taken = isinstance(case.change, ask.Insert) and case.before is not None
    yield from dict.fromkeys(
        each for value in ((after, case.change) if taken else (after,)) for each in _short_field_problems(value)
    )
    limit = policy.text_limit[after.tier]
    if len(after.text) > limit and not isinstance(case.change, ask.Promote):
        yield _text_too_long(len(after.text), limit)


def _short_field_problems(value: Any) -> Iterator[Reason]:
    """Yield what is wrong with the short fields of a memory or of an insert."""
    for name, text in zip(_LINES, _lines(value), strict=True):
        if text is not None and (is_blank(text) or len(text) > MAX_SHORT_CHARS or "\n" in text):
            yield _wrong_line(name)
    for (name, most), items in zip(_LISTS.items(), _lists(value), strict=True):
        # Most lists are empty, and to begin to look at one costs more than to see that.
        if items and (len(items) > MAX_LIST_ITEMS or any(is_blank(item) or len(item) > most for item in items)):
            yield _wrong_list(name)


def _wrong_line(name: str) -> Reason:
    return _reason(f"bad_{name}", f"a {name} is one line of 1 to {MAX_SHORT_CHARS} characters")


def _wrong_list(name: str) -> Reason:
    return _reason(f"bad_{name}", f"{name} are at most {MAX_LIST_ITEMS} texts of 1 to {_LISTS[name]} characters")


def _text_too_long(length: int, limit: int) -> Reason:
    detail = f"the text is too long ({length} of {limit} characters): compress it or split it"
    return _reason("too_long", f"{detail}; an import keeps it in linked parts")


def _weak_rule(case: GateInput, policy: Policy) -> Iterator[Reason]:
    after = case.after
    if (
        after.kind is not Kind.RULE
        or not isinstance(case.change, ask.Insert | ask.Replace)
        or policy.may_self_approve(case.actor)
    ):
        return
    if not after.evidence:
        yield _reason("rule_without_evidence", "a rule needs evidence: name what it rests on, or write it as the owner")
    if after.confidence < policy.rule_floor:
        yield _reason("rule_below_floor", f"a rule needs a confidence of {policy.rule_floor:g} or more")


def _defaults_told(case: GateInput) -> Rewrite | None:
    change, after = case.change, case.after
    if not isinstance(change, ask.Insert) or change.ttl is not None or after.expires_at is None or case.before:
        return None
    hours = (after.expires_at - after.created_at) / timedelta(hours=1)
    term = f"{hours:g} hours" if hours < 72 else f"{hours / 24:g} days"
    what = f"{after.stability.value} {after.tier.value} memory"
    detail = f"it holds for {term} as a {what}: state a time to live to change that"
    return Rewrite(after=after, reasons=(_reason("default_ttl", detail),))


def _quotes_identity(after: Record, identity: str | None) -> bool:
    """Whether a text repeats a sentence of the identity document, whatever its case, marks and look-alike letters.

    A long sentence counts wherever it stands; a short one where little else is said.
    """
    if not identity:
        return False
    text = f" {_plainly(after.text)} "
    return any(
        f" {sentence} " in text
        and (len(sentence) >= MIN_QUOTE_CHARS or len(text) - len(sentence) <= MAX_REMAINDER_CHARS)
        for sentence in _sentences(identity)
    )


@functools.lru_cache(maxsize=8)
def _sentences(identity: str) -> tuple[str, ...]:
    lines = (part for line in identity.splitlines() for part in (line, *_ENDS.split(line)))
    plain = dict.fromkeys(map(_plainly, lines))
    return tuple(sentence for sentence in plain if len(sentence) >= MIN_SENTENCE_CHARS)


def _plainly(text: str) -> str:
    """Return the words of a text in one case, each after one blank."""
    return " ".join(_MARKS.sub(" ", Text(text).normal.text.casefold()).split())


def _strings(change: ask.Change) -> Iterator[tuple[str, str]]:
    made: Any = type(change)
    names, values = _fields(made)
    for name, value in zip(names, values(change), strict=True):
        # What is empty holds no character; most fields are.
        if not value:
            continue
        if type(value) is str:
            yield name, value
        elif isinstance(value, str | dict | list | tuple):
            yield from _leaves(name, value, 0)


@functools.cache
def _fields(kind: type[ask.Change]) -> tuple[tuple[str, ...], Callable[[ask.Change], tuple[Any, ...]]]:
    """Return the names of a change's fields, of which there are two at least, and how to get their values."""
    names = kind.__struct_fields__
    return names, attrgetter(*names)


def _leaves(name: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict | list | tuple) and depth <= 16:
        for item in itertools.chain.from_iterable(value.items()) if isinstance(value, dict) else value:
            yield from _leaves(name, item, depth + 1)
