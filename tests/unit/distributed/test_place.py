"""Addresses, blobs, notes, and arrays whose chunks may be lost."""

import os
from pathlib import Path

import numpy as np
import pytest

from sheafcoarsen.distributed.place import (
    StoreError,
    fresh_name,
    place_of,
    read_array,
    write_array,
)


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


@pytest.mark.parametrize("kind", ["url", "memory"])
def test_blobs(kind, request):
    place = place_of(request.getfixturevalue(kind)("folder"))
    assert not place.exists()
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
    assert not place.exists()


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


@pytest.mark.parametrize(
    "values",
    [
        np.arange(7),
        np.zeros(5),
        np.zeros((3, 2), np.int32),
        np.array([1 + 2j], np.complex64),
        np.array([np.inf, 0.0]),
        np.zeros(0),
        np.zeros((0, 2), np.int64),
        np.array([0, 1, 1], np.int8),
    ],
)
def test_arrays_come_back(values, memory):
    place = place_of(memory("group"))
    write_array(place.group("w"), "x", values, packed=values.dtype.kind == "i")
    found = read_array(place, place.group("r"), "x")
    assert found.dtype == values.dtype
    assert np.array_equal(found, values)


@pytest.mark.parametrize("values", [np.zeros(70), np.arange(140).reshape(70, 2), np.zeros(70, int)])
@pytest.mark.parametrize("chunk", [20, 70])
def test_a_chunk_that_is_lost_or_damaged_is_named(values, chunk, url, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.distributed.place.CHUNK", chunk)
    place = place_of(url("group"))
    write_array(place.group("w"), "x", values)
    chunks = sorted(path for path in Path(place.url, "x", "c").rglob("*") if path.is_file())
    assert len(chunks) == -(-70 // chunk)
    for path in chunks:
        name = path.relative_to(place.url).as_posix()
        held = path.read_bytes()
        path.write_bytes(held[:-6] + bytes([held[-6] ^ 1]) + held[-5:])
        with pytest.raises(StoreError, match=f"{name} is damaged"):
            read_array(place, place.group("r"), "x")
        path.unlink()
        with pytest.raises(StoreError, match=f"the chunk {name} is missing"):
            read_array(place, place.group("r"), "x", "part 3")
        path.write_bytes(held)
    assert np.array_equal(read_array(place, place.group("r"), "x"), values)


def test_an_array_that_is_lost(memory):
    place = place_of(memory("group"))
    with pytest.raises(StoreError, match="the array y is missing"):
        read_array(place, place.group("w"), "y")
