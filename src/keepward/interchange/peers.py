"""Files of other memories: mem0 and OpenMemory, Letta, Zep and Graphiti, and the reference memory server of MCP.

docs/howto/import-agents.md says how each part is imported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from keepward.core.value import MAX_DURATION, load_json, parse_instant
from keepward.errors import InvalidInput
from keepward.gates.validation import MAX_SHORT_CHARS
from keepward.interchange.messages import events, user_of
from keepward.interchange.parsing import ImportSource, Row, list_or_empty, permanent_item, rows
from keepward.interchange.run import ImportRun
from keepward.services.writing.splitter import UnusableItem

# --- mem0 and OpenMemory


def is_mem0(value: Any) -> bool:
    """Whether a JSON value is a memory of mem0 or OpenMemory, or a response that lists some."""
    if not isinstance(value, dict):
        return False
    lists = next((value[name] for name in ("results", "memories") if isinstance(value.get(name), list)), None)
    if lists is not None:
        return not lists or is_mem0(lists[0])
    text = isinstance(value.get("memory"), str) and {"user_id", "agent_id", "hash", "metadata"} & value.keys()
    return "id" in value and bool(text or {"content", "state"} <= value.keys())


def read_mem0(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read the active memories that have not expired, and relations; their ids of mem0 are in the metadata."""
    for number, row, around in rows(source, "results", "memories", "relations"):
        if not isinstance(row, dict):
            yield number, row if isinstance(row, UnusableItem) else UnusableItem("a memory is an object")
            continue
        user = user_of(row, around)
        whose = around.get("user")
        if isinstance(whose, dict) and whose.get("id") == row.get("user_id"):
            # OpenMemory refers to its users by row id.
            user = user_of(whose)
        if isinstance(row.get("relationship"), str):
            parts = (str(row.get(name) or "").replace("_", " ") for name in ("source", "relationship"))
            end = str(row.get("target") or row.get("destination") or "").replace("_", " ")
            yield number, permanent_item(" ".join((*parts, end)), category="relation", user=user)
            continue
        time_left = _time_left(row.get("expiration_date"), run.mem.now)
        if row.get("state", "active") != "active":
            run.skipped["memories that are paused, archived or deleted"] += 1
        elif isinstance(time_left, UnusableItem):
            yield number, time_left
        elif time_left is not None and time_left <= timedelta(0):
            run.skipped["memories that expired"] += 1
        else:
            names = ("user_id", "agent_id", "run_id", "actor_id", "role", "app")
            about = {name: row[name] for name in names if isinstance(row.get(name), str)}
            metadata = row["metadata"] if isinstance(row.get("metadata"), dict) else {}
            yield (
                number,
                permanent_item(
                    row.get("memory") or row.get("content"),
                    name=row.get("id"),
                    when=row.get("updated_at") or row.get("created_at"),
                    user=user,
                    tags=tuple(each for each in list_or_empty(row.get("categories")) if isinstance(each, str)),
                    metadata={**metadata, **({"mem0": about} if about else {})} or None,
                    **({} if time_left is None else {"ttl": time_left.total_seconds()}),
                ),
            )


def _time_left(day: Any, now: datetime) -> timedelta | UnusableItem | None:
    """Return the time to the end of the last day of a memory of mem0; None if it does not expire."""
    if day is None:
        return None
    try:
        left = parse_instant(day) - now
    except (InvalidInput, TypeError):
        return UnusableItem("its expiration date is not a day such as 2026-03-01")
    # A date further in the future means never.
    return left + timedelta(days=1) if left < MAX_DURATION - timedelta(days=1) else None


# --- Letta

_ENVELOPE = re.compile(r"\s*\{")


def is_letta(value: Any) -> bool:
    """Whether a JSON value is an agent file."""
    if not isinstance(value, dict):
        return False
    return (isinstance(value.get("agents"), list) and "blocks" in value) or {"core_memory", "messages"} <= value.keys()


