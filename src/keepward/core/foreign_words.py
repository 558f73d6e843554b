"""Words of other memory systems, each with the word or the call here; errors name them.

A word is never a second name: it always raises an error that shows the right one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn


def _each(words: str, call: str) -> Iterator[tuple[str, str]]:
    return ((word, call) for word in words.split())


#: Methods of a handle.
METHODS: Mapping[str, str] = dict(
    (
        *_each(
            "search query retrieve ask find similarity_search get_relevant_documents as_retriever search_memory"
            " search_memories archival_memory_search conversation_search search_nodes search_sessions graph asearch"
            " searchSimilar search_similar read",
            'recall("Where does Ana live?", limit=5)',
        ),
        *_each(
            "get_all get_memories get_memory get_messages read_graph open_nodes list all items messages getNotes"
            " get_notes list_blocks",
            "list_memories(limit=None)",
        ),
        *_each(
            "add_memory add_memories add_text add_texts add_documents add_observations add_fact save save_memory store"
            " insert create create_memory create_entities put archival_memory_insert memory_insert memorize writeNote"
            " write_note write",
            'remember("Ana prefers tabs")',
        ),
        *_each(
            "add_messages add_message add_user_message add_ai_message add_episode save_context append_messages",
            'add([{"role": "user", "content": "..."}], session="s1")',
        ),
        *_each(
            "load_memory_variables get_context get_user_context build_context inject compile prompt chat_memory buffer"
            " buildContextPack build_context_pack buildAgentContext build_agent_context buildSystemPrompt"
            " build_system_prompt",
            'context("Which indentation?").text',
        ),
        *_each("update update_memory edit memory_replace memory_rethink set", 'revise(memory_id, "the new text")'),
        *_each("build_snapshot build_snapshot_block", "snapshot().text"),
        *_each("build_memory_block", 'memory_block("Which indentation?").text'),
        *_each("update_by_topic", 'remember("the new text", key="status", kind="state")'),
        *_each("promote_to_canon", 'promote(memory_id, "the text that lasts")'),
        *_each("find_consolidation_candidates", "merge_candidates()"),
        *_each("propose_deletions", "merge_candidates() for texts alike; jobs archive what has expired or is unused"),
        *_each("mergeNotes merge_notes", "merge(memory_ids)"),
        *_each("update_soul soul", 'update_identity("I answer in one sentence")'),
        *_each("vault_stats stats get_stats", "status()"),
        *_each("list_mutations get_pending_mutations list_pending quarantine", "pending()"),
        *_each("approve_mutation", "approve(proposal_id)"),
        *_each("reject_mutation deny", 'reject(proposal_id, reason="wrong")'),
        *_each("memory_begin_edits begin_edits memory_finish_edits finish_edits", 'draft(reason="tidy up")'),
        *_each("memory_rollback rollback_edits", "rollback(commit_id)"),
        *_each("getEmbedding get_embedding storeEmbedding store_embedding", "remember(text, vector=[...])"),
        *_each("pruneExpired prune_expired", 'run_job("expire")'),
        *_each("prune", 'run_job("prune")'),
        *_each("decay_importance", "run_jobs(); importance decays by itself"),
        *_each("core_memory_append", 'append(memory_id, "what is added")'),
        *_each(
            "core_memory_replace", 'revise(memory_id, "the new text"); an agent\'s change of core memory is reviewed'
        ),
        *_each("blocks core_memory", 'list_memories(tiers=["core"])'),
        *_each("delete delete_memory remove memory_delete", 'forget(memory_id, reason="asked to")'),
        *_each("batch_update", "propose(changes)"),
        *_each("batch_delete bulk_delete", "forget_many(memory_ids)"),
        *_each("batch_add bulk_add", 'remember_many(["Ana prefers tabs", "Ana lives in Ghent"])'),
        *_each(
            "delete_all delete_users reset clear wipe",
            'user("ana").erase(), which plans it, and erase(plan.digest)',
        ),
        *_each(
            "delete_session delete_thread", 'erase(ids), where list_memories(session="s1", limit=None) lists the ids'
        ),
        *_each("get_history memory_history versions", "history(memory_id)"),
        *_each("add_session add_thread create_session create_thread thread get_session conversation", 'session("s1")'),
        *_each("add_user create_user", 'user("ana"); its first memory makes the user'),
        *_each("agents create_agent", 'agent("planner"); its first memory makes the agent'),
        *_each("namespace collection", 'at(scope="/agents/planner")'),
        *_each("get_users list_users list_namespaces", "users(), projects()"),
        *_each("add_blob add_file", "put_blob(data)"),
        *_each("compact consolidate cognify summarize", "run_jobs()"),
        *_each("export get_memory_export create_memory_export", "the command `keepward export`"),
        *_each("from_config connect", 'Memory.open("memory.db")'),
    )
)

#: Arguments and fields: the names here, of which an operation has at most one.
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("query", "objective", "question", "q", "prompt", "input", "task", "search_query", "message", "user_message"),
        ("objective", "query", "text", "messages"),
    ),
    **dict.fromkeys(
        ("content", "contents", "memory", "data", "value", "fact", "note", "new_text", "body"), ("text", "messages")
    ),
    **dict.fromkeys(
        ("top_k", "k", "n", "n_results", "num_results", "max_results", "max_items", "top_n", "page_size", "count"),
        ("limit", "budget_tokens"),
    ),
    **dict.fromkeys(("limit", "budget", "max_tokens", "token_limit", "token_budget"), ("limit", "budget_tokens")),
    **dict.fromkeys(("run_id", "session_id", "thread_id", "conversation_id", "thread", "conversation"), ("session",)),
    **dict.fromkeys(("id", "item_id"), ("memory_id",)),
    **dict.fromkeys(("ids", "memory_ids"), ("memory_ids", "ids")),
    **dict.fromkeys(("threshold", "score_threshold", "min_score", "similarity_threshold"), ("floor",)),
    **dict.fromkeys(("expires_at", "expiration_date", "expires", "expires_in", "ttl_days", "ttl_hours"), ("ttl",)),
    **dict.fromkeys(("timestamp", "reference_time", "created_at", "date"), ("occurred_at", "occurred_since")),
    **dict.fromkeys(("valid_at", "valid_time", "effective_at"), ("valid_from", "valid_at")),
    **dict.fromkeys(("invalid_at", "invalidated_at", "valid_to", "ends_at"), ("valid_until", "valid_at")),
    **dict.fromkeys(("infer", "inference"), ("extract",)),
    **dict.fromkeys(("type", "memory_type"), ("kind", "kinds")),
    **dict.fromkeys(("labels", "tag"), ("tags",)),
    **dict.fromkeys(("category", "categories", "topic"), ("category",)),
    **dict.fromkeys(("name", "label", "memory_key", "topic_id", "block", "block_name"), ("key", "tags")),
    **dict.fromkeys(("permission", "permissions"), ("access",)),
    **dict.fromkeys(("provenance",), ("source", "evidence", "sources")),
    **dict.fromkeys(("parent_id", "parent", "parents"), ("derived_from",)),
    **dict.fromkeys(("content_ref",), ("blob",)),
    **dict.fromkeys(("embedding", "query_embedding"), ("vector",)),
    **dict.fromkeys(("min_importance",), ("where",)),
    **dict.fromkeys(("content_types",), ("content_type", "content_types", "where")),
    **dict.fromkeys(("superseded_by",), ("by",)),
    **dict.fromkeys(("job_id",), ("job",)),
    **dict.fromkeys(("filter", "filters", "metadata"), ("where",)),
    **dict.fromkeys(("offset", "skip", "page"), ("offset",)),
}

#: Arguments of other systems that no call here takes, and the call that does the same.
ELSEWHERE: Mapping[str, str] = {
    "superseded_by": "supersede(old_id, by=new_id)",
    "deleted_at": "forget(memory_id)",
    "active": "archive(memory_id), restore(memory_id)",
    "pinned": 'remember(text, tier="core", key="mission"), or stability="permanent"',
    "owner": 'agent("planner").remember(text)',
    "quest_id": 'at(scope="/agents/planner/tasks/quest-7").remember(text)',
    "task_id": 'at(scope="/agents/planner/tasks/quest-7").remember(text)',
    "target": 'remember(text, tier="core", key="mission")',
    "version": "revise(memory_id, text, if_version=2)",
    "access_count": "feedback(receipt_id, used=[memory_id])",
}

#: Values of arguments: what they are here.
VALUES: Mapping[str, Mapping[str, str]] = {
    "tier": {
        "canon": "stability permanent; for a core block tier core and a key",
        "register": "kind state and a key",
        "log": "kind event",
        "summary": "kind summary",
        "rule": "kind rule",
        "soul": "the identity: update_identity",
        "core_memory": "tier core",
        "long_term": "tier archival",
        "short_term": "tier working",
    },
    "kind": {
        "soul": "the identity: update_identity",
        "log": "kind event",
        "canon": "stability permanent",
        "register": "kind state and a key",
        "note": "kind fact",
        "message": "kind event",
        "preference": "kind fact",
        "block": "tier core and a key",
    },
    "access": {
        "readonly": "access read_only",
        "familiar": "access approval",
        "readwrite": "access read_write",
        "write": "access read_write",
        "read": "access read_only",
    },
    "stability": {"canon": "stability permanent", "ephemeral": "stability volatile", "temporary": "stability volatile"},
    "source": {"llm": "source assistant", "agent": "source inference", "auto": "source extracted"},
}

#: Arguments that name whose memory is meant: what a handle, or a header, names here.
HANDLES: Mapping[str, str] = {
    **dict.fromkeys(("user", "user_id", "user_name"), "user"),
    **dict.fromkeys(("agent", "agent_id", "assistant_id"), "agent"),
    **dict.fromkeys(("project", "project_id", "app", "app_id"), "project"),
    **dict.fromkeys(("namespace", "group_id", "collection", "scope"), "scope"),
    "tenant": "tenant",
    **dict.fromkeys(("session", "session_id", "run_id", "thread_id", "conversation_id"), "session"),
}

_OF_A_MEMORY = (
    *("id", "key", "kind", "tier", "tags", "metadata", "category", "subject", "scope", "session", "source"),
    *("created_at", "updated_at", "occurred_at", "confidence", "importance"),
)
_TEXT = "text content page_content memory value data fact body"
_LIST = "results memories items hits documents relations get"
#: Fields and keys of results, by the class of the result.
RESULTS: Mapping[str, Mapping[str, str]] = {
    "Hit": {
        **{name: f"hit.memory.{name}" for name in _OF_A_MEMORY},
        **dict(_each(_TEXT, "hit.memory.text")),
    },
    "Recall": dict(_each(f"{_LIST} {_TEXT}", "for hit in recall: hit.memory.text")),
    "Memories": dict(_each(f"{_LIST} {_TEXT}", "for memory in memories: memory.text")),
    "Record": dict(_each(_TEXT, "memory.text")),
    "Added": dict(_each(f"{_LIST} id memory_id", "for fact in added.facts: fact.record.text")),
    "CompiledContext": dict(_each(f"{_TEXT} context prompt history messages memories get", "context.text")),
    **{
        name: dict((*_each("memory_id", "outcome.id"), *_each(f"{_LIST} {_TEXT}", "outcome.record.text")))
        for name in ("Committed", "Quarantined", "Refused", "Duplicate")
    },
}


def _plain(word: str) -> str:
    """Return a word in small letters, without underscores and dashes."""
    return word.casefold().replace("_", "").replace("-", "")


_ARGUMENTS = {_plain(word): names for word, names in ARGUMENTS.items()}
_HANDLES = {_plain(word): handle for word, handle in HANDLES.items()}
_ELSEWHERE = {_plain(word): call for word, call in ELSEWHERE.items()}
_VALUES = {(what, _plain(word)): here for what, words in VALUES.items() for word, here in words.items()}


def known_argument(given: str, known: Collection[str]) -> str | None:
    """Return which of the known arguments a word of another system means; None if it means none of them."""
    return next((name for name in _ARGUMENTS.get(_plain(given), ()) if name in known), None)


def handle_of(given: str) -> str | None:
    """Return which handle a word of another system means: user, agent, project, scope, tenant or session."""
    return _HANDLES.get(_plain(given))


def call_instead(given: str) -> str | None:
    """Return the call here for a word of another system that is no argument."""
    return _ELSEWHERE.get(_plain(given))


def value_here(what: str, given: object) -> str | None:
    """Return what a value of another system is here, such as ``kind event`` for the tier ``log``."""
    return _VALUES.get((what, _plain(given))) if isinstance(given, str) else None


def _here(names: Mapping[str, str], word: object) -> str:
    return f"; here it is {names[word]}" if isinstance(word, str) and word in names else ""


def missing_method(kind: str, name: str) -> str:
    """Return the message about a method that a handle does not have."""
    return f"{kind} has no {name}{_here(METHODS, name)}"


def refuse_key(result: object, key: object) -> NoReturn:
    """Raise the TypeError about a key of a result that has attributes."""
    kind = type(result).__name__
    # A key of a dictionary is often the name of an attribute.
    is_own = isinstance(key, str) and key[:1] != "_" and hasattr(type(result), key)
    own = f"; here it is .{key}" if is_own else ""
    raise TypeError(f"{kind} has attributes, not keys{_here(RESULTS.get(kind, {}), key) or own}")


class ForeignKeys:
    """A result with attributes, whose TypeError about a key names the attribute here."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getitem__(self, key: object) -> Any:
            if not isinstance(key, str) and hasattr(super(), "__getitem__"):
                return super().__getitem__(key)
            refuse_key(self, key)


class ForeignFields(ForeignKeys):
    """The same, and an AttributeError about a field names the one here.

    Attributes of such a class take longer to read, so a memory itself is none.
    """

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            raise AttributeError(f"{kind} has no {name}{_here(RESULTS.get(kind, {}), name)}", name=name, obj=self)
