"""Archives and folders that are hostile, damaged or strange: a clear error, and nothing lost."""

import bz2
import cProfile
import json
import os
import pstats
import stat
import struct
import zipfile
import zlib

import pytest

from keepward.errors import InvalidInput
from keepward.interchange import load
from keepward.interchange.archive import _archive
from support import foreign

NOTE = "- The pier is closed\n"


def talk(*texts, name="c-1"):
    said = [foreign.chatgpt_message(f"{name}-{n}", "user", text, at=foreign.MARCH + n) for n, text in enumerate(texts)]
    return foreign.chatgpt_conversation(name, "T", said)


def texts_of(mem):
    return {each.text for each in mem.list_memories(within="/", limit=None)}


@pytest.mark.parametrize("name", ["/etc/notes.md", "a/../../b.md", "..\\up.md"])
def test_archive_with_a_path_traversal_name_is_refused(mem, tmp_path, name):
    path = foreign.zipped(tmp_path / "a.zip", {"good.md": NOTE, name: NOTE})
    with pytest.raises(InvalidInput, match="outside of itself"):
        load(mem, path)
    assert texts_of(mem) == set()


def peak_of(action):
    """Return the most memory in MB that a call took beyond what was there, and its error."""
    import tracemalloc

    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput) as refused:
            action()
        return tracemalloc.get_traced_memory()[1] / 1e6, str(refused.value)
    finally:
        tracemalloc.stop()


def lying(path, packed, method, claimed):
    """Write an archive of one member that claims to be ``claimed``, whatever its packed bytes give."""
    head = struct.pack("<5H3L", 63, 0, method, 0, 33, zlib.crc32(claimed), len(packed), len(claimed))
    local = b"PK\3\4" + head + struct.pack("<2H", 4, 0) + b"a.md" + packed
    listed = b"PK\1\2\x3f\0" + head + struct.pack("<5H2L", 4, 0, 0, 0, 0, 0, 0) + b"a.md"
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(listed), len(local), 0)
    path.write_bytes(local + listed + end)
    return path


