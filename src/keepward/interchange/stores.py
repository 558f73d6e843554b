"""Memories of other stores: exports of mem0, agent files of Letta, the SQLite file of a LangGraph store.

What becomes of what stands in docs/coming-from.md.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from keepward.core.memory import Tier
from keepward.core.value import LONGEST, parse_instant
from keepward.errors import InvalidInput
from keepward.integrations.names import below, found_by, key_of, texts_of
from keepward.interchange.messages import turns
from keepward.interchange.reading import SQLITE, Flaw, Item, Plan, Source, listed, noted, parse, records, well_formed
from keepward.services.parts import Unusable

if TYPE_CHECKING:
    from keepward.memory import Memory

_SAID_IN = re.compile(r"\s*\{")


def is_mem0(value: Any) -> bool:
    """Whether a JSON value is a memory of mem0 or OpenMemory, or an answer that lists them."""
    if not isinstance(value, dict):
        return False
    lists = next((value[name] for name in ("results", "memories") if isinstance(value.get(name), list)), None)
    if lists is not None:
        return not lists or is_mem0(lists[0])
    text = isinstance(value.get("memory"), str) and {"user_id", "agent_id", "hash", "metadata"} & value.keys()
    return "id" in value and bool(text or {"content", "state"} <= value.keys())


def plan_mem0(source: Source, mem: Memory) -> Plan:
    """Read the active memories that hold, and relations; the run of each is in its metadata."""
    total, rows = records(source, "results", "memories", "relations")
    limit, left = mem.policy.text_limit[Tier.ARCHIVAL], Counter[str]()

    def entries() -> Iterator[Item | Flaw]:
        for number, row in rows():
            if not isinstance(row, dict):
                yield Flaw(number=number, reason="a memory is an object")
            elif isinstance(row.get("relationship"), str):
                parts = (str(row.get(name) or "").replace("_", " ") for name in ("source", "relationship"))
                end = str(row.get("target") or row.get("destination") or "").replace("_", " ")
                yield from noted(number, limit, " ".join((*parts, end)), category="relation")
            elif row.get("state", "active") != "active":
                left["memories that are paused, archived or deleted"] += 1
            elif isinstance(left_of := _left_of(row.get("expiration_date"), mem.now), str):
                yield Flaw(number=number, reason=left_of)
            elif left_of is not None and left_of <= timedelta(0):
                left["memories that ran out"] += 1
            else:
                names = ("user_id", "agent_id", "run_id", "actor_id", "role", "app")
                about = {name: row[name] for name in names if isinstance(row.get(name), str)}
                more = row["metadata"] if isinstance(row.get("metadata"), dict) else {}
                yield from noted(
                    number,
                    limit,
                    row.get("memory") or row.get("content"),
                    name=row.get("id"),
                    when=row.get("updated_at") or row.get("created_at"),
                    # OpenMemory names its users by ids of rows.
                    subject=about.get("user_id") if "memory" in row else None,
                    tags=tuple(each for each in listed(row.get("categories")) if isinstance(each, str)),
                    metadata={**more, **({"mem0": about} if about else {})} or None,
                    **({} if left_of is None else {"ttl": left_of.total_seconds()}),
                )

    return Plan(total=total, entries=entries(), left=left)


def _left_of(day: Any, now: datetime) -> timedelta | str | None:
    """Return how long a memory of mem0 holds, to the end of its last day; None for good; a text says what is wrong."""
    if day is None:
        return None
    try:
        left = parse_instant(day) - now
    except (InvalidInput, TypeError):
        return "its expiration date is not a day such as 2026-03-01"
    # A day that is further away stands for never.
    return left + timedelta(days=1) if left < LONGEST - timedelta(days=1) else None


def is_letta(value: Any) -> bool:
    """Whether a JSON value is an agent file."""
    if not isinstance(value, dict):
        return False
    return (isinstance(value.get("agents"), list) and "blocks" in value) or {"core_memory", "messages"} <= value.keys()


def plan_letta(source: Source, mem: Memory) -> Plan:
    """Read the blocks and the messages of every agent in a file."""
    value, limits, left = source.document(), mem.policy.text_limit, Counter[str]()
    if not is_letta(value):
        raise InvalidInput(f"{source.name} is no agent file: it has no agents and blocks")
    # The older form is one agent with its blocks inside.
    agents = [each for each in value.get("agents") or [value] if isinstance(each, dict)]
    blocks = [each for each in value.get("blocks") or value.get("core_memory") or () if isinstance(each, dict)]
    said = [listed(each.get("messages")) for each in agents]

    def entries() -> Iterator[Item | Flaw]:
        for number, block in enumerate(blocks, 1):
            label = f"block {block.get('label') or number}"
            if str(block.get("value") or "").strip():
                yield from noted(number, limits[Tier.ARCHIVAL], block["value"], kind="document", category=label)
            else:
                left["empty blocks"] += 1
        for agent, messages in zip(agents, said, strict=True):
            name = source.session or str(agent.get("name") or agent.get("id") or source.stem)
            rows = (row for each in messages if (row := _letta_message(each, name, left)) is not None)
            yield from turns(enumerate(rows, 1), name, limits[Tier.EPISODIC], left)

    return Plan(total=len(blocks) + sum(map(len, said)), entries=entries(), left=left)


def _letta_message(row: Any, agent: str, left: Counter[str]) -> Any:
    """Return a message as chat APIs write it, None where it is none of the talk."""
    if not isinstance(row, dict):
        return row
    role, content = row.get("role"), row.get("content", row.get("text"))
    if role not in {"user", "assistant"}:
        left["instructions to the model, and answers of tools"] += 1
        return None
    sent = [
        each["function"]
        for each in listed(row.get("tool_calls"))
        if isinstance(each, dict) and isinstance(each.get("function"), dict)
    ]
    if sent:
        # What stands beside a call are thoughts; what was said is what it sent.
        content = [_within(each.get("arguments"), "message") for each in sent if each.get("name") == "send_message"]
    elif role == "user":
        texts = (
            [each.get("text") if isinstance(each, dict) else each for each in content]
            if isinstance(content, list)
            else [content]
        )
        content = [_within(each, "message") if _SAID_IN.match(str(each)) else each for each in texts]
    own = f"{agent}/{row['id']}" if isinstance(row.get("id"), str) else None
    return {"role": role, "content": content, "id": own, "timestamp": row.get("created_at")}


def _within(text: Any, name: str) -> str:
    """Return a text inside of a JSON text, such as a message in its envelope; the text itself where it is none."""
    with suppress(ValueError):
        value = json.loads(text) if isinstance(text, str) else text
        if isinstance(value, dict):
            # A heartbeat or a login is of the system, whoever's role it has.
            plain = value.get("type", "user_message") == "user_message"
            return value[name] if plain and isinstance(value.get(name), str) else ""
    return text if isinstance(text, str) else ""


def plan_langgraph(source: Source, mem: Memory) -> Plan:
    """Read the items of a store that hold, each below the handle's scope."""
    total, limit, left = sum(1 for _ in _rows(source)), mem.policy.text_limit[Tier.ARCHIVAL], Counter[str]()

    def entries() -> Iterator[Item | Flaw]:
        for number, (prefix, key, value, expires) in enumerate(_rows(source), 1):
            try:
                ends = None if expires is None else parse_instant(str(expires).replace(" ", "T", 1))
                if ends is not None and ends <= mem.now:
                    left["items that ran out"] += 1
                    continue
                yield Item(
                    number=number,
                    fields=_stored(mem, prefix, key, value, ends, limit),
                    named=True,
                    review="unless_owner",
                )
            except (Unusable, ValueError, InvalidInput) as fault:
                yield Flaw(
                    number=number, reason=str(fault) if isinstance(fault, Unusable) else "its time or name is damaged"
                )

    return Plan(total=total, entries=entries(), left=left)


