"""Records and inputs for the tests of the compiler."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from keepward.context import CompileInput, CompileResult, Entry, replay
from keepward.core.memory import Kind, Record, Stability, Tier
from keepward.core.policy import Policy
from keepward.core.principals import Trust

NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
POLICY = Policy()


def words(text: str) -> int:
    """One token a word: a counter whose sums are exact."""
    return len(text.split())


def record(name: str, text: str, tier: str = "archival", kind: str = "fact", **fields: Any) -> Record:
    given: dict[str, Any] = {
        "id": name,
        "version": 1,
        "tier": Tier(tier),
        "kind": Kind(kind),
        "text": text,
        "scope": "/",
        "source": "user",
        "trust": Trust.USER,
        "confidence": 0.9,
        "importance": 0.5,
        "author": "user:ana",
        "created_at": NOW - timedelta(days=1),
        "reinforced_at": NOW - timedelta(days=1),
    }
    return Record(**{**given, **fields})


def block(key: str, text: str, **fields: Any) -> Record:
    return record(f"block-{key}", text, tier="core", key=key, **fields)


def rule(name: str, text: str, **fields: Any) -> Record:
    return record(name, text, kind="rule", stability=Stability.PERMANENT, **fields)


def working(name: str, text: str, **fields: Any) -> Record:
    return record(name, text, tier="working", kind="state", **fields)


def event(name: str, text: str, **fields: Any) -> Record:
    return record(name, text, tier="episodic", kind="event", **fields)


def scored(each: Record, score: float) -> Entry:
    return Entry(record=each, score=score, strength=score, parts={"text": 0.5})


def alike(*records: Record) -> list[Entry]:
    """Candidates that are about equally relevant."""
    return [scored(each, 1 - at / 100) for at, each in enumerate(records)]


def found(*records: Record) -> list[Entry]:
    """Candidates in the given rank, with falling scores."""
    return [scored(each, 1 / (at + 1)) for at, each in enumerate(records)]


def inputs(**fields: Any) -> CompileInput:
    given: dict[str, Any] = {
        "objective": "format this file",
        "now": NOW,
        "head": "7:0123456789abcdef",
        "policy": POLICY,
        "budget_tokens": 1_000,
        "counter_name": "words",
        "count": words,
    }
    return CompileInput(**{**given, **fields})


def given_records(made: CompileInput) -> list[Record]:
    plain = [*made.core, *made.pinned, *made.state, *made.working]
    return [*plain, *(candidate.record for candidate in made.recalled)]


def again(compiled: CompileResult, made: CompileInput, *, without: tuple[str, ...] = ()) -> Any:
    """Replay from the facts, with some records erased."""
    kept = {(each.id, each.version): each for each in given_records(made) if each.id not in without}
    documents = {"identity": made.identity, "user_file": made.user_file}
    return replay(
        compiled.facts,
        lambda name, version: kept.get((name, version)),
        lambda kind, version: document[1] if (document := documents[kind]) and document[0] == version else None,
    )


def ids(compiled: CompileResult, section: str) -> list[str]:
    return [item.id for each in compiled.sections if each.name == section for item in each.items]


def why(compiled: CompileResult) -> dict[str, str]:
    return {out.id: out.reason.code for out in compiled.excluded}
