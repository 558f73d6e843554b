"""Routes of the journal and of inquiries: commits, receipts, rollback, blame, impact, containment, jobs."""

from __future__ import annotations

import pytest

from keepward import Replace


def put(world, text, **fields):
    """Remember as the owner; return the answer's body."""
    answer = world.owner.post("/memory/items", json={"text": text, "tier": "archival", **fields})
    assert answer.status_code == 201
    return answer.json()


def seen(world, made):
    return {"If-Match": world.owner.get(f"/memory/commits/{made['commit']['id']}").headers["etag"]}


def mission(world):
    blocks = world.owner.get("/memory/core").json()["blocks"]
    return next(each["text"] for each in blocks if each["key"] == "mission")


def compiled(world, objective="mission"):
    return world.owner.post("/memory/compile", json={"objective": objective}).json()["text"]


@pytest.mark.promise("C117", "C119")
def test_commit_is_found_in_the_log_with_its_receipt(world):
    made = put(world, "The ferry leaves at six")
    listed = world.owner.get("/memory/commits").json()["items"][0]
    shown = world.owner.get(f"/memory/commits/{made['commit']['id']}").json()
    assert (listed["commit"], shown["details"]["receipt"], shown["steps"][0]["after"]["text"]) == (
        made["commit"],
        made["receipt"]["id"],
        "The ferry leaves at six",
    )


def test_log_shows_memories_before_and_after(world):
    put(world, "The ferry leaves at six")
    (step,) = world.owner.get("/memory/commits").json()["items"][0]["steps"]
    assert (step["before"], step["after"]["text"]) == (None, "The ferry leaves at six")


def test_a_page_of_large_commits_is_shorter_and_the_next_one_follows(world, monkeypatch):
    for n in range(3):
        world.memory.remember_many([f"Crane {n} is red", f"Buoy {n} is green"], mode="atomic")
    put(world, "The ferry leaves at six")
    monkeypatch.setattr("keepward.http.handlers.MAX_STEPS_PER_PAGE", 3)
    pages, before = [], None
    while before is not None or not pages:
        query = {} if before is None else {"before": before}
        page = world.owner.get("/memory/commits", params=query).json()
        pages.append([each["commit"]["seq"] for each in page["items"]])
        before = page["next_before"]
    assert pages == [[4, 3], [2], [1]]


def test_a_page_that_ends_with_the_first_commit_is_the_last(world):
    put(world, "The ferry leaves at six")
    put(world, "The crane is red and tall")
    pages = [world.owner.get("/memory/commits", params={"limit": limit}).json() for limit in (1, 2, 3)]
    assert [page["next_before"] for page in pages] == [2, None, None]


@pytest.mark.promise("C51", "C113", "C120")
def test_rollback_restores_core_and_prompt(world):
    put(world, "Ship before Easter", tier="core", key="mission")
    before = compiled(world)
    changed = put(world, "Ship in summer", tier="core", key="mission")
    done = world.owner.post(f"/memory/rollback/{changed['commit']['id']}", headers=seen(world, changed))
    assert (done.status_code, done.json()["applied"], mission(world), compiled(world)) == (
        200,
        True,
        "Ship before Easter",
        before,
    )


@pytest.mark.parametrize("headers", [{}, {"If-Match": '"another"'}])
def test_missing_rollback_right_is_reported_before_missing_arguments(world, headers):
    made = put(world, "Ship before Easter", tier="core", key="mission")
    answer = world.bearer().post(f"/memory/rollback/{made['commit']['id']}", headers=headers)
    assert (answer.status_code, mission(world)) == (403, "Ship before Easter")


@pytest.mark.promise("C113")
def test_a_rollback_names_the_versions_it_saw(world):
    made = put(world, "The ferry leaves at six")
    before = seen(world, made)
    world.memory.revise(made["id"], "The ferry leaves at seven", reason="x")
    path = f"/memory/rollback/{made['commit']['id']}"
    codes = [world.owner.post(path, headers=headers).status_code for headers in ({}, before, seen(world, made))]
    assert (codes, world.memory.get(made["id"]).status.value) == ([428, 412, 409], "active")


