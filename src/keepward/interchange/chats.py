"""Downloaded data exports of ChatGPT and Claude: ``conversations.json`` and the other files.

docs/howto/import-chats.md says how each part is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keepward.gates.validation import MAX_SHORT_CHARS
from keepward.interchange.messages import events
from keepward.interchange.parsing import ImportSource, Row, list_or_empty, permanent_item
from keepward.interchange.run import ImportRun
from keepward.services.writing.splitter import UnusableItem


def is_chatgpt(value: Any) -> bool:
    """Whether a JSON value is a conversation of ChatGPT, or the account of an export."""
    return isinstance(value, dict) and (isinstance(value.get("mapping"), dict) or _is_account(value))


def _is_account(value: dict[str, Any]) -> bool:
    return "email" in value and str(value.get("id")).startswith("user-")


def is_claude(value: Any) -> bool:
    """Whether a JSON value is a conversation, a project or the memory of Claude."""
    return isinstance(value, dict) and (
        isinstance(value.get("chat_messages"), list)
        or isinstance(value.get("conversations_memory"), str)
        or {"uuid", "prompt_template", "docs"} <= value.keys()
    )


def read_chatgpt(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read the branch of each conversation that was shown last."""
    for number, value in source.elements():
        if isinstance(value, dict) and _is_account(value):
            # A conversation does not name its account.
            run.groups.add(value["id"])
            continue
        if not isinstance(value, dict) or not isinstance(value.get("mapping"), dict):
            yield number, UnusableItem("it is no conversation")
            continue
        rows: list[dict[str, Any]] = []
        for message in _branch_shown_last(value, run):
            author, content, about = (
                part if isinstance(part := message.get(name), dict) else {}
                for name in ("author", "content", "metadata")
            )
            role, sort, parts = author.get("role"), content.get("content_type"), content.get("parts")
            row = {"id": message.get("id"), "timestamp": message.get("create_time")}
            if sort == "user_editable_context":
                texts = [
                    each for key in ("user_profile", "user_instructions") if isinstance(each := content.get(key), str)
                ]
                yield from _documents(number, None, ("\n\n".join(texts), "custom instructions"))
            elif role == "assistant" and message.get("recipient") == "bio" and isinstance(parts, list):
                text = "\n".join(each for each in parts if isinstance(each, str))
                yield number, permanent_item(text, name=row["id"], when=row["timestamp"], category="memory")
            elif about.get("is_visually_hidden_from_conversation") or role not in {"user", "assistant"}:
                run.skipped["instructions to the model, and answers of tools"] += 1
            elif message.get("recipient", "all") not in {"all", None} or sort not in {"text", "multimodal_text"}:
                run.skipped["calls of tools, thoughts and code that was run"] += 1
            else:
                rows.append({**row, "role": role, "content": parts})
        yield from _conversation(number, value, rows, run)


def _branch_shown_last(value: dict[str, Any], run: ImportRun) -> list[dict[str, Any]]:
    """Return the messages on the path to the current node, oldest first; each once in a cyclic tree."""
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
    run.skipped["messages of branches that were not shown last"] += len(messages.keys() - way.keys())
    return [messages[name] for name in reversed(way) if name in messages]


def read_claude(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read conversations, projects and memory; each is of an account."""
    for number, value in source.elements():
        if not isinstance(value, dict):
            yield number, UnusableItem("it is no conversation")
            continue
        rows: list[dict[str, Any]] = []
        for message in value.get("chat_messages") or ():
            if not isinstance(message, dict):
                rows.append({"role": None})
                continue
            parts = list_or_empty(message.get("content"))
            spoken = [each for each in parts if isinstance(each, dict) and each.get("type") in {"text", "voice_note"}]
            run.skipped["thoughts, and calls and answers of tools"] += len(parts) - len(spoken)
            run.skipped["attachments"] += sum(
                len(list_or_empty(message.get(name))) for name in ("attachments", "files")
            )
            role = {"human": "user"}.get(str(message.get("sender")), message.get("sender"))
            content, when = spoken or message.get("text"), message.get("created_at")
            rows.append({"role": role, "content": content, "id": message.get("uuid"), "timestamp": when})
        account = _account_of(value)
        yield from _conversation(number, value, rows, run, account)
        yield from _documents(number, account, (value.get("conversations_memory"), "Claude's memory"))
        projects = value.get("project_memories")
        for name, text in projects.items() if isinstance(projects, dict) else ():
            yield from _documents(number, account, (text, f"Claude's memory / project {name}"))
        if "prompt_template" in value:
            about = f"project {value.get('name') or value.get('uuid')}"
            yield from _documents(
                number, account, *((value.get(name), about) for name in ("description", "prompt_template"))
            )
            for each in value.get("docs") or ():
                if isinstance(each, dict):
                    about_file = f"{about} / {each.get('filename') or 'document'}"
                    own = {"name": each.get("uuid"), "when": each.get("created_at")}
                    yield from _documents(number, account, (each.get("content"), about_file), **own)


def _account_of(value: dict[str, Any]) -> str | None:
    """Return the id of the account that a conversation, a project or a memory belongs to."""
    owners = (value.get(name) for name in ("account", "creator"))
    named = next((each["uuid"] for each in owners if isinstance(each, dict) and "uuid" in each), None)
    found = named or value.get("account_uuid")
    return found if isinstance(found, str) else None


def _conversation(
    number: int, value: dict[str, Any], rows: list[dict[str, Any]], run: ImportRun, account: str | None = None
) -> Iterator[Row]:
    name = str(value.get("conversation_id") or value.get("id") or value.get("uuid") or number)
    title = value.get("title") or value.get("name")
    titled = {"title": title} if isinstance(title, str) and title.strip() else {}
    for index, row in enumerate(rows, 1):
        for _, item in events([(index, row | titled)], name, run.skipped):
            yield number, item if isinstance(item, UnusableItem) else {**item, "account": account}


def _documents(number: int, account: str | None, *texts: tuple[Any, str], **fields: Any) -> Iterator[Row]:
    for text, category in texts:
        if text:
            about = {"kind": "document", "category": category[:MAX_SHORT_CHARS], "account": account}
            yield number, permanent_item(text, **about, **fields)