def read_letta(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read the blocks and the messages of every agent in a file."""
    value = source.document()
    if not is_letta(value):
        raise InvalidInput(f"{source.name} is no agent file: it has no agents and blocks")
    # The older form is one agent with its blocks inside.
    blocks = [each for each in value.get("blocks") or value.get("core_memory") or () if isinstance(each, dict)]
    for number, block in enumerate(blocks, 1):
        if str(block.get("value") or "").strip():
            yield (
                number,
                permanent_item(block["value"], kind="document", category=f"block {block.get('label') or number}"),
            )
        else:
            run.skipped["empty blocks"] += 1
    for agent in (each for each in value.get("agents") or [value] if isinstance(each, dict)):
        name = run.session or str(agent.get("name") or agent.get("id") or source.stem)
        said = (_letta_message(each, name, run.skipped) for each in list_or_empty(agent.get("messages")))
        yield from events(enumerate((each for each in said if each is not None), 1), name, run.skipped)


def _letta_message(row: Any, agent: str, skipped: Counter[str]) -> Any:
    """Return a message as chat APIs write it; None if it is not part of the conversation."""
    if not isinstance(row, dict):
        return row
    role, content = row.get("role"), row.get("content", row.get("text"))
    if role not in {"user", "assistant"}:
        skipped["instructions to the model, and answers of tools"] += 1
        return None
    calls = (each.get("function") for each in list_or_empty(row.get("tool_calls")) if isinstance(each, dict))
    sent = [each for each in calls if isinstance(each, dict)]
    if sent:
        # The text next to a call is a thought; the argument of the call is the message.
        content = [_message_in(each.get("arguments")) for each in sent if each.get("name") == "send_message"]
    elif role == "user":
        parts = content if isinstance(content, list) else [content]
        texts = [each.get("text") if isinstance(each, dict) else each for each in parts]
        content = [_message_in(each) if _ENVELOPE.match(str(each)) else each for each in texts]
    own = f"{agent}/{row['id']}" if isinstance(row.get("id"), str) else None
    return {"role": role, "content": content, "id": own, "timestamp": row.get("created_at")}


def _message_in(text: Any) -> str:
    """Return the message in its JSON envelope; the text itself if there is no envelope."""
    with suppress(ValueError):
        value = load_json(text) if isinstance(text, str) else text
        if isinstance(value, dict):
            # Heartbeats and logins come from the system, with any role.
            plain = value.get("type", "user_message") == "user_message"
            return value["message"] if plain and isinstance(value.get("message"), str) else ""
    return text if isinstance(text, str) else ""


# --- Zep and Graphiti

_SPEAKER = re.compile(r"([^\n:]{1,64}):\s")
_ROLES = {"user", "assistant", "system", "tool", "function"}


def is_zep(value: Any) -> bool:
    """Whether a JSON value is an episode or a fact of Zep or Graphiti, or a list of either."""
    if not isinstance(value, dict):
        return False
    lists = any(isinstance(value.get(name), list) for name in ("episodes", "edges", "facts"))
    episode = {"uuid", "content"} <= value.keys() and bool({"source", "source_description", "role_type"} & value.keys())
    return lists or episode or {"uuid", "fact", "name"} <= value.keys()


def read_zep(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read episodes and valid facts. A row that names no user belongs to its group, which may be a user."""
    positions = Counter[str]()
    for number, row, around in rows(source, "episodes", "edges", "facts"):
        if not isinstance(row, dict):
            yield number, row if isinstance(row, UnusableItem) else UnusableItem("an episode is an object")
            continue
        user = user_of(row, around)
        whose = {"user": user, "group": None if user else row.get("group_id") or around.get("group_id")}
        own = {"name": row.get("uuid"), **whose}
        if "fact" in row:
            if row.get("invalid_at") or row.get("expired_at"):
                run.skipped["facts that are no longer valid"] += 1
                continue
            refs = tuple(each for each in list_or_empty(row.get("episodes")) if isinstance(each, str))
            about = {"when": row.get("valid_at"), "category": row.get("name"), "evidence": refs}
            yield number, permanent_item(row["fact"], **about, **own)
        elif row.get("source") == "message" or row.get("role_type"):
            named = next((row[key] for key in ("session_id", "thread_id", "group_id") if row.get(key)), None)
            session = str(named or run.session or source.stem)
            positions[session] += 1
            for _, item in events([(positions[session], _episode(row))], session, run.skipped):
                yield number, item if isinstance(item, UnusableItem) else item | whose
        else:
            when = row.get("valid_at") or row.get("created_at")
            about = {"when": when, "category": row.get("source_description") or None}
            yield number, permanent_item(row.get("content"), kind="document", **about, **own)


def _episode(row: dict[str, Any]) -> dict[str, Any]:
    """Return an episode as a message; the speaker is its role, or the name before a colon at its beginning."""
    content, when = str(row.get("content") or ""), row.get("valid_at") or row.get("created_at")
    if row.get("role_type"):
        role = row["role_type"] if row["role_type"] in _ROLES else "user"
        return {"role": role, "name": row.get("role"), "content": content, "id": row.get("uuid"), "timestamp": when}
    speaker = _SPEAKER.match(content)
    name = speaker[1].strip() if speaker else ""
    role = {"ai": "assistant", "human": "user"}.get(name.lower(), name.lower())
    who = {"role": role} if role in _ROLES else {"role": "user", "name": name or None}
    said = content[speaker.end() :] if speaker else content
    return who | {"content": said, "id": row.get("uuid"), "timestamp": when}


# --- the reference memory server of MCP: a graph of entities, observations and relations


def is_server_memory(value: Any) -> bool:
    """Whether a JSON value is a line of the memory server's file, or a result of ``read_graph``."""
    if not isinstance(value, dict):
        return False
    graph = {"entities", "relations"} <= value.keys()
    entity, relation = {"name", "entityType", "observations"}, {"from", "to", "relationType"}
    return graph or entity <= value.keys() or relation <= value.keys()


def read_server_memory(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read entities, observations and relations as a fact each; repeated facts count once."""
    for number, row, _ in rows(source, "entities", "relations"):
        record = row if isinstance(row, dict) else {}
        names = ("from", "relationType", "to") if "relationType" in record else ("name", "entityType")
        values = [*(record.get(name) for name in names), *list_or_empty(record.get("observations"))]
        texts = [each for each in values if isinstance(each, str) and each.strip()]
        if len(texts) < len(values):
            missing = UnusableItem("it is no entity and no relation: a name or a type is missing")
            yield number, row if isinstance(row, UnusableItem) else missing
            continue
        subject = " ".join(texts[0].split())[:MAX_SHORT_CHARS]
        if "relationType" in record:
            yield number, permanent_item(" ".join(texts[:3]), category="relation", subject=subject)
            continue
        yield number, permanent_item(f"{subject} ({texts[1]})", category="entity", subject=subject)
        for content in texts[2:]:
            # The name of the entity is added, so that a search for it finds the observation.
            named = re.search(rf"(?<!\w){re.escape(subject)}(?!\w)", content, re.IGNORECASE)
            yield (
                number,
                permanent_item(content if named else f"{subject}: {content}", category="observation", subject=subject),
            )
