"""Sessions of Google's Agent Development Kit as memories: an event is a message, a state is structured with a key.

Invariants
(1) An event and what it changes in states are one commit, based on the versions that were read.
(2) An event is one message of its session, identified by its id, even if it is appended again.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Any

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.sessions import Session, State
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai.types import Content
from pydantic_core import to_jsonable_python

from keepward.core.memory import Record, Tier
from keepward.core.value import from_micros
from keepward.draft import Draft
from keepward.errors import StaleVersion
from keepward.integrations import require_stored
from keepward.integrations.messages import message_fields, session_messages
from keepward.integrations.namespaces import index_text, key_of, name_of, segment_of, texts_of, to_namespace, to_scope
from keepward.memory import Memory

#: Tag of sessions and states.
ADK_TAG = "adk"
_FIELDS: Any = {"tags": [ADK_TAG], "tier": "archival", "kind": "fact", "content_type": "structured"}
#: So often something else may be written in between.
_MAX_WRITE_ATTEMPTS = 50
#: Events of one answer, such as calls of tools, behind which the question is still recognised.
_MAX_STEPS = 200
#: Keys of states: of a session with its name, of a user and of an app.
SESSION, USER_STATE, APP_STATE = "session:", "user_state", "app_state"


class UserSessions:
    """What one user has in an app."""

    def __init__(self, mem: Memory, app_name: str, user_id: str) -> None:
        self.names = {"app_name": app_name, "user_id": user_id}
        #: Whom memories are about: an id that has other letters, such as an address, is one of a scope alone.
        self.subject = user_id if segment_of(user_id) == user_id else None
        self.app, self.own = (mem.at(scope=to_scope(mem.scope, each)) for each in ([app_name], [app_name, user_id]))

    def session(self, name: str, config: GetSessionConfig | None = None, *, bare: bool = False) -> Session | None:
        """Return a session, with its events unless it is to be ``bare``; None where there is none."""
        record = _record_under(self.own, SESSION + name)
        if record is None:
            return None
        config, session = config or GetSessionConfig(), key_of(name)
        since = {"timestamp": {"$gte": config.after_timestamp}} if config.after_timestamp is not None else None
        events = [] if bare else session_messages(self.own, session, config.num_recent_events, where=since)
        latest = events[:1] or session_messages(self.own, session, 1)
        scoped = {
            State.APP_PREFIX: state_under(self.app, APP_STATE),
            State.USER_PREFIX: state_under(self.own, USER_STATE),
        }
        above = {prefix + key: each for prefix, state in scoped.items() for key, each in state.items()}
        return Session(
            **self.names,
            id=name,
            state=record.metadata["state"] | above,
            events=[Event.model_validate(each.metadata) for each in reversed(events)],
            last_update_time=latest[0].metadata["timestamp"] if latest else record.metadata["created"],
        )

    def write(self, name: str, delta: dict[str, Any], event: Event | None = None) -> bool:
        """Make a session, or append an event to one; False where it has that event already."""
        tries = 0
        while True:
            tries += 1
            record = _record_under(self.own, SESSION + name)
            if event is None and record is not None:
                raise AlreadyExistsError(f"Session with id {name} already exists.")
            if event is not None and record is None:
                raise SessionNotFoundError(f"Session {name} not found.")
            if event is not None and session_messages(self.own, key_of(name), 1, where={"id": event.id}):
                return False
            # A key that something else holds stays stale, however often it is read.
            with suppress(StaleVersion) if tries < _MAX_WRITE_ATTEMPTS else nullcontext():
                with self.own.draft(reason="a session went on") as draft:
                    self._set(draft, record, name, delta)
                    if event is not None:
                        item = event.model_dump(mode="json", by_alias=True, exclude_none=True) | {
                            "role": speaker_of(event)
                        }
                        fields = message_fields(
                            self.own, key_of(name), item, texts_in(event.content), event.author or None
                        )
                        occurred = from_micros(round(event.timestamp * 1_000_000))
                        draft.insert(**fields, aliases=[event.id], subject=self.subject, occurred_at=occurred)
                require_stored(draft.outcome)
                return True

    def _set(self, draft: Draft, current: Record | None, name: str, delta: dict[str, Any]) -> None:
        """Set what changes in the states of the app, of the user and of the session."""
        states: dict[str, dict[str, Any]]
        states = {State.APP_PREFIX: {}, State.USER_PREFIX: {}, State.TEMP_PREFIX: {}, "": {}}
        for field, each in to_jsonable_python(delta, fallback=str).items():
            prefix = next(prefix for prefix in states if field.startswith(prefix))
            states[prefix][field.removeprefix(prefix)] = each
        for mem, key, prefix in ((self.own, USER_STATE, State.USER_PREFIX), (self.app, APP_STATE, State.APP_PREFIX)):
            if states[prefix]:
                _put(draft, mem, _record_under(mem, key), key, state_under(mem, key) | states[prefix])
        new = {"id": name, "state": {}, "created": self.own.now.timestamp()}
        value: dict[str, Any] = new if current is None else current.metadata
        if current is None or states[""]:
            _put(draft, self.own, current, SESSION + name, {**value, "state": value["state"] | states[""]})

    def delete(self, name: str) -> None:
        """Retire a session."""
        record = _record_under(self.own, SESSION + name)
        if record is not None:
            records = [record, *session_messages(self.own, key_of(name))]
            require_stored(self.own.forget_many([each.id for each in records], reason="a session was deleted")[0])


def sessions_of(mem: Memory, app_name: str, user_id: str | None) -> list[Session]:
    """Return the sessions of a user in an app, or of all users, without their events."""
    where = to_scope(mem.scope, [app_name] if user_id is None else [app_name, user_id])
    records = mem.at(scope=where).list_memories(tags=[ADK_TAG], within=where, limit=None)
    sessions = [each for each in records if name_of(each.key or "").startswith(SESSION)]
    users = (UserSessions(mem, *to_namespace(mem.scope, each.scope)) for each in sessions)
    found = (user.session(each.metadata["id"], bare=True) for user, each in zip(users, sessions, strict=True))
    return [each for each in found if each is not None]


def _record_under(mem: Memory, key: str) -> Record | None:
    found = mem.list_memories(key=key_of(key), tags=[ADK_TAG], scopes=[mem.scope], limit=1)
    return found[0] if found else None


def state_under(mem: Memory, key: str) -> dict[str, Any]:
    """Return a state; an empty one where there is none."""
    record = _record_under(mem, key)
    return {} if record is None else record.metadata


def _put(draft: Draft, mem: Memory, current: Record | None, key: str, value: dict[str, Any]) -> None:
    text = index_text(texts_of(value.get("state", value)), mem.policy.text_limit[Tier.ARCHIVAL])
    if current is None:
        # If two processes create it at once, the second one retries with the record of the first.
        draft.insert(text, key=key_of(key), scope=mem.scope, metadata=value, if_version=0, **_FIELDS)
    else:
        draft.replace(current.id, text, metadata=value, if_version=current.version)


def speaker_of(event: Event) -> str:
    """Return the speaker of an event; facts are extracted from messages of users."""
    return "user" if event.author == "user" else "assistant"


def is_unanswered(own: Memory, message: Record) -> bool:
    """Whether a user's message is the newest of its session and has no final answer yet."""
    if message.speaker != "user" or message.session is None or message.content_type != "structured":
        return False
    for each in session_messages(own, message.session, _MAX_STEPS):
        if each.id == message.id:
            return True
        event = Event.model_validate(each.metadata)
        if event.author == "user" or event.is_final_response():
            return False
    return False


def texts_in(content: Content | None) -> list[str]:
    """Return the texts of a message, without what a model thought."""
    return [each.text for each in (content.parts if content else None) or () if each.text and not each.thought]
