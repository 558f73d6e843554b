"""What stands in a context, in which order, and what stays out and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from context_made import NOW, event, found, ids, inputs, record, rule, why

from keepward.context import compile_context, snapshot


def test_rule_cut_by_the_limit_appears_when_recalled() -> None:
    rules = [rule(f"r{n:02}", f"rule {n}") for n in range(11)]
    cut = next(iter(why(compile_context(inputs(pinned=rules)))))
    recalled = found(next(each for each in rules if each.id == cut))
    assert ids(compile_context(inputs(pinned=rules, recalled=recalled)), "recalled") == [cut]


def test_state_is_by_depth_of_scope_and_then_by_key() -> None:
    state = [
        record("1", "x", kind="state", key="b"),
        record("2", "y", kind="state", key="a"),
        record("3", "z", kind="state", key="a", scope="/agents/orion"),
    ]
    assert ids(compile_context(inputs(state=state)), "state") == ["2", "1", "3"]


def test_recalled_memories_of_any_kind_and_age_are_best_first() -> None:
    recalled = found(
        event("event", "went out", created_at=NOW - timedelta(days=9)),
        record("new", "spaces", created_at=NOW),
        record("summary", "a week", tier="episodic", kind="summary"),
        record("old", "tabs", created_at=NOW - timedelta(days=5)),
    )
    assert ids(compile_context(inputs(recalled=recalled)), "recalled") == ["event", "new", "summary", "old"]


def test_messages_of_a_session_stand_together_where_the_best_of_them_is() -> None:
    def turn(name: str, session: str, minute: int) -> object:
        at = datetime(2023, 5, 8, 9, minute, tzinfo=UTC)
        return event(name, f"text {name}", session=session, speaker="Ana", occurred_at=at)

    turns = [turn("b1", "b", 5), turn("a2", "a", 9), record("fact", "tabs"), turn("a1", "a", 1)]
    assert ids(compile_context(inputs(recalled=found(*turns))), "recalled") == ["b1", "a1", "a2", "fact"]


def test_messages_show_their_speaker_under_their_day() -> None:
    at = datetime(2023, 5, 8, tzinfo=UTC)
    said = [event(f"e{n}", f"Hello {n}", session=f"s{n}", speaker="Ana", occurred_at=at) for n in range(2)]
    text = compile_context(inputs(recalled=found(*said))).text
    assert "### 2023-05-08 Mon\n\n[event] Ana: Hello 0\n\n[event] Ana: Hello 1" in text


def test_equal_texts_under_different_keys_are_no_repeats() -> None:
    state = [record("1", "80", kind="state", key="port"), record("2", "80", kind="state", key="speed")]
    assert len(ids(compile_context(inputs(state=state)), "state")) == 2


def test_state_without_a_key_is_not_in_a_snapshot() -> None:
    assert why(snapshot(inputs(state=[record("s", "loose", kind="state")]))) == {"s": "unkeyed"}


def test_pinned_memories_of_the_own_scope_come_first() -> None:
    pinned = [rule("shared", "one"), rule("own", "two", scope="/agents/orion")]
    assert ids(compile_context(inputs(pinned=pinned)), "pinned") == ["own", "shared"]
