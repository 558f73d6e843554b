"""Routes that destroy, that give credentials, and that take bytes: what is left afterwards, and for whom they are."""

from __future__ import annotations

import pytest


@pytest.fixture
def name(world):
    return world.memory.remember("The lighthouse keeper hums", tier="archival").records[0].id


def erased(world, name):
    plan = world.owner.post("/memory/erase/plan", json={"ids": [name]}).json()
    return world.owner.post("/memory/erase", json={"ids": [name], "digest": plan["digest"]})


def test_plan_lists_citing_memories_with_text_and_takes_them_along(world, name):
    fact = world.memory.remember("Ana takes Ramipril", tier="archival", evidence=[name]).records[0].id
    told = world.owner.post("/memory/erase/plan", json={"ids": [name]}).json()
    chosen = {"ids": [name], "include_citing": True}
    plan = world.owner.post("/memory/erase/plan", json=chosen).json()
    done = world.owner.post("/memory/erase", json={**chosen, "digest": plan["digest"]})
    assert (told["candidates"], done.status_code, world.memory.get(fact).status.value) == (
        [{"id": fact, "why": "cites", "text": "Ana takes Ramipril"}],
        200,
        "erased",
    )
    assert "Ramipril" not in done.text


@pytest.mark.promise("F14")
def test_erased_text_is_in_no_file_and_the_certificate_agrees(world, name):
    done = erased(world, name)
    files = b"".join(each.read_bytes() for each in world.folder.rglob("*") if each.is_file())
    told = world.owner.get(f"/memory/certificates/{name}").json()
    assert (done.status_code, b"lighthouse" in files, told) == (200, False, done.json()["certificate"])


def test_the_certificate_is_a_file_to_print_without_the_erased_words(world, name):
    told = erased(world, name).json()["certificate"]
    page = world.owner.get(f"/memory/certificates/{name}?format=html")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-disposition"] == f'attachment; filename="erasure-{told["commit"]["id"]}.html"'
    assert (told["commit"]["hash"] in page.text, "lighthouse" in page.text) == (True, False)
    assert world.owner.get(f"/memory/certificates/{name}?format=pdf").status_code == 400


@pytest.mark.parametrize(
    ("expires", "until"),
    [("24h", "2026-03-02T09:00:00Z"), ("2026-04-01T00:00:00Z", "2026-04-01T00:00:00Z"), (None, None)],
)
def test_token_expires_after_ttl_at_an_instant_or_never(world, expires, until):
    told = world.owner.post("/memory/tokens", json={"name": "claude", "expires": expires}).json()
    assert told["token"]["expires_at"] == until


@pytest.mark.parametrize("body", [{"name": "claude", "expires": "soon"}, {"name": "a\nb"}, {"name": "x", "can": []}])
def test_a_token_that_cannot_be_is_refused(world, body):
    assert world.owner.post("/memory/tokens", json=body).status_code == 400


PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))


def test_readers_of_a_memory_can_read_its_bytes(world):
    agent, other = world.bearer(), world.bearer("orion")
    ref = agent.post("/memory/blobs", content=PNG).json()["ref"]
    before = other.get(f"/memory/blobs/{ref}").status_code
    body = {"text": "A photo of the pier", "tier": "archival", "blob": ref, "content_type": "image"}
    written = agent.post("/memory/items", json=body).status_code
    told = other.head(f"/memory/blobs/{ref}")
    assert (before, written, told.content) == (404, 201, b"")
    assert (told.headers["content-length"], told.headers["content-type"]) == (str(len(PNG)), "image/png")


def test_bytes_that_a_browser_might_run_come_without_their_type(world):
    client = world.bearer()
    put = client.post("/memory/blobs", content=b"<!doctype html><p>hi</p>", headers={"Content-Type": "text/html"})
    got = client.get(put.headers["location"])
    assert (put.json()["active"], got.headers["content-type"]) == (True, "application/octet-stream")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("text/csv", "text/csv"),
        ("Text/CSV; charset=utf-8", "text/csv"),
        ("application/octet-stream", "text/plain"),
        ("", "text/plain"),
    ],
)
def test_bytes_have_the_media_type_that_was_sent_with_them(world, sent, kept):
    put = world.bearer().post("/memory/blobs", content=b"name,drink\nana,tea", headers={"Content-Type": sent})
    assert put.json()["media_type"] == kept


def test_bytes_that_are_known_are_not_sent_again(world):
    client = world.bearer()
    place = client.post("/memory/blobs", content=PNG).headers["location"]
    tag = client.get(place).headers["etag"]
    assert client.get(place, headers={"If-None-Match": tag}).status_code == 304


def test_bytes_with_a_secret_are_refused_and_never_stored(world):
    secret = "AKIA" + "Q3EGRVZ7XN2LKPWD"
    answer = world.bearer().post(
        "/memory/blobs", content=f"key = {secret}".encode(), headers={"Content-Type": "text/plain"}
    )
    files = b"".join(each.read_bytes() for each in world.folder.rglob("*") if each.is_file())
    assert (answer.status_code, secret.encode() in files, secret in answer.text) == (400, False, False)
