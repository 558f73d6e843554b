"""Routes that read: status, core, search, compile, memories by id; what pages and strangers get."""

from __future__ import annotations

import pytest
from http_fixtures import HttpTestServer

from keepward import Memory


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A store with a mission, a harbour in every tier, and something sensitive."""
    world = HttpTestServer(tmp_path_factory.mktemp("filled"), open_reads=True)
    memory = world.memory
    memory.remember("Ship the harbour app before Easter", tier="core", key="mission")
    memory.remember("The harbour ferry leaves at six", tier="archival", tags=["ferry", "harbour"])
    memory.remember("The harbour crane is red", tier="archival", tags=["crane"], importance=0.9)
    memory.remember("The harbour pilot called at noon", tier="episodic", session="s1", subject="pilot")
    memory.remember("The harbour master drinks his coffee at the pier", tier="archival", sensitivity="sensitive")
    memory.at(scope="/agents/orion").remember("The harbour gate of orion is green", tier="archival")
    yield world
    memory.close()


def listed(page):
    return [each["memory"] for each in page["hits"]] if "hits" in page else page["items"]


def texts(answer):
    return [each["text"] for each in listed(answer.json())]


@pytest.mark.promise("C106", "C117")
def test_status_reports_tier_sizes_block_counts_and_queue_depth(world):
    world.memory.remember("The ferry leaves at six", tier="archival")
    world.bearer().post(
        "/memory/items", json={"key": "mission", "kind": "state", "text": "Ship it", "tier": "core", "confidence": 0.9}
    )
    told = world.owner.get("/memory/status").json()
    assert (told["by_tier"], told["quarantine"]["depth"], sorted(told["blocks"])) == (
        {"archival": 1},
        1,
        ["human", "mission", "operating_rules", "persona", "workspace_state"],
    )


def test_status_names_the_file_to_the_owner_alone(world):
    told = [client.get("/memory/status").json()["path"] for client in (world.owner, world.bearer())]
    assert told == [str(world.path), None]


@pytest.mark.promise("C107")
def test_core_returns_current_blocks_in_compile_order(filled):
    blocks = filled.owner.get("/memory/core").json()["blocks"]
    assert [(each["key"], each["text"]) for each in blocks] == [
        ("persona", None),
        ("human", None),
        ("operating_rules", None),
        ("mission", "Ship the harbour app before Easter"),
        ("workspace_state", None),
    ]


@pytest.mark.promise("C108")
@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"tier": "episodic"}, {"The harbour pilot called at noon"}),
        ({"tags": ["crane", "ferry"]}, {"The harbour crane is red", "The harbour ferry leaves at six"}),
        ({"subject": "pilot"}, {"The harbour pilot called at noon"}),
        ({"min_importance": "0.8"}, {"The harbour crane is red"}),
    ],
    ids=lambda each: "-".join(each) if isinstance(each, dict) else "",
)
def test_search_narrows_by_tier_tags_and_the_other_filters(filled, asked, found):
    assert set(texts(filled.owner.get("/memory/search", params={"query": "harbour", **asked}))) == found


def test_sensitive_memory_is_found_only_on_request(filled):
    found = [
        len(texts(filled.owner.get("/memory/search", params={"query": "coffee pier", "include_sensitive": asked})))
        for asked in ("false", "true")
    ]
    assert found[1] - found[0] == 1


@pytest.mark.parametrize(("path", "asked"), [("search", {"query": "harbour"}), ("items", {"include_ended": "true"})])
def test_pages_follow_one_another_without_a_gap_or_a_repeat(filled, path, asked):
    path = f"/memory/{path}"
    whole, paged, cursor = filled.owner.get(path, params={**asked, "limit": 100}).json(), [], None
    while True:
        page = filled.owner.get(path, params={**asked, "limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        paged += listed(page)
        cursor = page["cursor"]
        if cursor is None:
            break
    wanted = [each["id"] for each in listed(whole)]
    assert [each["id"] for each in paged] == wanted


@pytest.mark.parametrize("asked", [{}, {"sort": "trust"}, {"as_of": 2}, {"as_of": "2027-01-01T00:00:00Z"}])
def test_a_list_that_fills_its_page_has_no_cursor(world, asked):
    for n in range(2):
        world.memory.remember(f"Ferry number {n}{n} goes to island {n}", tier="archival")
    pages = [world.owner.get("/memory/items", params={**asked, "limit": limit}).json() for limit in (1, 2, 3)]
    assert [page["cursor"] is None for page in pages] == [False, True, True]


@pytest.mark.parametrize(("path", "asked"), [("search", {"query": "ferry"}), ("items", {"tier": "archival"})])
def test_second_page_uses_the_state_and_clock_of_the_first(world, path, asked):
    path = f"/memory/{path}"
    for n in range(4):
        world.memory.remember(f"Ferry number {n}{n} goes to island {n}", tier="archival", ttl="1h")
    first = world.owner.get(path, params={**asked, "limit": 2}).json()
    world.clock.move(hours=2)
    world.memory.remember("Ferry number 99 goes to island 9", tier="archival")
    second = world.owner.get(path, params={**asked, "limit": 2, "cursor": first["cursor"]}).json()
    seen = [each["text"] for page in (first, second) for each in listed(page)]
    assert sorted(seen) == [f"Ferry number {n}{n} goes to island {n}" for n in range(4)]


def test_a_list_of_a_future_instant_pages_as_well(world):
    for n in range(3):
        world.memory.remember(f"Ferry number {n}{n} goes to island {n}", tier="archival")
    asked = {"limit": 2, "as_of": "2027-01-01T00:00:00Z"}
    first = world.owner.get("/memory/items", params=asked).json()
    world.memory.remember("Ferry number 99 goes to island 9", tier="archival")
    second = world.owner.get("/memory/items", params={**asked, "cursor": first["cursor"]}).json()
    assert len(first["items"] + second["items"]) == 3


@pytest.mark.parametrize(
    "query",
    [
        "",
        "query=x&limit=1_0",
        "query=x&receipt=yes",
        "query=x&tier=soul",
        "query=x&min_importance=nan",
        "query=%00",
        "query=x&as_of=tomorrow!",
        "query=x&query=y",
        "query=x&teir=core",
        "query=x&tags=%0a",
    ],
)
def test_unreadable_query_is_refused_and_not_repeated(filled, query):
    answer = filled.owner.get(f"/memory/search?{query}")
    assert (answer.status_code, "soul" in answer.text, "tomorrow" in answer.text) == (400, False, False)


def test_null_in_an_address_is_refused(filled):
    assert filled.owner.get("/memory/items?limit=null").status_code == 400


@pytest.fixture(scope="module")
def spring(tmp_path_factory):
    """A store with events of March and April 2025, one of now, and a fact that names no time."""
    world = HttpTestServer(tmp_path_factory.mktemp("spring"))
    for name, at in (("march", "2025-03-14T09:00:00Z"), ("april", "2025-04-01T00:00:00Z"), ("now", None)):
        world.memory.remember(f"The {name} card of Ana", tier="episodic", kind="event", occurred_at=at)
    world.memory.remember("The plain card of Ana", tier="archival", kind="fact")
    yield world
    world.memory.close()


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("occurred_since=2025-03-01&occurred_until=2025-04-01", {"march"}),
        ("occurred_since=2025-04-01", {"april", "now"}),
        ("occurred_until=2025-04-01T02:00:00%2B02:00", {"march"}),
        ("occurred_since=2025-03-01&until=2025-04-01", set()),
    ],
)
@pytest.mark.parametrize("path", ["/memory/items?", "/memory/search?query=card&"])
def test_reads_narrow_by_when_it_happened(spring, path, asked, found):
    answer = spring.owner.get(path + asked).json()
    assert {each["text"].split()[1] for each in listed(answer)} == found
    told = spring.owner.get(f"/memory/facets?{asked}")
    assert (told.status_code, told.json()["total"]) == (200, len(found))


@pytest.mark.parametrize("asked", ["occurred_since=0", "until=tomorrow"])
@pytest.mark.parametrize("path", ["/memory/items?", "/memory/search?query=ferry&", "/memory/activity?"])
def test_digits_that_are_no_instant_narrow_nothing_silently(filled, path, asked):
    answer = filled.owner.get(path + asked)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


@pytest.mark.parametrize("limit", [0, 501])
@pytest.mark.parametrize(
    "path",
    [
        *("items?", "search?query=ferry&", "commits?", "quarantine?"),
        *("receipts?", "contradictions?", "candidates?"),
    ],
)
def test_a_limit_out_of_bounds_gets_the_range(filled, path, limit):
    answer = filled.owner.get(f"/memory/{path}limit={limit}")
    most = 100 if path == "contradictions?" else 500
    wrong = {"where": "query.limit", "message": f"must be a whole number from 1 to {most}"}
    assert (answer.status_code, answer.json()["errors"]) == (400, [wrong])


@pytest.mark.promise("C110")
def test_compile_gives_a_context_for_an_objective_with_its_receipt(filled):
    told = filled.bearer().post("/memory/compile", json={"objective": "when does the ferry leave"}).json()
    receipt = filled.owner.get(f"/memory/receipts/{told['receipt']['id']}").json()
    assert ("ferry leaves at six" in told["text"], receipt["context_id"]) == (True, told["context_id"])


def test_past_version_is_read_by_number_head_or_instant(world):
    made = world.memory.remember("The ferry leaves at six", tier="archival").records[0]
    head = world.memory.head
    world.clock.move(hours=1)
    world.memory.revise(made.id, "The ferry leaves at seven", reason="winter")
    found = [
        world.owner.get(f"/memory/items/{made.id}", params={"as_of": asked}).json()["text"]
        for asked in ("1", head, "2026-03-01T09:30:00Z", "2026-03-01T10:30:00+00:00")
    ]
    assert found == ["The ferry leaves at six"] * 3 + ["The ferry leaves at seven"]


@pytest.mark.promise("C114")
@pytest.mark.parametrize(
    "call",
    [
        ("GET", "/memory/status"),
        ("GET", "/memory/core"),
        ("GET", "/memory/search?query=harbour"),
        ("POST", "/memory/compile"),
    ],
    ids=lambda call: call[1],
)
def test_anonymous_reader_sees_nothing_sensitive(filled, call):
    answer = filled.nobody.request(*call, json={"objective": "harbour master coffee"} if call[0] == "POST" else None)
    assert (answer.status_code, "coffee at the pier" in answer.text) == (200, False)


@pytest.mark.promise("C114")
@pytest.mark.parametrize("asked", ["include_sensitive=true", "include_sensitive=true&tier=archival"])
def test_a_stranger_who_asks_for_what_is_sensitive_is_refused(filled, asked):
    assert filled.nobody.get(f"/memory/search?query=coffee&{asked}").status_code == 403


@pytest.mark.promise("C114")
@pytest.mark.parametrize(
    "path",
    ["items", "quarantine", "commits", "diff?earlier=0", "events", "export", "tokens", "snapshot", "notices", "doctor"],
)
def test_a_stranger_reads_nothing_else(filled, path):
    assert filled.nobody.get(f"/memory/{path}").status_code == 401


def test_a_list_goes_on_being_right_while_writes_keep_coming(world, monkeypatch):
    for n in range(3):
        world.memory.remember(f"Ferry number {n}{n} goes to island {n}", tier="archival")
    real, written = Memory._send, []

    def find(self, about, given):
        found = real(self, about, given)
        if about.name == "list_memories" and len(written) < 5:
            written.append(
                world.memory.remember(f"Crane {len(written) * 37} has colour {len(written)}", tier="archival")
            )
        return found

    monkeypatch.setattr(Memory, "_send", find)
    first = world.owner.get("/memory/items", params={"limit": 2}).json()
    second = world.owner.get("/memory/items", params={"limit": 500, "cursor": first["cursor"]}).json()
    ids = [each["id"] for each in first["items"] + second["items"]]
    # Three reads were overtaken by writes; the fourth named its state.
    assert (len(ids), len(set(ids))) == (6, 6)


@pytest.mark.parametrize("until", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_activity_at_the_ends_of_the_calendar_is_a_wrong_request(world, until):
    answer = world.owner.get("/memory/activity", params={"until": until, "zone": 1439})
    assert (answer.status_code, "between the years" in answer.text) == (400, True)


@pytest.mark.parametrize(
    ("path", "asked"), [("search", {"query": "ferry"}), ("items", {}), ("items", {"sort": "trust"})]
)
def test_a_cursor_of_a_state_that_the_store_does_not_have_is_refused(tmp_path, path, asked):
    answers, cursor = [], {}
    for count in (3, 2):
        (folder := tmp_path / f"{count}").mkdir()
        world = HttpTestServer(folder)
        for n in range(count):
            world.memory.remember(f"Ferry number {n}{n} goes to island {n}", tier="archival")
        answers.append(world.owner.get(f"/memory/{path}", params={**asked, **cursor, "limit": 1}))
        cursor = {"cursor": answers[0].json()["cursor"]}
        world.memory.close()
    assert (answers[1].status_code, answers[1].json()["code"]) == (400, "bad_cursor")
