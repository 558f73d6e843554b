"""Data exports of ChatGPT and Claude: ``conversations.json`` and its neighbours, as they are downloaded.

What becomes of what stands in docs/coming-from.md. A conversation is read a second time for its messages, so that a cut
file is noticed before anything is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from keepward.core.memory import Tier
from keepward.interchange.messages import turns
from keepward.interchange.reading import Flaw, Item, Plan, Source, listed, noted
from keepward.services.parts import Unusable

if TYPE_CHECKING:
    from keepward.memory import Memory

_Row = dict[str, Any]
_LONGEST = 256
#: What a conversation gives: its messages in order, and memories of other kinds.
_Read = Callable[[dict[str, Any], "Counter[str]"], tuple[list[_Row], list[_Row]]]


def is_chatgpt(value: Any) -> bool:
    """Whether a JSON value is a conversation of ChatGPT."""
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def is_claude(value: Any) -> bool:
    """Whether a JSON value is a conversation, a project or the memory of Claude."""
    return isinstance(value, dict) and (
        isinstance(value.get("chat_messages"), list)
        or isinstance(value.get("conversations_memory"), str)
        or {"uuid", "prompt_template", "docs"} <= value.keys()
    )


def plan_chatgpt(source: Source, mem: Memory) -> Plan:
    """Read the branch of each conversation that was shown last."""
    return _plan(source, mem, _chatgpt, is_chatgpt)


def plan_claude(source: Source, mem: Memory) -> Plan:
    """Read conversations, projects and memory."""
    return _plan(source, mem, _claude, lambda value: isinstance(value, dict))


def _plan(source: Source, mem: Memory, read: _Read, fits: Callable[[Any], bool]) -> Plan:
    limits, left = mem.policy.text_limit, Counter[str]()
    total = 0
    try:
        for _, value in source.elements():
            if fits(value):
                rows, items = read(value, Counter())
                total += len(rows) + len(items)
    except Unusable as fault:
        raise source.unreadable(fault) from fault

    def entries() -> Iterator[Item | Flaw]:
        for number, value in source.elements():
            if not fits(value):
                yield Flaw(number=number, reason="it is no conversation")
                continue
            rows, items = read(value, left)
            name = str(value.get("conversation_id") or value.get("id") or value.get("uuid") or number)
            title = value.get("title") or value.get("name")
            titled = ({**row, "title": title} if isinstance(title, str) and title.strip() else row for row in rows)
            yield from turns(enumerate(titled, 1), name, limits[Tier.EPISODIC], left, number)
            for item in items:
                yield from noted(number, limits[Tier.ARCHIVAL], **item)

    return Plan(total=total, entries=entries(), left=left)


def _chatgpt(value: dict[str, Any], left: Counter[str]) -> tuple[list[_Row], list[_Row]]:
    rows: list[_Row] = []
    items: list[_Row] = []
    for message in _branch_shown_last(value, left):
        author, content, about = (
            part if isinstance(part := message.get(name), dict) else {} for name in ("author", "content", "metadata")
        )
        role, sort, parts = author.get("role"), content.get("content_type"), content.get("parts")
        row = {"id": message.get("id"), "timestamp": message.get("create_time")}
        if sort == "user_editable_context":
            texts = [each for key in ("user_profile", "user_instructions") if isinstance(each := content.get(key), str)]
            items.append(_document("\n\n".join(texts), "custom instructions"))
        elif role == "assistant" and message.get("recipient") == "bio" and isinstance(parts, list):
            texts = [each for each in parts if isinstance(each, str)]
            items.append({"text": "\n".join(texts), "name": row["id"], "when": row["timestamp"], "category": "memory"})
        elif about.get("is_visually_hidden_from_conversation") or role not in {"user", "assistant"}:
            left["instructions to the model, and answers of tools"] += 1
        elif message.get("recipient", "all") not in {"all", None} or sort not in {"text", "multimodal_text"}:
            left["calls of tools, thoughts and code that was run"] += 1
        else:
            rows.append({**row, "role": role, "content": parts})
    return rows, items


def _branch_shown_last(value: dict[str, Any], left: Counter[str]) -> list[dict[str, Any]]:
    """Return the messages on the way to the current node, oldest first; of a cyclic tree each once."""
    nodes = {name: node for name, node in value["mapping"].items() if isinstance(node, dict)}
    messages = {name: said for name, node in nodes.items() if isinstance(said := node.get("message"), dict)}
    at = value.get("current_node")
    if at not in nodes:
        dated = ((said.get("create_time"), name) for name, said in messages.items())
        at = max(((when, name) for when, name in dated if isinstance(when, int | float)), default=(0, None))[1]
    way: dict[str, None] = {}
    while isinstance(at, str) and at in nodes and at not in way:
        way[at] = None
        at = nodes[at].get("parent")
    left["messages of branches that were not shown last"] += len(messages.keys() - way.keys())
    return [messages[name] for name in reversed(way) if name in messages]


def _claude(value: dict[str, Any], left: Counter[str]) -> tuple[list[_Row], list[_Row]]:
    rows: list[_Row] = []
    for message in value.get("chat_messages") or ():
        if not isinstance(message, dict):
            rows.append({"role": None})
            continue
        parts = listed(message.get("content"))
        spoken = [each for each in parts if isinstance(each, dict) and each.get("type") in {"text", "voice_note"}]
        left["thoughts, and calls and answers of tools"] += len(parts) - len(spoken)
        for name in ("attachments", "files"):
            left["attachments"] += len(listed(message.get(name)))
        role = {"human": "user"}.get(str(message.get("sender")), message.get("sender"))
        when = message.get("created_at")
        rows.append(
            {"role": role, "content": spoken or message.get("text"), "id": message.get("uuid"), "timestamp": when}
        )
    items = [_document(value.get("conversations_memory"), "Claude's memory")]
    projects = value.get("project_memories")
    for name, text in projects.items() if isinstance(projects, dict) else ():
        items.append(_document(text, f"Claude's memory / project {name}"))
    if "prompt_template" in value:
        about = f"project {value.get('name') or value.get('uuid')}"
        items += [_document(value.get(name), about) for name in ("description", "prompt_template")]
        for each in value.get("docs") or ():
            if isinstance(each, dict):
                named = {"name": each.get("uuid"), "when": each.get("created_at")}
                items.append(_document(each.get("content"), f"{about} / {each.get('filename') or 'document'}") | named)
    return rows, [each for each in items if each["text"]]


def _document(text: Any, category: str) -> _Row:
    return {"text": text, "kind": "document", "category": category[:_LONGEST]}