def _stored(
    mem: Memory, prefix: object, key: object, value: object, ends: datetime | None, limit: int
) -> dict[str, Any]:
    value = value.decode() if isinstance(value, bytes) else value
    if not (isinstance(prefix, str) and isinstance(key, str) and isinstance(value, str)):
        raise Unusable("an item has a namespace, a key and a value")
    held = parse(value)
    if not isinstance(held, dict):
        raise Unusable("the value of an item is an object")
    well_formed([prefix, key])
    text = found_by(texts_of(held), limit)
    return {
        # What has no text is found by its key.
        "text": text if text.strip() else key,
        "key": key_of(key),
        "scope": below(mem.scope, prefix.split(".") if prefix else ()),
        "metadata": held,
        "content_type": "structured",
        "tier": "archival",
        "kind": "fact",
        "ttl": None if ends is None else ends - mem.now,
        "aliases": (f"langgraph:{prefix}:{key}",),
    }


def _rows(source: Source) -> Iterator[tuple[Any, ...]]:
    from keepward.interchange.foreign import rows_in, tables_in

    if not source.begins(SQLITE):
        raise InvalidInput(f"{source.name} is no SQLite file")
    tables = tables_in(source.stream, source.path, ("store", "checkpoints"))
    if "store" not in tables:
        kind = "holds checkpoints of a LangGraph graph and no store" if tables else "holds no store"
        raise InvalidInput(f"{source.name} {kind}: there is no table of that name in it")
    return rows_in(source.stream, source.path, "store", ("prefix", "key", "value", "expires_at"))