def deflated(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def test_an_archive_packed_otherwise_than_by_deflate_is_refused(mem, tmp_path):
    path = lying(tmp_path / "a.zip", bz2.compress(NOTE.encode() + b" " * 15_000_000), 12, NOTE.encode())
    peak, told = peak_of(lambda: load(mem, path))
    assert ("another way than deflate" in told, peak < 10, texts_of(mem)) == (True, True, set())


@pytest.mark.parametrize("more", [1, 15_000_000])
def test_an_archive_that_gives_more_than_it_claims_is_refused(mem, tmp_path, more):
    path = lying(tmp_path / "a.zip", deflated(NOTE.encode() + b" " * more), 8, NOTE.encode())
    peak, told = peak_of(lambda: load(mem, path))
    assert (told.startswith("a.zip"), peak < 10, texts_of(mem)) == (True, True, set())


def test_archive_that_unpacks_to_too_much_is_refused(mem, tmp_path, monkeypatch):
    monkeypatch.setattr("keepward.interchange.archive.TOTAL_LIMIT", 5_000_000)
    path = foreign.zipped(tmp_path / "bomb.zip", {f"{n}.md": NOTE + " " * 1_000_000 for n in range(6)})
    with pytest.raises(InvalidInput, match="unpacks to more than 5 MB"):
        load(mem, path)
    assert texts_of(mem) == set()


def test_a_long_list_of_files_is_refused_unread(mem, tmp_path, monkeypatch):
    monkeypatch.setattr("keepward.interchange.archive._MAX_DIRECTORY_BYTES", 1_000)
    path = foreign.zipped(tmp_path / "a.zip", {f"{n}.md": NOTE for n in range(100)})
    with pytest.raises(InvalidInput, match="list of files"):
        load(mem, path)


def test_a_json_of_too_many_values_is_refused(mem, put, monkeypatch):
    monkeypatch.setattr("keepward.interchange.parsing.VALUE_LIMIT", 200_000)
    path = put("a.json", '[{"messages": [' + "[]," * 210_000 + "[]]}]")
    peak, told = peak_of(lambda: load(mem, path))
    assert ("values" in told, peak < 6) == (True, True)


def test_a_store_of_large_rows_is_refused_and_not_quarantined(mem, tmp_path, monkeypatch):
    monkeypatch.setattr("keepward.interchange.sqlite_file.TOTAL_LIMIT", 5_000_000)
    rows = [("a", str(n), {"text": "y" * 1_000_000}, None) for n in range(20)]
    foreign.langgraph_store(tmp_path / "s.db", rows)
    peak, told = peak_of(lambda: load(mem, tmp_path / "s.db"))
    assert ("more than 5 MB" in told, peak < 8, texts_of(mem)) == (True, True, set())


def test_a_row_of_a_store_has_a_largest_size(mem, tmp_path, monkeypatch):
    monkeypatch.setattr("keepward.interchange.sqlite_file.ROW_LIMIT", 1_000_000)
    foreign.langgraph_store(tmp_path / "s.db", [("a", "b", {"text": "y" * 2_000_000}, None)])
    with pytest.raises(InvalidInput, match="too large"):
        load(mem, tmp_path / "s.db")


def test_last_of_two_files_with_one_name_is_read(mem, tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.md", "- The pier is open\n")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a.md", NOTE)
    done = load(mem, path)
    assert (texts_of(mem), done.notes) == (
        {"The pier is closed"},
        ("left out: 1 files whose name another one has as well",),
    )


def test_a_link_in_an_archive_is_left_out_and_said(mem, tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("secrets.md")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("good.md", NOTE)
    done = load(mem, path)
    assert (texts_of(mem), "left out: 1 links" in done.notes) == ({"The pier is closed"}, True)


def test_links_in_a_folder_are_not_followed(mem, tmp_path):
    (tmp_path / "outside.md").write_text("- Nobody gave this\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "good.md").write_text(NOTE)
    (tmp_path / "notes" / "link.md").symlink_to(tmp_path / "outside.md")
    (tmp_path / "notes" / "round").symlink_to(tmp_path)
    load(mem, tmp_path / "notes")
    assert texts_of(mem) == {"The pier is closed"}


def test_a_pipe_in_a_folder_is_not_waited_for(mem, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "good.md").write_text(NOTE)
    os.mkfifo(tmp_path / "notes" / "pipe.md")
    assert load(mem, tmp_path / "notes").committed == 1


def test_an_encrypted_archive_says_what_to_do(mem, tmp_path):
    path = foreign.zipped(tmp_path / "a.zip", {"good.md": NOTE})
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="encrypted; unpack it"):
        load(mem, path)


@pytest.mark.parametrize("at", [0.3, 0.95])
def test_a_damaged_archive_stores_nothing(mem, tmp_path, at):
    path = foreign.zipped(tmp_path / "a.zip", {"conversations.json": [talk("One", "Two")]})
    content = bytearray(path.read_bytes())
    place = int(len(content) * at)
    content[place : place + 8] = b"\xff" * 8
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"damaged archive|outside|no file|unpacks"):
        load(mem, path)
    assert texts_of(mem) == set()


@pytest.mark.slow
def test_an_archive_of_many_files_is_scanned_once(mem, tmp_path):
    def calls(count):
        path = foreign.zipped(tmp_path / f"{count}.zip", {f"{n}.md": "" for n in range(count)})
        with zipfile.ZipFile(path) as archive, cProfile.Profile() as profile:
            _archive(archive, "a.zip")
        return pstats.Stats(profile).total_calls

    assert calls(8_000) < 9 * calls(1_000)


@pytest.mark.parametrize("end", ["", ", 3"])
def test_an_export_that_was_cut_stores_nothing(mem, put, end):
    whole = json.dumps([talk("One"), talk("Two", name="c-2")])
    with pytest.raises(InvalidInput, match=r"nothing was imported|cannot be read"):
        load(mem, put("conversations.json", whole[:-40] + end))
    assert texts_of(mem) == set()


def test_broken_conversation_is_named_and_the_others_imported(mem, put):
    broken = talk("Never read")
    broken["mapping"] = {"a": None, "b": {"message": {"author": 7, "content": []}, "parent": "b"}}
    path = put("conversations.json", json.dumps([broken, 7, talk("Two", name="c-2")]))
    done = load(mem, path)
    assert (texts_of(mem), [number for number, _ in done.failed]) == ({"Two"}, [2])


def test_a_nul_in_a_message_takes_that_message_alone(mem, put):
    done = load(mem, put("conversations.json", json.dumps([talk("One\x00", "Two")])))
    assert (texts_of(mem), done.failed) == ({"Two"}, ((1, "contains a NUL character"),))


def test_unreadable_file_does_not_stop_the_others(mem, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "bad.md").write_bytes(b"- caf\xe9\n")
    (tmp_path / "notes" / "empty.md").write_bytes(b"")
    (tmp_path / "notes" / "good.md").write_text(NOTE)
    done = load(mem, tmp_path / "notes")
    assert (texts_of(mem), done.notes) == (
        {"The pier is closed"},
        ("left out, because the format is another or unknown: bad.md, empty.md",),
    )


def test_a_folder_without_anything_to_read_is_an_error(mem, tmp_path):
    (tmp_path / "notes").mkdir()
    with pytest.raises(InvalidInput, match="contains no readable file"):
        load(mem, tmp_path / "notes")


def test_a_damaged_store_is_an_error(mem, tmp_path):
    foreign.langgraph_store(tmp_path / "s.db", [("a", "b", {"text": "x"}, None)])
    content = (tmp_path / "s.db").read_bytes()
    (tmp_path / "s.db").write_bytes(content[:120] + b"\xff" * 4000)
    with pytest.raises(InvalidInput, match="damaged"):
        load(mem, tmp_path / "s.db")


@pytest.mark.parametrize("row", [("a", "b", None), (None, "b", "{}"), ("a", b"\xff", "{}")])
def test_store_item_with_a_missing_part_is_named(mem, tmp_path, row):
    import sqlite3
    from contextlib import closing

    foreign.langgraph_store(tmp_path / "s.db", [("a", "good", {"text": "The pier is closed"}, None)])
    with closing(sqlite3.connect(tmp_path / "s.db")) as base, base:
        base.execute("CREATE TABLE other AS SELECT * FROM store")
        base.execute("DROP TABLE store")
        base.execute("CREATE TABLE store AS SELECT * FROM other")
        base.execute("INSERT INTO store (prefix, key, value) VALUES (?, ?, ?)", row)
    done = load(mem, tmp_path / "s.db")
    (waiting,) = mem.pending()
    assert ([step.after.text for step in waiting.steps], len(done.failed)) == (["The pier is closed"], 1)


def test_a_view_instead_of_the_table_is_not_run(mem, tmp_path):
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "s.db")) as base, base:
        forever = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)"
        base.execute(f"CREATE VIEW store AS {forever} SELECT n AS prefix, n AS key, n AS value FROM r")
    with pytest.raises(InvalidInput, match="holds no store"):
        load(mem, tmp_path / "s.db")


def test_self_referential_property_is_imported_verbatim(mem, tmp_path):
    (tmp_path / "n.md").write_text("---\na: &a [x, x]\nb: [*a, *a]\n---\n- Bombs stay text\n")
    load(mem, tmp_path / "n.md")
    assert texts_of(mem) == {"Bombs stay text"}
