"""Addresses, blobs, notes."""

import os
from pathlib import Path

import pytest

from sheafcoarsen.distributed.location import StoreError, fresh_name, place_of


def test_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert place_of("here").url == place_of(Path("here")).url == os.path.join(tmp_path, "here")
    assert place_of("file:///somewhere").local_path == "/somewhere"
    assert place_of("s3://bucket/name").url == "s3://bucket/name"
    assert place_of("s3://bucket/name").local_path is None
    assert (place_of("s3://bucket/name/") / "below").url == "s3://bucket/name/below"


@pytest.mark.parametrize("bad", [3, None, b"path"])
def test_what_is_no_address(bad):
    with pytest.raises(TypeError, match="`url` must be a path or an address"):
        place_of(bad)
    with pytest.raises(ValueError, match="empty"):
        place_of("")
    with pytest.raises(ValueError, match="`out` = 'foo://x': fsspec knows no protocol 'foo'"):
        place_of("foo://x", name="out")


@pytest.mark.parametrize("kind", ["url", "memory"])
def test_blobs(kind, request):
    place = place_of(request.getfixturevalue(kind)("folder"))
    assert place.names() == []
    (place / "a/b").put(b"0123456789")
    assert (place / "a/b").get() == b"0123456789"
    assert (place / "a").slices(["b", "b"], [0, 4], [2, 9]) == [b"01", b"45678"]
    assert place.names() == ["a"]
    with pytest.raises(StoreError, match="c is missing"):
        (place / "a/c").get()
    with pytest.raises(StoreError, match="missing"):
        (place / "a").slices(["c"], [0], [2])
    place.remove()
    place.remove()
    assert place.names() == []


def test_a_note_counts_when_it_is_whole(url):
    note = place_of(url("note.json"))
    assert note.read_note() is None
    note.note({"name": "x", "n": 3})
    assert note.read_note() == {"name": "x", "n": 3}
    text = Path(note.url).read_text()
    for damaged in (text[:-5], text.replace("3", "4", 1), "", "[]", "null", '{"note": 1}'):
        Path(note.url).write_text(damaged)
        assert note.read_note() is None


def test_names_differ():
    assert len({fresh_name("a") for _ in range(100)}) == 100