@pytest.mark.promise("C113")
def test_a_rollback_is_not_stale_because_other_memories_changed(world):
    made = put(world, "The ferry leaves at six")
    before = seen(world, made)
    put(world, "The crane is red")
    world.memory.reinforce(made["id"])
    done = world.owner.post(f"/memory/rollback/{made['commit']['id']}", headers=before)
    assert (done.status_code, done.json()["applied"]) == (200, True)


def test_a_rollback_with_later_commits_names_every_memory_that_it_changes(world):
    other, made = put(world, "The crane is red"), put(world, "The ferry leaves at six")
    texts = {made["id"]: "The ferry leaves at seven", other["id"]: "The crane is blue"}
    world.memory.propose([Replace(id=name, text=text) for name, text in texts.items()], reason="x")
    path = f"/memory/rollback/{made['commit']['id']}"
    told = world.owner.post(path, json={"with_later": True, "dry_run": True}).json()
    world.memory.revise(other["id"], "The crane is green", reason="x")
    stale = world.owner.post(path, json={"with_later": True}, headers={"If-Match": told["etag"]})
    assert (len(told["undone"]), stale.status_code, world.memory.get(made["id"]).version) == (2, 412, 2)


@pytest.mark.parametrize("headers", [{}, {"If-Match": "*"}])
@pytest.mark.parametrize("body", [{}, {"json": {}}])
def test_a_rollback_without_what_was_seen_names_the_header(world, headers, body):
    made = put(world, "The ferry leaves at six")
    answer = world.owner.post(f"/memory/rollback/{made['commit']['id']}", headers=headers, **body)
    named = [word in answer.json()["detail"] for word in ("If-Match", "GET /memory/commits/{commit_id}")]
    assert (answer.status_code, named, world.memory.get(made["id"]).status.value) == (428, [True, True], "active")


def test_rollback_dry_run_changes_nothing_and_returns_the_etag(world):
    made = put(world, "The ferry leaves at six")
    path = f"/memory/rollback/{made['commit']['id']}"
    told = world.owner.post(path, json={"dry_run": True}).json()
    codes = (told["dry_run"], told["applied"], world.memory.get(made["id"]).status.value)
    done = world.owner.post(path, headers={"If-Match": told["etag"]})
    assert (codes, done.json()["applied"]) == ((True, False, "active"), True)


@pytest.mark.promise("F9")
def test_a_second_rollback_changes_nothing_and_gives_the_first_receipt(world):
    made = put(world, "The ferry leaves at six")
    path = f"/memory/rollback/{made['commit']['id']}"
    told = [world.owner.post(path, headers=seen(world, made)).json() for _ in "ab"]
    assert ([each["already"] for each in told], told[0]["receipt_id"]) == ([False, True], told[1]["receipt_id"])


@pytest.mark.parametrize("query", ["", "?source=web&actor=agent:claude"])
def test_an_impact_is_asked_in_exactly_one_way(world, query):
    assert world.owner.get(f"/memory/impact{query}").status_code == 400


@pytest.mark.promise("C105")
def test_job_answers_run_skipped_or_failed_with_a_receipt(world, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    path = "/memory/jobs/expire/run"
    told = [world.owner.post(path).json()["items"][0] for _ in "ab"]
    monkeypatch.setattr("keepward.jobs.runner._JobRun._execute", broken)
    told.append(world.owner.post(path, json={"force": True}).json()["items"][0])
    kept = [world.owner.get(f"/memory/receipts/{each['receipt']['id']}").json()["kind"] for each in told]
    assert ([each["outcome"] for each in told], kept) == (["run", "skipped", "failed"], ["job"] * 3)
